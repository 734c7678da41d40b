"""Is a saliency plausible, and is it faithful? The tests of Ding & Koehn (2021), section 3, line by line.

*verum* is the saliency for the class that the set expects, *malum* that for the other class. A line is in the expected
scenario where the clean prediction is the expected class, else in the alternative one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib.core.errors import TouchstoneError
from lib.studies.lm_saliency.lines import Span, frame_groups, span_tokens

SMALL = 0.01  # of a line's largest score: what lies below counts as zero in correlations, as in the released code
UNEQUAL = ("slots", "skip")
GROUPINGS = ("paper", "released")
N_RELEASED = 147  # the released script for the gender set reads this many template files, and leaves the others out
KEYS = ["dataset", "architecture", "size", "method"]


def is_plausible(
    verum: Sequence[float],
    malum: Sequence[float],
    cues: Iterable[Span],
    attractors: Iterable[Span],
    is_expected: bool,
) -> bool:
    """Whether a line passes (section 3.1): expected, max over cues > max over attractors in verum; alternative, the
    other way round in malum. A tie fails.

    >>> is_plausible([0.1, 0.9, 0.3], [0, 0, 0], [(1, 1)], [(2, 2)], is_expected=True)
    True
    """
    scores = np.asarray(verum if is_expected else malum, float)
    cue, attractor = (scores[span_tokens(spans)].max() for spans in (cues, attractors))
    return bool(cue > attractor) if is_expected else bool(cue < attractor)


def plausibility(saliency: pd.DataFrame, sets: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per explanation: the keys, line, cluster, is_expected and passed.

    `saliency`: dataset, architecture, size, method, line, probability (of class 1), class_0 and class_1 (scores). Raises
    TouchstoneError where scores and prefix differ in length.
    """
    records = {name: rows.to_dict("index") for name, rows in sets.items()}
    rows = []
    for one in saliency.itertuples():
        line = records[one.dataset][one.line]
        if len(one.class_0) != len(line["prefix"]):
            raise TouchstoneError(
                f"{one.dataset}, line {one.line + 1}: {len(one.class_0)} scores for a prefix of "
                f"{len(line['prefix'])} words; explain the same lines that are scored"
            )
        verum, malum = (one.class_1, one.class_0) if line["tag"] else (one.class_0, one.class_1)
        expected = (one.probability > 0.5) == bool(line["tag"])
        rows.append(
            (
                one.dataset,
                one.architecture,
                one.size,
                one.method,
                one.line,
                line["cluster"],
                expected,
                is_plausible(verum, malum, line["cues"], line["attractors"], expected),
            )
        )
    return pd.DataFrame(rows, columns=[*KEYS, "line", "cluster", "is_expected", "passed"])


def thresholded(scores: Sequence[float]) -> np.ndarray:
    """The scores, those under one per cent of the largest size set to zero."""
    scores = np.asarray(scores, float)
    return np.where(np.abs(scores) < SMALL * np.abs(scores).max(initial=0.0), 0.0, scores)


def pearson(left: Sequence[float], right: Sequence[float]) -> float:
    """Pearson's correlation of two lists of scores after the threshold; NaN where one of them does not vary."""
    a, b = thresholded(left), thresholded(right)
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def by_slot(
    scores: Sequence[float], cues: Iterable[Span], attractors: Iterable[Span]
) -> list[float]:
    """The scores of a line's slots: each noun by itself, and the sums of the words before, between and after them.

    Lines of one template but of different length can be compared by these (*taxi driver*; *near*, *to the side of*).

    >>> by_slot([1.0, 2.0, 3.0, 4.0, 5.0], [(1, 1)], [(4, 4)])
    [1.0, 2.0, 7.0, 5.0, 0.0]
    """
    values, start = np.asarray(scores, float), 0
    slots: list[float] = []
    for noun in span_tokens([*cues, *attractors]):
        slots += [float(values[start:noun].sum()), float(values[noun])]
        start = noun + 1
    return [*slots, float(values[start:].sum())]


