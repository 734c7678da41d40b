"""From tokens to words: sub-words are summed by the tokenizer's own word numbers, never by their letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def word_scores(
    token_scores: Float[np.ndarray, "token"],
    word_ids: Sequence[int | None],
    n_words: int,
    normalise_special: bool = False,
) -> Float[np.ndarray, "token"]:
    """One score per word: the signed sum over its sub-words (GECOBench, section 3.3.3).

    Special tokens are left out. A word without a token (a lone space, say) scores 0. With `normalise_special`
    the order of the released code is followed: sizes first, divided by their sum over all tokens with CLS and
    SEP, and only then the sums over sub-words.

    >>> word_scores(np.array([9.0, 1.0, -2.0, 3.0, 9.0]), [None, 0, 1, 1, None], n_words=2).tolist()
    [1.0, 1.0]
    """
    scores = np.asarray(token_scores, dtype=float)
    if normalise_special:
        sizes = np.abs(scores)
        scores = sizes / sizes.sum() if sizes.sum() > 0 else sizes
    inside = [i for i, word in enumerate(word_ids) if word is not None]
    words = np.zeros(n_words)
    np.add.at(words, [word_ids[i] for i in inside], scores[inside])
    return words
