"""A masked LM as a classifier of gender: explanations of it say what decides a pronoun."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..core.errors import TouchstoneError
from ..language.lexicon import MASK, PRONOUNS, load_lexicon
from .masked_lm import MaskedLM
from .text_model import Encoded, RunsFromEmbeddings

_SLOT_FORMS: Mapping[str, dict[str, str]] = {
    "subject": {"F": "she", "M": "he"},
    "object": {"F": "her", "M": "him"},
    "possessive": {"F": "her", "M": "his"},
    "independent": {"F": "hers", "M": "his"},
    "reflexive": {"F": "herself", "M": "himself"},
}
GenderIds = dict[str, list[int]]


def gender_ids(tokenizer: Any, words: str = "pronouns") -> GenderIds:
    """The vocabulary entries of each gender (F, M).

    Case is folded, and the forms with a leading space are taken.

    Args:
        words: "pronouns" (the eight of Ye et al.), or "identities" (also man, queen, ... by the
            lexicon of the repository).

    Raises:
        TouchstoneError: for other `words`, and where the vocabulary has none of a gender.
    """
    if words not in ("pronouns", "identities"):
        raise TouchstoneError(f"words is {words!r}; write pronouns or identities")
    vocabulary = tokenizer.get_vocab()
    marks = [
        mark
        for mark in "Ġ▁"
        if mark + "he" in vocabulary or sum(p.startswith(mark) for p in vocabulary) > 100
    ]
    lead = marks[0] if marks else ""
    ids: GenderIds = {"F": [], "M": []}
    for piece, i in vocabulary.items():
        gender = gender_of(piece.removeprefix(lead), words) if piece.startswith(lead) else ""
        if gender:
            ids[gender].append(i)
    if empty := [g for g, entries in ids.items() if not entries]:
        raise TouchstoneError(
            f"the vocabulary holds no {words} of gender {empty[0]}; choose another model"
        )
    return {g: sorted(entries) for g, entries in ids.items()}


def gender_of(word: str, words: str = "pronouns") -> str:
    """F, M, or nothing, for a word as a vocabulary writes it.

    >>> gender_of("He"), gender_of("queen"), gender_of("queen", "identities"), gender_of("##he")
    ('M', '', 'F', '')
    """
    if word.lower() in PRONOUNS:
        return PRONOUNS[word.lower()]
    if words != "identities" or not word.isalpha():
        return ""
    entry = load_lexicon().find(word)  # gender and forms
    return entry[0] if entry else ""


def slot_ids(tokenizer: Any, slot: str) -> GenderIds:
    """The entries of the two forms that fit a slot: his and her before a noun, for example."""
    ids = gender_ids(tokenizer)
    names = {i: t.lstrip("Ġ▁").lower() for t, i in tokenizer.get_vocab().items()}
    return {g: [i for i in ids[g] if names[i] == form] for g, form in _SLOT_FORMS[slot].items()}


class GenderAtMask(RunsFromEmbeddings):
    """Classes female and male; the score of male is log P(male) - log P(female) at the mask.

    That of female is its negative. P of a gender is the largest probability of one of its words.
    The mask is found by its embedding, which no method that keeps special tokens alters.
    """

    classes = ("female", "male")
    keeps_typed = True

    def __init__(self, model: MaskedLM, ids: GenderIds | None = None) -> None:
        self.lm, self.module = model, model.module
        self.tokenizer, self.max_length = model.tokenizer, model.max_length
        self.ids = ids or gender_ids(model.tokenizer)

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        """Token ids and word ids; the mask of our tables becomes the model's own."""
        own = {MASK: self.tokenizer.mask_token}
        return self.lm.encode([[own.get(word, word) for word in words] for words in sentences])

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The two scores; the log-probabilities' common term cancels, so the head's scores do."""
        mask_id = torch.tensor([self.tokenizer.mask_token_id], device=embeddings.device)
        distances = (embeddings - self.embed(mask_id)).abs().sum(-1)  # (batch, token)
        at = distances.masked_fill(mask == 0, float("inf")).argmin(1)  # (batch)
        states = self.lm.hidden(embeddings, mask)[torch.arange(len(at), device=at.device), at]
        scores = self.lm.scores(states)  # (batch, vocab)
        margin = scores[:, self.ids["M"]].amax(1) - scores[:, self.ids["F"]].amax(1)
        return torch.stack([-margin, margin], 1)
