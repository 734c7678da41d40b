"""Training the upper layers of an encoder alone.

What the lower ones make of a text never changes, so it is computed once.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from ...core.errors import TouchstoneError
from ...models.hf import HFClassifier, layer_stack
from ...models.text_model import (
    BATCH,
    Encoded,
    Forward,
    RunsFromEmbeddings,
    device_of,
    length_buckets,
    lengths_of,
    pad,
)


@dataclass(frozen=True)
class States:
    """What the `n_layers` lowest layers of an encoder make of texts.

    Args:
        n_layers: how many layers need not be run again.
        of_text: of each text, its tokens as the last of these layers left them.
    """

    n_layers: int
    of_text: Sequence[Float[Tensor, "token hidden"]]

    def take(self, rows: Sequence[int]) -> Self:
        """The states of some of the texts."""
        return type(self)(self.n_layers, [self.of_text[i] for i in rows])


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
    # The head, and a last LayerNorm, are neither: they learn.
    below = {id(p) for p in (*stack.parameters(), *model.parts()["embeddings"].values())}
    for p in model.module.parameters():
        p.requires_grad_(id(p) in above or id(p) not in below)
    return {name: p for name, p in model.module.named_parameters() if p.requires_grad}


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
    del stack[last:], stack[:first]
    if first:
        # The states are handed in as embeddings; an instance's attribute hides its class's method.
        embeddings.forward = lambda *_, inputs_embeds, **__: inputs_embeds
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
    found: dict[int, Tensor] = {}
    for bucket in length_buckets(lengths_of(encoded), BATCH):
        embeddings, mask = _embedded(model, [encoded[i] for i in bucket])
        with layers_between(model.module, 0, n_layers):
            run = model.module.base_model(inputs_embeds=embeddings, attention_mask=mask)
        found |= zip(bucket, run.last_hidden_state, strict=True)
    states = States(n_layers, [found[i] for i in range(len(encoded))])
    # Some architectures hand more from layer to layer than states, and would go wrong silently.
    whole = model.logits(*_embedded(model, encoded[:1]))
    with from_states(model, states) as forward:
        if not torch.allclose(forward(torch.tensor([0])), whole, atol=1e-4):
            raise TouchstoneError(
                f"the upper layers of {type(model.module).__name__} do not work on the states of "
                "the lower ones; train it as a whole (n_frozen: 0)"
            )
    return states


@contextmanager
def from_states(model: RunsFromEmbeddings, states: States) -> Iterator[Forward]:
    """Within, only the upper layers are left: the class scores of texts by their index."""

    def forward(index: Int[Tensor, "batch"]) -> Float[Tensor, "batch class"]:
        rows = [states.of_text[i] for i in index.tolist()]
        lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
        together = pad_sequence(rows, batch_first=True)
        mask = (torch.arange(together.shape[1], device=lengths.device) < lengths[:, None]).long()
        return model.logits(together, mask)

    with layers_between(model.module, states.n_layers, len(layer_stack(model.module))):
        yield forward


def _embedded(model: HFClassifier, encoded: Sequence[Encoded]) -> tuple[Tensor, Tensor]:
    """The word embeddings of a batch, and its mask."""
    ids, mask = pad(encoded, model.tokenizer.pad_token_id, device=device_of(model.module))
    return model.embed(ids), mask
