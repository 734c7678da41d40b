"""Methods that take one pass: gradients, from a graph that they share, and attention rollout.

The gradient methods (`batch.SharedPass`) give the same numbers as the definitions in
`captum_route`, which go through captum one method at a time; the tests hold the two against each
other. Attention rollout shows where the encoder looked, layer upon layer, whatever the class.
"""

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core.errors import TouchstoneError
from ..models.hf import attention_maps
from ..models.ola import OneLayerNet
from ..models.text_model import RunsFromEmbeddings
from .batch import TokenBatch
from .seam import ClassScore, TokenScores, aggregate

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
        from . import captum_route  # captum and lime: a second of import

        return captum_route.guided_backprop(batch, aggregation)
    return TokenScores(aggregate(batch.gradient(), aggregation))


def deep_lift(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """DeepLift (Shrikumar et al. 2017), rescale rule at the activations that captum knows.

    The forward pass is shared. Without such a module the backward pass is shared as well, for the
    multipliers then are the gradient. A network with Softmax or pooling modules goes through
    captum, which has rules for them.
    """
    if _has(batch, *_NOT_SHARED):
        from . import captum_route

        return captum_route.deep_lift(batch, aggregation)
    vectors = (batch.embeddings - batch.baselines) * batch.one_pass().multipliers(batch.score)
    return TokenScores(aggregate(vectors, aggregation), vectors.sum((1, 2)) - batch.change())


def _has(batch: TokenBatch, *kinds: type[nn.Module]) -> bool:
    batch.score.network()  # refuses a score that does not tell its network
    return any(type(module) in kinds for module in batch.one_pass().modules)


def attention_rollout(batch: TokenBatch) -> TokenScores:
    """Attention rollout (Abnar & Zuidema 2020, section 3): each token's share in what is read.

    The shares sum to 1 and are the same for every class and every explained function. OLA has one
    attention and no residual connection: its rollout is the attention of its first token.
    """
    if not isinstance(batch.score, ClassScore):
        raise TouchstoneError(
            "attention rollout needs a classifier's score (`class_score`), for it looks at the "
            "model's attention; choose another method for a plain function"
        )
    model = batch.score.model
    if isinstance(model.module, OneLayerNet):
        with torch.no_grad():
            return TokenScores(model.module.attention(batch.embeddings, batch.mask))
    if isinstance(model, RunsFromEmbeddings):
        model.share_read(batch.mask)  # refuses first: without it there may be no maps either
    maps = attention_maps(
        model, batch.embeddings, batch.mask
    )  # (layers, batch, heads, tokens, tokens)
    return TokenScores(rollout(maps, cast(RunsFromEmbeddings, model).share_read(batch.mask)))


def rollout(
    maps: Float[Tensor, "layer batch head token token"], read: Float[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    """The product over layers of (mean over heads + identity) / 2, at the token that is `read`.

    Half of the weight is the residual connection's. From the last layer down, only one row is
    carried along.

    >>> half = torch.tensor([[0.5, 0.5], [0.0, 1.0]])
    >>> rollout(half.expand(2, 1, 1, 2, 2), torch.tensor([[1.0, 0.0]])).tolist()
    [[0.5625, 0.4375]]
    """
    share = read.to(maps)
    for layer in maps.mean(2).flip(0):  # (batch, tokens, tokens)
        share = (share + torch.einsum("bt,bts->bs", share, layer)) / 2
    return share
