"""Gradient methods that take one pass, from the graph that they share (`batch.SharedPass`).

The same numbers as the definitions in `captum_route`, which go through captum one method at a time;
the tests hold the two against each other.
"""

from torch import nn

from . import captum_route
from .batch import TokenBatch
from .seam import TokenScores, aggregate

# captum's DeepLift has rules of their own for these modules.
_NOT_SHARED = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.Softmax)


def saliency(batch: TokenBatch, aggregation: str = "l1") -> TokenScores:
    """Saliency (Simonyan et al. 2013): the size of the score's gradient in each word embedding."""
    return TokenScores(aggregate(batch.gradient().abs(), aggregation))


def gradient_norm(batch: TokenBatch, aggregation: str = "l2") -> TokenScores:
    """Gradient norm: the length of the gradient of the score in each word embedding."""
    return TokenScores(aggregate(batch.gradient(), aggregation))


def input_x_gradient(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """Input x Gradient (Shrikumar et al. 2017): x * dS/dx, embedding times gradient."""
    return TokenScores(aggregate(batch.embeddings * batch.gradient(), aggregation))


def guided_backprop(batch: TokenBatch, aggregation: str = "l2") -> TokenScores:
    """Guided Backprop (Springenberg et al. 2015): the gradient without negative signals at ReLUs.

    Where no module is a ReLU this is the gradient itself, and it is shared; otherwise captum's
    hooks make a pass of their own.
    """
    if _has(batch, nn.ReLU):
        return captum_route.guided_backprop(batch, aggregation)
    return TokenScores(aggregate(batch.gradient(), aggregation))


def deep_lift(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """DeepLift (Shrikumar et al. 2017), rescale rule at the activations that captum knows.

    The forward pass is shared. Without such a module the backward pass is shared as well, for the
    multipliers then are the gradient. A network with Softmax or pooling modules goes through
    captum, which has rules for them.
    """
    if _has(batch, *_NOT_SHARED):
        return captum_route.deep_lift(batch, aggregation)
    vectors = (batch.embeddings - batch.baselines) * batch.one_pass().multipliers(batch.score)
    return TokenScores(aggregate(vectors, aggregation), vectors.sum((1, 2)) - batch.change())


def _has(batch: TokenBatch, *kinds: type[nn.Module]) -> bool:
    batch.score.network()  # refuses a score that does not tell its network
    return any(type(module) in kinds for module in batch.one_pass().modules)
