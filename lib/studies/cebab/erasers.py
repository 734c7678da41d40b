"""Explainers that change the embedding: what would the model's last layer say if a concept could not be read from it?

INLP and LEACE remove a concept linearly. Removing answers one question only, what if the concept were unknown, and CEBaB scores
it on all. With `towards` the removed part is replaced by its mean over the train texts with the new value (ours).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from sklearn.linear_model import SGDClassifier

from lib.core.errors import TouchstoneError
from lib.studies.cebab.questions import Effects, Head, Questions, Texts
from lib.studies.cebab.reviews import ASPECTS, VALUES

Vectors = Float[np.ndarray, "batch hidden"]
Matrix = Float[np.ndarray, "hidden hidden"]


@dataclass(frozen=True)
class Eraser:
    """An affine map that removes a concept: x - (x - mean) @ removed.T, or without a mean where that is None.

    >>> Eraser(np.diag([1.0, 0.0]), None).erase(np.array([[3.0, 4.0]])).tolist()
    [[0.0, 4.0]]
    """

    removed: Matrix
    mean: Float[np.ndarray, "hidden"] | None

    def erase(self, vectors: Vectors) -> Vectors:
        """The vectors without the concept."""
        return vectors - self.part(vectors)

    def part(self, vectors: Vectors) -> Vectors:
        """What is removed of the vectors."""
        return (vectors if self.mean is None else vectors - self.mean) @ self.removed.T


def fit_leace(vectors: Vectors, labels: Float[np.ndarray, "batch concept"]) -> Eraser:
    """LEACE (Belrose et al. 2023, theorem 4.3): of all affine maps after which no linear classifier finds the concept, the one
    that moves the vectors least.

    With W the inverse square root of the covariance (a pseudo-inverse where it has none) and P the projection onto the columns
    of W cov(x, z): r(x) = x - W^+ P W (x - mean). The authors' package (concept-erasure) gives the same without its shrinkage.
    """
    mean, centred_labels = vectors.mean(0), labels - labels.mean(0)
    centred = vectors - mean
    values, axes = np.linalg.eigh(centred.T @ centred / len(vectors))
    keep = values > values.max() * len(values) * np.finfo(float).eps
    root = np.sqrt(np.where(keep, values, 0.0))
    whiten = (axes * np.where(keep, 1 / np.where(keep, root, 1.0), 0.0)) @ axes.T
    colour = (axes * root) @ axes.T
    left, strength, _ = np.linalg.svd(
        whiten @ (centred.T @ centred_labels / len(vectors)), full_matrices=False
    )
    left = left[:, strength > strength.max() * 1e-9]
    return Eraser(colour @ left @ left.T @ whiten, mean)


def fit_inlp(
    vectors: Vectors, labels: np.ndarray, n_rounds: int = 10, seed: int = 0, alpha: float = 0.01
) -> Eraser:
    """INLP (Ravfogel et al. 2020): train a linear classifier, project its directions out, and again.

    Each round removes the span of the classifier's weight rows (hinge loss, as released). Stops where nothing is left.
    """
    basis = np.zeros((vectors.shape[1], 0))
    for number in range(n_rounds):
        left = vectors - vectors @ basis @ basis.T
        classifier = SGDClassifier(
            alpha=alpha, max_iter=1000, tol=1e-3, random_state=seed + number
        ).fit(left, labels)
        rows = classifier.coef_ - classifier.coef_ @ basis @ basis.T
        _, strength, directions = np.linalg.svd(rows, full_matrices=False)
        found = directions[strength > 1e-6 * max(strength.max(initial=0.0), 1e-6)]
        basis = np.linalg.qr(np.column_stack([basis, found.T]))[0]
    return Eraser(basis @ basis.T, None)


def refit_head(head: Head, vectors: Vectors, answers: Effects, strength: float = 1e-3) -> Head:
    """The last layer trained again (from where it is) to give the model's answers from other vectors; a little decay.

    Cross-entropy with the soft answers, which is convex, by L-BFGS.
    """
    weight, bias = (
        torch.tensor(part, dtype=torch.float64, requires_grad=True)
        for part in (head.weight, head.bias)
    )
    x, y = torch.tensor(vectors, dtype=torch.float64), torch.tensor(answers, dtype=torch.float64)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = (
            -(y * (x @ weight.T + bias).log_softmax(1)).sum(1).mean() + strength * (weight**2).sum()
        )
        loss.backward()
        return loss

    optimiser.step(closure)
    return Head(weight.detach().numpy(), bias.detach().numpy())


@dataclass
class Erasure:
    """The answer of the last layer without the concept, minus its answer with it (CEBaB eq. 10 in embedding space).

    `method`: "INLP" or "LEACE". `towards`: put the mean removed part of the train texts with the new value back in. `retuned`: fit
    the last layer again on the erased train embeddings, as the definition has it; the released code takes five small steps,
    next to none, which is "none" here.
    """

    method: str = "INLP"
    towards: bool = False
    retuned: bool = False
    head: Head | None = field(default=None, init=False)
    erasers: list[Eraser] = field(default_factory=list, init=False)
    heads: list[Head] = field(default_factory=list, init=False)
    parts: list[dict[str, np.ndarray]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.method not in ("INLP", "LEACE"):
            raise TouchstoneError(f"there is no eraser {self.method!r}; choose INLP or LEACE")

    def fit(self, train: Texts, head: Head | None, seed: int) -> Erasure:
        """One eraser per aspect, from the gold labels that are values."""
        vectors, self.head = need_embeddings(train, head, self.method)
        self.erasers, self.heads, self.parts = [], [], []
        for aspect in range(len(ASPECTS)):
            labels = train.gold[:, aspect]
            known = np.isin(labels.astype(str), VALUES)
            eraser = self._eraser(vectors[known], labels[known].astype(str), seed)
            self.erasers.append(eraser)
            parts = eraser.part(vectors)
            self.parts.append(
                {
                    value: parts[labels == value].mean(0)
                    for value in VALUES
                    if (labels == value).any()
                }
            )
            erased = eraser.erase(vectors)
            self.heads.append(
                refit_head(self.head, erased, train.probabilities) if self.retuned else self.head
            )
        return self

    def effects(self, questions: Questions) -> Effects:
        """Erase the asked aspect from each text's embedding; the same for every change, unless `towards`."""
        vectors, head = need_embeddings(questions.texts, self.head, self.method)
        found = np.empty_like(questions.texts.probabilities)
        for aspect, eraser in enumerate(self.erasers):
            rows = np.flatnonzero(questions.aspect == aspect)
            changed = eraser.erase(vectors[rows])
            if self.towards:
                changed = changed + np.array(
                    [self._part(aspect, new) for new in questions.new[rows]]
                ).reshape(changed.shape)
            found[rows] = self.heads[aspect].probabilities(changed) - head.probabilities(
                vectors[rows]
            )
        return found

    def _part(self, aspect: int, value: str) -> np.ndarray:
        if value not in self.parts[aspect]:
            raise TouchstoneError(
                f"no train text has {ASPECTS[aspect]} {value!r}; use more train texts"
            )
        return self.parts[aspect][value]

    def _eraser(self, vectors: Vectors, labels: np.ndarray, seed: int) -> Eraser:
        if self.method == "LEACE":
            return fit_leace(vectors, (labels[:, None] == np.array(VALUES)).astype(float))
        return fit_inlp(vectors, labels, seed=seed)


def need_embeddings(texts: Texts, head: Head | None, name: str) -> tuple[Vectors, Head]:
    """The embeddings and the head, or an error that says which one is missing."""
    if texts.embeddings is None or head is None:
        missing = "embeddings" if texts.embeddings is None else "a linear head"
        raise TouchstoneError(
            f"{name} needs {missing}; hand in the vectors that the model's last layer reads, and that layer"
        )
    return texts.embeddings.astype(float), head
