"""Claims of a paper, written down before the run, and the rules by which a result becomes a verdict
on them.

A claim fails only where a test shows that its effect is absent or reversed; where the data cannot
tell, it is undecided.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml
from scipy.stats import ttest_1samp

from ..core.errors import TouchstoneError
from .comparisons import (
    cluster_averages,
    clustered_wilcoxon,
    equivalence_p,
    holm,
    paired_differences,
)
from .estimates import estimate

__all__ = [
    "VERDICTS",
    "Claim",
    "Verdict",
    "claim_row",
    "combine",
    "judge",
    "judge_contrasts",
    "read_claims",
    "summarise",
]

VERDICTS = ("holds", "partly", "fails", "undecided", "not run")
_ALLOWED = {
    "direction": ("greater", "less", "equal", "different"),
    "quorum": ("all", "most"),
}
_MIN_SENTENCES = 20  # fewer base sentences decide nothing


class Verdict(NamedTuple):
    """A verdict and the reason for it in a few words."""

    verdict: str
    why: str


@dataclass(frozen=True)
class Claim:
    """A claim as registered in claims.yaml: `left` against `right` (or `target`), and what would
    decide it.

    Args:
        statement: the claim in our words.
        computed, test: how it is computed and tested, in words.
        direction: of left minus right, or of the value minus `target`: greater, less, equal, or
            different (not equal, either way).
        smallest_effect: the smallest effect of interest, in the quantity's unit; for "equal" the
            margin.
        table, value, statistic: the name of the table, its value column, and mean or median.
        left, right: selections of rows (column to value), every left against every right.
        target: what left is compared with where there is no `right`.
        over: columns and values; the comparison is repeated for each combination.
        quorum: how many of the comparisons must hold: all or most.
        exact: a count of the whole data, or an identity: few base sentences and one seed suffice.
        numbers: the claim is one row of claims.csv per number that the paper prints.
        classifies: it is about how well models classify, so models that no explanation may rest on
            are judged as well.
        caveat: stands with every reason.
    """

    id: str
    source: str
    statement: str
    quantity: str
    computed: str
    direction: str
    smallest_effect: float
    test: str
    table: str = ""
    value: str = ""
    statistic: str = "mean"
    left: Sequence[Mapping[str, Any]] = ({},)
    right: Sequence[Mapping[str, Any]] = ()
    target: float = 0.0
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    quorum: str = "all"
    exact: bool = False
    numbers: bool = False
    classifies: bool = False
    caveat: str = ""


def read_claims(path: Path | str) -> list[Claim]:
    """The claims of a claims.yaml, checked: every field known, every direction and quorum one of
    ours, no id twice.

    Raises:
        TouchstoneError: naming file, claim and remedy.
    """
    known = {f.name for f in fields(Claim)}
    claims: dict[str, Claim] = {}
    for entry in yaml.safe_load(Path(path).read_text()):
        where = f"{Path(path).name}, claim {entry.get('id', '(without id)')}"
        if unknown := sorted(set(entry) - known):
            raise TouchstoneError(
                f"{where}: unknown field {unknown[0]!r}; choose from {', '.join(sorted(known))}"
            )
        try:
            claim = Claim(**entry)
        except TypeError as error:
            raise TouchstoneError(
                f"{where}: {error}; write every field that has no default"
            ) from None
        for name, allowed in _ALLOWED.items():
            if getattr(claim, name) not in allowed:
                raise TouchstoneError(
                    f"{where}: {name} {getattr(claim, name)!r} is not one of {', '.join(allowed)}"
                )
        if claim.id in claims:
            raise TouchstoneError(
                f"{where} stands there twice; give the second one an id of its own"
            )
        claims[claim.id] = claim
    return list(claims.values())


def judge(
    claim: Claim, estimate: float, low: float, high: float, n: int, decides: bool = True
) -> Verdict:
    """The verdict on one comparison from its estimate and interval.

    greater: holds where the interval lies above 0 and the estimate reaches the smallest effect of
    interest; fails where the whole interval lies below that effect (so it is absent or reversed).
    equal: holds where the interval lies within the margin, fails where it lies outside. different:
    the other way round. All else is undecided.

    Args:
        estimate, low, high: relative to what is claimed equal, or to zero.
        n: base sentences.
        decides: whether this run may decide claims at all; one that only shows the steps never
            holds or fails.
    """
    if np.isnan(estimate):
        return Verdict("not run", "this run has no such rows")
    if not decides:
        return Verdict(
            "undecided", "scale small runs a small data set to show the steps; it claims nothing"
        )
    if np.isnan(low) or (n < _MIN_SENTENCES and not claim.exact):
        return Verdict("undecided", "too few base sentences to decide on")
    size = claim.smallest_effect
    if claim.direction in ("equal", "different"):
        inside, outside = (low >= -size and high <= size), (low > size or high < -size)
        holds, fails = (inside, outside) if claim.direction == "equal" else (outside, inside)
    else:
        sign = 1.0 if claim.direction == "greater" else -1.0
        bottom, top = sorted((sign * low, sign * high))
        holds, fails = bottom > 0 and sign * estimate >= size, top < size
    if holds or fails:
        return Verdict("holds" if holds else "fails", "")
    return Verdict("undecided", "the interval leaves it open")


def combine(verdicts: Sequence[Verdict], quorum: str = "all") -> Verdict:
    """One verdict from many comparisons; those without rows, or on models that no claim may rest
    on, do not count.

    "all": holds where all do, partly where some do, fails where none does and one fails. "most":
    holds where more than half do, fails where more than half fail, partly where some hold. Nothing
    holds whole of which only half or less could be run. The reason gives the counts.

    >>> combine([Verdict("holds", ""), Verdict("fails", "")])
    Verdict(verdict='partly', why='of 2 comparisons 1 holds, 1 fails')
    """
    counted = [v for v in verdicts if v.verdict != "not run"]
    n = {name: sum(v.verdict == name for v in verdicts) for name in VERDICTS}
    counts = ", ".join(f"{count} {name}" for name, count in n.items() if count)
    reasons = "; ".join(
        dict.fromkeys(v.why for v in verdicts if v.why and v.verdict in ("undecided", "not run"))
    )
    why = f"of {len(verdicts)} comparisons {counts}" + (f" ({reasons})" if reasons else "")
    if not counted:
        return Verdict("not run", why)
    needed = len(counted) if quorum == "all" else len(counted) // 2 + 1
    if n["holds"] >= needed and 2 * len(counted) > len(verdicts):
        return Verdict("holds", why)
    if n["holds"]:
        return Verdict("fails" if quorum == "most" and n["fails"] >= needed else "partly", why)
    failed = n["fails"] >= (1 if quorum == "all" else needed)
    return Verdict("fails" if failed else "undecided", why)


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
        _contrast(
            claim,
            frame,
            {**place, **left},
            right if right is None else {**place, **right},
            n_bootstrap,
            alpha,
            seed,
        )
        for place in (dict(zip(claim.over, values)) for values in product(*claim.over.values()))
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


def claim_row(
    claim: Claim,
    verdict: Verdict,
    scale: str,
    paper: float | str = "",
    ours: float = np.nan,
    low: float = np.nan,
    high: float = np.nan,
    n: int = 0,
    quantity: str = "",
) -> dict[str, Any]:
    """One line of claims.csv; where the paper prints no number, `paper` is the direction that it
    claims.

    Args:
        scale: the name of the run, for the column of that name.
        ours, low, high, n: what was found, its interval, and the number of base sentences.
        quantity: in place of the claim's own.
    """
    signs = {"greater": "> ", "less": "< ", "equal": "= ", "different": "not "}
    return {
        "source": claim.source,
        "quantity": quantity or claim.quantity,
        "paper": f"{signs[claim.direction]}{claim.target:g}" if paper == "" else paper,
        "ours": ours,
        "low": low,
        "high": high,
        "n": n,
        "scale": scale,
        "verdict": verdict.verdict,
        "why": "; ".join(part for part in (verdict.why, claim.caveat) if part),
        "id": claim.id,
    }


def summarise(claim: Claim, parts: pd.DataFrame, scale: str) -> dict[str, Any]:
    """The line of claims.csv for a claim of many comparisons: their median estimate, its range, the
    joint verdict.

    Args:
        parts: from `judge_contrasts`. Of one comparison alone low and high are its interval.
    """
    verdict = combine([Verdict(v, w) for v, w in zip(parts["verdict"], parts["why"])], claim.quorum)
    run = parts[parts["verdict"] != "not run"]
    if run.empty:
        return claim_row(claim, verdict, scale)
    low, high = ("low", "high") if len(run) == 1 else ("estimate", "estimate")
    limits = run[low].min(), run[high].max()
    return claim_row(
        claim, verdict, scale, "", float(run["estimate"].median()), *limits, int(run["n"].max())
    )


def _contrast(
    claim: Claim,
    frame: pd.DataFrame,
    left: Mapping[str, Any],
    right: Mapping[str, Any] | None,
    n_bootstrap: int,
    alpha: float,
    seed: int,
) -> dict[str, Any]:
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
    shows_effect = (verdict.verdict == "holds") != (claim.direction == "equal")
    if not part["p_effect" if shows_effect else "p_absence"] < alpha:
        return Verdict("undecided", "not significant after Holm's correction")
    return verdict
