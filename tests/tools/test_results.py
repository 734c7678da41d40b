"""The pages of results are those of their sources and of the committed tables."""

from __future__ import annotations

import re

import nbformat
import pytest
import results

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
