"""Explanations that take one pass each, from the graph that all of them share.

The same numbers as the definitions in `gradients.py`, which go through captum one method at a time; the tests hold
the two against each other.
"""

from __future__ import annotations

from torch import nn

from lib.attribution import gradients
from lib.attribution.gradients import aggregate
from lib.attribution.seam import TokenBatch, TokenScores, network_of
from lib.attribution.shared import change_of, gradient_of, multipliers_of, pass_of

NOT_SHARED = (
    nn.MaxPool1d,
    nn.MaxPool2d,
    nn.MaxPool3d,
    nn.Softmax,
)  # captum's DeepLift has rules of their own for them


def saliency(batch: TokenBatch, aggregation: str = "l1") -> TokenScores:
    """Saliency (Simonyan et al. 2013): the size of the gradient of the score in each word embedding."""
    return TokenScores(aggregate(gradient_of(batch).abs(), aggregation))


def gradient_norm(batch: TokenBatch, aggregation: str = "l2") -> TokenScores:
    """Gradient norm: the length of the gradient of the score in each word embedding."""
    return TokenScores(aggregate(gradient_of(batch), aggregation))


def input_x_gradient(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """Input x Gradient (Shrikumar et al. 2017): x * dS/dx, the embedding times the gradient in it."""
    return TokenScores(aggregate(batch.embeddings * gradient_of(batch), aggregation))


def guided_backprop(batch: TokenBatch, aggregation: str = "l2") -> TokenScores:
    """Guided Backprop (Springenberg et al. 2015): the gradient, negative signals cut off at every ReLU.

    Where no module is a ReLU this is the gradient itself, and it is shared; otherwise it has a pass of its own.
    """
    if _has(batch, nn.ReLU):
        return gradients.guided_backprop(batch, aggregation)
    return TokenScores(aggregate(gradient_of(batch), aggregation))


def deep_lift(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """DeepLift (Shrikumar et al. 2017), rescale rule at the activation modules that captum knows, summed.

    The forward pass is shared. Without such a module the backward pass is shared as well, for the multipliers then
    are the gradient. A network with Softmax or pooling modules goes through captum, which has rules for them.
    """
    if _has(batch, *NOT_SHARED):
        return gradients.deep_lift(batch, aggregation)
    vectors = (batch.embeddings - batch.reference) * multipliers_of(batch)
    return TokenScores(aggregate(vectors, aggregation), vectors.sum((1, 2)) - change_of(batch))


def _has(batch: TokenBatch, *kinds: type[nn.Module]) -> bool:
    network_of(batch.score)  # refuses a score that does not tell its network
    return any(type(module) in kinds for module in pass_of(batch).modules)
