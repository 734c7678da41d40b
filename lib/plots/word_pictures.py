"""Sentences as a picture, words coloured by their scores: it stays coloured where styles are
stripped.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyBboxPatch

from ..core.errors import TouchstoneError
from .drawing import text_width
from .style import Plotted

# Orange and violet are told apart without red and green; black is read on both.
_TOWARD, _AWAY, _NEUTRAL, _WHITE = (
    np.array(to_rgb(name)) for name in ("#e08214", "#998ec3", "0.85", "white")
)
# the first one's words are bold as well
_UNDERLINES: tuple[Any, ...] = ("solid", (0, (1.5, 1.5)), (0, (5, 2)))
# sizes of letters, in points like all lengths here; at 6.9 inches in print the smallest have 7
_WORD, _LABEL, _SMALL = 12.5, 10.5, 10.0
_BOX, _PAD, _GAP = 20.0, 4.0, 8.0  # height of a box, room in it and between boxes


@dataclass
class _Sheet:
    """What is written from the top left: where the next word goes, and how far it may go."""

    ax: plt.Axes
    right: float
    least: float  # width of a word; with it, equal words of two rows stand below each other
    line: float = _BOX + 2  # from one line of words to the next
    left: float = 0.0
    x: float = 0.0
    y: float = 0.0

    def write(self, text: str, size: float = _LABEL, down: float = 14, **looks: Any) -> None:
        """Text with its baseline `down` below the top of the current line."""
        self.ax.text(self.x, self.y + down, text, fontsize=size, parse_math=False, **looks)

    def make_room(self, width: float) -> None:
        """Go to the next line where this one has no room for this width."""
        if self.x + width > self.right and self.x > self.left:
            self.x, self.y = self.left, self.y + self.line

    def box(self, text: str, colour: np.ndarray, mark: int | None, number: str = "") -> None:
        """A word in its box, with the underline of its mark and a number below."""
        inner = text_width(text, _WORD, mark == 0)
        width = max(inner, self.least) + 2 * _PAD
        self.make_room(width)
        patch = FancyBboxPatch((self.x, self.y), width, _BOX, "round,pad=0,rounding_size=3", lw=0)
        patch.set(
            facecolor=colour,
            hatch="//" * int(colour[2] > colour[0]),
            hatchcolor="white",
            hatch_linewidth=0.8,
        )
        self.ax.add_patch(patch)
        start, self.x = self.x, self.x + width / 2
        weight = "bold" if mark == 0 else "normal"
        self.write(text, _WORD, ha="center", weight=weight, color="#111")
        self.write(number, _SMALL, _BOX + _SMALL + 1, ha="center", color="0.3")
        if mark is not None:
            ends, low = [self.x - inner / 2, self.x + inner / 2], self.y + 17
            self.ax.plot(ends, [low, low], color="#111", lw=1.5, linestyle=_UNDERLINES[mark])
        self.x = start + width + 2


def plot_words(
    table: pd.DataFrame,
    marks: Mapping[str, str] = {},
    toward: str = "moves the model toward the class",
    title: str = "",
    digits: int | None = 2,
    width: float = 9.6,
) -> Plotted:
    """Sentences with their words coloured by their scores, one below the other, with a legend.

    Orange is a positive score, violet with stripes a negative one; the strongest colour of a row is
    its largest size. Long sentences go on in the next line.

    Args:
        table: one row a sentence, a table of explanations for example: words, a list of str;
            scores, a list of as many floats, or None where a row shows its marks only; label, what
            stands at its left, a second line of it in grey (method, where there is no label); if
            wanted, heading, a line that is written above where it changes; and marks, a list of as
            many str, "" where there is none.
        marks: what each mark means, for the legend; at most three. Words with the first one are
            underlined and bold, with the others dotted and dashed.
        toward: what orange means; of scores without a sign, say so here.
        title: the first line.
        digits: decimals of the scores below the words; None leaves them out.
        width: inches.

    Returns:
        The figure, and a table with one line a word: heading, label, word, score, mark.

    Raises:
        TouchstoneError: a row does not have one score, or one mark, a word.

    >>> sung = pd.DataFrame({"words": [["She", "sings"]], "scores": [[0.5, -0.1]], "label": "IG"})
    >>> plot_words(sung)[1]["score"].tolist()
    [0.5, -0.1]
    """
    rows = [_by_word(row) for row in table.to_dict("records")]
    figure, ax = plt.subplots(figsize=(width, 1))
    sheet = _Sheet(
        ax, 72 * width, 0.0 if digits is None else text_width("+0." + digits * "0", _SMALL)
    )
    for line in textwrap.wrap(title, int(9 * width)):
        sheet.write(line, _WORD, weight="bold")
        sheet.y += _BOX + 2
    sheet.y += _GAP / 2 * bool(title)
    _draw_rows(sheet, rows, list(marks), digits)
    shown = pd.concat(rows, ignore_index=True)
    _draw_legend(sheet, shown["score"], marks, toward, digits)
    ax.set(xlim=(0, sheet.right), ylim=(sheet.y, 0), position=(0, 0, 1, 1))
    ax.set_axis_off()
    figure.set_size_inches(width, sheet.y / 72)
    return figure, shown


def _draw_rows(
    sheet: _Sheet, rows: Sequence[pd.DataFrame], marks: Sequence[str], digits: int | None
) -> None:
    """All rows, each heading above the first of its rows; words begin at the same place in all."""
    labels = [_wrapped(row["label"].iloc[0]) for row in rows]
    indent = max(text_width(line, _LABEL) for lines in labels for line in lines) + 2 * _GAP
    above = ""
    for row, lines in zip(rows, labels):
        if row["heading"].iloc[0] != above:
            above, sheet.y = row["heading"].iloc[0], sheet.y + _GAP
            sheet.write(above, weight="bold", color="0.2")
            sheet.y += _BOX
        _draw_row(sheet, lines, row, indent, marks, digits)


def _by_word(row: Mapping[Any, Any]) -> pd.DataFrame:
    """A row with one line a word; what has no score has NaN."""
    words, label = row["words"], str(row.get("label", row.get("method", "")))
    scores = [np.nan] * len(words) if row["scores"] is None else row["scores"]
    marks = row.get("marks", [""] * len(words))
    if not len(words) == len(scores) == len(marks):
        raise TouchstoneError(
            f"{label!r} has {len(words)} words, {len(scores)} scores and {len(marks)} marks; give "
            "one of each a word"
        )
    about = {"heading": row.get("heading", ""), "label": label}
    return pd.DataFrame({**about, "word": words, "score": np.asarray(scores, float), "mark": marks})


def _draw_row(
    sheet: _Sheet,
    label: Sequence[str],
    row: pd.DataFrame,
    indent: float,
    marks: Sequence[str],
    digits: int | None,
) -> None:
    """A label and its words, wrapped; the sheet goes on below the longer of the two."""
    for i, line in enumerate(label):
        sheet.write(line, down=14 + i * 13, color="0.4" if i else "#111")
    bottom = sheet.y + _BOX + 13 * (len(label) - 1)
    sheet.left = sheet.x = indent
    largest = row["score"].abs().max() or 1.0  # NaN without scores
    sheet.line = _BOX + 3 + (_SMALL + 2) * (digits is not None and largest > 0)
    for one in row.itertuples():
        mark = marks.index(one.mark) if one.mark in marks else None
        colour = _shade(one.score / largest)
        if np.isnan(largest) and mark is not None:
            colour = _NEUTRAL
        sheet.box(one.word, colour, mark, _number(one.score, digits))
    sheet.y = max(bottom, sheet.y + sheet.line - 3) + _GAP
    sheet.left = sheet.x = 0.0


def _draw_legend(
    sheet: _Sheet, scores: pd.Series, marks: Mapping[str, str], toward: str, digits: int | None
) -> None:
    """What colours, underlines and numbers mean, wrapped."""
    looks: list[tuple[str, np.ndarray, int | None, str]] = []
    of_orange = f"{toward} (darkest: largest of its row)"
    looks += [("orange", _TOWARD, None, of_orange)] * bool(scores.notna().any())
    looks += [("violet", _AWAY, None, "the opposite")] * bool((scores < 0).any())
    looks += [("word", _WHITE, i, meaning) for i, meaning in enumerate(marks.values())]
    looks += [("+0.5", _WHITE, None, "a word's score")] * (digits is not None)
    sheet.ax.plot([0, sheet.right], [sheet.y] * 2, color="0.8", lw=0.8)
    sheet.y, sheet.line, sheet.least = sheet.y + _GAP / 2, _BOX + 4, 0.0
    for sample, colour, mark, meaning in looks:
        width = text_width(meaning, _SMALL) + 2 * _GAP
        sheet.make_room(text_width(sample, _WORD, mark == 0) + 2 * _PAD + width)
        sheet.box(sample, colour, mark)
        sheet.x += 3
        sheet.write(meaning, _SMALL, color="0.3")
        sheet.x += width
    sheet.y += _BOX


def _shade(share: float) -> np.ndarray:
    """White for 0 and for NaN, orange at 1, violet at -1."""
    return _WHITE - abs(np.nan_to_num(share)) * (_WHITE - (_TOWARD if share > 0 else _AWAY))


def _number(score: float, digits: int | None) -> str:
    if digits is None or np.isnan(score):
        return ""
    number = f"{score:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return number if round(score, digits) else "0"


def _wrapped(label: str) -> list[str]:
    return [line for part in label.split("\n") for line in textwrap.wrap(part, 30) or [""]]
