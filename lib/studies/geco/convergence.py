"""LIME and Kernel SHAP until they hardly move any more, beside the numbers of samples of a run.

A short sentence has few subsets of words: there the fit is to all of them. Elsewhere both methods
draw until the error estimate of the largest share is below a tolerance, or until they have drawn
`most` samples (`lib.attribution.regression.fit_all`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...attribution.table import KEY
from ...metrics import score_explanations
from ...metrics.agreement import rank_likeness
from ...stats import estimate
from .as_released import method_of
from .grid import Sources, Unit
from .units import one_form_each

SAMPLING = ("LIME", "Kernel SHAP")
PER_ROW = [*KEY, "sentence_idx", "target", "samples", "error", "is_exact", "is_reached"]
PER_ROW += ["MA_usual", "MA", "difference", "rank"]
SUMMARY = ["dataset", "scheme", "method", "n_sentences", "n_seeds", "samples", "most_samples"]
SUMMARY += ["exact", "reached", "MA_usual", "low_usual", "high_usual", "MA", "low_MA", "high_MA"]
SUMMARY += ["difference", "low", "high", "half_width", "rank"]
_MODEL = ["dataset", "scheme", "seed"]


@dataclass(frozen=True)
class OneForm:
    """`Sources` of one form of each base sentence, the forms taking turns."""

    whole: Sources

    def rows_of(self, unit: Unit) -> pd.DataFrame:
        """One row of each base sentence."""
        return one_form_each(self.whole.rows_of(unit))

    def model_of(self, unit: Unit) -> Any:
        """The unit's model."""
        return self.whole.model_of(unit)

    def mark_of(self, unit: Unit) -> str:
        """The mark of the unit's model."""
        return self.whole.mark_of(unit)


def plan_converged(
    models: pd.DataFrame,
    methods: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    trainings: Mapping[str, int],
    n_base: int,
    tolerance: float,
    most: int,
) -> list[Unit]:
    """The units: `SAMPLING` on the first trainings of some schemes.

    Args:
        models: dataset, scheme and seed of what was trained.
        methods: those of the run; what it does not explain with is left out.
        settings: by method, of the run.
        trainings: by scheme, how many of its trainings are explained.
        n_base: base sentences (0: all).
        tolerance: of the error estimate of the largest share.
        most: samples at the most.

    >>> models = pd.DataFrame({"dataset": "D_A", "scheme": ["C", "OLA-CEA"], "seed": 0})
    >>> [u.name for u in plan_converged(models, ["LIME"], {}, {"OLA-CEA": 1}, 2, 0.01, 4096)]
    ['D_A_OLA-CEA_seed0_LIME_converged']
    """
    further = {"n_samples": most, "tolerance": tolerance, "exact": True}
    asked = {name: {**settings.get(name, {}), **further} for name in SAMPLING}
    first = models.groupby(["dataset", "scheme"])["seed"].transform("min")
    numbers = zip(models["scheme"], models["seed"] - first, strict=True)
    taken = models[np.array([k < trainings.get(scheme, 0) for scheme, k in numbers], dtype=bool)]
    return [
        Unit(
            m.dataset,
            m.scheme,
            int(m.seed),
            name,
            method_of(name, asked[name]).settings(asked[name]),
            n_base,
            note="_converged",
        )
        for m in taken.itertuples()
        for name in SAMPLING
        if name in methods
    ]


def beside_usual(
    converged: Sequence[pd.DataFrame], usual: pd.DataFrame, rows: pd.DataFrame, tolerance: float
) -> pd.DataFrame:
    """Each converged explanation beside the one that the run made of the same row.

    Args:
        converged: tables of explanations, with the columns samples and error.
        usual: explanations of the run, of these rows among others.
        rows: of `score_explanations`.
        tolerance: what the error should be below.

    Returns:
        The columns `PER_ROW`: is_exact (all subsets were tried), is_reached (the error is at most
        the tolerance), MA_usual and MA (usual and converged), difference (converged minus usual),
        rank (Spearman over the words, signs kept).
    """
    if not converged:
        return pd.DataFrame(columns=PER_ROW)
    both = pd.concat(converged, ignore_index=True)
    both = both.merge(usual[[*KEY, "scores"]], on=KEY, suffixes=("", "_usual"))
    mass = [
        score_explanations(both.assign(scores=both[name]), rows)["MA"].to_numpy()
        for name in ("scores_usual", "scores")
    ]
    return both.assign(
        is_exact=both["error"] == 0,
        is_reached=both["error"] <= tolerance,
        MA_usual=mass[0],
        MA=mass[1],
        difference=mass[1] - mass[0],
        rank=rank_likeness(both["scores_usual"], both["scores"])["rank_signed"],
    )[PER_ROW]


def summarise_converged(per_row: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """A line per data set, scheme and method; `low` and `high` are those of the difference.

    Args:
        per_row: from `beside_usual`.
        **how: n_bootstrap, alpha and seed of `lib.stats.estimate`.

    Returns:
        The columns `SUMMARY`: samples (median) and most_samples of a row, exact and reached (shares
        of the rows), MA_usual, MA and the difference with their intervals (means over rows, then
        over seeds), rank (over rows).
    """
    lines = []
    for key, part in per_row.groupby(SUMMARY[:3], sort=False):
        found = estimate(part, "difference", **how)
        samples = part["samples"].median(), part["samples"].max()
        shares = part["is_exact"].mean(), part["is_reached"].mean()
        masses = [bound for name in ("MA_usual", "MA") for bound in estimate(part, name, **how)[:3]]
        interval = found.estimate, found.low, found.high, (found.high - found.low) / 2
        counts = found.n_sentences, found.n_seeds
        lines.append((*key, *counts, *samples, *shares, *masses, *interval, part["rank"].mean()))
    return pd.DataFrame(lines, columns=SUMMARY)


def to_be_judged(per_row: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """Converged explanations, and all others of the same rows, in one table for claims.

    Args:
        per_row: from `beside_usual`.
        scored: dataset, scheme, seed, method, row_id, sentence_idx and MA of the rows that count.

    Returns:
        The columns of `scored` that were named, and sampling: "converged" or "usual".
    """
    columns = [*KEY, "sentence_idx", "MA"]
    counting = scored[columns]
    place = [*_MODEL, "row_id"]
    usual = counting.merge(per_row[place].drop_duplicates(), on=place)
    of_counting = per_row[columns].merge(counting[KEY], on=KEY)
    parts = [usual.assign(sampling="usual"), of_counting.assign(sampling="converged")]
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return table.astype({"MA": np.float64})
