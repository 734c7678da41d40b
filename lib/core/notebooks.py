"""Notebooks as files: the `.py` is the source (jupytext, percent format), the `.ipynb` its executed copy."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import jupytext
from nbformat import NotebookNode

from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT

KEPT_METADATA = ("kernelspec", "language_info")


def find_notebooks(study: str, root: Path = ROOT) -> list[Path]:
    """The sources of a study's stages in order, `notebooks/<study>/NN_noun.py`."""
    return sorted((root / "notebooks" / study).glob("[0-9][0-9]_*.py"))


def read_notebook(py_path: Path | str) -> NotebookNode:
    """The notebook that a `.py` describes, with the same cell ids at every reading."""
    notebook = jupytext.read(py_path, fmt="py:percent")
    set_cell_ids(notebook)
    return notebook


def parameters_source(py_path: Path | str) -> str:
    """The code of the one cell that is tagged `parameters`."""
    cells = [c for c in read_notebook(py_path).cells if "parameters" in c.metadata.get("tags", [])]
    if len(cells) != 1:
        raise TouchstoneError(
            f'{py_path} has {len(cells)} cells tagged "parameters"; it needs exactly one'
        )
    return str(cells[0].source)


def set_cell_ids(notebook: NotebookNode) -> None:
    """Give every cell an id made of its source, so that an unchanged cell keeps its id in git."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        text = f"{cell.cell_type}\n{cell.source}"
        seen[text] += 1
        cell["id"] = hashlib.sha256(f"{seen[text]}\n{text}".encode()).hexdigest()[:8]
    notebook.nbformat, notebook.nbformat_minor = (
        4,
        max(5, notebook.nbformat_minor),
    )  # ids exist since 4.5


def strip_volatile(notebook: NotebookNode) -> None:
    """Remove what differs between two equal runs: times, notes of papermill and jupytext, what was folded.

    Sources, tags, outputs and execution counts stay.
    """
    for key in set(notebook.metadata) - set(KEPT_METADATA):
        del notebook.metadata[key]
    notebook.metadata.get("language_info", {}).pop("version", None)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags")
        cell["metadata"] = NotebookNode(tags=tags) if tags else NotebookNode()
    set_cell_ids(notebook)


def fold_bars(notebook: NotebookNode) -> None:
    """Reduce progress bars in the stderr of each cell to nothing, and keep every other line of it."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr" and "\r" in output.text:
                lines = (line.rpartition("\r")[2].rstrip() for line in output.text.split("\n"))
                output["text"] = "\n".join(line for line in lines if line)
        if "outputs" in cell:
            cell["outputs"] = [o for o in cell.outputs if o.get("text") != ""]
