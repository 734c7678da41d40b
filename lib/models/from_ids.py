"""Classifiers that run from token ids alone, as those with an encoder and a decoder (T5, BART)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..core.errors import TouchstoneError
from .hf import HFClassifier
from .text_model import Encoded, device_of, widened


class FromIds(HFClassifier):
    """A classifier whose tokens can be exchanged, but whose embeddings cannot be changed.

    So it has explanations by altered texts, and none by gradients. What stands for a token's
    embedding is its id, a single number.
    """

    has_gradient = False

    def __init__(self, model: HFClassifier) -> None:
        super().__init__(model.module, model.tokenizer, model.classes)
        self.one_token = False

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        """Token ids and word ids; TouchstoneError for a text without one end token, or with two."""
        encoded, end = super().encode(sentences), self.module.config.eos_token_id
        for i, row in enumerate(encoded):
            if (n_ends := row.ids.count(end)) != 1:
                raise TouchstoneError(
                    f"sentence {i} has {n_ends} end tokens (id {end}), and "
                    f"{type(self.module).__name__} reads its answer at a single one; take it out "
                    "of the text, or load a tokenizer that ends a text with it"
                )
        return encoded

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The ids as numbers, which float32 holds exactly up to 16 million."""
        return ids[..., None].float()

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The class scores of the ids that `embed` gave."""
        if embeddings.dtype != torch.float32:
            raise TouchstoneError(
                f"{type(self.module).__name__} runs from token ids alone, which have no shorter "
                "numbers; leave precision out"
            )
        # Asked for before the pass: points between two texts have ids of neither.
        if torch.is_grad_enabled() and embeddings.requires_grad:
            raise TouchstoneError(
                f"{type(self.module).__name__} runs from token ids alone, so it has no gradient in "
                "its word embeddings; take Occlusion, LIME, Kernel SHAP or Partition SHAP"
            )
        ids = embeddings[..., 0].round().long()  # (batch, tokens)
        with torch.no_grad():
            return widened(self.module(input_ids=ids, attention_mask=mask).logits)


def takes_embeddings(model: HFClassifier) -> bool:
    """Whether a classifier can be run from its word embeddings, as T5's and BART's cannot."""
    ids = torch.tensor([model.encode([["a"]])[0].ids], device=device_of(model.module))
    try:
        with torch.no_grad():
            model.module(inputs_embeds=model.module.get_input_embeddings()(ids))
    except (NotImplementedError, ValueError):  # what transformers raises, by architecture
        return False
    return True
