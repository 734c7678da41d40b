"""A figure is saved with a copy for print and a caption: size, letters, fonts."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from lib.core import paths
from lib.core.pictures import (
    COLUMN,
    LETTERS,
    PAGE,
    SIDEWAYS,
    at_print_size,
    caption,
    save_print,
    screen_letters,
    weak_places,
)
from lib.core.stage import open_stage

POINTS = 72


def wide_figure(width: float = 11.0, layout: str | None = "constrained") -> Figure:
    figure, axes = plt.subplots(1, 4, figsize=(width, 2.5), layout=layout)
    for i, ax in enumerate(axes):
        ax.plot([0, 1], [i, 1], label=f"a line with a rather long name, number {i}")
        ax.set_title("a panel", fontsize=9)
    handles = [ax.lines[0] for ax in axes]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
    return figure


def page_of(pdf: Path) -> tuple[float, float]:
    found = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", pdf.read_bytes())
    assert found
    return float(found[1]) / POINTS, float(found[2]) / POINTS


@pytest.mark.parametrize(("width", "printed"), [(4.0, COLUMN), (11.0, PAGE), (15.0, SIDEWAYS)])
def test_a_page_has_the_width_of_a_column(tmp_path: Path, width: float, printed: float) -> None:
    save_print(wide_figure(width), tmp_path / "figure.pdf")
    assert page_of(tmp_path / "figure.pdf")[0] == pytest.approx(printed, abs=0.01)


def test_letters_keep_their_size_and_stay_on_the_page() -> None:
    figure = wide_figure()
    with at_print_size(figure) as page:
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
        assert page.x0 <= box.x0 and box.x1 <= page.x1
        assert page.y0 <= box.y0 and box.y1 <= page.y1
        shown = [legend for legend in figure.legends if legend.get_visible()]
        texts = [*shown[0].get_texts(), *(ax.title for ax in figure.axes)]
        texts += [text for ax in figure.axes for text in ax.get_xticklabels()]
        assert min(text.get_fontsize() for text in texts) >= LETTERS
        assert len(shown) == 1 and not weak_places(figure)


def test_a_long_title_is_broken_into_lines_and_comes_back() -> None:
    figure, title = wide_figure(), "a finding, told in a sentence that goes on and on, " * 3
    figure.suptitle(title)
    with at_print_size(figure):
        assert "\n" in figure.get_suptitle()
    assert figure.get_suptitle() == title


def test_the_figure_is_as_it_was(tmp_path: Path) -> None:
    def looks(figure: Figure) -> tuple[object, ...]:
        letters = {text.get_fontsize() for text in figure.findobj(Text)}
        lines = {(line.get_linewidth(), line.get_markersize()) for line in figure.findobj(Line2D)}
        shown = [(legend.get_visible(), legend.get_in_layout()) for legend in figure.legends]
        return tuple(figure.get_size_inches()), figure.dpi, letters, lines, shown

    figure = wide_figure()
    figure.draw_without_rendering()
    before = looks(figure)
    save_print(figure, tmp_path / "figure.svg")
    assert looks(figure) == before


def test_fonts_are_embedded_and_equal_figures_are_equal_files(tmp_path: Path) -> None:
    for name in ("a.pdf", "b.pdf", "a.svg", "b.svg"):
        save_print(wide_figure(), tmp_path / name)
    pdf, svg = (tmp_path / "a.pdf").read_bytes(), (tmp_path / "a.svg").read_bytes()
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
    assert b"<svg" in svg and b"<text" not in svg, "letters are curves"
    assert pdf == (tmp_path / "b.pdf").read_bytes() and svg == (tmp_path / "b.svg").read_bytes()


def test_what_is_drawn_at_places_is_made_smaller_as_a_whole() -> None:
    figure = Figure(figsize=(10, 1))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    text = ax.text(0.1, 0.5, "words", fontsize=12)
    ax.plot([0, 1], [0, 1])
    with at_print_size(figure):
        assert text.get_fontsize() == pytest.approx(12 * PAGE / 10, rel=0.05)
    assert text.get_fontsize() == 12


def test_weak_places_are_named() -> None:
    figure, ax = plt.subplots(figsize=(3, 2))
    ax.text(0.5, 0.5, "small", fontsize=5)
    ax.text(0.2, 0.2, "below")
    ax.text(0.21, 0.21, "above")
    told = " ".join(weak_places(figure))
    assert "1 texts are small, down to 5.0 points" in told and "'below' lies on 'above'" in told


def test_letters_on_a_screen_are_measured_by_the_width() -> None:
    figure = Figure(figsize=(1000 / 96, 2))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xticks=[], yticks=[])
    ax.text(0.5, 0.5, "words", fontsize=9)
    assert screen_letters(figure) == pytest.approx(9, abs=0.1)


NOTEBOOK = """# %% [markdown]
# ## 3 · Who is **right**?
#
# A [claim](x.md) of the paper.
#
# **How to read the figure.** Further `right` is
# better.<!-- a/cell -->

# %% tags=["slide"]
stage.figure("first", draw(), formats)

# %% [markdown]
# ## Next
#
# Only what stands above:

# %%
stage.figure(f"other_{name}", draw())
"""


def test_a_caption_is_what_the_notebook_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "notebooks" / "toy" / "05_figures.py"
    source.parent.mkdir(parents=True)
    source.write_text(NOTEBOOK)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    figure = wide_figure()
    figure.suptitle("Everybody is")
    assert caption("toy", "05_figures", "first", figure) == (
        "Everybody is. Who is right? Further right is better. "
        "(Touchstone, toy/05_figures, first.)\n"
    )
    assert caption("toy", "05_figures", "other_a", Figure()) == (
        "Next. Only what stands above. (Touchstone, toy/05_figures, other_a.)\n"
    )
    assert caption("toy", "04_none", "x", Figure()) == "(Touchstone, toy/04_none, x.)\n"


def test_a_stage_saves_a_copy_for_print_and_a_caption_and_does_not_show_them(
    small_outputs: Path,
) -> None:
    stage = open_stage("toy", "small", "05_figures")
    stage.figure("line", wide_figure())
    assert {path.name for path in stage.folder.glob("line.*")} == {
        "line.png",
        "line.svg",
        "line.txt",
    }
    stage.figure("line", wide_figure(), formats=("png", "pdf"))
    assert (stage.folder / "line.pdf").is_file()
    shown = stage.close({})
    assert set(shown["file"]) == {"line.png", "line.pdf"}
