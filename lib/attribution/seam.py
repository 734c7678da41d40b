"""The seam of every explanation: a function from (embeddings, mask) to one score per row, for any model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lib.attribution.budget import TokenBudget
from lib.core.errors import TouchstoneError, did_you_mean
from lib.models.text_model import TextModel

if TYPE_CHECKING:
    from lib.attribution.shared import SharedPass

Pick = Callable[[Float[Tensor, "batch class"], Int[Tensor, "batch"]], Float[Tensor, "batch"]]


class Score(Protocol):
    """What is explained: one number per row, differentiable in the word embeddings.

    A plain function will do. Two things may be added to it. `for_rows(rows)` gives the score of chosen rows,
    in that order and perhaps repeatedly, where the score differs from row to row (each row has its own class,
    or its own word to predict): methods that try many inputs per row need it. `module` is the network behind
    the score: Guided Backprop and DeepLift change how its activations are differentiated.
    """

    def __call__(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch"]:
        """The scores of a batch; mask is 1 for tokens and 0 for padding."""


@dataclass(frozen=True)
class Row:
    """A sentence to explain: its words, the class whose score is explained, and a seed for methods that draw."""

    row_id: str
    sentence_idx: int
    target: int
    words: list[str]
    seed: int


@dataclass(frozen=True)
class TokenBatch:
    """Sequences of equal length that are explained together.

    `reference` holds the embeddings of the same sequences with their words replaced by padding; `is_word`
    marks the tokens that belong to a word (not special, not prompt); `seeds` has one number a row, for
    methods that draw. `budget` says how much may go through the model at once, and `shared` holds what methods
    on the same rows have in common (`lib.attribution.shared`).
    """

    score: Score
    embeddings: Float[Tensor, "batch token hidden"]
    mask: Int[Tensor, "batch token"]
    reference: Float[Tensor, "batch token hidden"]
    is_word: Bool[Tensor, "batch token"]
    seeds: tuple[int, ...]
    budget: TokenBudget = field(default_factory=TokenBudget, compare=False)
    shared: SharedPass | None = field(default=None, compare=False, repr=False)

    def row(self, i: int) -> TokenBatch:
        """One row as a batch of its own."""
        only = slice(i, i + 1)
        score = score_of_rows(self.score, torch.tensor([i], device=self.mask.device))
        return TokenBatch(
            score,
            self.embeddings[only],
            self.mask[only],
            self.reference[only],
            self.is_word[only],
            self.seeds[only],
            self.budget,
        )


@dataclass(frozen=True)
class TokenScores:
    """One signed score per token, and per row the completeness gap of methods that have one (else None).

    `about` holds further numbers, one a row, by the names in `table.ABOUT`: steps or samples used, error estimates.
    """

    scores: Float[Tensor, "batch token"]
    delta: Float[Tensor, "batch"] | None = None
    about: Mapping[str, Float[Tensor, "batch"]] = field(default_factory=dict)


@dataclass(frozen=True)
class WordScores:
    """What a word method may return in place of its list of scores: the same, and further numbers, one a row."""

    scores: list[Float[np.ndarray, "token"]]
    about: Mapping[str, list[float]] = field(default_factory=dict)


def score_of_rows(score: Score, rows: Int[Tensor, "batch"]) -> Score:
    """The score of chosen rows; a plain function scores all rows alike."""
    return score.for_rows(rows) if hasattr(score, "for_rows") else score


def network_of(score: Score) -> nn.Module:
    """The network behind a score, for the methods that reach into it."""
    module = getattr(score, "module", None)
    if not isinstance(module, nn.Module):
        raise TouchstoneError(
            "this method changes how a network is differentiated, and the score does not tell its "
            "network; set the function's attribute `module` to the torch module behind it"
        )
    return module


def _class_logit(
    logits: Float[Tensor, "batch class"], targets: Int[Tensor, "batch"]
) -> Float[Tensor, "batch"]:
    return logits.gather(1, targets[:, None])[:, 0]


def _class_probability(
    logits: Float[Tensor, "batch class"], targets: Int[Tensor, "batch"]
) -> Float[Tensor, "batch"]:
    return _class_logit(logits.softmax(-1), targets)


def _class_log_probability(
    logits: Float[Tensor, "batch class"], targets: Int[Tensor, "batch"]
) -> Float[Tensor, "batch"]:
    return _class_logit(logits.log_softmax(-1), targets)


def _class_margin(
    logits: Float[Tensor, "batch class"], targets: Int[Tensor, "batch"]
) -> Float[Tensor, "batch"]:
    """Why this class rather than the next best one: the difference of their logits."""
    others = logits.scatter(1, targets[:, None], -torch.inf)
    return _class_logit(logits, targets) - others.amax(1)


def _own_probability(
    logits: Float[Tensor, "batch class"], targets: Int[Tensor, "batch"]
) -> Float[Tensor, "batch"]:
    return _class_logit(logits, targets).sigmoid()


def _own_log_probability(
    logits: Float[Tensor, "batch class"], targets: Int[Tensor, "batch"]
) -> Float[Tensor, "batch"]:
    return torch.nn.functional.logsigmoid(_class_logit(logits, targets))


EXPLAINED: dict[str, Pick] = {
    "logit": _class_logit,
    "probability": _class_probability,
    "log_probability": _class_log_probability,
    "margin": _class_margin,
}
INDEPENDENT: dict[str, Pick] = {
    "logit": _class_logit,
    "probability": _own_probability,
    "log_probability": _own_log_probability,
}


@dataclass(frozen=True)
class ClassScore:
    """A classifier's score of each row's own class; made by `class_score`."""

    model: TextModel
    targets: Int[Tensor, "batch"]
    pick: Pick

    def __call__(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch"]:
        """The score of each row's class."""
        return self.pick(self.model.logits(embeddings, mask), self.targets)

    def of_logits(self, logits: Float[Tensor, "batch class"]) -> Float[Tensor, "batch"]:
        """The score of each row's class, from logits that were computed elsewhere."""
        return self.pick(logits, self.targets)

    def for_rows(self, rows: Int[Tensor, "batch"]) -> ClassScore:
        """The score of chosen rows, each with its own class."""
        return ClassScore(self.model, self.targets[rows], self.pick)

    @property
    def module(self) -> nn.Module:
        """The network behind the score."""
        return self.model.module


