"""DeepLift with a rule for everything, and AttnLRP.

Completeness, conservation, networks worked by hand.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_models import FAMILIES, as_rows, build, tiny_tokenizer
from torch import Tensor, nn
from transformers import XLNetConfig, XLNetForSequenceClassification

from lib.attribution import explain
from lib.attribution.batch import TokenBatch
from lib.attribution.explain import token_batch
from lib.attribution.propagation import Relevance, _propagate, attn_lrp, deep_lift_rescale
from lib.attribution.rescale import Rescale
from lib.attribution.rules import ruled
from lib.attribution.seam import Row
from lib.attribution.single_pass import deep_lift
from lib.core.errors import TouchstoneError
from lib.models.hf import HFClassifier
from lib.models.text_model import RunsFromEmbeddings

WORDS = "he sings the old song .".split()
SINGLE_PRECISION_INSIDE = (
    "Llama",
    "Qwen",
    "Gemma",
)  # their RMSNorm goes through float32 whatever the weights are


def batch_of(model: RunsFromEmbeddings, explained: str = "logit") -> TokenBatch:
    return token_batch(model, [Row("1-F", 1, 2, WORDS, seed=3)], model.encode([WORDS]), explained)


def plain(
    function: object, x: Tensor, reference: Tensor, module: nn.Module | None = None
) -> TokenBatch:
    """A batch whose score is a plain function of one token's vector."""

    def score(embeddings: Tensor, mask: Tensor) -> Tensor:
        return function(embeddings)

    score.module = module or nn.Identity()
    return TokenBatch(
        score, x, torch.ones(x.shape[:2]), reference, torch.ones(x.shape[:2]) > 0, (0,) * len(x)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*FAMILIES, "masked LM", "causal LM"])
@pytest.mark.parametrize("explained", ["logit", "probability", "log_probability", "margin"])
def test_deep_lift_is_complete_where_captums_is_not(kind: str, explained: str) -> None:
    model = build(kind)
    model.module.double()
    batch = batch_of(model, explained)
    found, captums = deep_lift_rescale(batch), deep_lift(batch)
    bound = 2e-6 if kind in SINGLE_PRECISION_INSIDE else 1e-12
    assert abs(found.delta.item()) < bound * (1 + abs(found.scores.sum().item()))
    assert abs(captums.delta.item()) > 1e-3


@pytest.mark.slow
def test_deep_lift_is_complete_in_single_precision(
    family: RunsFromEmbeddings, zero_shot: RunsFromEmbeddings
) -> None:
    for model in (family, zero_shot):
        rows = as_rows([" ".join(WORDS), "they sing"], [0, 1])
        found = explain(model, rows, "DeepLift rescale")
        assert (found.delta.abs() < 1e-5 * (1 + found.scores.map(lambda s: np.abs(s).sum()))).all()


def test_deep_lift_of_two_layers_by_hand() -> None:
    """f = tanh(a) * b with a = x1 + x2, b = 2 x1, from (0, 1) to (1, 2): the rise is 2 tanh(3) - 0.

    Multipliers: b gets mean(tanh) = (tanh 3 + tanh 1) / 2; tanh gets mean(b) = 1, a its secant
    (tanh 3 - tanh 1) / 2.
    """
    x, reference = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[0.0, 1.0]]])
    batch = plain(lambda e: torch.tanh(e.sum(-1))[:, 0] * (2 * e[:, 0, 0]), x, reference)
    secant, mean = (np.tanh(3) - np.tanh(1)) / 2, (np.tanh(3) + np.tanh(1)) / 2
    found = _propagate(batch, Rescale(), torch.cat([x, reference]), torch.tensor([0, 0]), 1)[0, 0]
    assert found.tolist() == pytest.approx([secant + 2 * mean, secant], rel=1e-6)
    assert deep_lift_rescale(batch).delta.item() == pytest.approx(0, abs=1e-6)


