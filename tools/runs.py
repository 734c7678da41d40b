"""Every `cpu` run of a question stays told: material/runs.csv, and run_verdicts.csv beside it.

    python tools/runs.py            # prints how each registered claim moved from run to run

`make reference STUDY=geco SCALE=cpu WHAT="three trainings"` adds a run; a line that stands is never
changed. runs.csv has a line a run: `run`, `date`, `commit` (the first that holds its tables; with a
`+`, the one after it), `what` changed against the run before, how many registered claims had each
verdict. run_verdicts.csv has a line for each registered claim of each run, as claims.csv had it.
"""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from lib.core.errors import TouchstoneError
from lib.core.files import write_atomic
from lib.core.notebooks import find_studies
from lib.core.paths import ROOT, material
from lib.stats.claims import VERDICTS, read_claims

RUNS, VERDICTS_OF_RUNS = "runs.csv", "run_verdicts.csv"
COLUMNS = ["verdict", "ours", "low", "high", "n"]  # of claims.csv


def told() -> list[str]:
    """The studies that have a list of their runs: those that were run at scale cpu."""
    return [study for study in find_studies() if (material(study) / RUNS).is_file()]


def read_runs(study: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs of a study and their verdicts, oldest first."""
    runs, verdicts = (pd.read_csv(material(study) / name) for name in (RUNS, VERDICTS_OF_RUNS))
    return runs, verdicts


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
    verdicts = registered_verdicts(pd.read_csv(claims), material(study) / "claims.yaml")
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


def moves(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts of each claim, a column a run; empty where it was not registered yet."""
    wide = verdicts.pivot(index="claim", columns="run", values="verdict")
    return wide.loc[verdicts["claim"].drop_duplicates()].fillna("")


if __name__ == "__main__":
    for name in sys.argv[1:] or told():
        listed, judged = read_runs(name)
        print(f"{name}\n{listed[['run', 'date', 'commit', 'what']].to_string(index=False)}")
        print(f"{moves(judged).to_string()}\n")
