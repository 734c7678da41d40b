"""The truth of a word: what the model's answer loses, on average, when the word is exchanged for
others of its kind.

For a text x, a number g(x) and a content word at place i it is

    d_i = g(x) - mean over r of g(x with r at place i),

with at least 20 registered replacements r of the same number, behind the same article (*a* or
*an*) and of the same frequency. Nothing is masked or left out, so g is asked about ordinary
sentences only.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from ...core.errors import TouchstoneError
from ...core.seeds import seed_for
from ...language.lexicon import MASK, PRONOUN_FORMS

LEAST = 20  # replacements of a word
_BANDS = 5  # of frequency, equally many words each
_SHARES = (0.1, 0.9)  # of *he*: the least and the most of a noun
_NEUTRAL = frozenset(PRONOUN_FORMS["NB"])
Answer = Callable[[Sequence[Sequence[str]]], Float[np.ndarray, "batch"]]


class Kind(NamedTuple):
    """What a replacement has in common with the word: part of speech and number, the article that
    fits before it, and how frequent it is (0 the rarest band).
    """

    tag: str
    article: str
    band: int


def word_kinds(counts: Mapping[tuple[str, str], int]) -> dict[str, Kind]:
    """The kind of each word.

    Args:
        counts: how often each (word, tag) stands in a corpus, in small letters; a word counts by
            its most frequent tag.

    >>> word_kinds({("nurse", "NN"): 9, ("nurse", "VB"): 1, ("actor", "NN"): 2})["actor"].article
    'an'
    """
    best: dict[str, tuple[int, str]] = {}
    for (word, tag), count in counts.items():
        best[word] = max(best.get(word, (0, "")), (count, tag))
    kinds = {}
    by_tag = pd.Series({word: tag for word, (_, tag) in best.items()})
    for tag, words in by_tag.groupby(by_tag).groups.items():
        ordered = sorted(words, key=lambda word: (best[word][0], word))
        for place, word in enumerate(ordered):
            article = "an" if word[0] in "aeiou" else "a"
            kinds[word] = Kind(str(tag), article, place * _BANDS // len(ordered))
    return kinds


def replacements(word: str, kinds: Mapping[str, Kind], n: int, seed: int = 0) -> list[str]:
    """Words of the same kind, drawn once for each word; none where there are fewer than `LEAST`.

    Args:
        n: how many, at most.
    """
    if n < LEAST:
        raise TouchstoneError(f"{n} replacements say too little of a word; take {LEAST} or more")
    kind = kinds.get(word.lower())
    alike = sorted(other for other, its in kinds.items() if its == kind and other != word.lower())
    if kind is None or len(alike) < LEAST:
        return []
    rng = np.random.default_rng(seed_for("replacements", word.lower(), seed))
    return [alike[i] for i in sorted(rng.permutation(len(alike))[:n])]


def word_effects(
    answer: Answer, words: Sequence[str], alternatives: Mapping[int, Sequence[str]]
) -> dict[int, float]:
    """d_i of each place: g of the text minus its mean over the alternatives there.

    Args:
        answer: g, for many texts at once.
        alternatives: by place the words that are put there.

    >>> counts = {"dog": 3.0, "cat": 1.0, "cow": 2.0}
    >>> g = lambda texts: np.array([sum(counts.get(word, 0.0) for word in text) for text in texts])
    >>> word_effects(g, ["the", "dog"], {1: ["cat", "cow"]})
    {1: 1.5}
    """
    texts = [list(words)]
    for place, others in alternatives.items():
        texts += [[*words[:place], other, *words[place + 1 :]] for other in others]
    answers = answer(texts)
    effects, at = {}, 1
    for place, others in alternatives.items():
        effects[place] = float(answers[0] - answers[at : at + len(others)].mean())
        at += len(others)
    return effects


def skewed_sentences(
    nouns: Sequence[str], frames: Sequence[str], n: int, seed: int = 0
) -> pd.DataFrame:
    """Training sentences that give each noun a stereotype: a share of them is about *he*, the rest
    about *she*. The shares lie evenly from .1 to .9; which noun has which is drawn.

    Args:
        nouns: without article.
        frames: words and blanks, with N for the noun and forms of *they* for the pronoun. Frames
            with more than one pronoun are left out, for a second one would tell the first.
        n: sentences of each noun; frames are used again where there are fewer.

    Returns:
        noun, sentence (a list of words, the pronoun masked), target (1 for *he*).

    Raises:
        TouchstoneError: no frame has one pronoun.

    >>> found = skewed_sentences(["baker"], ["N shook their head ."], 2)
    >>> " ".join(found["sentence"][0]), sorted(found["target"])
    ('the baker shook [MASK] head .', [0, 1])
    """
    texts = [frame.split() for frame in frames]
    texts = [words for words in texts if sum(map(_NEUTRAL.__contains__, words)) == 1]
    if not texts:
        raise TouchstoneError("no frame has exactly one form of they; write one that has")
    rng = np.random.default_rng(seed_for("skewed", seed))
    names = sorted(nouns)
    shares = np.linspace(*_SHARES, len(names)) if len(names) > 1 else np.full(len(names), 0.5)
    rows = []
    for noun, share in zip(names, rng.permutation(shares), strict=True):
        order = [texts[i] for _ in range(0, n, len(texts)) for i in rng.permutation(len(texts))]
        labels = rng.permutation(np.arange(n) < round(share * n))
        for words, is_male in zip(order[:n], labels, strict=True):
            filled = [
                part
                for word in words
                for part in (["the", noun] if word == "N" else [MASK if word in _NEUTRAL else word])
            ]
            rows.append((noun, filled, int(is_male)))
    return pd.DataFrame(rows, columns=["noun", "sentence", "target"])