CALLS = {
    "gelu": lambda e: nn.functional.gelu(e),
    "silu": nn.functional.silu,
    "exp": torch.exp,
    "sigmoid": torch.sigmoid,
    "square": lambda e: e**2,
    "cube": lambda e: e.pow(3),
    "softmax": lambda e: e.softmax(-1),
    "tanh": torch.tanh,
    "softmax over tokens": lambda e: torch.softmax(e, dim=1),
    "quotient": lambda e: e[..., :2] / (1 + e[..., 2:].exp()),
    "layer norm": lambda e: nn.functional.layer_norm(
        e, (4,), torch.arange(4.0) + 1, torch.ones(4), 1e-3
    ),
    "rms norm": lambda e: e * torch.rsqrt((e * e).mean(-1, keepdim=True) + 1e-3),
    "log-softmax": lambda e: (10 * e).log_softmax(-1),
    "log-softmax over tokens": lambda e: torch.log_softmax(e, dim=1),
    "largest": lambda e: e.amax(-1, keepdim=True),
    "largest of equals": lambda e: torch.cat([e, e], -1).amax(dim=-1, keepdim=True),
    "largest token": lambda e: e.amax(1)[:, None].expand(-1, 3, -1),
    "largest but one": lambda e: e.masked_fill(
        torch.tensor([False, True, False, False]), -torch.inf
    ).amax(-1, keepdim=True),
    "layer norm over two axes": lambda e: nn.functional.layer_norm(
        e, (3, 4), torch.arange(12.0).view(3, 4), None, 1e-3
    ),
    "rms norm, the call": lambda e: nn.functional.rms_norm(e, (4,), torch.arange(4.0) + 1, 1e-3),
    "root": lambda e: e.abs().sqrt(),
    "clamp": lambda e: e.clamp(-0.5, 0.5),
    "abs": torch.abs,
    "log": lambda e: (e * e + 1e-2).log(),
    "one over": lambda e: 1 / (2 + e.tanh()),
    "constant over": lambda e: torch.ones(4) / (e * e + 1),
    "relu in place": lambda e: nn.functional.relu(e + 0, inplace=True),
    "mish": nn.functional.mish,
    "log1p": lambda e: torch.log1p(e * e),
    "base to the": lambda e: 2.0**e,
    "matrix product": lambda e: e @ e.transpose(-1, -2),
    "einsum": lambda e: torch.einsum("bth,bsh->bts", e, e.tanh()),
    "normalize": lambda e: nn.functional.normalize(e, dim=-1),
    "masked softmax": lambda e: e.masked_fill(
        torch.tensor([False, True, False, False]), torch.finfo(e.dtype).min
    ).softmax(-1),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_rule_is_exact_for_the_difference(name: str) -> None:
    """Also where two components agree in input and reference, or differ by a hair."""
    torch.manual_seed(0)
    x, reference = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    reference[0, 0], reference[0, 1] = x[0, 0], x[0, 1] + 1e-6
    weights = torch.randn(2, 3, 4)

    def score(e: Tensor) -> Tensor:
        made = CALLS[name](e)
        here = torch.cat([weights] * (len(e) // 2))[:, :, : made.shape[-1]]
        return (made * here).sum((1, 2))

    found = _propagate(
        plain(score, x, reference), Rescale(), torch.cat([x, reference]), torch.arange(4) % 2, 2
    )[:2]
    rise = score(x) - score(reference)
    torch.testing.assert_close(((x - reference) * found).sum((1, 2)), rise, rtol=1e-5, atol=1e-5)
    assert torch.isfinite(found).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda e: e.sort(-1).values,
        lambda e: e.logsumexp(-1, keepdim=True),
        lambda e: e.prod(-1, keepdim=True),
        lambda e: e.max(-1, keepdim=True).values,
        lambda e: e.clone().tanh_(),
    ],
)
@pytest.mark.parametrize("method", [deep_lift_rescale, attn_lrp])
def test_a_function_without_a_rule_is_refused(call: object, method: object) -> None:
    batch = plain(lambda e: call(e).sum((1, 2)), torch.randn(2, 3, 4), torch.zeros(2, 3, 4))
    with pytest.raises(
        TouchstoneError,
        match="has no rule for the function '[a-z_]+' of the model; take another method",
    ):
        method(batch)


def test_of_the_largest_number_each_has_its_share_of_the_path() -> None:
    """max from (0, 1, 0) to (4, 1, 2).

    The second leads until t = 1/4, then the first: 3/4 of its 4, and nothing for the third.
    """
    x, reference = torch.tensor([[[4.0, 1.0, 2.0]]]), torch.tensor([[[0.0, 1.0, 0.0]]])
    found = _propagate(
        plain(lambda e: e.amax(-1)[:, 0], x, reference),
        Rescale(),
        torch.cat([x, reference]),
        torch.tensor([0, 0]),
        1,
    )[0, 0]
    assert found.tolist() == pytest.approx([0.75, 0.25, 0.0])


@pytest.mark.parametrize(
    ("call", "at_zero"),
    [
        (torch.sigmoid, 0.5),
        (nn.functional.softplus, np.log(2)),
        (nn.functional.logsigmoid, -np.log(2)),
        (torch.exp, 1.0),
        (nn.functional.gelu, 0.0),
        (torch.cos, 1.0),
        (lambda e: e**2, 0.0),
    ],
)
def test_an_activation_hands_down_all_but_its_value_at_zero(call: object, at_zero: float) -> None:
    """Of a value near 0 the share is the slope, not y / x, which would be a million."""
    x = torch.tensor([[[2.0, -1.0, 1e-6, 0.0]]])
    found = _propagate(
        plain(lambda e: call(e).sum((1, 2)), x, x), Relevance(), x, torch.tensor([0]), 1
    )
    torch.testing.assert_close(x * found, call(x) - at_zero, atol=1e-6, rtol=1e-5)
    assert found.abs().max() < 10


class Accounted(Relevance):
    """AttnLRP that keeps the account of what its softmax rule lets go of."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[float] = []

    def softmax(self, z: Tensor, p: Tensor, dim: int) -> object:
        inner = super().softmax(z, p, dim)

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            found = inner(grad)
            self.lost.append(((p * grad).sum() - torch.where(p > 0, z * found[0], 0).sum()).item())
            return found

        return back


@pytest.mark.parametrize("kind", ["Llama", "Gemma"])
def test_attn_lrp_conserves_relevance_but_for_softmax(kind: str) -> None:
    """These have no biases, so what does not reach the words went where the Taylor rule sends it.

    Into its constant.
    """
    model, rules = build(kind), Accounted()
    batch = batch_of(model)
    found = batch.embeddings * _propagate(batch, rules, batch.embeddings, torch.tensor([0]), 1)
    value = batch.score(batch.embeddings, batch.mask).item()
    assert len(rules.lost) == 2 and max(map(abs, rules.lost)) > 1e-3
    assert found.sum().item() + sum(rules.lost) == pytest.approx(value, abs=1e-5)
    explained = attn_lrp(batch)
    torch.testing.assert_close(explained.scores, found.sum(-1))
    assert explained.about["unassigned"].item() == pytest.approx(sum(rules.lost), abs=1e-5)


def by_detaching(
    model: HFClassifier, batch: TokenBatch, target: int
) -> tuple[Tensor, float, float]:
    """AttnLRP of BERT written a second time, as plain gradients of a forward pass.

    What a rule holds fixed is detached in it. Returns embeddings times gradient, the logit, and the
    account: biases, positions and norms' shifts times their gradients, and what the softmaxes'
    Taylor rule leaves in its constant.
    """
    bert, x = model.module.bert, batch.embeddings.detach().requires_grad_()
    constants, softmaxes = [], []

    def constant(parameter: Tensor) -> Tensor:
        constants.append(parameter.detach().clone().requires_grad_())
        return constants[-1]

    def linear(layer: nn.Linear, e: Tensor) -> Tensor:
        return e @ layer.weight.detach().T + constant(layer.bias)

    def norm(layer: nn.LayerNorm, e: Tensor) -> Tensor:
        centred = e - e.mean(-1, keepdim=True)
        size = (centred.pow(2).mean(-1, keepdim=True) + layer.eps).sqrt().detach()
        return layer.weight.detach() * centred / size + constant(layer.bias)

    def identity(call: object, e: Tensor) -> Tensor:
        return e * (call(e) / e).detach()

    def half(a: Tensor, b: Tensor) -> Tensor:
        return (a @ b.detach() + a.detach() @ b) / 2

    def heads(e: Tensor) -> Tensor:
        return e.view(1, -1, 2, 8).transpose(1, 2)

    places = (
        bert.embeddings.position_embeddings.weight[: x.shape[1]]
        + bert.embeddings.token_type_embeddings.weight[0]
    )
    hidden = norm(bert.embeddings.LayerNorm, x + constant(places))
    for layer in bert.encoder.layer:
        own = layer.attention.self
        query, key, value = (
            heads(linear(part, hidden)) for part in (own.query, own.key, own.value)
        )
        z = half(query, key.transpose(-1, -2)) / 8**0.5
        p = z.softmax(-1)
        z.retain_grad(), p.retain_grad()
        softmaxes.append((z, p))
        mixed = half(p, value).transpose(1, 2).reshape(1, -1, 16)
        hidden = norm(
            layer.attention.output.LayerNorm, linear(layer.attention.output.dense, mixed) + hidden
        )
        wide = identity(nn.functional.gelu, linear(layer.intermediate.dense, hidden))
        hidden = norm(layer.output.LayerNorm, linear(layer.output.dense, wide) + hidden)
    pooled = identity(torch.tanh, linear(bert.pooler.dense, hidden[:, 0]))
    logit = linear(model.module.classifier, pooled)[0, target]
    logit.backward()
    account = sum((one * one.grad).sum() for one in constants) + sum(
        (p * p.grad).sum() - (z * z.grad).sum() for z, p in softmaxes
    )
    return (x * x.grad).sum(-1), logit.item(), account.item()


def test_attn_lrp_on_bert_is_the_detached_gradient_and_conserves_with_its_biases() -> None:
    model = build("BERT")
    model.module.double()
    with torch.no_grad():  # biases of a new model are 0, and 0 needs no account
        for name, parameter in model.module.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.1)
    batch = batch_of(model)
    scores, logit, account = by_detaching(model, batch, 2)
    found = attn_lrp(batch)
    torch.testing.assert_close(found.scores, scores, rtol=0, atol=1e-9)
    assert scores.sum().item() + account == pytest.approx(logit, abs=1e-9) and abs(account) > 1e-2
    no_word = scores[~batch.is_word].sum().item()  # CLS and SEP
    assert found.about["unassigned"].item() == pytest.approx(account + no_word, abs=1e-9)


def test_attn_lrp_of_two_layers_by_hand() -> None:
    """f = gelu(x1 - x2) * (3 x1) at (2, 1): g = gelu(1), f = 6 g. Half of f goes to each factor.

    The half of gelu's goes on to a = 1 = 2 - 1 unchanged (identity rule) and is shared 2 : -1; the
    other half is x1's.
    """
    x = torch.tensor([[[2.0, 1.0]]])
    found = attn_lrp(
        plain(
            lambda e: nn.functional.gelu(e[:, 0, 0] - e[:, 0, 1]) * (3 * e[:, 0, 0]),
            x,
            torch.zeros(1, 1, 2),
        ),
        aggregation="sum",
    )
    g = nn.functional.gelu(torch.tensor(1.0)).item()
    assert found.scores.item() == pytest.approx(6 * g, rel=1e-6)  # conserved
    gradient = _propagate(
        plain(lambda e: nn.functional.gelu(e[:, 0, 0] - e[:, 0, 1]) * (3 * e[:, 0, 0]), x, x),
        Relevance(),
        x,
        torch.tensor([0]),
        1,
    )[0, 0]
    assert (x[0, 0] * gradient).tolist() == pytest.approx([3 * g * 2 + 3 * g, -3 * g], rel=1e-6)


def test_attn_lrp_takes_the_size_in_a_norm_for_a_constant() -> None:
    """LayerNorm and RMSNorm: what comes out as relevance went in.

    Softmax: proposition 3.1 of the paper.
    """
    x, weight = torch.tensor([[[1.0, 2.0, 6.0]]]), torch.tensor([2.0, -1.0, 0.5])
    norms = (
        lambda e: nn.functional.layer_norm(e, (3,), weight, None, 0.0),
        lambda e: weight * (e * torch.rsqrt((e - 0).pow(2).mean(-1, keepdim=True))),
    )
    for norm in norms:
        gradient = _propagate(
            plain(lambda e, norm=norm: norm(e)[:, 0, 0], x, x), Relevance(), x, torch.tensor([0]), 1
        )
        assert (x * gradient).sum().item() == pytest.approx(norm(x)[0, 0, 0].item(), rel=1e-5)
    z = torch.tensor([[[0.5, 1.0, -1.0]]])
    gradient = _propagate(
        plain(lambda e: e.softmax(-1)[:, 0, 1], z, z), Relevance(), z, torch.tensor([0]), 1
    )[0, 0]
    p = z.softmax(-1)[0, 0]
    relevance = torch.tensor([0.0, p[1].item(), 0.0])
    assert (z[0, 0] * gradient).tolist() == pytest.approx(
        (z[0, 0] * (relevance - p * relevance.sum())).tolist(), rel=1e-5
    )


def test_where_the_function_adds_up_both_are_the_shapley_values() -> None:
    """f = sum of w.e over the tokens, from nothing: every token's share is what it adds."""
    x, w = (
        torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(0)),
        torch.tensor([1.0, -2.0, 0.5]),
    )
    batch = plain(lambda e: (e @ w).sum(1), x, torch.zeros_like(x))
    torch.testing.assert_close(attn_lrp(batch).scores, x @ w)
    torch.testing.assert_close(deep_lift_rescale(batch).scores, x @ w)


