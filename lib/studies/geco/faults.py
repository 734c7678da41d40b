"""Faults in corpora of GECO's kind: those of form are repaired, those of wording reported."""

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from itertools import permutations
from typing import Any

import pandas as pd

from ...core.errors import TouchstoneError
from ...language.lexicon import PRONOUN_FORMS
from ...language.visible import is_visible

_FAULT_COLUMNS = ["row", "sentence_idx", "target", "fault", "what_was_done"]
LENGTH = "mask does not fit the sentence"
BLANK_WORD = "blank word"
EDGE_BLANK = "blank at the edge of a word"
SAME_WORD = "masked word is the same in all variants"
_REPAIRS = {
    LENGTH: "mask made anew from the aligned variants",
    BLANK_WORD: "word and mask entry removed",
    EDGE_BLANK: "blanks removed",
    SAME_WORD: "position unmasked",
}
_PRONOUNS = tuple(map(frozenset, PRONOUN_FORMS.values()))  # of each class, in the order of target
# Verbs that lose more than their s: without it alone, "tries" would become "trie".
_NON_WORD = re.compile(r"\w{2,}(ies|sses|shes|ches|xes|zzes|ss)")


def find_format_faults(rows: pd.DataFrame) -> pd.DataFrame:
    """The faults of form in rows: one line per row and fault, `what_was_done` = "kept".

    Four kinds: a mask that is longer or shorter than its sentence, a word of blanks or of signs
    without width only, a blank at the edge of a word, and a masked position whose word is the same
    in all variants once blanks and letter case are ignored.

    Args:
        rows: as `lib.studies.geco.corpus.read_geco` gives them.
    """
    same = rows.groupby("sentence_idx")["sentence"].agg(_same_positions)
    faults: list[tuple[Any, ...]] = []
    for row in rows.itertuples():
        mask, bare = row.ground_truth, [_bare(word) for word in row.sentence]
        kinds = {
            LENGTH: len(bare) != len(mask),
            BLANK_WORD: not all(bare),
            EDGE_BLANK: any(
                short and short != word for short, word in zip(bare, row.sentence, strict=True)
            ),
            SAME_WORD: any(mask[i] for i in same[row.sentence_idx] if i < len(mask)),
        }
        faults += [
            (row.row_id, row.sentence_idx, row.target, kind, "kept")
            for kind, is_so in kinds.items()
            if is_so
        ]
    return pd.DataFrame(faults, columns=_FAULT_COLUMNS)


def keep_faults(rows: pd.DataFrame, faults: pd.DataFrame) -> None:
    """Leave faults with their rows, as a list of tuples, for pd.concat cannot compare tables."""
    rows.attrs["faults"] = list(faults.itertuples(index=False, name=None))


def faults_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The faults of form that `read_geco` left with rows (row, sentence_idx, target, fault,
    what_was_done).
    """
    return pd.DataFrame(rows.attrs.get("faults", []), columns=_FAULT_COLUMNS)


def drop_faulty(rows: pd.DataFrame, faults: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Leave out every base sentence that has a fault, with all its variants (balanced classes)."""
    sound = rows[~rows["sentence_idx"].isin(faults["sentence_idx"])].reset_index(drop=True)
    return sound, faults.assign(what_was_done="base sentence left out")


