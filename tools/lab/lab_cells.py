"""From a source to the notebook that Lab shows, and back; nothing here needs JupyterLab.

Lab shows the reader's edition. The exercises of a source are put back when it saves.
"""

import platform
import re
from copy import deepcopy
from difflib import SequenceMatcher
from pathlib import Path

import jupytext
from ipykernel.kernelspec import get_kernel_dict
from nbformat import NotebookNode

from lib.core.files import write_atomic
from lib.core.notebooks import EXERCISE_TAGS, add_outputs, read_notebook, strip_volatile

Opcode = tuple[str, int, int, int, int]  # of difflib


def with_outputs(source: Path, executed: Path | None) -> NotebookNode:
    """The notebook of a source, with the outputs that equal cells have in an executed copy."""
    notebook = read_notebook(source)
    notebook.metadata.pop("jupytext", None)
    if executed is not None:
        add_outputs(notebook, executed)
    # What Lab itself writes once a kernel runs: what is only read then counts as unchanged.
    if "kernelspec" in notebook.metadata:
        notebook.metadata.kernelspec.display_name = get_kernel_dict()["display_name"]
    if "language_info" in notebook.metadata:
        notebook.metadata.language_info.version = platform.python_version()
    return notebook


def write_cells(source: Path, notebook: NotebookNode) -> None:
    """Write a notebook's cells into a source. What was not edited keeps its bytes, header too, and
    the exercises stay behind the cells that they follow.
    """
    old, new = read_notebook(source), deepcopy(notebook)
    while new.cells and not new.cells[-1].source.strip():
        new.cells.pop()  # Shift+Enter in the last cell adds an empty one
    before, after = _told(old), _told(new)
    if before == after:
        return
    strip_volatile(new)
    edits = SequenceMatcher(None, before, after, False).get_opcodes()
    for _, i, i_end, j, j_end in edits:
        for was, now in zip(old.cells[i:i_end], new.cells[j:j_end]):
            if "lines_to_next_cell" in was.metadata:  # the blank lines below a cell
                now.metadata["lines_to_next_cell"] = was.metadata["lines_to_next_cell"]
    _put_exercises_back(new, read_notebook(source, "source"), edits)
    text, written = source.read_text(), jupytext.writes(new, fmt="py:percent")
    write_atomic(source, text[: _first_cell(text)] + written[_first_cell(written) :])


def _put_exercises_back(notebook: NotebookNode, source: NotebookNode, edits: list[Opcode]) -> None:
    """Insert, in place, the exercises of a source into the edited edition that has none."""
    behind: dict[int, list[NotebookNode]] = {}  # by how many of the other cells stand before them
    n_before = 0
    for cell in source.cells:
        if EXERCISE_TAGS & set(cell.metadata.get("tags", [])):
            behind.setdefault(n_before, []).append(cell)
        else:
            n_before += 1
    for n_before, cells in sorted(behind.items(), reverse=True):
        at = _moved(n_before, edits)
        notebook.cells[at:at] = cells


def _moved(n_before: int, edits: list[Opcode]) -> int:
    """How many cells of the edited notebook stand before what had `n_before` cells before it."""
    for _, i, i_end, j, j_end in edits:
        if i < n_before <= i_end:  # the last of them is in this block
            return j_end if n_before == i_end else min(j + n_before - i, j_end)
    return 0


def _told(notebook: NotebookNode) -> list[tuple[str, ...]]:
    """What a source says of each cell: kind, text, tags."""
    return [
        (cell.cell_type, cell.source.rstrip(), *cell.metadata.get("tags", []))
        for cell in notebook.cells
    ]


def _first_cell(text: str) -> int:
    """Where the first cell of a source begins; the end, where there is none."""
    found = re.search(r"^# %%", text, flags=re.M)
    return found.start() if found else len(text)
