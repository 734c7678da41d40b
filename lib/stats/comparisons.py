"""Paired comparisons and tests over base sentences: differences, signed ranks, equivalence, power,
variance.

As in `lib.stats.estimates` the forms and seeds of one base sentence are one sample. A table of
values has the columns row_id, sentence_idx, seed and a value column.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from ..core.errors import TouchstoneError
from .estimates import estimate

_POWER = 0.8  # the chance to find a difference of the size that we call the smallest detectable one


class SignedRank(NamedTuple):
    """A Wilcoxon signed-rank test over clusters, with two effect sizes."""

    p: float
    rank_biserial: float
    dz: float
    n_sentences: int


def paired_differences(left: pd.DataFrame, right: pd.DataFrame, value: str) -> pd.DataFrame:
    """Left minus right, row by row and seed by seed; a floor, which has no training (seed -1),
    meets every seed.

    Rows and seeds that only one side has are left out.

    Args:
        left, right: row_id, sentence_idx, seed and the column `value`.

    Returns:
        row_id, sentence_idx, seed, difference.
    """
    columns = ["row_id", "sentence_idx", "seed", value]
    left_is_floor, right_is_floor = ((side["seed"] == -1).all() for side in (left, right))
    pairs = left[columns].merge(
        right[columns],
        on=["row_id"] if left_is_floor or right_is_floor else ["row_id", "seed"],
        suffixes=("", "_right"),
        validate="1:m" if left_is_floor else "m:1",
    )
    if left_is_floor:
        pairs["seed"] = pairs["seed_right"]
    # passed or not is a value, too, and pandas subtracts no booleans
    first, second = (pairs[name].astype(float) for name in (value, f"{value}_right"))
    return pairs[columns[:-1]].assign(difference=first - second)


def clustered_wilcoxon(values: pd.DataFrame, value: str, statistic: str = "mean") -> SignedRank:
    """Wilcoxon's signed-rank test on one mean (or median) per base sentence: is the typical one
    other than zero?

    Each base sentence is averaged over its forms and seeds first; testing the rows one by one would
    count the same sentence several times. p is 1 where every mean is zero, NaN without values.
    """
    means = cluster_averages(values, value, statistic)
    if not len(means):
        return SignedRank(np.nan, np.nan, np.nan, 0)
    p = float(stats.wilcoxon(means).pvalue) if np.any(means != 0) else 1.0
    return SignedRank(p, rank_biserial(means), cohen_dz(means), len(means))


def cluster_averages(values: pd.DataFrame, value: str, statistic: str = "mean") -> np.ndarray:
    """One number per base sentence: the mean (or median) over its forms and seeds, undefined values
    left out.
    """
    return values.groupby("sentence_idx")[value].agg(statistic).dropna().to_numpy(float)


def rank_biserial(differences: np.ndarray) -> float:
    """Matched-pairs rank-biserial correlation: share of rank sum above zero minus share below, in
    [-1, 1].

    >>> rank_biserial(np.array([1.0, 2.0, -3.0]))
    0.0
    """
    differences = differences[differences != 0]
    if not len(differences):
        return 0.0
    ranks = stats.rankdata(np.abs(differences))
    return float(np.sum(np.sign(differences) * ranks) / np.sum(ranks))


def cohen_dz(differences: np.ndarray) -> float:
    """Standardised mean difference of pairs: mean over standard deviation (NaN for fewer than two,
    or no spread).
    """
    spread = np.std(differences, ddof=1) if len(differences) > 1 else 0.0
    return float(np.mean(differences) / spread) if spread > 0 else float("nan")


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's correction of p values for testing many things at once; undefined (NaN) tests are not
    counted.

    >>> holm([0.01, 0.04, float("nan")]).tolist()
    [0.02, 0.04, nan]
    """
    # the one in statsmodels collects garbage at every call, half a second each; the tests compare
    # the two
    raw = np.asarray(p_values, float)
    order = np.argsort(raw)[: np.sum(~np.isnan(raw))]  # NaN sorts last
    adjusted = np.full(raw.shape, np.nan)
    steps = raw[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def smallest_detectable_difference(
    standard_error: float, df: float, alpha: float = 0.05, n_tests: int = 1
) -> float:
    """The true difference that this design would find with a power of 80 %, two-sided, after a
    correction for n_tests.

    Differences below it may be real; this run could not tell.

    >>> round(smallest_detectable_difference(0.01, df=1e9), 4)  # (1.96 + 0.84) standard errors
    0.028
    """
    return float(
        (stats.t.ppf(1 - alpha / n_tests / 2, df) + stats.t.ppf(_POWER, df)) * standard_error
    )


def equivalence_p(means: np.ndarray, margin: float) -> float:
    """Two one-sided t tests on one number per base sentence: a small p says that their mean lies
    within the margin.
    """
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
    """Every pair of `over` (methods, say), paired within row and seed: difference, test, power.

    `is_ranked` is true only where the corrected test finds the pair, its interval excludes zero,
    and the difference reaches the smallest detectable one for this number of tests: no ranking is
    read from the others.

    Args:
        frame: row_id, sentence_idx, seed, `over` and `value`.

    Returns:
        One line per pair: left, right, difference, low, high, n_sentences, n_seeds, p, dz,
        rank_biserial, smallest_detectable, p_holm, is_ranked.
    """
    parts = dict(tuple(frame.groupby(over, sort=False)))
    pairs = list(combinations(parts, 2))
    lines = []
    for left, right in pairs:
        gaps = paired_differences(parts[left], parts[right], value)
        gap = estimate(gaps, "difference", "mean", n_bootstrap, alpha, seed)
        test = clustered_wilcoxon(gaps, "difference")
        lines.append(
            {
                "left": left,
                "right": right,
                "difference": gap.estimate,
                "low": gap.low,
                "high": gap.high,
                "n_sentences": gap.n_sentences,
                "n_seeds": gap.n_seeds,
                "p": test.p,
                "dz": test.dz,
                "rank_biserial": test.rank_biserial,
                "smallest_detectable": smallest_detectable_difference(
                    gap.standard_error, gap.df, alpha, len(pairs)
                ),
            }
        )
    table = pd.DataFrame(lines)
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
    """How the variance of a value splits over crossed factors (seed, base sentence, class, method)
    and the rest.

    The table is made balanced: one value per combination; base sentences (without these, levels of
    the first factor) that lack one are dropped.
    A factor with one level cannot be seen: NaN.

    Args:
        frame: the columns `factors` and `value`.
        interactions: pairs of factors.

    Returns:
        One line per term and one for the rest: term, levels, share (of the total sum of squares),
        sd (the standard deviation in units of the value, from the mean squares, so that noise of
        the rest is not counted twice).

    Raises:
        TouchstoneError: where no base sentence has every combination.
    """
    cube = _cube(frame, value, list(factors))
    total = np.sum((cube - cube.mean()) ** 2)
    rest, terms = cube - cube.mean(), []
    for term in [(factor,) for factor in factors] + list(interactions):
        axes = [factors.index(factor) for factor in term]
        effect = _effect(cube, axes)
        rest = rest - effect
        n_levels = np.array([cube.shape[axis] for axis in axes])
        squares = np.sum(effect**2 * np.ones_like(cube))
        terms.append((":".join(term), int(n_levels.prod()), squares, int((n_levels - 1).prod())))
    df_rest = cube.size - 1 - sum(df for *_, df in terms)
    noise = np.sum(rest**2) / df_rest if df_rest > 0 else np.nan
    rows = [
        {
            "term": name,
            "levels": n,
            "share": squares / total if df and total else np.nan,
            "sd": np.sqrt(np.maximum(0.0, squares / df - noise) / (cube.size / n))
            if df
            else np.nan,
        }
        for name, n, squares, df in terms
    ]
    share = np.sum(rest**2) / total if total else np.nan
    last = {"term": "rest", "levels": cube.size, "share": share, "sd": np.sqrt(noise)}
    return pd.DataFrame([*rows, last])


def _cube(frame: pd.DataFrame, value: str, factors: list[str]) -> np.ndarray:
    levels = [sorted(frame[f].unique()) for f in factors]
    means = frame.groupby(factors)[value].mean()
    full = means.reindex(pd.MultiIndex.from_product(levels, names=factors))
    cube = full.to_numpy(float).reshape([len(part) for part in levels])
    axis = factors.index("sentence_idx") if "sentence_idx" in factors else 0
    complete = ~np.isnan(cube).any(axis=tuple(i for i in range(cube.ndim) if i != axis))
    if not complete.any():
        raise TouchstoneError(
            f"no sentence has a {value} for every combination of {', '.join(factors)}; "
            "split fewer methods, or take the row set 'all'"
        )
    return np.compress(complete, cube, axis=axis)


def _effect(cube: np.ndarray, axes: list[int]) -> np.ndarray:
    """The mean over all other axes, without the grand mean and, for a pair, without the effects of
    its two members.
    """
    others = tuple(i for i in range(cube.ndim) if i not in axes)
    effect = cube.mean(axis=others, keepdims=True) - cube.mean()
    for axis in axes if len(axes) > 1 else []:
        effect = effect - _effect(cube, [axis])
    return effect
