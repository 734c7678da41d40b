"""Sequences of token ids through a model, each different one once, in batches of exactly equal length."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lib.attribution.budget import TokenBudget
from lib.models.first_token import first_token_only, parameters_fixed
from lib.models.text_model import TextModel, device_of

Ids = tuple[int, ...]


def text_logits(model: TextModel, texts: Sequence[Sequence[str]]) -> Float[Tensor, "batch class"]:
    """The class scores of sentences given as words, on the CPU; equal sentences go through the model once."""
    number = {text: i for i, text in enumerate(dict.fromkeys(map(tuple, texts)))}
    encoded = model.encode([list(text) for text in number])
    logits = sequence_logits(model, [tuple(one.ids) for one in encoded])
    return logits[[number[tuple(text)] for text in texts]]


@torch.inference_mode()
def sequence_logits(model: TextModel, sequences: Sequence[Ids]) -> Float[Tensor, "batch class"]:
    """The class scores of token ids, on the CPU. A sequence of no token is read as one padding token.

    Memory that runs out halves the batch (`budget.TokenBudget`); no row depends on its neighbours.
    """
    pad_id = model.tokenizer.pad_token_id
    number = {ids: i for i, ids in enumerate(dict.fromkeys(ids or (pad_id,) for ids in sequences))}
    distinct, device = list(number), device_of(model.module)
    logits = torch.zeros(len(distinct), len(model.classes))
    model.module.eval()

    def forward(part: list[int]) -> Tensor:
        ids = torch.tensor([distinct[i] for i in part], device=device)
        return model.logits(model.embed(ids), torch.ones_like(ids))

    with parameters_fixed(model.module), first_token_only(model):
        for part, found in TokenBudget.for_device(device).run(
            [len(ids) for ids in distinct], forward
        ):
            logits[part] = found.float().cpu()
    return logits[[number[ids or (pad_id,)] for ids in sequences]]
