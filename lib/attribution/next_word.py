"""Why this next word, and not that one: saliency of a next word of any causal language model.

Example: `explain_next_word(model, tokenizer, "the keys to the cabinet", "are", foil="is")`.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from ..core.errors import TouchstoneError
from ..core.seeds import to_device
from ..models.hf_lm import HFLanguageModel, Subwords
from ..models.language_model import UNKNOWN
from ..models.probe import CausalLM, Probe, WordTable
from ..models.text_model import device_of
from .batch import TokenBatch
from .explain import COMMON
from .path_integrals import TO_ONE_PERCENT
from .registry import resolve_method
from .seam import Score, TokenScores, word_scores

_Pieces = Int[Tensor, "token"]
# What a classifier's explanation lets one choose, and here is always so.
_FIXED = {"explained": "log_probability", "normalise_special": False, "precision": "float32"}


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
    lm: CausalLM | PreTrainedModel,
    vocabulary: WordTable | Any,
    prefix: str | Sequence[str],
    word: str,
    foil: str | None = None,
    seed: int = 0,
) -> TokenBatch:
    """A prefix and a chosen next word, ready for every token method of lib.attribution.

    With a `foil` the question is contrastive: why `word` rather than `foil` (Yin & Neubig 2022)?
    The baseline is the prefix with all its word embeddings zero.

    Raises:
        TouchstoneError: for an empty prefix, a word that the model does not know, and a model that
            predicts no next word.
    """
    lm, vocabulary, prefix = *paired(lm, vocabulary), _words(prefix)
    if not prefix:
        raise TouchstoneError("the prefix is empty; give at least one word to explain")
    if wrong := [text for text in (word, foil or "-") if not isinstance(text, str)]:
        raise TouchstoneError(f"{wrong[0]!r} is no word; give the next word, and a foil, as text")
    pieces = [None if text is None else _pieces(vocabulary, prefix, text) for text in (word, foil)]
    probe = Probe(lm, vocabulary, torch.nn.Linear(lm.config.embedding, 2), ("-", "-"))
    device, encoded = device_of(lm), probe.encode([prefix])[0]
    ids = torch.tensor([encoded.ids], device=device)
    is_word = torch.tensor([[owner is not None for owner in encoded.word_ids]], device=device)
    with torch.no_grad():
        embeddings = lm.embed(ids)
    score = _NextWordScore(lm, *(None if ids is None else to_device(ids, device) for ids in pieces))
    return TokenBatch(
        score,
        embeddings,
        torch.ones_like(ids),
        embeddings * ~is_word[..., None],
        is_word,
        (seed,),
    )


def explain_next_word(
    lm: CausalLM | PreTrainedModel,
    vocabulary: WordTable | Any,
    prefix: str | Sequence[str],
    word: str,
    foil: str | None = None,
    method: str = "Integrated Gradients",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Which words of a prefix speak for a next word (with a `foil`: rather than for the foil).

    Args:
        lm: a causal model of transformers, or one from `load_hf_lm` (a folder) or `load_lm`.
        vocabulary: its fast tokenizer, or the other half of that pair.
        prefix: the words before the next one; a string is split at white space.
        word: the next word that is asked about.
        foil: the word that it is held against.
        method: a token method of lib.attribution.METHODS.
        settings: what differs from the method's defaults, and from a gap of 1 % for Integrated
            Gradients. SmoothGrad has a sign with {"times_input": True}.
        seed: for methods that draw.

    Returns:
        Columns word and score, a row per word of the prefix; a positive score speaks for `word`.
        `attrs["delta"]` is by how much the scores of Integrated Gradients (and other complete
        methods) miss their sum, the log-probability minus that of a prefix of zeros.

    Raises:
        TouchstoneError: as `next_word_batch`, and for a method that asks for whole sentences.
    """
    lm, vocabulary, words = *paired(lm, vocabulary), _words(prefix)
    batch = next_word_batch(lm, vocabulary, words, word, foil, seed)
    answer = method_answer(batch, method, settings)
    scores = answer.scores[0].detach().cpu().numpy()
    owners = [None, *vocabulary.owners(words)]
    table = pd.DataFrame({"word": words, "score": word_scores(scores, owners, len(words))})
    table.attrs["delta"] = None if answer.delta is None else answer.delta[0].item()
    table.attrs |= {name: numbers[0].item() for name, numbers in answer.about.items()}
    return table


