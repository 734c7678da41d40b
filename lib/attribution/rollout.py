"""Attention rollout: where the encoder looked, layer upon layer, whatever the class."""

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from ..core.errors import TouchstoneError
from ..models.hf import attention_maps
from ..models.ola import OneLayerNet
from ..models.text_model import RunsFromEmbeddings
from .batch import TokenBatch
from .seam import ClassScore, TokenScores


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
