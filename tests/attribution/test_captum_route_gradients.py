"""Gradient methods against second routes.

Autograd by hand, closed forms, float64 proofs of what is exactly zero.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from small_models import SENTENCES, as_rows, build
from torch import nn

from lib.attribution.batch import TokenBatch
from lib.attribution.captum_route import (
    deep_lift,
    drawing_from,
    gradient_shap,
    guided_backprop,
    input_x_gradient,
    integrated_gradients,
    saliency,
    seen_by_deep_lift,
)
from lib.attribution.explain import explain, token_batch
from lib.attribution.seam import Row, aggregate
from lib.core.errors import TouchstoneError
from lib.models.text_model import TextModel


def batch_of(
    model: TextModel,
    sentence: str = SENTENCES[0],
    targets: tuple[int, ...] = (0, 1, 2),
    explained: str = "logit",
) -> TokenBatch:
    words = sentence.split()
    rows = [Row(f"1-{t}", 1, t, words, seed=t) for t in targets]
    return token_batch(model, rows, model.encode([words] * len(rows)), explained)


def double(kind: str) -> TextModel:
    model = build(kind)
    model.module.double()
    return model


def gradient(batch: TokenBatch) -> torch.Tensor:
    x = batch.embeddings.clone().requires_grad_()
    return torch.autograd.grad(batch.score(x, batch.mask).sum(), x)[0]


def test_single_pass_methods_are_norms_and_products_of_the_gradient(model: TextModel) -> None:
    batch = batch_of(model)
    g = gradient(batch)
    torch.testing.assert_close(saliency(batch).scores, g.abs().sum(-1))
    torch.testing.assert_close(input_x_gradient(batch).scores, (g * batch.embeddings).sum(-1))
    torch.testing.assert_close(guided_backprop(batch).scores, g.norm(dim=-1))


@pytest.mark.parametrize("kind", ["BERT", "RoBERTa", "GPT-2"])
def test_signed_sum_of_the_gradient_is_exactly_zero_before_a_layer_norm(kind: str) -> None:
    g = gradient(batch_of(double(kind)))
    assert (g.sum(-1).abs().max() / g.abs().sum(-1).max()).item() < 1e-14
    single = gradient(
        batch_of(build(kind))
    )  # in float32 the same quotient is larger by the ratio of the precisions
    assert (single.sum(-1).abs().max() / single.abs().sum(-1).max()).item() > 1e-10


def test_without_layer_norm_the_signed_sum_means_something() -> None:
    g = gradient(batch_of(double("OLA")))
    assert (g.sum(-1).abs().max() / g.abs().sum(-1).max()).item() > 1e-3


def test_guided_backprop_is_the_plain_gradient_where_there_is_no_relu(model: TextModel) -> None:
    assert not any(type(m) is nn.ReLU for m in model.module.modules())
    batch = batch_of(model)
    assert torch.equal(guided_backprop(batch).scores, aggregate(gradient(batch), "l2"))


def test_guided_backprop_is_not_the_plain_gradient_where_there_is_one() -> None:
    batch = with_relu()
    assert not torch.allclose(guided_backprop(batch).scores, aggregate(gradient(batch), "l2"))


def with_relu() -> TokenBatch:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def score(embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return network(embeddings).sum((1, 2))

    score.module = network
    x = torch.randn(2, 3, 4)
    return TokenBatch(
        score, x, torch.ones(2, 3), torch.zeros_like(x), torch.ones(2, 3, dtype=torch.bool), (0, 1)
    )


def test_input_x_gradient_of_a_bert_is_minus_the_gradient_along_position_and_type() -> None:
    """LayerNorm ignores the length of e + p + t, so its gradient is orthogonal to it.

    e.g = -(p + t).g.
    """
    model = double("BERT")
    batch = batch_of(model)
    tables = model.module.bert.embeddings
    n_tokens = batch.mask.shape[1]
    beside = tables.position_embeddings.weight[:n_tokens] + tables.token_type_embeddings.weight[0]
    along = -(beside * gradient(batch)).sum(-1).detach()
    torch.testing.assert_close(input_x_gradient(batch).scores, along, rtol=1e-6, atol=1e-9)


def test_deep_lift_sees_only_the_poolers_tanh() -> None:
    model = double("BERT")
    assert seen_by_deep_lift(model.module) == ["bert.pooler.activation"]
    batch = batch_of(model)
    expected = (batch.embeddings - batch.baselines) * secant_gradient(model, batch)
    torch.testing.assert_close(deep_lift(batch).scores, expected.sum(-1), rtol=1e-8, atol=1e-10)


def secant_gradient(model: TextModel, batch: TokenBatch) -> torch.Tensor:
    """The gradient with the pooler's tanh given its secant between input and reference."""
    kept = {}
    hook = model.module.bert.pooler.dense.register_forward_hook(
        lambda m, i, out: kept.update(z=out)
    )
    x = batch.embeddings.clone().requires_grad_()
    batch.score(batch.baselines, batch.mask)
    at_reference = kept["z"].detach()
    batch.score(x, batch.mask)
    hook.remove()
    z = kept["z"]
    secant = ((z.tanh() - at_reference.tanh()) / (z - at_reference)).detach()
    weights = model.module.classifier.weight[batch.score.targets]
    return torch.autograd.grad((weights * secant * z).sum(), x)[0]


