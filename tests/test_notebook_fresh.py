"""Each committed .ipynb is its .py, executed from top to bottom at its defaults. nbval alone would
pass an empty one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest

from lib.core.notebooks import find_sources, read_notebook
from lib.core.paths import ROOT, reference_dir

SOURCES = find_sources()
pytestmark = pytest.mark.parametrize(
    "source", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "notebooks"))
)


def executed(source: Path) -> nbformat.NotebookNode:
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


def test_the_cells_are_those_of_the_source(source: Path) -> None:
    def told(cells: list) -> list[tuple]:
        return [(cell.cell_type, cell.source, cell.metadata.get("tags", [])) for cell in cells]

    assert told(executed(source).cells) == told(read_notebook(source).cells), "run `make execute`"


def test_every_code_cell_ran_in_order_and_said_nothing_on_stderr(source: Path) -> None:
    code = [cell for cell in executed(source).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]


def test_nothing_volatile_is_stored(source: Path) -> None:
    notebook = executed(source)
    assert "papermill" not in notebook.metadata
    assert not [cell for cell in notebook.cells if set(cell.metadata) - {"tags"}]
    text = source.with_suffix(".ipynb").read_text()
    assert len(text) <= 500_000
    assert not re.search(r"(?<![\w.])/(home|root|tmp|work|Users)/", text)
    assert "image/svg+xml" not in text and not json.loads(text)["metadata"].get("widgets")


def test_tables_that_nbval_leaves_out_are_in_the_reference(source: Path) -> None:
    study = source.parent.name if source.parent.name != "notebooks" else "start_here"
    folder = (
        reference_dir(study, "small") / source.stem
        if study != "start_here"
        else reference_dir(study, "")
    )
    for cell in executed(source).cells:
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            for name in re.findall(r"stage\.table\(\s*\"(\w+)\"", cell.source):
                assert (folder / f"{name}.csv").is_file(), f"{folder.name}/{name}.csv"
