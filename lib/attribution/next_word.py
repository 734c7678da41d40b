"""Why this next word, and why not that one: saliency of a chosen next word of any causal language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lib.attribution.registry import resolve_method
from lib.attribution.seam import Score, TokenBatch
from lib.attribution.words import word_scores
from lib.core.errors import TouchstoneError
from lib.models.probe import CausalLM, Probe, WordTable
from lib.models.text_model import device_of
from lib.models.word_vocabulary import UNKNOWN


@dataclass(frozen=True)
class NextWordScore:
    """The log-probability that a language model gives to a chosen next word, minus that of another one if there is a foil.

    A word of several pieces is predicted piece by piece, each after the ones before it.
    """

    lm: CausalLM
    word: Int[Tensor, "token"]
    foil: Int[Tensor, "token"] | None = None

    def __call__(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch"]:
        """One number a row; the rows have no padding."""
        found = self._log_prob(embeddings, self.word)
        return found if self.foil is None else found - self._log_prob(embeddings, self.foil)

    def _log_prob(
        self, embeddings: Float[Tensor, "batch token hidden"], word: Int[Tensor, "token"]
    ) -> Float[Tensor, "batch"]:
        pieces = self.lm.embed(word[None, :-1]).expand(len(embeddings), -1, -1)
        states = self.lm.run(torch.cat([embeddings, pieces], dim=1))[:, -len(word) :]
        return (
            self.lm.log_prob(states.flatten(0, 1))[
                range(len(embeddings) * len(word)), word.repeat(len(embeddings))
            ]
            .view(len(embeddings), -1)
            .sum(1)
        )

    @property
    def module(self) -> CausalLM:
        """The network behind the score."""
        return self.lm


def next_word_batch(
    lm: CausalLM,
    vocabulary: WordTable,
    prefix: Sequence[str],
    word: str,
    foil: str | None = None,
    seed: int = 0,
) -> TokenBatch:
    """A prefix and a chosen next word, ready for every token method of lib.attribution (`integrated_gradients(batch)`, ...).

    With a `foil` the question is contrastive: why `word` rather than `foil` (Yin & Neubig 2022)? The reference is the
    prefix with all its word embeddings zero. Raises TouchstoneError for an empty prefix and for a word that the model
    does not know.
    """
    if not len(prefix):
        raise TouchstoneError("the prefix is empty; give at least one word to explain")
    chosen = [None if one is None else _pieces(vocabulary, prefix, one) for one in (word, foil)]
    probe = Probe(lm, vocabulary, torch.nn.Linear(lm.config.embedding, 2), ("-", "-"))
    device, encoded = device_of(lm), probe.encode([prefix])[0]
    ids = torch.tensor([encoded.ids], device=device)
    is_word = torch.tensor([[owner is not None for owner in encoded.word_ids]], device=device)
    with torch.no_grad():
        embeddings = lm.embed(ids)
    score = NextWordScore(lm, *(None if one is None else one.to(device) for one in chosen))
    return TokenBatch(
        cast(Score, score),
        embeddings,
        torch.ones_like(ids),
        embeddings * ~is_word[..., None],
        is_word,
        (seed,),
    )


def explain_next_word(
    lm: CausalLM,
    vocabulary: WordTable,
    prefix: Sequence[str],
    word: str,
    foil: str | None = None,
    method: str = "Integrated Gradients",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Which words of a prefix speak for a chosen next word (with a `foil`: for it rather than for the foil).

    `lm` and `vocabulary`: a pair from `load_lm` (a language model of this study) or `load_hf_lm` (any of Hugging Face).
    `method`: a token method of lib.attribution.METHODS. Columns word and score, a row per word of the prefix. A positive
    score speaks for `word`; those of Integrated Gradients sum to the log-probability minus that of a prefix of zeros.
    Example: explain_next_word(*load_lm(path), "the keys to the cabinet".split(), "are", foil="is").
    """
    batch = next_word_batch(lm, vocabulary, prefix, word, foil, seed)
    chosen = resolve_method(method)
    if chosen.level != "token":
        raise TouchstoneError(
            f"{method} asks for whole sentences, and a next word has none; choose a method that reads "
            "embeddings, as Integrated Gradients"
        )
    known = {
        name: value
        for name, value in chosen.settings(settings).items()
        if name not in ("explained", "normalise_special", "precision")
    }
    found = chosen.function(batch, **known).scores[0].detach().cpu().numpy()
    owners = [None, *vocabulary.owners(prefix)]
    return pd.DataFrame(
        {"word": list(prefix), "score": word_scores(np.asarray(found), owners, len(prefix))}
    )


def _pieces(vocabulary: WordTable, prefix: Sequence[str], word: str) -> Int[Tensor, "token"]:
    """The ids of a word as it stands after the prefix."""
    ids = vocabulary.encode([*prefix, word])[len(vocabulary.encode(prefix)) :]
    if not ids or vocabulary.ids.get(UNKNOWN) in ids:
        raise TouchstoneError(
            f"the model does not know the word {word!r}; choose a word of its vocabulary"
        )
    return torch.tensor(ids)
