"""Heads from elsewhere: two layers, and functions."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lib.core.errors import TouchstoneError
from lib.studies.cebab.directions import TCAV, Erasure
from lib.studies.cebab.heads import ACTIVATIONS, FunctionHead, TwoLayerHead, checked_answers
from lib.studies.cebab.questions import Head, check_head
from lib.studies.cebab.reading import read_vectors
from lib.studies.cebab.registry import EXPLAINERS, can_explain, explainer_named

RNG = np.random.default_rng(0)


def two_layers(activation: str = "tanh", hidden: int = 15, width: int = 6) -> TwoLayerHead:
    rng = np.random.default_rng(1)
    return TwoLayerHead(
        rng.normal(size=(width, hidden)),
        rng.normal(size=width),
        activation,
        rng.normal(size=(3, width)),
        rng.normal(size=3),
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_two_layers_are_those_of_torch(activation: str) -> None:
    head, x = two_layers(activation), RNG.normal(size=(7, 15))
    dense, last = torch.nn.Linear(15, 6).double(), torch.nn.Linear(6, 3).double()
    for layer, weight, bias in (
        (dense, head.dense_weight, head.dense_bias),
        (last, head.weight, head.bias),
    ):
        layer.weight.data, layer.bias.data = torch.tensor(weight), torch.tensor(bias)
    between = {"tanh": torch.nn.Tanh(), "relu": torch.nn.ReLU(), "gelu": torch.nn.GELU()}
    network = torch.nn.Sequential(dense, between[activation], last, torch.nn.Softmax(1))
    expected = network(torch.tensor(x)).detach().numpy()
    assert np.allclose(head.probabilities(x), expected, atol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_slopes_are_those_of_small_differences(activation: str) -> None:
    head, x, d = two_layers(activation), RNG.normal(size=(7, 15)), RNG.normal(size=(7, 15))
    step = 1e-5
    there, back = (head.probabilities(x + way * step * d) for way in (1, -1))
    slopes = head.slopes(x, d)
    assert np.allclose(slopes, (there - back) / (2 * step), atol=1e-8)
    assert np.allclose(
        FunctionHead("mine:head", head.probabilities).slopes(x, d), slopes, atol=1e-4
    )
    zero = FunctionHead("mine:head", head.probabilities).slopes(x, 0 * d)
    assert not zero.any(), "no direction, no slope"


def test_slopes_of_a_float32_function_keep_three_digits() -> None:
    head, x, d = two_layers(), RNG.normal(size=(7, 15)), RNG.normal(size=(7, 15))

    def rounded(vectors: np.ndarray) -> torch.Tensor:
        return torch.tensor(head.probabilities(vectors), dtype=torch.float32)

    found, exact = FunctionHead("mine:head", rounded).slopes(x, d), head.slopes(x, d)
    assert np.abs(found - exact).max() < 1e-3 * np.abs(exact).max()


def test_a_refitted_head_stays_where_it_makes_the_answers_and_learns_others() -> None:
    head, x = two_layers(), RNG.normal(size=(200, 15))
    answers = two_layers("relu").probabilities(x)
    before, after = (
        -(answers * np.log(h.probabilities(x))).sum(1).mean()
        for h in (head, head.refit(x, answers))
    )
    assert after < 0.9 * before
    own = head.probabilities(x)
    assert np.abs(head.refit(x, own).probabilities(x) - own).mean() < 0.05, "but for the decay"


def test_a_linear_head_and_two_layers_that_are_one_give_the_same_estimates(toy) -> None:
    """The dense layer is the identity on what ReLU lets through: embeddings shifted above zero."""
    shift = 10.0
    hidden = toy.texts.embeddings.shape[1]
    bias = toy.head.bias - toy.head.weight.sum(1) * shift
    same = TwoLayerHead(np.eye(hidden), np.full(hidden, shift), "relu", toy.head.weight, bias)
    check_head(toy.texts, same)
    for make in (
        lambda: TCAV(towards=True),
        lambda: TCAV(as_released=True),
        lambda: Erasure("LEACE", towards=True),
        lambda: Erasure("INLP"),
    ):
        found = [make().fit(toy.texts, head, 0).effects(toy.questions) for head in (toy.head, same)]
        assert np.allclose(*found, atol=1e-9)


def test_a_function_serves_all_but_those_that_need_layers(toy) -> None:
    head = FunctionHead("mine:head", toy.head.probabilities)
    for name in EXPLAINERS:
        entry = explainer_named(name)
        assert can_explain(name, toy.texts, toy.head) == (entry.needs != "model")
        assert can_explain(name, toy.texts, head) == (entry.needs not in ("model", "layers"))
        if entry.needs == "layers":
            with pytest.raises(TouchstoneError, match="needs the layers of the head"):
                entry.make().fit(toy.texts, head, 0).effects(toy.questions)
    for name in ("TCAV (scaled)", "LEACE (towards c')", "ConceptSHAP"):
        found = [
            explainer_named(name).make().fit(toy.texts, h, 0).effects(toy.questions)
            for h in (toy.head, head)
        ]
        assert np.allclose(*found, atol=1e-5)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (np.array([0.5, 0.5]), r"returned the shape \(2,\) for 2 inputs"),
        (np.full((3, 2), 0.5), r"returned the shape \(3, 2\) for 2 inputs"),
        (np.ones((2, 1)), r"the shape \(2, 1\)"),
        ([[0.5, 0.5], [1.0]], "returned no array"),
        (np.array([[0.5, 0.5], [2.0, -1.0]]), r"returned \[2.0, -1.0\] for input 1"),
        (np.array([[3.0, 1.0], [0.5, 0.5]]), "logits need a softmax"),
        (np.array([[np.nan, 1.0], [0.5, 0.5]]), "for input 0"),
        (np.full((2, 2), 0.5 + 0j), "what mine:head returned holds something that is no real"),
        (None, r"the shape \(\) for 2 inputs"),
        ("ab", "no real number"),
    ],
)
def test_what_a_function_returns_is_checked(answers: object, said: str) -> None:
    with pytest.raises(TouchstoneError, match=f"(?s)mine:head.*{said}|{said}"):
        checked_answers(answers, 2, "mine:head")


def arrays(**changes: object) -> dict[str, np.ndarray]:
    head = two_layers("tanh", hidden=2, width=4)
    whole = {
        "text_id": np.array(["b", "a"]),
        "vectors": np.eye(2),
        "dense_weight": head.dense_weight,
        "dense_bias": head.dense_bias,
        "activation": np.array("tanh"),
        "weight": head.weight,
        "bias": head.bias,
    }
    return {name: array for name, array in (whole | changes).items() if array is not None}


def test_two_layers_come_in_beside_the_vectors(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", **arrays())
    (ids, vectors), head = read_vectors(tmp_path / "v.npz")
    assert ids.tolist() == ["b", "a"]
    expected = two_layers("tanh", hidden=2, width=4).probabilities(np.eye(2))
    assert np.allclose(head.probabilities(vectors), expected)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"activation": None}, "no array 'activation'"),
        ({"dense_bias": None}, "no array 'dense_bias'"),
        ({"activation": np.array("swish")}, "activation is 'swish'; write one of tanh, relu, gelu"),
        ({"dense_weight": np.ones((4, 3))}, r"dense_weight \(4, 3\).*write n ids, n x hidden, "),
        ({"weight": np.ones((3, 2))}, r"weight \(3, 2\).*K x width, K"),
        ({"dense_bias": np.full(4, np.inf)}, "a number that is not finite"),
    ],
)
def test_layers_that_do_not_fit_are_refused(tmp_path: Path, changes: dict, said: str) -> None:
    np.savez(tmp_path / "v.npz", **arrays(**changes))
    with pytest.raises(TouchstoneError, match=said):
        read_vectors(tmp_path / "v.npz")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of somebody's own."""
    (tmp_path / "my_head.py").write_text(
        "import numpy as np\n"
        "ONE = 1\n"
        "def half(vectors):\n"
        "    return np.full((len(vectors), 2), 0.5)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("my_head", None)


def test_a_head_by_name(mine: Path) -> None:
    np.savez(mine / "v.npz", text_id=np.array(["b", "a"]), vectors=np.eye(2))
    (_, vectors), head = read_vectors(mine / "v.npz", "my_head:half")
    assert head.probabilities(vectors).tolist() == [[0.5, 0.5]] * 2
    for name, said in (
        ("my_head:ONE", "outside_head 'my_head:ONE' is int, not a function"),
        ("my_head:none", "my_head has no 'none'"),
        ("no_such_module:f", "No module named 'no_such_module'; put the module's folder on"),
        ("my_head", "is no name of a function; write module:function"),
    ):
        with pytest.raises(TouchstoneError, match=said):
            read_vectors(mine / "v.npz", name)
    np.savez(mine / "w.npz", **arrays())
    with pytest.raises(TouchstoneError, match="w.npz holds 'weight', and my_head:half is to be"):
        read_vectors(mine / "w.npz", "my_head:half")


def test_a_head_with_other_classes_than_the_predictions_is_named(toy) -> None:
    with pytest.raises(TouchstoneError, match="the head has 2 classes and the predictions have 3"):
        check_head(toy.texts, Head(toy.head.weight[:2], toy.head.bias[:2]))
