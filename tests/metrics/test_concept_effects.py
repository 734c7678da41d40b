from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cosine as scipy_cosine

from lib.metrics.concept_effects import (
    cosine,
    distances,
    fitted_scale,
    icace,
    in_stars,
    l2,
    macro,
    mean_effects,
    normdiff,
    order_faithfulness,
    same_question,
    score_estimates,
    three_distances,
)

VECTORS = arrays(float, (4, 3), elements=st.floats(-1, 1).map(lambda x: round(x, 6)))


def test_icace_by_hand() -> None:
    pairs = pd.DataFrame({"base_id": ["a", "b"], "counterfactual_id": ["b", "a"]})
    answers = pd.DataFrame({"text_id": ["b", "a"], "p_1": [0.9, 0.2], "p_2": [0.1, 0.8]})
    assert np.allclose(icace(pairs, answers), [[0.7, -0.7], [-0.7, 0.7]])


@given(VECTORS, VECTORS)
def test_the_distances_are_what_they_are_called(effect: np.ndarray, estimate: np.ndarray) -> None:
    found = distances(effect, estimate)
    for i, (x, y) in enumerate(zip(effect, estimate)):
        assert found["L2"][i] == pytest.approx(np.sqrt(sum((a - b) ** 2 for a, b in zip(x, y))))
        if x.any() and y.any():
            assert found["cosine"][i] == pytest.approx(scipy_cosine(x, y), abs=1e-6)
    assert (found["normdiff"] <= found["L2"] + 1e-12).all()  # reverse triangle inequality
    assert np.allclose(normdiff(effect, 0 * estimate), l2(effect, 0 * estimate))


def test_a_zero_vector_has_the_cosine_of_a_right_angle() -> None:
    x = np.array([[0.3, -0.3]])
    assert (
        cosine(x, 0 * x).tolist()
        == [1.0]
        == cosine(0 * x, x).tolist()
        == cosine(0 * x, 0 * x).tolist()
    )


def test_mean_effects_are_antisymmetric_and_in_stars() -> None:
    pairs = pd.DataFrame(
        {"aspect": "food", "old": ["Negative", "Positive"] * 2, "new": ["Positive", "Negative"] * 2}
    )
    effects = np.array([[-1.0, 0, 1], [1.0, 0, -1], [0, -1.0, 1], [0, 1.0, -1]])
    table = mean_effects(pairs, effects).set_index(["old", "new"])
    assert (
        table.loc[("Negative", "Positive"), "stars"] == 1.5
        and table.loc[("Positive", "Negative"), "stars"] == -1.5
    )
    assert table.loc[("Negative", "Positive"), ["e_1", "e_2", "e_3"]].tolist() == [-0.5, -0.5, 1.0]
    assert in_stars(np.array([[-0.5, -0.5, 1.0]])).tolist() == [1.5]


def test_macro_counts_aspects_alike() -> None:
    table = pd.DataFrame(
        {
            "explainer": "x",
            "aspect": ["food"] * 3 + ["noise"],
            "L2": [0.0, 0, 0, 1],
            "cosine": 1.0,
            "normdiff": 0.0,
        }
    )
    assert macro(table, ["explainer"])["L2"].tolist() == [0.5] and table["L2"].mean() == 0.25


@given(VECTORS)
def test_no_answer_beats_half_the_distance_of_two_editors(answers: np.ndarray) -> None:
    probabilities = np.abs(answers) + 0.01
    probabilities /= probabilities.sum(1, keepdims=True)
    table = pd.DataFrame(probabilities, columns=["p_1", "p_2", "p_3"]).assign(
        text_id=["o", "e", "f", "x"]
    )
    repeated = pd.DataFrame({"original_id": ["o"], "first_id": ["e"], "second_id": ["f"]})
    found = same_question(repeated, table)
    first, second = probabilities[1] - probabilities[0], probabilities[2] - probabilities[0]
    guess = np.array([answers[3]])
    mean_error = (l2(first[None], guess)[0] + l2(second[None], guess)[0]) / 2
    assert found["bound"][0] <= mean_error + 1e-9
    assert found["L2"][0] == pytest.approx(2 * found["bound"][0])
    of_zero = (np.linalg.norm(first) + np.linalg.norm(second)) / 2
    assert found["above_zero"][0] == pytest.approx(found["L2"][0] - of_zero)


def test_order_faithfulness_by_hand() -> None:
    questions = pd.DataFrame(
        {
            "base_id": ["a", "a", "a", "b"],
            "aspect": "food",
            "new": ["Positive", "unknown", "Negative", "Positive"],
        }
    )
    effect = np.array([[-1.0, 1.0], [-0.5, 0.5], [0.0, 0.0], [0.2, -0.2]])
    perfect, wrong = (
        order_faithfulness(questions, effect, effect),
        order_faithfulness(questions, effect, -effect),
    )
    assert perfect.to_dict("list") == {"base_id": ["a"], "agree": [1.0]} and wrong[
        "agree"
    ].tolist() == [0.0]
    assert order_faithfulness(questions, effect, 0 * effect)["agree"].tolist() == [0.5]
    assert not len(
        order_faithfulness(questions.assign(new="Positive"), effect, effect)
    )  # one question, asked again
    rising = order_faithfulness(questions, effect[[2, 1, 0, 3]], effect[[2, 1, 0, 3]])
    assert rising["agree"].tolist() == [1.0]
    close = np.array([[0.0, 0.0], [0.0, 2e-10], [0.0, 3e-9], [0.0, 0.0]])  # a tie, and no tie
    assert order_faithfulness(questions, effect, close)["agree"].tolist() == [
        pytest.approx((0.5 + 0 + 0) / 3)
    ]
    turned = pd.concat([questions.assign(base_id="z"), questions.assign(base_id="y")])
    twice = np.concatenate([effect, effect])
    assert order_faithfulness(turned, twice, twice)["base_id"].tolist() == ["z", "y"]
    one_wrong = effect[[1, 0, 2, 3]]
    assert order_faithfulness(questions, effect, one_wrong)["agree"].tolist() == [
        pytest.approx(2 / 3)
    ]


