"""What explainers are given: texts with a model's answers, its last layer, and questions.

A question shows one side of an edit pair. Four aspects are numbered in the order of ASPECTS; their
values are those of VALUES.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from ...core.errors import TouchstoneError
from .reviews import ASPECTS, VALUES

Effects = Float[np.ndarray, "batch class"]
Vectors = Float[np.ndarray, "batch hidden"]
TOLERANCE = 1e-3  # how far from 1 probabilities may sum: published ones have four decimals


@dataclass(frozen=True)
class Texts:
    """Texts as an explainer sees them, row by row.

    Args:
        ids: text_id.
        gold: what people said of the aspects, (batch, 4), values or other cells of a label.
        predicted: what an aspect classifier says, (batch, 4), values.
        probabilities: the model's answers.
        embeddings: the vectors that the model's last layer reads, or None.
        words: the texts themselves, or None.
        without: vectors of encoders that have unlearnt a concept, one layer for each of ASPECTS,
            and last those of an encoder that has unlearnt none (`lib.studies.cebab.encoders`).
        is_original: whether a text is a review that nobody has edited, or None.
    """

    ids: np.ndarray
    gold: np.ndarray
    predicted: np.ndarray
    probabilities: Effects
    embeddings: Vectors | None = None
    words: np.ndarray | None = None
    without: Float[np.ndarray, "concept batch hidden"] | None = None
    is_original: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Int[np.ndarray, "batch"]) -> Texts:
        """The texts of some rows; a row may be taken more than once."""
        return Texts(
            self.ids[rows],
            self.gold[rows],
            self.predicted[rows],
            self.probabilities[rows],
            None if self.embeddings is None else self.embeddings[rows],
            None if self.words is None else self.words[rows],
            None if self.without is None else self.without[:, rows],
            None if self.is_original is None else self.is_original[rows],
        )


@dataclass(frozen=True)
class Questions:
    """What would change if an aspect of these texts had another value? No answer is in here.

    Args:
        texts: the base sides: their predictions and predicted aspects, never their gold labels.
        aspect: the number of the asked aspect, one a text.
        old: its value in the text, c.
        new: the value that it should have instead, c'.
    """

    texts: Texts
    aspect: Int[np.ndarray, "batch"]
    old: np.ndarray
    new: np.ndarray

    def __len__(self) -> int:
        return len(self.aspect)

    def values(self, known_old: bool = True) -> np.ndarray:
        """The predicted values of the base texts, (batch, 4); the asked one known, by default."""
        return self._with(self.old) if known_old else self.texts.predicted.copy()

    def changed(self) -> np.ndarray:
        """The predicted values of the base texts, (batch, 4), the asked one as it should be."""
        return self._with(self.new)

    def _with(self, asked: np.ndarray) -> np.ndarray:
        values = self.texts.predicted.copy()
        values[np.arange(len(self)), self.aspect] = asked
        return values


def ask(pairs: pd.DataFrame, texts: Texts) -> Questions:
    """The questions of edit pairs; the counterfactual is not looked at.

    Args:
        pairs: base_id, aspect, old, new.
        texts: all base texts.
    """
    rows = pd.Index(texts.ids).get_indexer(pairs["base_id"])
    if (rows < 0).any():
        raise TouchstoneError(
            f"pair {pairs['base_id'].iloc[int(np.argmax(rows < 0))]} ... has no text; hand in all "
            "base texts"
        )
    base = texts.take(rows)
    return Questions(
        # With the gold labels of its edits in sight an explainer could look the answer up.
        replace(base, gold=np.full_like(base.gold, ""), is_original=None),
        pd.Index(ASPECTS).get_indexer(pairs["aspect"]),
        pairs["old"].to_numpy(object),
        pairs["new"].to_numpy(object),
    )


def one_hot(values: np.ndarray) -> Float[np.ndarray, "batch concept"]:
    """Twelve columns, three per aspect in the order of VALUES; a cell that is none of these is 000.

    >>> one_hot(np.array([["Positive", "unknown", "", "Negative"]], dtype=object)).astype(int)
    array([[0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0]])
    """
    is_it = values[:, :, None] == np.array(VALUES, dtype=object)  # (batch, aspect, value)
    return is_it.reshape(len(values), -1).astype(float)


class TrainMeans:
    """The mean of some quantity over the train texts with a value of an aspect.

    Args:
        gold: the labels of the train texts, (batch, 4).
        quantity: for each aspect the rows that are averaged, (batch, any).
    """

    def __init__(self, gold: np.ndarray, quantity: Sequence[np.ndarray]) -> None:
        self._means = {
            (aspect, value): rows[gold[:, aspect] == value].mean(0)
            for aspect, rows in enumerate(quantity)
            for value in set(gold[:, aspect])
        }

    def of(self, aspects: Iterable[int], values: Iterable[str]) -> np.ndarray:
        """The means for aspects and values, a row each; refuses what no train text has."""
        try:
            return np.array([self._means[key] for key in zip(aspects, values, strict=True)])
        except KeyError as error:
            raise no_train_text(*error.args[0]) from None


def no_train_text(aspect: int, value: str) -> TouchstoneError:
    """The error of an explainer that is asked about a value that it has never seen."""
    return TouchstoneError(f"no train text has {ASPECTS[aspect]} {value!r}; use more train texts")


_NEVER = -30.0  # the bias of a class without a label: a probability of nothing


class AnyHead(ABC):
    """What stands above the vectors that are explained: the part of a model that answers.

    `Head` is one linear layer; `lib.studies.cebab.heads` has two layers, and functions.
    """

    @abstractmethod
    def probabilities(self, embeddings: Vectors) -> Effects:
        """The model's answers for embeddings, (batch, class)."""

    @abstractmethod
    def slopes(self, embeddings: Vectors, directions: Vectors) -> Effects:
        """The slope of each probability at each embedding, in a direction of its own."""


