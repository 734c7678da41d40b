"""A corrected neutral GECO: the grammar of the published non-binary forms mended, and nothing else.

The published neutral forms were made by a program (`braindatalab/gecobench: labelling.py`) whose
faults are known: "them" where "their" is meant, verbs that agree with "they" only beside it, verbs
cut to non-words, plural nouns cut as if they were verbs, blanks inside words. Most are plain once
the male form stands beside the neutral one. Which further verbs agree needs grammar:
`tools/neutral_verbs.py` proposed them from part-of-speech tags alone (no parse, and no code in
common with `lib.language.annotator`), and the positions, never the words, are kept in a file, so
that everybody gets the same correction.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from ...core.errors import TouchstoneError
from ...core.files import read_table
from ...core.paths import material
from .corpus import COLUMNS, DATASETS, check_choices, fetch_geco, read_geco
from .faults import aligned_masks, find_format_faults, keep_faults, repair_rows

CORRECTIONS = [
    "sentence_idx",
    "position",
    "kind",
    "published",
    "corrected",
]  # the last two: three words each
POSITIONS = "neutral_verbs.csv"
THEIR, AGREE, NON_WORD, NOT_A_VERB, OTHER_SUBJECT, BLANK = (
    "their",
    "verb agrees",
    "verb restored",
    "noun restored",
    "verb of another subject",
    "blank",
)
IRREGULAR = {
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "isn't": "aren't",
    "'s": "are",
    "quizzes": "quiz",
    "focuses": "focus",
    "gases": "gas",
    "buses": "bus",
    "biases": "bias",
    "aches": "ache",
    "shoes": "shoe",
}
_THEY_BEGINS = ("they", "them", "thei")  # the forms of "they" by four letters
_ENDS_IN_IE = frozenset({"dies", "lies", "ties", "vies", "belies", "unties", "underlies"})


def plural_form(verb: str) -> str:
    """The form that goes with "they" of a verb in the third person singular; letter case is kept.

    >>> [plural_form(verb) for verb in ("tries", "Confesses", "dies", "uses", "was", "undergoes")]
    ['try', 'Confess', 'die', 'use', 'were', 'undergo']
    """
    low = verb.lower()
    if low in IRREGULAR:
        return IRREGULAR[low].capitalize() if verb[0].isupper() else IRREGULAR[low]
    if low.endswith("ies") and low not in _ENDS_IN_IE:
        return verb[:-3] + "y"
    return verb[:-2] if re.search(r"(ss|sh|ch|x|zz|o)es$", low) else verb[:-1]


def correct_word(
    i: int,
    neutral: Sequence[str],
    male: Sequence[str],
    female: Sequence[str],
    agrees: bool,
) -> tuple[str, str]:
    """What the word at a position of the neutral form should be, and the kind of the correction.

    Args:
        agrees: whether the word is a verb that agrees with "they".

    Returns:
        The word, and one of the kinds above, or "" where it stays.

    >>> correct_word(1, ["Of", "them"], ["Of", "his"], ["Of", "her"], False)
    ('their', 'their')
    """
    word, he, she = neutral[i], male[i], female[i]
    if word.lower() == "them" and he.lower() == "his":
        their = "theirs" if she.lower() == "hers" else "their"
        return their.capitalize() if word[0].isupper() else their, THEIR
    if agrees and word != plural_form(he):
        return plural_form(he), AGREE if word == he else NON_WORD
    was_cut = he == she != word and he.lower().endswith("s") and word in (plural_form(he), he[:-1])
    if was_cut and not agrees:
        # what was cut stands at most three words behind the "they" that it was cut for
        near = [k for k in range(max(i - 3, 0), i) if neutral[k].lower()[:4] in _THEY_BEGINS]
        return _after_they_form(he, word, male[near[-1]].lower() if near else "")
    return word, ""


def _after_they_form(he: str, word: str, form: str) -> tuple[str, str]:
    """What a word should be that lost its s beside a form of "they".

    After "his" it was no verb of "they", nor was "has" after "him".
    """
    if form == "his":
        return he, OTHER_SUBJECT if he.lower() in IRREGULAR else NOT_A_VERB
    if form == "him" and he.lower() in IRREGULAR:
        return he, OTHER_SUBJECT
    return (plural_form(he), NON_WORD) if word != plural_form(he) else (word, "")


def correct_neutral(
    rows: pd.DataFrame, verbs: Mapping[int, Sequence[int]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mend the neutral forms of one file, make the masks anew, and list what was done.

    A base sentence whose forms differ in length keeps its wording. The female and male forms lose
    stray blanks only.

    Args:
        rows: from `read_geco` with on_fault="keep", so that positions count the published words.
        verbs: the positions that agree with "they", by base sentence.

    Returns:
        The mended rows, and the corrections (columns `CORRECTIONS`).

    Raises:
        TouchstoneError: a position is not in its sentence.
    """
    done: list[tuple[int, int, str, str, str]] = []
    parts = []
    for idx, base in rows.groupby("sentence_idx", sort=False):
        # the neutral form last
        base = base.sort_values("target").copy()
        words = [[word.strip() for word in sentence] for sentence in base["sentence"]]
        before = list(base["sentence"].iloc[-1])
        kinds = [(i, BLANK) for i, word in enumerate(before) if word != word.strip()]
        if len(words) == 3 and len({len(sentence) for sentence in words}) == 1:
            mended = _mended(idx, words, verbs.get(idx, ()))
            kinds += [(i, kind) for i, (_, kind) in enumerate(mended) if kind]
            words[2] = [word for word, _ in mended]
        done += [
            (idx, i, kind, *(" ".join(form[max(0, i - 1) : i + 2]) for form in (before, words[-1])))
            for i, kind in kinds
        ]
        base["sentence"], base["ground_truth"] = words, aligned_masks(words)
        parts.append(base)
    table = pd.concat(parts).loc[rows.index, COLUMNS]
    repaired, faults = repair_rows(table, find_format_faults(table), "the corrected data")
    keep_faults(repaired, faults)
    return repaired, pd.DataFrame(done, columns=CORRECTIONS)


