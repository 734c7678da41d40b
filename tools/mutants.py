"""Do the tests notice? One small change of a module at a time, and its own unit tests against it.

    make mutants                            # what is not in tests/mutants.csv yet
    make mutants MODULES="lib/stats/*.py"   # of some modules
    python tools/mutants.py --list          # how many there are, and how many were run so far

A change (*mutant*) turns an operator, a comparison, a number, a sign, a flag or a condition
(tools/changes.py). Tests that pass on a mutant do not see what the line is for: then either a test
is missing, or the mutant computes the same, and tests/mutants.csv says why in its column `why`,
which is written by hand.

The tests are those that mirror the module (lib/stats/claims.py: tests/stats/test_claims.py), with
its doctests; `_TESTS` names those that stand elsewhere. They run in a copy of the tree, in forks of
a process that has loaded torch, pandas and the like, so that a mutant takes about a second. A line
of the table is kept by its content, whatever its number: a mutant that was killed is not run again
while its line stands in the same function; one that lived is, for new tests are written against it.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from changes import mutants

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "mutants.csv"
MODULES = (
    "lib/studies/implicit_bias/weat.py",
    "lib/stats/*.py",
    "lib/attribution/regression.py",
    "lib/attribution/swaps.py",
    "lib/metrics/*.py",
    "lib/studies/geco/floors.py",
    "lib/studies/geco/forms.py",
    "lib/studies/geco/paper_numbers.py",
    "lib/studies/geco/summaries.py",
    "lib/studies/cebab/pairs.py",
    "lib/studies/lm_saliency/lines.py",
    "lib/studies/lm_saliency/released.py",
    "lib/core/units.py",
)
_TESTS = {  # beside or in place of the mirror
    "lib/core/units.py": ["tests/core/test_units.py", "tests/core/test_made_by.py"],
    "lib/stats/contrasts.py": ["tests/stats/test_claims.py"],
    "lib/metrics/agreement.py": [
        "tests/metrics/test_agreement.py",
        "tests/attribution/test_swaps.py",
    ],
    "lib/metrics/deletion.py": ["tests/metrics/test_faithfulness.py"],
    "lib/metrics/sensitivity.py": ["tests/metrics/test_faithfulness.py"],
}
COLUMNS = ["module", "line", "where", "before", "after", "nth", "verdict", "why"]
# Seconds that a mutant may take at least, and how often what the tests take unchanged.
_LEAST, _TIMES = 10, 5


def tests_of(module: str) -> list[str]:
    """The test files that mirror a module; none where it has no tests of its own."""
    path = Path(module)
    mirror = Path("tests", *path.parent.parts[1:], f"test_{path.stem}.py").as_posix()
    return [name for name in _TESTS.get(module, [mirror]) if (ROOT / name).is_file()]


def read_table(path: Path = TABLE) -> list[dict[str, str]]:
    """The lines of tests/mutants.csv."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_table(lines: list[dict[str, str]], path: Path = TABLE) -> None:
    """Write tests/mutants.csv whole, in the order of modules and lines."""
    lines = sorted(lines, key=lambda line: (line["module"], int(line["line"])))
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    part.replace(path)


def key_of(line: dict[str, str]) -> tuple[str, ...]:
    """What a line is found by again: `Mutant.key`."""
    return tuple(line[name] for name in COLUMNS[2:6])


def keep(line: dict[str, str], path: Path = TABLE) -> None:
    """Put a line into the table as it lies there now: a reason may have been written meanwhile."""
    here = [
        x for x in read_table(path) if (x["module"], key_of(x)) == (line["module"], key_of(line))
    ]
    others = [x for x in read_table(path) if x not in here]
    if here and here[0]["verdict"] == line["verdict"] == "survived":
        line["why"] = here[0]["why"]
    write_table([*others, line], path)


