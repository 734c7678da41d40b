"""How a figure is saved: a PNG for screens, and beside it the same as SVG, and its caption.

A copy for print is drawn anew at the width of one column, two, or a page. Its letters keep a size
that can be read there, whatever the width on the screen was.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from . import paths
from .files import atomic_path, read_text

if TYPE_CHECKING:  # a plan draws nothing
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

BESIDE = (".svg", ".txt")  # what lies beside the PNG of every figure
COLUMN, PAGE, SIDEWAYS = 3.3, 6.9, 9.2  # inches: one column, two, and two on a page turned round
LETTERS = 7.0  # points: the smallest in print
_NARROW, _WIDE = 4.5, 12.5  # inches on the screen: up to here one column, from here sideways
_MARGIN, _SLACK = 0.04, 0.12  # inches: above and below; what a page may be wider than its figure
_NO_DATES: dict[str, dict[str, None]] = {  # by which equal figures would be different files
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_READING = "How to read the figure"
_NO_CAPTION = r"[|>!]|[*-] |\d+\. |\*+(Reading it|Stop and guess)"  # begins such a paragraph
# Letters are curves in SVG, and fonts are embedded in PDF; ids of SVG are the same each time.
_PRINT = {"svg.fonttype": "path", "svg.hashsalt": "touchstone", "pdf.fonttype": 42}


def save_png(figure: "Figure", path: Path) -> None:
    """Save a figure at 150 dots an inch with a palette of 256 colours.

    That is a third of the size, with no difference to the eye.
    """
    with atomic_path(path) as part:
        figure.savefig(part, format="png", dpi=150, bbox_inches="tight", metadata=_NO_DATES["png"])
        picture = Image.open(part).convert("RGB")
        picture.quantize(256).save(part, format="png", optimize=True, dpi=(150, 150))


def save_svg(figure: "Figure", path: Path) -> None:
    """Save a figure as it was last drawn, as SVG whose letters are curves.

    It is not laid out anew, which takes longer than to draw it. `save_print` does that.
    """
    import matplotlib

    laid_out = figure.get_layout_engine()
    try:
        if laid_out is not None:
            figure.set_layout_engine("none")
        with matplotlib.rc_context(_PRINT), atomic_path(path) as part:
            figure.savefig(part, format="svg", bbox_inches="tight", metadata=_NO_DATES["svg"])
    finally:
        if laid_out is not None:
            figure.set_layout_engine(laid_out)


def save_print(figure: "Figure", path: Path) -> list[str]:
    """Save a figure as SVG or PDF (by the ending) at the width of one column, two, or a page.

    The figure itself stays as it is.

    Returns:
        What is weak in print: letters that are too small, texts that lie on each other.
    """
    import matplotlib

    kind = path.suffix.lstrip(".")
    with at_print_size(figure) as page, matplotlib.rc_context(_PRINT), atomic_path(path) as part:
        figure.savefig(part, format=kind, bbox_inches=page, metadata=_NO_DATES[kind])
        is_off = min(abs(page.width - width) for width in (COLUMN, PAGE, SIDEWAYS)) > 0.01
        weak = [f"it is {page.width:.1f} inches wide"] if is_off else []
        return weak + weak_places(figure)


@contextmanager
def at_print_size(figure: "Figure") -> Iterator["Bbox"]:
    """A figure at the width of print, and its page in inches; afterwards it is as before."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()  # now all ticks are there
    is_free = not isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
    before = figure.get_tightbbox().width if is_free else float(figure.get_size_inches()[0])
    target = COLUMN if before <= _NARROW else PAGE if before < _WIDE else SIDEWAYS
    is_sheet = is_free and bool(figure.texts or not any(ax.axison for ax in figure.axes))
    with ExitStack() as undo:
        undo.callback(figure.set_size_inches, *figure.get_size_inches())
        undo.callback(figure.set_dpi, figure.dpi)
        figure.set_dpi(300)  # with few dots an inch letters are measured too narrow
        shrink = target / before if is_sheet else min(1.0, target / before)
        least = 0.0 if is_sheet else LETTERS
        taller = _set_letters(figure, shrink, least, undo)
        _set_lines(figure, min(1.0, taller), undo)
        width, height = figure.get_size_inches()
        width *= target / before
        if not is_sheet:
            if is_free:
                figure.set_layout_engine("constrained")
                undo.callback(figure.set_layout_engine, "none")
            figure.set_size_inches(width, height * taller)
            figure.draw_without_rendering()  # texts are measured as they were last drawn
            _fit_title(figure, target, undo)
            _fit_legends(figure, target, undo)
        for _ in range(4):  # what is outside the axes does not grow with them
            figure.set_size_inches(width, height * taller)
            figure.draw_without_rendering()
            box = figure.get_tightbbox()
            missing = target - _MARGIN - box.width
            if 0 <= missing < _SLACK:
                break
            width = max(width + missing - _SLACK / 2, target / 2)
        middle, half = (box.x0 + box.x1) / 2, max(target, box.width + _MARGIN) / 2
        yield Bbox.from_extents(middle - half, box.y0 - _MARGIN, middle + half, box.y1 + _MARGIN)


