"""Claims of a paper, written down before the run, and the rules by which a result becomes a verdict on them.

A claim fails only where a test shows that its effect is absent or reversed; where the data cannot tell, it is undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml
from scipy.stats import t, ttest_1samp

from lib.core.errors import TouchstoneError
from lib.stats.estimates import (
    cluster_averages,
    clustered_wilcoxon,
    equivalence_p,
    estimate,
    holm,
    paired_differences,
)

VERDICTS = ("holds", "partly", "fails", "undecided", "not run")
DIRECTIONS = ("greater", "less", "equal", "different")
QUORUMS = ("all", "most")
COLUMNS = (
    "source",
    "quantity",
    "paper",
    "ours",
    "low",
    "high",
    "n",
    "scale",
    "verdict",
    "why",
    "id",
)
MIN_SENTENCES = 20  # fewer base sentences decide nothing
UNTRAINED = ("-", "ZS")  # schemes without a training seed
SMALL = "scale small runs a small data set to show the steps; it claims nothing"


class Verdict(NamedTuple):
    """A verdict and the reason for it in a few words."""

    verdict: str
    why: str


@dataclass(frozen=True)
class Claim:
    """A claim as registered in claims.yaml.

    `statement`: in our words. `computed`, `test`: how, in words. `direction` of left minus right, or of the value minus
    `target` ("different": not equal, either way). `smallest_effect`: the smallest effect of interest, in the quantity's
    unit; for "equal" the margin. `table`, `value`, `statistic`: where the rows come from. `left`, `right`: selections
    of rows, every left against every right; without `right` left is compared with `target`. `over`: repeated for each
    combination. `quorum`: how many of the comparisons must hold. `exact`: a count of the whole data, or an identity.
    `numbers`: the claim is one row of claims.csv per number that the paper prints. `classifies`: it is about how well
    models classify, so models below the first-pronoun rule are judged as well. `caveat`: stands with every reason.
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
    """Read and check claims.yaml: every field known, every direction and quorum one of ours, no id twice.

    Raises TouchstoneError naming file, claim and remedy.
    """
    known = {f.name for f in fields(Claim)}
    claims = []
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
        for name, allowed in (("direction", DIRECTIONS), ("quorum", QUORUMS)):
            if getattr(claim, name) not in allowed:
                raise TouchstoneError(
                    f"{where}: {name} {getattr(claim, name)!r} is not one of {', '.join(allowed)}"
                )
        if claim.id in {c.id for c in claims}:
            raise TouchstoneError(
                f"{where} stands there twice; give the second one an id of its own"
            )
        claims.append(claim)
    return claims


