"""Run the notebooks at their defaults; the executed copy goes beside its source (make execute).

    python tools/execute.py                       all of them, in order
    python tools/execute.py geco/04_metrics ...   some
    python tools/execute.py --prose [...]         only write new text cells; nothing runs

No parameters are injected, and times and paths are removed, so that an unchanged notebook gives an
unchanged file. What the stages compute goes to the usual output root; `make reference` then vouches
for it.
"""

from __future__ import annotations

import base64
import io
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image

from lib.core.files import write_atomic
from lib.core.notebooks import add_outputs, find_sources, read_notebook, strip_volatile
from lib.core.paths import ROOT

NOTEBOOKS = ROOT / "notebooks"
LONGEST_CELL = 900  # seconds


def execute(source: Path) -> None:
    """Run one notebook in a fresh kernel; nothing is written if a cell fails."""
    notebook = read_notebook(source)
    run_cells(notebook, str(source.relative_to(ROOT)))
    strip_volatile(notebook)
    write_atomic(source.with_suffix(".ipynb"), nbformat.writes(notebook) + "\n")


def renew_prose(source: Path) -> None:
    """Write a source's text cells into its executed copy, whose outputs stay.

    Raises:
        SystemExit: a code cell is another than the one that ran, so the notebook has to run.
    """
    notebook, copy = read_notebook(source), source.with_suffix(".ipynb")
    add_outputs(notebook, copy)
    ran = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    if ran != list(range(1, len(ran) + 1)):
        raise SystemExit(f"{source.relative_to(ROOT)}: a code cell changed; run without --prose")
    strip_volatile(notebook)
    write_atomic(copy, nbformat.writes(notebook) + "\n")


def run_cells(notebook: nbformat.NotebookNode, name: str) -> None:
    """Execute a notebook in place, and make its pictures small.

    Raises:
        SystemExit: a cell fails; the message names the notebook, and nothing has been written.
    """
    quiet = [
        "--IPKernelApp.log_level=CRITICAL"
    ]  # it warns at every start that it talks over local TCP
    client = NotebookClient(
        notebook,
        timeout=LONGEST_CELL,
        kernel_name="python3",
        extra_arguments=quiet,
        resources={"metadata": {"path": str(ROOT)}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise SystemExit(f"{name} failed; its committed copy is as it was.\n{error}") from None
    shrink_pictures(notebook)


def shrink_pictures(notebook: nbformat.NotebookNode) -> None:
    """Store pictures with a palette of 256 colours, as stages do: with fewer, the violet of words
    turned grey beside many oranges.
    """
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "image/png" in output.get("data", {}):
            picture = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))).convert(
                "RGB"
            )
            small = io.BytesIO()
            picture.quantize(256).save(small, "png", optimize=True)
            output.data["image/png"] = base64.b64encode(small.getvalue()).decode()


def main(names: list[str]) -> None:
    is_prose = "--prose" in names
    named = [NOTEBOOKS / f"{name}.py" for name in names if name != "--prose"]
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ.pop("TOUCHSTONE_PROGRESS", None)
    for source in named or find_sources():
        if is_prose:
            renew_prose(source)
            continue
        began = time.monotonic()
        execute(source)
        print(f"{source.relative_to(ROOT)}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