def weak_places(figure: "Figure") -> list[str]:
    """What is hard to read in a figure: small letters, texts on each other."""
    figure.draw_without_rendering()  # places depend on the dots an inch that it was saved with
    texts = _texts(figure)
    small = [size for text in texts if (size := text.get_fontsize()) < LETTERS - 0.01]
    weak = [f"{len(small)} texts are small, down to {min(small):.1f} points"] if small else []
    boxes = [text.get_window_extent() for text in texts]
    for i, left in enumerate(boxes):
        for j, right in enumerate(boxes[:i]):
            width = min(left.x1, right.x1) - max(left.x0, right.x0)
            height = min(left.y1, right.y1) - max(left.y0, right.y0)
            touches = min(width, height) > 0.1 * texts[i].get_fontsize() * figure.dpi / 72
            if touches and not (texts[i].get_rotation() % 90 or texts[j].get_rotation() % 90):
                weak.append(f"{texts[j].get_text()!r} lies on {texts[i].get_text()!r}")
    return weak


def screen_letters(figure: "Figure") -> float:
    """The smallest letters, in points, where a screen shows the figure 1,000 pixels wide."""
    figure.draw_without_rendering()
    smallest = min((text.get_fontsize() for text in _texts(figure)), default=np.inf)
    return float(smallest * 1000 / 96 / figure.get_tightbbox().width)


def caption(study: str, stage: str, name: str, figure: "Figure") -> str:
    """What a figure shows, in the words of its notebook: its title, the section, how to read it.

    Args:
        study: the study, a folder of notebooks; the start page where there is none.
        stage: the stage, a notebook; "" for the start page.
        name: the figure's, as it is saved.
        figure: the figure; its title comes first.
    """
    source = paths.ROOT / "notebooks" / study / f"{stage}.py"
    if not stage:
        source = paths.ROOT / "notebooks" / f"00_{study}.py"
    title = _title(figure)
    heading, text = _told(source, name) if source.is_file() else ("", "")
    parts = [title, heading if heading != title else "", text]
    sentences = [part if part[-1] in ".?!" else f"{part}." for part in parts if part]
    where = "/".join(part for part in (study, stage) if part)
    return " ".join([*sentences, f"(Touchstone, {where}, {name}.)"]) + "\n"


def _title(figure: "Figure") -> str:
    title = figure.get_suptitle()
    if not title and len(figure.axes) and len({ax.get_title() for ax in figure.axes} - {""}) == 1:
        title = next(ax.get_title() for ax in figure.axes if ax.get_title())
    return " ".join(title.split())


def _told(source: Path, name: str) -> tuple[str, str]:
    """The heading above the cell that saves a figure, and how to read the figure."""
    heading, told = "", [""]  # the texts of the section so far
    cells = re.split(r"^# %%(.*)\n", read_text(source), flags=re.M)
    place = _saving_cell(cells, name)
    for head, cell in zip(cells[1:place:2], cells[2:place:2]):
        if "[markdown]" in head:
            text = re.sub(r"^# ?", "", cell, flags=re.M)
            before, *sections = re.split(r"^#+ (.*)$", text, flags=re.M)
            if sections:
                heading, told = sections[-2], [sections[-1]]
            else:
                told.append(before)
    reading = [part for text in told for part in _paragraphs(text) if _READING in part]
    heading = re.sub(r"^The figure$", "", re.sub(r"^\d+ · ", "", _plain(heading)))
    text = " ".join(map(_plain, reading[-1:] or _paragraphs(told[-1])))
    return heading, re.sub(":$", ".", text)


def _paragraphs(text: str) -> list[str]:
    """The paragraphs of a text without its tables, lists, quotations and pictures."""
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    return [part for part in parts if part and not re.match(_NO_CAPTION, part)]


