from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from lib.plots import plot_directions, plot_errors, plot_three_effects


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_every_explainer_is_a_mark_and_every_floor_a_line() -> None:
    rows = [
        ("d", "m", name, family, metric, 0.4, 0.3, 0.5)
        for metric in ("L2", "cosine", "normdiff")
        for name, family in (("Zero", "floor"), ("CONEXP", "paper"), ("LEACE", "ours"))
    ]
    table = pd.DataFrame(
        rows, columns=["dataset", "model", "explainer", "family", "metric", "error", "low", "high"]
    )
    ceilings = pd.DataFrame(
        [("d", "m", "L2", 0.2, 0.1, 0.3), ("d", "m", "bound", 0.1, 0.05, 0.15)],
        columns=["dataset", "model", "metric", "error", "low", "high"],
    )
    figure, plotted = plot_errors(table, ceilings)
    first, second, _ = figure.axes
    assert [t.get_text() for t in first.get_yticklabels()] == ["CONEXP", "LEACE"]
    assert (
        len(first.lines) == 7 and len(second.lines) == 5
    )  # two intervals, two marks, the floor; L2 has ceiling and bound as well
    assert len(first.patches) == 1 and not second.patches  # the ceiling's interval
    assert len(plotted) == len(table)


def test_an_explainer_from_outside_has_a_mark_and_a_line_in_the_legend() -> None:
    names = ["dataset", "model", "explainer", "family", "metric", "error", "low", "high"]
    rows = [("d", "m", "CONEXP", "paper", "L2", 0.4, 0.3, 0.5)]
    mine = ("d", "m", "mine:by_words", "outside", "L2", 0.2, 0.1, 0.3)
    ceilings = pd.DataFrame(columns=["dataset", "model", "metric", "error", "low", "high"])
    told = []
    for table in (rows, [*rows, mine]):
        figure, _ = plot_errors(pd.DataFrame(table, columns=names), ceilings)
        told.append([text.get_text() for text in figure.legends[0].get_texts()])
    assert set(told[1]) - set(told[0]) == {"outside"}


def test_heat_map_and_three_effects_draw_their_tables() -> None:
    table = pd.DataFrame(
        [
            ("d", "A", "food", "Negative", "Positive", 0.3),
            ("d", "B", "noise", "unknown", "Negative", 0.1),
        ],
        columns=["dataset", "explainer", "aspect", "old", "new", "L2"],
    )
    figure, plotted = plot_directions(
        table, "L2", "error", ("food", "noise"), {"Negative": "−", "unknown": "?", "Positive": "+"}
    )
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == [
        "food −→+",
        "noise ?→−",
    ] and len(plotted) == 2
    effects = pd.DataFrame(
        [("d", "food", "the world", 1.8), ("d", "food", "CONEXP", 2.5)],
        columns=["dataset", "aspect", "who", "stars"],
    )
    figure, _ = plot_three_effects(effects, "in stars")
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [1.8, 2.5]
