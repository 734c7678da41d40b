"""OLA, the one-layer attention model that starts from nothing (GECOBench, section 3.3.5)."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .text_model import (
    RunsFromEmbeddings,
    special_ids,
)

Variant = Literal["corrected", "as_released"]
HIDDEN = 64  # the paper's Table 5: embedding dimension


class OneLayerNet(nn.Module):
    """Embedding, attention, a pooler on the first token, a classifier.

    One attention head without positions, residual or norm.
    """

    def __init__(self, n_vocab: int, n_classes: int, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(n_vocab, hidden)
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.pooler = nn.Linear(hidden, hidden)
        self.activation = nn.Tanh()  # a module, not a function: DeepLift bends modules only
        self.classifier = nn.Linear(hidden, n_classes)

    def attention(
        self,
        embeddings: Float[Tensor, "batch token hidden"],
        mask: Int[Tensor, "batch token"] | None,
    ) -> Float[Tensor, "batch token"]:
        """How strongly the first token (CLS) attends to each token.

        Without a mask, padding is attended like words.

        Only the first token's query matters, for only its output is read. q·(K e + b) is computed
        as (qK)·e + q·b.
        """
        query = self.query(embeddings[:, 0])  # (batch, hidden)
        from_keys = torch.einsum(
            "bh,bth->bt", query @ self.key.weight, embeddings
        )  # (batch, token)
        scores = (from_keys + (query @ self.key.bias).unsqueeze(1)) / math.sqrt(
            embeddings.shape[-1]
        )
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -math.inf)
        return scores.softmax(-1)

    def forward(
        self,
        embeddings: Float[Tensor, "batch token hidden"],
        mask: Int[Tensor, "batch token"] | None,
    ) -> Float[Tensor, "batch class"]:
        """Class scores; weights sum to one, so the mean of the values is the value of the mean."""
        weights = self.attention(embeddings, mask)  # (batch, token)
        mean = torch.einsum("bt,bth->bh", weights, embeddings)  # (batch, hidden)
        return self.classifier(self.activation(self.pooler(self.value(mean))))


class OneLayerAttention(RunsFromEmbeddings):
    """OLA-CEA over the part of a tokenizer's vocabulary that its sentences use.

    Other ids count as unknown.

    `corrected` hides padding from the attention. `as_released` does what the released code does: it
    hides the padded *queries*, which nobody reads, so padding is attended, and the score depends on
    how far the set is padded.
    """

    def __init__(
        self,
        tokenizer: Any,
        used_ids: Iterable[int],
        classes: Sequence[str],
        seed: int,
        variant: Variant = "corrected",
    ) -> None:
        self.tokenizer, self.classes, self.variant = tokenizer, tuple(classes), variant
        self.pads_alike = variant == "as_released"  # as its evaluation did
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token  # GPT-2's has none; the mask says what counts
        self.max_length = int(tokenizer.model_max_length)
        self.used_ids = sorted({*used_ids, *special_ids(tokenizer), tokenizer.unk_token_id})
        # the row of every token id; those not in use share the unknown word's
        self._row = torch.full((len(tokenizer),), self.used_ids.index(tokenizer.unk_token_id))
        self._row[torch.tensor(self.used_ids)] = torch.arange(len(self.used_ids))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = OneLayerNet(len(self.used_ids), len(self.classes)).eval()

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The word embeddings; of ids outside the vocabulary in use, that of the unknown word."""
        return self.module.embeddings(self._row.to(ids.device)[ids])

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The class scores, computed from the word embeddings.

        Mask is 1 for tokens and 0 for padding.
        """
        return self.module(embeddings, mask if self.variant == "corrected" else None)

    def position_read(self, mask: Int[Tensor, "batch token"]) -> Int[Tensor, "batch"]:
        """The first token of each row."""
        return torch.zeros_like(mask[:, 0])

    def parts(self) -> dict[str, dict[str, nn.Parameter]]:
        """The parameters by part: embeddings, encoder (attention), head (pooler, classifier)."""
        parts: dict[str, dict[str, nn.Parameter]] = {"embeddings": {}, "encoder": {}, "head": {}}
        part_of = {"embeddings": "embeddings", "pooler": "head", "classifier": "head"}
        for name, parameter in self.module.named_parameters():
            parts[part_of.get(name.split(".")[0], "encoder")][name] = parameter
        return parts

    def redraw(self, part: str, seed: int) -> None:
        """Give a part new random parameters, drawn as PyTorch does for a new layer."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for layer in sorted({name.split(".")[0] for name in self.parts()[part]}):
                self.module.get_submodule(layer).reset_parameters()
