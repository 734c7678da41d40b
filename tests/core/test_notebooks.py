"""Two readings of a source are equal; what is stored is not volatile, what is shown is short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import IPython.display
import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_output

from lib.core.errors import TouchstoneError
from lib.core.notebooks import (
    code_cells,
    find_notebooks,
    find_sources,
    find_studies,
    fold_bars,
    listed,
    read_notebook,
    show_source,
    show_table,
    stages_read,
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


@pytest.mark.parametrize("path", find_sources(), ids=lambda p: f"{p.parent.name}/{p.stem}")
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


def test_an_appendix_runs_after_the_last_stage_that_it_reads(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks" / "toy"
    folder.mkdir(parents=True)
    for name in ("01_a", "02_b", "03_c"):
        (folder / f"{name}.py").touch()
    reads = '# %%\nstage.input("01_a", "x")\nstage.note(\n    "02_b", "y")\n'
    (folder / "appendix_y.py").write_text(reads)
    (folder / "appendix_x.py").write_text("# %%\n1\n")
    names = [path.stem for path in find_notebooks("toy", tmp_path)]
    assert names == ["01_a", "02_b", "appendix_y", "03_c", "appendix_x"]
    (folder / "appendix_x.py").write_text(reads)
    names = [path.stem for path in find_notebooks("toy", tmp_path)]
    assert names == ["01_a", "02_b", "appendix_x", "appendix_y", "03_c"]
    assert stages_read(folder / "appendix_x.py") == ["01_a", "02_b"]
    assert find_sources(tmp_path)[0].name == "00_start_here.py"
    assert [path.stem for path in find_sources(tmp_path)[1:]] == names


@pytest.mark.parametrize("study", find_studies())
def test_a_notebook_reads_those_that_run_before_it(study: str) -> None:
    before: set[str] = set()
    for path in find_notebooks(study):
        assert set(stages_read(path)) <= before, path.name
        before.add(path.stem)


def test_studies_are_the_folders_that_hold_stages(tmp_path: Path) -> None:
    for name in ("toy/01_a.py", "bare/README.md", "00_start_here.py", "all/01_a.py", "all/02_b.py"):
        (tmp_path / "notebooks" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notebooks" / name).touch()
    assert find_studies(tmp_path) == ["all", "toy"]
    assert set(find_studies()) >= {"geco", "lm_saliency", "cebab", "implicit_bias"}


def test_a_table_is_shown_by_plain_names_and_what_is_left_out_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[IPython.display.HTML] = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    table = pd.DataFrame({"MA": [0.5, None, 0.7], "seed": [0, 1, 2], "method": ["a", "b", "c"]})
    named = table.rename_axis(columns="a pivot's")
    show_table(named, {"method": "method", "MA": "mass accuracy"}, rows=2)
    cells = re.findall("<t[hd].*?>(.*?)</t[hd]>", shown[0].data)
    assert cells == ["method", "mass accuracy", "a", "0.5", "b", "-"]
    assert shown[0].data.endswith("<p>1 more row is in the saved table.</p>")
    show_table(table.assign(method=["InputXGradient"] * 3, ok=True), {"method": "m", "ok": "ok"})
    assert "<td>Input x Gradient</td>" in shown[1].data and "<td>yes</td>" in shown[1].data
    show_table(table, {"seed": "seed"})
    assert shown[2].data.endswith("</table>") and not capsys.readouterr().out
    with pytest.raises(KeyError):
        show_table(table, {"MB": "mass accuracy"})


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


def test_a_listing_has_at_most_twelve_lines_and_counts_the_rest() -> None:
    files = [(f"{i:02}.csv", "1", "2") for i in range(20)] + [("m/a.json", "", ""), ("m/b", "", "")]
    table = listed(files)
    assert len(table) == 12
    assert table["file"].tolist()[-1] == "11 more files, in manifest.json"
    few = listed(files[-4:])
    assert few["file"].tolist() == ["18.csv", "19.csv", "m/a.json", "m/b"]
    folded = listed(files[9:])
    assert folded["file"].tolist()[-1] == "m/ (2 files)" and len(folded) == 12