def repair_rows(
    rows: pd.DataFrame, faults: pd.DataFrame, source: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mend the faults of form that are listed; wording is never touched.

    Blanks at the edges of words go; a word of blanks only goes with its entry in the mask; a mask
    that does not fit is made anew by aligning the variants of the sentence (1 = differs from
    another variant, or stands in one only); a masked position whose word is the same everywhere is
    unmasked.

    Args:
        faults: from `find_format_faults`.
        source: what the rows were read from, for messages.

    Returns:
        The rows, and the faults with what was done.

    Raises:
        TouchstoneError: a mask does not fit and there is no other variant to align with.
    """
    if faults.empty:
        return rows, faults
    kinds = faults.groupby("sentence_idx")["fault"].agg(set)
    parts = [rows[~rows["sentence_idx"].isin(kinds.index)]]
    parts += [
        _repair_base(rows[rows["sentence_idx"] == idx], kinds[idx], source) for idx in kinds.index
    ]
    repaired = pd.concat(parts).loc[rows.index]
    n_lengths = repaired["sentence"].map(len).groupby(repaired["sentence_idx"]).nunique()
    is_shorter = (faults["fault"] == BLANK_WORD) & (faults["sentence_idx"].map(n_lengths) > 1)
    done = faults["fault"].map(_REPAIRS)
    done = done.where(~is_shorter, done + ", row now shorter")
    return repaired, faults.assign(what_was_done=done)


def find_wording_faults(rows: pd.DataFrame) -> pd.DataFrame:
    """What a reader of the rows should know and no program should change: a line per row and kind.

    Kinds that compare the forms of a base sentence are listed at its non-binary row.

    Returns:
        row, fault, words (how many words of the row are meant; 0 where the row as a whole is).
    """
    texts = rows["sentence"].map(" ".join)
    letters = rows["sentence"].map("".join).str.lower().str.replace(" ", "")
    marked = rows.assign(
        is_ambiguous=rows["target"].groupby(texts).transform("nunique") > 1,
        is_repeated=rows[["target"]].assign(letters=letters).duplicated(keep=False),
    )
    faults = [
        (row.row_id, fault, n) for row in marked.itertuples() for fault, n in _row_faults(row)
    ]
    for _, base in rows.groupby("sentence_idx", sort=False):
        form = {row.target: row for row in base.itertuples()}
        if set(form) == {0, 1, 2} and base["sentence"].map(len).nunique() == 1:
            faults += [(form[2].row_id, fault, n) for fault, n in _form_faults(form) if n]
    return pd.DataFrame(faults, columns=["row", "fault", "words"])


def fault_table(data: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """All faults of data sets by name and split: dataset, split, row, fault, words, what_was_done.

    Faults of form are those that `read_geco` left with the rows (they are taken from there);
    faults of wording are looked for in the sets with three classes.
    """
    columns, tables = ["dataset", "split", "row", "fault", "words", "what_was_done"], []
    for name, splits in data.items():
        for split, rows in splits.items():
            here = [faults_of(rows).assign(words=0)] if "faults" in rows.attrs else []
            rows.attrs.pop("faults", None)
            if rows["target"].nunique() == 3:
                here.append(find_wording_faults(rows).assign(what_was_done="reported"))
            tables += [frame.assign(dataset=name, split=split)[columns] for frame in here]
    return pd.concat(tables, ignore_index=True)


def _row_faults(row: Any) -> list[tuple[str, int]]:
    """The faults that a row has by itself, or by the text that it shares with another."""
    words, own = {word.strip().lower() for word in row.sentence}, _PRONOUNS[row.target]
    kinds = {
        "no masked word": not any(row.ground_truth),
        "same text with several labels": row.is_ambiguous,
        "same text and label twice": row.is_repeated,
        "several words in one": sum(" " in word.strip() for word in row.sentence),
        "no full stop at the end": row.sentence[-1].strip() != ".",
        "no pronoun of its own class": not words & own,
        "pronoun of another class": len(words & frozenset().union(*_PRONOUNS) - own),
    }
    # what is true of the row as a whole means none of its words
    return [
        (kind, 0 if isinstance(found, bool) else found) for kind, found in kinds.items() if found
    ]


def _form_faults(form: dict[int, Any]) -> list[tuple[str, int]]:
    """The faults that show when the three forms of a base sentence are laid side by side."""
    sentences = [form[target].sentence for target in range(3)]
    positions = list(zip(*sentences, form[2].ground_truth, strict=True))
    masked = [words for *words, is_masked in positions if is_masked]
    male_and_neutral = [(m.lower(), nb.lower()) for _, m, nb, _ in positions]
    return [
        ("masked word same in female and male", sum(f == m for f, m, _ in masked)),
        ("masked word same in male and neutral", sum(m == nb != f for f, m, nb in masked)),
        ("them for possessive his", male_and_neutral.count(("his", "them"))),
        (
            "verb without its last letter",
            sum(nb == m[:-1] and bool(_NON_WORD.fullmatch(m)) for m, nb in male_and_neutral),
        ),
    ]


def aligned_masks(sentences: list[list[str]]) -> list[list[int]]:
    """A mask for each variant of a sentence, of any lengths.

    1 where a word differs from, or is missing in, another variant.

    >>> aligned_masks([["He", "walks", "home"], ["They", "walk", "back", "home"]])
    [[1, 1, 0], [1, 1, 1, 0]]
    """
    masks = [[0] * len(words) for words in sentences]
    for (a, first), (_, second) in permutations(enumerate(sentences), 2):
        # autojunk would leave the frequent words of a very long sentence unaligned
        steps = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
        for tag, start, end, _, _ in steps:
            if tag != "equal":
                masks[a][start:end] = [1] * (end - start)
    return masks


def _repair_base(base: pd.DataFrame, kinds: set[str], source: str) -> pd.DataFrame:
    sentences, masks = list(base["sentence"]), list(base["ground_truth"])
    if LENGTH in kinds:
        if len(sentences) < 2:
            raise TouchstoneError(
                f"{source}: the ground truth of row {base['row_id'].iloc[0]} has {len(masks[0])} "
                f"entries for {len(sentences[0])} words; correct the row, or read with "
                'on_fault="drop"'
            )
        masks = aligned_masks(sentences)
    # a mask that was just made anew marks no such position
    same = _same_positions(sentences) if SAME_WORD in kinds and LENGTH not in kinds else ()
    repaired = base.copy()
    filled = [[i for i, word in enumerate(words) if _bare(word)] for words in sentences]
    repaired["sentence"] = [
        [words[i].strip() for i in kept] for words, kept in zip(sentences, filled, strict=True)
    ]
    repaired["ground_truth"] = [
        [0 if i in same else mask[i] for i in kept]
        for mask, kept in zip(masks, filled, strict=True)
    ]
    return repaired


def _bare(word: str) -> str:
    """A word without blanks at its edges; nothing where all of it is unseen.

    >>> _bare("he "), _bare(chr(0x200B))
    ('he', '')
    """
    return word.strip() if is_visible(word) else ""


def _same_positions(variants: Iterable[list[str]]) -> set[int]:
    sentences = list(variants)
    if len(sentences) < 2 or len({len(words) for words in sentences}) > 1:
        return set()
    return {
        i
        for i, words in enumerate(zip(*sentences, strict=True))
        if len({word.strip().lower() for word in words}) == 1
    }
