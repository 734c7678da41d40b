"""Print the form figures of this repository beside their aims, and why one is missed (make form).

The aims are examples to live up to, not gates: this file always exits 0.
"""

from __future__ import annotations

import ast
import csv
import io
import re
import tokenize
from statistics import median

import nbformat
import numpy as np
from edition import n_words

from lib.core.notebooks import find_sources, read_notebook
from lib.core.paths import ROOT

TIMES = ROOT / "outputs" / "reference" / "benchmarks" / "times.csv"
WALL, PROCESSOR = "wall_seconds", "cpu_seconds"
AIMS_OF_TIME = {  # minutes on two idle cores, and what they are minutes of
    "check": ("make check, minutes", 2.0, WALL),
    "test": ("make test, minutes", 15.0, WALL),
    "demo": ("make demo, minutes of processor time", 5.0, PROCESSOR),
}
Row = tuple[str, str, str]
# Why an aim is missed, by the start of its row. What is met needs no answer.
ANSWERS = {
    "make test": "every number is made anew, none is read from units: five trainings (stages 02) "
    "took 1,014 of 2,588 s of a core when CI last ran, and two cores need half of these at best",
    "sections": "one idea a section, and in a stage 05 one figure of the paper",
    "cells": "definition, equation, code and check are cells of their own",
    "code lines over 88": "settings stand on one line with their unit and symbol",
    "lines of a code cell": "at 88 columns a formatter writes a call over many lines",
    "pictures": "schematics stand in the text and are not counted here",
    "lines of a file": "the median file has more docstring than code",
    "lines of a function": "docstrings count, and explain each argument; in brackets without them",
    "statements": "what is left is checks of bad input, docstrings and data with one use each",
    "comments": "steps are named by functions and variables",
}


def main() -> None:
    """Print all rows: what, aim, here, and where an aim is missed, why."""
    rows = [*time_rows(), *notebook_rows(), *lib_rows()]
    answered = [(*row, "met" if is_met(*row[1:]) else answer(row[0])) for row in rows]
    lines = [("", "aim", "here", "met, or why not"), *answered]
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())


def is_met(aim: str, here: str) -> bool:
    """Whether every value keeps its aim; what stands in brackets is not compared.

    >>> is_met("<= 14 / 50", "11 / 58"), is_met("3 to 6", "3.1"), is_met(">= 2", "1 / 3")
    (False, True, False)
    """
    aims, values = (
        [float(n) for n in re.findall(r"\d+(?:\.\d+)?", text.partition("(")[0])]
        for text in (aim, here)
    )
    if " to " in aim:
        return aims[0] <= values[0] <= aims[1]
    pairs = zip(values, aims if len(aims) > 1 else aims * len(values))
    return bool(values) and all(v <= a if "<=" in aim else v >= a for v, a in pairs)


def answer(title: str) -> str:
    """Why a row misses its aim."""
    return next((why for start, why in ANSWERS.items() if title.startswith(start)), "no answer yet")


def time_rows() -> list[Row]:
    """Times as they were last measured (outputs/reference/benchmarks/times.csv)."""
    with TIMES.open(newline="") as file:
        measured = {row["what"]: row for row in csv.DictReader(file)}
    rows = []
    for what, (title, aim, unit) in AIMS_OF_TIME.items():
        here = "not measured"
        if what in measured:
            wall, cpu = (float(measured[what][name]) / 60 for name in (WALL, PROCESSOR))
            here = f"{wall:.1f} ({cpu:.1f} of processor time)"
            if unit == PROCESSOR:
                here = f"{cpu:.1f} ({wall:.1f} of wall time)"
        rows.append((title, f"<= {aim:g}", here))
    return rows