def template_groups(rows: pd.DataFrame, grouping: str = "paper") -> pd.Series:
    """The template of each line; missing where a grouping leaves the line out.

    "paper": the column pattern (24 sections of Syneval; 283 frames of Winobias, 254 of them with two lines). "released":
    what the released scripts do. Of Syneval (patterns that start with a section's name) animate and inanimate nouns
    together and no prepositions, 12 groups; of the gender set the first 147 frames, those with the woman first before
    the others, each in alphabetical order.
    """
    if grouping not in GROUPINGS:
        raise TouchstoneError(f"grouping is {grouping!r}; write paper or released")
    if grouping == "paper":
        return rows["pattern"]
    if rows["pattern"].str.contains("obj_rel").any():
        return (
            rows["pattern"]
            .str.replace(r"_(in)?anim", "", regex=True)
            .mask(rows["pattern"].str.startswith("prep"))
        )
    frames = pd.Series(frame_groups(rows), rows.index).str.replace(
        r"\[(cue|attractor)\]", ",", regex=True
    )
    second = [min(c) > min(a) for c, a in zip(rows["cues"], rows["attractors"], strict=True)]
    kept = set(sorted(set(zip(second, frames, strict=True)))[:N_RELEASED])
    return rows["pattern"].where([pair in kept for pair in zip(second, frames, strict=True)])


def input_consistency(
    saliency: pd.DataFrame,
    sets: Mapping[str, pd.DataFrame],
    unequal: str = "slots",
    grouping: str = "paper",
) -> pd.DataFrame:
    """One row per pair (first line of a template, later line of it): keys, line, cluster, same_length, verum, malum.

    All pairs of a template share its first line (of those explained), so the cluster is the template. Pearson's correlation position by position. Pairs of unequal length are compared slot by slot ("slots") or left out
    ("skip", as released). `grouping`: see `template_groups`. Section 3.2; the paper's exp. column is verum over all
    lines, alt. is malum.
    """
    if unequal not in UNEQUAL:
        raise TouchstoneError(f"unequal is {unequal!r}; write slots or skip")
    groups = {
        name: template_groups(rows, grouping)
        for name, rows in sets.items()
        if name in set(saliency["dataset"])
    }
    found = []
    for key, part in saliency.groupby(KEYS, sort=False):
        lines, which = (
            sets[key[0]].loc[part["line"]],
            groups[key[0]].loc[part["line"]].reset_index(drop=True),
        )
        scores, records = _sides(part, lines["tag"]), lines.to_dict("records")
        for template, rows in which.groupby(which, sort=False).groups.items():
            for row in rows[1:]:
                pair = _pair(records[rows[0]], records[row], scores[rows[0]], scores[row], unequal)
                if pair is not None:
                    found.append((*key, lines.index[row], template, *pair))
    return pd.DataFrame(found, columns=[*KEYS, "line", "cluster", "same_length", "verum", "malum"])


def _sides(part: pd.DataFrame, tags: pd.Series) -> list[tuple[list[float], list[float]]]:
    """(verum, malum) of each explanation."""
    return [
        (b, a) if tag else (a, b)
        for a, b, tag in zip(part["class_0"], part["class_1"], tags, strict=True)
    ]


def _pair(
    first: Mapping[str, Any],
    other: Mapping[str, Any],
    one: Sequence[Sequence[float]],
    two: Sequence[Sequence[float]],
    unequal: str,
) -> tuple[bool, float, float] | None:
    if len(first["prefix"]) == len(other["prefix"]):
        return (True, *(pearson(a, b) for a, b in zip(one, two, strict=True)))
    if unequal == "skip":
        return None
    slots = [
        [by_slot(s, line["cues"], line["attractors"]) for s in sides]
        for line, sides in ((first, one), (other, two))
    ]
    return (False, *(pearson(a, b) for a, b in zip(*slots, strict=True)))


