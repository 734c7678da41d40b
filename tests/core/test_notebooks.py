"""Two readings of a source are equal; what is stored is not volatile, what is shown is short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import IPython.display
import nbformat
import pytest
from nbformat.v4 import new_output

from lib.core.errors import TouchstoneError
from lib.core.notebooks import (
    code_cells,
    find_notebooks,
    find_studies,
    fold_bars,
    read_notebook,
    show_source,
)
from lib.core.paths import ROOT

SOURCE = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Title

# %% tags=["parameters"]
seed = 0  # a seed

# %%
print(seed)

# %%
print(seed)
"""


def write(folder: Path, text: str = SOURCE) -> Path:
    path = folder / "01_a.py"
    path.write_text(text)
    return path


def test_ids_are_the_same_at_every_reading_and_differ_between_cells(tmp_path: Path) -> None:
    first, second = (read_notebook(write(tmp_path)) for _ in range(2))
    assert first == second
    nbformat.validate(first)
    ids = [cell.id for cell in first.cells]
    assert len(set(ids)) == 4
    longer = read_notebook(
        write(tmp_path, SOURCE.replace("# # Title", "# # Title\n\n# %% [markdown]\n# More"))
    )
    assert set(ids) < {cell.id for cell in longer.cells}, "an unchanged cell keeps its id"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "notebooks").rglob("[0-9][0-9]_*.py")), ids=lambda p: p.stem
)
def test_code_cells_are_those_of_jupytext(path: Path) -> None:
    cells = [cell for cell in read_notebook(path).cells if cell.cell_type == "code"]
    tagged = ["parameters" in cell.metadata.get("tags", []) for cell in cells]
    for found, wanted in zip(code_cells(path), (False, True), strict=True):
        assert found == [c.source for c, is_tagged in zip(cells, tagged) if is_tagged is wanted]


def test_nobody_who_reads_code_cells_pays_for_the_schema_of_notebooks() -> None:
    code = "import sys, lib.core.stage, lib.core.runner; print('nbformat' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout == "False\n", found.stderr


def test_bars_are_folded_and_warnings_kept(tmp_path: Path) -> None:
    notebook = read_notebook(write(tmp_path))
    bar = "rows:  10%|#   |\rrows: 100%|####|\r               \r"
    notebook.cells[2]["outputs"] = [new_output("stream", name="stderr", text=bar)]
    notebook.cells[3]["outputs"] = [
        new_output("stream", name="stderr", text=f"{bar}careful\n"),
        new_output("stream", name="stdout", text="0\n"),
    ]
    fold_bars(notebook)
    assert notebook.cells[2].outputs == []
    assert [output.text for output in notebook.cells[3].outputs] == ["careful", "0\n"]


def test_notebooks_are_found_in_order(tmp_path: Path) -> None:
    for name in ("02_b.py", "01_a.py", "conftest.py", "01_a.ipynb"):
        (tmp_path / "notebooks" / "toy").mkdir(parents=True, exist_ok=True)
        (tmp_path / "notebooks" / "toy" / name).touch()
    assert [path.name for path in find_notebooks("toy", tmp_path)] == ["01_a.py", "02_b.py"]
    assert find_notebooks("none", tmp_path) == []


def test_studies_are_the_folders_that_hold_stages(tmp_path: Path) -> None:
    for name in ("toy/01_a.py", "bare/README.md", "00_start_here.py", "all/01_a.py", "all/02_b.py"):
        (tmp_path / "notebooks" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notebooks" / name).touch()
    assert find_studies(tmp_path) == ["all", "toy"]
    assert set(find_studies()) >= {"geco", "lm_saliency", "cebab", "implicit_bias"}


def displayed(fn: object, monkeypatch: pytest.MonkeyPatch) -> str:
    blocks: list[IPython.display.Markdown] = []
    monkeypatch.setattr(IPython.display, "display", blocks.append)
    show_source(fn)
    return blocks[0].data


def test_the_source_is_shown_without_its_indentation(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(x: int) -> int:
        return 2 * x

    assert displayed(twice, monkeypatch) == (
        f"```python\n# {__name__}\ndef twice(x: int) -> int:\n    return 2 * x\n```"
    )


def test_a_function_that_nobody_would_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspect.getsource", lambda fn: "\n".join(["x = 1"] * 41))
    with pytest.raises(TouchstoneError, match="has 41 lines; show a part of at most 40"):
        show_source(displayed)