def paired(lm: Any, vocabulary: Any) -> tuple[CausalLM, WordTable]:
    """A language model and what reads its words; those of transformers get the face of ours."""
    if isinstance(lm, PreTrainedModel):
        lm = HFLanguageModel(lm)
    if isinstance(lm, HFLanguageModel) and not isinstance(vocabulary, WordTable):
        vocabulary = Subwords(vocabulary, lm.n_words)
    if not isinstance(lm, CausalLM) or not isinstance(vocabulary, WordTable):
        raise TouchstoneError(
            f"{type(lm).__name__} and {type(vocabulary).__name__} are no language model and its "
            "words; hand in a causal model of transformers and its tokenizer, or what load_hf_lm "
            "(a folder) or load_lm returns"
        )
    return lm, vocabulary


def _words(prefix: str | Sequence[str]) -> list[str]:
    """The words of a prefix; a string is split at white space."""
    words = prefix.split() if isinstance(prefix, str) else prefix
    if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise TouchstoneError(f"the prefix is {prefix!r}; give a text, or a list of words")
    return list(words)


def method_answer(
    batch: TokenBatch, method: str, settings: Mapping[str, Any] | None
) -> TokenScores:
    """What a method says of next words; a warning where Integrated Gradients end with a larger gap
    than asked.
    """
    chosen = resolve_method(method)
    if chosen.level != "token":
        raise TouchstoneError(
            f"{method} asks for whole sentences, and a next word has none; choose a method that "
            "reads embeddings, as Integrated Gradients"
        )
    settings = dict(settings or {})
    # A method's default is what a classifier's explanation would have, so nothing was asked for.
    usual = {name: (value, chosen.defaults.get(name)) for name, value in _FIXED.items()}
    if unused := [name for name in usual if name in settings and settings[name] not in usual[name]]:
        raise TouchstoneError(
            f"a next word has no setting {unused[0]!r}: its log-probability is explained, word by "
            "word, in the precision that the model was loaded in; leave it out"
        )
    if method == "Integrated Gradients" and not {"n_steps", "rule", "tolerance"} & set(settings):
        settings = TO_ONE_PERCENT | settings
    known = {name: value for name, value in chosen.settings(settings).items() if name not in COMMON}
    answer: TokenScores = chosen.function(batch, **known)
    if answer.delta is not None and known.get("tolerance") is not None:
        told = torch.stack([answer.delta.abs(), batch.change().abs().to(answer.delta.dtype)])
        tolerance = known["tolerance"]
        gap, change = max(zip(*told.tolist()), key=lambda pair: pair[0] - tolerance * pair[1])
        if gap > tolerance * change + 1e-5:
            warnings.warn(
                f"the scores of {method} miss {gap:.3g} of the {change:.3g} that they explain, "
                f"more than the tolerance of {tolerance}; give a larger max_steps "
                "(settings), or explain with Kernel SHAP",
                stacklevel=3,
            )
    return answer


def _pieces(vocabulary: WordTable, prefix: Sequence[str], word: str) -> Int[Tensor, "token"]:
    """The ids of a word as it stands after the prefix."""
    before, whole = vocabulary.encode(prefix), vocabulary.encode([*prefix, word])
    if whole[: len(before)] != before:
        raise TouchstoneError(
            f"the tokenizer reads the end of the prefix in another way before {word!r}, so that "
            "is no next word; choose another word, or a tokenizer that splits at blanks"
        )
    ids = whole[len(before) :]
    if not ids or vocabulary.ids.get(UNKNOWN) in ids:
        raise TouchstoneError(
            f"the model does not know the word {word!r}; choose a word of its vocabulary"
        )
    return torch.tensor(ids)