def model_consistency(saliency: pd.DataFrame, sets: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per line explained in a full model and in its student: keys, line, cluster, verum, malum (section 3.2)."""
    keys = ["dataset", "architecture", "method", "line"]
    columns = [*keys, "class_0", "class_1"]
    full, student = (
        saliency.loc[saliency["size"] == size, columns] for size in ("full", "student")
    )
    both = full.merge(student, on=keys, suffixes=("", "_student"))
    rows = []
    for one in both.itertuples():
        line = sets[one.dataset].loc[one.line]
        found = pearson(one.class_0, one.class_0_student), pearson(one.class_1, one.class_1_student)
        verum, malum = found[::-1] if line["tag"] else found
        rows.append(
            (
                one.dataset,
                one.architecture,
                "full",
                one.method,
                one.line,
                line["cluster"],
                verum,
                malum,
            )
        )
    return pd.DataFrame(rows, columns=[*KEYS, "line", "cluster", "verum", "malum"])


def read_outputs(folder: Path | str, rows: pd.DataFrame) -> pd.DataFrame:
    """Saliency computed elsewhere, as a frame for `plausibility` (dataset "files"), from tarsius' output files.

    `out.verum` and `out.malum`: per prefix one line, a list of numbers as Python prints it, `[0.46, 1.23]` (numbers split
    by blanks will do); it is read as numbers, never evaluated. `out.pos.idx`: the numbers (from 0) of the lines in the
    expected scenario, one a line. The layout is that of the example files in `shuoyangd/tarsius: scripts/faithfulness`.
    Raises TouchstoneError, naming file and line, for what does not fit.
    """
    folder = Path(folder)
    if missing := [
        name for name in ("out.verum", "out.malum", "out.pos.idx") if not (folder / name).is_file()
    ]:
        raise TouchstoneError(
            f"there is no {folder / missing[0]}; write out.verum, out.malum and out.pos.idx side by side"
        )
    verum, malum = (_numbers(folder / name, rows) for name in ("out.verum", "out.malum"))
    found = (folder / "out.pos.idx").read_text().split()
    if wrong_text := [text for text in found if not text.isdigit()]:
        raise TouchstoneError(
            f"{folder / 'out.pos.idx'}: {wrong_text[0]!r} is no line number; write one, from 0, a line"
        )
    expected = {int(text) for text in found}
    if wrong := sorted(i for i in expected if not 0 <= i < len(rows)):
        raise TouchstoneError(
            f"{folder / 'out.pos.idx'} names line {wrong[0]}, and the set has {len(rows)} lines"
        )
    frame = pd.DataFrame(
        {"dataset": "files", "architecture": "-", "size": "-", "method": "-", "line": rows.index}
    )
    frame["probability"] = [
        float((i in expected) == bool(tag)) for i, tag in enumerate(rows["tag"])
    ]
    for c in (0, 1):
        frame[f"class_{c}"] = [
            v if tag == c else m for v, m, tag in zip(verum, malum, rows["tag"], strict=True)
        ]
    return frame


def _numbers(path: Path, rows: pd.DataFrame) -> list[list[float]]:
    lines = path.read_text().splitlines()
    if len(lines) != len(rows):
        raise TouchstoneError(
            f"{path} has {len(lines)} lines and the set {len(rows)}; they must be aligned"
        )
    found = []
    for number, (line, prefix) in enumerate(zip(lines, rows["prefix"], strict=True), start=1):
        try:
            found.append(
                [
                    float(value)
                    for value in line.strip()
                    .removeprefix("[")
                    .removesuffix("]")
                    .replace(",", " ")
                    .split()
                ]
            )
        except ValueError as error:
            raise TouchstoneError(
                f"{path}, line {number}: {error}; write one number per word"
            ) from None
        if not np.isfinite(found[-1]).all():
            raise TouchstoneError(
                f"{path}, line {number}: a score is not finite; a test would count it as failed"
            )
        if len(found[-1]) != len(prefix):
            raise TouchstoneError(
                f"{path}, line {number}: {len(found[-1])} scores for {len(prefix)} words; write one "
                "number per word"
            )
    return found
