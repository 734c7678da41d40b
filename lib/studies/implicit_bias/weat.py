r"""The word embedding association test, WEAT (Caliskan, Bryson and Narayanan, Science 2017).

Are the target words X nearer to the attributes A, and the targets Y nearer to B, than a random
split of the targets would be?

    s(w, A, B)    = mean over a in A of cos(w, a) - mean over b in B of cos(w, b)
    s(X, Y, A, B) = sum over x in X of s(x, A, B) - sum over y in Y of s(y, A, B)
    d             = (mean over X of s(x, A, B) - mean over Y of s(y, A, B))
                    / (standard deviation over X and Y of s(w, A, B))
    p             = share of the splits (X', Y') of X and Y into halves of one size
                    with s(X', Y', A, B) > s(X, Y, A, B)
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ...core.errors import TouchstoneError

_EXACT = 200_000  # partitions that are enumerated; above, _SAMPLED are drawn
_SAMPLED = 20_000

Vectors = Float[np.ndarray, "token hidden"]


class Weat(NamedTuple):
    """The statistic s(X, Y, A, B), the effect size d, the one-sided p, and what p rests on.

    `n_partitions`: how many splits were looked at; `is_exact`: whether these are all.
    """

    s: float
    d: float
    p: float
    n_partitions: int
    is_exact: bool


def association(w: Vectors, a: Vectors, b: Vectors) -> Float[np.ndarray, "token"]:
    """s(w, A, B): mean cosine with A minus mean cosine with B, for each row of `w`.

    Args:
        w: vectors of the words that are asked about, a row each.
        a: vectors of the attribute words A.
        b: vectors of the attribute words B.

    Raises:
        TouchstoneError: one of the three is empty.

    >>> association(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).tolist()
    [1.0]
    """
    if not len(a) or not len(b) or not len(w):
        raise TouchstoneError("a word list is empty; write at least one word")
    # The mean of cosines is one product with the mean of vectors of length one.
    unit_w, unit_a, unit_b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (w, a, b))
    return unit_w @ unit_a.mean(0) - unit_w @ unit_b.mean(0)


def weat(x: Vectors, y: Vectors, a: Vectors, b: Vectors, ddof: int = 1, seed: int = 0) -> Weat:
    """The test on vectors.

    Up to 200,000 splits are enumerated, the observed one among them, which is never larger than
    itself. Above, 20,000 are drawn, and p is (1 + larger) / (1 + drawn).

    Args:
        x: vectors of the target words X, a row each.
        y: vectors of as many target words Y.
        a: vectors of the attribute words A.
        b: vectors of the attribute words B.
        ddof: 1 for the sample's standard deviation, 0 for the population's, with which d lies in
            [-2, 2].
        seed: of the splits, where they are drawn.

    Raises:
        TouchstoneError: X and Y differ in size, or a list is empty.

    >>> right, up = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    >>> weat(right, up, right, up, ddof=0)
    Weat(s=2.0, d=2.0, p=0.0, n_partitions=2, is_exact=True)
    """
    if len(x) != len(y):
        raise TouchstoneError(
            f"X has {len(x)} words and Y has {len(y)}; the test needs lists of one size"
        )
    values, n = association(np.concatenate([x, y]), a, b), len(x)
    s = values[:n].sum() - values[n:].sum()
    d = (values[:n].mean() - values[n:].mean()) / values.std(ddof=ddof)
    n_partitions = comb(2 * n, n)
    is_exact = n_partitions <= _EXACT
    if is_exact:
        halves = values[np.array(list(combinations(range(2 * n), n)))].sum(1)
    else:
        n_partitions, generator = _SAMPLED, np.random.default_rng(seed)
        halves = np.array([generator.permutation(values)[:n].sum() for _ in range(_SAMPLED)])
    # X' minus Y' against X minus Y; the same sum in another order of adding up is no larger one.
    is_larger = 2 * halves - values.sum() > s + 1e-12
    p = is_larger.mean() if is_exact else (1 + is_larger.sum()) / (1 + _SAMPLED)
    return Weat(float(s), float(d), float(p), n_partitions, is_exact)


def check_lists(
    lists: Mapping[str, Collection[str]], equal: Sequence[tuple[str, str]] = (("X", "Y"),)
) -> None:
    """Refuse word lists that are empty, or unequal in size where equal ones are needed.

    Args:
        lists: by name.
        equal: pairs of names.

    Raises:
        TouchstoneError: naming the list.
    """
    if empty := [name for name, words in lists.items() if not len(words)]:
        raise TouchstoneError(f"the word list {empty[0]} is empty; write at least one word")
    for first, second in equal:
        if len(lists[first]) != len(lists[second]):
            raise TouchstoneError(
                f"the word lists {first} and {second} have {len(lists[first])} and "
                f"{len(lists[second])} words; the test needs lists of one size"
            )
