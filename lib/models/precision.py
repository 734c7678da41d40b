"""The same model with shorter numbers: bfloat16 inside, float32 at both ends."""

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from ..core.errors import TouchstoneError, did_you_mean
from .eager_attention import eager_attention
from .text_model import TextModel

_PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@contextmanager
def in_precision(model: TextModel, precision: str) -> Iterator[TextModel]:
    """Within, a copy of the model that computes in `precision`.

    Embeddings go in and class scores come out in float32.

    Worth it only where the processor has bfloat16 arithmetic (how much it is worth depends on the
    processor: benchmarks/README.md) and the rows are many, since every new shape costs a while at
    first. On a CPU attention is computed step by step, for the fused kernel's backward pass is slow
    in bfloat16. Raises TouchstoneError for an unknown precision, or a model that is no transformer.
    """
    if precision not in _PRECISIONS:
        raise TouchstoneError(
            f"precision is {precision!r}{did_you_mean(precision, _PRECISIONS)}; write float32 or "
            "bfloat16"
        )
    if precision == "float32":
        yield model
        return
    if not isinstance(model.module, PreTrainedModel):
        raise TouchstoneError(
            f"{type(model).__name__} is no model of transformers and stays in float32; leave "
            "precision out"
        )
    low: Any = copy.copy(model)  # two of its methods are exchanged below
    low.module = _copied(model.module, _PRECISIONS[precision])

    def logits(
        embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The class scores in float32, from embeddings in float32."""
        return type(model).logits(low, embeddings.to(_PRECISIONS[precision]), mask).float()

    low.embed, low.logits = model.embed, logits
    with ExitStack() as stack:
        if next(model.module.parameters()).device.type == "cpu":
            stack.enter_context(eager_attention(low.module))
        yield low


def _copied(module: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """A copy with its numbers in another type.

    Each is converted as it is copied, so that nothing is copied twice.

    The frequencies of rotary positions stay as they are: rounded, they would turn far tokens to
    wrong places.
    """
    numbers = [
        t
        for name, t in (*module.named_parameters(), *module.named_buffers())
        if t.is_floating_point() and not name.endswith("inv_freq")
    ]
    # By identity, as the memo of deepcopy: tied tensors stay tied.
    converted = {id(t): t.detach().to(dtype) for t in numbers}
    for tensor in numbers:
        if isinstance(tensor, torch.nn.Parameter):
            converted[id(tensor)] = torch.nn.Parameter(converted[id(tensor)], tensor.requires_grad)
    return copy.deepcopy(module, converted)
