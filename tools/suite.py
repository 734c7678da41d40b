"""The tests of the README's second command: studies and rooms side by side, then every table.

    python tools/suite.py [--jobs 2] [--outputs FOLDER]     make test
    python tools/suite.py --light                           the tests of make check
    python tools/suite.py --more [--jobs 2]                 make test-more

The second lane has every test that the first leaves out: those that are marked `slow` (more than
a second: speed, killed runs, resumed jobs) and `more` (a browser, an extra or minutes).

Each part is a pytest of its own, so that no study waits for another; the notebooks of a study run
in their order. What they write goes into one temporary folder (kept if a test fails), and is
compared with outputs/reference at the end. Everything printed is in outputs/test.log.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from lib.core.arithmetic import in_force, processor
from lib.core.expected import expected_minutes
from lib.core.notebooks import find_studies

ROOT = Path(__file__).resolve().parents[1]
LOG = ROOT / "outputs" / "test.log"
# The lane of test-more has no notebooks and no doctests.
_PLAIN = "addopts=--import-mode=importlib -p lib.same_numbers -q --strict-markers"
MORE = ("-p", "no:nbval", "-o", _PLAIN)
LONGEST = ("geco", "cebab", "implicit_bias")  # first, so that no core waits at the end
PAGES = "outputs/reference"  # results at scale cpu, drawn from committed tables
TABLES = "tests/test_reference.py"
GROUPS, SLOW = 3, 5  # of unit tests, quick and slow: each is a process, which imports torch
NOTHING_TO_RUN = 5  # pytest's exit status where every test of a part was deselected


@dataclass
class Part:
    """One pytest: what it is called, what it is given, and what came of it."""

    name: str
    arguments: list[str]
    output: str = ""
    status: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def run(self, folder: str) -> Part:
        """Run it; the output is kept for the log, and what it and its children took."""
        started = time.monotonic()
        command = [sys.executable, "-m", "pytest", "--outputs", folder, *self.arguments]
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            self.output = said.read()
        self.seconds, self.cpu_seconds = time.monotonic() - started, used.ru_utime + used.ru_stime
        self.status = 0 if process.returncode == NOTHING_TO_RUN else process.returncode
        return self

    @property
    def summary(self) -> str:
        """pytest's closing line, `12 passed, 1 skipped in 3.4s`."""
        lines = re.findall(r"^\d+ .* in [\d.]+s.*$", self.output, flags=re.M)
        return lines[-1] if lines else "did not run"

    def count(self, what: str) -> int:
        """How many tests `passed`, `failed`, were `skipped` or ended in an `error`."""
        found = re.search(rf"(\d+) {what}", self.summary)
        return int(found[1]) if found else 0


def rooms() -> list[str]:
    """The folders of unit tests, one a room of the house, and one a study; without tests/more."""
    folders = sorted(path for path in (ROOT / "tests").iterdir() if path.is_dir())
    studies = sorted((ROOT / "tests" / "studies").iterdir())
    inner = [path for path in folders if path.name not in ("more", "studies")] + studies
    return [str(path) for path in inner if list(path.glob("test_*.py"))]


def parts(light: bool) -> list[Part]:
    """All parts, long ones first."""
    files = [str(f) for f in sorted((ROOT / "tests").glob("test_*.py")) if f != ROOT / TABLES]
    units = [*rooms(), "lib"]
    if light:
        return grouped("light tests", [*units, *files], 2)
    studies = sorted(find_studies(), key=lambda study: (study not in LONGEST, study))
    told = [f"notebooks/{name}" for name in (*studies, "00_start_here.ipynb")]
    notebooks = [Part(name, [name]) for name in told]
    unit_tests = grouped("unit tests", [*files, *units], GROUPS)
    return [*notebooks, *unit_tests, Part(PAGES, [PAGES])]


def parts_more() -> list[Part]:
    """The parts of make test-more, long ones first; tests/more holds nothing of make test."""
    site = [str(ROOT / "tests" / "more" / f"test_{name}.py") for name in ("site", "player")]
    extras = [str(f) for f in sorted((ROOT / "tests" / "more").glob("test_*.py"))]
    files = [str(f) for f in sorted((ROOT / "tests").glob("test_*.py"))]
    return [
        *grouped("extras", [f for f in extras if f not in site], 2),  # they wait for other programs
        *grouped("slow tests", [*files, *rooms()], SLOW),
        Part("site and player", site),
    ]


def grouped(name: str, units: list[str], n: int) -> list[Part]:
    """Folders and files of tests in n parts: a process for each would import torch each time.

    >>> [part.arguments for part in grouped("tests", ["a", "b", "c"], 2)]
    [['a', 'c'], ['b']]
    """
    return [Part(f"{name} {i}", units[i - 1 :: n]) for i in range(1, n + 1)]