def _saving_cell(cells: list[str], name: str) -> int:
    """The place of the cell that saves a figure: by its name, or else the one that runs now."""
    found = [i for i, cell in enumerate(cells) if re.search(rf'\.figure\(\s*f?"{name}"', cell)]
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if not found and shell is not None:
        now = shell.user_ns.get("In", [""])[-1].strip()
        found = [i for i, cell in enumerate(cells) if now and cell.strip() == now]
    if not found:  # the name is made in a loop
        found = [i for i, cell in enumerate(cells) if re.search(r"\.figure\(\s*(?!\")", cell)]
    return found[0] if found else 0


def _plain(text: str) -> str:
    """Markdown without its marks."""
    text = re.sub(r"<!--.*?-->", "", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(rf"\*\*{_READING}\.?\*\*\s*", "", text)
    return re.sub(r"[*`]|(?<!\w)_|_(?!\w)", "", text).strip()


def _texts(figure: "Figure") -> list[Any]:
    """The texts that are drawn; ticks out of view and axes that are off are not."""
    from matplotlib.text import Text

    gone: set[int] = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            room = 1e-6 * (high - low)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not ax.axison or not low - room <= tick.get_loc() <= high + room:
                    gone |= {id(tick.label1), id(tick.label2)}
            if not ax.axison:
                gone |= {id(axis.label), id(axis.offsetText)}
    for legend in figure.legends:
        gone |= set() if legend.get_visible() else {id(text) for text in legend.findobj(Text)}
    found = [text for text in figure.findobj(Text) if text.get_visible() and id(text) not in gone]
    return [text for text in found if text.get_text().strip()]


def _set_letters(figure: "Figure", shrink: float, least: float, undo: ExitStack) -> float:
    """Make letters smaller, down to `least`; returns the largest share that one of them keeps."""
    texts = {text: text.get_fontsize() for text in _texts(figure)}
    for text, size in texts.items():
        undo.callback(text.set_fontsize, size)
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            for size in [label.get_fontsize() for label in axis.get_ticklabels()][:1]:
                # ticks that are made anew ask the axis
                undo.callback(axis.set_tick_params, labelsize=size)
                axis.set_tick_params(labelsize=max(least, shrink * size))
    for text, size in texts.items():
        text.set_fontsize(max(least, shrink * size))
    return max((max(least, shrink * size) / size for size in texts.values()), default=shrink)


def _set_lines(figure: "Figure", share: float, undo: ExitStack) -> None:
    """Make lines and markers thinner, as letters became."""
    from matplotlib.lines import Line2D

    for line in figure.findobj(Line2D):
        undo.callback(line.set_linewidth, line.get_linewidth())
        undo.callback(line.set_markersize, line.get_markersize())
        line.set_linewidth(share * line.get_linewidth())
        line.set_markersize(share * line.get_markersize())


def _fit_title(figure: "Figure", width: float, undo: ExitStack) -> None:
    """Break the figure's title into lines of this width, in inches."""
    for title in (text for text in _texts(figure) if text.get_text() == figure.get_suptitle()):
        share = width * figure.dpi / title.get_window_extent().width
        if share < 1:
            undo.callback(title.set_text, title.get_text())
            line = max(map(len, title.get_text().split("\n")))
            title.set_text(textwrap.fill(" ".join(title.get_text().split()), int(share * line)))


def _fit_legends(figure: "Figure", width: float, undo: ExitStack) -> None:
    """Give the figure's legends the number of columns that fits in this width, in inches."""
    for legend in list(figure.legends):
        texts = legend.get_texts()
        is_above = legend.get_window_extent().y0 > figure.bbox.height / 2
        shown = legend
        for columns in range(len(texts), 0, -1):
            if shown.get_window_extent().width < (width - 0.1) * figure.dpi:
                break
            _replace(shown, is_new=shown is not legend)
            shown = figure.legend(
                handles=legend.legend_handles,
                labels=[text.get_text() for text in texts],
                title=legend.get_title().get_text() or None,
                title_fontsize=legend.get_title().get_fontsize(),
                loc=f"outside {'upper' if is_above else 'lower'} center",
                ncols=columns,
                fontsize=texts[0].get_fontsize(),
                frameon=legend.get_frame_on(),
                columnspacing=1.2,
            )
        if shown is not legend:
            undo.callback(legend.set, visible=True, in_layout=True)
            undo.callback(shown.remove)


def _replace(legend: Any, is_new: bool) -> None:
    if is_new:
        legend.remove()
    else:
        legend.set(visible=False, in_layout=False)