class LayeredHead(AnyHead):
    """A head whose layers are known: a softmax of class scores, and it can be fitted again."""

    @abstractmethod
    def score_slopes(self, embeddings: Vectors, directions: Vectors) -> Effects:
        """The slope of each class score, before the softmax."""

    @abstractmethod
    def refit(self, embeddings: Vectors, answers: Effects) -> Self:
        """The head trained on from where it is, to give the answers from these embeddings."""

    def slopes(self, embeddings: Vectors, directions: Vectors) -> Effects:
        """Of the softmax: p_k times how far the score's slope is above the mean slope."""
        slopes = self.score_slopes(embeddings, directions)
        answers = self.probabilities(embeddings)
        return answers * (slopes - (answers * slopes).sum(1, keepdims=True))


@dataclass(frozen=True)
class Head(LayeredHead):
    """A model's last layer: probabilities = softmax(embedding @ weight.T + bias).

    >>> Head(np.eye(2), np.zeros(2)).probabilities(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """

    weight: Float[np.ndarray, "class hidden"]
    bias: Float[np.ndarray, "class"]

    def probabilities(self, embeddings: Vectors) -> Effects:
        """The model's answers for embeddings, (batch, class)."""
        return softmax(embeddings @ self.weight.T + self.bias, axis=1)

    def score_slopes(self, embeddings: Vectors, directions: Vectors) -> Effects:
        """The same at every embedding."""
        return directions @ self.weight.T

    def refit(self, embeddings: Vectors, answers: Effects) -> Head:
        """See `refit_head`."""
        return refit_head(self, embeddings, answers)


