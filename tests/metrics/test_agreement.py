"""Rank correlations of yardsticks: by hand; the interval of independent and of equal measures."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from lib.core.errors import TouchstoneError
from lib.metrics.agreement import (
    _means,
    correlate_methods,
    correlate_rows,
    player_agreement,
    rank_correlation,
)


def table(n_sentences: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    lines = [
        ("D_A", "C", 0, f"{i}-{form}", i, f"m{k}", k + rng.normal(), rng.normal())
        for i in range(n_sentences)
        for form in "FM"
        for k in range(8)
    ]
    frame = pd.DataFrame(
        lines,
        columns=["dataset", "scheme", "seed", "row_id", "sentence_idx", "method", "MA", "noise"],
    )
    return frame.assign(same=lambda t: 2 * t["MA"] + 1, reverse=lambda t: -t["MA"])


def test_equal_and_reversed_measures():
    for correlate in (correlate_rows, correlate_methods):
        found = correlate(table(20), ["MA", "same", "reverse"], n_bootstrap=200).set_index(
            ["left", "right"]
        )
        assert found.loc[("MA", "same"), ["estimate", "low", "high"]].tolist() == pytest.approx(
            [1, 1, 1]
        )
        assert found.loc[
            ("same", "reverse"), ["estimate", "low", "high"]
        ].tolist() == pytest.approx([-1, -1, -1])


def test_the_estimates_are_scipy_s():
    frame = table(6)
    rows = correlate_rows(frame, ["MA", "noise"], n_bootstrap=200).iloc[0]
    expected = [
        spearmanr(part["MA"], part["noise"]).statistic for _, part in frame.groupby("row_id")
    ]
    assert (
        rows["estimate"] == pytest.approx(np.mean(expected))
        and rows["n"] == 12
        and rows["n_sentences"] == 6
    )
    assert rows["low"] < rows["estimate"] < rows["high"]
    means = frame.groupby("method")[["MA", "noise"]].mean()
    whole = correlate_methods(frame, ["MA", "noise"], n_bootstrap=200).iloc[0]
    assert whole["estimate"] == pytest.approx(spearmanr(means["MA"], means["noise"]).statistic)
    assert whole["low"] < whole["estimate"] < whole["high"] and whole["n_methods"] == 8


def test_undefined_values_are_left_out_and_bad_tables_are_refused():
    frame = table(5)
    frame.loc[frame["row_id"] == "0-F", "noise"] = np.nan
    assert correlate_rows(frame, ["MA", "noise"], n_bootstrap=50).iloc[0]["n"] == 9
    assert np.isfinite(correlate_methods(frame, ["MA", "noise"], n_bootstrap=50)["estimate"]).all()
    with pytest.raises(TouchstoneError, match="no column 'NAOPC'"):
        correlate_methods(frame, ["MA", "NAOPC"])


def test_means_of_methods_by_hand():
    """m0 has values in one sentence only; its mean is over that one, in resamples as well."""
    frame = pd.DataFrame(
        {
            "sentence_idx": [0, 1, 0, 1],
            "method": ["m0", "m0", "m1", "m1"],
            "MA": [1.0, np.nan, 2, 6],
        }
    )
    found = _means(frame, "MA", np.array([0, 1]), np.array([[1, 1], [0, 2], [2, 0]]))
    np.testing.assert_array_equal(found, [[1.0, 4.0], [np.nan, 6.0], [1.0, 2.0]])
    without = _means(frame.dropna(), "MA", np.array([0, 1]), np.array([[1, 1], [0, 2], [2, 0]]))
    np.testing.assert_array_equal(without, found)  # a line that is missing is no value either


def test_a_method_of_one_sentence_leaves_an_interval_of_the_resamples_that_have_it():
    frame = table(6)
    frame = frame[(frame["method"] != "m0") | (frame["sentence_idx"] == 0)]
    found = correlate_methods(frame, ["MA", "noise"], n_bootstrap=100).iloc[0]
    assert found["low"] <= found["estimate"] <= found["high"] and found["low"] < found["high"]


def test_three_methods_have_an_order():
    three = table(3).query("method in ['m0', 'm1', 'm2']")
    for correlate in (correlate_rows, correlate_methods):
        assert correlate(three, ["MA", "same"], n_bootstrap=20)["estimate"].item() == 1


def test_what_is_not_defined_is_nan_and_nobody_is_warned():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(rank_correlation([1.0, 1.0], [1.0, 2.0]))
        nothing = player_agreement([0.0, 0.0], [[0], [1]], [0.5, 0.25])
    assert np.isnan([nothing["mass"], nothing["rank_size"]]).all() and nothing["sign"] == 0


def test_one_sentence_has_no_interval_and_defaults_are_said():
    one = correlate_methods(table(1), ["MA", "same"], n_bootstrap=20).iloc[0]
    assert one["estimate"] == 1 and np.isnan([one["low"], one["high"]]).all()
    assert np.isfinite(correlate_methods(table(2), ["MA", "noise"], n_bootstrap=20).iloc[0]["low"])
    said = {"n_bootstrap": 1000, "alpha": 0.05, "seed": 0}
    for correlate in (correlate_rows, correlate_methods):
        pd.testing.assert_frame_equal(
            correlate(table(20), ["MA", "noise"]),
            correlate(table(20), ["MA", "noise"], **said),
            check_exact=True,
        )


@pytest.mark.parametrize("methods", [["m0"], ["m0", "m1"]])
def test_of_one_method_or_two_no_agreement_is_claimed(methods):
    """So a run with one method of one's own reaches its end."""
    part = table(5).query("method in @methods")
    for correlate in (correlate_rows, correlate_methods):
        found = correlate(part, ["MA", "noise"], n_bootstrap=50)
        assert len(found) == 1 and found[["estimate", "low", "high"]].isna().all(axis=None)
