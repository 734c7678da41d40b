"""The seam of every explanation: a function from (embeddings, mask) to one score per row.

For any model. A classifier's score of each row's class is made by `class_score`; other scores are
subclasses of `Score`. What comes out is a score per token (`TokenScores`, made of a vector per
token by `aggregate`) and at the end a score per word (`word_scores`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..core.errors import TouchstoneError, did_you_mean
from ..core.seeds import to_device
from ..models.text_model import TextModel

# From the logits of all classes to what is explained of each; a row's own class is picked last.
_Pick = Callable[[Float[Tensor, "batch class"]], Float[Tensor, "batch class"]]


class Score:
    """What is explained: one number per row, differentiable in the word embeddings.

    It is made of a plain function of (embeddings, mask), with an attribute `module` where its
    network is to be known: `TokenBatch` takes one through `score_from`. Or a subclass defines
    `logits`, and whatever else differs from the defaults here.

    Attributes:
        module: the network behind the score, for methods that change how it is differentiated.
        pick: how the score is read from `logits`; scores of one pass with the same `pick` have the
            same gradients. None: `logits` gives the score itself.
    """

    module: nn.Module | None = None
    pick: _Pick | None = None

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.function, self.module = function, getattr(function, "module", None)

    def __call__(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch"]:
        """The scores of a batch; mask is 1 for tokens and 0 for padding."""
        return self.of_logits(self.logits(embeddings, mask))

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch ..."]:
        """What a pass of the model gives: what `of_logits` reads the scores from."""
        return self.function(embeddings, mask)

    def of_logits(self, logits: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch"]:
        """The scores, from logits that were computed before; by default these are the scores."""
        return logits

    def for_rows(self, rows: Int[Tensor, "batch"]) -> "Score":
        """The score of chosen rows, in that order and perhaps repeatedly.

        To be defined where rows differ in what is asked of them (each has a class of its own, or a
        word of its own to predict): methods that try many inputs per row call it.
        """
        return self

    @property
    def rows_alike(self) -> bool:
        """Whether `logits` treats all rows alike, so that equal inputs need only one pass."""
        return type(self).for_rows is Score.for_rows

    def network(self) -> nn.Module:
        """The network behind the score; TouchstoneError where the score does not tell it."""
        if not isinstance(self.module, nn.Module):
            raise TouchstoneError(
                "this method changes how a network is differentiated, and the score does not tell "
                "its network; set the function's attribute `module` to the torch module behind it"
            )
        return self.module


def score_from(score: Score | Callable[[Tensor, Tensor], Tensor]) -> Score:
    """A score as it is, or a plain function as a score.

    Raises:
        TouchstoneError: for an object that has rows of its own (`for_rows`) and is no `Score`.
    """
    if isinstance(score, Score):
        return score
    if hasattr(score, "for_rows"):
        raise TouchstoneError(
            f"{type(score).__name__} has for_rows, but is no Score of lib.attribution.seam; "
            "make it a subclass"
        )
    return Score(score)


def gradient_of(
    values: Float[Tensor, "batch"], inputs: Float[Tensor, "..."], retain_graph: bool = False
) -> Float[Tensor, "..."]:
    """The gradient of scores in their inputs: of each row its own, since no row sees another.

    Raises:
        TouchstoneError: the scores have none, as those of a forward pass without gradients.
    """
    if not values.requires_grad:
        raise TouchstoneError(
            "the model has no gradient in its word embeddings (its forward pass keeps none), which "
            "a gradient method needs; take Occlusion, LIME or Kernel SHAP"
        )
    return torch.autograd.grad(values.sum(), inputs, retain_graph=retain_graph)[0]


@dataclass(frozen=True)
class Row:
    """A sentence to explain: its words, the target class, and a seed for methods that draw."""

    row_id: str
    sentence_idx: int
    target: int
    words: list[str]
    seed: int


@dataclass(frozen=True)
class TokenScores:
    """One signed score per token, and per row the completeness gap (or None).

    `about` holds further numbers, one a row, by the names in `table.ABOUT`: steps or samples used,
    error estimates.
    """

    scores: Float[Tensor, "batch token"]
    delta: Float[Tensor, "batch"] | None = None
    about: Mapping[str, Float[Tensor, "batch"]] = field(default_factory=dict)


@dataclass(frozen=True)
class WordScores:
    """Word scores, and further numbers, one a row: what a word method may return."""

    scores: list[Float[np.ndarray, "token"]]
    about: Mapping[str, list[float]] = field(default_factory=dict)


_AGGREGATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda vectors: vectors.sum(-1),
    "l1": lambda vectors: vectors.abs().sum(-1),
    "l2": lambda vectors: vectors.norm(dim=-1),
}


def aggregate(
    vectors: Float[Tensor, "batch token hidden"], how: str
) -> Float[Tensor, "batch token"]:
    """One score per token from its vector: "sum" (signed), "l1" (sum of sizes) or "l2" (length).

    No method sums a bare gradient by default: its signed sum is exactly zero wherever a LayerNorm
    follows the embeddings, for that does not see a constant added to all components.

    >>> import torch
    >>> aggregate(torch.tensor([[[3.0, -4.0]]]), "l2").tolist()
    [[5.0]]
    """
    if how not in _AGGREGATIONS:
        raise TouchstoneError(f"aggregation is {how!r}{did_you_mean(how, _AGGREGATIONS)}")
    return _AGGREGATIONS[how](vectors).detach()  # (batch, tokens)


def word_scores(
    token_scores: Float[np.ndarray, "token"],
    word_ids: Sequence[int | None],
    n_words: int,
    normalise_special: bool = False,
) -> Float[np.ndarray, "token"]:
    """One score per word: the signed sum over its sub-words (GECOBench, section 3.3.3).

    Sub-words are told by the tokenizer's own word numbers, never by their letters. Special tokens
    are left out. A word without a token (a lone space, say) scores 0. With `normalise_special` the
    order of the released code is followed: sizes first, divided by their sum over all tokens with
    CLS and SEP, and only then the sums over sub-words.

    >>> word_scores(np.array([9.0, 1.0, -2.0, 3.0, 9.0]), [None, 0, 1, 1, None], n_words=2).tolist()
    [1.0, 1.0]
    """
    scores = np.asarray(token_scores, dtype=float)
    if normalise_special:
        # CLS and SEP take part in the sum here, and are dropped only afterwards, as released.
        sizes = np.abs(scores)
        scores = sizes / sizes.sum() if sizes.sum() > 0 else sizes
    inside = [i for i, word in enumerate(word_ids) if word is not None]
    owners = np.array([word_ids[i] for i in inside], dtype=int)
    # A count with weights: a word of several pieces gets the sum of theirs.
    return np.bincount(owners, scores[inside], minlength=n_words)


def _margin(logits: Float[Tensor, "batch class"]) -> Float[Tensor, "batch class"]:
    """Why this class rather than the next best one: the difference of their logits."""
    itself = torch.eye(logits.shape[-1], dtype=torch.bool, device=logits.device)
    # (batch, class, class): without the class itself, the largest is the next best.
    others = logits[:, None].expand(-1, len(itself), -1).masked_fill(itself, -torch.inf)
    return logits - others.amax(-1)


# Where one class excludes the others, and where each class has its own yes or no.
_EXPLAINED: dict[str, _Pick] = {
    "logit": Tensor.contiguous,  # as they are
    "probability": partial(torch.softmax, dim=-1),
    "log_probability": partial(torch.log_softmax, dim=-1),
    "margin": _margin,
}
_INDEPENDENT: dict[str, _Pick] = {
    "logit": Tensor.contiguous,
    "probability": torch.sigmoid,
    "log_probability": nn.functional.logsigmoid,
}


class ClassScore(Score):
    """A classifier's score of each row's own class; made by `class_score`."""

    pick: _Pick
    rows_alike = True  # the classes differ from row to row, the class scores do not

    def __init__(self, model: TextModel, targets: Int[Tensor, "batch"], pick: _Pick) -> None:
        self.model, self.module = model, model.module
        self.targets, self.pick = targets, pick

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The model's class scores."""
        return self.model.logits(embeddings, mask)

    def of_logits(self, logits: Float[Tensor, "batch class"]) -> Float[Tensor, "batch"]:
        """The score of each row's class."""
        return self.pick(logits).gather(1, self.targets[:, None])[:, 0]

    def for_rows(self, rows: Int[Tensor, "batch"]) -> "ClassScore":
        """The score of chosen rows, each with its own class."""
        return ClassScore(self.model, self.targets[rows], self.pick)


