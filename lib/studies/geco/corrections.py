"""A corrected neutral GECO: the published non-binary forms with their grammar mended, and nothing else touched.

The published neutral forms were made by a program (`braindatalab/gecobench: labelling.py`) whose faults are known: "them"
where "their" is meant, verbs that agree with "they" only beside it, verbs cut to non-words, plural nouns cut as if they
were verbs, blanks inside words. Most are plain once the male form stands beside the neutral one. Which further verbs agree
needs grammar: `find_verbs` proposes them from part-of-speech tags alone (no parse, and no code in common with
`lib.language.annotator`), and the positions, never the words, are kept in a file, so that everybody gets the same correction.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.parse import annotate_tokens, load_pipeline
from lib.studies.geco.corpus import COLUMNS, DATASETS, SPLITS, fetch_geco, read_geco
from lib.studies.geco.faults import aligned_masks, find_format_faults, repair_rows

CORRECTIONS = [
    "sentence_idx",
    "position",
    "kind",
    "published",
    "corrected",
]  # the last two: three words each
GOLDS = ("published", "corrected")
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
ENDS_IN_IE = frozenset({"dies", "lies", "ties", "vies", "belies", "unties", "underlies"})
ADVERBS = frozenset({"RB", "RBR", "RBS", "EX"})
FINITE = frozenset({"VBZ", "VBD", "VBP", "MD"})
NOMINAL = frozenset({"NN", "NNS", "NNP", "NNPS", "PRP", "WP", "WDT", "EX", "DT", "CD"})
CLAUSE = frozenset({"WP", "WDT", "WRB", "WP$"})
JOINING = frozenset({"and", "but", "or", "nor", "yet", "then"})
BRACKETS = frozenset({",", "-", "--", "(", ")"})
BESIDE = frozenset({"himself", "herself", "both", "alone", "then"})
PHRASE = frozenset({"IN", "DT", "PRP$", "JJ", "JJS", "NN", "NNS", "NNP", "RB", "CD"})
SUBORDINATORS = frozenset(
    "that if whether because as while after before until since although though so than".split()
)


def plural_form(verb: str) -> str:
    """The form that goes with "they" of a verb in the third person singular; letter case is kept.

    >>> [plural_form(verb) for verb in ("tries", "Confesses", "dies", "uses", "was", "undergoes")]
    ['try', 'Confess', 'die', 'use', 'were', 'undergo']
    """
    low = verb.lower()
    if low in IRREGULAR:
        return IRREGULAR[low].capitalize() if verb[0].isupper() else IRREGULAR[low]
    if low.endswith("ies") and low not in ENDS_IN_IE:
        return verb[:-3] + "y"
    return verb[:-2] if re.search(r"(ss|sh|ch|x|zz|o)es$", low) else verb[:-1]


def find_verbs(neutral: Sequence[str], male: Sequence[str], tags: Sequence[str]) -> list[int]:
    """The positions of verbs in the third person singular that should agree with a subject "they", next to it or not.

    `tags`: Penn tags of the male form. From each nominative "they" the words to its right are walked through: adverbs and
    parentheses to the first finite verb, then what is coordinated with it; a clause with a subject of its own is passed
    over, and one that follows "and" with a subject of its own ends the walk.
    """
    found: set[int] = set()
    for i, word in enumerate(neutral):
        if word.lower() == "they" and male[i].lower() in ("he", "she", "they"):
            found |= _inverted(i, male, tags)
            first = _first_finite(i + 1, male, tags)
            if first is not None:
                found |= {first, *_coordinated(first, male, tags)}
    return sorted(j for j in found if _inflected(male[j], tags[j]))


def _inflected(word: str, tag: str) -> bool:
    return word.lower() in IRREGULAR or (
        tag in ("VBZ", "NNS", "NNPS") and word.lower().endswith("s")
    )


def _inverted(i: int, words: Sequence[str], tags: Sequence[str]) -> set[int]:
    """The verb of "does he know" and "nor is he": a helper right before the pronoun that has no subject before it."""
    if i == 0 or words[i - 1].lower() not in ("is", "was", "has", "does"):
        return set()
    return set() if i > 1 and tags[i - 2] in NOMINAL else {i - 1}


def _first_finite(j: int, words: Sequence[str], tags: Sequence[str]) -> int | None:
    inside = False  # between two commas: "he , however , goes"
    for k in range(j, len(words)):
        word = words[k].lower()
        if word == "who" and k <= j + 1:
            return _first_finite(k + 1, words, tags)
        if word in BRACKETS:
            inside = not inside
        elif inside and tags[k] == "VBZ" and words[k - 1].lower() in JOINING:
            return None
        elif not inside and (
            tags[k] in FINITE or (tags[k] in ("NNS", "NNPS") and word.endswith("s"))
        ):
            return k
        elif not inside and tags[k] not in ADVERBS and word not in BESIDE:
            return None
    return None


def _coordinated(first: int, words: Sequence[str], tags: Sequence[str]) -> set[int]:
    """The finite verbs after the first that share its subject; `embedded` is the tag of an inner clause's verb."""
    found: set[int] = set()
    last, embedded, after_who = first, "", words[first - 1].lower() == "who"
    for t in range(first + 1, len(words)):
        if words[t] in (";", ":"):
            break
        if tags[t] not in FINITE:
            continue
        p = _joint(last, t, words, tags)
        if p is None:
            if _is_new_clause(last, t, words, tags):
                break
            embedded = tags[t]
        elif _shares_subject(p, last, embedded if embedded == tags[t] else "", words, tags) or (
            after_who and words[p] == ","
        ):
            found.add(t)
            last, embedded = t, ""
    return found


