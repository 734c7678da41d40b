"""Every truth by hand: its oracle scores 1, equal scores chance, and signs count as it says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.core.errors import TouchstoneError
from lib.studies.assay.answers import of_two_forms
from lib.studies.assay.truths import (
    TRUTHS,
    cheaters,
    oracle,
    score_items,
    score_on_other,
    spearman_parts,
)

NAN = float("nan")
ABOUT = {"model": "m", "training": "m1"}


def items() -> pd.DataFrame:
    rows = [
        ("mask-1", "mask", [1, 0, 0, 1], 0.0),
        ("swap-1", "swap", [0.5, NAN, -0.2, 0.1], 0.0),
        ("planted-1", "planted", [0, 0.5, 0.5, 0], 0.0),
        ("cue-1", "cue", [0, 1, -1, 0], 0.0),
        ("edit-1", "edit", [0, 1, 1, 0], -0.5),
        ("edit-2", "edit", [1, 0, 0, 0], 0.2),
        ("edit-3", "edit", [1, 1, 0, 0], 0.7),
        ("noun-1", "noun", [NAN, 0.3, -0.4, 0.2], 0.0),
    ]
    table = pd.DataFrame(rows, columns=["item_id", "truth", "key", "change"])
    return table.assign(cluster=table["item_id"], **ABOUT)


def explained(scores: list[float], name: str = "x") -> pd.DataFrame:
    asked = items()
    return pd.DataFrame(
        {"item_id": asked["item_id"], "explainer": name, "scores": [scores] * len(asked)}
    )


def by_truth(explanations: pd.DataFrame) -> dict[str, float]:
    return score_items(items(), explanations).groupby("truth")["value"].mean().to_dict()


def test_who_knows_the_key_scores_one_everywhere() -> None:
    assert by_truth(oracle(items())) == pytest.approx(dict.fromkeys(TRUTHS, 1.0))


def test_equal_scores_say_nothing() -> None:
    found = by_truth(explained([0.25] * 4))
    assert found.pop("planted") == 0.5, "half of the words are planted: the floor is in the items"
    rho = found.pop("edit")  # the number of edited words is a rule of its own
    assert rho == pytest.approx(stats.spearmanr([0.5, 0.25, 0.5], [-0.5, 0.2, 0.7]).statistic)
    assert found == {name: TRUTHS[name].chance for name in found}


def test_the_sign_counts_where_the_table_says_so() -> None:
    straight = oracle(items())
    turned = straight.assign(scores=[[-x for x in scores] for scores in straight["scores"]])
    before, after = by_truth(straight), by_truth(turned)
    for name, truth in TRUTHS.items():
        assert (before[name] == pytest.approx(after[name])) != truth.is_signed


def test_a_cheater_wins_what_it_knows_and_no_more() -> None:
    marks = [[float(x > 0) for x in np.nan_to_num(key)] for key in items()["key"]]
    asked = items().assign(mark=marks, goal=[NAN] * 4 + [-1.0, 0.0, 1.0, NAN])
    found = cheaters(asked)
    value = score_items(asked, found).groupby(["explainer", "truth"])["value"].mean()
    assert (value["Cheater: marks"][["mask", "planted", "cue"]] == 1).all()
    assert value["Cheater: both texts"].to_dict() == pytest.approx({"edit": 1.0})
    assert value["Goal of the edit"].to_dict() == pytest.approx({"edit": 1.0}), "it knows the order"
    sizes = value["Cheater: sizes"]
    assert set(sizes.index) == {"swap", "edit", "noun"} and (sizes < 1).all()
    scores = found.set_index(["explainer", "item_id"])["scores"]
    assert scores["Goal of the edit", "edit-3"] == [0.5, 0.5, 0.0, 0.0]


def test_the_mean_of_the_parts_is_spearmans_rho_and_their_spread_its_error() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        a, b = rng.integers(0, 6, 20), rng.normal(size=20)
        assert spearman_parts(a, b).mean() == pytest.approx(stats.spearmanr(a, b).statistic)
    assert spearman_parts([1, 1], [0, 3]).tolist() == [0, 0]
    assert spearman_parts([1, 2], [0, 3]).tolist() == [1, 1], "two pairs: one order"
    assert spearman_parts([], []).tolist() == []
    found, errors = [], []
    for _ in range(300):
        a = rng.normal(size=60)
        parts = spearman_parts(a, a + rng.normal(size=60))
        found.append(parts.mean())
        errors.append(parts.std(ddof=1) / np.sqrt(60))
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.15)
    assert np.ptp(spearman_parts(a, a)) < 1e-12, "the oracle has 1 in every sample"


def test_rho_is_of_one_explainer_and_one_training() -> None:
    both = pd.concat([oracle(items()), explained([1.0, 0.0, 0.0, 0.0])])
    found = score_items(items(), both).groupby(["truth", "explainer"])["value"].mean()
    assert found["edit", "oracle"] == pytest.approx(1)
    assert found["edit", "x"] == pytest.approx(
        stats.spearmanr([0, 1, 1], [-0.5, 0.2, 0.7]).statistic
    )


def test_an_item_of_which_the_truth_says_nothing_has_no_value() -> None:
    silent = items().assign(key=[[0.0, 0.0, 0.0, 0.0]] * 8)
    asked = silent[silent["truth"].isin(["mask", "planted", "noun", "swap"])]
    found = score_items(asked, explained([1.0, 2.0, 3.0, 4.0]).iloc[[0, 1, 2, 7]])
    assert found["value"].isna().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.assign(item_id="mask-9"), "there is no item 'mask-9'"),
        (lambda e: pd.concat([e, e.head(1)]), "x explains item mask-1 twice"),
        (lambda e: e.assign(scores=[[1.0, 2.0]] * len(e)), "mask-1 has 4 words"),
        (lambda e: e.assign(scores=[[1.0, NAN, 0.0, 0.0]] * len(e)), "one finite number a word"),
    ],
)
def test_what_cannot_be_scored_is_named(change, message) -> None:
    with pytest.raises(TouchstoneError, match=message):
        score_items(items(), change(explained([0.0] * 4)))


def test_an_explanation_of_another_training_meets_this_ones_truth() -> None:
    about = {"truth": "swap", "model": "m", "cluster": "c", "text": "a b c", "change": NAN}
    asked = pd.DataFrame(
        [
            {"item_id": "i@0", "training": 0, "key": [1.0, 2.0, 3.0], **about},
            {"item_id": "i@1", "training": 1, "key": [3.0, 2.0, 1.0], **about},
        ]
    )
    explanations = pd.DataFrame(
        [
            {"explainer": "x", "training": 0, "scores": [1.0, 2.0, 3.0]},
            {"explainer": "x", "training": 1, "scores": [1.0, 2.0, 3.0]},
        ]
    ).assign(model="m", text="a b c")
    own = score_items(asked, explanations.assign(item_id=["i@0", "i@1"]))
    other = score_on_other(asked, explanations)
    assert own["value"].tolist() == [1.0, -1.0] and other["training"].tolist() == [0, 1]
    turned = explanations.assign(scores=[[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    assert score_on_other(asked, turned)["value"].tolist() == [-1.0, -1.0]


def test_a_word_that_only_a_third_form_changes_is_no_part_of_a_truth_of_two_forms() -> None:
    forms = pd.DataFrame(
        {
            "sentence_idx": [4, 4, 5, 5],
            "sentence": [
                ["she", "sings", "her", "aria", "herself"],
                ["he", "sings", "his", "aria", "himself"],
                ["he", "knows", "her"],
                ["she", "knows", "him"],
            ],
        }
    )
    told = pd.DataFrame(
        {
            "truth": ["mask", "swap", "swap", "edit"],
            "sentence_idx": [4, 4, 5, np.nan],
            "mark": [[1.0, 1, 1, 0, 1], [1.0, 1, 1, 0, 1], [1.0, 1, 1], [1.0, 0]],
            "key": [[1.0, 1, 1, 0, 1], [0.3, 0, -0.1, NAN, 0.2], [0.1, 0, 0.2], [1.0, 0]],
            "tells": [True] * 4,
        },
        index=[7, 8, 9, 10],
    )
    found = of_two_forms(told, forms)
    assert found["mark"].tolist() == [[1, 0, 1, 0, 1], [1, 0, 1, 0, 1], [1, 0, 1], [1, 0]]
    assert found["tells"].tolist() == [True, True, False, True], "two words have no order"
    assert found["key"][7] == [1, 0, 1, 0, 1] and found["key"][10] == [1, 0]
    np.testing.assert_array_equal(found["key"][8], [0.3, NAN, -0.1, NAN, 0.2])
    assert told["key"][8][1] == 0, "what is given stays as it is"
    np.testing.assert_array_equal(of_two_forms(found, forms)["key"][8], found["key"][8])
