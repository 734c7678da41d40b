"""Explanations from gradients, through captum, on the WORD embeddings.

The word embeddings go in, and the model adds positions and LayerNorm itself, once. Every method returns one
vector per token, with as many components as the embedding has; `aggregation` names how the vector becomes a
score: "sum" (signed), "l1" (sum of absolute values), "l2" (length). The signed sum of a bare gradient is
exactly zero wherever a LayerNorm follows the embeddings, which is why no bare gradient is summed here (the
proof is in geco's 03_attribution).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from captum.attr import DeepLift, GradientShap, GuidedBackprop, InputXGradient, IntegratedGradients
from captum.attr import Saliency as CaptumSaliency
from captum.attr._core.deep_lift import SUPPORTED_NON_LINEAR
from captum.attr._utils.approximation_methods import SUPPORTED_METHODS
from jaxtyping import Float, Int
from torch import Tensor, nn

from lib.attribution.seam import Score, TokenBatch, TokenScores, network_of, score_of_rows
from lib.core.errors import TouchstoneError, did_you_mean

AGGREGATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda vectors: vectors.sum(-1),
    "l1": lambda vectors: vectors.abs().sum(-1),
    "l2": lambda vectors: vectors.norm(dim=-1),
}
ROWS_AT_ONCE = (
    96  # sequences in one pass; more are not faster (a CPU is at 90 % of its peak from 16 on)
)


def saliency(batch: TokenBatch, aggregation: str = "l1") -> TokenScores:
    """Saliency (Simonyan et al. 2013): the size of the gradient of the score in each word embedding."""
    explainer = CaptumSaliency(ScoreNetwork(batch.score))
    found = explainer.attribute(
        _inputs(batch), abs=True, additional_forward_args=mask_and_rows(batch)
    )
    return TokenScores(aggregate(found, aggregation))


def input_x_gradient(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """Input x Gradient (Shrikumar et al. 2017): x * dS/dx, the embedding times the gradient in it."""
    explainer = InputXGradient(ScoreNetwork(batch.score))
    found = explainer.attribute(_inputs(batch), additional_forward_args=mask_and_rows(batch))
    return TokenScores(aggregate(found, aggregation))


def guided_backprop(batch: TokenBatch, aggregation: str = "l2") -> TokenScores:
    """Guided Backprop (Springenberg et al. 2015): the gradient, negative signals cut off at every ReLU.

    A network without ReLU modules (BERT, RoBERTa, GPT-2 and OLA have none) has nothing to cut: this is its
    plain gradient.
    """
    network = ScoreNetwork(batch.score, network_of(batch.score))
    with _expected("Setting backward hooks on ReLU activations"):
        found = GuidedBackprop(network).attribute(
            _inputs(batch), additional_forward_args=mask_and_rows(batch)
        )
    return TokenScores(aggregate(found, aggregation))


def deep_lift(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """DeepLift (Shrikumar et al. 2017), rescale rule: multipliers times (x - reference), summed.

    captum applies the rule to activation modules it knows (Tanh, ReLU, ...); GELU, attention and LayerNorm
    get the ordinary gradient. In BERT and OLA only the pooler's tanh is left, so the gap is large: it is
    reported, not hidden.
    """
    network = ScoreNetwork(batch.score, network_of(batch.score))
    with _expected("Setting forward, backward hooks and attributes on non-linear"):
        found, delta = DeepLift(network, multiply_by_inputs=True).attribute(
            _inputs(batch),
            batch.reference,
            additional_forward_args=mask_and_rows(batch),
            return_convergence_delta=True,
        )
    return TokenScores(aggregate(found, aggregation), delta)


def seen_by_deep_lift(network: nn.Module) -> list[str]:
    """The names of the modules to which captum's DeepLift applies its rule; all others get the ordinary gradient."""
    return [
        name for name, module in network.named_modules() if type(module) in SUPPORTED_NON_LINEAR
    ]


