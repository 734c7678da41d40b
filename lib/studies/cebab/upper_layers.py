"""Training the upper layers of an encoder alone.

What the lower ones make of a text never changes, so it is computed once.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from ...core.errors import TouchstoneError
from ...models.hf import HFClassifier
from ...models.text_model import BATCH, Encoded, Forward, device_of, length_buckets, pad

States = Sequence[
    Float[Tensor, "token hidden"]
]  # of each text, its tokens as the last frozen layer left them


def layer_stack(module: PreTrainedModel) -> nn.ModuleList:
    """The transformer layers of a model, lowest first.

    The longest list of modules that it holds.
    """
    stacks = [m for m in module.base_model.modules() if isinstance(m, nn.ModuleList)]
    if not stacks:
        raise TouchstoneError(f"{type(module).__name__} has no list of layers; train it as a whole")
    return max(stacks, key=len)


def check_depth(module: PreTrainedModel, n_layers: int, least: int = 0) -> nn.ModuleList:
    """The layers of a model, if it has so many."""
    stack = layer_stack(module)
    if not least <= n_layers <= len(stack):
        raise TouchstoneError(
            f"{n_layers} layers are asked for and the encoder has {len(stack)}; choose from "
            f"{least} to {len(stack)}"
        )
    return stack


def upper_parameters(model: HFClassifier, n_layers: int) -> dict[str, nn.Parameter]:
    """Let the head and the `n_layers` uppermost layers learn and nothing else.

    Returns what learns, by name.
    """
    stack = check_depth(model.module, n_layers)
    above = {id(p) for layer in list(stack)[len(stack) - n_layers :] for p in layer.parameters()}
    below = {id(p) for p in stack.parameters()} | {
        id(p) for p in model.parts()["embeddings"].values()
    }
    learns = {
        name: p
        for name, p in model.module.named_parameters()
        if id(p) in above or id(p) not in below
    }
    for name, p in model.module.named_parameters():
        p.requires_grad_(name in learns)
    return learns


@contextmanager
def layers_between(module: PreTrainedModel, first: int, last: int) -> Iterator[None]:
    """Within, the model has only the layers from `first` to before `last`.

    Where first > 0 it is fed with hidden states.
    """
    stack, embeddings = layer_stack(module), getattr(module.base_model, "embeddings", None)
    if embeddings is None or hasattr(module.base_model, "embeddings_project"):
        raise TouchstoneError(
            f"the layers of {type(module).__name__} cannot be taken apart; train it as a whole "
            "(n_frozen: 0)"
        )
    whole = list(stack)
    del stack[last:]
    del stack[:first]
    if first:
        embeddings.forward = _pass_on  # an instance's attribute hides the method of its class
    try:
        yield
    finally:
        if first:
            del embeddings.forward
        del stack[:]
        stack.extend(whole)


@torch.no_grad()
def lower_states(model: HFClassifier, encoded: Sequence[Encoded], n_layers: int) -> States:
    """What the `n_layers` lowest layers make of each text, computed once.

    Raises TouchstoneError where the upper layers do not make the model's own scores from it.
    """
    check_depth(model.module, n_layers, least=1)
    found: list[Tensor] = [torch.empty(0)] * len(encoded)
    for bucket in length_buckets([len(one.ids) for one in encoded], BATCH):
        ids, mask = (
            t.to(device_of(model.module))
            for t in pad([encoded[i] for i in bucket], model.tokenizer.pad_token_id)
        )
        with layers_between(model.module, 0, n_layers):
            states = model.module.base_model(
                inputs_embeds=model.embed(ids), attention_mask=mask
            ).last_hidden_state
        for i, state in zip(bucket, states, strict=True):
            found[i] = state
    ids, mask = (
        t.to(device_of(model.module)) for t in pad(encoded[:1], model.tokenizer.pad_token_id)
    )
    whole = model.logits(model.embed(ids), mask)
    with layers_between(model.module, n_layers, len(layer_stack(model.module))):
        if not torch.allclose(model.logits(found[0][None], mask), whole, atol=1e-4):
            raise TouchstoneError(
                f"the upper layers of {type(model.module).__name__} do not work on the states of "
                "the lower ones; train it as a whole (n_frozen: 0)"
            )
    return found


def state_forward(model: HFClassifier, states: States) -> Forward:
    """The class scores of texts by their index, from their states.

    To be used within `layers_between`.
    """

    def forward(index: Int[Tensor, "batch"]) -> Float[Tensor, "batch class"]:
        rows = [states[i] for i in index.tolist()]
        lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
        together = pad_sequence(rows, batch_first=True)
        mask = (torch.arange(together.shape[1], device=lengths.device) < lengths[:, None]).long()
        return model.logits(together, mask)

    return forward


def _pass_on(*args: Any, inputs_embeds: Tensor, **kwargs: Any) -> Tensor:
    return inputs_embeds
