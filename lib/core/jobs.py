"""Units as jobs: what a stage keeps, computed in any order, by several processes or machines.

A study lists the units of its stages in its own room (lib/studies/<study>/jobs.py): a function from
a stage and its parameters to jobs. Each calls what the notebook calls for the same unit, and the
notebook afterwards reads what is there: there is one way to compute a unit. A unit is claimed by a
lock of its own (`Units.claim`), which the system lets go when its process dies; so whoever comes
second waits or does another one first, and a killed unit is made again. The lock of the stage's
folder stays that of its notebook: units may be made beside it, a second notebook may not. Long
units are made in parts, jobs of at most half an hour: of the rows for path methods, of the epochs
for a training, where each part goes on from the one before. Output roots merge by copying
(`merge`).
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from .arithmetic import in_force, variables
from .errors import TouchstoneError, did_you_mean
from .files import write_atomic
from .notebooks import APPENDIX
from .paths import outputs_root
from .progress import progress
from .stage import Stage
from .units import Units

_FOLDERS = ("units", "models", "probes", "vectors")  # of a stage: what outlives its next run
_MOST_DEATHS = 3  # of workers, without a finished unit between them


@dataclass(frozen=True)
class Job:
    """One unit, or a few that share their work.

    Attributes:
        key: stage and name, "02_training/D_A-C-seed0".
        stage: the stage that keeps it.
        needs: the stages that must be complete before, and the keys of the jobs that it goes on
            from. What is missing of these it does itself.
        seconds: predicted, on one core.
        gigabytes: predicted memory.
        store: where it is kept.
        compute: finds it finished, or computes and keeps it.
        model: what it loads; jobs of one are best computed in one process.
    """

    key: str
    stage: str
    needs: tuple[str, ...]
    seconds: float
    gigabytes: float
    store: Units = field(repr=False, compare=False)
    compute: Callable[[], object] = field(repr=False, compare=False)
    model: str = ""


Listing = Callable[[Stage, Mapping[str, Any]], Sequence[Job]]  # of a study: the jobs of a stage


def closed_stage(study: str, scale: str, stage: str) -> Stage:
    """A stage to read and to keep units for, not opened: its manifest, if any, stays."""
    return Stage(study, scale, stage, outputs_root() / study / scale / stage)


def job_named(jobs: Iterable[Job], key: str) -> Job:
    """The job with this key, stage/name.

    Raises:
        TouchstoneError: there is none; it names the nearest.
    """
    by_key = {job.key: job for job in jobs}
    if key not in by_key:
        raise TouchstoneError(f"there is no unit {key!r}{did_you_mean(key, by_key)}")
    return by_key[key]


def batches(jobs: Iterable[Job], seconds: float = 1800) -> dict[str, list[Job]]:
    """Jobs of one model together, in batches of at most so many predicted seconds (one long job is
    a batch by itself), by a name that can be a file's.
    """
    found: dict[str, list[Job]] = {}
    for job in jobs:
        start = re.sub(r"[^\w.-]+", "-", job.model or job.key.partition("/")[2])
        number = sum(name.rpartition(".")[0] == start for name in found)
        latest = found.get(f"{start}.{number}", [])
        if not latest or sum(other.seconds for other in latest) + job.seconds > seconds:
            latest = found.setdefault(f"{start}.{number + 1}", [])
        latest.append(job)
    return found


def run_all(
    listing: Listing,
    place: tuple[str, str, str],
    values: Mapping[str, Any],
    processes: int,
) -> int:
    """Compute a stage's units in several processes, the longest first, one thread each.

    Jobs that another one goes on from are left to it: one process does all parts of a training.

    Args:
        listing: the study's list of jobs, a function that a new process can import.
        place: study, scale, stage.
        values: the stage's parameters.
        processes: how many at a time.

    Returns:
        How many were left to another run, which has claimed them.

    Raises:
        TouchstoneError: workers die one after the other.
    """
    left, busy, deaths = _longest_first(listing(closed_stage(*place), values)), 0, 0
    os.environ.update(variables(in_force()))  # for the workers, before they import torch
    while left:
        pool = ProcessPoolExecutor(processes, get_context("spawn"))
        with pool:
            asked = {pool.submit(_compute, listing, place, values, key): key for key in left}
            before = len(left)
            busy += sum(not done for done in _finished(asked, left))
        deaths = 0 if len(left) < before else deaths + 1
        if deaths == _MOST_DEATHS:
            raise TouchstoneError(
                f"workers that made {left[0]} died {deaths} times, most likely for want of memory; "
                "finished units are safe: run again with fewer jobs"
            )
    return busy


def _longest_first(jobs: Iterable[Job]) -> list[str]:
    """The keys of jobs that no other goes on from; those before them count to their seconds."""
    by_key = {job.key: job for job in jobs}

    def seconds(job: Job) -> float:
        return job.seconds + sum(seconds(by_key[key]) for key in job.needs if key in by_key)

    gone_on_from = {key for job in by_key.values() for key in job.needs}
    last = [job for job in by_key.values() if job.key not in gone_on_from]
    return [job.key for job in sorted(last, key=seconds, reverse=True)]


def _finished(asked: Mapping["Future[bool]", str], left: list[str]) -> list[bool]:
    """Wait for units and take them off those that are left; a dead worker ends the waiting."""
    found = []
    completed = as_completed(asked)
    try:
        for _ in progress(list(asked), "units"):
            future = next(completed)
            found.append(future.result())
            left.remove(asked[future])
    except BrokenProcessPool:
        return found  # the units of the others are kept, and found when they are asked for again
    except BaseException:
        for future in asked:
            future.cancel()
        raise
    return found


_listed: dict[tuple[str, ...], dict[str, Job]] = {}  # a worker's own


def _compute(
    listing: Listing, place: tuple[str, str, str], values: Mapping[str, Any], key: str
) -> bool:
    """In a worker: compute a unit; False where another run has claimed it."""
    os.environ["TOUCHSTONE_PROGRESS"] = "0"  # one line for all, that of the process which asks
    if place not in _listed:
        _listed[place] = {job.key: job for job in listing(closed_stage(*place), values)}
    job = _listed[place][key]
    try:
        with job.store.claim(key.partition("/")[2], seconds=0):
            job.compute()
    except TimeoutError:
        return False
    return True


def merge(into: Path, other: Path) -> list[str]:
    """Copy the units, and what belongs to them, of one output root into another.

    Args:
        into: the root that grows.
        other: the root that is read.

    Returns:
        What was copied, relative to the root.

    Raises:
        TouchstoneError: both have a unit of one key, or weights of one name, with different bytes;
            nothing is copied then.
    """
    if not other.is_dir():
        raise TouchstoneError(f"{other} is no folder; name an output root, such as outputs")
    found = sorted(_kept(other))
    if not found and not any(other.glob("*/*/[0-9][0-9]_*")):
        raise TouchstoneError(
            f"{other} holds no STUDY/SCALE/STAGE/units; name the output root, such as outputs"
        )
    for path in found:
        mine, theirs = into / path, other / path
        if mine.is_file() and mine.read_bytes() != theirs.read_bytes():
            raise TouchstoneError(
                f"{mine} and {theirs} differ; remove the one that is not to count, and merge again"
            )
    new = [path for path in found if not (into / path).is_file()]
    for path in new:
        write_atomic(into / path, (other / path).read_bytes())
    return [path.as_posix() for path in new]


def _kept(root: Path) -> set[Path]:
    """The files of units, and those that belong to them, relative to an output root."""
    files = (
        path.relative_to(root)
        for folder in _FOLDERS
        for stage in ("[0-9][0-9]_", APPENDIX)
        for path in root.glob(f"*/*/{stage}*/{folder}/**/*")
        if path.is_file()
    )
    return {path for path in files if not any(part.startswith(".") for part in path.parts)}
