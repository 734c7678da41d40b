"""Plausibility and consistency by hand, and the identities of the plain gradient."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.metrics.plausibility import (
    by_slot,
    input_consistency,
    is_plausible,
    model_consistency,
    pearson,
    plausibility,
    thresholded,
)

SETS = {
    "S": pd.DataFrame(
        [
            (["the", "dogs", "near", "it", "car"], 1, [(1, 1)], [(4, 4)], "p", "dogs"),
            (["the", "cats", "near", "it", "van"], 1, [(1, 1)], [(4, 4)], "p", "cats"),
            (["the", "taxi", "men", "near", "it", "van"], 1, [(2, 2)], [(5, 5)], "p", "men"),
            (["a", "dog", "by", "men"], 0, [(1, 1)], [(3, 3)], "q", "dog"),
        ],
        columns=["prefix", "tag", "cues", "attractors", "pattern", "cluster"],
    )
}


def explanation(
    line: int,
    class_1: list[float],
    probability: float = 0.8,
    size: str = "full",
    factor: float = 2.0,
):
    return {
        "dataset": "S",
        "architecture": "LSTM",
        "size": size,
        "method": "V",
        "line": line,
        "probability": probability,
        "class_0": [-factor * x for x in class_1],
        "class_1": class_1,
    }


def test_the_four_cases_of_plausibility() -> None:
    cue_first, other_first = [0.0, 0.5, 0.1], [0.0, 0.1, 0.5]
    assert is_plausible(cue_first, other_first, [(1, 1)], [(2, 2)], True)
    assert not is_plausible(other_first, cue_first, [(1, 1)], [(2, 2)], True)
    assert is_plausible(cue_first, other_first, [(1, 1)], [(2, 2)], False)
    assert not is_plausible(other_first, cue_first, [(1, 1)], [(2, 2)], False)
    assert not is_plausible([0.3] * 3, [0.3] * 3, [(1, 1)], [(2, 2)], True), "a tie fails"
    assert not is_plausible([0.3] * 3, [0.3] * 3, [(1, 1)], [(2, 2)], False), "a tie fails"


def test_a_span_counts_with_its_largest_token() -> None:
    assert is_plausible([0.1, 0.9, 0.5], [0] * 3, [(0, 1)], [(2, 2)], True)


def test_scenarios_come_from_the_clean_probability() -> None:
    table = plausibility(
        pd.DataFrame(
            [
                explanation(0, [0, 1, 0, 0, 0.5], 0.8),
                explanation(0, [0, 1, 0, 0, 0.5], 0.2),
                explanation(3, [0, 1, 0, 0.5], 0.2),
            ]
        ),
        SETS,
    )
    assert list(table)[4:] == ["line", "cluster", "is_expected", "passed"]
    assert list(table["is_expected"]) == [True, False, True]
    assert list(table["passed"]) == [
        True,
        True,
        False,
    ]  # the third: class 0 gives the cue -2 and the attractor -1


def test_with_one_cue_and_one_attractor_v_passes_in_both_scenarios_or_in_none() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.normal(size=5).tolist()
        pair = plausibility(
            pd.DataFrame(
                [explanation(0, scores, p, factor=rng.uniform(0.1, 5)) for p in (0.9, 0.1)]
            ),
            SETS,
        )
        assert pair["passed"].nunique() == 1


def test_scores_below_one_per_cent_are_zero() -> None:
    assert thresholded([1.0, 0.009, -0.011, -0.5]).tolist() == [1.0, 0.0, -0.011, -0.5]
    assert thresholded([1e-3, 9e-6, -5e-4]).tolist() == [1e-3, 0.0, -5e-4]  # of small scores, too
    assert thresholded([]).tolist() == []


def test_pearson_by_hand_and_where_it_is_not_defined() -> None:
    assert pearson([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert pearson([1, 2, 3, 4], [4, 1, 2, 3]) == pytest.approx(-0.2)
    assert pearson([1, 2, 3], [1, 2, 1]) == 0 and pearson([1, 2, 1], [1, 2, 3]) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan([pearson([1, 1, 1], [1, 2, 3]), pearson([1, 2, 3], [1, 1, 1])]).all()
        assert np.isnan([pearson([1], [2]), pearson([1, 1], [2, 2])]).all()


def test_pairs_are_compared_with_the_first_line_of_their_template() -> None:
    frame = pd.DataFrame(
        [
            explanation(i, scores)
            for i, scores in enumerate(
                ([0, 1, 0, 0, -1], [0, 2, 0, 0, -2], [0, 0, 1, 0, 0, -1], [1, 0, 0, 0])
            )
        ]
    )
    found = input_consistency(frame, SETS)
    assert list(found["line"]) == [1, 2] and list(found["same_length"]) == [True, False]
    assert found["verum"].tolist() == pytest.approx([1, 1])
    assert set(found["cluster"]) == {
        SETS["S"].loc[0, "pattern"]
    }  # pairs that share their first line are one cluster
    assert list(input_consistency(frame, SETS, "skip")["line"]) == [1]
    with pytest.raises(TouchstoneError, match="slots or skip"):
        input_consistency(frame, SETS, "align")


def test_pairs_keep_the_order_of_methods_and_of_templates() -> None:
    sets = {"S": SETS["S"].assign(pattern=["q", "q", "p", "p"])}
    frame = pd.DataFrame(
        [
            explanation(i, list(np.random.default_rng(i).normal(size=n))) | {"method": method}
            for method in ("V", "SmoothGrad")
            for i, n in enumerate((5, 5, 6, 4))
        ]
    )
    found = input_consistency(frame, sets)
    assert found["method"].tolist() == ["V", "V", "SmoothGrad", "SmoothGrad"]
    assert found["cluster"].tolist() == ["q", "p"] * 2 and found["line"].tolist() == [1, 3] * 2


def test_slots_keep_the_sum() -> None:
    scores = np.arange(6.0)
    assert sum(by_slot(scores, [(2, 2)], [(5, 5)])) == scores.sum()


def test_v_has_the_same_consistency_in_both_scenarios() -> None:
    rng = np.random.default_rng(1)
    lengths = [5, 5, 6, 4]
    frame = pd.DataFrame(
        [
            explanation(i, rng.normal(size=n).tolist(), size=size, factor=rng.uniform(0.1, 5))
            for size in ("full", "student")
            for i, n in enumerate(lengths)
        ]
    )
    for found in (input_consistency(frame, SETS), model_consistency(frame, SETS)):
        np.testing.assert_allclose(found["verum"], found["malum"])


def test_model_consistency_pairs_lines_of_full_and_student() -> None:
    frame = pd.DataFrame(
        [
            explanation(0, [0, 1, 0, 0, 2]),
            explanation(3, [1, 2, 3, 5]),
            explanation(0, [0, 2, 0, 0, 4], size="student"),
        ]
    )
    found = model_consistency(frame, SETS)
    assert list(found["line"]) == [0] and found["verum"][0] == pytest.approx(1)


def test_scores_of_another_length_are_refused() -> None:
    with pytest.raises(TouchstoneError, match="S, line 1: 2 scores for a prefix of 5 words"):
        plausibility(pd.DataFrame([explanation(0, [1, 2])]), SETS)


def test_expecting_the_other_pronoun_renames_the_scenarios_and_changes_nothing_else() -> None:
    rng = np.random.default_rng(3)
    she = SETS["S"].loc[[0, 1]]
    he = she.assign(tag=0).rename(columns={"cues": "attractors", "attractors": "cues"})
    frame = pd.DataFrame(
        [
            explanation(i, rng.normal(size=5).tolist(), p)
            | {"class_0": rng.normal(size=5).tolist()}
            for i in (0, 1)
            for p in (0.1, 0.9)
            for _ in range(20)
        ]
    )
    one, other = (plausibility(frame, {"S": lines}) for lines in (she, he))
    assert (one["passed"] == other["passed"]).all() and (
        one["is_expected"] != other["is_expected"]
    ).all()


def test_half_is_class_0_and_the_smallest_size_counts() -> None:
    rows = [explanation(0, [0, 1, 0, 0, 0.5], 0.5), explanation(0, [0, 1, 0, 0, 0.5], 0.51)]
    assert plausibility(pd.DataFrame(rows), SETS)["is_expected"].tolist() == [False, True]
    assert thresholded([1.0, 0.01, -0.01]).tolist() == [1.0, 0.01, -0.01]
    assert thresholded([100.0, 1.0, 0.99]).tolist() == [100.0, 1.0, 0.0]
    assert pearson([1, 2], [1, 3]) == pytest.approx(1) and np.isnan(pearson([1, 2, 3], [2, 2, 2]))


def test_sides_of_the_two_classes_are_kept_apart() -> None:
    """Tag 1: verum is class 1. Tag 0: verum is class 0."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        [
            explanation(i, rng.normal(size=n).tolist(), size=size)
            | {"class_0": rng.normal(size=n).tolist()}
            for size in ("full", "student")
            for i, n in ((0, 5), (1, 5), (3, 4))
        ]
    )
    full, student = (frame[frame["size"] == size].set_index("line") for size in ("full", "student"))
    found = model_consistency(frame, SETS).set_index("line")
    for line, side in ((0, "class_1"), (3, "class_0")):
        other = "class_0" if side == "class_1" else "class_1"
        assert found.loc[line, "verum"] == pearson(full[side][line], student[side][line])
        assert found.loc[line, "malum"] == pearson(full[other][line], student[other][line])
    pairs = input_consistency(frame, SETS).set_index("size")
    assert pairs.loc["full", "verum"] == pearson(full["class_1"][0], full["class_1"][1])
    assert pairs.loc["full", "malum"] == pearson(full["class_0"][0], full["class_0"][1])