def _joint(last: int, t: int, words: Sequence[str], tags: Sequence[str]) -> int | None:
    """The "and" or comma that ties the verb at t to what stands before, with at most adverbs or one phrase between."""
    p = t - 1
    while p > last and tags[p] in ADVERBS:
        p -= 1
    if words[p].lower() in JOINING or words[p] == ",":
        return p
    while (
        p > last
        and tags[p] in PHRASE
        and not (tags[p] in ("DT", "PRP$") and tags[p - 1] in NOMINAL)
    ):
        p -= 1
    starts = p + 1 < t and tags[p + 1] == "IN" and words[p + 1].lower() not in SUBORDINATORS
    return p if starts and words[p].lower() in JOINING else None


def _shares_subject(
    p: int, last: int, embedded: str, words: Sequence[str], tags: Sequence[str]
) -> bool:
    if words[p] == ",":
        opening = next(
            (k for k in range(p - 1, last, -1) if words[k] == "," or tags[k] in FINITE), last
        )
        if (
            words[opening] == "," and words[opening - 1].lower() in JOINING
        ):  # "and , after a while , leaves"
            return True
        return not embedded and not any(
            tags[k] in CLAUSE or words[k].lower() in SUBORDINATORS for k in range(last, p)
        )
    return not embedded or words[p - 1] == "," or words[p].lower() == "but"