def judge(claim: Claim, estimate: float, low: float, high: float, n: int, scale: str) -> Verdict:
    """The verdict on one comparison from its estimate and interval (relative to what is claimed equal, or to zero).

    greater: holds where the interval lies above 0 and the estimate reaches the smallest effect of interest; fails where
    the whole interval lies below that effect (so it is absent or reversed). equal: holds where the interval lies
    within the margin, fails where it lies outside. different: the other way round. All else is undecided.
    `n`: base sentences. Scale `small` never holds or fails.
    """
    if np.isnan(estimate):
        return Verdict("not run", "this run has no such rows")
    if scale == "small":
        return Verdict("undecided", SMALL)
    if np.isnan(low) or (n < MIN_SENTENCES and not claim.exact):
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
    """One verdict from many comparisons; those without rows, or on models that no claim may rest on, do not count.

    "all": holds where all do, partly where some do, fails where none does and one fails. "most": holds where more than
    half do, fails where more than half fail, partly where some hold. Nothing holds whole of which only half or less
    could be run. The reason gives the counts.
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
    scale: str,
    below: Iterable[tuple[str, str]] = (),
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
    below_what: str = "a model below the first-pronoun rule",
) -> pd.DataFrame:
    """Every comparison that a claim consists of: estimate, interval, n, corrected p values, verdict and reason.

    A verdict needs the interval (base sentences and seeds) and, against the many comparisons, a Holm-corrected test
    over base sentences. One training seed decides nothing about a trained model: its spread is not known.
    `below`: (dataset, scheme) of models that no claim on explanations may rest on; `below_what` says what they are.
    """
    frame = _quick_to_select(claim, tables[claim.table])
    rows = [
        _contrast(claim, frame, left, right, place, n_bootstrap, alpha, seed)
        for place in _combinations(claim.over)
        for left, right in product(claim.left, claim.right or [None])
    ]
    parts = pd.DataFrame(rows)
    parts["p_effect"], parts["p_absence"] = holm(parts["p_effect"]), holm(parts["p_absence"])
    blocked = set() if claim.classifies else set(below)
    found = [
        _verdict(claim, part, scale, alpha, blocked, below_what)
        for part in parts.to_dict("records")
    ]
    parts["verdict"], parts["why"] = [v.verdict for v in found], [v.why for v in found]
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
    """One line of claims.csv; where the paper prints no number, `paper` is the direction that it claims."""
    signs = {"greater": "> ", "less": "< ", "equal": "= ", "different": "not "}
    paper = f"{signs[claim.direction]}{claim.target:g}" if paper == "" else paper
    why = "; ".join(part for part in (verdict.why, claim.caveat) if part)
    return dict(
        zip(
            COLUMNS,
            (
                claim.source,
                quantity or claim.quantity,
                paper,
                ours,
                low,
                high,
                n,
                scale,
                verdict.verdict,
                why,
                claim.id,
            ),
            strict=True,
        )
    )


def summarise(claim: Claim, parts: pd.DataFrame, scale: str) -> dict[str, Any]:
    """The line of claims.csv for a claim of many comparisons: their median estimate, its range, and the joint verdict."""
    verdict = combine([Verdict(v, w) for v, w in zip(parts["verdict"], parts["why"])], claim.quorum)
    known = parts[parts["verdict"] != "not run"]
    middle = float(known["estimate"].median()) if len(known) else np.nan
    one = known.iloc[0] if len(known) == 1 else None
    low, high = (
        (known["estimate"].min(), known["estimate"].max())
        if one is None
        else (one["low"], one["high"])
    )
    return claim_row(
        claim, verdict, scale, "", middle, low, high, int(known["n"].max()) if len(known) else 0
    )


def compare_numbers(
    claim: Claim,
    numbers: pd.DataFrame,
    ours: pd.DataFrame,
    scale: str,
    is_original_data: bool,
    is_original_model: bool,
) -> list[dict[str, Any]]:
    """One line of claims.csv for every number that the paper prints for this quantity, beside ours.

    `numbers`: paper_numbers.csv. `ours`: quantity, dataset, scheme, class, estimate, low, high, n. The uncertainty of
    the paper's mean counts too. A number that belongs to other data or another encoder is shown and not judged.
    """
    keys = ["dataset", "scheme", "class"]
    wanted = numbers[
        (numbers["quantity"] == claim.quantity) & numbers["source"].str.startswith(claim.source)
    ]
    found = {
        tuple(row[k] for k in keys): row
        for row in ours[ours["quantity"] == claim.quantity].to_dict("records")
    }
    rows = []
    for number in wanted.fillna("").to_dict("records"):
        key = tuple(number[k] for k in keys)
        mine = found.get(key, {"estimate": np.nan, "low": np.nan, "high": np.nan, "n": 0})
        paper = float(number["value"])
        foreign = number["scheme"] not in ("", "OLA-CEA") and not is_original_model
        if np.isnan(mine["estimate"]):
            verdict = Verdict("not run", "this run has no such model or data")
        elif scale == "small" or not is_original_data:
            verdict = Verdict(
                "not run", "the number belongs to GECO; this run has its own sentences"
            )
        elif foreign:
            verdict = Verdict(
                "not run", "the number belongs to BERT; another encoder stands in for it"
            )
        else:
            error = _printed_error(number)
            verdict = judge(
                claim,
                mine["estimate"] - paper,
                mine["low"] - paper - error,
                mine["high"] - paper + error,
                mine["n"],
                scale,
            )
        name = " ".join(part for part in (claim.quantity, *key) if part)
        rows.append(
            claim_row(
                claim,
                verdict,
                scale,
                paper,
                mine["estimate"],
                mine["low"],
                mine["high"],
                mine["n"],
                name,
            )
            | {"source": number["source"], "id": number["id"]}
        )
        rows[-1]["why"] = "; ".join(part for part in (rows[-1]["why"], number["note"]) if part)
    return rows


def _printed_error(number: Mapping[str, Any]) -> float:
    """Half the 95 % interval of the paper's own mean over seeds; 0 where it prints no spread."""
    if number["spread"] == "":
        return 0.0
    n_seeds = int(number["n_seeds"])
    return float(
        t.ppf(0.975, n_seeds - 1)
        * float(number["spread"])
        * float(number["spread_factor"])
        / np.sqrt(n_seeds)
    )


