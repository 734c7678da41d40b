"""The comparisons that a claim consists of: each one's estimate, interval, tests and verdict."""

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

from .claims import Claim, Verdict, judge
from .comparisons import (
    cluster_averages,
    clustered_wilcoxon,
    equivalence_p,
    holm,
    paired_differences,
)
from .estimates import estimate


def judge_contrasts(
    claim: Claim,
    tables: Mapping[str, pd.DataFrame],
    decides: bool = True,
    below: Collection[tuple[str, str]] = (),
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
    below_what: str = "a model that no claim may rest on",
    untrained: Collection[str] = ("-",),
) -> pd.DataFrame:
    """Every comparison that a claim consists of: estimate, interval, n, corrected p values, verdict
    and reason.

    A verdict needs the interval (base sentences and seeds) and, against the many comparisons, a
    Holm-corrected test over base sentences. One training seed decides nothing about a trained
    model: its spread is not known.

    Args:
        tables: by the names that claims use; columns row_id, sentence_idx, seed, the value and
            those selected by.
        decides: whether this run may decide claims at all (see `judge`).
        below: (dataset, scheme) of the models that no claim on explanations may rest on.
        below_what: what these models are, for the reason.
        untrained: the schemes that have no training seed.

    Returns:
        One line per comparison: id, comparison, estimate, low, high, n (base sentences), n_seeds,
        p_effect and p_absence (after Holm's correction), verdict, why.
    """
    frame = _quick_to_select(claim, tables[claim.table])
    rights: Sequence[Mapping[str, Any] | None] = claim.right if claim.right else [None]
    parts = pd.DataFrame(
        _contrast(claim, frame, place, left, right, n_bootstrap, alpha, seed)
        for place in _places(claim, frame)
        for left, right in product(claim.left, rights)
    )
    parts["p_effect"], parts["p_absence"] = holm(parts["p_effect"]), holm(parts["p_absence"])
    blocked = () if claim.classifies else below
    verdicts = []
    for part in parts.to_dict("records"):
        verdict = judge(claim, part["estimate"], part["low"], part["high"], part["n"], decides)
        if verdict.verdict != "not run" and any(model in blocked for model in part["models"]):
            verdict = Verdict("not run", below_what)
        elif verdict.verdict in ("holds", "fails"):
            verdict = _after_tests(claim, part, verdict, alpha, untrained)
        verdicts.append(verdict)
    parts["verdict"], parts["why"] = zip(*verdicts, strict=True)
    return parts.drop(columns="models")


def _places(claim: Claim, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Where a claim's comparison is made: every combination of `over`."""
    over = {
        name: list(frame[name].unique()) if list(values) == ["*"] else values
        for name, values in claim.over.items()
    }
    return [dict(zip(over, values)) for values in product(*over.values())]


def _contrast(
    claim: Claim,
    frame: pd.DataFrame,
    place: Mapping[str, Any],
    left: Mapping[str, Any],
    right: Mapping[str, Any] | None,
    n_bootstrap: int,
    alpha: float,
    seed: int,
) -> dict[str, Any]:
    left, right = {**place, **left}, None if right is None else {**place, **right}
    rows = _select(frame, left)
    if right is None:
        values = rows[["sentence_idx", "seed"]].assign(difference=rows[claim.value] - claim.target)
    else:
        values = paired_differences(rows, _select(frame, right), claim.value)
    found = estimate(values, "difference", claim.statistic, n_bootstrap, alpha, seed)
    p_effect, p_absence = _p_values(claim, values)
    return {
        "id": claim.id,
        "comparison": _label(left, right or {}),
        "estimate": found.estimate,
        "low": found.low,
        "high": found.high,
        "n": found.n_sentences,
        "n_seeds": found.n_seeds,
        "p_effect": p_effect,
        "p_absence": p_absence,
        "models": [
            (str(s.get("dataset", "")), str(s.get("scheme", "-")))
            for s in (left, right)
            if s is not None
        ],
    }


def _quick_to_select(claim: Claim, frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows with their text columns as categories: hundreds of comparisons select from
    them.
    """
    names = {name for selection in (claim.over, *claim.left, *claim.right) for name in selection}
    return frame.astype(
        {name: "category" for name in names if not pd.api.types.is_bool_dtype(frame[name])}
    )


def _select(frame: pd.DataFrame, selection: Mapping[str, Any]) -> pd.DataFrame:
    keep = np.ones(len(frame), dtype=bool)
    for name, value in selection.items():
        keep &= (frame[name] == value).to_numpy()
    return frame[keep]


def _label(left: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    shared = [str(v) for k, v in left.items() if right.get(k, v) == v and right]
    own = " ".join(str(v) for k, v in left.items() if not right or right.get(k) != v)
    other = " ".join(str(v) for k, v in right.items() if left.get(k) != v)
    return ", ".join(shared) + (": " if shared else "") + (f"{own} - {other}" if other else own)


def _p_values(claim: Claim, values: pd.DataFrame) -> tuple[float, float]:
    """p that there is an effect, p that it is smaller than what is of interest (each over base
    sentences).
    """
    means = cluster_averages(values, "difference", claim.statistic)
    if len(means) < 2:
        return np.nan, np.nan
    effect, size = (
        clustered_wilcoxon(values, "difference", claim.statistic).p,
        claim.smallest_effect,
    )
    if np.ptp(means) == 0:  # no spread, nothing to test: the interval says it all
        return 0.0, 0.0
    if claim.direction in ("equal", "different"):
        outside = min(
            ttest_1samp(means, s * size, alternative=a).pvalue
            for s, a in ((1, "greater"), (-1, "less"))
        )
        return (float(min(1.0, 2 * outside)), equivalence_p(means, size))
    sign = 1 if claim.direction == "greater" else -1
    return effect, float(ttest_1samp(sign * means, size, alternative="less").pvalue)


def rests_on(verdict: str, direction: str) -> str:
    """The p value that a decided comparison rests on: of an effect, or of its absence.

    >>> rests_on("holds", "greater"), rests_on("holds", "equal"), rests_on("fails", "equal")
    ('p_effect', 'p_absence', 'p_effect')
    """
    return "p_effect" if (verdict == "holds") != (direction == "equal") else "p_absence"


def _after_tests(
    claim: Claim,
    part: Mapping[str, Any],
    verdict: Verdict,
    alpha: float,
    untrained: Collection[str],
) -> Verdict:
    """A verdict that the interval gives stands only with several trainings and a significant
    corrected test.
    """
    is_trained = any(scheme not in untrained for _, scheme in part["models"])
    if part["n_seeds"] == 1 and not claim.exact and is_trained:
        return Verdict("undecided", "one seed: the spread between trainings is not known")
    if not part[rests_on(verdict.verdict, claim.direction)] < alpha:
        return Verdict("undecided", "not significant after Holm's correction")
    return verdict
