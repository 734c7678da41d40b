"""From a vector per token to a score per token, and from there to a score per word."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from ..core.errors import TouchstoneError, did_you_mean

_AGGREGATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda vectors: vectors.sum(-1),
    "l1": lambda vectors: vectors.abs().sum(-1),
    "l2": lambda vectors: vectors.norm(dim=-1),
}


def aggregate(
    vectors: Float[Tensor, "batch token hidden"], how: str
) -> Float[Tensor, "batch token"]:
    """One score per token from its vector: "sum" (signed), "l1" (sum of sizes) or "l2" (length).

    No method sums a bare gradient by default: its signed sum is exactly zero wherever a LayerNorm
    follows the embeddings, for that does not see a constant added to all components.

    >>> import torch
    >>> aggregate(torch.tensor([[[3.0, -4.0]]]), "l2").tolist()
    [[5.0]]
    """
    if how not in _AGGREGATIONS:
        raise TouchstoneError(f"aggregation is {how!r}{did_you_mean(how, _AGGREGATIONS)}")
    return _AGGREGATIONS[how](vectors).detach()  # (batch, tokens)


def word_scores(
    token_scores: Float[np.ndarray, "token"],
    word_ids: Sequence[int | None],
    n_words: int,
    normalise_special: bool = False,
) -> Float[np.ndarray, "token"]:
    """One score per word: the signed sum over its sub-words (GECOBench, section 3.3.3).

    Sub-words are told by the tokenizer's own word numbers, never by their letters. Special tokens
    are left out. A word without a token (a lone space, say) scores 0. With `normalise_special` the
    order of the released code is followed: sizes first, divided by their sum over all tokens with
    CLS and SEP, and only then the sums over sub-words.

    >>> word_scores(np.array([9.0, 1.0, -2.0, 3.0, 9.0]), [None, 0, 1, 1, None], n_words=2).tolist()
    [1.0, 1.0]
    """
    scores = np.asarray(token_scores, dtype=float)
    if normalise_special:
        # CLS and SEP take part in the sum here, and are dropped only afterwards, as released.
        sizes = np.abs(scores)
        scores = sizes / sizes.sum() if sizes.sum() > 0 else sizes
    inside = [i for i, word in enumerate(word_ids) if word is not None]
    words = np.zeros(n_words)
    # `words[...] +=` would count a word of several pieces once.
    np.add.at(words, [word_ids[i] for i in inside], scores[inside])
    return words