def class_score(
    model: TextModel, targets: Int[Tensor, "batch"] | list[int], explained: str = "logit"
) -> Score:
    """The score that a classifier gives to each row's target class.

    "logit", "probability" (softmax), "log_probability", or "margin": the logit minus the largest of the other classes. Where
    each class has its own yes or no (a multi-label model) the probability is the sigmoid, and there is no margin.

    Raises TouchstoneError for a class that the model does not have, for an unknown `explained`, and for one that the model's
    outputs do not allow: a single number has no probability.
    """
    known = INDEPENDENT if getattr(model, "independent", False) else EXPLAINED
    if explained not in EXPLAINED:
        raise TouchstoneError(f"explained is {explained!r}{did_you_mean(explained, EXPLAINED)}")
    if explained not in known:
        raise TouchstoneError(
            f"the classes of this model are independent of each other, so there is no {explained} between them; "
            f"choose explained from {', '.join(known)}"
        )
    if len(model.classes) == 1 and known is EXPLAINED and explained != "logit":
        raise TouchstoneError(
            f"the model has one output, a number and not a class among others, so it has no {explained}; give the "
            "setting explained='logit', or, if its sigmoid is a probability, set module.config.problem_type = "
            "'multi_label_classification'"
        )
    device = next((p.device for p in model.module.parameters()), torch.device("cpu"))
    classes = torch.as_tensor(targets, dtype=torch.long, device=device)
    if wrong := [c for c in classes.tolist() if not 0 <= c < len(model.classes)]:
        names = ", ".join(f"{i} {name}" for i, name in enumerate(model.classes))
        raise TouchstoneError(f"there is no class {wrong[0]}; the model knows {names}")
    return cast(Score, ClassScore(model, classes, known[explained]))
