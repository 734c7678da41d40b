"""The figures of the published runs, drawn again from committed tables (make tour).

    python tools/tour.py [STUDY ...]

Nothing is downloaded, trained or explained: stage 05 of each study is executed as in
`tools/results.py`, from the tables that are committed, into outputs/tour/<study>/cpu. A figure of
an earlier stage is drawn by the cell that saves it (tools/redraw.py); where no table holds what it
shows, it is copied as it is committed. What was drawn and what was copied is printed.
"""

from __future__ import annotations

import lib.same_numbers  # first: the same instructions on every processor

import os
import shutil
import sys
import time
from pathlib import Path

import nbformat
from execute import run_cells
from results import SCALE, draw_or_keep, earlier_stages, notebook_of, prepare, published

from lib.core.errors import TouchstoneError
from lib.core.files import write_atomic
from lib.core.paths import outputs_root, reference_dir

DRAWN, COPIED = "drawn", "copied"


def tour(study: str, root: Path) -> dict[Path, str]:
    """The figures of a study at scale `cpu` below `root`: whether each is drawn or copied."""
    stages = root / study / SCALE
    shutil.rmtree(stages, ignore_errors=True)
    prepare(root, study)
    notebook = notebook_of(study)
    run_cells(notebook, f"{study}, the figures at scale {SCALE}")
    write_atomic(stages / "05_figures.ipynb", nbformat.writes(notebook) + "\n")
    earlier = {
        path: DRAWN if draw_or_keep(study, stage, path) else COPIED
        for stage in earlier_stages(study)
        for path in sorted((stages / stage).glob("*.png"))
    }
    return earlier | dict.fromkeys(sorted((stages / "05_figures").glob("*.png")), DRAWN)


def missing(study: str, figures: dict[Path, str]) -> list[str]:
    """The committed figures of a study that are neither drawn nor copied."""
    folder = reference_dir(study, SCALE)
    committed = {path.relative_to(folder) for path in folder.glob("*_*/*.png")}
    return sorted(map(str, committed - {Path(*path.parts[-2:]) for path in figures}))


def main(studies: list[str]) -> int:
    """Draw, and print what was drawn; the exit status is 1 if a figure is missing."""
    if unknown := sorted(set(studies) - set(published())):
        raise TouchstoneError(f"{unknown[0]} has no published run; write {', '.join(published())}")
    root, started = outputs_root() / "tour", time.monotonic()
    os.environ["TOUCHSTONE_OUTPUTS"] = str(root)  # where the kernels write
    n_drawn, lost = 0, []
    for study in studies or published():
        figures = tour(study, root)
        for path, how in figures.items():
            print(f"{how:<7} {path.relative_to(root)}", flush=True)
        n_drawn += sum(how == DRAWN for how in figures.values())
        lost += [f"{study}/{name}" for name in missing(study, figures)]
    print(f"{n_drawn} figures drawn in {time.monotonic() - started:.0f} s, into {root}")
    for name in lost:
        print(f"not drawn: {name}")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
