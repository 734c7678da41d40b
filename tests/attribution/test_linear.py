"""A linear model of two words, worked by hand: every method's answer is known.

Embeddings: she (2, 1), sings (0, 3), padding (1, 0). Class "left" weighs the components
with (1, -1). she adds 2 - 1 = 1, sings adds 0 - 3 = -3, padding adds 1.
"""

from __future__ import annotations

import numpy as np
import pytest
from small_models import LinearText, as_rows

from lib.attribution import METHODS, explain
from lib.attribution.registry import Method

LOGIT = {"explained": "logit"}
BY_HAND = {
    "Saliency": [2, 2],  # |1| + |-1|
    "InputXGradient": [1, -3],
    "Guided Backprop": [2**0.5, 2**0.5],  # length of (1, -1)
    "DeepLift": [0, -4],  # minus what padding adds
    "Gradient SHAP": [0, -4],
    "Integrated Gradients": [0, -4],
    "Kernel SHAP": [0, -4],
    "Gradient norm": [2**0.5, 2**0.5],
    "DeepLift rescale": [0, -4],
    "AttnLRP": [1, -3],
    "SmoothGrad": [2, 2],  # the slope is the same everywhere
    "Occlusion": [0, -4],
    "Shapley sampling": [0, -4],
    "Exact Shapley": [0, -4],
    "Partition SHAP": [0, -4],
}


@pytest.mark.parametrize("method", BY_HAND)
def test_two_words_by_hand(linear: LinearText, method: str) -> None:
    found = explain(linear, as_rows(["she sings"], [0]), method, LOGIT)
    np.testing.assert_allclose(found.scores[0], BY_HAND[method], atol=1e-5)


def test_the_other_class_is_explained_when_it_is_the_target(linear: LinearText) -> None:
    found = explain(linear, as_rows(["she sings", "she sings"], [0, 1]), "InputXGradient")
    assert found.scores.tolist() == [[1.0, -3.0], [3.0, 6.0]]  # weights (0.5, 2): 1 + 2 and 0 + 6


def test_lime_of_two_words_knows_only_their_difference(linear: LinearText) -> None:
    """It sees one word alone (1 or -3) nearly always.

    The empty text has weight exp(-8), the full one comes once.
    """
    she, sings = explain(
        linear, as_rows(["she sings"], [0]), "LIME", LOGIT | {"n_samples": 2000}
    ).scores[0]
    assert she - sings == pytest.approx(1 - -3, rel=0.01)


def test_lime_finds_what_each_word_adds_but_for_the_ridge(linear: LinearText) -> None:
    found = explain(
        linear, as_rows(["she sings nothing she sings"], [0]), "LIME", LOGIT | {"n_samples": 4000}
    )
    np.testing.assert_allclose(
        found.scores[0], [1, -3, 0, 1, -3], atol=0.1
    )  # the penalty pulls towards 0


def test_completeness_is_exact_where_the_model_is_linear(linear: LinearText) -> None:
    for method in ("DeepLift", "Integrated Gradients"):
        found = explain(linear, as_rows(["she sings", "sings she she"], [0, 1]), method, LOGIT)
        np.testing.assert_allclose(found.delta, 0, atol=1e-5)


def test_probability_scores_sum_to_the_change_of_the_probability(linear: LinearText) -> None:
    row = as_rows(["she sings"], [0])
    p = lambda left, right: np.exp(left) / (np.exp(left) + np.exp(right))  # noqa: E731
    change = p(-2, 9) - p(
        2, 1
    )  # logits of "she sings": (1 - 3, 3 + 6); of two paddings: (1 + 1, .5 + .5)
    for method, settings in (
        ("Integrated Gradients", {"n_steps": 200}),
        ("Kernel SHAP", {"n_samples": 50}),
    ):
        found = explain(linear, row, method, {"explained": "probability", **settings})
        assert sum(found.scores[0]) == pytest.approx(change, abs=1e-4)


def test_a_word_that_adds_nothing_gets_nothing(linear: LinearText) -> None:
    """(1, 1) . (1, -1) = 0.

    For methods with a reference the change from padding counts, which adds 1.
    """
    row = as_rows(["she nothing"], [0])
    assert explain(linear, row, "InputXGradient").scores[0] == [1, 0]
    assert explain(linear, row, "Integrated Gradients", LOGIT).scores[0] == pytest.approx(
        [0, -1], abs=1e-6
    )


def test_equal_words_share_equally(linear: LinearText) -> None:
    row = as_rows(["sings she sings"], [0])
    for method in BY_HAND:
        first, _, last = explain(linear, row, method, LOGIT).scores[0]
        assert first == pytest.approx(last, abs=1e-4), method


def test_the_sum_of_gradients_is_an_aggregation_too(linear: LinearText) -> None:
    found = explain(linear, as_rows(["she sings"], [0]), "Guided Backprop", {"aggregation": "sum"})
    assert found.scores[0] == [0, 0]  # 1 - 1: here no rounding noise hides it


def test_every_method_of_the_paper_is_registered_under_its_name() -> None:
    without_class = {"Attention rollout"}  # does not see the class, let alone a linear function
    assert set(METHODS) - without_class == {
        *BY_HAND,
        "LIME",
        "Uniform random",
        "Pattern Variant",
        "First pronoun",
        "Pronoun list",
    }
    assert all(
        isinstance(method, Method) and method.name == name for name, method in METHODS.items()
    )
