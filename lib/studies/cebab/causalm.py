"""CausaLM: an encoder that has unlearnt a concept, and what the model would say if it read with such an encoder.

Feder et al. 2021 (arXiv 2005.13407): a masked language model goes on learning its words, while an adversary reads the treated
concept from its states and the reversed gradient takes from the states what the adversary reads; a second head keeps a control
concept readable. CEBaB's released code has no reversal: it subtracts the adversary's loss, so that its head, too, learns to be
wrong, without a bound.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.models.masked_lm import MaskedLM
from lib.studies.cebab.erasers import refit_head
from lib.studies.cebab.questions import Effects, Head, Questions, Texts
from lib.studies.cebab.reviewers import fit_head, sentence_vectors, words_of
from lib.studies.cebab.reviews import ASPECTS, VALUES
from lib.studies.cebab.upper_layers import check_depth
from lib.training.masked_lm import Batch, MaskedSettings, SecondLoss, fit_masked_lm

IGNORED = -100  # cross-entropy's mark for a text whose label is no value
PACE = 100  # how many times faster than the encoder the heads of the concepts learn
PENALTY = 3e-5  # of the new last layers; the vectors have length one


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradient, None


def reverse_gradient(x: Float[Tensor, "..."], strength: float) -> Float[Tensor, "..."]:
    """The same numbers, whose gradient comes back times minus `strength` (Ganin et al. 2016).

    >>> x = torch.ones(2, requires_grad=True)
    >>> reverse_gradient(x, 0.5).sum().backward()
    >>> x.grad.tolist()
    [-0.5, -0.5]
    """
    found: Tensor = _Reverse.apply(x, strength)
    return found


def control_of(aspect: str) -> str:
    """The concept that is to stay readable: food, and service where food is treated (the released scripts' choice)."""
    return "service" if aspect == "food" else "food"


def concept_labels(values: Sequence[str]) -> Int[Tensor, "batch"]:
    """The number of each value in VALUES; what is no value ("no majority", not annotated) is left out of the loss."""
    return torch.tensor([VALUES.index(v) if v in VALUES else IGNORED for v in values])


def concept_losses(
    labels: Sequence[Int[Tensor, "batch"]], starts: Sequence[Head], strength: float
) -> SecondLoss:
    """Two linear heads on the mean of a text's states (of length one): the treated concept behind a reversal, the control without.

    `starts`: where the heads begin. A head that has yet to learn a concept pushes the states about without taking anything away;
    one that reads it from the first step does not. For the same reason the heads learn PACE times faster than the encoder.
    """
    heads = nn.ModuleList([nn.Linear(*reversed(start.weight.shape)) for start in starts])
    for head, start in zip(heads, starts, strict=True):
        head.load_state_dict(
            {
                name: torch.tensor(part) / PACE
                for name, part in (("weight", start.weight), ("bias", start.bias))
            }
        )

    def loss(batch: Batch) -> Tensor:
        weight = batch.mask.unsqueeze(-1).to(batch.hidden.dtype)
        mean = F.normalize((batch.hidden * weight).sum(1), dim=-1)
        heads.to(mean.device)
        sides = (reverse_gradient(mean, strength), mean)
        return sum(
            (
                _cross_entropy(PACE * head(side), known[batch.rows].to(mean.device))
                for head, side, known in zip(heads, sides, labels, strict=True)
            ),
            torch.zeros((), device=mean.device),
        )

    return SecondLoss(loss, list(heads.parameters()))


def unlearn(
    model: MaskedLM,
    texts: Sequence[str],
    values: np.ndarray,
    aspect: str,
    settings: MaskedSettings,
    strength: float,
    seed: int,
) -> pd.DataFrame:
    """Train a masked LM further, in place, until the aspect is hard to read from it; returns the curve of `fit_masked_lm`.

    `values`: the gold labels of the texts, a column for each of ASPECTS.
    """
    if aspect not in ASPECTS:
        raise TouchstoneError(
            f"there is no aspect {aspect!r} to unlearn; choose from {', '.join(ASPECTS)}"
        )
    labels = [
        concept_labels(values[:, ASPECTS.index(name)]) for name in (aspect, control_of(aspect))
    ]
    if any(len(known[known != IGNORED].unique()) < 2 for known in labels):
        raise TouchstoneError(
            f"the train texts have fewer than two values of {aspect} or of {control_of(aspect)}, so nothing can be "
            "unlearnt; use more train texts"
        )
    vectors = sentence_vectors(model, texts)
    starts = [
        fit_head(vectors[known != IGNORED], known[known != IGNORED].numpy(), len(VALUES))
        for known in labels
    ]
    return fit_masked_lm(
        model,
        model.encode(words_of(texts)),
        [],
        settings,
        seed,
        concept_losses(labels, starts, strength),
    )


def vectors_without(
    base: MaskedLM,
    train: Sequence[str],
    values: np.ndarray,
    texts: Sequence[str],
    settings: MaskedSettings,
    strength: float,
    seed: int,
) -> Float[np.ndarray, "concept batch hidden"]:
    """The vectors of texts by an encoder without each of ASPECTS, and last by `base`, which has unlearnt nothing.

    Each encoder is a copy of `base` that goes on learning the words of the train texts, with the adversary (`unlearn`).
    """
    found = []
    for aspect in ASPECTS:
        model = copy.deepcopy(base)
        unlearn(model, train, values, aspect, settings, strength, seed_for("unlearn", aspect, seed))
        found.append(sentence_vectors(model, texts))
    return np.array([*found, sentence_vectors(base, texts)])


def shorten(model: MaskedLM, n_layers: int) -> MaskedLM:
    """Keep the lowest layers of a masked LM, in place: a smaller encoder that reads the same words."""
    stack = check_depth(model.module, n_layers, least=1)
    del stack[n_layers:]
    model.module.config.num_hidden_layers = n_layers
    return model


@dataclass
class CausaLM:
    """The answer of a last layer over an encoder without the concept, minus the answer with it (CEBaB eq. 10).

    Each encoder gets a last layer of its own, fitted to the model's answers on the train texts. What is subtracted is the answer
    of the *explained* model. `as_released`: the answer of another encoder that has unlearnt nothing, with its own last layer, so
    that the explained model's answer to the text is not looked at (the encoders are those trained with the reversal here, too). `nothing`:
    the answer over the encoder that has unlearnt nothing, minus the model's: a floor, since no concept was taken away. Taking a
    concept away is the same for every change.
    """

    as_released: bool = False
    nothing: bool = False
    heads: list[Head] = field(default_factory=list, init=False)

    def fit(self, train: Texts, head: Head | None, seed: int) -> CausaLM:
        """One last layer for each encoder."""
        without = need_vectors(train)
        n_classes = train.probabilities.shape[1]
        start = Head(
            np.zeros((n_classes, without.shape[2])),
            np.log(np.maximum(train.probabilities.mean(0), 1e-6)),
        )
        self.heads = [
            refit_head(start, vectors.astype(float), train.probabilities, PENALTY)
            for vectors in without
        ]
        return self

    def effects(self, questions: Questions) -> Effects:
        """The same answer for every new value of the asked aspect."""
        without = need_vectors(questions.texts)
        found = np.empty_like(questions.texts.probabilities)
        for aspect in range(len(ASPECTS)):
            rows, encoder = questions.aspect == aspect, -1 if self.nothing else aspect
            found[rows] = self.heads[encoder].probabilities(without[encoder][rows])
        return found - (
            self.heads[-1].probabilities(without[-1])
            if self.as_released
            else questions.texts.probabilities
        )


def need_vectors(texts: Texts) -> Float[np.ndarray, "concept batch hidden"]:
    """The vectors without each concept, or an error that says what is missing."""
    if texts.without is None or len(texts.without) != len(ASPECTS) + 1:
        raise TouchstoneError(
            f"CausaLM needs the vectors of {len(ASPECTS) + 1} encoders, one without each of {', '.join(ASPECTS)} "
            "and one without none; hand in `without`"
        )
    return texts.without


def _cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    known = labels != IGNORED
    return F.cross_entropy(scores[known], labels[known]) if known.any() else scores.sum() * 0
