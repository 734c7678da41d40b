"""What schematics are drawn with: a sheet of paper measured in points, y downwards, one look.

A word that matters is bold and underlined; orange speaks for the answer, violet with stripes
against it; what learns is blue, what is random is hatched. No meaning has a colour alone.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.textpath import text_to_path

INK, SOFT, PALE = "#1c1d20", "#565a61", "#e4e4e0"
SECOND = "#b35806"  # a second line beside a black one, dashed as well
FOR, AGAINST, LEARNS, STAYS = "#e8a04c", "#b3abd3", "#b9d7ee", "#ffffff"
WIDTH = 400.0  # points: at eight centimetres the letters are still six points high
LETTERS, SMALL = 11.0, 10.0
CHIP = 19.0  # height of a word's box
DASHED: Any = (0, (3, 2))


class Drawing(NamedTuple):
    """A schematic and what it shows in words, for those who do not see it."""

    figure: plt.Figure
    alt: str


class Sheet:
    """A white sheet; every method draws on it at a place in points from the upper left corner."""

    def __init__(self, height: float, width: float = WIDTH) -> None:
        self.figure = plt.figure(figsize=(width / 72, height / 72), facecolor="white")
        self.ax = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, width), ylim=(height, 0))
        self.ax.set_axis_off()

    def text(self, x: float, y: float, text: str, size: float = LETTERS, **looks: Any) -> None:
        """Text whose baseline is at y; looks are matplotlib's (ha, weight, color, ...)."""
        looks = {"color": INK, "clip_on": False} | looks
        self.ax.text(x, y, text, fontsize=size, parse_math=False, **looks)

    def box(
        self, x: float, y: float, width: float, height: float, text: str = "", **looks: Any
    ) -> None:
        """A rounded box; lines of text in its middle, the first one bold where `head` is true."""
        head = looks.pop("head", False)
        looks = {"facecolor": STAYS, "edgecolor": SOFT, "linewidth": 1.0} | looks
        looks |= {"clip_on": False, "boxstyle": "round,pad=0,rounding_size=3"}
        self.ax.add_patch(FancyBboxPatch((x, y), width, height, **looks))
        lines = text.split("\n") if text else []
        top = y + height / 2 - 13 * (len(lines) - 1) / 2 + 4
        for i, line in enumerate(lines):
            weight, size = ("bold", LETTERS) if head and not i else ("normal", SMALL)
            self.text(x + width / 2, top + 13 * i, line, size, ha="center", weight=weight)

    def arrow(
        self, start: tuple[float, float], end: tuple[float, float], bend: float = 0.0, **looks: Any
    ) -> None:
        """An arrow between two points, bent by a share of its length."""
        looks = {"color": SOFT, "linewidth": 1.2} | looks
        looks |= {"arrowstyle": "-|>", "mutation_scale": 9.0, "clip_on": False}
        shape = f"arc3,rad={bend}"
        self.ax.add_patch(
            FancyArrowPatch(start, end, connectionstyle=shape, shrinkA=0, shrinkB=0, **looks)
        )

    def line(self, xs: Sequence[float], ys: Sequence[float], **looks: Any) -> None:
        """A line through points."""
        self.ax.plot(xs, ys, **({"color": INK, "linewidth": 1.2, "clip_on": False} | looks))

    def notes(self, x: float, y: float, *lines: str, **looks: Any) -> None:
        """Small grey lines below each other, the first with its baseline at y."""
        for k, line in enumerate(lines):
            self.text(x, y + 14 * k, line, SMALL, **({"color": SOFT} | looks))

    def dot(self, x: float, y: float, fill: str = INK, marker: str = "o", size: float = 8) -> None:
        """A mark with a dark edge."""
        looks = {"markersize": size, "markerfacecolor": fill, "markeredgecolor": INK}
        self.line([x], [y], linestyle="", marker=marker, **looks)

    def words(
        self,
        x: float,
        y: float,
        words: Sequence[str],
        marked: Collection[int] = (),
        fills: Mapping[int, str] = {},
        gone: Collection[int] = (),
        widths: Sequence[float] | None = None,
    ) -> list[float]:
        """Words in a row of boxes, from x on and with the upper edge at y.

        Args:
            x: the left end.
            y: the upper edge.
            words: the words.
            marked: positions of words that matter: bold and underlined.
            fills: colours by position; the others stay white. Violet is striped as well.
            gone: positions of words that were taken out: a dashed box without the word.
            widths: of the boxes, so that two rows stand below each other; as wide as the words
                by default.

        Returns:
            Where the middle of each word is.
        """
        widths = word_widths([words]) if widths is None else widths
        middles = []
        for i, (word, width) in enumerate(zip(words, widths, strict=True)):
            if i in gone:
                self.box(x, y, width, CHIP, linestyle=DASHED)
            else:
                fill = fills.get(i, STAYS)
                striped = {"hatch": "////", "hatchcolor": "white"} if fill == AGAINST else {}
                self.box(x, y, width, CHIP, facecolor=fill, edgecolor=PALE, **striped)
                weight = "bold" if i in marked else "normal"
                self.text(x + width / 2, y + 13.5, word, ha="center", weight=weight)
            if i in marked:
                self.line([x + 4, x + width - 4], [y + 16.5, y + 16.5], linewidth=1.6)
            middles.append(x + width / 2)
            x += width + 2
        return middles


def minus(text: str) -> str:
    """A text with real minus signs in place of hyphens."""
    return text.replace("-", "\N{MINUS SIGN}")


def text_width(text: str, size: float = LETTERS, bold: bool = False) -> float:
    """How wide a text is, in points."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    width: float = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    return width


def word_widths(rows: Sequence[Sequence[str]]) -> list[float]:
    """The width of each column of words, so that rows of equal length stand below each other."""
    return [max(text_width(word, bold=True) for word in column) + 9 for column in zip(*rows)]
