"""The released methods against the released code's own steps, written down here with captum and
lime; and that they are others than ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from captum.attr import (
    DeepLift,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    KernelShap,
    LayerIntegratedGradients,
    Saliency,
)
from lime.lime_text import LimeTextExplainer
from small_models import as_rows, build
from tokenizers import decoders
from torch import nn

from lib.attribution import METHODS, TokenBatch, explain
from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.models.ola import OneLayerNet
from lib.studies.geco.as_released import (
    AS_RELEASED,
    fit_covariances,
    method_of,
    pattern_variant,
    released_settings,
)
from lib.studies.geco.grid import Unit
from lib.studies.geco.units import plan_units

# captum says that it sets hooks, and that it asks for gradients
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:captum")

TEXTS = ["she sings a song .", "he sings the old song the singer sings .", "they sing"]
ROWS = as_rows(TEXTS, [0, 1, 2])
OF_MODEL = [name for name in AS_RELEASED if name != "Pattern Variant"]
NOISE = ("Guided Backprop", "DeepLift")  # on BERT
FROM_EMBEDDINGS = {
    "Saliency": Saliency,
    "InputXGradient": InputXGradient,
    "Guided Backprop": GuidedBackprop,
    "DeepLift": DeepLift,
    "Gradient SHAP": GradientShap,
}


def model_of(kind: str) -> Any:
    model = build("BERT" if kind.startswith("BERT") else "OLA")
    model.tokenizer.backend_tokenizer.decoder = decoders.WordPiece()  # "sing ##s" reads "sings"
    if kind == "BERT, no LayerNorm":  # behind one the sum of a gradient is rounding noise
        model.module.base_model.embeddings.LayerNorm = nn.Identity()
    return model


class _SkippingEmbedding(nn.Module):
    """The network from the embedding layer's output, as the released code feeds it."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if isinstance(self.network, OneLayerNet):
            return self.network(inputs, None)
        return self.network(inputs_embeds=inputs).logits


def released_shares(name: str, model: Any, words: list[str], target: int, seed: int) -> np.ndarray:
    """Share of each token, CLS and SEP included, as `xai/methods.py` computes it."""
    network, tokenizer = model.module, model.tokenizer
    ids = torch.tensor([model.encode([words])[0].ids])
    reference = torch.full_like(ids, tokenizer.pad_token_id)
    reference[0, 0], reference[0, -1] = tokenizer.cls_token_id, tokenizer.sep_token_id
    layer = network.embeddings if isinstance(network, OneLayerNet) else network.bert.embeddings

    def probabilities(given: torch.Tensor) -> torch.Tensor:
        if isinstance(network, OneLayerNet):
            return network(layer(given), None).softmax(1)
        return network(given).logits.softmax(1)

    torch.manual_seed(seed)
    np.random.seed(seed)
    if name == "LIME":
        found = _lime(probabilities, model, ids[0].tolist(), seed)
    elif name == "Kernel SHAP":
        found = KernelShap(probabilities).attribute(ids, reference, target=target, n_samples=25)[0]
    elif name == "Integrated Gradients":
        explainer = LayerIntegratedGradients(probabilities, layer)
        found = explainer.attribute(ids, reference, target=target, n_steps=200).sum(2)[0]
    else:
        more: dict[str, Any] = {}
        how = {"multiply_by_inputs": None, "eps": 1e-10} if name == "DeepLift" else {}
        points = layer(ids).detach()
        if name == "DeepLift":
            more = {"baselines": torch.stack([reference] * points.shape[2], 2)}
        elif name == "Gradient SHAP":
            more = {"baselines": layer(reference).detach(), "n_samples": 5}
        explainer = FROM_EMBEDDINGS[name](_SkippingEmbedding(network), **how)
        found = explainer.attribute(points, target=target, **more).sum(2)[0]
    sizes = np.abs(np.asarray(found.detach() if isinstance(found, torch.Tensor) else found))
    return sizes / sizes.sum()