def notebook_rows() -> list[Row]:
    """Words, sections, cells, lines, pictures and sizes of the notebooks."""
    sources = find_sources()
    words, sections, cells, lines, wide, pictures, executed, sizes = ([] for _ in range(8))
    for source in sources:
        notebook = read_notebook(source).cells
        prose = "\n".join(cell.source for cell in notebook if cell.cell_type == "markdown")
        code = [cell.source.splitlines() for cell in notebook if cell.cell_type == "code"]
        words.append(n_words(prose))
        sections.append(len(re.findall(r"^## ", prose, flags=re.M)))
        cells.append(len(notebook))
        lines += [len([line for line in cell if line.strip()]) for cell in code]
        wide += [len(line) > 88 for cell in code for line in cell]
        copy = nbformat.read(source.with_suffix(".ipynb"), 4).cells
        outputs = [o for cell in copy for o in cell.get("outputs", [])]
        pictures.append(sum("image/png" in o.get("data", {}) for o in outputs))
        executed += [c.execution_count is not None for c in copy if c.cell_type == "code"]
        sizes.append(round(source.with_suffix(".ipynb").stat().st_size / 1000))
    return [
        ("words a notebook: median / max", "<= 1800", spread(words)),
        ("sections a notebook: median / max", "<= 12", spread(sections)),
        ("cells a notebook: median / max", "<= 30", spread(cells)),
        ("code lines over 88 characters in notebooks", "<= 1 %", share(wide)),
        ("lines of a code cell: median / p90 / max", "<= 9 / 22 / 36", triple(lines)),
        ("cells executed, values compared by tests", "100 %", share(executed)),
        ("pictures a notebook: fewest / median", ">= 2", f"{min(pictures)} / {median(pictures):g}"),
        ("notebook file, kB: median / max", "<= 250 / 500", spread(sizes)),
    ]


def lib_rows() -> list[Row]:
    """Lines, statements, documentation and comments of lib."""
    files = sorted((ROOT / "lib").rglob("*.py"))
    texts = {path: path.read_text() for path in files}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    functions = [f for tree in trees.values() for f in ast.walk(tree) if is_function(f)]
    inner = {id(g) for f in functions for g in ast.walk(f) if g is not f}
    public = [f for f in functions if f.name[0] != "_" and id(f) not in inner]
    statements = {
        path: sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
        for path, tree in trees.items()
    }
    shared = sum(n for path, n in statements.items() if "studies" not in path.parts)
    all_lines = [line for text in texts.values() for line in text.splitlines()]
    lengths = [(f.end_lineno or f.lineno) - f.lineno + 1 for f in functions]
    undocumented = [n - n_lines_of_docstring(f) for n, f in zip(lengths, functions, strict=True)]
    comments = sum(n_comments(text) for text in texts.values())
    documented, typed = (share([test(f) for f in public]) for test in (ast.get_docstring, is_typed))
    return [
        (
            "code lines over 100 characters in lib",
            "<= 1 %",
            share([len(x) > 100 for x in all_lines]),
        ),
        (
            "lines of a file of lib: median / max",
            "<= 140 / 350",
            spread([len(text.splitlines()) for text in texts.values()]),
        ),
        (
            "lines of a function: median / max",
            "<= 14 / 50",
            f"{spread(lengths)} (without docstrings {spread(undocumented)})",
        ),
        (
            "statements of lib / of its shared rooms",
            "<= 10500 / 7500",
            f"{sum(statements.values())} / {shared}",
        ),
        ("public functions documented / typed", "100 % / 100 %", f"{documented} / {typed}"),
        ("comments a 100 lines of lib", "3 to 6", f"{100 * comments / len(all_lines):.1f}"),
    ]


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def is_typed(function: ast.FunctionDef) -> bool:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    named = [argument for argument in arguments if argument.arg not in ("self", "cls")]
    return function.returns is not None and all(
        argument.annotation is not None for argument in named
    )


def n_lines_of_docstring(function: ast.FunctionDef) -> int:
    """How many lines of a function its docstring takes, quotes included."""
    first = function.body[0]
    return (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(function) else 0


def n_comments(text: str) -> int:
    """Comments of a source, beside code or on lines of their own."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def spread(values: list[int]) -> str:
    return f"{median(values):g} / {max(values):g}"


def triple(values: list[int]) -> str:
    return f"{median(values):g} / {np.percentile(values, 90):g} / {max(values):g}"


def share(flags: list) -> str:
    return f"{100 * sum(map(bool, flags)) / len(flags):.1f} %"


if __name__ == "__main__":
    main()
