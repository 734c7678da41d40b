"""Figures of what a model uses: every method is drawn, and the finding counts what is drawn."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import pandas as pd
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from lib.plots import plot_planted, plot_randomisation, plot_yardsticks


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def finding(figure: plt.Figure) -> str:
    return figure.legends[0].get_title().get_text()


def likeness(low: float) -> pd.DataFrame:
    """Two models of two steps; behind the random head Saliency's interval begins at `low`."""
    rows = [
        (model, step, part, method, measure, 1.0 - 0.5 * step, low if step else 1.0, 1.0)
        for model in ("CEf", "OLA-CEA")
        for step, part in enumerate(("trained", "head"))
        for method in ("LIME", "Saliency")
        for measure in ("rank_signed", "rank_size")
    ]
    names = ["model", "step", "part", "method", "measure", "estimate", "low", "high"]
    table = pd.DataFrame(rows, columns=names)
    lost = (table["method"] == "LIME") & (table["step"] == 1)
    table.loc[lost, ["estimate", "low"]] = 0.0, -0.5
    return table


@pytest.mark.parametrize(("low", "named"), [(0.2, "only Saliency"), (-0.1, "no method")])
def test_randomisation_names_who_stays_alike(low: float, named: str) -> None:
    table = likeness(low)
    figure, plotted = plot_randomisation(table)
    assert finding(figure) == f"Random head, signs kept: {named} stays similar"
    assert len(figure.axes) == 4 and plotted is table
    drawn = [c.lines[0].get_ydata().tolist() for c in figure.axes[0].containers]
    assert sorted(drawn) == [[1.0, 0.0], [1.0, 0.5]]
    texts = {text.get_text() for text in figure.legends[0].get_texts()}
    assert texts == {"Saliency", "each of the 1 other methods"}


@pytest.mark.parametrize(("low", "n_clear"), [(0.1, 1), (-0.1, 0)])
def test_yardsticks_count_the_models_on_which_they_agree(low: float, n_clear: int) -> None:
    rows = [
        (scheme, over, "MA", right, 0.5, low if scheme == "C" else -0.5, 0.9, 8, 8)
        for scheme in ("C", "CEf")
        for over in ("methods", "rows")
        for right in ("rank_signed", "NAOPC")
    ]
    names = "scheme over left right estimate low high n_sentences n_methods".split()
    figure, plotted = plot_yardsticks(pd.DataFrame(rows, columns=names))
    assert f"on {n_clear} of 2 models" in finding(figure) and len(plotted) == 8
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == ["mass accuracy, word swaps", "mass accuracy, deletion score"]
    assert [ax.get_title() for ax in figure.axes] == ["head only (C)", "head + embeddings (CEf)"]


def test_a_planted_word_has_a_line_for_every_method() -> None:
    table = pd.DataFrame(
        {
            "method": ["Saliency", "LIME, n_samples 1000", "Uniform random"],
            "estimate": [1.0, 0.7, 0.05],
            "low": [1.0, 0.6, 0.0],
            "high": [1.0, 0.8, 0.1],
            "even": 0.05,
        }
    )
    figure, plotted = plot_planted(table)
    ax = figure.axes[0]
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert labels == ["Saliency", "LIME, 1000 samples", "Uniform random"]
    told = "LIME puts 30 % of the attribution on other words"
    assert ax.get_title(loc="left") == told and len(plotted) == 3
    clear = plot_planted(table.assign(high=1.0))[0].axes[0]
    assert clear.get_title(loc="left").startswith("No method puts more")