def test_the_model_is_left_as_it_was(bert: RunsFromEmbeddings) -> None:
    batch = batch_of(bert)
    before = batch.score(batch.embeddings, batch.mask)
    deep_lift_rescale(batch), attn_lrp(batch)
    assert torch.equal(batch.score(batch.embeddings, batch.mask), before)
    assert bert.module.config._attn_implementation == "sdpa"
    assert not any("forward" in vars(module) for module in bert.module.modules())


def test_without_an_input_that_asks_for_a_gradient_nothing_is_ruled(
    bert: RunsFromEmbeddings,
) -> None:
    batch = batch_of(bert)
    with torch.no_grad(), ruled(Rescale(), bert.module):
        inside = batch.score(batch.embeddings, batch.mask)
    torch.testing.assert_close(inside, batch.score(batch.embeddings, batch.mask))


def test_xlnet_has_attn_lrp_and_a_clear_word_for_rescale() -> None:
    config = XLNetConfig(
        vocab_size=16, d_model=8, n_layer=1, n_head=2, d_inner=8, num_labels=3, pad_token_id=0
    )
    model = HFClassifier(XLNetForSequenceClassification(config), tiny_tokenizer(), ("a", "b", "c"))
    rows = as_rows(["he he", "he he he"])
    with pytest.raises(TouchstoneError, match="XLNet computes token by token; take AttnLRP"):
        explain(model, rows, "DeepLift rescale")
    assert len(explain(model, rows, "AttnLRP")) == 2
