"""The pages of exercises are those of the sources, and the plan of lessons names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import course
import pytest
from editions import exercises

from lib.core.notebooks import APPENDIX, find_sources, read_notebook
from lib.core.paths import ROOT

PLAN = ROOT / "docs" / "course" / "README.md"
SOURCES = [path for path in find_sources() if not path.stem.startswith(APPENDIX)]
_NUMBERS = r"(\d+)(?: (?:to|and) (\d+))?"


def page_of(source: Path) -> Path:
    """Where a notebook's exercises are read."""
    is_first = source.parent.name == "notebooks"
    return course.PAGES / f"{'start_here' if is_first else source.parent.name}.md"


def part_of(source: Path) -> str:
    """What the page says of one notebook."""
    text = page_of(source).read_text()
    heading = f"## {source.stem.replace('_', ' ')}\n"
    assert text.count(heading) == 1
    return re.split(r"^## ", text.partition(heading)[2], flags=re.M)[0]


def anchors(page: Path) -> set[str]:
    """The addresses of a page's headings, as GitHub and the site write them."""
    headings = re.findall(r"^#{1,4} (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.slow
def test_the_pages_are_those_of_the_sources() -> None:
    made = course.pages()
    assert set(made) == set(course.PAGES.glob("*.md"))
    stale = [path.name for path, text in made.items() if path.read_text() != text]
    assert not stale, "run `python tools/course.py`"


@pytest.mark.parametrize(
    "source", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "notebooks"))
)
def test_a_page_has_every_task_and_no_solution(source: Path) -> None:
    part = part_of(source)
    found = list(exercises(source))
    assert re.findall(r"^### (.*)$", part, re.M) == [exercise.title for exercise in found]
    for exercise in found:
        assert all(cell in part for tag in ("hole", "check") for cell in exercise.code[tag])
        assert not [cell for cell in exercise.code["solution"] if cell in part]
    n_folded = part.count("<details><summary>The check</summary>")
    assert n_folded == sum(len(exercise.code["check"]) for exercise in found)


def test_links_of_the_course_lead_to_headings() -> None:
    n_checked = 0
    for page in [PLAN, *course.PAGES.glob("*.md")]:
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text()):
            target = (page.parent / path).resolve() if path else page
            assert anchor in anchors(target), (page.name, path, anchor)
            n_checked += 1
    assert n_checked > 20


def test_links_of_notebooks_lead_to_their_exercises() -> None:
    """The minutes at the head, and *Try it*, of the notebooks that link them."""
    n_checked = 0
    for source in SOURCES:
        prose = "\n".join(
            c.source for c in read_notebook(source).cells if c.cell_type == "markdown"
        )
        for path, anchor in re.findall(r"\]\(([^)#]*course/exercises/[^)#]*)#([^)]+)\)", prose):
            assert (source.parent / path).resolve() == page_of(source), (source, path)
            assert anchor == source.stem.replace("_", "-") and anchor in anchors(page_of(source))
            n_checked += 1
    assert n_checked >= 18


def test_the_plan_names_sections_and_exercises_that_exist() -> None:
    """A lesson says: a notebook, sections 1 to 4 of it, exercises 1 and 2 of it."""
    text = PLAN.read_text()
    of_exercises = re.findall(rf"\[exercises? {_NUMBERS}\]\(exercises/(\w+)\.md#([\w-]+)\)", text)
    assert len(of_exercises) >= 4
    for first, last, study, anchor in of_exercises:
        stem = anchor.replace("-", "_")
        folder = ROOT / "notebooks" / ("" if study == "start_here" else study)
        titles = [exercise.title for exercise in exercises(folder / f"{stem}.py")]
        assert 1 <= int(first) <= int(last or first) <= len(titles)
    lessons = re.findall(r"^\| \*\*\d.*$", text, re.M)
    assert len(lessons) == 4
    n_checked = 0
    for cell in (cell for lesson in lessons for cell in lesson.split(" | ")):
        for path, words in re.findall(r"\(\.\./\.\./(notebooks/\S+?)\.ipynb\)([^\[]*)", cell):
            prose = "\n".join(c.source for c in read_notebook(ROOT / f"{path}.py").cells)
            for numbers in re.findall(rf"sections? {_NUMBERS}", words):
                for number in filter(None, numbers):
                    assert re.search(rf"^## {number} · ", prose, re.M), (path, number)
                    n_checked += 1
    assert n_checked >= 4


def test_two_weeks_name_the_exercises_of_every_notebook() -> None:
    """And the way from a day to a notebook's exercises is one click."""
    two_weeks = PLAN.read_text().partition("## Two weeks")[2].partition("\n## ")[0]
    for source in SOURCES:
        page = f"exercises/{page_of(source).name}"
        is_first = source == SOURCES[0]
        target = page if is_first else f"{page}#{source.stem.replace('_', '-')}"
        assert f"({target})" in two_weeks, source.stem
