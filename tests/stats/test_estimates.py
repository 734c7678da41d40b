"""Intervals cover at their level, clustered tests keep theirs where unclustered ones do not, splits add up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests

from lib.core.errors import TouchstoneError
from lib.stats.estimates import (
    cluster_averages,
    clustered_wilcoxon,
    cohen_dz,
    compare_all,
    equivalence_p,
    estimate,
    estimates,
    holm,
    paired_differences,
    rank_biserial,
    smallest_detectable_difference,
    variance_split,
)


def simulated(
    rng: np.random.Generator,
    n_sentences: int = 40,
    n_seeds: int = 1,
    seed_sd: float = 0.0,
    mean: float = 0.0,
    sentence_sd: float = 0.1,
) -> pd.DataFrame:
    value = (
        mean
        + rng.normal(0, sentence_sd, (n_sentences, 1, 1))
        + rng.normal(0, seed_sd, (1, n_seeds, 1))
        + rng.normal(0, 0.03, (n_sentences, n_seeds, 3))
    )
    i, s, f = (x.ravel() for x in np.indices(value.shape))
    return pd.DataFrame(
        {
            "sentence_idx": i,
            "seed": s,
            "row_id": [f"{a}-{b}" for a, b in zip(i, f)],
            "form": f,
            "value": value.ravel(),
        }
    )


@pytest.mark.parametrize(
    ("n_sentences", "n_seeds", "seed_sd"),
    [(12, 1, 0.0), (60, 1, 0.0), (60, 3, 0.05), (60, 5, 0.05)],
)
def test_intervals_cover_at_about_their_level(n_sentences, n_seeds, seed_sd):
    rng = np.random.default_rng(n_sentences + n_seeds)
    hits = [
        (e := estimate(simulated(rng, n_sentences, n_seeds, seed_sd), "value", n_bootstrap=400)).low
        <= 0
        <= e.high
        for _ in range(250)
    ]
    assert 0.90 <= np.mean(hits) <= 0.99


def test_an_interval_over_rows_would_be_too_short_and_one_without_seeds_as_well():
    frame = simulated(np.random.default_rng(0), 60, 3, 0.05)
    ours = estimate(frame, "value")
    rows = frame.assign(sentence_idx=range(len(frame)), seed=0)
    sentences_only = estimate(frame.assign(seed=0), "value")
    assert ours.standard_error > 1.5 * sentences_only.standard_error
    assert sentences_only.standard_error > 1.5 * estimate(rows, "value").standard_error


def test_the_mean_s_standard_error_is_the_textbook_one():
    frame = simulated(np.random.default_rng(1), 200)
    means = frame.groupby("sentence_idx")["value"].mean()
    found = estimate(frame, "value", n_bootstrap=4000)
    assert found.estimate == pytest.approx(frame["value"].mean())
    assert found.standard_error == pytest.approx(means.sem(), rel=0.05)


def test_the_median_is_the_median_and_ratios_do_not_move_it():
    frame = simulated(np.random.default_rng(2), 51).assign(seed=0)
    found = estimate(frame, "value", "median")
    assert (
        found.estimate == pytest.approx(frame["value"].median())
        and found.low < found.estimate < found.high
    )
    wild = frame.assign(
        value=np.where(frame["value"] > frame["value"].quantile(0.9), 1e9, frame["value"])
    )
    assert estimate(wild, "value", "median") == found


def test_undefined_values_are_left_out_and_nothing_gives_nothing():
    frame = pd.DataFrame(
        {"sentence_idx": [0, 0, 1, 2], "seed": 0, "value": [1.0, np.nan, 3.0, 5.0]}
    )
    assert estimate(frame, "value")[:1] == (3.0,) and estimate(frame, "value").n == 3
    empty = estimate(frame.assign(value=np.nan), "value")
    assert empty.n == 0 and np.isnan(empty.estimate)
    assert np.isnan(estimate(frame.iloc[:1], "value").low)  # one sentence says nothing about others
    with pytest.raises(TouchstoneError, match="mode"):
        estimate(frame, "value", "mode")


def test_groups_are_estimated_as_they_are_alone():
    rng = np.random.default_rng(4)
    both = pd.concat([simulated(rng).assign(method="a"), simulated(rng).assign(method="b")])
    table = estimates(both, ["method"], "value").set_index("method")
    assert tuple(table.loc["b"][:3]) == pytest.approx(
        tuple(estimate(both[both["method"] == "b"], "value")[:3])
    )


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


def test_the_clustered_wilcoxon_keeps_its_level_and_the_unclustered_one_does_not():
    rng, ours, rows = np.random.default_rng(5), [], []
    for _ in range(300):
        frame = simulated(rng, 25)
        ours.append(clustered_wilcoxon(frame, "value").p < 0.05)
        rows.append(scipy_stats.wilcoxon(frame["value"]).pvalue < 0.05)
    assert np.mean(ours) < 0.09
    assert np.mean(rows) > 0.15


def test_the_clustered_wilcoxon_finds_what_is_there():
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


def test_equivalence_needs_precision_not_only_silence():
    rng = np.random.default_rng(8)
    assert equivalence_p(cluster_averages(simulated(rng, 200), "value"), margin=0.05) < 0.01
    assert equivalence_p(cluster_averages(simulated(rng, 6), "value"), margin=0.05) > 0.05
    assert (
        equivalence_p(cluster_averages(simulated(rng, 200, mean=0.2), "value"), margin=0.05) > 0.9
    )
    assert np.isnan(equivalence_p(cluster_averages(simulated(rng, 1), "value"), margin=0.05))


def test_a_ranking_is_claimed_only_where_the_design_can_see_it():
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


def test_the_variance_split_adds_up_and_agrees_with_an_analysis_of_variance():
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


def test_the_variance_split_says_what_it_cannot_see():
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
