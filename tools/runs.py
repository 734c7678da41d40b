"""Every `cpu` run of a question stays told: material/runs.csv, and run_verdicts.csv beside it.

    python tools/runs.py            # prints how each registered claim moved from run to run

`make reference STUDY=geco SCALE=cpu WHAT="three trainings"` adds a run; a line that stands is never
changed. runs.csv has a line a run: `run`, `date`, `commit` (the first that holds its tables; with a
`+`, the one after it), `what` changed against the run before, how many registered claims had each
verdict. run_verdicts.csv has a line for each registered claim of each run, as claims.csv had it.

Claims are judged by stage 04, and by appendices that have a claims.csv of their own.

From them come two tables beside the run's own, in outputs/reference/<study>/cpu: decided.csv, how
many claims were decided at first and after the last run, those registered later by themselves; and
open_claims.csv, each claim that is open, with the width of its intervals and the reason;
power_of_claims.csv, what the intervals of each claim could find. Two more stand in
outputs/reference: across_studies.csv says what Holm's correction over all studies would leave,
decided.csv how many claims of all studies are decided.
"""

import math
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from lib.core.errors import TouchstoneError
from lib.core.files import read_yaml, save_csv, write_atomic
from lib.core.notebooks import APPENDIX, find_studies
from lib.core.paths import ROOT, material, reference_dir
from lib.stats import holm
from lib.stats.claims import VERDICTS, Claim, Verdict, combine, read_claims
from lib.stats.contrasts import rests_on

RUNS, VERDICTS_OF_RUNS = "runs.csv", "run_verdicts.csv"
ALPHA = 0.05  # that of the verdicts
COLUMNS = ["verdict", "ours", "low", "high", "n"]  # of claims.csv
OPEN = ("undecided", "not run")
_Z, _ENOUGH_POWER = norm.ppf(1 - ALPHA / 2), 0.8
ENOUGH = 20  # base sentences that lib.stats asks for; fewer decide nothing
ONE_TRAINING = "one seed"  # begins the reason where no spread between trainings is known


def told() -> list[str]:
    """The studies that have a list of their runs: those that were run at scale cpu."""
    return [study for study in find_studies() if (material(study) / RUNS).is_file()]


