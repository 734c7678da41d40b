"""The pages of results are those of their sources and of the committed tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
import results
import yaml

from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT, reference_dir

STUDIES = results.published()


def test_the_four_papers_are_published() -> None:
    assert set(STUDIES) >= {"geco", "lm_saliency", "cebab", "implicit_bias"}


@pytest.mark.parametrize("study", STUDIES)
def test_the_page_is_its_notebook_at_the_scale_that_we_vouch_for(study: str) -> None:
    page = nbformat.read(results.page_of(study), as_version=4)
    expected = results.notebook_of(study)
    assert [c.source for c in page.cells] == [c.source for c in expected.cells], "make results"
    code = [cell for cell in page.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert 'scale = "cpu"' in "\n".join(cell.source for cell in code)
    assert not any("nbval-ignore-output" in cell.metadata.get("tags", []) for cell in code)
    outputs = [output for cell in code for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    text = results.page_of(study).read_text()
    assert len(text) <= 500_000 and not re.search(r"(?<![\w.])/(home|root|tmp|work|Users)/", text)


@pytest.mark.parametrize("study", STUDIES)
def test_the_page_opens_with_its_answer_and_ends_with_the_claims(study: str) -> None:
    cells = results.notebook_of(study).cells
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert "## What we found" in prose[0]
    verdicts = [
        i for i, cell in enumerate(cells) if re.search(r'verdicts\(.*"all"', cell.source, re.S)
    ]
    assert len(verdicts) == 1 and verdicts[0] > len(cells) - 6


@pytest.mark.parametrize("study", STUDIES)
def test_the_pages_of_tables_show_the_committed_tables(study: str) -> None:
    pages = results.table_pages(study)
    assert {path.name: path.read_text() for path in pages} == {
        path.name: text for path, text in pages.items()
    }, "run `make results`"
    assert pages[reference_dir(study, "cpu") / "04_metrics.md"].count("\n## ") >= 5


WORDS = yaml.safe_load(results.TABLES.read_text())


@pytest.mark.parametrize("study", STUDIES)
def test_a_table_has_a_sentence_and_each_column_its_own_words(study: str) -> None:
    for stage, tables in WORDS[study].items():
        for name, said in tables.items():
            assert said["about"].endswith(".") and len(said["about"].split()) <= 50, name
            file = reference_dir(study, "cpu") / stage / f"{name}.csv"
            if file.is_file():
                raw = list(pd.read_csv(file, nrows=0))
                words = [(WORDS["columns"] | said.get("columns", {}))[column] for column in raw]
                assert len(set(words)) == len(raw) and "_" not in "".join(words), name
                assert len(said.get("shown", raw)) <= 10, name


def test_a_table_without_words_is_refused_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "04_metrics" / "mine.csv"
    file.parent.mkdir()
    pd.DataFrame({"method": ["LIME"], "mine": [1.0]}).to_csv(file, index=False)
    words: dict[str, Any] = {"columns": {"method": "method"}, "geco": {}}
    with pytest.raises(TouchstoneError, match="says nothing of geco/04_metrics/mine"):
        results.preview(file, "geco", words)
    words["geco"] = {"04_metrics": {"mine": {"about": "Mine."}}}
    with pytest.raises(TouchstoneError, match="geco/04_metrics/mine has a column 'mine'"):
        results.preview(file, "geco", words)


def test_a_long_table_is_folded_and_its_codes_are_words(tmp_path: Path) -> None:
    file = tmp_path / "04_metrics" / "mine.csv"
    file.parent.mkdir()
    pd.DataFrame({"dataset": ["D_A"] * 130, "n": range(130)}).to_csv(file, index=False)
    about = {"about": "Mine.", "columns": {"n": "texts"}}
    words = {"columns": {"dataset": "data set"}, "geco": {"04_metrics": {"mine": about}}}
    page = results.preview(file, "geco", words)
    assert "<summary>120 of 130 rows</summary>" in page and page.count("\n| ") == 2 + 120
    assert "| data set | texts |" in page and "| all gendered words (D_A) | 119 |" in page


@pytest.mark.parametrize("study", STUDIES)
def test_links_of_the_pages_lead_somewhere(study: str) -> None:
    page = results.page_of(study)
    for cell in results.notebook_of(study).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", cell.source):
                assert (page.parent / target).exists(), target
    for path, text in results.table_pages(study).items():
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)\)", text):
            assert (page.parent / target).exists(), (target, path)


def test_a_link_leads_to_the_same_file_from_another_place() -> None:
    source, page = ROOT / "notebooks" / "geco" / "05_figures.py", results.page_of("geco")
    moved = results.moved_links("[a](04_metrics.ipynb), [b](https://x.y/z), [c](#d)", source, page)
    assert moved.startswith("[a](../../../../notebooks/geco/04_metrics.ipynb)")
    assert moved.endswith("[b](https://x.y/z), [c](#d)")