def _is_new_clause(last: int, t: int, words: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether the verb at t belongs to a further main clause ("..., and his wife dies") rather than to one inside."""
    for k in range(t - 1, last, -1):
        if tags[k] in CLAUSE or (tags[k] == "IN" and words[k].lower() in SUBORDINATORS):
            return False
        if tags[k] == "CC" and k + 1 < t and tags[k + 1] in NOMINAL | {"PRP$", "JJ"}:
            between = {tags[q] for q in range(k + 1, t)}
            return not (between & CLAUSE)
    return False


def correct_word(
    i: int,
    neutral: Sequence[str],
    male: Sequence[str],
    female: Sequence[str],
    agrees: bool,
) -> tuple[str, str]:
    """What the word at a position of the neutral form should be, and the kind of the correction ("" for none).

    >>> correct_word(1, ["Killing", "them", "foe"], ["Killing", "his", "foe"], ["Killing", "her", "foe"], False)
    ('their', 'their')
    """
    word, he, she = neutral[i], male[i], female[i]
    if word.lower() == "them" and he.lower() == "his":
        their = "theirs" if she.lower() == "hers" else "their"
        return their.capitalize() if word[0].isupper() else their, THEIR
    if agrees:
        return (
            (plural_form(he), AGREE if word == he else NON_WORD)
            if word != plural_form(he)
            else (word, "")
        )
    if he == she != word and _lost_its_s(he, word):
        before = next(
            (
                k
                for k in range(i - 1, max(i - 4, -1), -1)
                if neutral[k].lower()[:4] in ("they", "them", "thei")
            ),
            None,
        )
        return _after_they_form(he, word, male[before].lower() if before is not None else "")
    return word, ""


def _lost_its_s(he: str, word: str) -> bool:
    return word in (plural_form(he), he[:-1]) and he.lower().endswith("s")


def _after_they_form(he: str, word: str, form: str) -> tuple[str, str]:
    """A word that lost its s beside a form of "they": after "his" it was no verb of "they", nor was "has" after "him"."""
    if form == "his":
        return he, OTHER_SUBJECT if he.lower() in IRREGULAR else NOT_A_VERB
    if form == "him" and he.lower() in IRREGULAR:
        return he, OTHER_SUBJECT
    return (plural_form(he), NON_WORD) if word != plural_form(he) else (word, "")


def correct_neutral(
    rows: pd.DataFrame, verbs: Mapping[int, Sequence[int]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mend the neutral forms of one file, make the masks anew, and list what was done (columns `CORRECTIONS`).

    `rows`: from `lib.studies.geco.corpus.read_geco` with on_fault="keep", so that positions count the published words. `verbs`: the
    positions that agree with "they", by base sentence. A base sentence whose forms differ in length keeps its wording.
    The female and male forms lose stray blanks only. Raises TouchstoneError where a position is not in its sentence.
    """
    done: list[tuple[int, int, str, str, str]] = []
    parts = []
    for idx, base in rows.groupby("sentence_idx", sort=False):
        base = base.sort_values("target").copy()
        base.attrs.clear()  # pd.concat cannot compare tables in attrs
        words = [[word.strip() for word in sentence] for sentence in base["sentence"]]
        before = list(base["sentence"].iloc[-1])
        kinds = [(i, BLANK) for i, word in enumerate(before) if word != word.strip()]
        positions = set(verbs.get(idx, ()))
        if len(words) == 3 and len({len(sentence) for sentence in words}) == 1:
            if positions and max(positions) >= len(words[0]):
                raise TouchstoneError(
                    f"{POSITIONS}: base sentence {idx} has no position {max(positions)}; the file "
                    "belongs to another version of the data, so propose the positions again"
                )
            mended = [
                correct_word(i, words[2], words[1], words[0], i in positions)
                for i in range(len(words[2]))
            ]
            kinds += [(i, kind) for i, (_, kind) in enumerate(mended) if kind]
            words[2] = [word for word, _ in mended]
        done += [
            (idx, i, kind, *(" ".join(form[max(0, i - 1) : i + 2]) for form in (before, words[-1])))
            for i, kind in kinds
        ]
        base["sentence"], base["ground_truth"] = words, aligned_masks(words)
        parts.append(base)
    mended_rows = pd.concat(parts).loc[rows.index, COLUMNS]
    repaired, faults = repair_rows(
        mended_rows, find_format_faults(mended_rows), "the corrected data"
    )
    repaired.attrs["faults"] = faults
    return repaired, pd.DataFrame(done, columns=CORRECTIONS)


def read_corrected(
    dataset: str, split: str, folder: Path | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The corrected rows of a data set ("D_A" or "D_S") and a split of the user's copy, and the list of corrections."""
    if dataset not in ("D_A", "D_S") or split not in SPLITS:
        raise TouchstoneError(
            f"there is no neutral form in {dataset!r}, {split!r}; choose D_A or D_S, train or test"
        )
    rows = read_geco(
        (folder or fetch_geco()) / DATASETS[dataset] / f"{split}.jsonl", on_fault="keep"
    )
    return correct_neutral(rows, read_positions(material("geco") / POSITIONS, dataset))


def check_gold(gold: str, data_source: str = "geco", on_fault: str = "repair") -> None:
    """Accept `published`, and `corrected` for the published data with their form repaired; else raise TouchstoneError."""
    if gold not in GOLDS:
        raise TouchstoneError(f"gold is {gold!r}; choose one of {', '.join(GOLDS)}")
    if gold == "corrected" and (data_source, on_fault) != ("geco", "repair"):
        raise TouchstoneError(
            f"gold: corrected mends the published data (data_source: geco) and repairs their form (on_fault: repair); "
            f"here they are {data_source} and {on_fault}, so set both, or use gold: published"
        )


def read_gold(
    dataset: str,
    split: str,
    gold: str = "published",
    on_fault: Literal["repair", "keep", "drop"] = "repair",
    folder: Path | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a published data set, its neutral forms as `gold` says, and the list of corrections.

    The list is empty for `published`, and for the sets with two classes, which have no neutral form.
    """
    check_gold(gold, on_fault=on_fault)
    if gold == "corrected" and dataset in ("D_A", "D_S"):
        return read_corrected(dataset, split, folder)
    rows = read_geco((folder or fetch_geco()) / DATASETS[dataset] / f"{split}.jsonl", on_fault)
    return rows, pd.DataFrame(columns=CORRECTIONS)


def read_positions(path: Path, dataset: str) -> dict[int, list[int]]:
    """The positions of agreeing verbs by base sentence, from a table with dataset, sentence_idx, positions ("1 8")."""
    table = pd.read_csv(path, dtype={"positions": str})
    mine = table[table["dataset"] == dataset]
    return {
        idx: [int(i) for i in text.split()]
        for idx, text in zip(mine["sentence_idx"], mine["positions"], strict=True)
    }


def propose_positions(pipeline: str, folder: Path) -> pd.DataFrame:
    """Run `find_verbs` over the published files, tagged by a spaCy pipeline; the table that `read_positions` reads."""
    nlp, found = load_pipeline(pipeline), []
    for dataset in ("D_A", "D_S"):
        for split in SPLITS:
            rows = read_geco(folder / DATASETS[dataset] / f"{split}.jsonl", on_fault="keep")
            bases = {
                idx: list(base.sort_values("target")["sentence"])
                for idx, base in rows.groupby("sentence_idx")
            }
            bases = {
                idx: forms
                for idx, forms in bases.items()
                if len({len(form) for form in forms}) == 1
            }
            words = [
                [[word.strip() or "_" for word in form] for form in forms]
                for forms in bases.values()
            ]
            docs = annotate_tokens([forms[1] for forms in words], nlp)
            for idx, forms, doc in zip(bases, words, docs, strict=True):
                if positions := find_verbs(forms[2], forms[1], [token.tag_ for token in doc]):
                    found.append((dataset, idx, " ".join(map(str, positions))))
    return pd.DataFrame(found, columns=["dataset", "sentence_idx", "positions"]).sort_values(
        ["dataset", "sentence_idx"]
    )


if (
    __name__ == "__main__"
):  # python -m lib.studies.geco.corrections en_core_web_sm > notebooks/geco/material/neutral_verbs.csv
    sys.stdout.write(propose_positions(sys.argv[1], fetch_geco()).to_csv(index=False))
