"""What nobody asks for need not be computed: other tokens' last layer, parameters' gradients.

A shortcut holds for the heads that `transformers` ships; `check_reading` finds out whether it holds
for a given one.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..core.errors import TouchstoneError
from .hf import HFClassifier
from .text_model import TextModel, device_of


@contextmanager
def first_token_only(model: TextModel) -> Iterator[bool]:
    """Within, the last layer of a BERT-like classifier goes on with its first token alone.

    Exact, since the classifier reads no other; it saves two thirds of that layer. Yields whether it
    applies: to models that read the first token and whose layers are built as BERT's are (BERT,
    RoBERTa, ELECTRA). Others run as ever.
    """
    reads_first = isinstance(model, HFClassifier) and model.reads_first and model.one_token
    output = _after_attention(model.module) if reads_first else None
    if output is None:
        yield False
        return
    hook = output.register_forward_pre_hook(
        lambda module, inputs: tuple(tensor[:, :1] for tensor in inputs)  # each (batch, 1, hidden)
    )
    try:
        yield True
    finally:
        hook.remove()


@torch.no_grad()
def check_reading(model: HFClassifier) -> None:
    """Hold the module's own class scores of two texts against those that explanations would see.

    Where they differ by the shortcuts (a head that reads more than one token: a mean, a maximum),
    these are switched off.

    Raises:
        TouchstoneError: where they differ without the shortcuts, too: then the module does more to
            its input than it shows.
    """
    encoded = model.encode([["a"], "this is a good film .".split()])
    texts = [torch.tensor([row.ids], device=device_of(model.module)) for row in encoded]
    plain = [
        model.module(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.double()
        for ids in texts
    ]
    eps = [torch.finfo(p.dtype).eps for p in model.module.parameters() if p.is_floating_point()]
    allowed = max(1e-4, 4 * max(eps))  # in bfloat16, a few of its own last digits
    # The faster way first; the second one is the module's own.
    for model.one_token in (True, False):
        with first_token_only(model):
            gap = max(_gap(model, *pair) for pair in zip(texts, plain, strict=True))
        if gap <= allowed:
            return
    raise TouchstoneError(
        f"{type(model.module).__name__} gives other class scores from its word embeddings than "
        f"from its token ids (by {gap:.1%}), so explanations would be of another function; let its "
        "forward pass use inputs_embeds"
    )


def _gap(
    model: HFClassifier, ids: Int[Tensor, "batch token"], plain: Float[Tensor, "batch class"]
) -> float:
    """By how much the scores from embeddings differ from `plain`, relative to it."""
    gap = (model.logits(model.embed(ids), torch.ones_like(ids)) - plain).abs().max()
    return (gap / plain.abs().max().clamp(min=1e-6)).item()


@contextmanager
def parameters_fixed(module: nn.Module) -> Iterator[None]:
    """Within, no parameter asks for a gradient.

    Only the embeddings' is wanted, and a sixth of the time is saved.
    """
    before = {p: p.requires_grad for p in module.parameters()}
    module.requires_grad_(False)
    try:
        yield
    finally:
        for parameter, learns in before.items():
            parameter.requires_grad_(learns)


def _after_attention(module: nn.Module) -> nn.Module | None:
    layers = getattr(getattr(module.base_model, "encoder", None), "layer", None)
    output = getattr(getattr(layers[-1], "attention", None), "output", None) if layers else None
    known = ("BertSelfOutput", "RobertaSelfOutput", "ElectraSelfOutput")
    return output if type(output).__name__ in known else None