def integrated_gradients(
    batch: TokenBatch, aggregation: str = "sum", n_steps: int = 50, rule: str = "riemann_middle"
) -> TokenScores:
    """Integrated Gradients (Sundararajan et al. 2017, eq. 1): gradients on the path from the reference to x.

    (x - reference) times the mean of dS/dx over `n_steps` points of the path, placed by captum's `rule`, and
    the completeness gap: sum of all scores - (S(x) - S(reference)), which goes to 0 as the points become
    many.
    """
    if rule not in SUPPORTED_METHODS:
        raise TouchstoneError(
            f"the rule of Integrated Gradients is {rule!r}{did_you_mean(rule, SUPPORTED_METHODS)}"
        )
    explainer = IntegratedGradients(ScoreNetwork(batch.score), multiply_by_inputs=True)
    found, delta = explainer.attribute(
        _inputs(batch),
        batch.reference,
        additional_forward_args=mask_and_rows(batch),
        n_steps=n_steps,
        method=rule,
        internal_batch_size=max(ROWS_AT_ONCE, len(batch.embeddings)),
        return_convergence_delta=True,
    )
    return TokenScores(aggregate(found, aggregation), delta)


def gradient_shap(batch: TokenBatch, aggregation: str = "sum", n_samples: int = 5) -> TokenScores:
    """Gradient SHAP (Lundberg & Lee 2017): the same from a few random points of the path.

    One row at a time, each with its own seed: the draws of a row do not depend on the rows beside it.
    """
    rows = []
    for i, seed in enumerate(batch.seeds):
        row = batch.row(i)
        explainer = GradientShap(ScoreNetwork(row.score), multiply_by_inputs=True)
        with drawing_from(seed):
            rows.append(
                explainer.attribute(
                    _inputs(row),
                    row.reference,
                    n_samples=n_samples,
                    additional_forward_args=mask_and_rows(row),
                )
            )
    return TokenScores(aggregate(torch.cat(rows), aggregation))


def aggregate(
    vectors: Float[Tensor, "batch token hidden"], how: str
) -> Float[Tensor, "batch token"]:
    """One score per token from its vector: "sum", "l1" or "l2"."""
    if how not in AGGREGATIONS:
        raise TouchstoneError(f"aggregation is {how!r}{did_you_mean(how, AGGREGATIONS)}")
    return AGGREGATIONS[how](vectors).detach()


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Start the global generators of NumPy and PyTorch at `seed` (captum draws from both); restore them after."""
    numpy_state = np.random.get_state()
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            np.random.seed(seed)
            yield
    finally:
        np.random.set_state(numpy_state)


class ScoreNetwork(nn.Module):
    """A score as captum wants it: a module of (embeddings, mask, row numbers), since captum repeats rows."""

    def __init__(self, score: Score, network: nn.Module | None = None) -> None:
        super().__init__()
        self.score, self.network = (
            score,
            network,
        )  # the network is registered so that captum finds its activations

    def forward(
        self,
        embeddings: Float[Tensor, "batch token hidden"],
        mask: Int[Tensor, "batch token"],
        rows: Int[Tensor, "batch"],
    ) -> Float[Tensor, "batch"]:
        """The score of each sequence; `rows` tells which row's class (or word) it is about."""
        return score_of_rows(self.score, rows)(embeddings, mask)


def _inputs(batch: TokenBatch) -> Float[Tensor, "batch token hidden"]:
    # With requires_grad set, captum has no reason to warn that it set it.
    return batch.embeddings.detach().clone().requires_grad_()


def mask_and_rows(batch: TokenBatch) -> tuple[Int[Tensor, "batch token"], Int[Tensor, "batch"]]:
    """What captum hands on to a `ScoreNetwork` beside the embeddings."""
    return batch.mask, torch.arange(len(batch.mask), device=batch.mask.device)


@contextmanager
def _expected(message: str) -> Iterator[None]:
    """Silence one warning of captum, given at every call: that it sets hooks, which is what we asked for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message, category=UserWarning)
        yield
