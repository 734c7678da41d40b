"""What nobody asks for need not be computed: the last layer but for one token, gradients of parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from lib.models.face import RunsFromEmbeddings
from lib.models.hf import HFClassifier


@contextmanager
def first_token_only(model: RunsFromEmbeddings) -> Iterator[bool]:
    """Within the block, the last layer of a BERT-like classifier goes on with its first token alone after attending.

    Exact, since the classifier reads no other; it saves two thirds of that layer. Yields whether it applies: to models
    that read the first token and whose layers are built as BERT's are (BERT, RoBERTa, ELECTRA). Others run as ever.
    """
    output = _after_attention(model.module) if isinstance(model, HFClassifier) and model.reads_first else None
    if output is None:
        yield False
        return
    hook = output.register_forward_pre_hook(_keep_first_token)
    try:
        yield True
    finally:
        hook.remove()


@contextmanager
def parameters_fixed(module: nn.Module) -> Iterator[None]:
    """Within, no parameter asks for a gradient: only the embeddings' is wanted, and a sixth of the time is saved."""
    trainable = [p for p in module.parameters() if p.requires_grad]
    module.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trainable:
            parameter.requires_grad_(True)


def _after_attention(module: nn.Module) -> nn.Module | None:
    layers = getattr(getattr(module.base_model, "encoder", None), "layer", None)
    output = getattr(getattr(layers[-1], "attention", None), "output", None) if layers else None
    known = ("BertSelfOutput", "RobertaSelfOutput", "ElectraSelfOutput")
    return output if type(output).__name__ in known else None


def _keep_first_token(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(tensor[:, :1] for tensor in inputs)
