"""What a run will cost before it starts, counted from a study's list of units; nothing is computed.

A stage costs what its units do (`Job.seconds`, said in the study's room) and what its notebook does
beside them (`BESIDE` there): tables, tests and figures.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from .errors import TouchstoneError
from .jobs import Listing, closed_stage
from .runner import Job

# A measured time lies within so many times the predicted one, either way
# (outputs/reference/benchmarks/planned.csv): of units, and of what notebooks do beside them, which
# was timed at scale small alone.
UNITS, NOTEBOOK = 2.0, 4.0
COLUMNS = ["stage", "units", "seconds", "low", "high"]


def planned(
    listing: Listing, stages: Sequence[Job], scale: str, beside: Mapping[str, float]
) -> tuple[pd.DataFrame, dict[str, TouchstoneError]]:
    """What the stages of a study cost, and of those that cannot be counted why.

    Args:
        listing: the study's list of units.
        stages: with their parameters.
        scale: the scale whose complete stages are read.
        beside: seconds of a stage's notebook beside its units.

    Returns:
        A line a stage: stage, units (how many), seconds of one core, low, high (what they are
        expected within); and the errors by stage: one before it has not run.
    """
    lines, errors = [], {}
    for stage in stages:
        study = stage.notebook.parent.name
        try:
            jobs = listing(closed_stage(study, scale, stage.stage), stage.all)
        except TouchstoneError as error:
            errors[stage.stage] = error
            continue
        seconds, more = sum(job.seconds for job in jobs), beside.get(stage.stage, 0.0)
        low, high = seconds / UNITS + more / NOTEBOOK, seconds * UNITS + more * NOTEBOOK
        lines.append((stage.stage, len(jobs), seconds + more, low, high))
    return pd.DataFrame(lines, columns=COLUMNS), errors


def print_planned(table: pd.DataFrame, errors: Mapping[str, TouchstoneError]) -> None:
    """Print what `planned` found, and the sum of what was counted."""
    print(table.round().to_string(index=False))
    for stage, error in errors.items():
        print(f"{stage} cannot be counted yet: {error}")
    seconds, low, high = table[COLUMNS[2:]].sum() / 60
    what = "of what was counted" if errors else "in all"
    print(f"{what} about {seconds:.3g} minutes of one core ({low:.3g} to {high:.3g})")
