"""What the models of lm_saliency read: a corpus without its test lines, a vocabulary, and examples
for probes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from lib.language.corpora import Tagged
from lib.studies.lm_saliency.extraction import PRONOUNS, number_of_verb

UNKNOWN, END, PAD = "<unk>", "<eos>", "<pad>"
SPECIAL = (PAD, END, UNKNOWN)
TASKS = ("number", "gender")


def number_examples(sentence: Tagged) -> list[tuple[list[str], int]]:
    """What a number probe learns from: every verb that shows a number.

    Returns:
        Pairs of the words before the verb and its number, 0 singular or 1 plural.
    """
    words = [word for word, _ in sentence]
    numbers = [number_of_verb(word, tag) for word, tag in sentence]
    return [(words[:i], number) for i, number in enumerate(numbers) if number is not None and i]


def gender_examples(words: Sequence[str]) -> list[tuple[list[str], int]]:
    """What a gender probe learns from: every gendered pronoun in small letters.

    Returns:
        Pairs of the words before the pronoun and its gender, 0 male or 1 female.

    >>> gender_examples("He met her".split())
    [(['He', 'met'], 1)]
    """
    return [
        (list(words[:i]), PRONOUNS[word]) for i, word in enumerate(words) if word in PRONOUNS and i
    ]


def probe_table(
    examples: Mapping[str, Iterable[tuple[Sequence[str], int]]], max_words: int
) -> pd.DataFrame:
    """Examples by split as a table (split, prefix, tag).

    Of a longer prefix the last `max_words` words are kept.
    """
    rows = [
        (split, " ".join(prefix[-max_words:]), tag)
        for split, part in examples.items()
        for prefix, tag in part
    ]
    return pd.DataFrame(rows, columns=["split", "prefix", "tag"])


def without_prefixes(sentences: list[Tagged], prefixes: list[list[str]]) -> list[Tagged]:
    """The sentences that begin with none of the prefixes: test lines stay out of training.

    Letter case does not count.
    """
    # One look-up for each length of a prefix, since there are thousands of either.
    beginnings = {tuple(word.lower() for word in prefix) for prefix in prefixes}
    lengths = {len(prefix) for prefix in beginnings}
    outside = []
    for sentence in sentences:
        words = tuple(word.lower() for word, _ in sentence)
        if not any(words[:n] in beginnings for n in lengths):
            outside.append(sentence)
    return outside


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