def test_deep_lift_without_a_known_activation_is_gradient_times_difference() -> None:
    for kind in ("RoBERTa", "GPT-2"):
        batch = batch_of(build(kind))
        expected = ((batch.embeddings - batch.baselines) * gradient(batch)).sum(-1)
        torch.testing.assert_close(deep_lift(batch).scores, expected, rtol=1e-4, atol=1e-5)


def test_deep_lift_reports_its_gap(model: TextModel) -> None:
    batch = batch_of(model)
    found = deep_lift(batch)
    change = batch.score(batch.embeddings, batch.mask) - batch.score(batch.baselines, batch.mask)
    torch.testing.assert_close(
        found.delta, (found.scores.sum(-1) - change).detach(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("rule", ["riemann_middle", "gausslegendre"])
@pytest.mark.parametrize("explained", ["logit", "probability"])
def test_integrated_gradients_is_complete(model: TextModel, rule: str, explained: str) -> None:
    batch = batch_of(model, explained=explained)
    found = integrated_gradients(batch, n_steps=300, rule=rule)
    change = batch.score(batch.embeddings, batch.mask) - batch.score(batch.baselines, batch.mask)
    torch.testing.assert_close(found.scores.sum(-1), change.detach(), rtol=0.01, atol=2e-3)
    torch.testing.assert_close(
        found.delta, (found.scores.sum(-1) - change).detach(), rtol=1e-3, atol=1e-4
    )


def test_integrated_gradients_against_a_plain_loop(model: TextModel) -> None:
    batch, n_steps = batch_of(model), 7
    step = batch.embeddings - batch.baselines
    total = torch.zeros_like(step)
    for k in range(n_steps):
        x = (batch.baselines + (k + 0.5) / n_steps * step).requires_grad_()
        total += torch.autograd.grad(batch.score(x, batch.mask).sum(), x)[0]
    expected = (step * total / n_steps).sum(-1)
    torch.testing.assert_close(
        integrated_gradients(batch, n_steps=n_steps).scores, expected, rtol=1e-4, atol=1e-5
    )


def test_gradient_shap_against_a_plain_loop_with_the_same_draws(model: TextModel) -> None:
    """captum draws the places on the path from NumPy, after the (single) reference."""
    batch = batch_of(model)
    expected = []
    for i, seed in enumerate(batch.seeds):
        row = batch.row(i)
        total = torch.zeros_like(row.embeddings)
        with drawing_from(seed):
            np.random.choice(1, 5)
            places = np.random.uniform(0, 1, 5)
        for place in places:
            x = (place * row.embeddings + (1 - place) * row.baselines).float().requires_grad_()
            total += torch.autograd.grad(row.score(x, row.mask).sum(), x)[0]
        expected.append((total / 5 * (row.embeddings - row.baselines)).sum(-1))
    torch.testing.assert_close(
        gradient_shap(batch, n_samples=5).scores, torch.cat(expected), rtol=1e-4, atol=1e-5
    )


def test_gradient_shap_tends_to_integrated_gradients(bert: TextModel) -> None:
    batch = batch_of(bert)
    many, integral = (
        gradient_shap(batch, n_samples=2000).scores,
        integrated_gradients(batch, n_steps=300).scores,
    )
    assert (many - integral).abs().max() < 0.15 * integral.abs().max()


def test_drawing_leaves_the_global_generators_as_they_were() -> None:
    torch.manual_seed(5)
    before = torch.rand(1)
    torch.manual_seed(5)
    with drawing_from(0):
        torch.rand(3)
    assert torch.equal(torch.rand(1), before)


def test_padding_at_the_end_changes_nothing_and_gets_nothing(model: TextModel) -> None:
    """The mask is passed on: a padded batch equals the unpadded one."""
    batch = batch_of(model)
    pads = model.embed(torch.full((3, 2), model.tokenizer.pad_token_id)).detach()
    mask, is_word = (nn.functional.pad(tensor, (0, 2)) for tensor in (batch.mask, batch.is_word))
    longer = TokenBatch(
        batch.score,
        torch.cat([batch.embeddings, pads], 1),
        mask,
        torch.cat([batch.baselines, pads], 1),
        is_word,
        batch.seeds,
    )
    for method in (
        saliency,
        input_x_gradient,
        guided_backprop,
        deep_lift,
        integrated_gradients,
        gradient_shap,
    ):
        found, plain = method(longer).scores, method(batch).scores
        torch.testing.assert_close(found[:, :-2], plain, rtol=1e-4, atol=1e-5)
        assert found[:, -2:].abs().max() < 1e-6


def test_the_embedding_layer_is_applied_once(bert: TextModel) -> None:
    batch = batch_of(bert)
    ids = torch.tensor([one.ids for one in bert.encode([SENTENCES[0].split()] * 3)])
    logits = bert.module(input_ids=ids, attention_mask=batch.mask).logits
    torch.testing.assert_close(batch.score(batch.embeddings, batch.mask), logits.diagonal())


def test_the_score_needs_no_classifier_and_no_module() -> None:
    """Any function (embeddings, mask) -> one score per row can be explained.

    Only two methods ask for its network.
    """
    x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    batch = TokenBatch(
        lambda e, m: (e * m[..., None]).pow(2).sum((1, 2)),
        x,
        torch.ones(1, 2),
        torch.zeros_like(x),
        torch.ones(1, 2, dtype=torch.bool),
        (0,),
    )
    assert input_x_gradient(batch).scores.tolist() == [[10.0, 50.0]]  # 2 x^2
    torch.testing.assert_close(
        integrated_gradients(batch, n_steps=50).scores, torch.tensor([[5.0, 25.0]])
    )
    with pytest.raises(TouchstoneError, match="attribute `module`"):
        guided_backprop(batch)


def test_an_unknown_rule_is_refused_with_the_nearest(bert: TextModel) -> None:
    with pytest.raises(TouchstoneError, match="did you mean 'riemann_middle'"):
        explain(bert, as_rows(["he sings"]), "Integrated Gradients", {"rule": "middle"})


def test_an_unknown_aggregation_is_refused_with_the_nearest() -> None:
    with pytest.raises(TouchstoneError, match="did you mean 'sum'"):
        aggregate(torch.ones(1, 2, 3), "summ")


def test_explaining_leaves_the_model_as_it_was(bert: TextModel) -> None:
    before = copy.deepcopy(bert.module.state_dict())
    batch = batch_of(bert)
    for method in (saliency, guided_backprop, deep_lift, integrated_gradients):
        method(batch)
    assert all(torch.equal(value, before[name]) for name, value in bert.module.state_dict().items())
    assert all(p.grad is None for p in bert.module.parameters())
    hooks = [
        m
        for m in bert.module.modules()
        if m._forward_hooks or m._forward_pre_hooks or m._backward_hooks
    ]
    assert not hooks


def test_rows_are_explained_for_their_own_class(bert: TextModel) -> None:
    batch = batch_of(bert, targets=(0, 1, 2))
    for i in range(3):
        alone = batch_of(bert, targets=(i,))
        torch.testing.assert_close(
            integrated_gradients(batch, n_steps=5).scores[i],
            integrated_gradients(alone, n_steps=5).scores[0],
            rtol=1e-4,
            atol=1e-5,
        )
    assert as_rows(["she"], [2]).target.tolist() == [2]