def _copy_of_the_tree(folder: Path) -> Path:
    """What git keeps, without results and executed notebooks: nothing a mutant writes is ours."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in names:
        if name and not name.startswith("outputs/") and not name.endswith(".ipynb"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


class _Failures:
    """A plugin of pytest: the first test that fails."""

    first = ""

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed and not self.first:
            self.first = report.nodeid.rpartition("/")[2]

    def pytest_collectreport(self, report) -> None:
        if report.failed and not self.first:
            self.first = "import"


def _run(tests: list[str], module: str) -> str:
    """The first test that fails, in this process; empty where all pass. Light tests come first."""
    import pytest

    how = "-q -x -p no:nbval -p no:cacheprovider --doctest-modules --import-mode=importlib".split()
    with open(os.devnull, "w") as null, redirect_stdout(null), redirect_stderr(null):
        for marks in ("not slow and not more", "slow and not more"):
            failures = _Failures()
            code = pytest.main(
                [*how, "-o", "addopts=", "-m", marks, *tests, module], plugins=[failures]
            )
            if code not in (0, 5):  # 5: no test has this mark
                return failures.first or f"pytest {int(code)}"
    return ""


def _own_modules(root: Path) -> list[str]:
    """Names of what was loaded from the copy: lib, tests, conftest, helpers of the tests."""
    return [
        name
        for name, module in sys.modules.items()
        if name != "__main__" and str(getattr(module, "__file__", "") or "").startswith(f"{root}/")
    ]


def _in_a_fork(root: Path, tests: list[str], module: str, seconds: int) -> str:
    """What kills a mutant that lies in the copy: a test, a time limit; empty where it lives."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        # Of processor time, for a busy machine is no reason to call a mutant killed.
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        sys.dont_write_bytecode = True
        for name in _own_modules(root):
            del sys.modules[name]
        answer = "died"
        try:
            answer = _run(tests, module) or "lives"
        finally:
            os.write(writing, answer.encode()[:4000])
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return "" if answer == "lives" else answer or "time limit"


def examine(
    root: Path, module: str, old: dict[tuple[str, ...], dict[str, str]]
) -> Iterator[dict[str, str]]:
    """The lines of one module's table, each as soon as its mutant was run."""
    path, tests = root / module, tests_of(module)
    data, begin = path.read_bytes(), time.process_time()
    if failed := _run(tests, module):  # loads what the forks then have
        sys.exit(f"{module}: {failed} fails on the module as it is; mend that first")
    seconds = int(_LEAST + _TIMES * (time.process_time() - begin))
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
    for mutant in mutants(data.decode()):
        line = old.get(mutant.key, {})
        if line.get("verdict") != "killed":
            path.write_bytes(mutant.of(data))
            killer = _in_a_fork(root, tests, module, seconds) if tests else ""
            verdict = ("killed", killer) if killer else ("survived", line.get("why", ""))
            line = dict(zip(("verdict", "why"), verdict))
        about = (module, mutant.line, *mutant.key, line["verdict"], line["why"])
        yield dict(zip(COLUMNS, map(str, about)))
    path.write_bytes(data)


def chosen_modules(patterns: Sequence[str] = MODULES) -> list[str]:
    """The modules that the patterns name, in that order."""
    paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    names = [path.relative_to(ROOT).as_posix() for path in paths if path.name != "__init__.py"]
    return list(dict.fromkeys(names))


def _load_the_copy(root: Path) -> None:
    """Work in the copy from here on, with the same examples of hypothesis for every mutant."""
    os.chdir(root)
    sys.path[:0] = map(str, (root, root / "tests/models_for_tests", root / "tests/browser"))
    import lib.same_numbers

    from hypothesis import Phase, settings

    # No time is spent on finding the smallest example.
    settings.register_profile(
        "mutants", phases=[Phase.explicit, Phase.generate], derandomize=True, database=None
    )
    settings.load_profile("mutants")


def _campaign(root: Path, module: str) -> None:
    """Bring one module's lines up to date; print its survivors without a reason."""
    old = {key_of(line): line for line in read_table() if line["module"] == module}
    done: list[dict[str, str]] = []
    begin = time.monotonic()
    for line in examine(root, module, old):
        done.append(line)
        keep(line)
    keys = set(map(key_of, done))  # lines that no longer stand there are gone
    write_table([x for x in read_table() if x["module"] != module or key_of(x) in keys])
    lived = [line for line in done if line["verdict"] == "survived"]
    open_ = [line for line in lived if not line["why"]]
    print(
        f"{module}: {len(done)} mutants, {len(done) - len(lived)} killed, {len(lived)} survived, "
        f"{len(open_)} without a reason ({time.monotonic() - begin:.0f} s)"
    )
    for x in open_:
        print(f"  {x['line']} {x['where']}: {x['before']}  ->  {x['after']}", flush=True)


def main() -> None:
    """Run what is missing; print the survivors without a reason."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="*", default=MODULES, help="paths, or patterns of paths")
    parser.add_argument("--list", action="store_true", help="count them, and those that were run")
    chosen = parser.parse_args()
    if chosen.list:
        known = Counter(line["module"] for line in read_table())
        for name in chosen_modules(chosen.modules):
            n = len(mutants((ROOT / name).read_text()))
            print(f"{n:5} of which run {known[name]:5}  {name}  {' '.join(tests_of(name))}")
        return
    with tempfile.TemporaryDirectory(prefix="touchstone-mutants-") as folder:
        root = _copy_of_the_tree(Path(folder).resolve())
        _load_the_copy(root)
        for module in chosen_modules(chosen.modules):
            _campaign(root, module)


if __name__ == "__main__":
    main()