def fit_head(
    vectors: Vectors, labels: Int[np.ndarray, "batch"], n_classes: int, penalty: float = 0.1
) -> Head:
    """A linear classifier on frozen vectors: logistic regression.

    Args:
        vectors: of length one, one row a text.
        labels: the class of each text, counted from 0.
        n_classes: how many classes there are; one that no label has gets a probability of nothing.
        penalty: the inverse of scikit-learn's C.
    """
    fitted = LogisticRegression(C=1 / penalty, max_iter=2000).fit(vectors, labels)
    weight, bias = np.zeros((n_classes, vectors.shape[1])), np.full(n_classes, _NEVER)
    weight[fitted.classes_], bias[fitted.classes_] = fitted.coef_, fitted.intercept_
    if len(fitted.classes_) == 2:  # scikit-learn keeps one row for two classes, the second's
        weight[fitted.classes_[0]], bias[fitted.classes_[0]] = 0.0, 0.0
    return Head(weight, bias)


def refit_head(head: Head, vectors: Vectors, answers: Effects, strength: float = 1e-3) -> Head:
    """The last layer trained on from where it is, to give the model's answers from other vectors.

    Cross-entropy with the soft answers plus `strength` times the squared weights, which is convex,
    by L-BFGS.
    """
    parts = (head.weight, head.bias)
    return Head(*fit_again(parts, lambda x, w, b: x @ w.T + b, vectors, answers, strength))


def fit_again(
    parts: Sequence[np.ndarray],
    scores: Callable[..., torch.Tensor],
    vectors: Vectors,
    answers: Effects,
    strength: float = 1e-3,
) -> list[np.ndarray]:
    """Parameters trained on from where they are, as `refit_head` says.

    Args:
        parts: weights (two axes; only these are decayed) and biases.
        scores: of vectors and the parts as tensors, (batch, class), before the softmax.
        vectors: what the lowest layer reads.
        answers: what the softmax is to give.
        strength: of the decay.
    """
    # In double precision, for a line search compares losses that hardly differ.
    fitted = [torch.tensor(part, dtype=torch.float64, requires_grad=True) for part in parts]
    x, y = torch.tensor(vectors, dtype=torch.float64), torch.tensor(answers, dtype=torch.float64)
    optimiser = torch.optim.LBFGS(fitted, max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        log_p = scores(x, *fitted).log_softmax(1)  # (batch, class)
        size = sum((part**2).sum() for part in fitted if part.ndim == 2)
        loss = -(y * log_p).sum(1).mean() + strength * size
        loss.backward()
        return loss

    optimiser.step(closure)
    return [part.detach().numpy() for part in fitted]


def need_embeddings(texts: Texts, head: AnyHead | None, name: str) -> tuple[Vectors, AnyHead]:
    """The embeddings and the head that an explainer needs.

    Raises:
        TouchstoneError: one of them is missing; the message says which.
    """
    if texts.embeddings is None or head is None:
        raise TouchstoneError(
            f"{name} needs {'embeddings' if texts.embeddings is None else 'a head'}; hand in the "
            "vectors that the model's last layer (or layers) read, and these layers"
        )
    return texts.embeddings.astype(float), head


def need_layers(head: AnyHead, name: str) -> LayeredHead:
    """The head, whose layers an explainer fits again or takes the class scores of.

    Raises:
        TouchstoneError: it is a function.
    """
    if not isinstance(head, LayeredHead):
        raise TouchstoneError(
            f"{name} needs the layers of the head, and a function hides them; hand in weights and "
            "biases, or leave this explainer out"
        )
    return head


def check_head(texts: Texts, head: AnyHead) -> None:
    """Refuse a head that does not make the predictions: explainers would explain another model."""
    vectors, head = need_embeddings(texts, head, "a check of the last layer")
    made = head.probabilities(vectors)
    if made.shape != texts.probabilities.shape:
        raise TouchstoneError(
            f"the head has {made.shape[1]} classes and the predictions have "
            f"{texts.probabilities.shape[1]}; hand in both of one model"
        )
    off = np.abs(made - texts.probabilities).max(1)
    if not off.max() <= 10 * TOLERANCE:
        raise TouchstoneError(
            f"text {texts.ids[int(off.argmax())]!r}: the head's answer to its vector is off its "
            f"prediction by {off.max():.3f}; hand in what the layers of the head read (a dense "
            "layer with its activation below the last is one of them), these layers, and "
            "probabilities"
        )
