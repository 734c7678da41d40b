"""The engine, which shares and pools, against captum and lime row by row, on seven models."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from captum.attr import FeatureAblation, NoiseTunnel, Saliency, ShapleyValueSampling
from small_models import FAMILIES, SENTENCES, as_rows, build

from lib.attribution import METHODS, captum_route, explain, explain_many
from lib.attribution.batch import SharedPass, TokenBatch
from lib.attribution.captum_route import ScoreNetwork, drawing_from, mask_and_rows
from lib.attribution.explain import token_batch
from lib.attribution.seam import Row, Score, word_scores
from lib.attribution.single_pass import deep_lift, guided_backprop
from lib.core.seeds import seed_for
from lib.models.shortcuts import ignores_padding, parameters_fixed
from lib.models.text_model import RunsFromEmbeddings, TextModel

FEW = {
    "Integrated Gradients": {"n_steps": 5},
    "LIME": {"n_samples": 40},
    "Kernel SHAP": {"n_samples": 25},
    "SmoothGrad": {"n_samples": 3},
    "Shapley sampling": {"n_samples": 3},
}
ENGINE = [name for name, method in METHODS.items() if method.family != "floor"]
DEFINITIONS = {
    "Saliency": captum_route.saliency,
    "InputXGradient": captum_route.input_x_gradient,
    "Guided Backprop": captum_route.guided_backprop,
    "DeepLift": captum_route.deep_lift,
    "Gradient SHAP": captum_route.gradient_shap,
    "Integrated Gradients": captum_route.integrated_gradients,
    "Kernel SHAP": captum_route.kernel_shap,
}
AGREE = {"Kernel SHAP": 2e-5}  # captum solves in float32, we in float64


def one_by_one(model: TextModel, rows: pd.DataFrame, method: str) -> list[np.ndarray]:
    """Each row alone, through captum, without any of the engine."""
    found = []
    for row in rows.itertuples():
        settings = METHODS[method].settings(FEW.get(method))
        explained, _ = settings.pop("explained"), settings.pop("normalise_special")
        encoded = model.encode([row.sentence])
        seed = seed_for(method, row.row_id, -1)
        batch = token_batch(
            model, [Row(row.row_id, 0, row.target, row.sentence, seed)], encoded, explained
        )
        with parameters_fixed(model.module):
            tokens = DEFINITIONS[method](batch, **settings).scores[0].numpy()
        found.append(word_scores(tokens, encoded[0].word_ids, len(row.sentence)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("method", DEFINITIONS)
def test_the_engine_is_captum_one_row_at_a_time(
    family: RunsFromEmbeddings, rows: pd.DataFrame, method: str
) -> None:
    found = explain(family, rows, method, FEW.get(method)).scores
    for ours, theirs in zip(found, one_by_one(family, rows, method), strict=True):
        np.testing.assert_allclose(
            ours, theirs, rtol=1e-4, atol=AGREE.get(method, 2e-6) * np.abs(theirs).max() + 1e-7
        )


def test_the_engine_is_lime_one_row_at_a_time(
    family: RunsFromEmbeddings, rows: pd.DataFrame
) -> None:
    found = explain(family, rows, "LIME", FEW["LIME"]).scores
    for ours, row in zip(found, rows.itertuples(), strict=True):
        one = Row(row.row_id, 0, row.target, row.sentence, seed_for("LIME", row.row_id, -1))
        theirs = captum_route.lime(family, [one], **FEW["LIME"])[0]
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6 * np.abs(theirs).max() + 1e-7)


@pytest.mark.slow
def test_many_methods_at_once_are_the_methods_one_by_one(
    family: RunsFromEmbeddings, rows: pd.DataFrame
) -> None:
    wanted = [(name, FEW.get(name, {})) for name in (*ENGINE, "Uniform random")]
    together = explain_many(family, rows, wanted, dataset="D_A", scheme="C", seed=3)
    for name, settings in wanted:
        alone = explain(family, rows, name, settings, dataset="D_A", scheme="C", seed=3)
        ours = together[together.method == name].reset_index(drop=True)[list(alone)]
        pd.testing.assert_frame_equal(
            ours.drop(columns="scores"), alone.drop(columns="scores"), atol=1e-6
        )
        for scores, expected in zip(ours.scores, alone.scores, strict=True):
            np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)


def test_the_encoder_runs_forward_once_for_all_single_pass_methods(
    bert: TextModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One forward of the rows and one of their common reference.

    Without sharing it would be nine.
    """
    assert ignores_padding(bert)  # it is asked with three short passes, which are none of the rows'
    monkeypatch.setattr(sys.modules[explain.__module__], "ignores_padding", lambda model: True)
    seen: list[int] = []
    hook = bert.module.bert.encoder.register_forward_pre_hook(
        lambda module, args: seen.append(len(args[0]))
    )
    rows = as_rows(["he sings a song .", "she sings a song .", "they sing ."])
    explain_many(
        bert, rows, ["Saliency", "InputXGradient", "Guided Backprop", "Gradient norm", "DeepLift"]
    )
    hook.remove()
    assert sorted(seen) == [1, 1, 1, 2]  # two lengths: two rows and one; one reference each


