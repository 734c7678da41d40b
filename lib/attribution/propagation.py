"""Explanations by rules of propagation: DeepLift with a rule for every nonlinearity, and AttnLRP.

AttnLRP is covered by a patent application of its authors, who allow personal and scientific use;
what is here was written from the paper.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..core.errors import TouchstoneError
from ..models.hf import eager_attention
from ..models.shortcuts import parameters_fixed
from .batch import TokenBatch
from .rescale import Rescale
from .rules import ELEMENTWISE_PRODUCT, Backward, Rules, ruled, secant
from .seam import TokenScores, aggregate, gradient_of


def deep_lift_rescale(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """DeepLift (Shrikumar et al. 2017) with an exact rule for each nonlinear call.

    Products and normalisation have rules, too. captum's and shap's DeepLift leave GELU, softmax and
    LayerNorm to the ordinary gradient, and so are not complete on a transformer; here the scores of
    all tokens sum to the change of the score, to rounding
    (`delta`).

    Raises:
        TouchstoneError: for a model with a function that has no rule, and for XLNet.
    """
    # Its layers put tokens first, and the rules look for input and baseline along the first axis.
    if any(type(part).__name__ == "XLNetModel" for part in batch.score.network().modules()):
        raise TouchstoneError(
            "DeepLift rescale compares input and baseline row by row, and XLNet computes token by "
            "token; take AttnLRP, Integrated Gradients or Partition SHAP"
        )

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
    with (
        parameters_fixed(network),
        torch.enable_grad(),
        # Fused attention is one call whose parts no rule could see.
        eager_attention(network),
        ruled(rules, network),
    ):
        values = batch.score.for_rows(rows)(inputs, batch.mask[rows])
    return gradient_of(values[:n], inputs)


class Relevance(Rules):
    """AttnLRP's rules (Achtibat et al. 2024, section 3.2): relevance = value * modified gradient.

    Activations pass their relevance on (identity rule: the gradient times (y - f(0)) / x; f(0),
    where there is one, is a constant); a product's relevance is halved between its factors (uniform
    rule); softmax has its derivative (Taylor rule), and so have log-softmax and the largest number;
    LayerNorm and RMSNorm take their size for a constant (identity rule); linear layers have the
    epsilon rule with epsilon 0, their ordinary gradient: what their biases have to do with the
    score is theirs.
    """

    title = "AttnLRP"
    derivative = frozenset({"log_softmax", "amax"})

    def elementwise(
        self, call: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, name: str
    ) -> Backward:
        """(y - f(0)) / x times the gradient; 0 where f(0) is infinite (the size of a norm)."""
        # A sigmoid is 1/2 at 0, whatever goes in: that part is no relevance of x.
        at_zero = call(torch.zeros_like(x))
        if not torch.isfinite(at_zero).all():
            return lambda grad: (torch.zeros_like(grad),)
        # Below it the difference has lost its digits.
        near = torch.finfo(x.dtype).eps ** (0.5 if at_zero.any() else 1)
        share = secant(call, (x, torch.zeros_like(x)), (y, at_zero), x.abs() <= near)
        return lambda grad: (grad * share,)

    def bilinear(
        self, call: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, name: str
    ) -> Backward:
        """Half of the gradient to each factor; all to the other one if one is a norm's size."""

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            with torch.enable_grad():
                at = [x.clone().requires_grad_() for x in (a, b)]
                gradients = torch.autograd.grad(call(*at), at, grad)
            # A factor of width 1 beside a wide one is a norm's size, and counts as a constant.
            is_size = [
                x.shape[-1:] == (1,) and other.shape[-1:] != (1,) for x, other in ((a, b), (b, a))
            ]
            if name in ELEMENTWISE_PRODUCT and any(is_size):
                return tuple(
                    torch.zeros_like(g) if size else g
                    for g, size in zip(gradients, is_size, strict=True)
                )
            return tuple(g / 2 for g in gradients)

        return back

    def quotient(self, a: Tensor, b: Tensor) -> Backward:
        """The denominator counts as a constant."""
        return lambda grad: ((grad / b).sum_to_size(a.shape), torch.zeros_like(b))

    def softmax(self, z: Tensor, p: Tensor, dim: int) -> Backward:
        """R_i = z_i (R_i - p_i sum of R), proposition 3.1: the derivative."""
        return lambda grad: (p * (grad - (p * grad).sum(dim, keepdim=True)),)

    def layer_norm(
        self, x: Tensor, weight: Tensor | None, eps: float, dims: tuple[int, ...]
    ) -> Backward:
        """The derivative of (x - mean) * weight / size with the size held fixed."""
        size = (x.var(dims, correction=0, keepdim=True) + eps).sqrt()

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            by_c = grad * (1 if weight is None else weight) / size
            return (by_c - by_c.mean(dims, keepdim=True),)

        return back
