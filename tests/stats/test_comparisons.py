"""Clustered tests keep their level where unclustered ones do not; variance splits add up."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests

from lib.core.errors import TouchstoneError
from lib.stats import comparisons
from lib.stats.comparisons import (
    cluster_averages,
    clustered_wilcoxon,
    cohen_dz,
    compare_all,
    equivalence_p,
    holm,
    paired_differences,
    rank_biserial,
    smallest_detectable_difference,
    variance_split,
)
from lib.stats.estimates import Estimate


def test_pairs_of_what_passed_or_not_are_subtracted_as_numbers():
    right = pd.DataFrame({"row_id": ["a", "b"], "sentence_idx": 0, "seed": 0, "v": [True, False]})
    left = right.assign(v=[True, True])
    assert paired_differences(left, right, "v")["difference"].tolist() == [0.0, 1.0]


def test_pairs_meet_within_row_and_seed_and_a_floor_meets_every_seed():
    trained = pd.DataFrame(
        {
            "row_id": ["a", "a", "b"],
            "sentence_idx": [0, 0, 1],
            "seed": [0, 1, 0],
            "v": [1.0, 2.0, 3.0],
        }
    )
    floor = pd.DataFrame(
        {"row_id": ["a", "b", "c"], "sentence_idx": [0, 1, 2], "seed": -1, "v": [0.5, 0.5, 0.5]}
    )
    pairs = paired_differences(trained, floor, "v")
    assert pairs["difference"].tolist() == [0.5, 1.5, 2.5] and pairs["seed"].tolist() == [0, 1, 0]
    turned = paired_differences(floor, trained, "v")
    assert turned["difference"].tolist() == [-0.5, -1.5, -2.5] and turned["seed"].tolist() == [
        0,
        1,
        0,
    ]
    assert paired_differences(trained, trained.assign(v=0.0), "v")["difference"].tolist() == [
        1.0,
        2.0,
        3.0,
    ]
    assert paired_differences(floor, floor.assign(v=0.0), "v")["difference"].tolist() == [
        0.5,
        0.5,
        0.5,
    ]
    one_seed = trained[trained["seed"] == 0].assign(v=0.0)
    assert paired_differences(trained, one_seed, "v")["difference"].tolist() == [
        1.0,
        3.0,
    ]  # seed 1 has no partner
    assert (
        paired_differences(trained, floor.iloc[:0], "v").empty
        and paired_differences(trained.iloc[:0], trained, "v").empty
    )


def test_the_clustered_wilcoxon_keeps_its_level_and_the_unclustered_one_does_not(simulated):
    rng, ours, rows = np.random.default_rng(5), [], []
    for _ in range(300):
        frame = simulated(rng, 25)
        ours.append(clustered_wilcoxon(frame, "value").p < 0.05)
        rows.append(scipy_stats.wilcoxon(frame["value"]).pvalue < 0.05)
    assert np.mean(ours) < 0.09
    assert np.mean(rows) > 0.15


def test_the_clustered_wilcoxon_finds_what_is_there(simulated):
    frame = simulated(np.random.default_rng(6), 25, mean=0.2)
    found = clustered_wilcoxon(frame, "value")
    assert found.p < 1e-4 and found.rank_biserial > 0.9 and found.dz > 1 and found.n_sentences == 25
    assert clustered_wilcoxon(frame.assign(value=0.0), "value").p == 1.0
    assert np.isnan(clustered_wilcoxon(frame.assign(value=np.nan), "value").p)


def test_effect_sizes_by_hand():
    assert rank_biserial(np.array([1.0, 2.0, 3.0, -4.0])) == pytest.approx((6 - 4) / 10)
    assert rank_biserial(np.array([0.0, 0.0])) == 0.0 and rank_biserial(np.array([5.0, 1.0])) == 1.0
    assert cohen_dz(np.array([1.0, 3.0])) == pytest.approx(2 / np.sqrt(2))
    assert np.isnan(cohen_dz(np.array([1.0]))) and np.isnan(cohen_dz(np.array([2.0, 2.0])))


def test_holm_by_hand_and_undefined_tests_do_not_count():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.01, np.nan, 0.04])[[0, 2]] == pytest.approx([0.02, 0.04])
    assert np.isnan(holm([np.nan])).all()
    p = np.random.default_rng(0).random(50) ** 4
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_the_smallest_detectable_difference_is_found_four_times_of_five():
    rng = np.random.default_rng(7)
    size = smallest_detectable_difference(0.1 / np.sqrt(30), df=29)
    found = [
        scipy_stats.ttest_1samp(rng.normal(size, 0.1, 30), 0).pvalue < 0.05 for _ in range(2000)
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)
    assert smallest_detectable_difference(0.1, 29, n_tests=66) > smallest_detectable_difference(
        0.1, 29
    )


def test_equivalence_needs_precision_not_only_silence(simulated):
    rng = np.random.default_rng(8)
    assert equivalence_p(cluster_averages(simulated(rng, 200), "value"), margin=0.05) < 0.01
    assert equivalence_p(cluster_averages(simulated(rng, 6), "value"), margin=0.05) > 0.05
    assert (
        equivalence_p(cluster_averages(simulated(rng, 200, mean=0.2), "value"), margin=0.05) > 0.9
    )
    assert np.isnan(equivalence_p(cluster_averages(simulated(rng, 1), "value"), margin=0.05))


def test_a_ranking_is_claimed_only_where_the_design_can_see_it(simulated):
    rng = np.random.default_rng(9)
    base = simulated(rng, 60)
    frame = pd.concat(
        [
            base.assign(method=m, value=base["value"] + shift + rng.normal(0, 0.02, len(base)))
            for m, shift in (("far", 0.5), ("near", 0.0), ("twin", 0.0))
        ]
    )
    table = compare_all(frame, "method", "value").set_index(["left", "right"])
    assert table["is_ranked"].tolist() == [True, True, False]
    assert table.loc[("far", "near"), "difference"] == pytest.approx(0.5, abs=0.02)
    few = compare_all(frame[frame["sentence_idx"] < 4], "method", "value")
    assert not few["is_ranked"].any()


def test_the_variance_split_adds_up_and_agrees_with_an_analysis_of_variance(simulated):
    rng = np.random.default_rng(10)
    frame = simulated(rng, 20, 4, seed_sd=0.2)
    factors = ["seed", "sentence_idx", "form"]
    table = variance_split(frame, "value", factors, [("seed", "form")]).set_index("term")
    assert table["share"].sum() == pytest.approx(1.0)
    fitted = ols("value ~ C(seed) * C(form) + C(sentence_idx)", frame).fit()
    reference = anova_lm(fitted)["sum_sq"]
    assert table.loc["seed", "share"] == pytest.approx(reference["C(seed)"] / reference.sum())
    assert table.loc["seed:form", "share"] == pytest.approx(
        reference["C(seed):C(form)"] / reference.sum()
    )
    assert table.loc["rest", "sd"] == pytest.approx(0.03, rel=0.2)
    assert table.loc["sentence_idx", "sd"] == pytest.approx(0.1, rel=0.4)


def test_the_variance_split_says_what_it_cannot_see(simulated):
    frame = simulated(np.random.default_rng(11), 10)
    table = variance_split(frame, "value", ["seed", "sentence_idx", "form"]).set_index("term")
    assert np.isnan(table.loc["seed", "share"]) and np.isnan(table.loc["seed", "sd"])
    torn = frame[~((frame["sentence_idx"] == 3) & (frame["form"] == 0))]
    assert (
        variance_split(torn, "value", ["seed", "sentence_idx", "form"])["levels"].tolist()[1] == 9
    )
    with pytest.raises(TouchstoneError, match="form"):
        variance_split(
            frame[frame["form"] == frame["sentence_idx"] % 3], "value", ["sentence_idx", "form"]
        )


@pytest.mark.parametrize(
    ("about", "is_ranked"),
    [
        ({}, True),
        ({"low": 0.0}, False),  # an interval that touches zero does not exclude it
        ({"p": 0.05}, False),  # nor is a p at the level below it
        ({"detectable": 0.4}, True),  # a difference of the smallest detectable size is one
        ({"detectable": 0.41}, False),
        ({"difference": -0.4, "low": -0.6, "high": -0.2}, True),
        ({"difference": -0.4, "low": -0.6, "high": 0.0}, False),
        ({"low": -0.1}, False),
    ],
)
def test_a_pair_is_ranked_by_all_three_and_ties_count_as_said(monkeypatch, about, is_ranked):
    seen = {"difference": 0.4, "low": 0.2, "high": 0.6, "p": 0.01, "detectable": 0.3} | about
    gap = Estimate(seen["difference"], seen["low"], seen["high"], 9, 9, 1, 0.1, 8.0)
    monkeypatch.setattr(comparisons, "estimate", lambda *_: gap)
    monkeypatch.setattr(
        comparisons, "clustered_wilcoxon", lambda *_: comparisons.SignedRank(seen["p"], 1.0, 1.0, 9)
    )
    monkeypatch.setattr(
        comparisons, "smallest_detectable_difference", lambda *_: seen["detectable"]
    )
    frame = pd.DataFrame(
        {"method": ["a", "b"], "row_id": "0", "sentence_idx": 0, "seed": 0, "value": 1.0}
    )
    assert compare_all(frame, "method", "value")["is_ranked"].tolist() == [is_ranked]


def test_the_smallest_detectable_difference_by_hand():
    """t quantiles of 4 degrees of freedom: 2.7764 (.975), 3.4954 (.9875), .9410 (.8)."""
    assert smallest_detectable_difference(0.1, 4) == pytest.approx(0.37174, abs=1e-5)
    assert smallest_detectable_difference(0.1, 4, n_tests=2) == pytest.approx(0.44364, abs=1e-5)


def test_equivalence_by_hand():
    """Of 1, 2, 3, margin 1: the larger p is that of t = sqrt 3 with 2 degrees of freedom."""
    assert equivalence_p(np.array([1.0, 2.0, 3.0]), 1.0) == pytest.approx(0.8872983)
    assert equivalence_p(np.array([-1.0, 1.0]), 1.0) == pytest.approx(0.25)  # t = 1, 1 degree


def test_the_variance_split_by_hand():
    """Means 1.5, 4.5 and 2, 4 about 3: squares 9, 4, 1 of 14, each with one degree of freedom."""
    frame = pd.DataFrame(
        {"seed": [0, 0, 1, 1], "form": [0, 1, 0, 1], "value": [1.0, 2.0, 3.0, 6.0]}
    )
    table = variance_split(frame, "value", ["seed", "form"])
    assert table["share"].tolist() == pytest.approx([9 / 14, 4 / 14, 1 / 14])
    assert table["sd"].tolist() == pytest.approx([2.0, np.sqrt(1.5), 1.0])
    assert table["levels"].tolist() == [2, 2, 4]
    with_pair = variance_split(frame, "value", ["seed", "form"], [("seed", "form")])
    assert with_pair["share"].tolist() == pytest.approx([9 / 14, 4 / 14, 1 / 14, 0], abs=1e-12)
    assert with_pair["levels"].tolist() == [2, 2, 4, 4]
    assert with_pair["sd"].isna().all()  # nothing is left to tell noise by
    crossed = variance_split(frame.assign(value=[0.0, 1.0, 1.0, 0.0]), "value", ["seed", "form"])
    assert crossed["sd"].tolist() == [0.0, 0.0, 1.0]  # less than noise is nothing
    assert variance_split(frame.assign(value=1.0), "value", ["seed", "form"])["share"].isna().all()


def test_without_a_degree_of_freedom_there_is_no_noise_to_tell():
    """3 x 4 values and their interaction leave nothing: 0 / 0, of which nobody is warned."""
    value = np.random.default_rng(0).normal(size=12)
    frame = pd.DataFrame({"seed": np.repeat(range(3), 4), "form": [0, 1, 2, 3] * 3, "value": value})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = variance_split(frame, "value", ["seed", "form"], [("seed", "form")])
    assert table["sd"].isna().all() and table["share"].sum() == pytest.approx(1)


def test_where_no_sentences_are_split_the_first_factor_gives_way():
    """Seed 2 has no form 1: two seeds with both forms stay, not three with one."""
    frame = pd.DataFrame({"seed": [0, 0, 1, 1, 2], "form": [0, 1, 0, 1, 0], "value": range(5)})
    assert variance_split(frame, "value", ["seed", "form"])["levels"].tolist() == [2, 2, 4]


def test_the_defaults_are_said(simulated):
    base = simulated(np.random.default_rng(12), 12)
    frame = pd.concat([base.assign(method="a"), base.assign(method="b", value=base["value"] ** 2)])
    pd.testing.assert_frame_equal(
        compare_all(frame, "method", "value"),
        compare_all(frame, "method", "value", n_bootstrap=1000, alpha=0.05, seed=0),
        check_exact=True,
    )
    line = compare_all(frame, "method", "value").iloc[0]
    assert line["left"] == "a" and line["n_sentences"] == 12 and line["n_seeds"] == 1


def test_pairs_stand_in_the_order_of_the_table_and_their_difference_is_a_mean():
    """b minus a is 0, 0, 6 in three sentences: 2 on the mean, 0 in the median."""
    frame = pd.DataFrame(
        {"method": ["b"] * 3 + ["a"] * 3, "row_id": list("012012"), "sentence_idx": [0, 1, 2] * 2}
    ).assign(seed=0, value=[1.0, 1.0, 7.0, 1.0, 1.0, 1.0])
    line = compare_all(frame, "method", "value", n_bootstrap=20).iloc[0]
    assert (line["left"], line["right"], line["difference"]) == ("b", "a", 2.0)


def test_only_a_side_without_any_training_is_a_floor():
    """Seed -1 of a side that also has trainings meets no other seed."""
    both = pd.DataFrame(
        {"row_id": "a", "sentence_idx": 0, "seed": [-1, 0, 1], "v": [9.0, 2.0, 4.0]}
    )
    other = pd.DataFrame({"row_id": "a", "sentence_idx": 0, "seed": [0, 1], "v": [1.0, 1.0]})
    pairs = paired_differences(both, other, "v")
    assert pairs["seed"].tolist() == [0, 1] and pairs["difference"].tolist() == [1.0, 3.0]
    turned = paired_differences(other, both, "v")
    assert turned["difference"].tolist() == [-1.0, -3.0]


def test_sentences_without_a_difference_do_not_stop_the_test():
    """0, 1, 2, 3: three signs alike of three, as the test of 1, 2, 3."""
    frame = pd.DataFrame({"sentence_idx": range(4), "v": [0.0, 1.0, 2.0, 3.0]})
    assert clustered_wilcoxon(frame, "v").p == scipy_stats.wilcoxon([0.0, 1, 2, 3]).pvalue < 0.5
    skewed = pd.DataFrame({"sentence_idx": [0, 0, 0, 1, 1, 1], "v": [0.0, 0, 3, 0, 0, 6]})
    assert clustered_wilcoxon(skewed, "v").p == 0.5  # of means: 2 of the 4 signs of 1 and 2
    assert clustered_wilcoxon(skewed, "v", "median").p == 1


def test_of_one_sentence_nothing_is_said_and_nobody_is_warned():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(cohen_dz(np.array([1.0])))
        assert np.isnan(equivalence_p(np.array([0.01]), margin=0.05))


def test_medians_are_compared_as_medians():
    frame = pd.DataFrame({"sentence_idx": [0, 0, 0, 1], "value": [0.0, 1.0, 8.0, np.nan]})
    assert cluster_averages(frame, "value").tolist() == [3.0]
    assert cluster_averages(frame, "value", "median").tolist() == [1.0]
    two = pd.DataFrame({"sentence_idx": [0, 1], "value": [1.0, 1.0]})
    found = clustered_wilcoxon(two, "value")
    assert found.p == 0.5 and found.rank_biserial == 1 and np.isnan(found.dz)
    empty = clustered_wilcoxon(two.iloc[:0], "value")
    assert empty.n_sentences == 0 and np.isnan([empty.p, empty.rank_biserial, empty.dz]).all()
