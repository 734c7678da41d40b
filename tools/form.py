"""Print the form figures of this repository beside their aims and the best seen elsewhere (make
form).

The aims are examples to live up to, not gates: this file always exits 0.
"""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import jupytext
import nbformat
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def triple(values: list[float]) -> str:
    return (
        f"{median(values):g} / {np.percentile(values, 90):g} / {max(values):g}" if values else "-"
    )


def share(flags: list[bool]) -> str:
    return f"{100 * sum(flags) / len(flags):.0f} %" if flags else "-"


def functions(path: Path) -> list[FUNCTION]:
    """All functions of a file, methods and nested ones included."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, FUNCTION)]


def is_typed(function: FUNCTION) -> bool:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    named = [argument for argument in arguments if argument.arg not in ("self", "cls")]
    return function.returns is not None and all(
        argument.annotation is not None for argument in named
    )


def notebook_rows() -> list[tuple[str, str, str, str]]:
    sources = sorted((ROOT / "notebooks").rglob("[0-9][0-9]_*.py"))
    lengths, introduced, followed, executed = [], [], [], []
    for source in sources:
        cells = jupytext.read(source).cells
        for i, cell in enumerate(cells):
            if cell.cell_type == "code":
                lengths.append(len([line for line in cell.source.splitlines() if line.strip()]))
                introduced.append(i > 0 and cells[i - 1].cell_type == "markdown")
                followed.append(i + 1 < len(cells) and cells[i + 1].cell_type == "markdown")
    copies = [
        path for path in (source.with_suffix(".ipynb") for source in sources) if path.is_file()
    ]
    for path in copies:
        executed += [
            cell.execution_count is not None
            for cell in nbformat.read(path, 4).cells
            if cell.cell_type == "code"
        ]
    sizes = [path.stat().st_size / 1000 for path in copies]
    between = f"{share(introduced)} / {share(followed)}"
    return [
        (
            "code cell lines: median / p90 / max",
            "<= 7 / 18 / 30",
            "3-9 / 10-28 / 68+",
            triple(lengths),
        ),
        ("code cells introduced / followed by prose", ">= 85 % / 80 %", "88 % / 88 %", between),
        ("cells executed (values compared by tests)", "100 %", "59 %", share(executed)),
        (
            "notebook file size, kB: median / p90 / max",
            "<= 250 / - / 500",
            "110 / - / 144",
            triple([round(s) for s in sizes]),
        ),
    ]


def lib_rows() -> list[tuple[str, str, str, str]]:
    files = sorted((ROOT / "lib").rglob("*.py"))
    found = [function for path in files for function in functions(path)]
    inner = {id(child) for outer in found for child in ast.walk(outer) if child is not outer}
    public = [f for f in found if not f.name.startswith("_") and id(f) not in inner]
    lines = [path.read_text().count("\n") for path in files]
    documented = share([bool(ast.get_docstring(f)) for f in public])
    typed = share([is_typed(f) for f in public])
    return [
        (
            "lib file lines: median / p90 / max",
            "<= 120 / - / 300",
            "77-110 / - / 700+",
            triple(lines),
        ),
        (
            "function lines: median / p90 / max",
            "<= 12 / - / 40",
            "6-15 / - / 94+",
            triple([f.end_lineno - f.lineno + 1 for f in found]),
        ),
        (
            "public functions documented / fully typed",
            "100 % / 100 %",
            "90 % / 76 %",
            f"{documented} / {typed}",
        ),
    ]


def main() -> None:
    rows = [("", "aim", "best seen elsewhere", "here"), *notebook_rows(), *lib_rows()]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    main()
