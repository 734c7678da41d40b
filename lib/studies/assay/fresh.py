"""Submissions with code, run again on items that nobody has seen: the planted texts, the templates
and the generated reviews are drawn anew, with the commit as their seed.

*Mask*, *swap* and *noun* rest on texts that were labelled by hand and cannot be drawn anew.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ...core.errors import TouchstoneError
from ...core.files import read_table
from ...core.paths import ROOT, outputs_root
from ...core.runner import plan_jobs, run_jobs
from ...core.stage import hold
from ...doors.submission import Submission
from .board import name_of

FRESH = ("planted", "cue", "edit")  # truths whose texts a program writes
_NEEDED = "04_metrics"  # the last stage; the figures of stage 05 are not


def current_commit() -> str:
    """The commit of this checkout.

    Raises:
        TouchstoneError: it is no checkout.
    """
    git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise TouchstoneError(
            f"{ROOT} is no git checkout, so it has no commit to seed by; write --fresh COMMIT"
        ) from error


def seed_of(commit: str) -> int:
    """The seed of all draws: the first seven digits of a commit.

    >>> seed_of("e93533a0c2")
    244536122
    """
    try:
        return int(commit[:7], 16)
    except ValueError:
        raise TouchstoneError(
            f"{commit!r} is no commit; write its digits, 0 to 9 and a to f"
        ) from None


def with_code(submissions: Sequence[Submission]) -> list[Submission]:
    """The submissions whose code can be run."""
    return [one for one in submissions if one.runs_again]


def run_fresh(submissions: Sequence[Submission], folder: Path, commit: str) -> Path:
    """Run the assay at scale small with another seed, and with the functions that were handed in.

    Their code runs here, with the rights of whoever runs it: read it first.

    Args:
        submissions: those of `with_code`.
        folder: that they lie in; a submission may hold the module that it names.
        commit: the seed, and the name of the run's folder.

    Returns:
        The run's folder.

    Raises:
        TouchstoneError: a module cannot be found, or a stage failed.
    """
    places = [str((folder / one.name).resolve()) for one in submissions]
    sys.path[:0] = places
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*places, *([known] if known else [])])
    defaults = {job.stage: job.all for job in plan_jobs("assay", "small")}
    asked = {one.about["code"]: dict(one.about["settings"]) for one in submissions}
    scale = f"fresh-{commit[:7]}"
    given = {
        "scale": scale,
        "seed": seed_of(commit),
        "explainers": defaults["03_attribution"]["explainers"] | asked,
        "families": dict.fromkeys(asked, "theirs") | defaults["04_metrics"]["families"],
    }
    out = outputs_root() / "assay" / scale
    jobs = [
        replace(job, folder=out / job.stage)
        for job in plan_jobs("assay", "small", parameters=given)
        if job.stage <= _NEEDED
    ]
    with hold(out, seconds=0):
        run_jobs(jobs)
    return out


def fresh_rows(run: Path, submissions: Sequence[Submission], board: pd.DataFrame) -> pd.DataFrame:
    """Lines of the board for the truths that were drawn anew, "<truth>, fresh".

    Args:
        run: the folder of `run_fresh`.
        submissions: those that were run.
        board: the board's own lines, which know everybody's author and settings.
    """
    cells = read_table(run / "04_metrics" / "cells.csv")
    copies = read_table(run / "03_attribution" / "copies.csv")
    same = dict(copies.itertuples(index=False, name=None))
    ours = cells[cells["truth"].isin(FRESH) & cells["role"].isin(["explainer", "floor"])]
    of_code = {one.about["code"]: name_of(one) for one in submissions}
    parts = [ours[~ours["explainer"].isin(list(of_code))]]
    for code, name in of_code.items():
        parts.append(ours[ours["explainer"] == same.get(code, code)].assign(explainer=name))
    found = pd.concat(parts, ignore_index=True)
    numbers = ["explainer", "truth", "value", "low", "high", "by_identity"]
    about = board.drop(columns=numbers[1:]).drop_duplicates("explainer")
    found["truth"] = found["truth"] + ", fresh"
    return found[numbers].merge(about, on="explainer")[list(board)]
