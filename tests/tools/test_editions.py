"""The three editions: each hole fails its check, each solution passes, and the reader sees neither.

Exercises run without the notebook above them, on committed tables, so nothing is trained here.
"""

from __future__ import annotations

import contextlib
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from editions import edition_of, exercises, pack

from lib.core.exercises import Unsolved
from lib.core.notebooks import (
    APPENDIX,
    EDITIONS,
    EXERCISE_TAGS,
    code_cells,
    find_sources,
    read_notebook,
)
from lib.core.paths import ROOT

SOURCES = [path for path in find_sources() if not path.stem.startswith(APPENDIX)]
every_notebook = pytest.mark.parametrize(
    "source", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "notebooks"))
)


def tag_of(cell: nbformat.NotebookNode) -> str:
    return next(iter(EXERCISE_TAGS & set(cell.metadata.get("tags", []))), "")


def run(cells: list[str], names: dict[str, Any]) -> dict[str, Any]:
    """The names after some cells have run; what they print is dropped."""
    names = dict(names)
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in cells:
            exec(cell, names)
    return names


@pytest.mark.slow
@every_notebook
def test_each_hole_fails_its_check_and_each_solution_passes(source: Path) -> None:
    names: dict[str, Any] = {}
    found = list(exercises(source))
    assert found, "a notebook without an exercise"
    for exercise in found:
        names = run(exercise.code["exercise"], names)  # what later exercises may use, too
        hole = run(exercise.code["hole"], names)
        with pytest.raises(Unsolved) as error:
            run(exercise.code["check"], hole)
        assert re.search(r"There is no answer yet|returns nothing yet", str(error.value))
        run(exercise.code["check"], run(exercise.code["solution"], names))


@every_notebook
def test_an_exercise_has_a_task_a_hole_a_solution_and_a_check(source: Path) -> None:
    cells = read_notebook(source, "source").cells
    tags = [tag_of(cell) for cell in cells]
    one = r"(?:exercise )+hole (?:solution )+check "
    assert re.fullmatch(f"exercise (?:{one})+", " ".join(t for t in tags if t) + " ")
    assert "" not in tags[tags.index("exercise") :], "exercises stand at the end of a notebook"
    titles = [exercise.title for exercise in exercises(source)]
    numbers = [title.partition(" · ")[0] for title in titles]
    assert numbers == [str(i) for i in range(1, len(titles) + 1)]
    for cell, tag in zip(cells, tags):
        assert (tag != "hole") or "..." in cell.source


@every_notebook
def test_the_reader_has_no_exercise_and_an_edition_what_it_should(source: Path) -> None:
    found = {name: read_notebook(source, name).cells for name in EDITIONS}
    tags = {name: {tag_of(cell) for cell in cells} - {""} for name, cells in found.items()}
    assert tags == {
        "reader": set(),
        "student": {"exercise", "hole", "check"},
        "teacher": {"exercise", "solution", "check"},
        "source": set(EXERCISE_TAGS),
    }
    rest = [[c.source for c in cells if not tag_of(c)] for cells in found.values()]
    assert all(cells == rest[0] for cells in rest)
    asked = {cell.source for cell in found["source"] if tag_of(cell) and cell.cell_type == "code"}
    assert asked and not asked & set(sum(code_cells(source), []))


def test_a_students_notebook_is_whole_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    folder = tmp_path / "student"
    notebook = edition_of(SOURCES[0], "student", folder)
    nbformat.validate(notebook)
    folded = {tag_of(c) for c in notebook.cells if c.metadata.get("jupyter")}
    assert folded == {"check"}
    prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", prose)
    assert pictures and all((folder / picture).is_file() for picture in pictures)
    assert any(c.get("outputs") for c in notebook.cells), "outputs of the committed run are kept"
    assert not any(c.get("outputs") for c in notebook.cells if tag_of(c))


@pytest.mark.slow
def test_the_students_edition_is_one_file_without_solutions(tmp_path: Path) -> None:
    """It is unpacked into outputs/editions of a checkout, from where its links lead on."""
    pack(tmp_path / "student.zip")
    place = ROOT / "outputs" / "editions" / "student"
    with zipfile.ZipFile(tmp_path / "student.zip") as packed:
        packed.extractall(tmp_path)
    folder = tmp_path / "student"
    pages = sorted(folder.rglob("*.ipynb"))
    assert len(pages) == len(find_sources()) and (folder / "README.md").is_file()
    for page in pages:
        notebook = nbformat.read(page, as_version=4)
        tags = {tag_of(cell) for cell in notebook.cells} - {""}
        assert tags in ({"exercise", "hole", "check"}, set())
        prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", prose):
            here = (page.parent / target).exists()
            there = (place / page.parent.relative_to(folder) / target).resolve()
            assert here or there.exists(), (page, target)


@pytest.mark.more
def test_a_teachers_notebook_has_its_solutions_executed(tmp_path: Path) -> None:
    notebook = edition_of(SOURCES[0], "teacher", tmp_path)
    checks = [cell for cell in notebook.cells if tag_of(cell) == "check"]
    assert checks and all(cell.outputs for cell in checks)
    shown = "\n".join(str(output) for cell in checks for output in cell.outputs)
    assert shown.count("Right.") >= len(checks) - 1 and "Not yet" not in shown


def test_only_text_may_change_without_a_run(tmp_path: Path, monkeypatch) -> None:
    import shutil

    import execute

    monkeypatch.setattr(execute, "ROOT", tmp_path)
    source = Path(shutil.copy(SOURCES[0], tmp_path))
    copy = Path(shutil.copy(SOURCES[0].with_suffix(".ipynb"), tmp_path))
    before = copy.read_text()
    execute.renew_prose(source)
    assert copy.read_text() == before, "nothing changed"
    source.write_text(source.read_text().replace("# # Start here", "# # Begin here"))
    execute.renew_prose(source)
    after = before.replace("# Start here", "# Begin here")
    without_ids = [re.sub(r'"id": "\w+"', "", text) for text in (copy.read_text(), after)]
    assert without_ids[0] == without_ids[1]
    source.write_text(source.read_text().replace("n_train = 40", "n_train = 41"))
    with pytest.raises(SystemExit, match="a code cell changed; run without --prose"):
        execute.renew_prose(source)