@pytest.mark.parametrize(
    "activation",
    [
        torch.nn.ReLU,
        torch.nn.ELU,
        torch.nn.LeakyReLU,
        torch.nn.Sigmoid,
        torch.nn.Tanh,
        torch.nn.Softplus,
        lambda: torch.nn.Softmax(-1),
    ],
)
def test_deep_lift_knows_the_activations_that_captum_knows(
    activation: type[torch.nn.Module],
) -> None:
    """A network with the activation twice, one unit of which does not move.

    There the slope counts, not the secant.
    """
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 8),
        activation(),
        torch.nn.Linear(8, 8),
        activation(),
        torch.nn.Linear(8, 1),
    )
    with torch.no_grad():
        network[0].weight[0] = 0.0
    x = torch.randn(2, 3, 4)

    def score(embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return network(embeddings).sum((1, 2))

    score.module = network
    batch = TokenBatch(
        score, x, torch.ones(2, 3), torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), (0, 1)
    )
    ours, theirs = deep_lift(batch), captum_route.deep_lift(batch)
    torch.testing.assert_close(ours.scores, theirs.scores, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours.delta, theirs.delta, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        guided_backprop(batch).scores, captum_route.guided_backprop(batch).scores
    )


def test_an_activation_that_is_used_twice_keeps_its_two_secants() -> None:
    """f(x) = tanh(2 tanh(x)) from 0 to 1.

    The product of the secants is (f(1) - f(0)) / 1, so DeepLift is complete.
    """
    tanh = torch.nn.Tanh()

    def score(embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return tanh(2 * tanh(embeddings)).sum((1, 2))

    score.module = tanh
    batch = TokenBatch(
        score,
        torch.ones(1, 1, 1),
        torch.ones(1, 1),
        torch.zeros(1, 1, 1),
        torch.ones(1, 1) > 0,
        (0,),
    )
    found = deep_lift(batch)
    assert found.scores.item() == pytest.approx(np.tanh(2 * np.tanh(1.0)), abs=1e-6)
    assert found.delta.item() == pytest.approx(0, abs=1e-6)


def batch_of(
    model: TextModel, sentence: str = SENTENCES[1], explained: str = "probability"
) -> TokenBatch:
    words = sentence.split()
    return token_batch(model, [Row("1-F", 1, 0, words, seed=3)], model.encode([words]), explained)


def numbered(batch: TokenBatch) -> torch.Tensor:
    """captum's feature mask: each token of a word a feature, all others one more."""
    return torch.where(batch.is_word, batch.is_word.cumsum(1) - 1, batch.is_word.sum(1))[..., None]


def test_occlusion_is_captums_feature_ablation(family: RunsFromEmbeddings) -> None:
    batch = batch_of(family)
    with torch.no_grad():
        theirs = FeatureAblation(ScoreNetwork(batch.score)).attribute(
            batch.embeddings,
            batch.baselines,
            additional_forward_args=mask_and_rows(batch),
            feature_mask=numbered(batch),
        )
    ours = METHODS["Occlusion"].function(batch).scores
    torch.testing.assert_close(ours, theirs[..., 0] * batch.is_word, rtol=1e-5, atol=1e-6)


def test_shapley_sampling_is_captums_with_the_same_orders(family: RunsFromEmbeddings) -> None:
    batch = batch_of(family)
    players = torch.where(batch.is_word, batch.is_word.cumsum(1) - 1, 0)[
        ..., None
    ]  # the others never change
    with torch.no_grad(), drawing_from(batch.seeds[0]):
        theirs = ShapleyValueSampling(ScoreNetwork(batch.score)).attribute(
            batch.embeddings,
            batch.baselines,
            additional_forward_args=mask_and_rows(batch),
            feature_mask=players,
            n_samples=6,
        )
    found = METHODS["Shapley sampling"].function(batch, n_samples=6)
    torch.testing.assert_close(found.scores, theirs[..., 0] * batch.is_word, rtol=1e-4, atol=1e-6)
    assert abs(found.delta.item()) < 1e-5 and found.about["error"].item() > 0


def test_smooth_grad_is_captums_noise_tunnel_with_the_same_noise(
    family: RunsFromEmbeddings,
) -> None:
    batch = batch_of(family, explained="logit")
    size = 0.2 * float(batch.embeddings.max() - batch.embeddings.min())
    tunnel = NoiseTunnel(Saliency(ScoreNetwork(batch.score)))
    with drawing_from(batch.seeds[0]):
        theirs = tunnel.attribute(
            batch.embeddings.clone().requires_grad_(),
            nt_samples=5,
            stdevs=size,
            abs=False,
            additional_forward_args=mask_and_rows(batch),
        )
    ours = METHODS["SmoothGrad"].function(batch, n_samples=5, noise=0.2).scores
    torch.testing.assert_close(
        ours, theirs.abs().sum(-1), rtol=1e-3, atol=1e-5 * float(theirs.abs().sum(-1).max())
    )


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_shared_pass_gives_each_explained_function_its_own_gradient(kind: str) -> None:
    model = build(kind)
    logit, probability = (
        batch_of(model, explained="logit"),
        batch_of(model, explained="probability"),
    )
    shared = SharedPass(logit.score, logit.embeddings, logit.mask, logit.baselines)
    for batch in (logit, probability, logit):
        alone = METHODS["Saliency"].function(batch).scores
        batch = TokenBatch(
            batch.score,
            batch.embeddings,
            batch.mask,
            batch.baselines,
            batch.is_word,
            batch.seeds,
            shared=shared,
        )
        torch.testing.assert_close(
            METHODS["Saliency"].function(batch).scores, alone, rtol=1e-6, atol=1e-7
        )


def test_references_that_differ_are_not_taken_for_one(zero_shot: RunsFromEmbeddings) -> None:
    """A prompt stands in the reference.

    Rows of one length in a masked LM share it, and special words may break that.
    """
    rows = as_rows(["he sings .", "[MASK] sings ."], [1, 1])
    together = explain(zero_shot, rows, "DeepLift")
    for i in range(2):
        alone = explain(zero_shot, rows.iloc[[i]], "DeepLift")
        np.testing.assert_allclose(together.scores[i], alone.scores[0], rtol=1e-5, atol=1e-6)
        assert together.delta[i] == pytest.approx(alone.delta[0], abs=1e-5)


class OwnWord(Score):
    """A score with a weight per row, as a language model's that asks each row for another word."""

    def __init__(self, weights: torch.Tensor) -> None:
        self.weights, self.module = weights, torch.nn.Identity()

    def logits(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.weights * embeddings.log1p().sum((1, 2)).exp()

    def for_rows(self, rows: torch.Tensor) -> OwnWord:
        return OwnWord(self.weights[rows])


@pytest.mark.parametrize(
    "method",
    [name for name in ENGINE if METHODS[name].level == "token" and name != "Attention rollout"],
)
def test_a_score_of_its_own_per_row_is_each_rows_own(method: str) -> None:
    """Both rows have the same embeddings and the same reference.

    Only what is asked about them differs, threefold.
    """
    x, reference = torch.ones(2, 3, 2) * torch.tensor([1.0, 0.5]), torch.full((2, 3, 2), 0.25)
    batch = TokenBatch(
        OwnWord(torch.tensor([1.0, 3.0])),
        x,
        torch.ones(2, 3, dtype=torch.long),
        reference,
        torch.ones(2, 3, dtype=torch.bool),
        (5, 5),
    )
    found = METHODS[method].function(batch)
    assert found.scores[0].abs().max() > 0
    torch.testing.assert_close(found.scores[1], 3 * found.scores[0], rtol=1e-4, atol=1e-5)
    if found.delta is not None:
        assert abs(found.delta[1] - 3 * found.delta[0]) < 1e-4 * (1 + abs(found.delta[0]))