PREDICTIONS = pd.DataFrame(
    {
        "text_id": ["a", "b"] * 2,
        "model": ["m"] * 2 + ["n"] * 2,
        "p_1": [0.9, 0.4, 0.5, 0.5],
        "p_2": [0.1, 0.6, 0.5, 0.5],
    }
)
PREDICTIONS = PREDICTIONS.assign(dataset="d", seed=0)
ESTIMATES = pd.DataFrame(
    {
        "base_id": "a",
        "counterfactual_id": "b",
        "group": "g",
        "explainer": "x",
        "dataset": "d",
        "model": ["m", "n"],
        "seed": 0,
        "e_1": [-0.2, -0.2],
        "e_2": [0.2, 0.2],
    }
)


def test_every_estimate_meets_the_effect_on_its_own_model() -> None:
    found = score_estimates(ESTIMATES, PREDICTIONS).set_index("model")
    assert found["effect"].round(9).tolist() == [0.5, 0.0] and found["estimate"].round(
        9
    ).tolist() == [0.2, 0.2]
    assert found.loc["m", "L2"] == pytest.approx(0.3 * 2**0.5) and found.loc[
        "n", "L2"
    ] == pytest.approx(0.2 * 2**0.5)
    assert found.loc["m", "cosine"] == pytest.approx(0) and found.loc["n", "cosine"] == 1
    assert found["row_id"].tolist() == ["a>b"] * 2 and found["sentence_idx"].tolist() == ["g"] * 2


def test_world_model_and_estimate_are_kept_apart() -> None:
    pairs = pd.DataFrame(
        {
            "dataset": ["d"],
            "base_id": ["a"],
            "counterfactual_id": ["b"],
            "world_1": [-0.4],
            "world_2": [0.4],
        }
    )
    found = three_distances(ESTIMATES, PREDICTIONS, pairs).iloc[0]
    assert found[["model_to_world", "estimate_to_model", "estimate_to_world"]].astype(float).round(
        6
    ).tolist() == [pytest.approx(d * 2**0.5, abs=1e-6) for d in (0.1, 0.3, 0.2)]
    assert found["zero_to_world"] == pytest.approx(0.4 * 2**0.5)
    assert found[["world", "model_effect", "estimate"]].astype(float).round(9).tolist() == [
        0.4,
        0.5,
        0.2,
    ]


LABELS = ["base_id", "counterfactual_id", "group", "explainer", "dataset", "model", "seed"]


def test_tables_keep_their_order_and_have_the_columns_that_are_said() -> None:
    turned = ESTIMATES[::-1]
    found = score_estimates(turned, PREDICTIONS)
    assert list(found) == (
        [*LABELS, "L2", "cosine", "normdiff", "effect", "estimate", "row_id", "sentence_idx"]
    )
    assert found["model"].tolist() == ["n", "m"] and found.index.tolist() == [0, 1]
    pairs = pd.DataFrame({"dataset": ["d"], "base_id": ["a"], "counterfactual_id": ["b"]})
    of_three = three_distances(turned, PREDICTIONS, pairs.assign(world_1=0.0, world_2=0.0))
    assert of_three["model"].tolist() == ["n", "m"] and of_three.index.tolist() == [0, 1]
    assert of_three["zero_to_world"].tolist() == [0, 0]  # a world in which nothing changes
    questions = pd.DataFrame({"aspect": ["service", "food"], "old": "-", "new": "+"})
    effects = mean_effects(questions, np.array([[-1.0, 1.0], [0.0, 0.0]]))
    assert list(effects) == ["aspect", "old", "new", "stars", "e_1", "e_2", "pairs"]
    assert effects["aspect"].tolist() == ["service", "food"] and effects["pairs"].eq(1).all()
    table = questions.assign(explainer=["y", "x"], L2=[1.0, 2.0])
    assert macro(table, ["explainer"], ["L2"]).values.tolist() == [["y", 1.0], ["x", 2.0]]
    repeated = pd.DataFrame({"original_id": "a", "first_id": "a", "second_id": "b"}, index=[7])
    own = PREDICTIONS[PREDICTIONS["model"] == "m"]
    names = ["L2", "cosine", "normdiff", "bound", "above_zero"]
    assert list(same_question(repeated, own)) == [*repeated, *names]


@pytest.mark.parametrize(
    "estimate, scale",
    [([0.25, -0.25], 2.0), ([1.0, -1.0], 0.5), ([-0.5, 0.5], 0.0), ([0.0, 0.0], 0.0)],
)
def test_one_scale_brings_estimates_nearest(estimate: list[float], scale: float) -> None:
    effect, said = np.array([[0.5, -0.5]]), np.array([estimate])
    assert fitted_scale(effect, said) == pytest.approx(scale)
    errors = [np.square(effect - at * said).sum() for at in (scale, scale + 0.1)]
    assert errors[0] <= errors[1]
