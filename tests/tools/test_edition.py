"""The report on how notebooks read counts what a reader sees."""

from __future__ import annotations

import csv
from pathlib import Path

import edition
import nbformat
import pytest

from lib.core.notebooks import find_sources
from lib.core.paths import ROOT

NOTEBOOK = """# %% [markdown]
# # A title of five words
#
# Attribution with RMA is early. [Two](a.md) sentences, and 1, 2, 3 numbers.
#
# RMA is the *relative mass accuracy*.
#
# ## A section
#
# ![words that are not read](../docs/schematics/floor.svg)
#
# | a table | is no sentence |
# |---|---|

# %%
narrow = 1
{wide} = 2

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# None of these words count.
"""
TABLE = "<table><thead><tr><th></th><th>a</th></tr></thead><tbody>{}</tbody></table>"


def write_checkout(folder: Path, n_rows: int) -> Path:
    """A checkout of two notebooks; the second is executed, with one table and one picture."""
    stem = folder / "notebooks" / "geco" / "01_data_generation"
    stem.parent.mkdir(parents=True)
    (folder / "notebooks" / "00_start_here.py").write_text("# %% [markdown]\n# # Start\n")
    stem.with_suffix(".py").write_text(NOTEBOOK.format(wide="w" * 90))
    outputs = [
        nbformat.v4.new_output("display_data", {"text/html": TABLE.format("<tr></tr>" * n_rows)}),
        nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="}),
    ]
    cell = nbformat.v4.new_code_cell("narrow", outputs=outputs)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), stem.with_suffix(".ipynb"))
    return folder


@pytest.mark.parametrize("n_rows", [1, 14])
def test_a_notebook_is_counted(tmp_path: Path, n_rows: int) -> None:
    root = write_checkout(tmp_path, n_rows)
    path = root / "notebooks" / "geco" / "01_data_generation.py"
    line = edition.count(path, root, {"RMA": "Relative mass accuracy", "MA": "Mass accuracy"})
    assert (line.notebook, line.sections, line.sentences) == ("geco/01_data_generation", 1, 3)
    assert line.words == 5 + 5 + 7 + 6 + 2 + 2 + 3  # title, three sentences, heading, table
    assert line.codes_early == "RMA"
    assert line.share_numbers == pytest.approx(1 / 3, abs=1e-3)
    assert (line.tables, line.most_rows, line.most_columns) == (1, n_rows, 2)
    assert (line.schematics, line.pictures, line.wide_lines) == (1, 1, 1)


def test_the_report_is_printed_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_checkout(tmp_path / "checkout", 2)
    edition.main(["--root", str(root), "--csv", str(tmp_path / "report.csv")])
    start, row = csv.DictReader((tmp_path / "report.csv").read_text().splitlines())
    assert (start["notebook"], row["notebook"]) == ("00_start_here", "geco/01_data_generation")
    assert row["most_rows"] == "2"
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].split()[:2] == ["all", str(1 + int(row["words"]))]


def test_a_code_is_explained_by_its_name_or_by_a_link() -> None:
    codes = {"C": "Head only", "NAOPC": "deletion score"}
    prose = "| C | *head only* |\n\n[NAOPC](../../docs/glossary.md) is high. `NAOPC`."
    assert edition.codes_before_names(prose, codes) == []
    assert edition.codes_before_names("Of C we\nsay nothing.\n\n- head only", codes) == ["C"]
    assert edition.codes_before_names("$C$ and C-like and NAOPCs", codes) == []


def test_the_glossary_names_the_codes() -> None:
    text = (edition.ROOT / "docs" / "glossary.md").read_text()
    codes = edition.read_codes(text)
    assert codes["CEf"] == "Head + embeddings"
    assert codes["NAOPC"] == "deletion score"
    assert "holds" not in codes


@pytest.mark.parametrize(
    "path", find_sources(ROOT), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_a_notebook_keeps_the_length_and_width_that_contributing_promises(path: Path) -> None:
    line = edition.count(path, ROOT, {})
    assert line.words <= 1800 and line.wide_lines == 0
