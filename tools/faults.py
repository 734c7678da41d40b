"""Kills at random moments: does a run that was killed and resumed end as one that was left alone?

    make faults                      # goes on where tests/faults/kills.csv ends: 160 tiny, 40 small
    make faults N=10 JOBS=2          # ten more, two at a time
    python tools/faults.py --summary

A kill is SIGKILL: to the runner, to the kernel, or to both (*tree*). By a fixed seed it falls
anywhere in the run, after the stage was opened, or when a certain file is being written (*aim*);
uniformly over what the undisturbed run took. Then the same command runs again, to its end. A row of
the table is one kill (delete a row, and it is made again); it *survived* where all of these are 0:

half_written    files under a final name, at the kill, that the reader of their kind refuses or that
                are not as in the undisturbed run
lost            units finished before the kill and written again by the resumed run
twice           units that the undisturbed run does not have
left_over       temporary files after the resumed run
orphans         processes of the run still alive 10 s after the kill (the runner, where the kernel
                was killed: 60 s)
differing       files of the study that differ after the resumed run, earlier stages included

Files are compared byte by byte, but for what tells the time: run.log; `started`, `ended`, and the
seconds in run.json; in executed notebooks the metadata that `strip_volatile` removes and the
printed lines that say how many minutes the rest will take.

Scale tiny is tests/faults/params/STUDY.yaml with a random encoder of two layers. Undisturbed runs
are kept in outputs/faults and brought up to date by the runner's own law. `code` is the beginning
of the SHA-256 of lib: which code was killed.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import json
import random
import shutil
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from faults_files import differing, half_written, left_over, phase_of, units
from faults_runs import Place, Run, studies

from lib.core.errors import TouchstoneError
from lib.core.files import save_json, sha256_of_tree, write_atomic
from lib.core.notebooks import find_notebooks
from lib.core.paths import PACKAGE, ROOT
from lib.core.runner import why_run

TABLE = ROOT / "tests" / "faults" / "kills.csv"
VICTIMS = ("tree", "runner", "kernel")
AIMS = ("any", "open", "writing", "open")  # imports are most of a tiny run: aim past them
SHARES = {  # kills of a study by stage: more where units are written, fewer where it takes minutes
    "tiny": {"01": 8, "02": 12, "03": 12, "04": 8},
    "small": {"01": 3, "02": 2, "03": 2, "04": 3},
}
VERDICTS = ("half_written", "lost", "twice", "left_over", "orphans", "differing")
ATTEMPTS = 5  # runs that may end before their moment, or whose kernel may not come up
_lock = threading.Lock()  # of files that all threads write
_failed: set[str] = set()  # stages that failed undisturbed
_undisturbed: dict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)  # by study, scale


class Kill(NamedTuple):
    """What is to be done: a line of the plan."""

    kill: int
    study: str
    scale: str
    stage: str
    killed: str
    aim: str


@dataclass
class Row:
    """What came of it: a line of the table."""

    kill: int
    study: str
    scale: str
    stage: str
    killed: str
    aim: str
    second: float  # since the run began
    phase: str
    units: int  # finished before the kill
    half_written: int
    lost: int
    twice: int
    left_over: int
    orphans: int
    differing: int
    verdict: str
    why: str
    code: str


class Marks(NamedTuple):
    """An undisturbed stage: seconds until it was opened and until it ended, and its files."""

    opened: float
    ended: float
    files: int


def plan() -> list[Kill]:
    """All kills in order, the same at every call.

    >>> len(plan()), plan()[0].scale, plan()[-1].scale
    (200, 'tiny', 'small')
    """
    kills: list[Kill] = []
    for scale, shares in SHARES.items():
        by_study = []
        for study in studies():
            draw = random.Random(f"{study} {scale}")
            names = {path.stem[:2]: path.stem for path in find_notebooks(study)}
            stages = [names[number] for number, n in shares.items() for _ in range(n)]
            victims = [VICTIMS[i % len(VICTIMS)] for i in range(len(stages))]
            aims = [AIMS[i % len(AIMS)] for i in range(len(stages))]
            for drawn in (stages, victims, aims):
                draw.shuffle(drawn)
            by_study.append([(study, scale, *what) for what in zip(stages, victims, aims)])
        for one_each in zip(*by_study):  # so that a table that is not complete has all studies
            kills += [Kill(len(kills) + i, *what) for i, what in enumerate(one_each, 1)]
    return kills


def measure(place: Place, kill: Kill) -> Marks:
    """Bring the undisturbed stage, and those before it, up to date; what was seen of it."""
    path, about = place.work / "marks.json", f"{kill.study} {kill.scale}"
    with _undisturbed[kill.study, kill.scale]:
        for job in place.jobs(kill.study, kill.scale):
            name = f"{about} {job.stage}"
            known = json.loads(path.read_text()) if path.is_file() else {}
            if job.stage > kill.stage or (name in known and not why_run(job)):
                continue
            if name in _failed:
                raise TouchstoneError(f"{name} failed undisturbed; its kills are left out")
            shutil.rmtree(job.folder, ignore_errors=True)
            run, status = finish(place, kill._replace(stage=job.stage), place.undisturbed)
            if status:
                _failed.add(name)
                raise TouchstoneError(f"{name} fails undisturbed; mend that first: {run.log}")
            seen = Marks(run.marks["opened"], run.marks["ended"], len(run.results()))
            with _lock:
                known = json.loads(path.read_text()) if path.is_file() else {}
                save_json(known | {name: seen}, path)
            print(f"{name}: undisturbed in {seen.ended:.0f} s", flush=True)
    return Marks(*json.loads(path.read_text())[f"{about} {kill.stage}"])


def finish(place: Place, kill: Kill, outputs: Path) -> tuple[Run, int]:
    """A run of the stage to its end, and its exit status.

    It begins anew where its kernel did not come up: of two that start at once the one may take the
    port that Jupyter has just found for the other.
    """
    for _ in range(ATTEMPTS):
        run = Run(place, kill.study, kill.scale, kill.stage, outputs)
        if not (status := run.wait()) or not run.is_without_kernel():
            break
    return run, status


def moment(kill: Kill, marks: Marks, attempt: int) -> Callable[[Run], bool]:
    """When to kill a run: what says, at a look at it, that the moment has come."""
    draw = random.Random(f"{kill.kill} {attempt}")
    at, since_open = draw.uniform(0, marks.ended), draw.uniform(0, marks.ended - marks.opened)
    nth, delay = draw.randrange(marks.files), draw.choice([0, draw.uniform(0, 0.02)])

    def is_time(run: Run) -> bool:
        opened = run.marks.get("opened")
        if kill.aim == "any":
            return run.second >= at
        if kill.aim == "open":
            return opened is not None and run.second >= opened + since_open
        if opened is None or len(run.results()) <= nth:
            return False
        written = run.marks.setdefault("written", run.second)
        return run.second >= written + delay

    return is_time


def strike(place: Place, kill: Kill, marks: Marks, outputs: Path) -> Run:
    """A run that was killed; begun anew where it ended before its moment."""
    undisturbed = place.undisturbed / kill.study / kill.scale
    for attempt in range(ATTEMPTS):
        shutil.rmtree(outputs, ignore_errors=True)
        for name in takewhile(kill.stage.__ne__, (p.stem for p in find_notebooks(kill.study))):
            shutil.copytree(undisturbed / name, outputs / kill.study / kill.scale / name)
        run = Run(place, kill.study, kill.scale, kill.stage, outputs)
        if run.kill(kill.killed, moment(kill, marks, attempt)):
            return run
        if "opened" in run.marks:  # the machine has become faster
            marks = marks._replace(opened=run.marks["opened"], ended=run.marks["ended"])
    raise TouchstoneError(f"the run ended {ATTEMPTS} times before its moment; see {run.log}")


def perform(place: Place, kill: Kill) -> Row:
    """Kill, look, resume, compare. The folder of a bad one is kept."""
    outputs = place.work / f"kill{kill.kill:03}"
    here, undisturbed = (p / kill.study / kill.scale for p in (outputs, place.undisturbed))
    run = strike(place, kill, measure(place, kill), outputs)
    phase = phase_of(run.folder, run.marks)
    orphans = run.orphans(kill.killed)
    half, before = half_written(here, undisturbed), units(here)
    _, status = finish(place, kill, outputs)
    after = units(here)
    found = {
        "half_written": half,
        "lost": [name for name, written in before.items() if after.get(name) != written],
        "twice": sorted(after.keys() - units(undisturbed).keys()),
        "left_over": left_over(here),
        "orphans": orphans,
        "differing": differing(here, undisturbed, kill.stage),
    }
    why = [f"{what}: {', '.join(names[:3])}" for what, names in found.items() if names]
    why += [f"the resumed run ended with {status}"] if status else []
    if not why:
        shutil.rmtree(outputs)
    counts = {what: len(names) for what, names in found.items()}
    verdict = "bad" if why else "survived"
    second = round(run.marks["killed"], 1)
    return Row(
        *kill,
        second,
        phase,
        len(before),
        **counts,
        verdict=verdict,
        why="; ".join(why),
        code=code(),
    )


@functools.cache
def code() -> str:
    """Which code was killed."""
    return sha256_of_tree(PACKAGE, "**/*.py")[:8]


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows so far, as text."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def append(row: Row, path: Path) -> None:
    """Write the table anew with a row more, in the order of the plan, whole or not at all."""
    with _lock:
        rows = [r for r in read_table(path) if r["kill"] != str(row.kill)]
        rows = sorted([*rows, asdict(row)], key=lambda r: int(r["kill"]))
        text = io.StringIO()
        writer = csv.DictWriter(text, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(path, text.getvalue())


def summary(rows: list[dict[str, str]]) -> str:
    """What the table says, in a few lines."""
    lines = []
    for scale in SHARES:
        of_scale = [row for row in rows if row["scale"] == scale]
        planned = sum(kill.scale == scale for kill in plan())
        lines.append(f"{scale}: {len(of_scale)} of {planned} kills")
        for column in ("study", "stage", "killed", "phase", "code") if of_scale else ():
            counted = sorted(Counter(row[column][:16] for row in of_scale).items())
            lines.append(f"  {column:<8}" + ", ".join(f"{name} {n}" for name, n in counted))
    totals = (f"{what} {sum(int(row[what]) for row in rows)}" for what in VERDICTS)
    lines.append(f"units finished before a kill {sum(int(r['units']) for r in rows)}")
    lines.append(", ".join(totals))
    bad = [row for row in rows if row["verdict"] != "survived"]
    lines += [f"kill {r['kill']}, {r['study']} {r['scale']} {r['stage']}: {r['why']}" for r in bad]
    return "\n".join([*lines, f"{len(rows) - len(bad)} of {len(rows)} survived"])


def campaign(place: Place, kills: Iterable[Kill], jobs: int, table: Path) -> None:
    """Perform kills, so many at once; the table grows by each as soon as it is known.

    A kill that could not be performed has no row: the next campaign tries it again.
    """
    place.make()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for future in as_completed([pool.submit(perform, place, kill) for kill in kills]):
                try:
                    row = future.result()
                except TouchstoneError as error:  # of one stage; the others go on
                    print(error, flush=True)
                    continue
                append(row, table)
                about = f"{row.study} {row.scale} {row.stage}: {row.killed} at {row.second} s"
                print(
                    f"kill {row.kill}, {about} ({row.phase}): {row.verdict} {row.why}", flush=True
                )
        finally:
            pool.shutdown(cancel_futures=True)  # on Ctrl-C none is begun any more


def main() -> int:
    """Go on with the table; the exit status is 0 if all that was to do is done and survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("n", nargs="?", type=int, help="how many kills more; all that are missing")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    parser.add_argument("--work", type=Path, default=ROOT / "outputs" / "faults", help="a folder")
    parser.add_argument("--table", type=Path, default=TABLE, help="the table")
    parser.add_argument("--scale", choices=list(SHARES), help="of this scale only")
    parser.add_argument("--study", help="of this study only")
    parser.add_argument("--stage", help="of this stage only, by number")
    parser.add_argument("--summary", action="store_true", help="only sum the table up")
    chosen = parser.parse_args()
    done = {int(row["kill"]) for row in read_table(chosen.table)}
    missing = [
        kill
        for kill in plan()
        if kill.kill not in done
        and chosen.scale in (None, kill.scale)
        and chosen.study in (None, kill.study)
        and chosen.stage in (None, kill.stage[:2])
    ]
    if not chosen.summary:
        campaign(Place(chosen.work.resolve()), missing[: chosen.n], chosen.jobs, chosen.table)
    rows = read_table(chosen.table)
    print(summary(rows))
    asked = [] if chosen.summary else [str(kill.kill) for kill in missing[: chosen.n]]
    is_done = set(asked) <= {row["kill"] for row in rows}
    return int(not is_done or any(row["verdict"] != "survived" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
