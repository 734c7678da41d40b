"""Faults in corpora of GECO's kind: those of form are repaired, those of wording reported."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

import pandas as pd

from ...core.errors import TouchstoneError
from ...language.lexicon import PRONOUN_FORMS

_ON_FAULT = ("repair", "keep", "drop")
_FAULT_COLUMNS = ["row", "sentence_idx", "target", "fault", "what_was_done"]
LENGTH = "mask does not fit the sentence"
BLANK_WORD = "blank word"
EDGE_BLANK = "blank at the edge of a word"
SAME_WORD = "masked word is the same in all variants"
_PRONOUNS = tuple(map(frozenset, PRONOUN_FORMS.values()))  # of each class, in the order of target
# Verbs that lose more than their s: without it alone, "tries" would become "trie".
_NON_WORD = re.compile(r"\w{2,}(ies|sses|shes|ches|xes|zzes|ss)")


def check_on_fault(on_fault: str) -> None:
    """Accept `repair`, `keep` and `drop`.

    Raises:
        TouchstoneError: the setting is another one.
    """
    if on_fault not in _ON_FAULT:
        raise TouchstoneError(f"on_fault is {on_fault!r}; choose one of {', '.join(_ON_FAULT)}")


def find_format_faults(rows: pd.DataFrame) -> pd.DataFrame:
    """The faults of form in rows: one line per row and fault, `what_was_done` = "kept".

    Four kinds: a mask that is longer or shorter than its sentence, a word of blanks only, a blank
    at the edge of a word, and a masked position whose word is the same in all variants once blanks
    and letter case are ignored.

    Args:
        rows: as `lib.studies.geco.corpus.read_geco` gives them.
    """
    variants: dict[int, list[list[str]]] = {}
    for idx, words in zip(rows["sentence_idx"], rows["sentence"], strict=True):
        variants.setdefault(idx, []).append(words)
    same = {idx: set(_same_positions(sentences)) for idx, sentences in variants.items()}
    faults: list[tuple[Any, ...]] = []
    for row in rows.itertuples():
        mask, bare = row.ground_truth, [word.strip() for word in row.sentence]
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
    done: dict[tuple[str, str], str] = {}
    parts = [rows[~rows["sentence_idx"].isin(faults["sentence_idx"])]]
    for idx, of_base in faults.groupby("sentence_idx", sort=False):
        parts.append(
            _repair_base(rows[rows["sentence_idx"] == idx], set(of_base["fault"]), source, done)
        )
    what = [done[row, fault] for row, fault in zip(faults["row"], faults["fault"], strict=True)]
    return pd.concat(parts).loc[rows.index], faults.assign(what_was_done=what)


def find_wording_faults(rows: pd.DataFrame) -> pd.DataFrame:
    """What a reader of the rows should know and no program should change: a line per row and kind.

    Kinds that compare the forms of a base sentence are listed at its non-binary row.

    Returns:
        row, fault, words (how many words of the row are meant; 0 where the row as a whole is).
    """
    targets: dict[str, set[int]] = {}
    for words, target in zip(rows["sentence"], rows["target"], strict=True):
        targets.setdefault(" ".join(words), set()).add(target)
    keys = Counter(_merge_key(row) for row in rows.itertuples())
    faults = [
        (row.row_id, fault, n)
        for row in rows.itertuples()
        for fault, n in _row_faults(
            row, len(targets[" ".join(row.sentence)]) > 1, keys[_merge_key(row)] > 1
        )
    ]
    forms: dict[int, dict[int, Any]] = {}
    for row in rows.itertuples():
        forms.setdefault(row.sentence_idx, {})[row.target] = row
    for form in forms.values():
        if set(form) == {0, 1, 2} and len({len(row.sentence) for row in form.values()}) == 1:
            faults += [(form[2].row_id, fault, n) for fault, n in _form_faults(form) if n]
    return pd.DataFrame(faults, columns=["row", "fault", "words"])


def fault_table(data: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """All faults of data sets by name and split: dataset, split, row, fault, words, what_was_done.

    Faults of form are those that `read_geco` left in `.attrs` (they are taken out of there, since
    pd.concat cannot compare tables in attrs); faults of wording are looked for in the sets with
    three classes.
    """
    columns, tables = ["dataset", "split", "row", "fault", "words", "what_was_done"], []
    for name, splits in data.items():
        for split, rows in splits.items():
            here = [rows.attrs.pop("faults").assign(words=0)] if "faults" in rows.attrs else []
            if rows["target"].nunique() == 3:
                here.append(find_wording_faults(rows).assign(what_was_done="reported"))
            tables += [frame.assign(dataset=name, split=split)[columns] for frame in here]
    return pd.concat(tables, ignore_index=True)


def _merge_key(row: Any) -> tuple[str, int]:
    return "".join(row.sentence).lower().replace(" ", ""), row.target


def _row_faults(row: Any, ambiguous: bool, repeated: bool) -> Iterator[tuple[str, int]]:
    """The faults that a row has by itself, or by the text that it shares with another."""
    words = {word.strip().lower() for word in row.sentence}
    several = sum(" " in word.strip() for word in row.sentence)
    kinds = {
        "no masked word": not any(row.ground_truth),
        "same text with several labels": ambiguous,
        "same text and label twice": repeated,
        "several words in one": several > 0,
        "no full stop at the end": row.sentence[-1].strip() != ".",
        "no pronoun of its own class": not words & _PRONOUNS[row.target],
    }
    yield from (
        (kind, several if kind == "several words in one" else 0)
        for kind, is_so in kinds.items()
        if is_so
    )
    others = frozenset().union(*_PRONOUNS) - _PRONOUNS[row.target]
    if words & others:
        yield "pronoun of another class", len(words & others)


def _form_faults(form: dict[int, Any]) -> list[tuple[str, int]]:
    """The faults that show when the three forms of a base sentence are laid side by side."""
    triples = list(
        zip(form[0].sentence, form[1].sentence, form[2].sentence, form[2].ground_truth, strict=True)
    )
    verb = [
        (m, nb)
        for _, m, nb, _ in triples
        if _NON_WORD.fullmatch(m.lower()) and nb.lower() == m.lower()[:-1]
    ]
    return [
        (
            "masked word same in female and male",
            sum(f == m for f, m, _, masked in triples if masked),
        ),
        (
            "masked word same in male and neutral",
            sum(m == nb != f for f, m, nb, masked in triples if masked),
        ),
        (
            "them for possessive his",
            sum(m.lower() == "his" and nb.lower() == "them" for _, m, nb, _ in triples),
        ),
        ("verb without its last letter", len(verb)),
    ]


def aligned_masks(sentences: list[list[str]]) -> list[list[int]]:
    """A mask for each variant of a sentence, of any lengths.

    1 where a word differs from, or is missing in, another variant.

    >>> aligned_masks([["He", "walks", "home"], ["They", "walk", "back", "home"]])
    [[1, 1, 0], [1, 1, 1, 0]]
    """
    masks = [[0] * len(words) for words in sentences]
    for a, first in enumerate(sentences):
        for b, second in enumerate(sentences):
            if a != b:
                for tag, start, end, _, _ in SequenceMatcher(
                    None, first, second, autojunk=False
                ).get_opcodes():
                    if tag != "equal":
                        masks[a][start:end] = [1] * (end - start)
    return masks


def _repair_base(
    base: pd.DataFrame, kinds: set[str], source: str, done: dict[tuple[str, str], str]
) -> pd.DataFrame:
    sentences, masks = list(base["sentence"]), [list(mask) for mask in base["ground_truth"]]
    names = list(base["row_id"])
    if LENGTH in kinds:
        if len(sentences) < 2:
            raise TouchstoneError(
                f"{source}: the ground truth of row {names[0]} has {len(masks[0])} entries for "
                f'{len(sentences[0])} words; correct the row, or read with on_fault="drop"'
            )
        masks = aligned_masks(sentences)
        done |= {(name, LENGTH): "mask made anew from the aligned variants" for name in names}
    elif SAME_WORD in kinds:
        same = set(_same_positions(sentences))
        masks = [[0 if i in same else value for i, value in enumerate(mask)] for mask in masks]
    done |= {(name, SAME_WORD): "position unmasked" for name in names}
    done |= {(name, EDGE_BLANK): "blanks removed" for name in names}
    for k, (words, mask) in enumerate(zip(sentences, masks, strict=True)):
        filled = [i for i, word in enumerate(words) if word.strip()]
        sentences[k], masks[k] = [words[i].strip() for i in filled], [mask[i] for i in filled]
        done[names[k], BLANK_WORD] = "word and mask entry removed"
    lengths = {len(words) for words in sentences}
    if BLANK_WORD in kinds and len(lengths) > 1:
        done |= {
            (name, BLANK_WORD): "word and mask entry removed, row now shorter" for name in names
        }
    repaired = base.copy()
    repaired["sentence"], repaired["ground_truth"] = sentences, masks
    return repaired


def _same_positions(sentences: list[list[str]]) -> list[int]:
    if len(sentences) < 2 or len({len(words) for words in sentences}) > 1:
        return []
    return [
        i
        for i, words in enumerate(zip(*sentences, strict=True))
        if len({word.strip().lower() for word in words}) == 1
    ]