def _lime(
    probabilities: Callable[[torch.Tensor], torch.Tensor], model: Any, ids: list[int], seed: int
) -> np.ndarray:
    def scores_of(texts: list[str]) -> np.ndarray:
        distinct = dict.fromkeys(" ".join(text.split()) for text in texts)
        for text in distinct:
            ids = torch.tensor([model.encode([text.split()])[0].ids])
            distinct[text] = probabilities(ids)[0].detach().numpy()
        return np.array([distinct[" ".join(text.split())] for text in texts])

    decode = model.tokenizer.decode
    found = LimeTextExplainer(class_names=["0", "1"], random_state=seed).explain_instance(
        decode(ids[1:-1]), scores_of, num_features=len(ids), num_samples=100
    )
    word_at = found.domain_mapper.indexed_string.word
    weights = [(word_at(feature), weight) for feature, weight in found.local_exp[1]]
    tokens = [decode([i]).replace(" ", "") for i in ids]
    return np.array([next((w for word, w in weights if token in word), 0.0) for token in tokens])


def summed_into_words(shares: np.ndarray, model: Any, words: list[str]) -> np.ndarray:
    owners = model.encode([words])[0].word_ids
    return np.array(
        [
            sum(s for s, owner in zip(shares, owners, strict=True) if owner == i)
            for i in range(len(words))
        ]
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in ("BERT", "BERT, no LayerNorm", "OLA")
        for name in OF_MODEL
        if not (kind == "BERT" and name in NOISE)  # see the next test
    ],
)
def test_a_released_method_gives_the_released_codes_numbers(kind: str, name: str) -> None:
    model = model_of(kind)
    found = explain(model, ROWS, AS_RELEASED[name], seed=3)["scores"]
    for row, scores in zip(ROWS.itertuples(), found, strict=True):
        seed = seed_for(name, row.row_id, 3)
        shares = released_shares(name, model, row.sentence, row.target, seed)
        expected = summed_into_words(shares, model, row.sentence)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", NOISE)
def test_behind_a_layer_norm_the_released_sums_are_rounding_noise(name: str) -> None:
    raw = {"normalise_special": False}
    noise, sizes = (
        explain(model_of("BERT"), ROWS, method, raw)["scores"].map(np.abs).map(np.max).max()
        for method in (AS_RELEASED[name], AS_RELEASED["Saliency"])
    )
    assert noise < 1e-5 * sizes


@pytest.mark.parametrize("name", OF_MODEL)
def test_a_released_method_is_another_than_ours(name: str) -> None:
    model = model_of("BERT")
    ours, released = (
        explain(model, ROWS, method)["scores"].map(lambda s: np.abs(s) / np.sum(np.abs(s)))
        for method in (METHODS[name], AS_RELEASED[name])
    )
    assert max(np.abs(a - b).max() for a, b in zip(ours, released, strict=True)) > 1e-3


def test_lime_asks_about_one_class_and_takes_all_places_of_a_word_as_one() -> None:
    model, words = model_of("OLA"), "the song the song she he".split()
    rows = as_rows([" ".join(words)] * 2, [0, 2]).assign(drawn_by="same")
    first, second = explain(model, rows, AS_RELEASED["LIME"])["scores"]
    assert first == second  # M is explained whatever the row's class is
    assert first[0] == first[2] and first[1] == first[3]
    alone = explain(model, rows, "LIME")["scores"]
    assert alone[0] != alone[1] and alone[0][0] != alone[0][2]


def test_lime_on_the_model_as_released_pads_all_texts_alike() -> None:
    model = model_of("OLA")
    by_variant = {}
    for model.variant in ("corrected", "as_released"):  # the latter attends to padding
        by_variant[model.variant] = explain(model, ROWS, AS_RELEASED["LIME"])["scores"][1]
    moved = np.subtract(by_variant["corrected"], by_variant["as_released"])
    assert np.abs(moved).max() > 1e-3


