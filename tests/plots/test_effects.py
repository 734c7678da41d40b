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


def test_words_in_a_row_without_a_mark_touch_no_line() -> None:
    names = ["dataset", "model", "explainer", "family", "metric", "error", "low", "high"]
    rows = [("d", model, "Zero", "floor", "L2", 0.5, 0.4, 0.6) for model in "mn"]
    rows += [("d", model, "CONEXP", "paper", "L2", 0.4, 0.3, 0.8) for model in "mn"]
    rows += [("d", "m", "LEACE", "ours", "L2", 0.6, 0.5, 0.7)]
    ceilings = [("d", "n", "L2", 0.05, 0.0, 0.12), ("d", "n", "bound", 0.03, 0.0, 0.06)]
    table = pd.DataFrame(ceilings, columns=["dataset", "model", "metric", "error", "low", "high"])
    figure, _ = plot_errors(pd.DataFrame(rows, columns=names), table)
    figure.canvas.draw()
    first, second = figure.axes
    (told,) = second.texts
    assert not first.texts and told.get_text() == "not run"
    box = told.get_window_extent()
    for line in (0.5, 0.05, 0.03, 0.12):
        at = second.transData.transform((line, 0))[0]
        assert not box.x0 <= at <= box.x1, f"the words lie on the line at {line}"


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


def test_the_title_of_the_errors_says_what_was_found() -> None:
    names = ["dataset", "model", "explainer", "family", "metric", "error", "low", "high"]
    ceilings = pd.DataFrame(columns=["dataset", "model", "metric", "error", "low", "high"])
    rows = [
        ("d", "m", "Zero", "floor", "L2", 0.6, 0.5, 0.7),
        ("d", "m", "B", "ours", "L2", 0.9, 0.8, 1.0),
        ("d", "m", "Approx", "paper", "L2", 0.7, 0.6, 0.8),
    ]
    figure, _ = plot_errors(pd.DataFrame(rows, columns=names), ceilings)
    assert figure.get_suptitle().endswith('has a larger L2 error than "nothing changes"')
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["Approx", "B"]
    rows[0] = ("d", "m", "Zero", "floor", "L2", 0.8, 0.7, 0.9)
    figure, _ = plot_errors(pd.DataFrame(rows, columns=names), ceilings)
    assert figure.get_suptitle().endswith('has a smaller L2 error than "nothing changes"')
    for other, said in (("n", "on no model"), ("m", "on no data set")):
        more = [("d" if other == "n" else "e", other, *row[2:]) for row in rows]
        figure, _ = plot_errors(pd.DataFrame([*rows, *more], columns=names), ceilings)
        assert figure.get_suptitle().endswith(said)


def test_rows_of_errors_are_told_apart_by_what_differs() -> None:
    names = ["dataset", "model", "explainer", "family", "metric", "error", "low", "high"]
    ceilings = pd.DataFrame(columns=["dataset", "model", "metric", "error", "low", "high"])
    for rows, heads in (
        ([("d", "m")], ["m: "]),
        ([("d", "m"), ("d", "n")], ["m: ", "n: "]),
        ([("d", "m"), ("e", "m")], ["d:\n", "e:\n"]),
        ([("d", "m"), ("e", "n")], ["d, m:\n", "e, n:\n"]),
    ):
        table = [(*row, "CONEXP", "paper", "L2", 0.4, 0.3, 0.5) for row in rows]
        figure, _ = plot_errors(pd.DataFrame(table, columns=names), ceilings)
        assert [ax.get_title() for ax in figure.axes] == [
            f"{head}whole effect (L2)" for head in heads
        ]


def test_heat_map_sorts_by_error_and_effect_and_marks_what_is_worse_than_silence() -> None:
    cells = [("food", "Negative", "Positive", 0.9), ("noise", "unknown", "Negative", 0.1)]
    rows = [
        ("d", name, aspect, old, new, error * times)
        for name, times in (("Zero", 1.0), ("Worse", 2.0), ("Better", 0.5))
        for aspect, old, new, error in cells
    ]
    table = pd.DataFrame(rows, columns=["dataset", "explainer", "aspect", "old", "new", "L2"])
    signs = {"Negative": "−", "unknown": "?", "Positive": "+"}
    figure, plotted = plot_directions(table, "L2", ("noise", "food"), signs)
    ax = figure.axes[0]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["food − → +", "noise ? → −"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["Better", "Zero", "Worse"]
    assert ax.lines[0].get_ydata().tolist() == [2, 2] and len(plotted) == 6
    assert ax.get_title(loc="right").startswith("1 of 2 explainers err less")
    assert "− Negative" in ax.get_xlabel()
    few = table[table["explainer"] != "Zero"]
    assert plot_directions(few, "L2", ("noise", "food"), signs)[0].axes[0].get_title(loc="right")


def test_three_effects_draws_its_table() -> None:
    effects = pd.DataFrame(
        [("d", "food", "the world", 1.8), ("d", "food", "CONEXP", 2.5)],
        columns=["dataset", "aspect", "who", "stars"],
    )
    figure, _ = plot_three_effects(effects, "in stars", "a finding")
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [1.8, 2.5]
    assert figure.get_suptitle() == "a finding"
