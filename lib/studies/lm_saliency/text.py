"""Text for language models over words: tagged lines, a vocabulary, and the examples that probes learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from lib.core.errors import TouchstoneError
from lib.studies.lm_saliency.extraction import PRONOUNS, number_of_verb

UNKNOWN, END, PAD = "<unk>", "<eos>", "<pad>"
SPECIAL = (PAD, END, UNKNOWN)
TASKS = ("number", "gender")


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


@dataclass(frozen=True)
class Vocabulary:
    """The words of a language model in the order of their ids: padding, end of sentence, unknown, then by frequency."""

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: i for i, word in enumerate(self.words)}

    def encode(self, words: Iterable[str]) -> list[int]:
        """Ids of words in small letters; a word that is not there becomes the unknown word."""
        unknown = self.ids[UNKNOWN]
        return [self.ids.get(word.lower(), unknown) for word in words]

    def owners(self, words: Sequence[str]) -> list[int]:
        """For each id the index of its word; here every word has one id."""
        return list(range(len(words)))

    def share_unknown(self, sentences: Iterable[Sequence[str]]) -> float:
        """The share of tokens that the vocabulary does not know."""
        ids = [i for words in sentences for i in self.encode(words)]
        return ids.count(self.ids[UNKNOWN]) / len(ids)


def build_vocabulary(
    sentences: Iterable[Sequence[str]], size: int = 0, forced: Iterable[str] = ()
) -> Vocabulary:
    """The `size` most frequent words of a corpus (0: all) in small letters, and the `forced` ones in any case.

    Words of the same frequency are ordered by the alphabet. `forced` words are those that a test set cannot do without.
    """
    counts = Counter(word.lower() for words in sentences for word in words)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    chosen = dict.fromkeys([*ordered[: size or None], *(word.lower() for word in forced)])
    for word in SPECIAL:
        chosen.pop(word, None)
    return Vocabulary((*SPECIAL, *sorted(chosen, key=lambda word: (-counts[word], word))))
