"""Intervals and tests for rows that are not independent: three forms of one sentence are one sample, not three.

Everything is clustered by base sentence (`sentence_idx`), and where a model was trained with several seeds, the spread
between seeds is part of the interval. A table of values has the columns sentence_idx, seed and a value column.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from lib.core.errors import TouchstoneError

POWER = 0.8  # the chance to find a difference of the size that we call the smallest detectable one


class Estimate(NamedTuple):
    """A mean (or median) over rows and seeds with its interval; standard_error and df carry over to power."""

    estimate: float
    low: float
    high: float
    n: int
    n_sentences: int
    n_seeds: int
    standard_error: float
    df: float


class SignedRank(NamedTuple):
    """A Wilcoxon signed-rank test over clusters, with two effect sizes."""

    p: float
    rank_biserial: float
    dz: float
    n_sentences: int


def estimate(
    values: pd.DataFrame,
    value: str,
    statistic: str = "mean",
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    """The mean (or median) over rows, averaged over seeds, with an interval over base sentences and seeds.

    Base sentences are resampled (cluster bootstrap, expanded percentile interval of Hesterberg 2015, so that few
    sentences do not give an interval that is too short). Seeds are too few to be resampled: with k of them their mean
    gets the t interval with k - 1 degrees of freedom, and the two intervals are joined. With one seed the interval
    speaks of sentences only. Rows whose value is not defined (NaN) are left out; with none left all is NaN.
    `statistic`: "mean" or "median".
    """
    known = values[["sentence_idx", "seed", value]].dropna()
    if known.empty:
        return Estimate(np.nan, np.nan, np.nan, 0, 0, 0, np.nan, np.nan)
    if statistic not in ("mean", "median"):
        raise TouchstoneError(f"there is no statistic {statistic!r}; choose mean or median")
    clusters, cluster = np.unique(known["sentence_idx"], return_inverse=True)
    weights = _resamples(len(clusters), n_bootstrap, seed)
    summary = _weighted_mean if statistic == "mean" else _weighted_median
    per_seed = [
        (part := (known["seed"] == s).to_numpy(), known.loc[part, value].to_numpy(float))
        for s in np.unique(known["seed"])
    ]
    ones = np.ones((1, len(clusters)))
    points = np.array([summary(x, cluster[part], ones)[0] for part, x in per_seed])
    draws = np.mean([summary(x, cluster[part], weights) for part, x in per_seed], axis=0)
    return _interval(points, draws, known[value], len(clusters), alpha)


def estimates(
    frame: pd.DataFrame,
    by: Sequence[str],
    value: str,
    statistic: str = "mean",
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """`estimate` for every group: the columns of `by`, then those of Estimate; groups keep their first order."""
    groups = frame.groupby(list(by), sort=False, observed=True)
    found = [
        (*_as_tuple(key), *estimate(part, value, statistic, n_bootstrap, alpha, seed))
        for key, part in groups
    ]
    return pd.DataFrame(found, columns=[*by, *Estimate._fields])


def estimates_of(
    frame: pd.DataFrame, by: Sequence[str], values: Sequence[str], **how: Any
) -> pd.DataFrame:
    """`estimates` of several value columns, one below the other; the column `measure` names them."""
    return pd.concat(
        [estimates(frame, by, name, **how).assign(measure=name) for name in values],
        ignore_index=True,
    )


def paired_differences(left: pd.DataFrame, right: pd.DataFrame, value: str) -> pd.DataFrame:
    """Left minus right, row by row and seed by seed; a floor, which has no training (seed -1), meets every seed.

    Both tables: row_id, sentence_idx, seed and the value. Rows and seeds that only one side has are left out.
    """
    swapped = (left["seed"] == -1).all() and len(right) > 0
    many, few = (right, left) if swapped else (left, right)
    by_seed = not (few["seed"] == -1).all()
    where = _pair_key(few, by_seed).get_indexer(_pair_key(many, by_seed))
    pairs = many.loc[where >= 0, ["row_id", "sentence_idx", "seed"]].reset_index(drop=True)
    gap = many[value].to_numpy(float)[where >= 0] - few[value].to_numpy(float)[where[where >= 0]]
    return pairs.assign(difference=-gap if swapped else gap)


def _pair_key(frame: pd.DataFrame, by_seed: bool) -> pd.Index:
    rows = frame["row_id"].astype(object)
    return pd.Index(zip(rows, frame["seed"]) if by_seed else rows, tupleize_cols=False)


def clustered_wilcoxon(values: pd.DataFrame, value: str, statistic: str = "mean") -> SignedRank:
    """Is the typical base sentence above zero? Wilcoxon's signed-rank test on the means (medians) of the base sentences.

    Each base sentence is averaged over its forms and seeds first; testing the rows one by one would count the same
    sentence several times. p is 1 where every mean is zero, NaN without values.
    """
    means = cluster_averages(values, value, statistic)
    if not len(means):
        return SignedRank(np.nan, np.nan, np.nan, 0)
    p = float(stats.wilcoxon(means).pvalue) if np.any(means != 0) else 1.0
    return SignedRank(p, rank_biserial(means), cohen_dz(means), len(means))


def cluster_averages(values: pd.DataFrame, value: str, statistic: str = "mean") -> np.ndarray:
    """One number per base sentence: the mean (or median) over its forms and seeds, undefined values left out."""
    return values.groupby("sentence_idx")[value].agg(statistic).dropna().to_numpy(float)


def rank_biserial(differences: np.ndarray) -> float:
    """Matched-pairs rank-biserial correlation: share of rank sum above zero minus share below, in [-1, 1].

    >>> rank_biserial(np.array([1.0, 2.0, -3.0]))
    0.0
    """
    differences = differences[differences != 0]
    if not len(differences):
        return 0.0
    ranks = stats.rankdata(np.abs(differences))
    return float(np.sum(np.sign(differences) * ranks) / np.sum(ranks))


def cohen_dz(differences: np.ndarray) -> float:
    """Standardised mean difference of pairs: mean over standard deviation (NaN for fewer than two, or no spread)."""
    spread = np.std(differences, ddof=1) if len(differences) > 1 else 0.0
    return float(np.mean(differences) / spread) if spread > 0 else float("nan")


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's correction for testing many things at once; undefined (NaN) tests are not counted.

    (The one in statsmodels collects garbage at every call, half a second each; the tests compare the two.)
    """
    p_values = np.asarray(p_values, float)
    order = np.argsort(p_values)[: np.sum(~np.isnan(p_values))]  # NaN sorts last
    adjusted = np.full(p_values.shape, np.nan)
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def smallest_detectable_difference(
    standard_error: float, df: float, alpha: float = 0.05, n_tests: int = 1
) -> float:
    """The true difference that this design would find with a power of 80 %, two-sided, after a correction for n_tests.

    Differences below it may be real; this run could not tell.

    >>> round(smallest_detectable_difference(0.01, df=1e9), 4)  # (1.96 + 0.84) standard errors
    0.028
    """
    return float(
        (stats.t.ppf(1 - alpha / n_tests / 2, df) + stats.t.ppf(POWER, df)) * standard_error
    )