def _mended(
    idx: int, words: Sequence[Sequence[str]], verbs: Sequence[int]
) -> list[tuple[str, str]]:
    """The words that a neutral form should have, each with the kind of its correction."""
    female, male, neutral = words
    if outside := [i for i in verbs if i >= len(neutral)]:
        raise TouchstoneError(
            f"{POSITIONS}: base sentence {idx} has no position {max(outside)}; the file belongs to "
            "another version of the data, so propose the positions again"
        )
    return [correct_word(i, neutral, male, female, i in verbs) for i in range(len(neutral))]


def read_gold(
    dataset: str,
    split: str,
    gold: str = "published",
    on_fault: Literal["repair", "keep", "drop"] = "repair",
    folder: Path | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a published data set, its neutral forms as `gold` says, and the corrections.

    The list is empty for `published`, and for the sets with two classes, which have no neutral
    form.

    Args:
        folder: where the published files lie; they are fetched where none is named.
    """
    check_choices("geco", on_fault, gold)
    path = (folder or fetch_geco()) / DATASETS[dataset] / f"{split}.jsonl"
    if gold == "published" or dataset not in ("D_A", "D_S"):
        return read_geco(path, on_fault), pd.DataFrame(columns=CORRECTIONS)
    # kept as they are, since the positions count the published words
    rows = read_geco(path, on_fault="keep")
    return correct_neutral(rows, read_positions(material("geco") / POSITIONS, dataset))


def read_positions(path: Path, dataset: str) -> dict[int, list[int]]:
    """The positions of agreeing verbs by base sentence.

    Args:
        path: a table with dataset, sentence_idx, positions ("1 8").
    """
    table = read_table(path, dtype={"positions": str})
    of_dataset = table[table["dataset"] == dataset]
    return {
        idx: [int(i) for i in text.split()]
        for idx, text in zip(of_dataset["sentence_idx"], of_dataset["positions"], strict=True)
    }
