"""Explanations by rules of propagation: DeepLift with a rule for every nonlinearity, and AttnLRP.

AttnLRP is covered by a patent application of its authors, who allow personal and scientific use; what is here was
written from the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from lib.attribution.gradients import aggregate
from lib.attribution.relevance import Relevance
from lib.attribution.rescale import Rescale
from lib.attribution.rules import Rules, ruled
from lib.attribution.seam import TokenBatch, TokenScores, network_of, score_of_rows
from lib.attribution.shared import change_of, pass_of, value_of
from lib.models.eager_attention import eager_attention
from lib.models.first_token import parameters_fixed


def deep_lift_rescale(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """DeepLift (Shrikumar et al. 2017) with an exact rule for each nonlinear call, products and normalisation included.

    captum's and shap's DeepLift leave GELU, softmax and LayerNorm to the ordinary gradient, and so are not complete on
    a transformer; here the scores of all tokens sum to the change of the score, to rounding (`delta`). A model with a function
    that has no rule is refused.
    """
    rows = torch.arange(len(batch.mask), device=batch.mask.device)

    def pairs(part: list[int]) -> Tensor:
        here = rows[part]
        both = torch.cat([batch.embeddings[here], batch.reference[here]])
        return _propagate(batch, Rescale(), both, here.repeat(2), len(here))[: len(here)]

    vectors = (batch.embeddings - batch.reference) * _over_rows(batch, pairs, 2)
    return TokenScores(aggregate(vectors, aggregation), vectors.sum((1, 2)) - change_of(batch))


def attn_lrp(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """AttnLRP (Achtibat et al. 2024): relevance that is passed down through attention, value by value.

    The relevance of an embedding component is its value times its modified gradient. What biases (and positions) have
    to do with the score stays with them, so the scores do not sum to it: `unassigned` is what no word has.
    """
    rows = torch.arange(len(batch.mask), device=batch.mask.device)
    found = _over_rows(
        batch,
        lambda part: _propagate(
            batch, Relevance(), batch.embeddings[rows[part]], rows[part], len(part)
        ),
        1,
    )
    relevance = (batch.embeddings * found).detach()
    with torch.no_grad():
        value = value_of(batch.score, pass_of(batch).outputs.detach())
    unassigned = value - (relevance.sum(-1) * batch.is_word).sum(1)
    return TokenScores(aggregate(relevance, aggregation), about={"unassigned": unassigned})


def _over_rows(batch: TokenBatch, work: object, copies: int) -> Float[Tensor, "batch token hidden"]:
    found = torch.zeros_like(batch.embeddings)
    for part, made in batch.budget.run([copies * batch.mask.shape[1]] * len(batch.mask), work):
        found[part] = made
    return found


def _propagate(
    batch: TokenBatch,
    rules: Rules,
    inputs: Float[Tensor, "batch token hidden"],
    rows: Int[Tensor, "batch"],
    n: int,
) -> Float[Tensor, "batch token hidden"]:
    """The backward pass by rules from the scores of the first n sequences."""
    network, inputs = network_of(batch.score), inputs.detach().requires_grad_()
    with (
        parameters_fixed(network),
        torch.enable_grad(),
        _step_by_step(network),
        ruled(rules, network),
    ):
        values = score_of_rows(batch.score, rows)(inputs, batch.mask[rows])
    return torch.autograd.grad(values[:n].sum(), inputs)[0]


@contextmanager
def _step_by_step(network: nn.Module) -> Iterator[None]:
    with ExitStack() as stack:
        if isinstance(network, PreTrainedModel):
            stack.enter_context(eager_attention(network))
        yield
