"""Claims of a paper, written down before the run, and the rules by which a result becomes a verdict
on them.

A claim fails only where a test shows that its effect is absent or reversed; where the data cannot
tell, it is undecided.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, get_origin

import numpy as np
import pandas as pd

from ..core.errors import TouchstoneError
from ..core.files import read_yaml

VERDICTS = ("holds", "partly", "fails", "undecided", "not run")
_ALLOWED = {
    "direction": ("greater", "less", "equal", "different"),
    "quorum": ("all", "most"),
    "statistic": ("mean", "median"),
}
_KINDS: dict[Any, str] = {
    str: "text",
    float: "a number",
    bool: "true or false",
    Sequence: "a list of {column: value}",
    Mapping: "{column: [value, value]}",
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
        over: columns and values; the comparison is repeated for each combination. ["*"] stands for
            all values that the table has.
        quorum: how many of the comparisons must hold: all or most.
        exact: a count of the whole data, or an identity: few base sentences and one seed suffice.
        numbers: the claim is one row of claims.csv per number that the paper prints.
        classifies: it is about how well models classify, so models that no explanation may rest on
            are judged as well.
        caveat: stands with every reason.
        registered: of a claim that was added after the first run, when, and what had been seen.
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
    registered: str = ""

    def __post_init__(self) -> None:
        """Refuse a field of another type, a choice that there is not, a negative effect."""
        for about in fields(self):
            value, kind = getattr(self, about.name), get_origin(about.type) or about.type
            if not _is_of_kind(value, kind):
                raise TouchstoneError(f"{about.name} is {value!r}; write {_KINDS[kind]}")
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise TouchstoneError(
                    f"{name} {getattr(self, name)!r} is not one of {', '.join(allowed)}"
                )
        if not self.left:
            raise TouchstoneError("left is []; write at least one {column: value}, or {} for all")
        if self.smallest_effect < 0:
            raise TouchstoneError(
                f"smallest_effect is {self.smallest_effect}; write its size, 0 or more"
            )


def read_claims(path: Path | str) -> list[Claim]:
    """The claims of a claims.yaml, checked: every field known, every direction and quorum one of
    ours, no id twice.

    Raises:
        TouchstoneError: naming file, claim and remedy.
    """
    known = {f.name for f in fields(Claim)}
    claims: dict[str, Claim] = {}
    for number, entry in enumerate(read_yaml(path, list), start=1):
        if not isinstance(entry, dict):
            raise TouchstoneError(
                f"{Path(path).name}, entry {number} is {entry!r}; write a claim's `field: value`"
            )
        where = f"{Path(path).name}, claim {entry.get('id', '(without id)')}"
        if unknown := sorted(map(str, set(entry) - known)):
            raise TouchstoneError(
                f"{where}: unknown field {unknown[0]!r}; choose from {', '.join(sorted(known))}"
            )
        try:
            claim = Claim(**entry)
        except TypeError as error:
            raise TouchstoneError(
                f"{where}: {error}; write every field that has no default"
            ) from None
        except TouchstoneError as error:
            raise TouchstoneError(f"{where}: {error}") from None
        if claim.id in claims:
            raise TouchstoneError(
                f"{where} stands there twice; give the second one an id of its own"
            )
        claims[claim.id] = claim
    return list(claims.values())


def _is_of_kind(value: Any, kind: Any) -> bool:
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    if kind is Sequence:
        return isinstance(value, list | tuple) and all(isinstance(v, Mapping) for v in value)
    if kind is Mapping:  # an empty list of values would leave nothing to compare
        return isinstance(value, Mapping) and all(v and isinstance(v, list) for v in value.values())
    return type(value) is kind


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
        parts: from `lib.stats.contrasts.judge_contrasts`. Of one comparison alone low and high are
            its interval.
    """
    verdict = combine([Verdict(v, w) for v, w in zip(parts["verdict"], parts["why"])], claim.quorum)
    run = parts[parts["verdict"] != "not run"]
    if run.empty:
        return claim_row(claim, verdict, scale)
    low, high = ("low", "high") if len(run) == 1 else ("estimate", "estimate")
    return claim_row(
        claim,
        verdict,
        scale,
        ours=float(run["estimate"].median()),
        low=run[low].min(),
        high=run[high].max(),
        n=int(run["n"].max()),
    )