def report(part: Part, log: Path) -> None:
    """One line a part, and what failed."""
    print(f"{part.name:<28} {part.summary}, {part.cpu_seconds:.0f} s of a core", flush=True)
    if part.status:
        print(part.output[-6000:], flush=True)
    with log.open("a") as file:
        file.write(f"== {part.name}\n{part.output}\n")


def run(jobs: int, folder: str, lane: str) -> list[Part]:
    """Run all parts, so many at once, and in the full lane the comparison of tables after them."""
    quick = "not slow and not more"
    marks = {"light": quick, "full": quick, "more": "slow or more"}
    given = ["-m", marks[lane], *(MORE if lane == "more" else ())]
    asked = parts_more() if lane == "more" else parts(lane == "light")
    waiting = [Part(part.name, [*given, *part.arguments]) for part in asked]
    with ThreadPoolExecutor(jobs) as pool:
        done = []
        for future in as_completed([pool.submit(part.run, folder) for part in waiting]):
            done.append(future.result())
            report(done[-1], LOG)
    if lane == "full":
        done.append(Part("tables", [TABLES]).run(folder))
        report(done[-1], LOG)
    return done


def main() -> int:
    """Announce, run, and sum up; the exit status is 0 if everything passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    lanes = parser.add_mutually_exclusive_group()
    lanes.add_argument("--light", action="store_true", help="unit tests that are not slow")
    lanes.add_argument("--more", action="store_true", help="slow tests, extras, browser")
    parser.add_argument("--outputs", help="keep what the notebooks write there")
    parser.add_argument(
        "--strict", action="store_true", help="fail on skips not in tests/skips.txt"
    )
    chosen = parser.parse_args()
    lane = "light" if chosen.light else "more" if chosen.more else "full"
    what = {
        "light": "light unit tests",
        "full": "light unit tests, every notebook, every table",
        "more": "slow unit tests, extras, browser, site, the papers' settings",
    }[lane]
    minutes = expected_minutes({"light": "check", "full": "test", "more": "test-more"}[lane])
    about = f"about {minutes / chosen.jobs:.0f} minutes on this machine; " if minutes else ""
    print(f"{what}: {about}log: outputs/test.log", flush=True)
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("")
    folder = chosen.outputs or tempfile.mkdtemp(prefix="touchstone-test-")
    started = time.monotonic()
    done = run(chosen.jobs, folder, lane)
    reasons = skips(done)
    allowed = (ROOT / "tests" / "skips.txt").read_text().splitlines()
    unexpected = sorted(set(reasons) - set(allowed)) if chosen.strict else []
    failed = bool(unexpected) or any(part.status for part in done)
    _sum_up(done, reasons, time.monotonic() - started)
    for reason in unexpected:
        print(f"this skip is not in tests/skips.txt: {reason}")
    if failed:
        print(f"what the notebooks wrote is kept in {folder}")
    elif not chosen.outputs:
        shutil.rmtree(folder, ignore_errors=True)
    return int(failed)


def critical_path(done: list[Part]) -> list[Part]:
    """What no further core would shorten: the longest part, and the tables that wait for all.

    >>> [part.name for part in critical_path([Part("a", [], seconds=3), Part("b", [], seconds=5)])]
    ['b']
    """
    last = [part for part in done if part.arguments == [TABLES]]
    beside = [part for part in done if part not in last]
    return [*sorted(beside, key=lambda part: part.seconds)[-1:], *last]


def skips(done: list[Part]) -> Counter[str]:
    """How many tests were skipped for which reason."""
    reasons: Counter[str] = Counter()
    for part in done:
        for count, reason in re.findall(r"^skipped (\d+): (.*)$", part.output, flags=re.M):
            reasons[reason] += int(count)
    return reasons


def _sum_up(done: list[Part], reasons: Counter[str], seconds: float) -> None:
    for reason, count in reasons.most_common():
        print(f"skipped {count}: {reason}")
    path = critical_path(done)
    print(f"{seconds / 60:.1f} minutes, {sum(part.cpu_seconds for part in done):.0f} s of a core")
    print(f"critical path: {sum(part.seconds for part in path) / 60:.1f} minutes, ", end="")
    print(", then ".join(f"{part.name} {part.seconds / 60:.1f}" for part in path))
    print(f"on {processor()}, arithmetic: {in_force()}")
    passed, failed, skipped = (
        sum(part.count(what) for part in done) for what in ("passed", "failed", "skipped")
    )
    failed += sum(part.count("error") for part in done)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    sys.exit(main())
