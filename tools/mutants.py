"""Do the tests notice? One small change of a module at a time, and its own unit tests against it.

    make mutants                            # what is not in tests/mutants.csv yet
    make mutants MODULES="lib/stats/*.py"   # of some modules
    python tools/mutants.py --list          # how many there are, and how many were run so far

A change (*mutant*) turns an operator, a comparison, a number, a sign, a flag or a condition, and
swaps min and max. Tests that pass on a mutant do not see what the line is for: then either a test
is missing, or the mutant computes the same, and tests/mutants.csv says why in its column `why`,
which is written by hand.

The tests are those that mirror the module (lib/stats/claims.py: tests/stats/test_claims.py), with
its doctests; `_TESTS` names those that stand elsewhere. They run in a copy of the tree, in forks of
a process that has loaded torch, pandas and the like, so that a mutant takes about a second. A line
of the table is kept by its content, whatever its number: a mutant that was killed is not run again
while its line stands in the same function; one that lived is, for new tests are written against it.

Left alone: messages (`raise`, `print`), annotations, `strict=` of zip, which only says once more
that two lists are of one length, and `frozen=` of dataclasses.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "mutants.csv"
MODULES = (
    "lib/stats/*.py",
    "lib/metrics/*.py",
    "lib/core/units.py",
    "lib/attribution/regression.py",
    "lib/attribution/swaps.py",
    "lib/studies/implicit_bias/weat.py",
)
_TESTS = {  # beside or in place of the mirror
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
_SWAPS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.RShift: (">>", "<<"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
_PAIRS = ["min max", "amin amax", "nanmin nanmax", "argmin argmax", "minimum maximum", "any all"]
_NAMES = {a: b for pair in _PAIRS for a, b in (pair.split(), pair.split()[::-1])}
_TEXTS = {"greater": "less", "mean": "median", "min": "max"}
_TEXTS |= {b: a for a, b in _TEXTS.items()}


class Mutant(NamedTuple):
    """One change of a module: its place in the source (bytes), and how a reader finds it."""

    start: int
    stop: int
    text: str
    line: int
    where: str
    before: str
    after: str
    nth: int  # of equal changes of equal lines in one function

    @property
    def key(self) -> tuple[str, ...]:
        return self.where, self.before, self.after, str(self.nth)

    def of(self, source: bytes) -> bytes:
        """The module with the change."""
        return source[: self.start] + self.text.encode() + source[self.stop :]


def mutants(source: str) -> list[Mutant]:
    """Every change of a module's source that still compiles.

    >>> [m.after for m in mutants("def f(x):\\n    return x < 2\\n")]
    ['return x <= 2', 'return x < 3']
    """
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found, seen = [], Counter[tuple[str, str, str]]()
    for start, stop, text, where in sorted(_edits(ast.parse(source), data, starts)):
        row = next(i for i, begin in enumerate(starts) if begin > start)
        left, right = starts[row - 1], data.find(b"\n", stop)
        before = data[left:right].decode().strip()
        after = (data[left:start] + text.encode() + data[stop:right]).decode().strip()
        mutant = Mutant(start, stop, text, row, where, before, after, seen[where, before, after])
        with suppress(SyntaxError):
            compile(mutant.of(data), "mutant", "exec")
            seen[where, before, after] += 1
            found.append(mutant)
    return found


def _edits(tree: ast.Module, data: bytes, starts: list[int]) -> Iterator[tuple[int, int, str, str]]:
    """Where to change what into what, and in which function or class."""

    def at(node: ast.AST, end: bool = False) -> int:
        line, column = (
            (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
        )
        return starts[line - 1] + column

    def between(left: ast.AST, right: ast.AST, operator: type) -> Iterator[tuple[int, int, str]]:
        old, new = _SWAPS.get(operator, ("", ""))
        start = at(left, end=True)
        gap = re.sub(rb"#[^\n]*", lambda c: b" " * len(c[0]), data[start : at(right)])
        if old and (place := gap.find(old.encode())) >= 0:
            yield start + place, start + place + len(old), new

    def of_node(node: ast.AST) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.BinOp(left, op, right):
                yield from between(left, right, type(op))
            case ast.AugAssign(target, op, value):
                yield from between(target, value, type(op))
            case ast.BoolOp(op, values):
                for left, right in zip(values, values[1:]):
                    yield from between(left, right, type(op))
            case ast.Compare(first, ops, others):
                for left, op, right in zip([first, *others], ops, others):
                    yield from between(left, right, type(op))
            case ast.UnaryOp(_, operand):
                yield at(node), at(operand), ""
            case ast.Constant(bool(value)):
                yield at(node), at(node, end=True), str(not value)
            case ast.Constant(int(value)):
                yield at(node), at(node, end=True), str(value + 1)
            case ast.Constant(float(value)):  # a guard such as 1e-300 grows to 1, a share doubles
                more = value * 2 if abs(value) > 1e-6 else value + 1
                yield at(node), at(node, end=True), repr(more)
            case ast.Constant(str(value)) if value in _TEXTS:
                yield at(node), at(node, end=True), f'"{_TEXTS[value]}"'
            case ast.Name(name) if name in _NAMES:
                yield at(node), at(node, end=True), _NAMES[name]
            case ast.Attribute(_, name) if name in _NAMES:
                yield at(node, end=True) - len(name), at(node, end=True), _NAMES[name]
        tests = [node.test] if isinstance(node, ast.If | ast.IfExp | ast.While) else []
        for test in [*tests, *getattr(node, "ifs", [])]:
            if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
                old = data[at(test) : at(test, end=True)].decode()
                yield at(test), at(test, end=True), f"(not ({old}))"

    def visit(node: ast.AST, where: str) -> Iterator[tuple[int, int, str, str]]:
        if isinstance(node, ast.Raise | ast.arg) or _is_left_alone(node):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            where = f"{where}.{node.name}".lstrip(".")
        for start, stop, text in of_node(node):
            yield start, stop, text, where
        for field, part in ast.iter_fields(node):
            if field not in ("annotation", "returns", "format_spec"):
                for child in part if isinstance(part, list) else [part]:
                    if isinstance(child, ast.AST):
                        yield from visit(child, where)

    return visit(tree, "")


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.keyword("strict" | "frozen"):
            return True
        case ast.Expr(ast.Constant()):  # a docstring
            return True
        case ast.Call(ast.Name("print")):
            return True
        case ast.Assign([ast.Name("__all__")]):
            return True
    return False


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


def main() -> None:
    """Run what is missing; print the survivors without a reason."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="*", default=MODULES, help="paths, or patterns of paths")
    parser.add_argument("--list", action="store_true", help="count them, and those that were run")
    chosen = parser.parse_args()
    modules = sorted({p.relative_to(ROOT).as_posix() for m in chosen.modules for p in ROOT.glob(m)})
    modules = [name for name in modules if not name.endswith("__init__.py")]
    if chosen.list:
        known = Counter(line["module"] for line in read_table())
        for name in modules:
            n = len(mutants((ROOT / name).read_text()))
            print(f"{n:5} of which run {known[name]:5}  {name}  {' '.join(tests_of(name))}")
        return
    with tempfile.TemporaryDirectory(prefix="touchstone-mutants-") as folder:
        root = _copy_of_the_tree(Path(folder).resolve())
        os.chdir(root)
        sys.path[:0] = [
            str(root),
            *(str(root / "tests" / p) for p in ("models_for_tests", "browser")),
        ]
        import lib.same_numbers

        from hypothesis import Phase, settings

        # The same examples for every mutant, and no time spent on finding the smallest.
        settings.register_profile(
            "mutants", phases=[Phase.explicit, Phase.generate], derandomize=True, database=None
        )
        settings.load_profile("mutants")
        for module in modules:
            lines = read_table()
            old = {tuple(x[c] for c in COLUMNS[2:6]): x for x in lines if x["module"] == module}
            others = [x for x in lines if x["module"] != module]
            done: list[dict[str, str]] = []
            begin = time.monotonic()
            for line in examine(root, module, old):
                done.append(line)
                keys = {tuple(x[c] for c in COLUMNS[2:6]) for x in done}
                write_table(others + done + [x for key, x in old.items() if key not in keys])
            write_table(others + done)  # lines that no longer stand there are gone
            lived = [x for x in done if x["verdict"] == "survived"]
            open_ = [x for x in lived if not x["why"]]
            print(
                f"{module}: {len(done)} mutants, {len(done) - len(lived)} killed, {len(lived)} "
                f"survived, {len(open_)} without a reason ({time.monotonic() - begin:.0f} s)"
            )
            for x in open_:
                print(f"  {x['line']} {x['where']}: {x['before']}  ->  {x['after']}", flush=True)


if __name__ == "__main__":
    main()
