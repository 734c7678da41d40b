"""What to cite: what a run used and nothing else, in BibTeX that can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from lib import cli
from lib.attribution import METHODS
from lib.core import citations
from lib.core.errors import TouchstoneError
from lib.core.notebooks import find_studies
from lib.core.paths import ROOT, reference_dir
from lib.metrics import FLOORS

KEY = re.compile(r"^@\w+\{([\w:-]+),$", re.M)


def run(folder: Path, **parameters: object) -> Path:
    """A run of geco with one finished stage."""
    manifest = {
        "study": "geco",
        "parameters": parameters,
        "inputs": {},
        "externals": {},
        "files": {},
    }
    stage = folder / "geco" / "small" / "03_attribution"
    stage.mkdir(parents=True)
    (stage / "manifest.json").write_text(json.dumps(manifest))
    return stage.parent


def test_a_run_is_cited_with_its_methods_and_no_others(tmp_path: Path) -> None:
    text = citations.cite_run(
        run(tmp_path, methods=["LIME", "mine:by_length"], data_source="geco", explained={"IG": 1})
    )
    assert KEY.findall(text) == ["touchstone2026", "wilming2024gecobench", "ribeiro2016why"]
    assert "used_for" not in text and "2406.11547" in text


@pytest.mark.parametrize(("seeds", "is_cited"), [({"CEf": 1}, True), ({}, False)])
def test_draws_to_convergence_cite_their_pairs(
    tmp_path: Path, seeds: dict[str, int], is_cited: bool
) -> None:
    text = citations.cite_run(run(tmp_path, methods=["LIME"], converged_seeds=seeds))
    assert ("covert2021improving" in KEY.findall(text)) == is_cited


def test_a_variant_is_cited_as_its_method() -> None:
    names = citations.names_in("s", {"explainers": ["TCAV (scaled)", "IG released", "V+VN"]})
    assert names == {"TCAV", "IG", "V", "s: explainers"}


@pytest.mark.parametrize("study", find_studies())
def test_every_committed_run_can_be_cited(study: str) -> None:
    for scale in ("small", "cpu"):
        folder = reference_dir(study, scale)
        if (folder / "04_metrics").is_dir():  # of a run that goes on, units alone are committed
            keys = KEY.findall(citations.cite_run(folder))
            assert len(keys) == len(set(keys)) >= 2


def test_every_method_that_has_a_paper_has_a_work() -> None:
    named = set().union(*(names for _, names in citations.read_works().values()))
    assert set(METHODS) - named == set(FLOORS) - {"Pattern Variant"}


def test_the_bibliography_is_whole() -> None:
    text = (ROOT / "notebooks" / "citations.bib").read_text()
    works = citations.read_works()
    assert len(works) == text.count("\n@") and len(works) == len(set(works))
    for key, (entry, names) in works.items():
        assert names and all(f"  {field} = {{" in entry for field in ("author", "title", "year"))
        year = re.search(r"year = \{(\d{4})\}", entry)
        assert year and year[1] in key and entry.count("{") == entry.count("}")


def test_a_run_that_is_not_there_or_damaged_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], small_outputs: Path
) -> None:
    assert cli.main(["cite", "geco"]) == 1
    assert "no finished stage; run the study first" in capsys.readouterr().err
    folder = run(tmp_path)
    (folder / "03_attribution" / "manifest.json").write_text("{")
    with pytest.raises(TouchstoneError, match="is damaged; run its stage again"):
        citations.cite_run(folder)


def test_each_study_has_one_paper() -> None:
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert sorted(word for work in references for word in work["keywords"]) == find_studies()
