"""Three editions of the notebooks from one source (make editions).

    python tools/editions.py                 students' and teachers' editions, and the slides
    python tools/editions.py student         one of them

The site has the student's as one file (`pack`).

A source holds exercises in tagged cells: `exercise` (the task, and what it needs), `hole`,
`solution`, `check`. The reader's edition is the committed `.ipynb` and has none of them. The
student's has holes and folded checks. The teacher's has solutions, executed. Both keep the outputs
of the committed run, since exercises stand alone and nothing else has to run. They are written to
outputs/editions and never committed. The tasks as pages to read are: tools/course.py.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from execute import run_cells
from nbformat import NotebookNode

from lib.core.files import write_atomic
from lib.core.notebooks import (
    EXERCISE_TAGS,
    add_outputs,
    find_sources,
    read_notebook,
    strip_volatile,
)
from lib.core.paths import ROOT, outputs_root

NOTEBOOKS = ROOT / "notebooks"
_PICTURE = re.compile(r"(!\[[^\]]*\]\()(?!https?://|attachment:)([^)\s]+)")
_LINK = re.compile(r"((?<!!)\[[^\]]*\]\()(?!https?://|#|mailto:)([^)#\s]+)")
_ABOUT = {
    "student": "The exercises wait at the end of each notebook. They stand alone: run the first "
    "cell of *Exercises*, and none of the cells above. A check is folded; opening it is "
    "like turning to the solutions.",
    "teacher": "The solutions stand in the place of the holes, executed, with the checks that they "
    "pass.",
}


@dataclass
class Exercise:
    """One exercise of a source: the code of its cells, by tag, in order.

    Attributes:
        title: its heading.
        code: what each of `exercise`, `hole`, `solution` and `check` runs.
    """

    title: str
    code: dict[str, list[str]] = field(
        default_factory=lambda: {tag: [] for tag in sorted(EXERCISE_TAGS)}
    )


def exercises(source: Path) -> Iterator[Exercise]:
    """The exercises of a source; each ends with its check."""
    now = Exercise("")
    for cell in read_notebook(source, "source").cells:
        tags = EXERCISE_TAGS & set(cell.metadata.get("tags", []))
        if not tags:
            continue
        (tag,) = tags
        if cell.cell_type == "markdown":
            headings = re.findall(r"^### (.*)$", cell.source, flags=re.M)
            now.title = headings[0] if headings else now.title
        else:
            now.code[tag].append(cell.source)
        if tag == "check":
            yield now
            now = Exercise("")


def edition_of(source: Path, edition: str, folder: Path, place: Path | None = None) -> NotebookNode:
    """A source in an edition, with the outputs of its committed copy.

    Args:
        source: below `notebooks/`.
        edition: student or teacher.
        folder: to which the edition is written; pictures are copied there.
        place: where it will be read, if elsewhere; links out of it lead on from there.
    """
    notebook = read_notebook(source, edition)
    add_outputs(notebook, source.with_suffix(".ipynb"))
    strip_volatile(notebook)
    page = folder / source.relative_to(NOTEBOOKS)
    ours = [c for c in notebook.cells if EXERCISE_TAGS & set(c.metadata.get("tags", []))]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell["source"] = _with_links(cell.source, source, page, folder, place or folder)
    if edition == "student":
        for cell in ours:
            if "check" in cell.metadata.tags:  # folded: who opens it has turned the page
                cell.metadata["jupyter"] = {"source_hidden": True}
    else:
        part = nbformat.v4.new_notebook(metadata=notebook.metadata)
        part.cells = ours  # the same cells, so the outputs come back in them
        run_cells(part, f"the solutions of {source.stem}")
    return notebook


def build(edition: str, folder: Path, place: Path | None = None) -> None:
    """Write an edition of all notebooks, and a page that says how to begin.

    Args:
        edition: student or teacher.
        folder: is emptied first.
        place: where the edition will be read, if not there.
    """
    shutil.rmtree(folder, ignore_errors=True)
    lines = []
    for source in find_sources():
        page = (folder / source.relative_to(NOTEBOOKS)).with_suffix(".ipynb")
        page.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(page, nbformat.writes(edition_of(source, edition, folder, place)) + "\n")
        titles = [exercise.title for exercise in exercises(source)]
        name = page.relative_to(folder).as_posix()
        lines.append(f"| [{name}]({name}) | {'; '.join(titles) or 'none'} |")
    where = os.path.relpath(place or folder, ROOT)
    write_atomic(
        folder / "README.md",
        f"# Touchstone, the {edition}'s edition\n\n{_ABOUT[edition]}\n\n"
        f"In a checkout of the repository, `make .venv/lab` installs JupyterLab, and "
        f"`.venv/bin/jupyter lab --ServerApp.root_dir=. {where}/README.md` opens this page (right "
        "click, *Open With*, *Markdown Preview*), whose links lead on. Elsewhere it works, too, "
        "with a kernel in which the checkout is installed (`pip install -e .`). What stands above "
        "the exercises runs as well: `touchstone start geco 04` fills in what it reads.\n\n"
        "| notebook | exercises |\n|---|---|\n" + "\n".join(lines) + "\n",
    )
    print(f"{where}: {len(lines)} notebooks")


def pack(target: Path) -> None:
    """Write the student's edition as one zip file, to be unpacked into `outputs/editions`.

    Nothing is executed, and equal sources give an equal file.
    """
    place = ROOT / "outputs" / "editions" / "student"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / place.name
        build("student", folder, place)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                entry = zipfile.ZipInfo(path.relative_to(parent).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                packed.writestr(entry, path.read_bytes())


def _with_links(text: str, source: Path, page: Path, folder: Path, place: Path) -> str:
    """A text of an edition: pictures are copied beside it, links out of it lead to the checkout."""
    read_in = place / page.parent.relative_to(folder)

    def picture(match: re.Match[str]) -> str:
        file = (source.parent / match[2]).resolve()
        copy = folder / "pictures" / "_".join(file.relative_to(ROOT).parts[-3:])
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        return match[1] + Path(os.path.relpath(copy, page.parent)).as_posix()

    def link(match: re.Match[str]) -> str:
        file = (source.parent / match[2]).resolve()
        if file.suffix == ".ipynb" and file.is_relative_to(NOTEBOOKS):
            return match[0]  # the edition has it in the same place
        return match[1] + Path(os.path.relpath(file, read_in)).as_posix()

    return _LINK.sub(link, _PICTURE.sub(picture, text))


def main(wanted: list[str]) -> None:
    for edition in wanted or [*_ABOUT, "slides"]:
        if edition == "slides":
            import slides

            slides.build(outputs_root() / "editions" / "slides")
        else:
            build(edition, outputs_root() / "editions" / edition)


if __name__ == "__main__":
    main(sys.argv[1:])
