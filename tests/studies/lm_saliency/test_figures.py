"""Figures of lm_saliency: what is drawn is what the table says, and every mark has a key."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.core import paths
from lib.core.files import read_yaml
from lib.studies.lm_saliency.figures import (
    plausibility_title,
    plot_astray,
    plot_consistency,
    plot_plausibility,
    plot_sets,
    plot_sweep,
    plot_training,
)
from lib.studies.lm_saliency.grammar import KINDS
from lib.studies.lm_saliency.naming import (
    CONSTRUCTIONS,
    METHODS,
    NORMS,
    SECTIONS,
    names_of_settings,
)

FLOORS = pd.DataFrame({"dataset": "A", "scheme": ["LSTM", "QRNN"], "random": 0.5, "nearest": 0.4})


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def passes(**more: object) -> pd.DataFrame:
    rows = [
        {"dataset": "A", "scheme": scheme, "method": method, "learnt": scheme == "QRNN"}
        for scheme in ("LSTM", "QRNN")
        for method in METHODS
    ]
    values = {"all": 0.7, "low": 0.6, "high": 0.8}
    return pd.DataFrame(rows).assign(**values | more)


def marks(ax: plt.Axes) -> list:
    return [line for line in ax.get_lines() if line.get_marker() not in ("", "None", None)]


def key(figure: plt.Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_hollow_marks_have_not_learnt_and_the_key_says_so() -> None:
    figure = plot_plausibility(passes(), FLOORS, "title")
    drawn = marks(figure.axes[0])
    is_hollow = [line.get_markerfacecolor() == "white" for line in drawn]
    assert is_hollow == [True] * 3 + [False] * 3
    assert [line.get_xdata()[0] for line in drawn] == [0.7] * 6
    assert {*METHODS.values(), "random scores", "the nearest noun"} < set(key(figure))
    assert not any("paper" in text for text in key(figure))
    assert figure.get_suptitle() == "title"


def test_the_paper_is_drawn_and_named_only_where_it_has_a_number() -> None:
    table = passes(paper=[0.1, 0.2, 0.3, np.nan, np.nan, np.nan])
    figure = plot_plausibility(table, FLOORS, "")
    greys = [line for line in marks(figure.axes[0]) if line.get_color() == "0.55"]
    assert [line.get_xdata()[0] for line in greys] == [0.1, 0.2, 0.3]
    assert any("paper" in text for text in key(figure))


def test_the_title_counts_only_models_that_have_learnt() -> None:
    table = passes()
    assert plausibility_title(table, FLOORS).endswith("in 1 of 1 cases")
    assert plausibility_title(table, FLOORS.assign(nearest=0.65)).endswith("in 0 of 1 cases")
    assert plausibility_title(table.assign(learnt=False), FLOORS).startswith("No model")


def test_consistency_says_where_there_are_no_templates() -> None:
    table = passes().rename(columns={"all": "estimate"})
    other = table.assign(dataset="B")
    learnt = {(d, s): False for d in "AB" for s in ("LSTM", "QRNN")}
    figure = plot_consistency({"inputs": table, "models": pd.concat([table, other])}, learnt, "")
    assert [text.get_text() for text in figure.axes[0].texts] == ["not compared"] * 2
    assert not figure.axes[1].texts
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["A, LSTM", "A, QRNN", "B, LSTM", "B, QRNN"]


def test_a_sweep_has_a_marker_a_setting_and_words_for_it() -> None:
    sizes = ["2l_64w_32e_4h", "4l_64w_32e_4h", "2l_64w_32e_1h", "4l_128w_32e_4h"]
    assert list(names_of_settings(sizes).values()) == [
        "width 64, embedding 32, heads 4",
        "width 64, embedding 32, heads 4",
        "heads 1",
        "width 128",
    ]
    rows = pd.DataFrame({"size": sizes, "layers": [2, 4, 2, 4], "parameters": [1, 2, 1, 4]})
    rows = rows.assign(learnt=False, all=0.5, low=0.4, high=0.6)
    figure = plot_sweep([("a", rows, "all"), ("b", rows.iloc[:0], "all")], "")
    shapes = {str(spot.get_paths()[0].vertices.tolist()) for spot in figure.axes[0].collections}
    assert len(shapes) == 3 and len(figure.axes[0].collections) == 4
    assert len(figure.axes) == 1  # a set that was not probed has no panel
    assert {"heads 1", "width 128", "hollow: not learnt, or not known"} < set(key(figure))
    with pytest.raises(ValueError, match="no configuration"):
        names_of_settings(["small"])


def test_a_run_without_a_sweep_says_so() -> None:
    columns = ["size", "layers", "parameters", "learnt", "all", "low", "high"]
    figure = plot_sweep([("a", pd.DataFrame(columns=columns), "all")], "")
    assert figure.axes[0].texts[0].get_text() == "not probed"


def test_training_draws_each_probe_with_the_floor_beside_it() -> None:
    curves = pd.DataFrame({"architecture": "LSTM", "size": "full", "epoch": [1, 2]})
    probes = pd.DataFrame({"architecture": ["LSTM", "gpt2"], "size": "full", "kind": "number"})
    probes = probes.assign(accuracy=0.8, low=0.7, high=0.9, majority=0.55, learnt=[True, False])
    figure = plot_training(curves.assign(perplexity=[9.0, 8.0]), probes, "")
    assert [line.get_xdata()[0] for line in marks(figure.axes[1])] == [0.8, 0.8]
    assert sum(list(line.get_xdata()) == [0.55] * 2 for line in figure.axes[1].get_lines()) == 2


def test_a_student_is_told_from_a_probe_that_has_not_learnt() -> None:
    rows = [("LSTM", "full", "number", True), ("LSTM", "student", "number", True)]
    rows.append(("LSTM", "student", "matched", False))
    probes = pd.DataFrame(rows, columns=["architecture", "size", "kind", "learnt"])
    probes = probes.assign(accuracy=0.8, low=0.7, high=0.9, majority=0.55)
    curves = probes[:2].assign(epoch=1, perplexity=9.0)
    figure = plot_training(curves, probes, "")
    full, student, not_learnt = marks(figure.axes[1])
    assert full.get_marker() != student.get_marker() == not_learnt.get_marker()
    assert [line.get_marker() for line in figure.axes[0].get_lines()] == [
        full.get_marker(),
        student.get_marker(),
    ]
    hollow = [line.get_markerfacecolor() == "white" for line in (full, student, not_learnt)]
    assert hollow == [False, False, True]
    assert figure.axes[1].get_yticklabels()[2].get_text() == "LSTM, student: number, matched"
    assert any(text.startswith("matched: ") for text in key(figure))
    without = plot_training(curves, probes[:2], "")
    assert not any("matched" in text for text in key(without))


def test_every_mark_of_a_sweep_has_its_interval() -> None:
    sizes = ["2l_64w_32e_4h", "4l_64w_32e_4h"]
    rows = pd.DataFrame({"size": sizes, "layers": [2, 4], "parameters": [1, 2]})
    rows = rows.assign(learnt=False, all=0.5, input_consistency=0.1, low=[-0.3, 0.0], high=0.4)
    panels = [("a", rows.assign(low=0.4), "all"), ("b", rows, "input_consistency")]
    figure = plot_sweep(panels, "")
    ends = [[list(line.get_ydata()) for line in ax.get_lines()] for ax in figure.axes]
    assert ends == [[[0.4, 0.4]] * 2, [[-0.3, 0.4], [0.0, 0.4]]]
    assert figure.axes[0].get_ylim()[0] < -0.3
    assert "line: 95 % interval" in key(figure)


def test_every_code_of_the_sets_has_a_name() -> None:
    material = read_yaml(paths.material("lm_saliency") / "syneval.yaml")
    assert [section["name"] for section in material["sections"]] == list(SECTIONS)
    assert list(CONSTRUCTIONS) == list(KINDS)
    for names in (SECTIONS, CONSTRUCTIONS, METHODS | NORMS):
        assert len(set(names.values())) == len(names)


def test_cues_and_attractors_keep_their_bars_whatever_their_order() -> None:
    statistics = pd.DataFrame({"set": ["A"], "random": 0.5, "nearest": 0.1})
    rows = [("A", "attractors", 0, 0.6), ("A", "cues", 0, 0.2)]
    distances = pd.DataFrame(rows, columns=["set", "side", "words", "share"])
    figure = plot_sets(statistics, distances, "")
    cues, attractors = figure.axes[1].containers
    assert [bars[0].get_height() for bars in (cues, attractors)] == [0.2, 0.6]
    assert key(figure)[2].startswith("last cue") and key(figure)[3].startswith("last attractor")


def test_a_student_has_its_own_mark_and_is_hollow_where_it_has_not_learnt() -> None:
    rows = [("EWT", "LSTM", "full", 0.1, True), ("EWT", "LSTM", "student", 0.2, False)]
    columns = ["dataset", "scheme", "size", "estimate", "learnt"]
    table = pd.DataFrame(rows, columns=columns)
    ax = plot_astray(table.assign(low=0.0, high=0.3), "title").axes[0]
    marks = [line for line in ax.lines if len(line.get_xdata()) == 1]
    assert [line.get_xdata()[0] for line in marks] == [0.1, 0.2]
    assert [line.get_markerfacecolor() == "white" for line in marks] == [False, True]
    assert len({line.get_marker() for line in marks}) == 2
