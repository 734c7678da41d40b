"""The words of a language model over whole words, and their ids."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

UNKNOWN, END, PAD = "<unk>", "<eos>", "<pad>"
_SPECIAL = (PAD, END, UNKNOWN)


@dataclass(frozen=True)
class Vocabulary:
    """The words of a language model in the order of their ids.

    Padding, end of sentence, unknown, then by frequency.
    """

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: i for i, word in enumerate(self.words)}

    def encode(self, words: Iterable[str]) -> list[int]:
        """Ids of words in small letters; a word that is not there becomes the unknown word."""
        return [self.ids.get(word.lower(), self.ids[UNKNOWN]) for word in words]

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
    """The most frequent words of a corpus, in small letters.

    Words of the same frequency are ordered by the alphabet.

    >>> build_vocabulary([["the", "dog"], ["The", "cat"]], size=1, forced=["Cats"]).words
    ('<pad>', '<eos>', '<unk>', 'the', 'cats')

    Args:
        size: how many words; 0 takes all.
        forced: words that a test set cannot do without; they are taken whatever their frequency.
    """
    counts = Counter(word.lower() for words in sentences for word in words)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    chosen = dict.fromkeys([*ordered[: size or None], *(word.lower() for word in forced)])
    for word in _SPECIAL:
        chosen.pop(word, None)
    return Vocabulary((*_SPECIAL, *sorted(chosen, key=lambda word: (-counts[word], word))))
