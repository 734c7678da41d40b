"""Means and medians of rows that are not independent: three forms of one sentence are one sample,
not three.

Everything is clustered by base sentence (`sentence_idx`), and where a model was trained with
several seeds, the spread between seeds is part of the interval. A table of values has the columns
sentence_idx, seed and a value column.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from ..core.errors import TouchstoneError


class Estimate(NamedTuple):
    """A mean (or median) over rows and seeds with its interval; standard_error and df carry over to
    power.
    """

    estimate: float
    low: float
    high: float
    n: int
    n_sentences: int
    n_seeds: int
    standard_error: float
    df: float


def estimate(
    values: pd.DataFrame,
    value: str,
    statistic: str = "mean",
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    """The mean (or median) over rows, averaged over seeds, with an interval over base sentences and
    seeds.

    Base sentences are resampled (cluster bootstrap, expanded percentile interval of Hesterberg
    2015, so that few sentences do not give an interval that is too short). Seeds are too few to be
    resampled: with k of them their mean gets the t interval with k - 1 degrees of freedom, and the
    two intervals are joined. With one seed the interval speaks of sentences only.

    Args:
        values: sentence_idx, seed and the column `value`; rows whose value is not defined (NaN) are
            left out.
        statistic: "mean" or "median".
        n_bootstrap: resamples.
        alpha: the interval has 1 - alpha.
        seed: of the resampling.

    Returns:
        An `Estimate`; all NaN where no value is defined.

    Raises:
        TouchstoneError: for another statistic.

    >>> table = pd.DataFrame({"sentence_idx": [0, 0, 1, 1], "seed": 0, "MA": [0.2, 0.4, 0.6, 0.8]})
    >>> round(estimate(table, "MA").estimate, 3), estimate(table, "MA").n_sentences
    (0.5, 2)
    """
    known = values[["sentence_idx", "seed", value]].dropna()
    if known.empty:
        return Estimate(np.nan, np.nan, np.nan, 0, 0, 0, np.nan, np.nan)
    if statistic not in ("mean", "median"):
        raise TouchstoneError(f"there is no statistic {statistic!r}; choose mean or median")
    clusters, cluster = np.unique(known["sentence_idx"], return_inverse=True)
    weights = resamples(len(clusters), n_bootstrap, seed)
    summary = _weighted_mean if statistic == "mean" else _weighted_median
    per_seed = known.assign(cluster=cluster).groupby("seed")
    found = np.array(
        [
            summary(part[value].to_numpy(float), part["cluster"].to_numpy(), weights)
            for _, part in per_seed
        ]
    )
    return _interval(found[:, 0], found[:, 1:].mean(axis=0), known[value], len(clusters), alpha)


def estimates(
    frame: pd.DataFrame,
    by: Sequence[str],
    value: str,
    statistic: str = "mean",
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """`estimate` for every group of a table; groups keep their first order.

    Args:
        frame: sentence_idx, seed, the columns of `by` and `value`.

    Returns:
        One line per group: the columns of `by`, then estimate, low, high, n, n_sentences, n_seeds,
        standard_error, df.
    """
    lines = [
        (*key, *estimate(part, value, statistic, n_bootstrap, alpha, seed))
        for key, part in frame.groupby(list(by), sort=False, observed=True)
    ]
    return pd.DataFrame(lines, columns=[*by, *Estimate._fields])


def estimates_of(
    frame: pd.DataFrame, by: Sequence[str], values: Sequence[str], **how: Any
) -> pd.DataFrame:
    """`estimates` of several value columns, one below the other; column `measure` names them."""
    return pd.concat(
        [estimates(frame, by, name, **how).assign(measure=name) for name in values],
        ignore_index=True,
    )


def half_widths(estimated: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """How wide the intervals of `estimates` are that a run has reached: half of them, by group.

    Args:
        estimated: low, high, n_sentences, n_seeds and the columns of `by`.

    Returns:
        One line per group: the columns of `by`, n (intervals), n_sentences, n_seeds, half_width
        (the median) and largest; intervals that are not defined are left out.

    >>> table = pd.DataFrame({"low": [0, 0, 0.1], "high": [0.2, 1, 0.5], "n_sentences": 9})
    >>> half_widths(table.assign(n_seeds=[1, 3, 2], model="C"), ["model"]).round(2).values.tolist()
    [['C', 3, 9, 3, 0.2, 0.5]]
    """
    known = estimated.assign(half=(estimated["high"] - estimated["low"]) / 2).dropna(subset="half")
    return (
        known.groupby(list(by), sort=False)
        .agg(
            n=("half", "size"),
            n_sentences=("n_sentences", "max"),
            n_seeds=("n_seeds", "max"),
            half_width=("half", "median"),
            largest=("half", "max"),
        )
        .reset_index()
    )


def estimate_auc(
    values: pd.DataFrame,
    score: str,
    is_positive: str,
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    """The area under the ROC curve: how often a positive row has a higher score than a negative one
    (a tie counts half), with the interval of `estimate`.

    Whole base sentences are resampled, with the positive and the negative rows that they hold.

    Args:
        values: sentence_idx, seed, the columns `score` and `is_positive` (true or false).

    Returns:
        An `Estimate`; all NaN where a training has positive rows only, or negative ones only.

    >>> table = pd.DataFrame({"sentence_idx": [0, 1, 2, 3], "seed": 0, "score": [1, 2, 3, 4]})
    >>> estimate_auc(table.assign(tag=[0, 1, 0, 1]), "score", "tag").estimate
    0.75
    """
    known = values[["sentence_idx", "seed", score, is_positive]].dropna()
    per_seed = list(known.groupby("seed"))
    if known.empty or any(part[is_positive].nunique() < 2 for _, part in per_seed):
        return Estimate(np.nan, np.nan, np.nan, len(known), 0, 0, np.nan, np.nan)
    clusters = np.unique(known["sentence_idx"])
    weights = resamples(len(clusters), n_bootstrap, seed)
    found = []
    for _, part in per_seed:
        cluster = np.searchsorted(clusters, part["sentence_idx"])
        tag, scores = part[is_positive].to_numpy(bool), part[score].to_numpy(float)
        wins = _wins(scores, tag, cluster, len(clusters))
        pairs = np.outer(
            *(np.bincount(cluster[side], minlength=len(clusters)) for side in (tag, ~tag))
        )
        won, drawn = (((weights @ m) * weights).sum(axis=1) for m in (wins, pairs))
        found.append(np.divide(won, drawn, out=np.full(len(won), np.nan), where=drawn > 0))
    draws = np.array(found)
    scale = pd.Series(np.linspace(0, 1, len(known)))  # an interval ends with it
    return _interval(draws[:, 0], draws[:, 1:].mean(axis=0), scale, len(clusters), alpha)


def _wins(scores: np.ndarray, tag: np.ndarray, cluster: np.ndarray, n_clusters: int) -> np.ndarray:
    """How often a positive row of one cluster beats a negative one of another; a tie counts half.

    Counted by looking up each positive score among the sorted negative ones, so that not all pairs
    need to be held.
    """
    order = np.argsort(scores[~tag], kind="stable")
    lower = np.zeros((len(order) + 1, n_clusters))  # of each cluster, rows among the first k
    lower[np.arange(1, len(order) + 1), cluster[~tag][order]] = 1
    lower = lower.cumsum(axis=0)
    known = scores[~tag][order]
    below, upto = (lower[np.searchsorted(known, scores[tag], side)] for side in ("left", "right"))
    wins = np.zeros((n_clusters, n_clusters))  # (positive, negative)
    np.add.at(wins, cluster[tag], (below + upto) / 2)
    return wins


@lru_cache(maxsize=8)
def resamples(n_clusters: int, n_bootstrap: int, seed: int) -> np.ndarray:
    """How often each resample draws each cluster, a line a resample; the first line counts every
    cluster once and gives the estimate. Kept, so that all groups of a table see the same resamples.
    """
    rng = np.random.default_rng([seed, n_clusters])
    draws = rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=n_bootstrap)
    return np.vstack([np.ones(n_clusters), draws])


def expanded_quantiles(draws: Sequence[float], n_clusters: int, alpha: float) -> np.ndarray:
    """The limits of an interval from a bootstrap's draws, for few clusters further out than the
    plain percentiles (Hesterberg 2015).
    """
    # The bootstrap's spread is that of n, not of n - 1 degrees of freedom.
    stretch = np.sqrt(n_clusters / (n_clusters - 1))
    tail = stats.norm.cdf(-stretch * stats.t.ppf(1 - alpha / 2, n_clusters - 1))
    return np.nanquantile(draws, [tail, 1 - tail])


def _interval(
    points: np.ndarray, draws: np.ndarray, known: pd.Series, n_clusters: int, alpha: float
) -> Estimate:
    """Join the percentiles over sentences with the t interval over seeds (Zou and Donner 2008:
    squares of the reaches).
    """
    centre, n_seeds, n = float(np.mean(points)), len(points), len(known)
    if n_clusters < 2:  # one sentence says nothing about others
        return Estimate(centre, np.nan, np.nan, n, n_clusters, n_seeds, np.nan, np.nan)
    below, above = np.abs(expanded_quantiles(draws, n_clusters, alpha) - centre)
    seed_error = np.std(points, ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else 0.0
    reach = stats.t.ppf(1 - alpha / 2, n_seeds - 1) * seed_error if n_seeds > 1 else 0.0
    low, high = np.clip(
        [centre - np.hypot(below, reach), centre + np.hypot(above, reach)], known.min(), known.max()
    )
    sentence_error = np.sqrt(n_clusters / (n_clusters - 1)) * np.nanstd(draws)
    error = float(np.hypot(sentence_error, seed_error))
    below = sentence_error**4 / (n_clusters - 1) + seed_error**4 / max(n_seeds - 1, 1)
    df = float(error**4 / below) if below else float(n_clusters - 1)  # Satterthwaite
    return Estimate(centre, float(low), float(high), n, n_clusters, n_seeds, error, df)


def _weighted_mean(x: np.ndarray, cluster: np.ndarray, weights: np.ndarray) -> np.ndarray:
    n_clusters = weights.shape[1]
    sums, counts = np.bincount(cluster, x, n_clusters), np.bincount(cluster, minlength=n_clusters)
    n_drawn = weights @ counts
    return np.divide(weights @ sums, n_drawn, out=np.full(len(weights), np.nan), where=n_drawn > 0)


def _weighted_median(x: np.ndarray, cluster: np.ndarray, weights: np.ndarray) -> np.ndarray:
    order = np.argsort(x, kind="stable")
    heights = np.cumsum(weights[:, cluster[order]], axis=1)
    total = heights[:, -1:]
    lower = np.argmax(2 * heights >= total, axis=1)
    upper = np.argmax(2 * heights > total, axis=1)
    return np.where(total[:, 0] > 0, (x[order][lower] + x[order][upper]) / 2, np.nan)