def read_runs(study: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs of a study and their verdicts, oldest first."""
    runs, verdicts = (pd.read_csv(material(study) / name) for name in (RUNS, VERDICTS_OF_RUNS))
    return runs, verdicts


def judged(claims: Path) -> pd.DataFrame:
    """The claims.csv of a run's stage 04, then those of its appendices."""
    files = [claims, *sorted(claims.parents[1].glob(f"{APPENDIX}*/{claims.name}"))]
    return pd.concat([pd.read_csv(file) for file in files], ignore_index=True)


def registered_verdicts(claims: pd.DataFrame, registered: Path) -> pd.DataFrame:
    """What run_verdicts.csv keeps of a claims.csv: registered claims, in its order."""
    ids = {claim.id for claim in read_claims(registered)}
    return claims.loc[claims["id"].isin(ids), ["id", *COLUMNS]].rename(columns={"id": "claim"})


def append(study: str, claims: Path, what: str) -> None:
    """Add the run that made `claims`; what stands in the two files stays, byte by byte.

    Raises:
        TouchstoneError: `what` changed is not said.
    """
    if not what.strip():
        raise TouchstoneError(
            f"a cpu run of {study} is added to {RUNS}: say what changed against the run before "
            f'(make reference STUDY={study} SCALE=cpu WHAT="...")'
        )
    runs, _ = read_runs(study)
    verdicts = registered_verdicts(judged(claims), material(study) / "claims.yaml")
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=7", "HEAD"]
    about = {
        "run": len(runs) + 1,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": subprocess.check_output(git, text=True).strip() + "+",
        "what": what,
        **{verdict: (verdicts["verdict"] == verdict).sum() for verdict in VERDICTS},
    }
    verdicts.insert(0, "run", len(runs) + 1)
    for name, lines in ((RUNS, pd.DataFrame([about])), (VERDICTS_OF_RUNS, verdicts)):
        path = material(study) / name
        added = lines.to_csv(index=False, header=False, lineterminator="\n")
        write_atomic(path, path.read_text(encoding="utf-8") + added)


def decided(study: str) -> pd.DataFrame:
    """How many registered claims were decided after the last run, and before claims were added.

    Before is the last earlier run that judged only claims registered at first, so that a run which
    adds a part to another is compared with what both began from; else the run before the last.

    Returns:
        claims ("registered at first", or "added later": with a date in claims.yaml), state (before,
        after), run, n, decided (holds, fails or partly), undecided, not run.
    """
    told_runs, verdicts = read_runs(study)
    last = int(told_runs["run"].max())
    added = {
        claim["id"]
        for claim in read_yaml(material(study) / "claims.yaml", list)
        if "registered" in claim
    }
    later = verdicts["claim"].isin(added)
    with_later = set(verdicts.loc[later, "run"])
    first = max(set(verdicts["run"]) - with_later - {last}, default=last - 1)
    lines = []
    for claims, part in (("registered at first", ~later), ("added later", later)):
        for state, run in (("before", first), ("after", last)):
            found = verdicts[part & (verdicts["run"] == run)]["verdict"].value_counts()
            counts = {name: int(found.get(name, 0)) for name in ("undecided", "not run")}
            n = int(found.sum())
            about = {"claims": claims, "state": state, "run": run, "n": n}
            lines.append(about | {"decided": n - sum(counts.values())} | counts)
    return pd.DataFrame(lines).query("n > 0").reset_index(drop=True)


def open_claims(study: str, claims: Path) -> pd.DataFrame:
    """The registered claims that a run left open.

    Args:
        claims: the claims.csv of its stage 04.

    Returns:
        claim, verdict, ours, low, high (of several comparisons: median and range of the
        estimates), half_width (of the intervals of its undecided comparisons: their median), times
        and would (`least_data`), why.
    """
    table = judged(claims)
    registered = {claim.id: claim for claim in read_claims(material(study) / "claims.yaml")}
    left = table[table["id"].isin(registered) & table["verdict"].isin(OPEN)]
    parts = pd.concat([pd.read_csv(path) for path in comparisons(claims.parents[1])])
    undecided = parts[parts["verdict"] == "undecided"]
    widths = ((undecided["high"] - undecided["low"]) / 2).groupby(undecided["id"]).median()
    own = (left["high"] - left["low"]) / 2  # of a claim about a single number
    takes = [least_data(registered[name], parts[parts["id"] == name]) for name in left["id"]]
    times, would = zip(*takes, strict=True) if takes else ([], [])
    left = left.assign(half_width=left["id"].map(widths).fillna(own), times=times, would=would)
    names = ["claim", "verdict", "ours", "low", "high", "half_width", "times", "would", "why"]
    return left.rename(columns={"id": "claim"})[names].reset_index(drop=True)


def power_of_claims(study: str, claims: Path) -> pd.DataFrame:
    """What a run could find, from the spread that it has and not from its estimates: a line for
    each claim that has a smallest effect and comparisons with an interval that may decide it.

    Roughly: a normal distribution is assumed whose standard error is the half width by 1.96, though
    few trainings make the interval one of Student's t; and a claim with several comparisons has
    Holm's correction and a quorum, which are not counted in.

    Args:
        claims: the claims.csv of its stage 04.

    Returns:
        claim, of (difference or equality), direction, smallest_effect, comparisons, and medians
        over them: half_width, detectable (the difference at which the interval excludes zero four
        times in five), power (how often it excludes zero at the smallest effect; of equality, how
        often it lies within the margin where nothing differs; of "different", how often it lies
        beyond the margin at twice the margin); is_enough (power of four in five).
    """
    parts = pd.concat([pd.read_csv(path) for path in comparisons(claims.parents[1])])
    decides = (parts["verdict"] != "not run") & ~parts["why"].fillna("").str.contains(ONE_TRAINING)
    parts = parts[decides & np.isfinite(parts["high"] - parts["low"])]
    lines = []
    for claim in read_claims(material(study) / "claims.yaml"):
        part = parts[parts["id"] == claim.id]
        if part.empty or not claim.smallest_effect:
            continue
        half = (part["high"] - part["low"]).to_numpy() / 2
        with np.errstate(divide="ignore"):  # an identity has no width
            beyond = norm.cdf(_Z * (claim.smallest_effect / half - 1))
        power = np.maximum(0, 2 * beyond - 1) if claim.direction == "equal" else beyond
        of = "equality" if claim.direction == "equal" else "difference"
        about = claim.id, of, claim.direction, claim.smallest_effect, len(part)
        detectable = np.median(half) * (1 + norm.ppf(_ENOUGH_POWER) / _Z)
        lines.append((*about, np.median(half), detectable, np.median(power)))
    names = ["claim", "of", "direction", "smallest_effect", "comparisons"]
    table = pd.DataFrame(lines, columns=[*names, "half_width", "detectable", "power"])
    return table.assign(is_enough=table["power"] >= _ENOUGH_POWER)


def least_data(claim: Claim, parts: pd.DataFrame) -> tuple[float, str]:
    """How many times as much data would decide an open claim, and how, if its estimates stay.

    Args:
        parts: its comparisons: estimate, low, high, n (base sentences), verdict, why.

    Returns:
        The smallest factor by which the comparisons that it reaches (`times_the_data`) give the
        claim a verdict, and that verdict; NaN and "stays open" where no factor does, as where a
        model has one training or has not learnt its set. Holm's correction is not counted in.
    """
    factors = [
        math.nan if r.verdict != "undecided" or ONE_TRAINING in r.why else times_the_data(claim, r)
        for r in parts.itertuples()
    ]
    towards = [
        _by_estimate(claim, r.estimate) if factor == factor else r.verdict
        for factor, r in zip(factors, parts.itertuples(), strict=True)
    ]
    for reached in sorted(factor for factor in factors if math.isfinite(factor)):
        verdicts = [
            then if factor <= reached else now
            for factor, then, now in zip(factors, towards, parts["verdict"], strict=True)
        ]
        joint = combine([Verdict(verdict, "") for verdict in verdicts], claim.quorum).verdict
        if joint not in OPEN:
            return reached, joint
    return math.nan, "stays open"


def times_the_data(claim: Claim, part: Any) -> float:
    """How many times as many lines and trainings would decide a comparison.

    An interval narrows with the square root of what it rests on. So this is the square of its half
    width over the widest that would decide, if the estimate stayed where it is; and there must be
    enough base sentences to decide at all.

    Args:
        part: has estimate, low, high (relative to what is claimed equal, or to zero), n.
    """
    size = claim.smallest_effect
    if claim.direction in ("equal", "different"):
        allowed = abs(abs(part.estimate) - size)
    else:
        towards = part.estimate if claim.direction == "greater" else -part.estimate
        allowed = towards if towards >= size else size - towards
    times = ((part.high - part.low) / 2 / allowed) ** 2 if allowed else math.inf
    return max(1.0, times, ENOUGH / part.n) if times == times else math.nan


def _by_estimate(claim: Claim, estimate: float) -> str:
    is_inside = abs(estimate) <= claim.smallest_effect
    does_hold = {
        "equal": is_inside,
        "different": not is_inside,
        "greater": estimate >= claim.smallest_effect,
        "less": -estimate >= claim.smallest_effect,
    }[claim.direction]
    return "holds" if does_hold else "fails"


def comparisons(run: Path) -> list[Path]:
    """The tables of a run that have a line for each comparison on which a claim rests."""
    tables = [
        path
        for stage in (run / "04_metrics", *sorted(run.glob(f"{APPENDIX}*/")))
        for path in sorted(stage.glob("co*.csv"))
    ]
    asked = {"p_effect", "p_absence", "verdict"}
    return [path for path in tables if asked <= set(pd.read_csv(path, nrows=0))]


def tell(study: str) -> None:
    """Write decided.csv, open_claims.csv and power_of_claims.csv of the committed run."""
    folder = reference_dir(study, "cpu")
    save_csv(decided(study), folder / "decided.csv")
    for make in (open_claims, power_of_claims):
        table = make(study, folder / "04_metrics" / "claims.csv")
        save_csv(table, folder / f"{make.__name__}.csv")
    common = ROOT / "outputs" / "reference"
    save_csv(across_studies(), common / "across_studies.csv")
    save_csv(decided_of_all(), common / "decided.csv")


def decided_of_all() -> pd.DataFrame:
    """How many claims of each study are decided after its last run, and of all studies together.

    Returns:
        study ("all" for their sum), claims, n, decided, undecided, not run (see `decided`), share
        (decided of n).
    """
    tables = [decided(study).query("state == 'after'").assign(study=study) for study in told()]
    parts = pd.concat(tables, ignore_index=True)
    counts = ["n", "decided", "undecided", "not run"]
    total = parts.groupby("claims", sort=False)[counts].sum().reset_index().assign(study="all")
    table = pd.concat([parts, total], ignore_index=True)[["study", "claims", *counts]]
    return table.assign(share=table["decided"] / table["n"])


def across_studies() -> pd.DataFrame:
    """What is left of the decided comparisons if Holm's correction is over more than one claim.

    A verdict rests on p values that are corrected within its claim. The i-th smallest of m is at
    least m - i + 1 times the raw one, so dividing bounds the raw ones from above; Holm of these,
    over a study or over all, bounds the corrected ones. What stays is at least so many.

    Returns:
        study, comparisons (tested), decided (hold or fail), stay_within (with the correction over
        the study), stay_across (over all studies); and claims (with tests, and decided),
        claims_within and claims_across (decided still, if what does not stay is undecided). The
        last line, "all", is their sum.
    """
    tables, registered = [], {}
    for study in told():
        registered |= {(study, c.id): c for c in read_claims(material(study) / "claims.yaml")}
        for path in comparisons(reference_dir(study, "cpu")):
            table = pd.read_csv(path)
            way = [registered[study, claim].direction for claim in table["id"]]
            tables.append(table.assign(study=study, all="all", direction=way))
    every = pd.concat(tables, ignore_index=True)
    parts = every.dropna(subset="p_effect")
    is_decided = parts["verdict"].isin(["holds", "fails"])
    on_effect = [rests_on(*of) == "p_effect" for of in zip(parts["verdict"], parts["direction"])]
    counts = {"comparisons": parts["study"] != "", "decided": is_decided}
    for name, family in (("stay_within", "study"), ("stay_across", "all")):
        corrected = {
            kind: parts.assign(raw=_most_of_raw(parts, kind))
            .groupby(family)["raw"]
            .transform(lambda raw: holm(raw.to_numpy()))
            for kind in ("p_effect", "p_absence")
        }
        p = corrected["p_effect"].where(on_effect, corrected["p_absence"])
        counts[name] = is_decided & (p < ALPHA)
    tested = pd.DataFrame(counts)
    of_claims = {"claims": every["verdict"]}
    for name, stay in (("claims_within", "stay_within"), ("claims_across", "stay_across")):
        is_lost = (tested["decided"] & ~tested[stay]).reindex(every.index, fill_value=False)
        of_claims[name] = every["verdict"].mask(is_lost, "undecided")
    joint = pd.DataFrame(of_claims).groupby([every["study"], every["id"]]).agg(list)
    joint = joint[joint.index.isin(parts.set_index(["study", "id"]).index)]
    still = {
        name: [
            _is_decided(verdicts, registered[key].quorum) for key, verdicts in joint[name].items()
        ]
        for name in of_claims
    }
    found = pd.concat(
        [
            tested.groupby(parts["study"]).sum(),
            pd.DataFrame(still, joint.index).groupby("study").sum(),
        ],
        axis=1,
    ).reset_index(names="study")
    return pd.concat([found, found.sum().to_frame().T.assign(study="all")], ignore_index=True)


def _is_decided(verdicts: Sequence[str], quorum: str) -> bool:
    joint = combine([Verdict(verdict, "") for verdict in verdicts], quorum)
    return joint.verdict not in OPEN


def _most_of_raw(parts: pd.DataFrame, kind: str) -> pd.Series:
    """The most that a raw p value can have been, from those that were corrected within a claim."""
    within = parts.groupby(["study", "id"])[kind]
    return parts[kind] / (within.transform("size") - within.rank(method="first") + 1)


def moves(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts of each claim, a column a run; empty where it was not registered yet."""
    wide = verdicts.pivot(index="claim", columns="run", values="verdict")
    return wide.loc[verdicts["claim"].drop_duplicates()].fillna("")


if __name__ == "__main__":
    for name in sys.argv[1:] or told():
        listed, judged = read_runs(name)
        print(f"{name}\n{listed[['run', 'date', 'commit', 'what']].to_string(index=False)}")
        print(f"{moves(judged).to_string()}\n")
