"""Why this next word, and not that one: saliency of a next word of any causal language model.

Example: `explain_next_word(*load_lm(path), "the keys to the cabinet".split(), "are", foil="is")`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..core.errors import TouchstoneError
from ..models.language_model import UNKNOWN
from ..models.probe import CausalLM, Probe, WordTable
from ..models.text_model import device_of
from .batch import TokenBatch
from .explain import COMMON
from .registry import resolve_method
from .seam import Score, word_scores

_Pieces = Int[Tensor, "token"]


class _NextWordScore(Score):
    """The log-probability of a chosen next word, minus that of another one if there is a foil.

    A word of several pieces is predicted piece by piece, each after the ones before it.
    """

    module: CausalLM

    def __init__(self, lm: CausalLM, word: _Pieces, foil: _Pieces | None = None) -> None:
        self.module, self.word, self.foil = lm, word, foil

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch"]:
        """The score itself; the rows have no padding."""
        of_word = self._log_prob(embeddings, self.word)
        return of_word if self.foil is None else of_word - self._log_prob(embeddings, self.foil)

    def _log_prob(
        self, embeddings: Float[Tensor, "batch token hidden"], word: _Pieces
    ) -> Float[Tensor, "batch"]:
        n, n_pieces = len(embeddings), len(word)
        pieces = self.module.embed(word[None, :-1]).expand(n, -1, -1)  # (batch, pieces - 1, d)
        states = self.module.run(torch.cat([embeddings, pieces], dim=1))[:, -n_pieces:]
        log_prob = self.module.log_prob(states.flatten(0, 1))  # (batch * pieces, vocabulary)
        return log_prob[range(n * n_pieces), word.repeat(n)].view(n, -1).sum(1)


def next_word_batch(
    lm: CausalLM,
    vocabulary: WordTable,
    prefix: Sequence[str],
    word: str,
    foil: str | None = None,
    seed: int = 0,
) -> TokenBatch:
    """A prefix and a chosen next word, ready for every token method of lib.attribution.

    With a `foil` the question is contrastive: why `word` rather than `foil` (Yin & Neubig 2022)?
    The baseline is the prefix with all its word embeddings zero.

    Raises:
        TouchstoneError: for an empty prefix, and for a word that the model does not know.
    """
    if not len(prefix):
        raise TouchstoneError("the prefix is empty; give at least one word to explain")
    pieces = [None if text is None else _pieces(vocabulary, prefix, text) for text in (word, foil)]
    probe = Probe(lm, vocabulary, torch.nn.Linear(lm.config.embedding, 2), ("-", "-"))
    device, encoded = device_of(lm), probe.encode([prefix])[0]
    ids = torch.tensor([encoded.ids], device=device)
    is_word = torch.tensor([[owner is not None for owner in encoded.word_ids]], device=device)
    with torch.no_grad():
        embeddings = lm.embed(ids)
    score = _NextWordScore(lm, *(None if ids is None else ids.to(device) for ids in pieces))
    return TokenBatch(
        score,
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
    """Which words of a prefix speak for a next word (with a `foil`: rather than for the foil).

    Args:
        lm: from `load_lm` (trained here) or `load_hf_lm` (any causal one of Hugging Face).
        vocabulary: the other half of that pair.
        prefix: the words before the next one.
        word: the next word that is asked about.
        foil: the word that it is held against.
        method: a token method of lib.attribution.METHODS.
        settings: what differs from the method's defaults.
        seed: for methods that draw.

    Returns:
        Columns word and score, a row per word of the prefix. A positive score speaks for `word`;
        those of Integrated Gradients sum to the log-probability minus that of a prefix of zeros.

    Raises:
        TouchstoneError: as `next_word_batch`, and for a method that asks for whole sentences.
    """
    batch = next_word_batch(lm, vocabulary, prefix, word, foil, seed)
    chosen = resolve_method(method)
    if chosen.level != "token":
        raise TouchstoneError(
            f"{method} asks for whole sentences, and a next word has none; choose a method that "
            "reads embeddings, as Integrated Gradients"
        )
    known = {name: value for name, value in chosen.settings(settings).items() if name not in COMMON}
    scores = chosen.function(batch, **known).scores[0].detach().cpu().numpy()
    owners = [None, *vocabulary.owners(prefix)]
    return pd.DataFrame({"word": list(prefix), "score": word_scores(scores, owners, len(prefix))})


def _pieces(vocabulary: WordTable, prefix: Sequence[str], word: str) -> Int[Tensor, "token"]:
    """The ids of a word as it stands after the prefix."""
    ids = vocabulary.encode([*prefix, word])[len(vocabulary.encode(prefix)) :]
    if not ids or vocabulary.ids.get(UNKNOWN) in ids:
        raise TouchstoneError(
            f"the model does not know the word {word!r}; choose a word of its vocabulary"
        )
    return torch.tensor(ids)
