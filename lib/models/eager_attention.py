"""The attention weights of a text model, and which token its answer is read from."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from ..core.errors import TouchstoneError
from .text_model import RunsFromEmbeddings, TextModel, widened
from .zero_shot import LabelSimilarity


@torch.no_grad()
def attention_maps(
    model: TextModel,
    embeddings: Float[Tensor, "batch token hidden"],
    mask: Int[Tensor, "batch token"],
) -> Float[Tensor, "layer batch head token token"]:
    """How strongly each token (second last axis) attends to each token (last axis).

    The weights of a layer, a head and a token sum to 1.

    Raises:
        TouchstoneError: for a model that is no transformer, or whose attention is not the ordinary
            kind.
    """
    if not isinstance(model.module, PreTrainedModel):
        raise TouchstoneError(
            f"{type(model).__name__} has no attention layers of transformers; choose another method"
        )
    dtype = model.module.get_input_embeddings().weight.dtype
    with eager_attention(model.module):
        output = model.module.base_model(
            inputs_embeds=embeddings.to(dtype), attention_mask=mask, output_attentions=True
        )
    layers = output.attentions  # each (batch, head, token, token)
    # Convolutions and state spaces give None, or maps of another form.
    if not layers or any(layer is None or layer.ndim != 4 for layer in layers):
        raise TouchstoneError(
            f"{type(model.module).__name__} does not hand out its attention weights; choose "
            "another method"
        )
    return widened(torch.stack(layers))


def read_weights(
    model: RunsFromEmbeddings, mask: Int[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    """The share of each token's output in what the model reads its answer from.

    All of one token, or equal shares of all tokens.
    """
    if isinstance(model, LabelSimilarity):
        return mask / mask.sum(1, keepdim=True)
    return torch.nn.functional.one_hot(model.position_read(mask), mask.shape[1]).float()


@contextmanager
def eager_attention(module: PreTrainedModel) -> Iterator[None]:
    """Within, attention is computed step by step: fused kernels do not hand out its weights."""
    before = module.config._attn_implementation
    module.set_attn_implementation("eager")
    try:
        yield
    finally:
        module.set_attn_implementation(before)
