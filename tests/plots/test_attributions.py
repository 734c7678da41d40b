"""Figures show what their tables hold: every method, every floor, every model below the gate."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from lib.plots import (
    BELOW,
    method_grid,
    plot_correlation,
    plot_example,
    plot_form_difference,
    plot_mass_accuracy,
    plot_performance,
    plot_relative_mass_accuracy,
    plot_significance,
)
from lib.plots.panels import (
    FAMILY_LOOKS,
    FLOOR_LOOKS,
    METHOD_ORDER,
    SCHEME_NAMES,
    SCHEME_ORDER,
    dataset_label,
    method_label,
    scheme_label,
)

DATASETS = ("D_A", "D_S")
FLOORS = ("Uniform random", "First pronoun", "Pronoun list", "Pattern Variant")


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def results(**columns: object) -> pd.DataFrame:
    """A table of all methods and schemes, floors with scheme -, C below the first-pronoun rule."""
    models = [(d, s, m) for d in DATASETS for s in SCHEME_ORDER for m in METHOD_ORDER] + [
        (d, "-", m) for d in DATASETS for m in FLOORS
    ]
    table = pd.DataFrame(models, columns=["dataset", "scheme", "method"])
    x = np.linspace(0.1, 0.9, len(table))
    return table.assign(
        MA=x, low=x - 0.05, high=x + 0.05, below_first_pronoun=table["scheme"] == "C", **columns
    )


def legend_texts(figure: plt.Figure) -> set[str]:
    return {text.get_text() for text in figure.legends[0].get_texts()}


def finding(figure: plt.Figure) -> str:
    return figure.legends[0].get_title().get_text()


def test_mass_accuracy_draws_every_method_and_every_floor_in_every_panel():
    table = results()
    figure, plotted = plot_mass_accuracy(table)
    assert len(figure.axes) == len(DATASETS) * len(SCHEME_ORDER) and set(FLOORS) < legend_texts(
        figure
    )
    panel = figure.axes[SCHEME_ORDER.index("CE")]
    drawn = sorted(x for container in panel.containers for x in container.lines[0].get_xdata())
    assert drawn == pytest.approx(sorted(table.query("dataset == 'D_A' and scheme == 'CE'")["MA"]))
    lines = {
        round(float(line.get_xdata()[0]), 6)
        for line in panel.lines
        if len(set(line.get_xdata())) == 1
    }
    assert set(table.query("dataset == 'D_A' and scheme == '-'")["MA"].round(6)) <= lines
    assert len(plotted) == len(table)


def test_a_method_stands_on_its_own_line():
    table = results()
    figure, _ = plot_mass_accuracy(table)
    where = {}
    for container in figure.axes[0].containers:
        x, y = container.lines[0].get_data()
        where |= dict(zip(np.round(x, 6), y))
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    for row in table.query("dataset == 'D_A' and scheme == 'ZS'").itertuples():
        assert labels[int(where[round(row.MA, 6)])] == method_label(row.method)


@pytest.mark.slow
def test_a_model_below_the_rule_is_marked_and_explained():
    figure, _ = plot_mass_accuracy(results())
    marked = [i for i, ax in enumerate(figure.axes) if "\N{DAGGER}" in ax.get_title()]
    column = SCHEME_ORDER.index("C")
    assert marked == [column, len(SCHEME_ORDER) + column]
    assert figure.axes[column].get_title() == "head only (C) \N{DAGGER}"
    assert any(BELOW in text for text in legend_texts(figure))
    assert [ax.get_ylabel() for ax in figure.axes[5::6]] == [dataset_label(d) for d in DATASETS]
    clean, _ = plot_mass_accuracy(results().assign(below_first_pronoun=False))
    assert not any(BELOW in text for text in legend_texts(clean))


def test_relative_mass_accuracy_leaves_out_the_baseline_and_shows_the_floors():
    table = results(RMA=1.5, RMA_first_pronoun=4.0, RMA_uniform_random=0.9).query("scheme != '-'")
    figure, plotted = plot_relative_mass_accuracy(table)
    assert "ZS" not in set(plotted["scheme"]) and len(figure.axes) == len(DATASETS) * (
        len(SCHEME_ORDER) - 1
    )
    assert {"First pronoun", "Uniform random", "zero-shot model"} < legend_texts(figure)
    n_above = (plotted["low"] > 1).sum()
    assert finding(figure).startswith(f"{n_above} of {len(plotted)} explanations lie more")


def test_correlations_are_sorted_and_cut():
    table = pd.DataFrame(
        [(d, c, f"word{i}", i / 20) for d in DATASETS for c in "FM" for i in range(15)],
        columns=["dataset", "class", "word", "r"],
    )
    figure, plotted = plot_correlation(table)
    assert len(plotted) == 4 * 10 and plotted["word"][0] == "word14" and len(figure.axes) == 4
    assert "in 0 of 4 panels" in figure.get_suptitle()
    table.loc[table["word"] == "word14", "word"] = "she"
    assert "in 4 of 4 panels" in plot_correlation(table)[0].get_suptitle()


def test_performance_shows_models_hard_rows_and_floors():
    table = pd.DataFrame(
        [
            (d, s, x, x - 0.1, x + 0.05, x - 0.2, x - 0.3, x, s == "C")
            for d in DATASETS
            for x, s in zip(
                np.linspace(0.5, 0.9, 8), (*SCHEME_ORDER, "First pronoun rule", "Bag of words")
            )
        ],
        columns=[
            "dataset",
            "scheme",
            "accuracy",
            "low",
            "high",
            "accuracy_hard",
            "low_hard",
            "high_hard",
            "below_first_pronoun",
        ],
    )
    figure, plotted = plot_performance(table)
    assert {"all rows", "hard rows", "First pronoun rule", "Bag of words"} == legend_texts(figure)
    names = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert names == [scheme_label(name, 20) for name in SCHEME_ORDER] and len(plotted) == len(table)
    assert finding(figure) == "2 of 12 models classify worse than the first-pronoun rule"


def test_the_example_shows_every_word_and_marks_the_ground_truth():
    words = ["She", "leaves", "her", "house", "."]
    table = pd.DataFrame(
        [
            (s, m, i, w, 0.2, int(w in ("She", "her")))
            for s, m in [
                *((s, m) for s in ("C", "CE") for m in ("LIME", "Saliency")),
                ("-", "First pronoun"),
            ]
            for i, w in enumerate(words)
        ],
        columns=["scheme", "method", "position", "word", "share", "is_truth"],
    )
    figure, plotted = plot_example(table)
    assert len(figure.axes) == 2 * 3 and len(plotted) == 5
    hatched = [bar.get_hatch() for bar in figure.axes[0].patches]
    assert [bool(h) for h in hatched] == [True, False, True, False, False]
    assert not figure.axes[5].axison  # two methods, one floor: the panel under it stays empty


@pytest.mark.parametrize(("n_her", "told"), [(1, "3 of 4"), (4, "4 of 4")])
def test_the_title_of_the_example_names_the_word_with_most_first_places(n_her: int, told: str):
    words = ["She", "sees", "her", "."]
    explained = [(s, m) for s in ("C", "CE") for m in ("LIME", "Saliency")]
    table = pd.DataFrame(
        [
            (s, m, i, w, 0.7 if i == (2 if k < n_her else 0) else 0.1, i != 1)
            for k, (s, m) in enumerate([*explained, ("-", "Uniform random")])
            for i, w in enumerate(words)
        ],
        columns=["scheme", "method", "position", "word", "share", "is_truth"],
    )
    first = "her" if n_her == 4 else "She"
    assert finding(plot_example(table)[0]) == (
        f"{told} explanations of \N{LEFT DOUBLE QUOTATION MARK}She sees her."
        "\N{RIGHT DOUBLE QUOTATION MARK} give the largest share to "
        f"\N{LEFT DOUBLE QUOTATION MARK}{first}\N{RIGHT DOUBLE QUOTATION MARK}"
    )


def test_the_two_forms_are_drawn_apart():
    table = pd.concat(
        [
            results().rename(columns={"MA": "difference"}).assign(words=w)
            for w in ("all", "truth", "other", "absolute")
        ]
    )
    figure, plotted = plot_form_difference(table[table["scheme"] != "ZS"])
    assert set(plotted["words"]) == {"truth", "other"}
    assert {"changed words", "other words"} < legend_texts(figure)


def test_significance_shows_sizes_and_counts_what_is_large():
    table = results(p_holm=0.2).query("scheme != 'ZS'").rename(columns={"MA": "difference"})
    table.loc[table["method"] == "LIME", "p_holm"] = 0.0001
    table.loc[(table["method"] == "LIME") & (table["scheme"] == "C"), "low"] = 0.001
    figure, plotted = plot_significance(table)
    n_models = len(DATASETS) * (len(SCHEME_ORDER) - 1)
    assert finding(figure) == (
        f"{n_models} of {n_models * len(METHOD_ORDER)} differences are significant, "
        f"{n_models - len(DATASETS)} of these surely larger than 0.01"
    )
    panel = figure.axes[0]
    full = [c for c in panel.containers if c.lines[0].get_markerfacecolor() != "white"]
    drawn = [x for container in full for x in container.lines[0].get_xdata()]
    first = table.query("dataset == 'D_A' and scheme == 'C' and method == 'LIME'")
    assert drawn == first["difference"].tolist()
    assert list(plotted) == ["dataset", "scheme", "method", "p_holm"] and len(plotted) == len(table)


@pytest.mark.parametrize("n_above", [0, 3])
def test_a_title_counts_what_exceeds_the_rule_and_not_what_equals_it(n_above: int):
    table = results()
    rule = table["method"] == "First pronoun"
    models = table["scheme"] != "-"
    order = table.loc[models & (table["dataset"] == "D_S"), "MA"].sort_values(ascending=False)
    table.loc[rule, "MA"] = [2.0, order.iloc[n_above]]
    told = finding(plot_mass_accuracy(table)[0])
    assert told.startswith(f"{n_above or 'None'} of {models.sum()} explanations of a model")


def test_the_grid_has_the_order_of_the_figures_and_keeps_a_user_s_own_method():
    table = pd.concat(
        [results(), pd.DataFrame([{"dataset": "D_A", "scheme": "C", "method": "mine", "MA": 0.3}])]
    )
    grid = method_grid(table.sample(frac=1, random_state=0), "MA", "D_A")
    assert list(grid.columns) == [SCHEME_NAMES[name] for name in (*SCHEME_ORDER, "-")]
    assert list(grid.index[:8]) == [method_label(name) for name in METHOD_ORDER]
    assert grid.loc["mine", "head only"] == 0.3 and grid.loc["mine", "zero-shot"] == ""
    figure, _ = plot_mass_accuracy(
        table.fillna({"low": 0.2, "high": 0.4, "below_first_pronoun": False}).astype(
            {"below_first_pronoun": bool}
        )
    )
    assert "own method" in legend_texts(figure)


def test_looks_differ_by_more_than_colour():
    assert len({marker for marker, _ in FAMILY_LOOKS.values()}) == len(FAMILY_LOOKS)
    assert len({str(FLOOR_LOOKS[name][0]) for name in FLOORS}) == len(FLOORS)
