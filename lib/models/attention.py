"""The attention weights of a text model, and which token its answer is read from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from lib.errors import TouchstoneError
from lib.models.face import TextModel
from lib.models.hf import HFClassifier
from lib.models.ola import OneLayerAttention
from lib.models.zero_shot import PromptedModel


@torch.no_grad()
def attention_maps(model: TextModel, embeddings: Float[Tensor, "batch token hidden"],
                   mask: Int[Tensor, "batch token"]) -> Float[Tensor, "layer batch head token token"]:
    """How strongly each token (second last axis) attends to each token, by layer and head; rows sum to 1.

    Raises TouchstoneError for a model that is no transformer, or whose attention is not the ordinary kind.
    """
    if not isinstance(model.module, PreTrainedModel):
        raise TouchstoneError(f"{type(model).__name__} has no attention layers of transformers; choose another method")
    with eager_attention(model.module):
        found = model.module.base_model(inputs_embeds=embeddings, attention_mask=mask, output_attentions=True).attentions
    if not found or any(layer is None or layer.ndim != 4 for layer in found):
        raise TouchstoneError(f"{type(model.module).__name__} does not hand out its attention weights; choose another "
                              "method")
    return torch.stack(found)


def positions_read(model: TextModel, mask: Int[Tensor, "batch token"]) -> Int[Tensor, "batch"]:
    """The token of each row from which the model's answer is read."""
    if isinstance(model, OneLayerAttention) or isinstance(model, HFClassifier) and model.reads_first:
        return torch.zeros_like(mask[:, 0])
    if isinstance(model, HFClassifier):
        return mask.sum(1) - 1
    if isinstance(model, PromptedModel):
        return model.position_read(mask)
    raise TouchstoneError(f"{type(model).__name__} reads its answer from all tokens together, and attention rollout "
                          "needs one; choose another method")


@contextmanager
def eager_attention(module: PreTrainedModel) -> Iterator[None]:
    """Within, attention is computed step by step, so that its weights can be had; the fused kernels keep them."""
    before = module.config._attn_implementation
    module.set_attn_implementation("eager")
    try:
        yield
    finally:
        module.set_attn_implementation(before)