def class_score(
    model: TextModel,
    targets: Int[Tensor, "batch"] | list[int],
    explained: str = "logit",
    device: torch.device | None = None,
) -> ClassScore:
    """The score that a classifier gives to each row's target class.

    Where each class has its own yes or no (a multi-label model) the probability is the sigmoid.

    Args:
        model: the classifier.
        targets: a class number per row.
        explained: "logit", "probability" (softmax), "log_probability", or "margin", the logit minus
            the largest of the other classes.
        device: where the logits will lie; None: where the model is.

    Raises:
        TouchstoneError: for a class that the model does not have, for an unknown `explained`, and
            for one that the model's outputs do not allow: a single number has no probability, and
            classes that are independent of each other have no margin.
    """
    known = _INDEPENDENT if getattr(model, "independent", False) else _EXPLAINED
    if explained not in _EXPLAINED:
        raise TouchstoneError(f"explained is {explained!r}{did_you_mean(explained, _EXPLAINED)}")
    if explained not in known:
        raise TouchstoneError(
            "the classes of this model are independent of each other, so there is no "
            f"{explained} between them; choose explained from {', '.join(known)}"
        )
    if len(model.classes) == 1 and known is _EXPLAINED and explained != "logit":
        raise TouchstoneError(
            "the model has one output, a number and not a class among others, so it has no "
            f"{explained}; give the setting explained='logit', or, if its sigmoid is a "
            "probability, set module.config.problem_type = 'multi_label_classification'"
        )
    classes = torch.as_tensor(targets, dtype=torch.long)
    # Looked at before they go to the device, which would have to be waited for.
    if wrong := [c for c in classes.tolist() if not 0 <= c < len(model.classes)]:
        names = ", ".join(f"{i} {name}" for i, name in enumerate(model.classes))
        raise TouchstoneError(f"there is no class {wrong[0]}; the model knows {names}")
    if device is None:
        device = next((p.device for p in model.module.parameters()), torch.device("cpu"))
    return ClassScore(model, to_device(classes, device), known[explained])