def test_a_text_without_a_word_scores_nothing() -> None:
    row = as_rows([". ."], [0])
    assert explain(model_of("OLA"), row, AS_RELEASED["LIME"])["scores"][0] == [0.0, 0.0]


def test_the_pattern_is_one_covariance_with_the_class_number() -> None:
    rows = pd.DataFrame(
        {
            "sentence": [["she", "walks"], ["he", "walks"], ["they", "walk"], ["he", "runs"]],
            "target": [0, 1, 2, 1],
        }
    )
    known = fit_covariances(rows)
    # tf-idf by its definition: ln((1 + n) / (1 + df)) + 1, rows of length 1
    counted = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]])
    idf = np.log(5 / (1 + np.array([1, 2, 1, 2]))) + 1
    walk, runs = np.log(5 / 2) + 1, np.log(5 / 2) + 1
    features = np.column_stack([counted * idf, [0, 0, walk, 0], [0, 0, 0, runs]])
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    for column, word in enumerate(["she", "he", "they", "walks", "walk", "runs"]):
        expected = np.cov(features[:, column], rows["target"])[0, 1]
        assert known.of_piece[word] == pytest.approx(expected, abs=1e-12)
    assert abs(known.of_piece["he"]) < 1e-12  # the class in the middle, which is never far away
    scored = explain(
        known, as_rows(["he walks", "he walks"], [0, 1]), AS_RELEASED["Pattern Variant"]
    )
    assert scored["scores"][0] == scored["scores"][1] and sum(scored["scores"][0]) == pytest.approx(
        1
    )
    assert pattern_variant(known, [], True) == []


def test_the_variant_is_in_the_record_and_the_plan_and_nothing_else_moves() -> None:
    models = pd.DataFrame([("D_A", "C", 0)], columns=["dataset", "scheme", "seed"])
    settings = released_settings({"LIME": {"n_samples": 7}})
    names = ["LIME", "Occlusion", "Pattern Variant", "First pronoun"]
    units = {u.method: u for u in plan_units(models, names, settings, 1, 1)}
    assert units["LIME"].settings == {
        "explained": "probability",
        "n_samples": 7,
        "normalise_special": True,
        "variant": "as_released",
    }
    assert units["LIME"].explainer is AS_RELEASED["LIME"]
    assert units["Pattern Variant"].explainer.fit_on == "test"
    assert "variant" not in units["Occlusion"].settings  # there is no released one
    assert units["First pronoun"].explainer is METHODS["First pronoun"]
    assert Unit("D_A", "C", 0, "LIME", {}, 1).explainer is METHODS["LIME"]
    recorded = explain(model_of("OLA"), ROWS, units["LIME"].explainer, units["LIME"].settings)
    assert json.loads(recorded["settings"][0])["variant"] == "as_released"
    with pytest.raises(TouchstoneError, match="no setting 'aggregation'"):
        AS_RELEASED["Guided Backprop"].settings({"aggregation": "l2"})


def test_the_released_methods_run_on_a_prompted_model() -> None:
    rows = as_rows(["she sings a song", "he sings"], [0, 1])
    for name in OF_MODEL:
        scores = explain(build("masked LM"), rows, AS_RELEASED[name], {})["scores"]
        assert [len(s) for s in scores] == [4, 2] and all(np.isfinite(s).all() for s in scores)


def test_other_networks_and_other_scores_are_refused_in_words() -> None:
    with pytest.raises(
        TouchstoneError, match="GPT2ForSequenceClassification has no embedding layer"
    ):
        explain(build("GPT-2"), ROWS, AS_RELEASED["Integrated Gradients"])
    ones = torch.ones(1, 2, 2)
    batch = TokenBatch(
        lambda x, mask: x.sum((1, 2)), ones, ones[..., 0], ones, ones[..., 0] > 0, (0,)
    )
    with pytest.raises(TouchstoneError, match="explain classifiers"):
        method_of("Saliency", {"variant": "as_released"}).function(batch, variant="as_released")
