"""Explainers that change the embedding: what would the last layer say without a concept in it?

INLP and LEACE remove a concept linearly. Removing answers one question only, what if the concept
were unknown, and CEBaB scores it on all. With `towards` the removed part is replaced by its mean
over the train texts with the new value (ours).
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from sklearn.linear_model import SGDClassifier

from ...core.errors import TouchstoneError
from .explainer import Explainer
from .head import Head, need_embeddings, refit_head
from .questions import Effects, Questions, TrainMeans, Vectors
from .reviews import VALUES


@dataclass(frozen=True)
class Eraser:
    """An affine map that removes a concept: x - (x - mean) @ removed.T.

    Args:
        removed: what is taken away, a projection.
        mean: of the train vectors, or None for a linear map.

    >>> Eraser(np.diag([1.0, 0.0]), None).erase(np.array([[3.0, 4.0]])).tolist()
    [[0.0, 4.0]]
    """

    removed: Float[np.ndarray, "hidden hidden"]
    mean: Float[np.ndarray, "hidden"] | None

    def erase(self, vectors: Vectors) -> Vectors:
        """The vectors without the concept."""
        return vectors - self.part(vectors)

    def part(self, vectors: Vectors) -> Vectors:
        """What is removed of the vectors."""
        return (vectors if self.mean is None else vectors - self.mean) @ self.removed.T


def fit_leace(vectors: Vectors, labels: Float[np.ndarray, "batch concept"]) -> Eraser:
    """LEACE: of all affine maps after which no linear classifier finds the concept, the nearest.

    Belrose et al. 2023 (arXiv 2306.03819), theorem 4.3. With W the inverse square root of the
    covariance (a pseudo-inverse where it has none) and P the projection onto the columns of
    W cov(x, z): r(x) = x - W^+ P W (x - mean). The authors' package (concept-erasure) gives the
    same without its shrinkage.

    Args:
        vectors: x, one row a text.
        labels: z, one-hot.
    """
    mean, centred_labels = vectors.mean(0), labels - labels.mean(0)
    centred = vectors - mean
    values, axes = np.linalg.eigh(centred.T @ centred / len(vectors))
    keep = values > values.max() * len(values) * np.finfo(float).eps
    root = np.sqrt(np.where(keep, values, 0.0))
    whiten = (axes * np.where(keep, 1 / np.where(keep, root, 1.0), 0.0)) @ axes.T  # W
    colour = (axes * root) @ axes.T  # W^+
    left, strength, _ = np.linalg.svd(
        whiten @ (centred.T @ centred_labels / len(vectors)), full_matrices=False
    )
    left = left[:, strength > strength.max() * 1e-9]
    return Eraser(colour @ left @ left.T @ whiten, mean)


def fit_inlp(
    vectors: Vectors, labels: np.ndarray, n_rounds: int = 10, seed: int = 0, alpha: float = 0.01
) -> Eraser:
    """INLP: train a linear classifier, project its directions out, and again.

    Ravfogel et al. 2020 (arXiv 2004.07667), algorithm 1. Each round removes the span of the
    classifier's weight rows (hinge loss, as released).
    """
    basis = np.zeros((vectors.shape[1], 0))  # (hidden, directions)
    for number in range(n_rounds):
        left = vectors - vectors @ basis @ basis.T
        classifier = SGDClassifier(
            alpha=alpha, max_iter=1000, tol=1e-3, random_state=seed + number
        ).fit(left, labels)
        rows = classifier.coef_ - classifier.coef_ @ basis @ basis.T
        _, strength, directions = np.linalg.svd(rows, full_matrices=False)
        new = directions[strength > 1e-6 * max(strength.max(initial=0.0), 1e-6)]
        basis = np.linalg.qr(np.column_stack([basis, new.T]))[0]
    return Eraser(basis @ basis.T, None)


@dataclass
class Erasure(Explainer):
    """The answer of the last layer without the concept, minus its answer with it.

    CEBaB eq. 10 in embedding space.

    Args:
        method: "INLP" or "LEACE".
        towards: put the mean removed part of the train texts with the new value back in.
        retuned: fit the last layer again on the erased train embeddings, as the definition has it;
            the released code takes five small steps, next to none, which is "none" here.
    """

    method: str = "INLP"
    towards: bool = False
    retuned: bool = False
    erasers: list[Eraser] = field(init=False)
    heads: list[Head] = field(init=False)
    parts: TrainMeans = field(init=False)

    def __post_init__(self) -> None:
        if self.method not in ("INLP", "LEACE"):
            raise TouchstoneError(f"there is no eraser {self.method!r}; choose INLP or LEACE")

    def learn(self) -> None:
        """One eraser per aspect, from the gold labels that are values."""
        train = self.train
        vectors, head = need_embeddings(train, self.head, self.method)
        self.erasers = [self._eraser(vectors, labels.astype(str)) for labels in train.gold.T]
        self.parts = TrainMeans(train.gold, [eraser.part(vectors) for eraser in self.erasers])
        self.heads = [
            refit_head(head, eraser.erase(vectors), train.probabilities) if self.retuned else head
            for eraser in self.erasers
        ]

    def effects(self, questions: Questions) -> Effects:
        """Erase the asked aspect from each text; the same for every change, unless `towards`."""
        vectors, head = need_embeddings(questions.texts, self.head, self.method)
        after = np.empty_like(questions.texts.probabilities)
        for aspect, eraser in enumerate(self.erasers):
            rows = questions.aspect == aspect
            changed = eraser.erase(vectors[rows])
            if self.towards and rows.any():
                changed = changed + self.parts.of(questions.aspect[rows], questions.new[rows])
            after[rows] = self.heads[aspect].probabilities(changed)
        return after - head.probabilities(vectors)

    def _eraser(self, vectors: Vectors, labels: np.ndarray) -> Eraser:
        known = np.isin(labels, VALUES)
        vectors, labels = vectors[known], labels[known]
        if self.method == "LEACE":
            return fit_leace(vectors, (labels[:, None] == np.array(VALUES)).astype(float))
        return fit_inlp(vectors, labels, seed=self.seed)
