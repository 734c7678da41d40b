"""What stands beside the truths: mass, likeness on new weights, another model's explanations,
budgets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.studies.assay.checks import (
    antecedent_table,
    antecedents,
    by_padding,
    likeness_when_redrawn,
    mass_on_marks,
    must_lose,
    own_and_other,
    partial_rank_correlation,
    partial_together,
    planted_in_detail,
    plausibility_of_rest,
    scores_by_budget,
)
from lib.studies.assay.explainers import Counts
from lib.studies.assay.truths import score_items

ABOUT = {"model": "m", "training": 0, "text": "a b c"}


def said(scores: list[float], name: str = "x", **others: object) -> dict[str, object]:
    return ABOUT | {"explainer": name, "scores": scores} | others


def items() -> pd.DataFrame:
    item = ABOUT | {"item_id": "i@0", "truth": "mask", "cluster": "c", "key": [1.0, 0.0, 0.0]}
    return pd.DataFrame([item])


def test_mass_is_the_share_on_marked_words_the_largest_first() -> None:
    explanations = pd.DataFrame([said([1.0, -1.0, 2.0]), said([0.0, 0.0, 1.0], "y")])
    swap = items().assign(truth="swap", item_id="s@0")
    found = mass_on_marks(pd.concat([items(), swap]), explanations)
    assert found.to_dict() == {"x": 0.25, "y": 0.0} and found.index[0] == "x"


def test_likeness_is_of_order_without_sign_and_one_for_the_constant() -> None:
    before = pd.DataFrame([said([1.0, 2.0, 3.0]), said([1.0, 1.0, 1.0], "even")])
    after = pd.DataFrame([said([9.0, 5.0, 1.0]), said([1.0, 1.0, 1.0], "even")])
    found = likeness_when_redrawn(before, after).set_index("explainer")["likeness"]
    assert found.to_dict() == pytest.approx({"x": 1.0, "even": 1.0})
    other = pd.DataFrame([said([2.0, 1.0, 3.0])])
    assert likeness_when_redrawn(before, other)["likeness"].tolist() == pytest.approx([0.5])


def test_the_other_trainings_explanations_meet_this_ones_truth() -> None:
    both = pd.concat([items(), items().assign(training=1, item_id="i@1")], ignore_index=True)
    both = both.assign(truth="swap", key=[[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    explanations = pd.DataFrame(
        [said([1.0, 2.0, 3.0]), said([3.0, 2.0, 1.0], training=1), said([1.0, 2.0, 3.0], "z")]
    )
    keys = ["model", "training", "text"]
    own = explanations.merge(both[["item_id", *keys]], on=keys)
    found = own_and_other(both, score_items(both, own), explanations, ["x"])
    values = found.groupby("explained")["value"].mean()
    assert values.to_dict() == {"other": -1.0, "own": 1.0}
    assert set(found["explainer"]) == {"x"} and found["row_id"].tolist()[0] == "i@0x"


def test_scores_are_told_by_budget() -> None:
    budgets = pd.DataFrame([said([1.0, 2.0, 3.0], passes=10), said([3.0, 2.0, 1.0], passes=100)])
    found = scores_by_budget(items(), budgets)
    assert found["passes"].tolist() == [10, 100]
    assert np.allclose(found["value"], [0.0, 1.0]), "the area under the curve of the marked word"


def test_planted_words_have_a_share_and_an_order_and_the_decoy_a_share() -> None:
    item = items().assign(truth="planted", sentence=[["velvet", "lemon", "sings"]])
    others = pd.DataFrame([said([3.0, -1.0, 0.0], "good"), said([0.0, 0.0, 0.0], "none")])
    found = planted_in_detail(item, others).set_index("explainer")
    assert found.loc["good"].tolist() == [0.75, 1.0, 0.25]
    assert found.loc["none"].tolist() == [0.0, 0.5, 0.0] and found.index[0] == "good"
    without = item.assign(sentence=[["velvet", "vicar", "sings"]])
    assert planted_in_detail(without, others)["decoy"].isna().all()


def test_antecedents_are_ordered_across_sentences_and_beyond_their_stereotype() -> None:
    counts = Counts(
        pd.DataFrame(
            {"sentence": [["nurse"], ["nurse"], ["miner"], ["clerk"]], "target": [0, 0, 1, 1]}
        )
    )
    nouns, effects = ["nurse", "miner", "clerk", "cook"], [-3.0, 2.0, 1.0, 5.0]
    rows = [
        {
            "training": training,
            "cluster": noun,
            "sentence": ["the", noun, "left"],
            "target": 1,
            "mark": [0.0, 1.0, 0.0],
            "key": [np.nan, effect, 0.5],
            "explainer": name,
            "scores": [9.0, score, -9.0],
        }
        for training in (0, 1)
        for noun, effect in zip(nouns, effects, strict=True)
        for name, score in (("honest", effect), ("stereotype", counts.log_ratio(noun, 1)))
    ]
    unknown = rows[0] | {"key": [np.nan, np.nan, 0.5], "cluster": "baker"}
    by_noun = antecedents(pd.DataFrame([*rows, unknown]), counts, n_bootstrap=50)
    assert by_noun.n == 4 and len(by_noun.partial) == 51
    found = antecedent_table(by_noun).set_index("explainer")
    honest = ["rank_correlation", "partial", "low", "high", "n"]
    assert found.loc["honest", honest].tolist() == pytest.approx([1.0, 1.0, 1.0, 1.0, 4])
    assert found.loc["stereotype", "rank_correlation"] > 0
    assert np.isnan(found.loc["stereotype", "partial"]), "nothing is left of it"
    assert partial_together(by_noun, ["honest", "nobody"]) == pytest.approx((1.0, 1.0, 1.0))


def test_a_partial_correlation_is_that_of_what_a_third_leaves() -> None:
    rng = np.random.default_rng(0)
    given = rng.normal(size=(5, 30))
    left, right = given + rng.normal(size=(5, 30)), given + rng.normal(size=(5, 30))
    found = partial_rank_correlation(left, right, given)
    plain = partial_rank_correlation(left, right)
    for a, b, c, partial, both in zip(left, right, given, found, plain, strict=True):
        r = {
            pair: stats.spearmanr(*pair_of).statistic
            for pair, pair_of in {"ab": (a, b), "ac": (a, c), "bc": (b, c)}.items()
        }
        rest = np.sqrt((1 - r["ac"] ** 2) * (1 - r["bc"] ** 2))
        assert partial == pytest.approx((r["ab"] - r["ac"] * r["bc"]) / rest)
        assert both == pytest.approx(r["ab"])
    constant = np.zeros((5, 30))
    assert partial_rank_correlation(left, right, constant) == pytest.approx(plain)


def test_explainers_lose_where_padding_is_not_the_other_form() -> None:
    table = pd.DataFrame({"item_id": ["a", "b", "c"], "truth": ["swap", "swap", "mask"]})
    table["padding"] = [0.1, 0.9, np.nan]
    scored = pd.DataFrame(
        [("a", "pads", 0.9), ("b", "pads", 0.2), ("a", "not", 0.5), ("b", "not", 0.5)],
        columns=["item_id", "explainer", "value"],
    )
    found = by_padding(table, scored, ["pads"]).set_index("explainer")
    assert found.loc["pads", ["near", "far"]].tolist() == [0.9, 0.2] and found.index[0] == "pads"
    assert found.loc["not", ["pads", "near", "far", "n_near"]].tolist() == [False, 0.5, 0.5, 1]
    one_side = by_padding(table.iloc[:1], scored.iloc[[0]], []).set_index("explainer")
    assert np.isnan(one_side.loc["pads", "far"])


def test_a_cue_that_the_model_does_not_follow_is_plausibility_only() -> None:
    cues = pd.DataFrame([ABOUT | {"item_id": "i", "truth": "cue", "cluster": "c", "tells": True}])
    cues = cues.assign(part="test", sentence=[["a", "b", "c"]], key=[[1.0, -1.0, 0.0]])
    explanations = pd.DataFrame([said([2.0, 1.0, 0.0]), said([1.0, 2.0, 0.0], "y")])
    assert plausibility_of_rest(cues, explanations).empty
    found = plausibility_of_rest(cues.assign(tells=False), explanations)
    assert found.to_numpy().tolist() == [["x", 1.0, 1], ["y", 0.0, 1]]


def test_the_cheater_of_sizes_must_lose_only_where_effects_have_both_signs() -> None:
    nan = float("nan")
    table = pd.DataFrame(
        {
            "truth": ["edit", "edit", "noun"],
            "training": 0,
            "change": [1.0, -2.0, nan],
            "key": [[0.0, 1.0], [1.0, 0.0], [0.5, 0.25]],
        }
    )
    marks = [(truth, "Cheater: marks") for truth in ("swap", "edit", "noun")]
    assert must_lose(table) == [*marks, ("edit", "Cheater: sizes")]
    table.at[2, "key"] = [0.5, -0.25]
    assert must_lose(table)[-1] == ("noun", "Cheater: sizes")
    assert must_lose(table.assign(change=1.0)) == [*marks, ("noun", "Cheater: sizes")]
