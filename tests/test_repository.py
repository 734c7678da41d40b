"""What holds for the repository as a whole: the README's links, the citation file, the licences."""

from __future__ import annotations

import json
import re
import subprocess

import jsonschema
import pytest
import yaml

from lib.core.notebooks import find_studies
from lib.core.paths import ROOT

STUDIES = find_studies()
STAGES = ("01_data_generation", "02_training", "03_attribution", "04_metrics", "05_figures")
TEXTS = [
    p
    for p in [*ROOT.glob("*.md"), *(ROOT / "notebooks").rglob("*.md"), *ROOT.glob("docs/**/*.md")]
    if "material" not in p.parts
]
WORKFLOWS = {"ci.yml": {"check", "test", "test-more", "board"}, "pages.yml": {"site", "colab"}}


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(text) -> None:
    for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#]+)", text.read_text()):
        assert (text.parent / target).exists(), target


def test_the_grid_names_every_study_and_links_what_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    for study in STUDIES:
        assert f"**{study}**" in readme
        for stage in STAGES:
            notebook = f"notebooks/{study}/{stage}.ipynb"
            assert (f"({notebook})" in readme) == (ROOT / notebook).is_file(), notebook


def test_a_lesson_is_three_clicks_from_the_readme() -> None:
    """The README leads to the course, the course to every notebook."""
    assert "(docs/course/README.md)" in (ROOT / "README.md").read_text()
    course = (ROOT / "docs" / "course" / "README.md").read_text()
    assert "(../../notebooks/00_start_here.ipynb)" in course
    for study in STUDIES:
        assert re.search(rf"\(\.\./\.\./notebooks/{study}/\d\d_\w+\.ipynb\)", course), study


def test_the_citation_file_is_complete() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0" and citation["title"] and citation["authors"]
    assert len(citation["references"]) == len(STUDIES), "each study's paper is to be cited too"


def test_the_deposit_fits_its_schema_and_says_what_the_citation_says() -> None:
    deposit = json.loads((ROOT / ".zenodo.json").read_text())
    jsonschema.validate(deposit, json.loads((ROOT / "tests" / "zenodo_schema.json").read_text()))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    for field in ("title", "version", "license", "keywords"):
        assert deposit[field] == citation[field], field
    assert [one["name"] for one in deposit["creators"]] == [a["name"] for a in citation["authors"]]
    cited = [one["identifier"].removeprefix("arXiv:") for one in deposit["related_identifiers"]]
    assert cited == [work["url"].rpartition("/")[2] for work in citation["references"]]


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.findall(r"^\.PHONY: ([\w-]+)", makefile, flags=re.M)
    shown = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert phony and all(f"make {target}" in shown for target in phony)


def test_the_workflow_and_the_hooks_call_what_is_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for name, wanted in WORKFLOWS.items():
        workflow = (ROOT / ".github" / "workflows" / name).read_text()
        called = set(re.findall(r"run: make ([\w-]+)", workflow))
        assert called == wanted and called <= targets
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    entries = " ".join(hook["entry"] for hook in hooks)
    assert set(re.findall(r"\bmake ([\w-]+)", entries)) <= targets
    assert all((ROOT / path).exists() for path in re.findall(r"\btests/\S+", entries))


def test_no_pickle_and_no_file_of_odds_and_ends() -> None:
    sources = [p for folder in ("lib", "notebooks", "tools") for p in (ROOT / folder).rglob("*.py")]
    assert not [
        p
        for p in sources
        if re.search(
            r"^\s*(import|from) pickle|torch\.load\(|read_pickle", p.read_text(), flags=re.M
        )
    ]
    assert not list(ROOT.glob("lib/**/utils.py"))
