"""What the paper's released code (tarsius) does: its groups of templates, and its output files."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError, check_choice
from ...core.files import read_text
from .lines import frame_groups

# the released script for the gender set reads this many template files, and leaves the others out
_N_RELEASED = 147
GROUPINGS = ("paper", "released")
_OUTPUTS = ("out.verum", "out.malum", "out.pos.idx")


def template_groups(rows: pd.DataFrame, grouping: str = "paper") -> pd.Series:
    """The template of each line; missing where a grouping leaves the line out.

    Args:
        rows: agreement lines, with the column pattern.
        grouping: "paper", the pattern (24 sections of Syneval; 283 frames of Winobias, 254 of them
            with two lines), or "released", what the released scripts do. Of Syneval (patterns that
            start with a section's name) animate and inanimate nouns together and no prepositions,
            12 groups; of the gender set the first 147 frames, those with the woman first before the
            others, each in alphabetical order.
    """
    check_choice("grouping", grouping, GROUPINGS)
    if grouping == "paper":
        return rows["pattern"]
    if rows["pattern"].str.contains("obj_rel").any():
        return (
            rows["pattern"]
            .str.replace(r"_(in)?anim", "", regex=True)
            .mask(rows["pattern"].str.startswith("prep"))
        )
    frames = [re.sub(r"\[(cue|attractor)\]", ",", frame) for frame in frame_groups(rows)]
    second = [min(c) > min(a) for c, a in zip(rows["cues"], rows["attractors"], strict=True)]
    files = list(zip(second, frames, strict=True))
    # As the scripts meet the files: in the alphabetical order of their names.
    read = set(sorted(set(files))[:_N_RELEASED])
    return rows["pattern"].where([file in read for file in files])


def read_outputs(folder: Path | str, rows: pd.DataFrame) -> pd.DataFrame:
    """Saliency computed elsewhere, from tarsius' output files, as a table for `plausibility`
    (dataset "files").

    `out.verum` and `out.malum`: per prefix one line, a list of numbers as Python prints it, `[0.46,
    1.23]` (numbers split by blanks will do); it is read as numbers, never evaluated. `out.pos.idx`:
    the numbers (from 0) of the lines in the expected scenario, one a line. The layout is that of
    the example files in `shuoyangd/tarsius: scripts/faithfulness`.

    Args:
        rows: the agreement lines that were explained, in the order of the files.

    Raises:
        TouchstoneError: naming file and line, for what does not fit.
    """
    folder = Path(folder)
    if missing := [name for name in _OUTPUTS if not (folder / name).is_file()]:
        raise TouchstoneError(
            f"there is no {folder / missing[0]}; write {', '.join(_OUTPUTS[:2])} and {_OUTPUTS[2]} "
            "side by side"
        )
    verum, malum, numbers = (folder / name for name in _OUTPUTS)
    expected = _line_numbers(numbers, len(rows))
    tags = rows["tag"].tolist()
    sides = list(zip(tags, _scores(verum, rows), _scores(malum, rows), strict=True))
    return pd.DataFrame(
        {
            "dataset": "files",
            "architecture": "-",
            "size": "-",
            "method": "-",
            "line": rows.index,
            "probability": [float((i in expected) == bool(tag)) for i, tag in enumerate(tags)],
            "class_0": [m if tag else v for tag, v, m in sides],
            "class_1": [v if tag else m for tag, v, m in sides],
        }
    )


def _line_numbers(path: Path, n_lines: int) -> set[int]:
    texts = read_text(path).split()
    if wrong := [text for text in texts if not (text.isascii() and text.isdecimal())]:
        raise TouchstoneError(f"{path}: {wrong[0]!r} is no line number; write one, from 0, a line")
    numbers = {int(text) for text in texts}
    if numbers and max(numbers) >= n_lines:
        beyond = min(number for number in numbers if number >= n_lines)
        raise TouchstoneError(
            f"{path} names line {beyond}, and the set has {n_lines} lines; count from 0"
        )
    return numbers


def _scores(path: Path, rows: pd.DataFrame) -> list[list[float]]:
    lines = read_text(path).splitlines()
    if len(lines) != len(rows):
        raise TouchstoneError(
            f"{path} has {len(lines)} lines and the set {len(rows)}; they must be aligned"
        )
    scores = []
    for number, (line, prefix) in enumerate(zip(lines, rows["prefix"], strict=True), start=1):
        where = f"{path}, line {number}"
        texts = line.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
        try:
            # Python would read 1_5 as 15.
            if odd := [text for text in texts if "_" in text]:
                raise ValueError(f"{odd[0]!r} is no number")
            values = [float(text) for text in texts]
        except ValueError as error:
            raise TouchstoneError(f"{where}: {error}; write one number per word") from None
        if not np.isfinite(values).all():
            raise TouchstoneError(
                f"{where}: a score is not finite; a test would count it as failed"
            )
        if len(values) != len(prefix):
            raise TouchstoneError(
                f"{where}: {len(values)} scores for {len(prefix)} words; write one number per word"
            )
        scores.append(values)
    return scores
