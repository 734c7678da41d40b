"""Tables have a line for every group, and each number can be computed by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_tables import predictions
from sklearn.metrics import confusion_matrix, roc_auc_score

from lib.core.errors import TouchstoneError
from lib.metrics import METRICS
from lib.studies.geco.summaries import (
    BAG,
    RULE,
    _relative_floor,
    compare_methods,
    confusion_shares,
    gain_tests,
    mark_below,
    possible_places,
    roc_points,
    split_variance,
    summarise_accuracy,
    summarise_mass,
    summarise_relative,
    trained_only,
    word_shares,
)

HOW = {"n_bootstrap": 200, "alpha": 0.05, "seed": 0}
GROUPS = pd.DataFrame(
    [
        ("D_A", s, m)
        for s, m in (
            ("ZS", "LIME"),
            ("C", "LIME"),
            ("C", "Saliency"),
            ("CE", "LIME"),
            ("-", "First pronoun"),
            ("-", "Uniform random"),
        )
    ],
    columns=["dataset", "scheme", "method"],
)
MASS = {
    ("ZS", "LIME"): 0.2,
    ("C", "LIME"): 0.6,
    ("C", "Saliency"): 0.3,
    ("-", "First pronoun"): 0.9,
    ("-", "Uniform random"): 0.25,
}


def scored(n_sentences: int = 40, n_seeds: int = 2) -> pd.DataFrame:
    """MA around known means for all groups but (CE, LIME), which has no rows."""
    rng = np.random.default_rng(0)
    rows = []
    for (scheme, method), mean in MASS.items():
        for seed in [-1] if scheme == "-" else [0] if scheme == "ZS" else range(n_seeds):
            for i in range(n_sentences):
                for target, form in enumerate(("F", "M", "NB")):
                    mass = mean + rng.normal(0, 0.02)
                    rows.append(
                        {
                            "dataset": "D_A",
                            "scheme": scheme,
                            "seed": seed,
                            "method": method,
                            "row_id": f"{i}-{form}",
                            "sentence_idx": i,
                            "target": target,
                            "MA": mass,
                            "share": 0.2,
                            "MA_chance_normalised": (mass - 0.2) / 0.8,
                            "MA_ZS": 0.2,
                            "RMA": mass / 0.2,
                        }
                        | dict.fromkeys(list(METRICS)[1:], 0.5)
                    )
    return pd.DataFrame(rows)


def test_mass_accuracy_has_a_line_for_every_group_in_their_order():
    table = summarise_mass(scored(), GROUPS, **HOW)
    assert table[["dataset", "scheme", "method"]].equals(GROUPS)
    by_key = table.set_index(["scheme", "method"])
    assert by_key.loc[("CE", "LIME"), "n"] == 0 and np.isnan(by_key.loc[("CE", "LIME"), "MA"])
    line = by_key.loc[("C", "LIME")]
    assert line["MA"] == pytest.approx(0.6, abs=0.01) and line["low"] < line["MA"] < line["high"]
    assert (line["n"], line["n_sentences"], line["n_seeds"]) == (240, 40, 2)
    assert line["MA_chance_normalised"] == pytest.approx((line["MA"] - 0.2) / 0.8)
    assert line["low_recall"] == line["recall"] == line["high_recall"] == 0.5


def test_every_measure_is_a_mean_over_rows_and_then_over_seeds():
    """Rows that count differ from seed to seed: a seed of few rows weighs as much as the others."""
    rows = scored().query("scheme == 'C' and method == 'LIME'")
    values = rows.assign(recall=rows["seed"], roc_auc=rows["seed"], share=rows["seed"])
    few = values[(values["seed"] == 0) | (values["sentence_idx"] < 10)]
    line = summarise_mass(few, GROUPS, **HOW).set_index(["scheme", "method"]).loc[("C", "LIME")]
    assert (line["recall"], line["roc_auc"], line["share"]) == (0.5, 0.5, 0.5)
    assert line["low_recall"] < 0.5 < line["high_recall"]


def test_relative_mass_accuracy_has_medians_undefined_rows_and_floors():
    rows = scored()
    chosen = trained_only(rows)
    chosen.loc[chosen["sentence_idx"] == 0, ["RMA", "MA_ZS"]] = np.nan, 0.0
    never_compared = (
        chosen["sentence_idx"] > 19
    )  # the zero-shot model was not explained there: neither defined nor undefined
    chosen.loc[never_compared, ["RMA", "MA_ZS"]] = np.nan
    table = summarise_relative(chosen, rows, trained_only(GROUPS), **HOW).set_index(
        ["scheme", "method"]
    )
    assert table.loc[("C", "LIME"), "RMA"] == pytest.approx(3.0, abs=0.05)
    assert table.loc[("C", "LIME"), "undefined"] == pytest.approx(1 / 20)
    assert table.loc[("C", "LIME"), "RMA_first_pronoun"] == pytest.approx(4.5, abs=0.2)
    assert table.loc[("CE", "LIME"), "RMA_uniform_random"] == pytest.approx(
        1.25, abs=0.1
    )  # floors need no rows of the model
    assert np.isnan(
        table.loc[("C", "Saliency"), "RMA_first_pronoun"]
    )  # no zero-shot Saliency to divide by


def test_the_typical_ratio_is_a_median():
    rows = scored().assign(RMA=lambda t: np.where(t["sentence_idx"] < 10, 1e6, t["RMA"]))
    table = summarise_relative(trained_only(rows), rows, trained_only(GROUPS), **HOW)
    assert table.set_index(["scheme", "method"]).loc[("C", "LIME"), "RMA"] < 4


def test_models_stand_in_the_order_of_the_table():
    one = trained_only(scored(15))
    rows = pd.concat([one.assign(scheme="CE"), one.assign(dataset="B"), one])
    pairs = compare_methods(rows, **HOW)
    order = [("D_A", "CE"), ("B", "C"), ("D_A", "C")]
    assert list(zip(pairs["dataset"], pairs["scheme"])) == order
    assert pairs.index.tolist() == [0, 1, 2]
    split = split_variance(rows)
    assert list(dict.fromkeys(zip(split["dataset"], split["scheme"]))) == order
    assert split.index.tolist() == list(range(3 * 7))
    mass = rows.groupby(["dataset", "scheme", "method"], as_index=False)["MA"].mean()
    places = possible_places(pairs, mass[::-1])
    assert list(places)[3:] == ["MA", "best_place", "worst_place", "smallest_detectable"]
    assert places["method"].tolist() == mass["method"].tolist()[::-1]
    confused = confusion_shares(
        pd.DataFrame({"dataset": ["D_S", "D_A"], "scheme": "C", "target": 0, "predicted": 0}),
        ("F", "M"),
    )
    assert confused["dataset"].tolist() == ["D_S", "D_A"] and confused.index.tolist() == [0, 1]


def test_a_class_that_is_never_predicted_has_a_share_of_nothing():
    rows = pd.DataFrame({"dataset": "D_A", "scheme": "C", "target": [0, 1, 2], "predicted": 0})
    table = confusion_shares(rows, ("F", "M", "NB"))
    assert table["predicted"].tolist() == ["F", "M", "NB"] * 3
    assert table["share"].tolist() == [1.0, 0.0, 0.0] * 3
    right = confusion_shares(rows.assign(predicted=rows["target"]), ("F", "M", "NB"))
    assert right["share"].tolist() == [1.0, 0, 0, 0, 1, 0, 0, 0, 1]


def test_gains_are_tested_per_group_and_corrected_over_the_table():
    table = gain_tests(trained_only(scored()), trained_only(GROUPS)).set_index(["scheme", "method"])
    assert (
        table.loc[("C", "LIME"), "gain"] == pytest.approx(0.4, abs=0.01)
        and table.loc[("C", "LIME"), "p_holm"] < 1e-6
    )
    assert table.loc[("C", "LIME"), "p_holm"] == pytest.approx(2 * table.loc[("C", "LIME"), "p"])
    assert table.loc[("CE", "LIME"), "n_sentences"] == 0 and np.isnan(
        table.loc[("CE", "LIME"), "p_holm"]
    )


def test_places_follow_from_the_pairs_that_are_ranked():
    with pytest.raises(TouchstoneError, match="name at least two"):
        compare_methods(scored().query("method == 'LIME'"), **HOW)
    assert not compare_methods(trained_only(scored(n_seeds=1)), **HOW)[
        "is_ranked"
    ].any()  # one training ranks nothing
    pairs = compare_methods(trained_only(scored()), **HOW)
    assert pairs[["dataset", "scheme", "left", "right", "is_ranked"]].values.tolist() == [
        ["D_A", "C", "LIME", "Saliency", True]
    ]
    mass = summarise_mass(scored(), trained_only(GROUPS), **HOW).query("scheme == 'C'")
    places = possible_places(pairs, mass).set_index("method")
    assert places.loc["LIME", ["best_place", "worst_place"]].tolist() == [1, 1]
    assert places.loc["Saliency", ["best_place", "worst_place"]].tolist() == [2, 2]
    open_places = possible_places(pairs.assign(is_ranked=False), mass).set_index("method")
    assert open_places[["best_place", "worst_place"]].values.tolist() == [[1, 2], [1, 2]]


def test_the_variance_split_takes_the_methods_that_every_seed_has():
    rows = trained_only(scored())
    rows = rows[~((rows["method"] == "Saliency") & (rows["seed"] == 1))]
    split = split_variance(rows).set_index("term")
    assert (
        split.loc["method", "levels"] == 1
        and np.isnan(split.loc["method", "share"])
        and split.loc["seed", "levels"] == 2
    )
    assert split_variance(trained_only(scored())).set_index("term").loc["method", "share"] > 0.9


def test_accuracy_stands_beside_the_rule_and_hard_rows():
    judged = pd.DataFrame(
        [
            {
                "dataset": "D_A",
                "scheme": s,
                "seed": 0,
                "row_id": str(i),
                "sentence_idx": i // 3,
                "is_correct": float(i % 10 < right),
                "is_hard": hard and i < 30,
            }
            for s, right, hard in (
                (RULE, 8, True),
                (BAG, 9.5, True),
                ("C", 6, True),
                ("CE", 9, True),
            )
            for i in range(90)
        ]
    )
    table = summarise_accuracy(judged, **HOW).set_index("scheme")
    assert table["accuracy"].to_dict() == pytest.approx({RULE: 0.8, BAG: 1.0, "C": 0.6, "CE": 0.9})
    assert table["below_first_pronoun"].to_dict() == {
        RULE: False,
        BAG: False,
        "C": True,
        "CE": False,
    }
    assert table["below_bag_of_words"].to_dict() == {RULE: True, BAG: False, "C": True, "CE": True}
    assert (table["n_hard"] == 30).all()
    without = summarise_accuracy(judged.assign(is_hard=False), **HOW)
    assert (without["n_hard"] == 0).all() and without["accuracy_hard"].isna().all()
    assert mark_below(GROUPS, {("D_A", "C")})["below_first_pronoun"].tolist() == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]


def test_confusion_and_roc_are_those_of_scikit_learn():
    rows = predictions()
    table = confusion_shares(rows, ("F", "M", "NB"))
    assert len(table) == 9 + 4 and table.groupby(["dataset", "target"])[
        "share"
    ].sum().tolist() == pytest.approx([1.0] * 5)
    three = rows[rows["dataset"] == "D_A"]
    expected = confusion_matrix(three["target"], three["predicted"], normalize="true").ravel()
    assert table.query("dataset == 'D_A'")["share"].to_numpy() == pytest.approx(expected)
    binary = rows[rows["dataset"] == "D_A_binary"]
    points = roc_points(binary)
    areas = [roc_auc_score(run["target"], run["p_M"]) for _, run in binary.groupby("seed")]
    assert points["auc"].unique() == pytest.approx([np.mean(areas)])
    assert (
        points["true_positive_rate"].is_monotonic_increasing
        and points["true_positive_rate"].iloc[-1] == 1.0
    )
    assert roc_points(rows.iloc[:0]).empty


def test_a_roc_curve_by_hand():
    """From the top: one of class 1, one of class 0, and again; each is one half of its class."""
    rows = pd.DataFrame({"target": [0, 0, 1, 1], "p_M": [0.1, 0.6, 0.4, 0.8], "seed": 0})
    both = pd.concat([rows.assign(dataset=name, scheme="C") for name in ("D_S", "D_A")])
    assert roc_points(both)["dataset"].unique().tolist() == ["D_S", "D_A"]
    points = roc_points(rows.assign(dataset="D_A", scheme="C"))
    rates = points.set_index(points["false_positive_rate"].round(2))["true_positive_rate"]
    assert rates.index.tolist() == [round(0.05 * i, 2) for i in range(21)]
    assert (rates[0.25], rates[0.45], rates[0.55], rates[1.0]) == (0.5, 0.5, 1.0, 1.0)
    assert points["auc"].unique().tolist() == [0.75]


def test_word_shares_sum_to_one_and_take_the_first_seed():
    explanations = pd.DataFrame(
        [
            {
                "dataset": "D_A",
                "row_id": "3-F",
                "scheme": "C",
                "method": "LIME",
                "seed": k,
                "words": ["She", "left"],
                "scores": s,
            }
            for k, s in ((0, [-3.0, 1.0]), (1, [0.0, 1.0]))
        ]
    )
    table = word_shares(explanations, [1, 0])
    assert table["share"].tolist() == [0.75, 0.25] and table["is_truth"].tolist() == [1, 0]
    assert table["position"].tolist() == [0, 1] == table.index.tolist()
    assert word_shares(explanations.assign(scores=[[0.0, 0.0]] * 2), [1, 0])["share"].tolist() == [
        0.0,
        0.0,
    ]


def test_a_floor_beside_relative_mass_accuracy():
    scored = pd.DataFrame(
        [
            {"dataset": "D_A", "scheme": s, "method": m, "row_id": r, "MA": ma}
            for s, m, r, ma in (
                ("ZS", "LIME", "a", 0.2),
                ("ZS", "LIME", "b", 0.4),
                ("ZS", "LIME", "c", 0.0),
                ("-", "First pronoun", "a", 1.0),
                ("-", "First pronoun", "b", 0.8),
                ("-", "First pronoun", "c", 1.0),
            )
        ]
    )
    assert _relative_floor(scored, "First pronoun").reset_index().to_dict("records") == [
        {"dataset": "D_A", "method": "LIME", "RMA": pytest.approx((5.0 + 2.0) / 2)}
    ]
