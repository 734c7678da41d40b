"""Text for language models over words: tagged lines, and the examples that probes learn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from lib.core.errors import TouchstoneError
from lib.studies.lm_saliency.extraction import PRONOUNS, number_of_verb

CLASSES = {"number": ("singular", "plural"), "gender": ("male", "female")}  # of a probe, by task
TASKS = tuple(CLASSES)


def split_tagged(line: str, where: str = "the line") -> list[tuple[str, str]]:
    """The (word, tag) pairs of a line `word_TAG word_TAG`; the last underscore of a token separates.

    >>> split_tagged("snake_case_NN is_VBZ")
    [('snake_case', 'NN'), ('is', 'VBZ')]
    """
    pairs = [token.rpartition("_") for token in line.split()]
    if wrong := [word or tag for word, mark, tag in pairs if not mark]:
        raise TouchstoneError(f"{where}: {wrong[0]!r} has no tag; write word_TAG")
    return [(word, tag) for word, _, tag in pairs]


def read_tagged(path: Path | str) -> list[list[tuple[str, str]]]:
    """The lines of a tagged corpus, empty ones left out."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [
        split_tagged(line, f"{path}, line {i}")
        for i, line in enumerate(lines, start=1)
        if line.strip()
    ]


def read_plain(path: Path | str) -> list[list[str]]:
    """The lines of a corpus without tags as lists of words, empty ones and WikiText headings left out."""
    lines = (line.split() for line in Path(path).read_text(encoding="utf-8").splitlines())
    return [words for words in lines if words and words[0] != "="]


def number_examples(sentence: Sequence[tuple[str, str]]) -> list[tuple[list[str], int]]:
    """What a number probe learns from: every verb that shows a number, as (words before it, 0 or 1)."""
    words = [word for word, _ in sentence]
    found = [(i, number_of_verb(word, tag)) for i, (word, tag) in enumerate(sentence)]
    return [(words[:i], number) for i, number in found if number is not None and i]


def gender_examples(words: Sequence[str]) -> list[tuple[list[str], int]]:
    """What a gender probe learns from: every gendered pronoun in small letters, as (words before it, 0 or 1)."""
    return [
        (list(words[:i]), PRONOUNS[word]) for i, word in enumerate(words) if word in PRONOUNS and i
    ]


def probe_table(
    examples: Mapping[str, Iterable[tuple[Sequence[str], int]]], max_words: int
) -> pd.DataFrame:
    """Examples by split as a table (split, prefix, tag); a longer prefix keeps its last `max_words` words."""
    return pd.DataFrame(
        [
            (split, " ".join(prefix[-max_words:]), tag)
            for split, part in examples.items()
            for prefix, tag in part
        ],
        columns=["split", "prefix", "tag"],
    )
