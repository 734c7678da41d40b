"""Intervals cover at their level, whatever the number of sentences and seeds."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from lib.core.errors import TouchstoneError
from lib.stats.estimates import (
    _interval,
    _weighted_mean,
    _weighted_median,
    estimate,
    estimate_auc,
    estimates,
    estimates_of,
    expanded_quantiles,
    half_widths,
    resamples,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_sentences", "n_seeds", "seed_sd"),
    [(12, 1, 0.0), (60, 1, 0.0), (60, 3, 0.05), (60, 5, 0.05)],
)
def test_intervals_cover_at_about_their_level(simulated, n_sentences, n_seeds, seed_sd):
    rng = np.random.default_rng(n_sentences + n_seeds)
    hits = [
        (e := estimate(simulated(rng, n_sentences, n_seeds, seed_sd), "value", n_bootstrap=400)).low
        <= 0
        <= e.high
        for _ in range(250)
    ]
    assert 0.90 <= np.mean(hits) <= 0.99


def test_an_interval_over_rows_would_be_too_short_and_one_without_seeds_as_well(simulated):
    frame = simulated(np.random.default_rng(0), 60, 3, 0.05)
    ours = estimate(frame, "value")
    rows = frame.assign(sentence_idx=range(len(frame)), seed=0)
    sentences_only = estimate(frame.assign(seed=0), "value")
    assert ours.standard_error > 1.5 * sentences_only.standard_error
    assert sentences_only.standard_error > 1.5 * estimate(rows, "value").standard_error


def test_the_mean_s_standard_error_is_the_textbook_one(simulated):
    frame = simulated(np.random.default_rng(1), 200)
    means = frame.groupby("sentence_idx")["value"].mean()
    found = estimate(frame, "value", n_bootstrap=4000)
    assert found.estimate == pytest.approx(frame["value"].mean())
    assert found.standard_error == pytest.approx(means.sem(), rel=0.05)


def test_the_median_is_the_median_and_ratios_do_not_move_it(simulated):
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
    assert np.isnan([*empty[:3], *empty[6:]]).all() and empty[3:6] == (0, 0, 0)
    assert np.isnan(estimate(frame.iloc[:1], "value").low)  # one sentence says nothing about others
    with pytest.raises(TouchstoneError, match="mode"):
        estimate(frame, "value", "mode")


def test_groups_are_estimated_as_they_are_alone(simulated):
    rng = np.random.default_rng(4)
    both = pd.concat([simulated(rng).assign(method="a"), simulated(rng).assign(method="b")])
    table = estimates(both, ["method"], "value").set_index("method")
    assert tuple(table.loc["b"][:3]) == pytest.approx(
        tuple(estimate(both[both["method"] == "b"], "value")[:3])
    )


def test_few_clusters_move_the_quantiles_out():
    """10 clusters: the normal tail beyond sqrt(10 / 9) * 2.26216 = 2.38452 is .008551."""
    draws = np.linspace(0, 1, 1001)
    assert expanded_quantiles(draws, 10, 0.05) == pytest.approx([0.008551, 0.991449], abs=1e-6)


@pytest.mark.parametrize(
    ("points", "draws", "n_clusters", "wanted"),
    [
        # two seeds, sentences that never differ: 1 * 12.7062, one degree of freedom
        ([1.0, 3.0], [2.0, 2.0], 5, (2.0, -10.7062, 14.7062, 1.0, 1.0)),
        # three seeds: 1 / sqrt 3 * 4.30265, two degrees
        ([1.0, 2.0, 3.0], [2.0, 2.0], 5, (2.0, -0.484138, 4.484138, 0.577350, 2.0)),
        # sentences alone: sqrt(5 / 4) * 1, four degrees
        ([2.0], [1.0, 3.0], 5, (2.0, 1.0, 3.0, 1.118034, 4.0)),
        # both: sqrt(1 + 2.484138^2); 1.583333^2 / (1.25^2 / 4 + (1 / 3)^2 / 2)
        ([1.0, 2.0, 3.0], [1.0, 3.0], 5, (2.0, -0.677866, 4.677866, 1.258306, 5.618677)),
        ([2.0], [2.0, 2.0], 5, (2.0, 2.0, 2.0, 0.0, 4.0)),
        ([2.0], [1.0, 3.0], 2, (2.0, 1.0, 3.0, 1.414214, 1.0)),
    ],
)
def test_the_interval_by_hand(points, draws, n_clusters, wanted):
    known = pd.Series([-100.0, 100.0])
    found = _interval(np.array(points), np.repeat(draws, 500), known, n_clusters, 0.05)
    assert (found.estimate, found.low, found.high, found.standard_error, found.df) == (
        pytest.approx(wanted, abs=1e-4)
    )
    assert (found.n, found.n_sentences, found.n_seeds) == (2, n_clusters, len(points))


def test_an_interval_stays_within_the_values():
    found = _interval(np.array([1.0, 3.0]), np.full(9, 2.0), pd.Series([0.5, 4.0]), 5, 0.05)
    assert (found.low, found.high) == (0.5, 4.0)


def test_weighted_summaries_by_hand():
    """Of a resample that drew no value there is neither mean nor median, and nobody is warned."""
    x, cluster = np.array([4.0, 1.0, 3.0, 2.0]), np.array([3, 0, 2, 1])
    weights = [[1, 1, 1, 1], [1, 1, 1, 0], [2, 1, 1, 0], [0, 0, 0, 3], [0, 0, 1, 0], [0, 0, 0, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean = _weighted_mean(x, cluster, np.array(weights))
        median = _weighted_median(x, cluster, np.array(weights))
    assert mean == pytest.approx([2.5, 2.0, 1.75, 4.0, 3.0, np.nan], nan_ok=True)
    assert median == pytest.approx([2.5, 2.0, 1.5, 4.0, 3.0, np.nan], nan_ok=True)


def test_resamples_draw_as_many_as_there_are():
    drawn = resamples(7, 40, 3)
    assert drawn.shape == (41, 7) and (drawn[0] == 1).all() and (drawn.sum(1) == 7).all()
    assert drawn[1:].mean(0) == pytest.approx(1, abs=0.5) and (drawn[1:] != 1).any()
    assert (resamples(7, 40, 4) != drawn).any()


def test_the_defaults_are_said(simulated):
    frame = simulated(np.random.default_rng(3), 15, 2, 0.05)
    said = {"statistic": "mean", "n_bootstrap": 1000, "alpha": 0.05, "seed": 0}
    assert estimate(frame, "value") == estimate(frame, "value", **said)
    pd.testing.assert_frame_equal(
        estimates(frame, ["form"], "value"), estimates(frame, ["form"], "value", **said)
    )
    assert estimate(frame, "value") != estimate(frame, "value", seed=1)
    both = estimates_of(frame.assign(twice=2 * frame["value"]), ["form"], ["value", "twice"])
    assert both["measure"].tolist() == ["value"] * 3 + ["twice"] * 3
    assert both.index.tolist() == list(range(6))
    assert both["estimate"][3:].tolist() == pytest.approx((2 * both["estimate"][:3]).tolist())


def test_every_resample_counts_and_the_table_itself_is_none_of_them():
    """Two resamples of three sentences: their spread is half their distance."""
    values = np.array([1.0, 2.0, 6.0])
    frame = pd.DataFrame({"sentence_idx": range(3), "seed": 0, "value": values})
    found = estimate(frame, "value", n_bootstrap=2, seed=4)
    first, second = resamples(3, 2, 4)[1:] @ values / 3
    assert first != second and found.estimate == 3
    assert found.standard_error == pytest.approx(np.sqrt(3 / 2) * abs(first - second) / 2)


def test_groups_keep_their_first_order():
    frame = pd.DataFrame({"method": ["b", "a"] * 2, "sentence_idx": [0, 0, 1, 1], "seed": 0})
    frame = frame.assign(
        method=pd.Categorical(frame["method"], ["a", "b", "c"]), value=[1.0, 2, 3, 4]
    )
    found = estimates(frame, ["method"], "value", n_bootstrap=20)
    assert found["method"].tolist() == ["b", "a"] and found["estimate"].tolist() == [2.0, 3.0]


def scored(rng: np.random.Generator, n: int, n_seeds: int, gap: float = 1.0) -> pd.DataFrame:
    """Rows of both classes in every sentence; scores of the positive class are higher by `gap`."""
    ids = np.tile(np.repeat(np.arange(n), 2), n_seeds)
    tag = np.tile([0, 1], n * n_seeds)
    of_sentence = np.tile(np.repeat(rng.normal(size=n), 2), n_seeds)
    score = of_sentence + gap * tag + rng.normal(size=len(tag))
    return pd.DataFrame(
        {"sentence_idx": ids, "seed": np.repeat(range(n_seeds), 2 * n), "tag": tag, "score": score}
    )


def test_the_area_is_that_of_sklearn_averaged_over_trainings() -> None:
    frame = scored(np.random.default_rng(0), 30, 3)
    frame["score"] = frame["score"].round(0)  # with ties
    areas = [roc_auc_score(part["tag"], part["score"]) for _, part in frame.groupby("seed")]
    found = estimate_auc(frame, "score", "tag")
    assert found.estimate == pytest.approx(np.mean(areas), abs=1e-12)
    assert (found.n, found.n_sentences, found.n_seeds) == (180, 30, 3)
    assert 0 <= found.low < found.estimate < found.high <= 1


def test_a_resample_takes_whole_sentences() -> None:
    frame = scored(np.random.default_rng(1), 8, 1)
    draws = []
    for weights in resamples(8, 400, 0)[1:].astype(int):
        drawn = [frame[frame["sentence_idx"] == i] for i in np.repeat(range(8), weights)]
        part = pd.concat(drawn)
        draws.append(roc_auc_score(part["tag"], part["score"]))
    low, high = expanded_quantiles(draws, 8, 0.05)
    found = estimate_auc(frame, "score", "tag", n_bootstrap=400)
    assert (found.low, found.high) == pytest.approx((low, min(high, 1)), abs=1e-9)


def test_one_class_has_no_area_and_a_constant_has_one_half() -> None:
    frame = scored(np.random.default_rng(2), 10, 2)
    assert np.isnan(estimate_auc(frame.assign(tag=1), "score", "tag").estimate)
    even = estimate_auc(frame.assign(score=3.0), "score", "tag")
    assert (even.estimate, even.low, even.high) == (0.5, 0.5, 0.5)


@pytest.mark.slow
def test_intervals_of_an_area_cover_at_about_their_level() -> None:
    rng, truth = np.random.default_rng(3), 0.6915  # of N(0, 2) and N(1, 2): Phi(1 / 2)
    found = [estimate_auc(scored(rng, 40, 1), "score", "tag", 300) for _ in range(200)]
    assert 0.90 <= np.mean([e.low <= truth <= e.high for e in found]) <= 0.99


def test_the_area_of_sentences_of_unequal_sides_by_hand() -> None:
    frame = pd.DataFrame(
        {
            "sentence_idx": [0, 0, 0, 1, 1, 2, 3],
            "seed": 0,
            "tag": [1, 1, 0, 0, 0, 1, 0],
            "score": [3.0, 1.0, 2.0, 0.5, 4.0, 2.5, 1.5],
        }
    )
    found = estimate_auc(frame, "score", "tag")
    assert found.estimate == pytest.approx(roc_auc_score(frame["tag"], frame["score"]))
    assert found == estimate_auc(frame, "score", "tag", n_bootstrap=1000)
    pair = pd.DataFrame({"sentence_idx": [0, 1], "seed": 0, "tag": [0, 1], "score": [1.0, 2.0]})
    assert estimate_auc(pair, "score", "tag").estimate == 1.0


def test_an_area_needs_both_classes_in_every_training_and_ends_at_one() -> None:
    frame = scored(np.random.default_rng(5), 6, 2, gap=9.0)
    one_sided = frame.assign(tag=frame["tag"].where(frame["seed"] == 0, 1))
    for nothing in (one_sided, frame.head(0), one_sided[one_sided["seed"] == 1]):
        found = estimate_auc(nothing, "score", "tag")
        assert np.isnan(found.estimate) and (found.n_sentences, found.n_seeds) == (0, 0)
    noisy = scored(np.random.default_rng(6), 8, 2, gap=1.5)
    noisy.loc[noisy["seed"] == 0, "score"] = noisy["tag"]
    assert estimate_auc(noisy, "score", "tag").high == 1.0


def test_half_widths_by_hand() -> None:
    table = pd.DataFrame(
        {
            "model": ["b", "b", "b", "a"],
            "low": [0.0, 0.1, np.nan, 0.3],
            "high": [0.2, 0.7, np.nan, 0.4],
            "n_sentences": [8, 9, 9, 2],
            "n_seeds": [3, 3, 3, 1],
        }
    )
    found = half_widths(table, ["model"]).set_index("model")
    assert found.index.tolist() == ["b", "a"]
    assert found.loc["b"].tolist() == pytest.approx([2, 9, 3, 0.2, 0.3])
    assert found.loc["a"].tolist() == pytest.approx([1, 2, 1, 0.05, 0.05])
