"""Plausibility and consistency of saliency on agreement lines (Ding & Koehn 2021, section 3).

A line is a prefix with cues, which speak for the class that the set expects next, and attractors,
which speak for the other one. *verum* is the saliency for the expected class, *malum* that for the
other class. A line is in the expected scenario where the clean prediction is the expected class,
else in the alternative one.

All tables of saliency have the columns dataset, architecture, size, method, line (an index of the
set), class_0 and class_1 (scores, one a word); the sets have prefix (words), tag (the expected
class), cues, attractors (lists of spans), pattern (the template) and cluster.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..core.errors import TouchstoneError
from ..language.spans import Span, span_tokens

# of a line's largest score: what lies below counts as zero in correlations, as in the released code
_SMALL = 0.01
_UNEQUAL = ("slots", "skip")
_KEYS = ["dataset", "architecture", "size", "method"]


def is_plausible(
    verum: Sequence[float],
    malum: Sequence[float],
    cues: Iterable[Span],
    attractors: Iterable[Span],
    is_expected: bool,
) -> bool:
    """Whether a line passes (section 3.1): expected, max over cues > max over attractors in verum;
    alternative, the other way round in malum. A tie fails.

    >>> is_plausible([0.1, 0.9, 0.3], [0, 0, 0], [(1, 1)], [(2, 2)], is_expected=True)
    True
    """
    scores = np.asarray(verum if is_expected else malum, float)
    cue, attractor = (scores[span_tokens(spans)].max() for spans in (cues, attractors))
    return bool(cue > attractor) if is_expected else bool(cue < attractor)


def plausibility(saliency: pd.DataFrame, sets: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Which explanations pass the test of their line (`is_plausible`).

    Args:
        saliency: explanations, with a column probability (of class 1).
        sets: the lines, by the name of the data set.

    Returns:
        One row per explanation: dataset, architecture, size, method, line, cluster, is_expected,
        passed.

    Raises:
        TouchstoneError: where scores and prefix differ in length.
    """
    lines = _lines(saliency, sets)
    is_expected, passed = [], []
    for row, line in zip(saliency.itertuples(), lines, strict=True):
        if len(row.class_0) != len(line["prefix"]):
            raise TouchstoneError(
                f"{row.dataset}, line {row.line + 1}: {len(row.class_0)} scores for a prefix of "
                f"{len(line['prefix'])} words; explain the same lines that are scored"
            )
        is_expected.append((row.probability > 0.5) == bool(line["tag"]))
        sides = _sides(row.class_0, row.class_1, line["tag"])
        passed.append(is_plausible(*sides, line["cues"], line["attractors"], is_expected[-1]))
    table = saliency[[*_KEYS, "line"]].assign(cluster=[line["cluster"] for line in lines])
    return table.assign(is_expected=is_expected, passed=passed).reset_index(drop=True)


def thresholded(scores: Sequence[float]) -> np.ndarray:
    """The scores, those under one per cent of the largest size set to zero.

    >>> thresholded([1.0, 0.005, -0.5]).tolist()
    [1.0, 0.0, -0.5]
    """
    scores = np.asarray(scores, float)
    return np.where(np.abs(scores) < _SMALL * np.abs(scores).max(initial=0.0), 0.0, scores)


def pearson(left: Sequence[float], right: Sequence[float]) -> float:
    """Pearson's correlation of two lists of scores after the threshold; NaN where one of them does
    not vary.

    >>> round(pearson([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 6)
    1.0
    """
    a, b = thresholded(left), thresholded(right)
    # Asked before, for corrcoef would warn and divide by zero.
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def by_slot(
    scores: Sequence[float], cues: Iterable[Span], attractors: Iterable[Span]
) -> list[float]:
    """The scores of a line's slots: each noun by itself, and the sums of the words before, between
    and after them.

    Lines of one template but of different length can be compared by these (*taxi driver*; *near*,
    *to the side of*).

    >>> by_slot([1.0, 2.0, 3.0, 4.0, 5.0], [(1, 1)], [(4, 4)])
    [1.0, 2.0, 7.0, 5.0, 0.0]
    """
    cuts = [cut for noun in span_tokens([*cues, *attractors]) for cut in (noun, noun + 1)]
    return [float(slot.sum()) for slot in np.split(np.asarray(scores, float), cuts)]


