"""Cells hold the mean of everybody, the floor's rule, and what is known beforehand."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.studies.assay.figures import (
    PANELS,
    plot_agreement,
    plot_whole,
)
from lib.studies.assay.stage_figures import (
    plot_budgets,
    plot_likeness,
    plot_scale,
    plot_steps,
    plot_two_trainings,
)
from lib.studies.assay.standing import (
    advise,
    as_rows,
    as_text,
    best_rules,
    cells,
    holds_by_identity,
    over_rules,
    role_of,
    with_leads,
    with_scores,
)
from lib.studies.assay.synthesis import on_one_scale

FLOOR_OF = {"mask": "Word counts", "edit": "Goal of the edit", "deletion, pad": "Even"}


def scored() -> pd.DataFrame:
    means = {"oracle": 1.0, "LIME": 0.8, "Occlusion": 0.55, "Cheater: marks": 0.9}
    rows = [
        (truth, name, f"{truth}-{i}", f"c{i}", training, value + 0.01 * i * (1 + (name == "LIME")))
        for truth, floor in FLOOR_OF.items()
        for name, value in (means | {floor: 0.6}).items()
        for i in (-1, 0, 1)
        for training in (0, 1)
    ]
    columns = ["truth", "explainer", "item_id", "cluster", "training", "value"]
    return pd.DataFrame(rows, columns=columns)


def found(*more: pd.DataFrame) -> pd.DataFrame:
    """The cells; `more` are scores of other explainers or rules."""
    scores = on_one_scale(pd.concat([scored(), *more], ignore_index=True), FLOOR_OF)
    table = cells(scores, ["Occlusion"], 50, 0.05, 0)
    return with_leads(table, over_rules(scores, 50, 0.05, 0))


def also(name: str, *by_item: float, truth: str = "edit") -> pd.DataFrame:
    """Scores of somebody else, of the three items."""
    items = scored().query("explainer == 'LIME' and truth == @truth")
    values = items["cluster"].map(dict(zip(("c-1", "c0", "c1"), by_item, strict=True)))
    return items.assign(explainer=name, value=values)


def test_explainer_and_rule_are_compared_on_the_same_items() -> None:
    # the rule has .59, .60 and .61; all intervals below are of three items
    follows = also("follows", 0.595, 0.61, 0.62)  # a little above on each item
    wide = also("wide", 0.95, 0.9, 0.58)  # far above in the mean, and below on an item
    beside = also("beside", 0.69, 0.7, 0.71)  # the same difference on each item: no width
    scores = on_one_scale(pd.concat([scored(), follows, wide, beside]), FLOOR_OF)
    over = over_rules(scores, 500, 0.05, 0).query("truth == 'edit'").set_index("explainer")
    assert over["against"].unique().tolist() == ["Goal of the edit"]
    assert over.loc["follows", "difference"] == pytest.approx((0.005 + 0.01 + 0.01) / 3)
    assert over.loc["follows", ["low", "high"]].tolist() == pytest.approx([0.005, 0.01])
    assert over.loc["wide", ["low", "high"]].tolist() == pytest.approx([-0.03, 0.36])
    assert over.loc["beside", ["low", "high"]].tolist() == pytest.approx([0.1, 0.1])
    clear = over["is_clear"].to_dict()
    assert clear == {
        "LIME": True,
        "Occlusion": False,
        "follows": True,
        "wide": False,
        "beside": False,
    }
    assert found(follows).query("explainer == 'follows'")["raw_low"].item() < 0.6, "unpaired: open"


def test_a_lead_over_every_rule_needs_each_of_them() -> None:
    stronger = also("Log count ratio", 0.9, 0.7, 0.85)
    even = also("Even", 0.1, 0.2, 0.15)
    table = found(stronger, even).set_index(["truth", "explainer"])
    names = ["beats_floor", "beats_every_rule", "beats_even"]
    assert table.loc[("edit", "LIME"), names].tolist() == [True, False, True]
    assert table.loc[("edit", "Occlusion"), names].tolist() == [False, False, True]
    assert table.loc[("mask", "LIME"), names].tolist() == [True, True, False], "no Even was asked"
    assert table.loc[("deletion, pad", "Occlusion"), names].tolist() == [False] * 3, "not ranked"
    assert not table.loc[table["role"] != "explainer", names].to_numpy().any()


def test_a_cell_has_both_scales_and_the_name_of_its_floor() -> None:
    table = found().set_index(["truth", "explainer"])
    assert table.loc[("mask", "LIME"), ["raw", "value"]].tolist() == pytest.approx([0.8, 0.5])
    assert table.loc[("mask", "LIME"), ["rule", "floor"]].tolist() == [
        "Word counts",
        pytest.approx(0.6),
    ]
    assert table.loc[("edit", "Goal of the edit"), "value"] == pytest.approx(0.0)
    assert (table["raw_low"] <= table["raw"]).all() and (table["raw"] <= table["raw_high"]).all()
    assert (table["n_clusters"] == 3).all()


def test_what_is_known_beforehand_is_not_ranked() -> None:
    table = found()
    known = set(table.loc[table["by_identity"], ["truth", "explainer"]].apply(tuple, axis=1))
    assert known == {(truth, "oracle") for truth in FLOOR_OF} | {
        ("mask", "Cheater: marks"),
        ("deletion, pad", "Occlusion"),
    }
    assert not holds_by_identity("Cheater: sizes", "swap", [])
    assert holds_by_identity("Cheater: both texts", "edit", [])


def test_rows_without_a_score_are_left_out() -> None:
    scores = on_one_scale(scored(), FLOOR_OF)
    scores.loc[0, "raw"] = float("nan")
    rows = as_rows(scores)
    assert len(rows) == len(scores) - 1 and rows["seed"].equals(rows["training"])
    assert [role_of(name) for name in ("oracle", "Even", "Goal of the edit", "mine:f")] == [
        "oracle",
        "floor",
        "floor",
        "explainer",
    ]


def test_the_whole_figure_shows_every_cell_and_says_how_many_are_clear() -> None:
    table = found()
    figure, plotted = plot_whole(table, "A note.")
    assert plotted["beats_floor"].sum() == 3, "LIME is above the floor; Occlusion is not"
    assert figure._suptitle.get_text().startswith("In 3 of 5 cases"), "one is known beforehand"
    assert len(plotted) == len(table) - len(FLOOR_OF), "the oracle is the black line"
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == [PANELS[truth].title for truth in PANELS if truth in FLOOR_OF]
    assert figure.axes[1].get_xlabel().endswith("rule:\ngoal of\nthe edit")
    plt.close(figure)


def test_the_best_rule_is_drawn_beside_the_one_that_was_chosen() -> None:
    table = found(also("Log count ratio", 0.9, 0.7, 0.85))
    assert best_rules(found())["edit"] == pytest.approx(0.6)
    assert best_rules(table)["edit"] == pytest.approx(0.8166667)
    figure, _ = plot_whole(table, "A note.")
    dotted = [ax for ax in figure.axes for line in ax.lines if line.get_linestyle() == ":"]
    assert [ax.get_title() for ax in dotted] == [PANELS["edit"].title]
    said = " ".join(text.get_text() for text in figure.texts)
    assert "In 1 of 3 columns another rule is better" in said
    assert "clearly better than every rule in 2 cases" in said
    assert figure._suptitle.get_text().startswith("In 3 of 5 cases"), "of the rule chosen before"
    plt.close(figure)


def test_a_dot_is_whole_above_every_rule_and_half_above_the_chosen_one() -> None:
    figure, _ = plot_whole(found(also("Log count ratio", 0.9, 0.7, 0.85)), "A note.")
    dots = {
        ax.get_title(): {line.get_fillstyle() for line in ax.lines if is_blue_dot(line)}
        for ax in figure.axes
    }
    assert dots == {
        PANELS["mask"].title: {"full"},
        PANELS["edit"].title: {"left"},
        PANELS["deletion, pad"].title: {"full"},
    }
    plt.close(figure)


def is_blue_dot(line: plt.Line2D) -> bool:
    return line.get_marker() == "o" and line.get_markerfacecolor() != "white"


def test_a_refusal_is_written_where_the_score_would_be() -> None:
    table = found()
    is_left_out = (table["truth"] == "edit") & (table["explainer"] == "LIME")
    figure, _ = plot_whole(table[~is_left_out], "A note.")
    refusals = [
        (ax.get_title(), text.get_position()[1])
        for ax in figure.axes
        for text in ax.texts
        if text.get_text() == "refuses"
    ]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    height = figure.axes[0].get_yticks()[names.index("LIME")]
    assert refusals == [(PANELS["edit"].title, height)]
    plt.close(figure)


def test_advice_names_who_is_better_than_every_rule_and_who_only_looks_good() -> None:
    rows = [
        ("swap", "Log count ratio", "floor", 0.9, False, False),
        ("swap", "Even", "floor", 0.0, False, False),
        ("swap", "Kernel SHAP", "explainer", 0.95, True, True),  # better
        ("swap", "LIME", "explainer", 0.95, False, True),  # not clearly above the rule
        ("swap", "AttnLRP", "explainer", 0.93, False, False),  # intervals without width
        ("swap", "InputXGradient", "explainer", 0.89, False, True),  # the rule has as much
        ("swap", "SmoothGrad", "explainer", 0.5, False, False),  # does not even look good
        ("noun", "Nearest", "floor", 0.1, False, False),
        ("noun", "Even", "floor", 0.0, False, False),
        ("noun", "LIME", "explainer", 0.5, True, True),
    ]
    columns = ["truth", "explainer", "role", "raw", "beats_every_rule", "beats_even"]
    table = pd.DataFrame(rows, columns=columns).assign(by_identity=False)
    advised = advise(table)
    assert advised.to_dict("index") == {
        "noun": {"clearly better": ["LIME"], "open": [], "no better": []},
        "swap": {
            "clearly better": ["Kernel SHAP"],
            "open": ["LIME", "AttnLRP"],
            "no better": ["InputXGradient"],
        },
    }
    kept = as_text(advised).to_dict("index")
    assert kept["swap"]["open"] == "LIME, AttnLRP" and kept["noun"]["open"] == "none"
    told = with_scores(advised, table, most=1)
    assert told.loc["swap"].tolist() == [
        "Kernel SHAP 0.95",
        "LIME 0.95 and 1 more",
        "Input x Gradient 0.89",
    ]
    assert told.loc["noun"].tolist() == ["LIME 0.50", "none", "none"]
    padded = table.assign(by_identity=table["explainer"] == "Kernel SHAP")
    assert advise(padded).loc["swap", "clearly better"] == [], "known beforehand"
    yours = table.replace({"explainer": {"LIME": "mine, and yours"}})
    one_name = with_scores(advise(yours), yours).loc["noun"].tolist()
    assert one_name == ["mine, and yours 0.50", "none", "none"], "a comma is part of a name"


def test_the_other_figures_show_their_tables() -> None:
    rows = [("a", "a", 0.9, 0.8, 1.0), ("b", "b", 0.7, 0.6, 0.8), ("a", "b", 0.2, -1.4, 0.5)]
    agreement = pd.DataFrame(rows, columns=["left", "right", "tau", "low", "high"])
    agreement = agreement.assign(any_low=-2.0, any_high=0.9)
    figure, plotted = plot_agreement(agreement)
    assert plotted.to_dict("list") == {
        "truths": ["a / b"],
        "tau": [0.2],
        "low": [-1.4],
        "high": [0.5],
        "any_low": [-2.0],
        "any_high": [0.9],
        "ceiling": [0.7],
    }
    assert figure._suptitle.get_text().startswith("1 of 1 pairs"), "0.5 is below 0.7"
    names = {"a": "planted, encoder", "b": "planted, one layer"}
    one_truth = agreement.replace(names)
    both, _ = plot_agreement(pd.concat([agreement, one_truth], ignore_index=True))
    assert both._suptitle.get_text().startswith("1 of 1 pairs"), "two models are no two truths"
    plt.close(both)
    none, _ = plot_agreement(agreement.assign(high=1.0))
    assert none._suptitle.get_text().startswith("No pair of truths differs clearly")
    plt.close(none)
    scale = plot_scale(0.6, 1.0, {"x": 0.8})
    assert "x: 0.5" in [text.get_text() for text in scale.axes[0].texts]
    bought = pd.DataFrame({"explainer": ["a", "a", "b"], "passes": [10, 100, 10], "value": 0.5})
    budgets = plot_budgets(bought.assign(low=[0.4, 0.3, np.nan], high=0.6), 0.7, "score")
    legend = [text.get_text() for text in budgets.axes[0].get_legend().get_texts()]
    assert sorted(legend) == ["a", "b", "word counts: no run of the model"]
    bars = budgets.axes[0].containers[0].lines[2][0].get_segments()
    assert [segment[:, 1].tolist() for segment in bars] == [[0.4, 0.6], [0.3, 0.6]]
    assert "95 %" in budgets.axes[0].get_xlabel(), "what the bars are"
    assert budgets._suptitle.get_text().startswith("0 of 2 explainers reach")
    steps = plot_steps(np.array([[0.2, -1.5], [6.3, 4.6]]), "title")
    assert [text.get_text() for text in steps.axes[0].get_yticklabels()] == ["model 1", "model 2"]
    pairs = pd.DataFrame({"truth": "swap", "first": [1.0, 2.0, 3.0], "second": [1.0, 3.0, 2.0]})
    both, plotted = plot_two_trainings(pairs)
    assert plotted.to_numpy().tolist() == [["swap", 3, 0.5]]
    assert both._suptitle.get_text().startswith("Two runs of a model agree most on swapped words")
    alike = pd.DataFrame([[1.0, 0.2], [0.2, 1.0]], columns=["a", "b"])
    square = plot_likeness(alike)
    assert square._suptitle.get_text() == "a and b are most alike: 0.20"
    assert [text.get_text() for text in square.axes[0].texts] == ["1", "0.2", "0.2", "1"]
    for drawn in (figure, scale, budgets, steps, both, square):
        plt.close(drawn)
