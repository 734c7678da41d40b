"""Do different yardsticks for explanations put methods in the same order?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from lib.core.errors import TouchstoneError
from lib.metrics.rank_agreement import rank_correlation
from lib.stats import estimate

ROW = ["dataset", "scheme", "seed", "row_id", "sentence_idx"]


def correlate_rows(
    frame: pd.DataFrame,
    measures: Sequence[str],
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """How far two measures order the methods alike on one row: Spearman over the methods, averaged over rows and seeds.

    `frame`: a line per method and row with the columns of `ROW`, method and the measures. The interval is that of
    `lib.stats.estimates.estimate`, clustered by base sentence. Columns: left, right, then those of `lib.stats.estimates.Estimate`.
    """
    _check(frame, measures)
    found = []
    for left, right in combinations(measures, 2):
        known = frame.dropna(subset=[left, right])
        lines = [
            (*key, rank_correlation(part[left], part[right]))
            for key, part in known.groupby(ROW, sort=False)
        ]
        values = pd.DataFrame(lines, columns=[*ROW, "correlation"])
        found.append(
            (left, right, *estimate(values, "correlation", "mean", n_bootstrap, alpha, seed))
        )
    return pd.DataFrame(
        found,
        columns=[
            "left",
            "right",
            "estimate",
            "low",
            "high",
            "n",
            "n_sentences",
            "n_seeds",
            "standard_error",
            "df",
        ],
    )


def correlate_methods(
    frame: pd.DataFrame,
    measures: Sequence[str],
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """How far two measures order the methods alike on the whole: Spearman between the methods' means.

    Base sentences are resampled (cluster bootstrap, percentiles expanded for few sentences as in `lib.stats.estimates`; Hesterberg
    2015). The interval speaks of other sentences, not of other methods. Columns: left, right, estimate, low, high,
    n_methods, n_sentences.
    """
    _check(frame, measures)
    sentences = np.sort(frame["sentence_idx"].unique())
    n = len(sentences)
    rng = np.random.default_rng([seed, n])
    weights = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=n_bootstrap)])
    means = {name: _means(frame, name, sentences, weights) for name in measures}
    tail = (
        stats.norm.cdf(-np.sqrt(n / (n - 1)) * stats.t.ppf(1 - alpha / 2, n - 1))
        if n > 1
        else np.nan
    )
    found = []
    for left, right in combinations(measures, 2):
        point, *draws = [
            rank_correlation(a, b) for a, b in zip(means[left], means[right], strict=True)
        ]
        limits = (
            np.nanquantile(draws, [tail, 1 - tail])
            if n > 1 and np.isfinite(draws).any()
            else (np.nan, np.nan)
        )
        found.append((left, right, point, *limits, means[left].shape[1], n))
    return pd.DataFrame(
        found, columns=["left", "right", "estimate", "low", "high", "n_methods", "n_sentences"]
    )


def _means(
    frame: pd.DataFrame,
    measure: str,
    sentences: np.ndarray,
    weights: Float[np.ndarray, "step batch"],
) -> Float[np.ndarray, "step token"]:
    """A line per resample, a column per method: means over the drawn sentences, undefined values left out."""
    groups = frame.groupby(["sentence_idx", "method"])[measure]
    sums, counts = (
        table.unstack().reindex(sentences).fillna(0.0).to_numpy()
        for table in (groups.sum(), groups.count())
    )
    drawn = weights @ counts
    return np.divide(weights @ sums, drawn, out=np.full(drawn.shape, np.nan), where=drawn > 0)


def _check(frame: pd.DataFrame, measures: Sequence[str]) -> None:
    if missing := [name for name in (*ROW, "method", *measures) if name not in frame]:
        raise TouchstoneError(
            f"the table of yardsticks has no column {missing[0]!r}; join the measures on {', '.join(ROW)} "
            "and method"
        )
    if frame["method"].nunique() < 3:
        raise TouchstoneError("two methods have one order and its reverse; compare three or more")