def equivalence_p(means: np.ndarray, margin: float) -> float:
    """Two one-sided t tests on one number per base sentence: a small p says that their mean lies within the margin."""
    return (
        float(DescrStatsW(means).ttost_mean(-margin, margin)[0]) if len(means) > 1 else float("nan")
    )


def compare_all(
    frame: pd.DataFrame,
    over: str,
    value: str,
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """Every pair of `over` (methods, say), paired within row and seed: difference, interval, Holm p, power.

    `is_ranked` is true only where the corrected test finds the pair, its interval excludes zero, and the difference
    exceeds the smallest detectable one for this number of tests: no ranking is read from the others.
    """
    parts = dict(tuple(frame.groupby(over, sort=False)))
    names = list(parts)
    found = []
    for i, left in enumerate(names):
        for right in names[i + 1 :]:
            pairs = paired_differences(parts[left], parts[right], value)
            found.append(
                (
                    left,
                    right,
                    estimate(pairs, "difference", "mean", n_bootstrap, alpha, seed),
                    clustered_wilcoxon(pairs, "difference"),
                )
            )
    table = pd.DataFrame(
        [
            {
                "left": a,
                "right": b,
                "difference": e.estimate,
                "low": e.low,
                "high": e.high,
                "n_sentences": e.n_sentences,
                "n_seeds": e.n_seeds,
                "p": w.p,
                "dz": w.dz,
                "rank_biserial": w.rank_biserial,
                "smallest_detectable": smallest_detectable_difference(
                    e.standard_error, e.df, alpha, len(found)
                ),
            }
            for a, b, e, w in found
        ]
    )
    table["p_holm"] = holm(table["p"])
    outside = (table["low"] > 0) | (table["high"] < 0)
    large = table["difference"].abs() >= table["smallest_detectable"]
    return table.assign(is_ranked=(table["p_holm"] < alpha) & outside & large)


def variance_split(
    frame: pd.DataFrame,
    value: str,
    factors: Sequence[str],
    interactions: Sequence[tuple[str, str]] = (),
) -> pd.DataFrame:
    """How the variance of a value splits over crossed factors (seed, base sentence, class, method) and the rest.

    Shares of the total sum of squares of a balanced table (one value per combination; combinations that lack one are
    dropped by their base sentence). `sd`: the factor's standard deviation in units of the value, estimated from the
    mean squares, so that noise of the rest is not counted twice. A factor with one level cannot be seen: NaN.
    """
    cube = _cube(frame, value, list(factors))
    total = np.sum((cube - cube.mean()) ** 2)
    rest, found = cube - cube.mean(), []
    for term in [(f,) for f in factors] + list(interactions):
        effect = _effect(cube, [factors.index(f) for f in term])
        rest = rest - effect
        levels = [cube.shape[factors.index(f)] for f in term]
        found.append(
            (
                ":".join(term),
                int(np.prod(levels)),
                np.sum(effect**2 * np.ones_like(cube)),
                int(np.prod([n - 1 for n in levels])),
            )
        )
    df_rest = cube.size - 1 - sum(df for *_, df in found)
    noise = np.sum(rest**2) / df_rest if df_rest > 0 else np.nan
    rows = [
        {
            "term": name,
            "levels": n,
            "share": ss / total if df and total else np.nan,
            "sd": np.sqrt(max(0.0, ss / df - noise) / (cube.size / n)) if df else np.nan,
        }
        for name, n, ss, df in found
    ]
    left = {
        "term": "rest",
        "levels": cube.size,
        "share": np.sum(rest**2) / total if total else np.nan,
        "sd": np.sqrt(noise),
    }
    return pd.DataFrame([*rows, left])


@lru_cache(maxsize=8)
def _resamples(n_clusters: int, n_bootstrap: int, seed: int) -> np.ndarray:
    """How often each resample draws each cluster; kept, so that all groups of a table see the same resamples."""
    rng = np.random.default_rng([seed, n_clusters])
    return rng.multinomial(
        n_clusters, np.full(n_clusters, 1 / n_clusters), size=n_bootstrap
    ).astype(float)


def _interval(
    points: np.ndarray, draws: np.ndarray, known: pd.Series, n_clusters: int, alpha: float
) -> Estimate:
    """Join the percentiles over sentences with the t interval over seeds (Zou and Donner 2008: squares of the reaches)."""
    centre, n_seeds, n = float(np.mean(points)), len(points), len(known)
    if n_clusters < 2:  # one sentence says nothing about others
        return Estimate(centre, np.nan, np.nan, n, n_clusters, n_seeds, np.nan, np.nan)
    stretch = np.sqrt(n_clusters / (n_clusters - 1))
    tail = stats.norm.cdf(-stretch * stats.t.ppf(1 - alpha / 2, n_clusters - 1))
    below, above = np.abs(np.nanquantile(draws, [tail, 1 - tail]) - centre)
    seed_error = np.std(points, ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else 0.0
    reach = stats.t.ppf(1 - alpha / 2, n_seeds - 1) * seed_error if n_seeds > 1 else 0.0
    limits = np.clip(
        [centre - np.hypot(below, reach), centre + np.hypot(above, reach)], known.min(), known.max()
    )
    sentence_error = stretch * np.nanstd(draws)
    df = _satterthwaite([sentence_error, seed_error], [n_clusters - 1, max(n_seeds - 1, 1)])
    return Estimate(
        centre,
        *map(float, limits),
        n,
        n_clusters,
        n_seeds,
        float(np.hypot(sentence_error, seed_error)),
        df,
    )


def _satterthwaite(errors: Sequence[float], dfs: Sequence[float]) -> float:
    squares = np.square(errors)
    below = np.sum(squares**2 / np.asarray(dfs, float))
    return float(np.sum(squares) ** 2 / below) if below else float(dfs[0])


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


def _cube(frame: pd.DataFrame, value: str, factors: list[str]) -> np.ndarray:
    levels = [sorted(frame[f].unique()) for f in factors]
    full = (
        frame.groupby(factors)[value]
        .mean()
        .reindex(pd.MultiIndex.from_product(levels, names=factors))
    )
    cube = full.to_numpy(float).reshape([len(part) for part in levels])
    axis = factors.index("sentence_idx") if "sentence_idx" in factors else 0
    others = tuple(i for i in range(cube.ndim) if i != axis)
    complete = ~np.isnan(cube).any(axis=others)
    if not complete.any():
        raise TouchstoneError(
            f"no sentence has a {value} for every combination of {', '.join(factors)}; "
            "split fewer methods, or take the row set 'all'"
        )
    return np.compress(complete, cube, axis=axis)


def _effect(cube: np.ndarray, axes: list[int]) -> np.ndarray:
    """The mean over all other axes, without the grand mean and, for a pair, without the effects of its two members."""
    others = tuple(i for i in range(cube.ndim) if i not in axes)
    effect = cube.mean(axis=others, keepdims=True) - cube.mean()
    for axis in axes if len(axes) > 1 else []:
        effect = effect - _effect(cube, [axis])
    return effect


def _as_tuple(key: object) -> tuple[object, ...]:
    return key if isinstance(key, tuple) else (key,)
