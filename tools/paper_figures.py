"""The figures of the published runs as a paper prints them, from committed tables (paper_figures).

    python tools/paper_figures.py [STUDY ...] [--into FOLDER]

Each figure of the runs at scale cpu is drawn anew at the width of one column (3.3 inches) or two
(6.9), or sideways (9.2): a PDF with its fonts embedded, an SVG whose letters are curves, and a text
with its caption. Nothing is trained or explained. What cannot be drawn from committed tables is
named, and so is what is hard to read in print.
"""

from __future__ import annotations

import lib.same_numbers  # first: the same instructions on every processor

import argparse
import sys
import time
from pathlib import Path

import redraw
from matplotlib.figure import Figure
from results import SCALE, published

from lib.core.errors import TouchstoneError
from lib.core.files import write_atomic
from lib.core.paths import outputs_root, reference_dir
from lib.core.pictures import caption, save_print, screen_letters

KINDS = ("pdf", "svg")
SCREEN = 9.0  # points: the smallest letters at 1,000 pixels


def print_study(study: str, into: Path) -> tuple[int, list[str]]:
    """Write all figures of a study.

    Returns:
        How many, and a line for each fault: not drawn, or hard to read.
    """
    told, written = [], set()

    def save(study: str, stage: str, name: str, figure: Figure) -> None:
        file = into / study / stage / name
        file.parent.mkdir(parents=True, exist_ok=True)
        for kind in KINDS:
            weak = save_print(figure, file.with_suffix(f".{kind}"))
        write_atomic(file.with_suffix(".txt"), caption(study, stage, name, figure))
        if (letters := screen_letters(figure)) < SCREEN:
            weak.append(f"at 1,000 pixels its smallest letters have {letters:.1f} points")
        written.add(file)
        told.extend(f"{study}/{stage}/{name}: {fault}" for fault in weak)

    for stage, name in earlier_figures(study):
        try:
            redraw.draw_earlier(study, SCALE, stage, name, save)
        except TouchstoneError as error:
            told.append(f"not drawn: {error}")
    redraw.draw_stage_05(study, SCALE, save)
    return len(written), told


def earlier_figures(study: str) -> list[tuple[str, str]]:
    """Stage and name of each committed figure before stage 05."""
    found = sorted(reference_dir(study, SCALE).glob("0[1-4]_*/*.png"))
    return [(path.parent.name, path.stem) for path in found]


def main(arguments: list[str]) -> int:
    """Write, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    known = sorted(published())
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=", ".join(known))
    parser.add_argument("--into", type=Path, default=outputs_root() / "paper_figures")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.studies) - set(known)):
        raise TouchstoneError(f"{unknown[0]} has no published run; write {', '.join(known)}")
    started, n = time.monotonic(), 0
    for study in given.studies or known:
        n_written, told = print_study(study, given.into)
        n += n_written
        for line in told:
            print(line, flush=True)
    print(f"{n} figures in {time.monotonic() - started:.0f} s, into {given.into}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
