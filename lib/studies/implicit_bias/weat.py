"""The word embedding association test (Caliskan et al. 2017): association, effect size, exact permutation test."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from lib.core.errors import TouchstoneError

EXACT = 200_000  # partitions that are enumerated; above, SAMPLED are drawn
SAMPLED = 20_000

Vectors = Float[np.ndarray, "token hidden"]


class Weat(NamedTuple):
    """The statistic s(X, Y, A, B), the effect size d, the one-sided p, and how many partitions it rests on."""

    s: float
    d: float
    p: float
    n_partitions: int
    is_exact: bool


def association(w: Vectors, a: Vectors, b: Vectors) -> Float[np.ndarray, "token"]:
    """s(w, A, B): mean cosine with A minus mean cosine with B, for each row of `w`.

    >>> association(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).tolist()
    [1.0]
    """
    if not len(a) or not len(b) or not len(w):
        raise TouchstoneError("a word list is empty; write at least one word")
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (w, a, b)]
    return unit[0] @ unit[1].mean(0) - unit[0] @ unit[2].mean(0)


def weat(x: Vectors, y: Vectors, a: Vectors, b: Vectors, ddof: int = 1, seed: int = 0) -> Weat:
    """The test on vectors: s = sum over X of s(x, A, B) minus sum over Y, d = difference of means / standard deviation over both.

    p is the share of the partitions of X and Y into halves with a larger s (strictly; the one that was observed is among
    them and never larger than itself). Up to 200,000 partitions are enumerated; above, 20,000 are drawn, and p is
    (1 + larger) / (1 + drawn). `ddof`: 1 for the sample's standard deviation, 0 for the population's, with which d lies in [-2, 2].
    """
    if len(x) != len(y):
        raise TouchstoneError(
            f"X has {len(x)} words and Y has {len(y)}; the test needs lists of one size"
        )
    values = association(np.concatenate([x, y]), a, b)
    n = len(x)
    s = values[:n].sum() - values[n:].sum()
    d = (values[:n].mean() - values[n:].mean()) / values.std(ddof=ddof)
    if (total := comb(2 * n, n)) <= EXACT:
        chosen = np.array(list(combinations(range(2 * n), n)))
        p = float((2 * values[chosen].sum(1) - values.sum() > s + 1e-12).mean())
        return Weat(float(s), float(d), p, total, True)
    generator = np.random.default_rng(seed)
    drawn = np.array([generator.permutation(values)[:n].sum() for _ in range(SAMPLED)])
    p = (1 + int((2 * drawn - values.sum() > s + 1e-12).sum())) / (1 + SAMPLED)
    return Weat(float(s), float(d), p, SAMPLED, False)
