"""Class scores of token ids: each different sequence once, in batches of equal length."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..models.first_token import first_token_only, parameters_fixed
from ..models.text_model import TextModel, device_of
from .budget import TokenBudget

Ids = tuple[int, ...]


def text_logits(model: TextModel, texts: Sequence[Sequence[str]]) -> Float[Tensor, "batch class"]:
    """The class scores of sentences given as words, on the CPU; equal sentences are run once."""
    number = {text: i for i, text in enumerate(dict.fromkeys(map(tuple, texts)))}
    encoded = model.encode([list(text) for text in number])
    logits = sequence_logits(model, [tuple(tokens.ids) for tokens in encoded])
    return logits[[number[tuple(text)] for text in texts]]


@torch.inference_mode()
def sequence_logits(
    model: TextModel, sequences: Sequence[Ids], budget: TokenBudget | None = None
) -> Float[Tensor, "batch class"]:
    """The class scores of token ids, on the CPU; no token is read as one padding token.

    Memory that runs out halves the batch (`budget.TokenBudget`); no row depends on its neighbours.

    Args:
        model: whose class scores are wanted.
        sequences: token ids, of any lengths.
        budget: how much may go through at once; None: a fresh one for the model's device.
    """
    pad_id, device = model.tokenizer.pad_token_id, device_of(model.module)
    budget = budget or TokenBudget.for_device(device)
    asked = [ids or (pad_id,) for ids in sequences]
    distinct = list(dict.fromkeys(asked))
    logits_of: dict[Ids, Tensor] = {}
    model.module.eval()

    def forward(part: list[int]) -> Tensor:
        ids = torch.tensor([distinct[i] for i in part], device=device)  # (batch, tokens)
        return model.logits(model.embed(ids), torch.ones_like(ids))

    with parameters_fixed(model.module), first_token_only(model):
        for part, logits in budget.run([len(ids) for ids in distinct], forward):
            logits_of |= zip((distinct[i] for i in part), logits.cpu(), strict=True)
    if not asked:
        return torch.zeros(0, len(model.classes))
    return torch.stack([logits_of[ids] for ids in asked])
