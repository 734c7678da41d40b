"""Intervals cover at their level, whatever the number of sentences and seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.stats.estimates import estimate, estimates


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
    assert empty.n == 0 and np.isnan(empty.estimate)
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
