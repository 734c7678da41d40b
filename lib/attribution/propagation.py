"""Explanations by rules of propagation: DeepLift with a rule for every nonlinearity, and AttnLRP.

AttnLRP is covered by a patent application of its authors, who allow personal and scientific use;
what is here was written from the paper.
"""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from ..models.hf import eager_attention
from ..models.shortcuts import parameters_fixed
from .batch import TokenBatch
from .relevance import Relevance
from .rescale import Rescale
from .rules import Rules, ruled
from .seam import TokenScores
from .words import aggregate


def deep_lift_rescale(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """DeepLift (Shrikumar et al. 2017) with an exact rule for each nonlinear call.

    Products and normalisation have rules, too. captum's and shap's DeepLift leave GELU, softmax and
    LayerNorm to the ordinary gradient, and so are not complete on a transformer; here the scores of
    all tokens sum to the change of the score, to rounding
    (`delta`).

    Raises:
        TouchstoneError: for a model with a function that has no rule.
    """

    def multipliers(rows: Int[Tensor, "batch"]) -> Float[Tensor, "batch token hidden"]:
        # One pass for both: the rules compare the halves at every call.
        both = torch.cat([batch.embeddings[rows], batch.baselines[rows]])  # (2 batch, tokens, d)
        return _propagate(batch, Rescale(), both, rows.repeat(2), len(rows))[: len(rows)]

    vectors = (batch.embeddings - batch.baselines) * _over_rows(batch, multipliers, copies=2)
    return TokenScores(aggregate(vectors, aggregation), vectors.sum((1, 2)) - batch.change())


def attn_lrp(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """AttnLRP (Achtibat et al. 2024): relevance, passed down through attention value by value.

    The relevance of an embedding component is its value times its modified gradient. What biases
    (and positions) have to do with the score stays with them, so the scores do not sum to it:
    `unassigned` is what no word has.
    """

    def gradients(rows: Int[Tensor, "batch"]) -> Float[Tensor, "batch token hidden"]:
        return _propagate(batch, Relevance(), batch.embeddings[rows], rows, len(rows))

    relevance = (batch.embeddings * _over_rows(batch, gradients, copies=1)).detach()
    unassigned = batch.value() - (relevance.sum(-1) * batch.is_word).sum(1)
    return TokenScores(aggregate(relevance, aggregation), about={"unassigned": unassigned})


def _over_rows(
    batch: TokenBatch, work: Callable[[Tensor], Tensor], copies: int
) -> Float[Tensor, "batch token hidden"]:
    """`work` on the batch's row numbers, as many at once as fit, each as `copies` sequences."""
    rows = torch.arange(len(batch.mask), device=batch.mask.device)
    vectors = torch.zeros_like(batch.embeddings)
    lengths = [copies * batch.mask.shape[1]] * len(rows)
    for part, of_part in batch.budget.run(lengths, lambda part: work(rows[part])):
        vectors[part] = of_part
    return vectors


def _propagate(
    batch: TokenBatch,
    rules: Rules,
    inputs: Float[Tensor, "batch token hidden"],
    rows: Int[Tensor, "batch"],
    n: int,
) -> Float[Tensor, "batch token hidden"]:
    """The backward pass by rules from the scores of the first n sequences."""
    network, inputs = batch.score.network(), inputs.detach().requires_grad_()
    is_transformer = isinstance(network, PreTrainedModel)
    with (
        parameters_fixed(network),
        torch.enable_grad(),
        # Fused attention is one call whose parts no rule could see.
        eager_attention(network) if is_transformer else nullcontext(),
        ruled(rules, network),
    ):
        values = batch.score.for_rows(rows)(inputs, batch.mask[rows])
    return torch.autograd.grad(values[:n].sum(), inputs)[0]
