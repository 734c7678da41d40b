"""The figures say what their tables hold, and explain every mark."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.lines import Line2D

from lib.core.paths import reference_dir
from lib.studies.implicit_bias import figures, naming

CPU = reference_dir("implicit_bias", "cpu")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def of(stage: str, name: str) -> pd.DataFrame:
    return pd.read_csv(CPU / stage / f"{name}.csv")


def legend(figure: plt.Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def differences(low: float, high: float) -> pd.DataFrame:
    rows = [
        {"quantity": "distance", "part": "held out", "left": left, "right": right}
        for left, right in naming.PAIRS
    ]
    middle = (low + high) / 2
    numbers = {"difference": middle, "low": low, "high": high, "detectable": 0.1}
    return pd.DataFrame(rows).assign(**numbers, smallest=middle, largest=middle)


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [(-0.3, -0.1, "closer to even"), (-0.1, 0.1, "undecided"), (0.1, 0.3, "further from even")],
)
def test_the_title_of_the_changes_is_their_verdict(low: float, high: float, told: str) -> None:
    figure = figures.plot_changes(differences(low, high))
    assert figure.axes[0].get_title().endswith(told)
    assert len(legend(figure)) == 4, "main comparison, others, base models, what could be found"


def test_every_base_model_has_a_line_with_a_mark_and_a_name() -> None:
    histogram = of("04_metrics", "histogram")
    figure = figures.plot_scores(histogram, 0.55)
    bases = [f"base model {base}" for base in sorted(histogram["base"].unique())]
    assert set(legend(figure)) == {*bases, "mean of base models", "even (.5)"} | {
        "the paper's peak (.55)"
    }
    lines = [line for line in figure.axes[0].lines if line.get_label() in bases]
    assert len({(line.get_marker(), line.get_color()) for line in lines}) == len(bases)


def test_a_run_that_fails_the_gate_is_hollow_and_counted() -> None:
    costs = of("02_training", "perplexity")
    figure = figures.plot_costs(costs, 0.9)
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white"]
    failed = ~costs["passes"]
    assert len(hollow) == failed.sum()
    told = (failed & (costs["model"] != "base")).sum()  # base models are not runs of fine-tuning
    assert f"{told} of {(costs['model'] != 'base').sum()} runs" in figure.axes[0].get_title()
    legend = figure.legends[0]
    explained = {line.get_marker() for line in legend.findobj(Line2D)}
    assert explained >= {line.get_marker() for line in figure.axes[0].lines}


def test_a_word_of_few_sentences_is_hollow() -> None:
    words = [("on", -0.9, 6), ("back", 0.1, 3), ("a", 0.3, 9)]
    drivers = pd.DataFrame(words, columns=["word", "mean", "sentences"])
    ax = figures.plot_drivers(drivers).axes[0]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["on (6)", "back (3)", "a (9)"]
    faces = [
        line.get_markerfacecolor() == "white" for line in ax.lines if len(line.get_xdata()) == 1
    ]
    assert faces == [False, True, False]
    (empty,) = figures.plot_drivers(drivers.head(0)).axes
    assert [text.get_text() for text in empty.texts] == [
        "No base model passes the gate, so no words are shown"
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            [("on", -0.9, 6), ("back", 0.1, 3), ("a", 0.3, 9)],
            ['"a" towards he', '"on" towards she'],
        ),
        ([("teen", -0.9, 3), ("hair", -0.3, 5), ("kid", 0.9, 4)], ['"hair" towards she']),
        ([("teen", -0.9, 3), ("kid", 0.9, 4)], ["none is named"]),
    ],
)
def test_a_title_names_no_word_of_few_sentences(words: list, told: list[str]) -> None:
    drivers = pd.DataFrame(words, columns=["word", "mean", "sentences"])
    title = figures.plot_drivers(drivers).axes[0].get_title()
    assert all(part in title for part in told)
    assert not [word for word, _, n in words if n < 5 and f'"{word}"' in title]


@pytest.mark.parametrize(("high", "told"), [(0.15, "lies below the others"), (0.35, "overlap")])
def test_the_nearest_model_is_named_with_its_interval(high: float, told: str) -> None:
    arms = pd.DataFrame({"model": list(naming.MODELS), "quantity": "distance", "part": "held out"})
    arms = arms.assign(estimate=[0.3, 0.3, 0.3, 0.1], low=[0.2, 0.2, 0.2, 0.05])
    figure = figures.plot_models(arms.assign(high=[0.4, 0.4, 0.4, high]))
    title = figure.get_suptitle()
    assert "augmented has the smallest mean distance" in title and told in title


def test_the_other_figures_draw_their_tables() -> None:
    arms, steps = of("04_metrics", "arms"), of("01_data_generation", "steps")
    assert len(figures.plot_models(arms).axes) == 2
    assert f"{steps['sentences'].iloc[-1]:,} of" in figures.plot_steps(steps).axes[0].get_title()
    rho = of("04_metrics", "correlations")
    clear = int((rho["low"] * rho["high"] > 0).sum())
    assert figures.plot_correlations(rho).axes[0].get_title().startswith(f"{clear} of {len(rho)}")
    options = of("04_metrics", "sensitivity")
    ax = figures.plot_sensitivity(options).axes[0]
    assert len(ax.get_yticklabels()) == len(options)


def test_a_table_in_words_has_no_row_numbers() -> None:
    table = pd.DataFrame({"n": [2, 3], "word": ["she", "he"], "is_first": [True, False]})
    shown = naming.in_words(table, {"word": "word", "is_first": "first", "n": "times"}, rows=1)
    assert list(shown.index) == ["she"] and shown.columns.name == "word"
    assert shown.loc["she"].tolist() == ["yes", 2]
    none = pd.DataFrame({"model": ["untrained"], "base": [-1]})
    assert naming.in_words(none, {"model": "model", "base": "base model"}).iloc[0, 0] == ""
