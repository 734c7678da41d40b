"""Agreement in order: of two explanations on the words of a row, and of several measures on the
methods.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from ..core.errors import TouchstoneError
from ..stats import Estimate, estimate

_ROW = ["dataset", "scheme", "seed", "row_id", "sentence_idx"]


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's rank correlation; NaN for fewer than two numbers, or where one side is constant.

    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    """
    if len(left) < 2:
        return float("nan")
    # By hand: scipy's costs much per call, and warns where a side is constant.
    a, b = (stats.rankdata(np.asarray(x, float)) - (len(x) + 1) / 2 for x in (left, right))
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else float("nan")


def rank_likeness(
    before: Iterable[Sequence[float]], after: Iterable[Sequence[float]]
) -> dict[str, list[float]]:
    """Spearman's correlation over the words of each row between two explanations of it.

    Returns:
        Two columns: rank_signed, of the scores as they are, and rank_size, of their sizes.

    >>> rank_likeness([[3.0, -2.0, 1.0]], [[3.0, 2.0, 1.0]])
    {'rank_signed': [0.5], 'rank_size': [1.0]}
    """
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(before, after, strict=True)]
    return {
        "rank_signed": [rank_correlation(a, b) for a, b in pairs],
        "rank_size": [rank_correlation(np.abs(a), np.abs(b)) for a, b in pairs],
    }


def correlate_rows(
    frame: pd.DataFrame,
    measures: Sequence[str],
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """How far two measures order the methods alike on one row: Spearman over the methods, averaged
    over rows and seeds.

    The interval is that of `lib.stats.estimate`, clustered by base sentence.

    Args:
        frame: a line per method and row: dataset, scheme, seed, row_id, sentence_idx, method and
            the measures.

    Returns:
        A line per pair of measures: left, right, estimate, low, high, n, n_sentences, n_seeds,
        standard_error, df.

    Raises:
        TouchstoneError: for a column that is missing, or fewer than three methods.
    """
    _check(frame, measures)
    lines = []
    for left, right in combinations(measures, 2):
        # Both, or the two sides of a row would order different methods.
        rows = frame.dropna(subset=[left, right]).groupby(_ROW, sort=False)
        values = pd.DataFrame(
            [(*key, rank_correlation(part[left], part[right])) for key, part in rows],
            columns=[*_ROW, "correlation"],
        )
        found = estimate(values, "correlation", "mean", n_bootstrap, alpha, seed)
        lines.append((left, right, *found))
    return pd.DataFrame(lines, columns=["left", "right", *Estimate._fields])


def correlate_methods(
    frame: pd.DataFrame,
    measures: Sequence[str],
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """How far two measures order the methods alike on the whole: Spearman between the methods'
    means.

    Base sentences are resampled (cluster bootstrap, percentiles expanded for few sentences as in
    `lib.stats.estimate`; Hesterberg 2015). The interval speaks of other sentences, not of other
    methods.

    Args:
        frame: as for `correlate_rows`.

    Returns:
        A line per pair of measures: left, right, estimate, low, high, n_methods, n_sentences.
    """
    _check(frame, measures)
    sentences = np.sort(frame["sentence_idx"].unique())
    n = len(sentences)
    # The same resamples for every measure, so that their means belong together.
    rng = np.random.default_rng([seed, n])
    # the first line counts every sentence once and gives the estimate, the others are resamples
    weights = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=n_bootstrap)])
    means = {name: _means(frame, name, sentences, weights) for name in measures}
    lines = []
    for left, right in combinations(measures, 2):
        point, *draws = [
            rank_correlation(a, b) for a, b in zip(means[left], means[right], strict=True)
        ]
        limits = (np.nan, np.nan)
        if n > 1 and np.isfinite(draws).any():
            # The bootstrap's spread is that of n, not of n - 1 degrees of freedom.
            stretch = np.sqrt(n / (n - 1))
            tail = stats.norm.cdf(-stretch * stats.t.ppf(1 - alpha / 2, n - 1))
            limits = np.nanquantile(draws, [tail, 1 - tail])
        lines.append((left, right, point, *limits, means[left].shape[1], n))
    columns = ["left", "right", "estimate", "low", "high", "n_methods", "n_sentences"]
    return pd.DataFrame(lines, columns=columns)


def _means(
    frame: pd.DataFrame,
    measure: str,
    sentences: np.ndarray,
    weights: Float[np.ndarray, "step batch"],
) -> Float[np.ndarray, "step token"]:
    """A line per resample, a column per method: means over the drawn sentences, undefined values
    left out.
    """
    groups = frame.groupby(["sentence_idx", "method"])[measure]
    sums, counts = (
        table.unstack().reindex(sentences).fillna(0.0).to_numpy()  # (sentences, methods)
        # A mean over resampled sentences is a quotient of two sums, and sums are one product.
        for table in (groups.sum(), groups.count())
    )
    drawn = weights @ counts  # (resamples, methods)
    return np.divide(weights @ sums, drawn, out=np.full(drawn.shape, np.nan), where=drawn > 0)


def _check(frame: pd.DataFrame, measures: Sequence[str]) -> None:
    if missing := [name for name in (*_ROW, "method", *measures) if name not in frame]:
        raise TouchstoneError(
            f"the table of yardsticks has no column {missing[0]!r}; join the measures on "
            f"{', '.join(_ROW)} and method"
        )
    if frame["method"].nunique() < 3:
        raise TouchstoneError("two methods have one order and its reverse; compare three or more")
