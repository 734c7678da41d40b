"""The exercises as pages to read: tasks, holes and folded checks, and no solutions.

    python tools/course.py                 renew docs/course/exercises

Who has a browser and no installation reads them on GitHub and on the site. They are committed,
because GitHub shows what is committed and nothing else; a test holds them to the sources. A task
may speak of a table "above", so the cells that come with the tasks are run, on committed tables.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from lib.core.files import write_atomic
from lib.core.notebooks import EXERCISE_TAGS, find_sources, read_notebook
from lib.core.paths import ROOT, reference_dir

PAGES = ROOT / "docs" / "course" / "exercises"
MOST_ROWS = 15
_ABOUT = (
    "# Exercises: {title}\n\n"
    "<!-- Written by tools/course.py from {sources}. -->\n\n"
    "[The course](../README.md) · pages: {others}\n\n"
    "This is what students get, to be read: each task, its hole (the three dots), and its check, "
    "folded. Opening a check is like turning to the solutions. The solutions are in the teacher's "
    "edition, and the exercises are done in the student's: [where both are]"
    "(../README.md#what-you-get)."
)
_LINK = re.compile(r"(\[[^\]]*\]\()(?!https?://|#|mailto:)([^)#\s]+)")
_READ = re.compile(r"read_committed\(\s*((?:\"\w*\",?\s*){4})\)")


def pages() -> dict[Path, str]:
    """Every page of exercises, as it should be."""
    rows = {"start_here": [find_sources()[0]]}
    for source in find_sources()[1:]:
        rows.setdefault(source.parent.name, []).append(source)
    found = {}
    for name, sources in rows.items():
        others = " · ".join(f"[{_title(n)}]({n}.md)" for n in rows if n != name)
        parts = [part for source in sources for part in _of_notebook(source)]
        where = os.path.relpath(sources[0], ROOT)
        named = where if len(sources) == 1 else f"{os.path.dirname(where)}/*.py"
        about = _ABOUT.format(title=_title(name), sources=named, others=others)
        found[PAGES / f"{name}.md"] = "\n\n".join([about, *parts]) + "\n"
    return found


def _title(name: str) -> str:
    return "start here" if name == "start_here" else name


def _of_notebook(source: Path) -> Iterator[str]:
    """The parts of a page that are about one notebook; none if it has no exercises."""
    cells = read_notebook(source, "student").cells
    title = re.search(r"^# (.*)", cells[0].source, re.M)
    names: dict[str, Any] = {}
    n_tasks = 0
    for cell in cells:
        tag = next(iter(EXERCISE_TAGS & set(cell.metadata.get("tags", []))), "")
        if not tag:
            continue
        if "## Exercises" in cell.source:  # its first sentences stand above
            heading = source.stem.replace("_", " ")
            way = os.path.relpath(source.with_suffix(".ipynb"), PAGES)
            assert title is not None
            yield f"## {heading}\n\n[{title[1]}]({way})"
        elif cell.cell_type == "markdown":
            n_tasks += 1
            yield _LINK.sub(lambda m: m[1] + _moved(m[2], source), cell.source)
        elif tag == "check":
            yield _folded("The check", cell.source)
        elif tag == "hole":
            yield _fenced(cell.source)
        else:
            first = n_tasks == 0
            yield _folded("The first cell", cell.source) if first else _fenced(cell.source)
            if shown := _shown(cell.source, names):
                yield shown


def _moved(target: str, source: Path) -> str:
    """The address of a link of a notebook, from the pages."""
    return os.path.relpath((source.parent / target).resolve(), PAGES)


def _fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def _folded(what: str, code: str) -> str:
    return f"<details><summary>{what}</summary>\n\n{_fenced(code)}\n\n</details>"


def _shown(code: str, names: dict[str, Any]) -> str:
    """Run a cell, and say what it shows: what it prints, its last value, and the files it read."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    said, value = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "exercise", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "exercise", "eval"), names)
    parts = [f"```text\n{said.getvalue().rstrip()}\n```"] if said.getvalue() else []
    parts += [_table(value)] if value is not None else []
    for match in _READ.finditer(code):
        study, scale, stage, name = re.findall(r'"(\w*)"', match[1])
        file = reference_dir(study, scale) / stage / f"{name}.csv"
        parts.append(f"From [{file.name}]({os.path.relpath(file, PAGES)}).")
    return "\n\n".join(parts)


def _table(value: pd.DataFrame | pd.Series) -> str:
    """A table in Markdown: its names if it has any, and its first rows."""
    frame = value.to_frame() if isinstance(value, pd.Series) else value
    named = frame.index.name or frame.columns.name  # `in_words` names the rows over the columns
    if isinstance(value, pd.Series) or named or frame.index.dtype == object:
        frame = frame.reset_index(names=named or "")
    lines = [[str(name) for name in frame.columns], ["---"] * len(frame.columns)]
    for row in frame.head(MOST_ROWS).itertuples(index=False):
        lines.append(
            ["-" if pd.isna(x) else f"{x + 0:g}" if isinstance(x, float) else str(x) for x in row]
        )
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    left_out = len(frame) - MOST_ROWS
    return table if left_out <= 0 else f"{table}\n\n{left_out} more rows are in the file."


def main() -> int:
    """Write the pages anew."""
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
        print(f"{path.relative_to(ROOT)}: {len(text) // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
