"""make lab: what was not edited keeps its bytes, outputs stand where they belong, settings lead."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import nbformat
import pytest
from lab_cells import with_outputs, write_cells
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from traitlets.config.loader import PyFileConfigLoader

from lib.core.notebooks import find_sources, read_notebook
from lib.core.paths import ROOT

LAB = ROOT / "tools" / "lab"
SOURCES = find_sources()
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
def double(x):
    return 2 * x
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "01_data.py"
    path.write_text(SOURCE)
    return path


def edited(source: Path, notebook: NotebookNode) -> str:
    write_cells(source, notebook)
    return source.read_text()


@pytest.mark.parametrize("of", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "notebooks")))
def test_opening_and_saving_keeps_a_source_and_an_edit_changes_its_cell_alone(
    of: Path, tmp_path: Path
) -> None:
    source = Path(shutil.copy(of, tmp_path))
    os.utime(source, (1, 1))
    notebook = with_outputs(source, of.with_suffix(".ipynb"))
    committed = nbformat.read(of.with_suffix(".ipynb"), as_version=4)
    assert [c.get("outputs") for c in notebook.cells] == [c.get("outputs") for c in committed.cells]
    assert edited(source, notebook) == of.read_text() and source.stat().st_mtime == 1
    for cell in (notebook.cells[1], notebook.cells[2], notebook.cells[-1]):
        cell.source += "\nmore"
    changed = edited(source, notebook)
    assert changed.count("more") == of.read_text().count("more") + 3
    assert changed.replace("\n# more\n", "\n").replace("\nmore\n", "\n") == of.read_text()


def test_cells_come_and_go(source: Path) -> None:
    notebook = read_notebook(source)
    notebook.cells.insert(1, new_markdown_cell("New."))
    del notebook.cells[3]
    new = SOURCE.replace("# # Title\n", "# # Title\n\n# %% [markdown]\n# New.\n")
    assert edited(source, notebook) == new.replace("\n# %%\nprint(seed)\n", "")


def test_tags_are_kept_and_what_lab_notes_beside_them_is_not(source: Path) -> None:
    notebook = read_notebook(source)
    notebook.cells[1].source = "seed = 1  # a seed"
    notebook.cells[1].metadata |= {"trusted": True, "execution": {"iopub.execute_input": "now"}}
    notebook.metadata["kernelspec"] = {"name": "other", "display_name": "Other"}
    assert edited(source, notebook) == SOURCE.replace("seed = 0", "seed = 1")


def test_the_empty_cell_below_the_last_one_is_no_edit(source: Path) -> None:
    notebook = read_notebook(source)
    notebook.cells.append(new_code_cell(""))
    assert edited(source, notebook) == SOURCE


EXERCISE = """
# %% tags=["hole"]
answer = ...

# %% tags=["solution"]
answer = 1

# %% tags=["check"]
assert answer == 1
"""


def test_what_a_reader_saves_keeps_the_exercises_that_he_does_not_see(source: Path) -> None:
    head, mark, tail = SOURCE.partition("\n# %%\nprint(seed)\n")
    whole = head + mark + EXERCISE + tail
    source.write_text(whole)
    notebook = with_outputs(source, None)
    assert "answer" not in str(notebook)
    assert edited(source, notebook) == whole, "only opened and saved"
    notebook.cells[0].source = "# Other title"
    assert edited(source, notebook) == whole.replace("# # Title", "# # Other title")
    notebook = with_outputs(source, None)
    notebook.cells.insert(3, new_markdown_cell("After."))
    after = edited(source, notebook)
    assert after.index("answer == 1") < after.index("# After.") and EXERCISE in after
    notebook = with_outputs(source, None)
    del notebook.cells[2]  # the cell that the exercises follow
    gone = edited(source, notebook)
    assert EXERCISE in gone and "print(seed)" not in gone
    source.write_text(SOURCE + EXERCISE)
    notebook = with_outputs(source, None)
    notebook.cells = [new_markdown_cell("All new.")]
    assert EXERCISE in edited(source, notebook)


def test_only_equal_cells_have_outputs(source: Path, tmp_path: Path) -> None:
    executed = read_notebook(source)
    for count, cell in enumerate(executed.cells[1:], 1):
        cell.update(execution_count=count, outputs=[new_output("stream", text=f"{count}\n")])
    nbformat.write(executed, tmp_path / "executed.ipynb")
    source.write_text(SOURCE.replace("print(seed)", "print(seed + 1)"))
    cells = with_outputs(source, tmp_path / "executed.ipynb").cells
    assert [len(cell.get("outputs", [])) for cell in cells] == [0, 1, 0, 1]
    assert [cell.get("execution_count") for cell in cells] == [None, 1, None, 3]


def test_a_source_without_any_run_opens(source: Path) -> None:
    notebook = with_outputs(source, None)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3" and "jupytext" not in notebook.metadata


def test_the_settings_lead_to_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(LAB)  # the file extends the path; this undoes it
    config = PyFileConfigLoader("jupyter_server_config.py", str(LAB)).load_config()
    assert Path(config.ServerApp.root_dir) == ROOT
    assert (ROOT / config.LabApp.default_url.removeprefix("/lab/tree/")).is_file()
    (extensions,) = config.LabApp.extra_labextensions_path
    package = json.loads((Path(extensions) / "touchstone" / "package.json").read_text())
    script = Path(extensions) / "touchstone" / package["jupyterlab"]["_build"]["load"]
    assert f'_JUPYTERLAB["{package["name"]}"]' in script.read_text()
    disabled = json.loads((LAB / "labconfig" / "page_config.json").read_text())
    assert disabled["disabledExtensions"]["jupyterlab-jupytext"] is True
    quiet = PyFileConfigLoader("ipython_kernel_config.py", str(LAB)).load_config()
    assert quiet.IPKernelApp.log_level == "ERROR"


def test_make_names_the_folder_of_the_settings() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert 'JUPYTER_CONFIG_PATH="$(CURDIR)/tools/lab' in makefile
    assert "cp tools/lab/ipython_kernel_config.py .venv/etc/ipython" in makefile
    assert "/outputs/*" in (ROOT / ".gitignore").read_text().splitlines()