def _combinations(over: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(over, values)) for values in product(*over.values())]


def _contrast(
    claim: Claim,
    frame: pd.DataFrame,
    left: Mapping[str, Any],
    right: Mapping[str, Any] | None,
    place: Mapping[str, Any],
    n_bootstrap: int,
    alpha: float,
    seed: int,
) -> dict[str, Any]:
    first = {**place, **left}
    mine = _select(frame, first)
    if right is None:
        values = mine[["sentence_idx", "seed"]].assign(difference=mine[claim.value] - claim.target)
        second = {}
    else:
        second = {**place, **right}
        values = paired_differences(mine, _select(frame, second), claim.value)
    found = estimate(values, "difference", claim.statistic, n_bootstrap, alpha, seed)
    p_effect, p_absence = _p_values(claim, values)
    return {
        "id": claim.id,
        "comparison": _label(first, second),
        "estimate": found.estimate,
        "low": found.low,
        "high": found.high,
        "n": found.n_sentences,
        "n_seeds": found.n_seeds,
        "p_effect": p_effect,
        "p_absence": p_absence,
        "models": [_model(first)] + ([_model(second)] if second else []),
    }


def _quick_to_select(claim: Claim, frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows with their text columns as categories: hundreds of comparisons select from them."""
    names = {name for selection in (claim.over, *claim.left, *claim.right) for name in selection}
    return frame.astype(
        {name: "category" for name in names if not pd.api.types.is_bool_dtype(frame[name])}
    )


def _select(frame: pd.DataFrame, selection: Mapping[str, Any]) -> pd.DataFrame:
    keep = np.ones(len(frame), dtype=bool)
    for name, value in selection.items():
        keep &= (frame[name] == value).to_numpy()
    return frame[keep]


def _model(selection: Mapping[str, Any]) -> tuple[str, str]:
    return str(selection.get("dataset", "")), str(selection.get("scheme", "-"))


def _label(left: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    shared = [str(v) for k, v in left.items() if right.get(k, v) == v and right]
    own = " ".join(str(v) for k, v in left.items() if not right or right.get(k) != v)
    other = " ".join(str(v) for k, v in right.items() if left.get(k) != v)
    return ", ".join(shared) + (": " if shared else "") + (f"{own} - {other}" if other else own)


def _p_values(claim: Claim, values: pd.DataFrame) -> tuple[float, float]:
    """p that there is an effect, p that it is smaller than what is of interest (each over base sentences)."""
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


def _verdict(
    claim: Claim,
    part: Mapping[str, Any],
    scale: str,
    alpha: float,
    below: set[tuple[str, str]],
    below_what: str,
) -> Verdict:
    found = judge(claim, part["estimate"], part["low"], part["high"], part["n"], scale)
    if found.verdict != "not run" and any(model in below for model in part["models"]):
        return Verdict("not run", below_what)
    if found.verdict not in ("holds", "fails"):
        return found
    if (
        part["n_seeds"] == 1
        and not claim.exact
        and any(scheme not in UNTRAINED for _, scheme in part["models"])
    ):
        return Verdict("undecided", "one seed: the spread between trainings is not known")
    shows_effect = (found.verdict == "holds") != (claim.direction == "equal")
    if not part["p_effect" if shows_effect else "p_absence"] < alpha:
        return Verdict("undecided", "not significant after Holm's correction")
    return found
