"""A masked LM seen as a classifier of gender, so that every explanation method can be asked what decides a pronoun."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lib.metrics.masked_pronoun import GenderIds, gender_ids
from lib.models.masked_lm import MaskedLM
from lib.models.text_model import Encoded, RunsFromEmbeddings
from lib.studies.implicit_bias.sentences import MASK


class GenderAtMask(RunsFromEmbeddings):
    """Classes female and male; the score of male is log P(male) - log P(female) at the mask, that of female its negative.

    P of a gender is the largest probability of one of its words. The mask is found by its embedding, which no method
    that keeps special tokens alters.
    """

    classes = ("female", "male")
    keeps_typed = True

    def __init__(self, model: MaskedLM, ids: GenderIds | None = None) -> None:
        self.lm, self.module, self.tokenizer, self.max_length = (
            model,
            model.module,
            model.tokenizer,
            model.max_length,
        )
        self.ids = ids or gender_ids(model.tokenizer)

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        """Token ids and word ids; the mask of our tables becomes the model's own."""
        return self.lm.encode(
            [
                [self.tokenizer.mask_token if word == MASK else word for word in words]
                for words in sentences
            ]
        )

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The two scores; the log-probabilities' common term cancels, so the head's scores do."""
        marker = self.embed(torch.tensor([self.tokenizer.mask_token_id], device=embeddings.device))[
            0
        ]
        far = (embeddings - marker).abs().sum(-1).masked_fill(mask == 0, float("inf"))
        hidden = self.lm.hidden(embeddings, mask)[
            torch.arange(len(mask), device=mask.device), far.argmin(1)
        ]
        scores = self.lm.scores(hidden)
        margin = scores[:, self.ids["M"]].amax(1) - scores[:, self.ids["F"]].amax(1)
        return torch.stack([-margin, margin], 1)