def input_consistency(
    saliency: pd.DataFrame,
    sets: Mapping[str, pd.DataFrame],
    unequal: str = "slots",
    templates: Mapping[str, pd.Series] | None = None,
) -> pd.DataFrame:
    """Pearson's correlation of the scores of two lines of one template, position by position
    (section 3.2).

    Each later line of a template is compared with its first (of those explained), so the cluster is
    the template. The paper's exp. column is verum over all lines, alt. is malum.

    Args:
        unequal: lines of different length are compared slot by slot ("slots") or left out ("skip",
            as released).
        templates: the template of each line, by data set, missing where a line is left out; by
            default the column pattern.

    Returns:
        One row per pair: dataset, architecture, size, method, line (the later one), cluster,
        same_length, verum, malum.
    """
    if unequal not in _UNEQUAL:
        raise TouchstoneError(f"unequal is {unequal!r}; write slots or skip")
    templates = templates or {name: rows["pattern"] for name, rows in sets.items()}
    pairs = []
    for key, part in saliency.groupby(_KEYS, sort=False):
        lines = _lines(part, sets)
        sides = [
            _sides(class_0, class_1, line["tag"])
            for class_0, class_1, line in zip(part["class_0"], part["class_1"], lines, strict=True)
        ]
        of_line = templates[key[0]].loc[part["line"]].reset_index(drop=True)
        for template, (first, *later) in of_line.groupby(of_line, sort=False).groups.items():
            for other in later:
                # Of equal length positions correspond; otherwise only slots do.
                same_length = len(lines[first]["prefix"]) == len(lines[other]["prefix"])
                if not same_length and unequal == "skip":
                    continue
                compared = [
                    sides[i]
                    if same_length
                    else [by_slot(s, lines[i]["cues"], lines[i]["attractors"]) for s in sides[i]]
                    for i in (first, other)
                ]
                both_sides = (pearson(*scores) for scores in zip(*compared, strict=True))
                line = part["line"].iloc[other]
                pairs.append((*key, line, template, same_length, *both_sides))
    return pd.DataFrame(pairs, columns=[*_KEYS, "line", "cluster", "same_length", "verum", "malum"])


def model_consistency(saliency: pd.DataFrame, sets: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Pearson's correlation of the scores of a line in a full model and in its student (section
    3.2).

    Returns:
        One row per line that is explained in both (column size: "full", "student"): dataset,
        architecture, size, method, line, cluster, verum, malum.
    """
    keys = ["dataset", "architecture", "method", "line"]
    full, student = (
        saliency.loc[saliency["size"] == size, [*keys, "class_0", "class_1"]]
        for size in ("full", "student")
    )
    both = full.merge(student, on=keys, suffixes=("", "_student"))
    lines = _lines(both, sets)
    correlations = [
        _sides(
            pearson(row.class_0, row.class_0_student),
            pearson(row.class_1, row.class_1_student),
            line["tag"],
        )
        for row, line in zip(both.itertuples(), lines, strict=True)
    ]
    return both.assign(
        size="full",
        cluster=[line["cluster"] for line in lines],
        verum=[verum for verum, _ in correlations],
        malum=[malum for _, malum in correlations],
    )[[*_KEYS, "line", "cluster", "verum", "malum"]]


def _lines(saliency: pd.DataFrame, sets: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """The line of each explanation."""
    asked = saliency.groupby("dataset")["line"].unique()
    records = {name: sets[name].loc[lines].to_dict("index") for name, lines in asked.items()}
    return [records[name][i] for name, i in zip(saliency["dataset"], saliency["line"], strict=True)]


def _sides(class_0: Any, class_1: Any, tag: int) -> tuple[Any, Any]:
    """(verum, malum) from what belongs to the two classes."""
    return (class_1, class_0) if tag else (class_0, class_1)
