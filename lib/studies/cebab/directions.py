"""Explainers that look for concepts among the embeddings.

TCAV and ConceptSHAP find a concept as a direction. INLP and LEACE remove it linearly and ask what
the last layer would say without it. Removing answers one question only, what if the concept were
unknown, and CEBaB scores it on all. With `towards` the removed part is replaced by its mean over
the train texts with the new value (ours).
"""

from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import softmax
from sklearn.linear_model import SGDClassifier

from ...core.errors import TouchstoneError, check_choice
from .explainer import Explainer
from .questions import (
    Effects,
    Questions,
    TrainMeans,
    Vectors,
    need_embeddings,
    need_layers,
    no_train_text,
)
from .reviews import ASPECTS, VALUES


def concept_vector(vectors: Vectors, present: np.ndarray, seed: int) -> Float[np.ndarray, "hidden"]:
    """The unit normal of a linear separator, pointing to where the concept is present (CAV).

    Kim et al. 2018 (arXiv 1711.11279), section 3.2; hinge loss, as released.

    Args:
        vectors: one row a text.
        present: whether the concept is there, one a text.
        seed: of the order in which the texts are gone through.
    """
    if present.all() or not present.any():
        raise TouchstoneError(
            "a concept vector needs texts with and texts without the concept; use more train texts"
        )
    normal = SGDClassifier(alpha=0.01, random_state=seed).fit(vectors, present).coef_[0]
    # A separator that found nothing has the normal zero, and zero has no direction.
    return normal / max(np.linalg.norm(normal), 1e-12)


@dataclass
class TCAV(Explainer):
    """The slope of each class's probability in the direction of a concept.

    CEBaB eq. 9; Kim et al. 2018 (arXiv 1711.11279), eq. 1. One direction for each concept, from
    texts that say nothing of it (unknown) to texts that do (Positive or Negative), so it cannot
    hear what is asked.

    Args:
        towards: the direction from texts with c to texts with c' (ours).
        scaled: that direction times the distance of the two means along it, which gives the slope a
            length, not more (ours: where a softmax is saturated a local slope is no effect).
        as_released: Positive alone against unknown (negative texts are not used, by a slip), with
            the sign turned round; slopes of logits, added over the classes since the gradient is
            never cleared (on a CPU), through tanh: a constant vector, so that its cosine is 1 on
            every pair.
    """

    towards: bool = False
    scaled: bool = False
    as_released: bool = False

    def learn(self) -> None:
        """Nothing yet; directions are found when they are asked for."""
        self.vectors, _ = need_embeddings(self.train, self.head, "TCAV")
        self.directions: dict[tuple[int, str, str], np.ndarray] = {}

    def effects(self, questions: Questions) -> Effects:
        """Slopes at each text's embedding."""
        vectors, head = need_embeddings(questions.texts, self.head, "TCAV")
        changes = zip(questions.aspect, questions.old, questions.new, strict=True)
        directions = np.array([self._direction(*change) for change in changes])
        if not self.as_released:
            return head.slopes(vectors, directions)
        slopes = need_layers(head, "TCAV (as released)").score_slopes(vectors, directions)
        return np.tanh(np.repeat(slopes.sum(1, keepdims=True), slopes.shape[1], axis=1))

    def _direction(self, aspect: int, old: str, new: str) -> Float[np.ndarray, "hidden"]:
        if not (self.towards or self.scaled):
            old, new = "unknown", "Positive" if self.as_released else "Positive or Negative"
        if (aspect, old, new) not in self.directions:
            before, after = (self._vectors_with(aspect, values) for values in (old, new))
            both = np.concatenate([before, after])
            direction = concept_vector(both, np.arange(len(both)) >= len(before), self.seed)
            if self.as_released:
                direction = -direction
            elif self.scaled:
                direction = direction * ((after.mean(0) - before.mean(0)) @ direction)
            self.directions[aspect, old, new] = direction
        return self.directions[aspect, old, new]

    def _vectors_with(self, aspect: int, values: str) -> Vectors:
        rows = np.isin(self.train.gold[:, aspect].astype(str), values.split(" or "))
        if not rows.any():
            raise no_train_text(aspect, values)
        return self.vectors[rows]


@dataclass
class ConceptSHAP(Explainer):
    """The Shapley value of a concept in what concepts can say about the model's answer.

    After Yeh et al. 2020 (arXiv 1910.07969), per text. Each text becomes four numbers, its places
    along the concept vectors (Positive against Negative). For each of the 16 sets of concepts a
    linear layer is fitted that gives the model's answers from these numbers alone, all sets in one
    fit. The Shapley value of a concept says what it adds; taking the concept away subtracts it.
    (The released layers stand in front of the model's last layer, are fitted by gradient steps, and
    see the test ratings; these faults are not copied.)

    Args:
        towards: the value's mean over train texts with the new value, minus the text's own (ours).
        as_released: Shapley values of the logits, softmax, minus 0.5; these add up to 1 - K/2 and
            are no difference of distributions.
    """

    towards: bool = False
    as_released: bool = False

    def learn(self) -> None:
        """Concept vectors, then the 16 layers."""
        train, directions = self.train, []
        vectors, _ = need_embeddings(train, self.head, "ConceptSHAP")
        for labels in train.gold.T:
            judged = np.isin(labels.astype(str), ("Positive", "Negative"))
            is_positive = labels[judged] == "Positive"
            directions.append(concept_vector(vectors[judged], is_positive, self.seed))
        self.directions = np.array(directions)
        places = vectors @ self.directions.T
        # In standard units, so that the decay of the weights treats all concepts alike.
        self.mean, self.spread = places.mean(0), np.maximum(places.std(0), 1e-12)
        places = (places - self.mean) / self.spread
        self.weight, self.bias = fit_subsets(places, train.probabilities)
        self.means = TrainMeans(train.gold, self._values(vectors).swapaxes(0, 1))

    def effects(self, questions: Questions) -> Effects:
        """Minus the Shapley value of the asked concept, or what it becomes at the new value."""
        values = self._values(need_embeddings(questions.texts, self.head, "ConceptSHAP")[0])
        present = values[np.arange(len(questions)), questions.aspect]  # (batch, class)
        if self.as_released:
            return softmax(present, axis=1) - 0.5
        if self.towards:
            return self.means.of(questions.aspect, questions.new) - present
        return -present

    def _values(self, vectors: Vectors) -> Float[np.ndarray, "batch concept class"]:
        places = (vectors @ self.directions.T - self.mean) / self.spread
        # (batch, concept) and (set, concept, class) give (set, batch, class)
        logits = np.einsum("nc,sck->snk", places, self.weight) + self.bias[:, None]
        return shapley_values(logits if self.as_released else softmax(logits, axis=2))


def subsets(n: int = len(ASPECTS)) -> list[tuple[int, ...]]:
    """All sets of n concepts, the empty one first.

    >>> subsets(2)
    [(), (0,), (1,), (0, 1)]
    """
    return [chosen for size in range(n + 1) for chosen in combinations(range(n), size)]


def shapley_values(
    worth: Float[np.ndarray, "step batch class"], n: int = len(ASPECTS)
) -> Float[np.ndarray, "batch concept class"]:
    """Each concept's Shapley value; they add up to the worth of all minus that of none.

    Args:
        worth: of every set, in the order of `subsets`.
        n: how many concepts there are.

    >>> shapley_values(np.array([0.0, 1.0, 2.0, 5.0]).reshape(4, 1, 1), n=2)[0, :, 0].tolist()
    [2.0, 3.0]
    """
    place = {chosen: i for i, chosen in enumerate(subsets(n))}
    values = np.zeros((worth.shape[1], n, worth.shape[2]))
    for concept in range(n):
        for without in (chosen for chosen in place if concept not in chosen):
            share = factorial(len(without)) * factorial(n - len(without) - 1) / factorial(n)
            joined = place[tuple(sorted((*without, concept)))]
            values[:, concept] += share * (worth[joined] - worth[place[without]])
    return values


def fit_subsets(
    places: Float[np.ndarray, "batch concept"], answers: Effects, decay: float = 1e-4
) -> tuple[Float[np.ndarray, "step concept class"], Float[np.ndarray, "step class"]]:
    """For every set of concepts a linear layer and softmax that give the answers: 16 fits at once.

    The problems are convex and share no parameter, so one L-BFGS on the sum of their losses solves
    all of them.

    Args:
        places: what the layers read; a layer reads the concepts of its set alone.
        answers: the model's probabilities.
        decay: the weight of the squared weights in the loss.

    Returns:
        Weights and biases, in the order of `subsets`.
    """
    concepts = range(places.shape[1])
    masks = torch.tensor([[[c in chosen] for c in concepts] for chosen in subsets()]).double()
    x, y = torch.tensor(places, dtype=torch.float64), torch.tensor(answers, dtype=torch.float64)
    weight = torch.zeros(
        len(masks), places.shape[1], answers.shape[1], dtype=torch.float64, requires_grad=True
    )
    # Begins at the mean answer, which for the empty set is the solution.
    bias = y.mean(0).clamp(min=1e-6).log().repeat(len(masks), 1).requires_grad_()
    optimiser = torch.optim.LBFGS(
        [weight, bias], max_iter=200, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
    )

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        logits = torch.einsum("nc,sck->snk", x, weight * masks) + bias[:, None]
        loss = -(y * logits.log_softmax(2)).sum(2).mean(1).sum() + decay * (weight**2).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    return (weight * masks).detach().numpy(), bias.detach().numpy()


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
    # Where the vectors do not vary the covariance has no inverse; nothing is erased there.
    keep = values > values.max() * len(values) * np.finfo(float).eps
    root = np.sqrt(np.where(keep, values, 0.0))
    whiten = (axes * np.where(keep, 1 / np.where(keep, root, 1.0), 0.0)) @ axes.T  # W
    colour = (axes * root) @ axes.T  # W^+
    left, strength, _ = np.linalg.svd(
        whiten @ (centred.T @ centred_labels / len(vectors)), full_matrices=False
    )
    left = left[:, strength > strength.max() * 1e-9]
    return Eraser(colour @ left @ left.T @ whiten, mean)


def fit_inlp(vectors: Vectors, labels: np.ndarray, n_rounds: int = 10, seed: int = 0) -> Eraser:
    """INLP: train a linear classifier, project its directions out, and again.

    Ravfogel et al. 2020 (arXiv 2004.07667), algorithm 1. Each round removes the span of the
    classifier's weight rows (hinge loss, as released).
    """
    basis = np.zeros((vectors.shape[1], 0))  # (hidden, directions)
    for number in range(n_rounds):
        left = vectors - vectors @ basis @ basis.T
        rows = SGDClassifier(alpha=0.01, random_state=seed + number).fit(left, labels).coef_
        rows = rows - rows @ basis @ basis.T
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

    def __post_init__(self) -> None:
        check_choice("the eraser", self.method, ("INLP", "LEACE"))

    def learn(self) -> None:
        """One eraser per aspect, from the gold labels that are values."""
        train = self.train
        vectors, head = need_embeddings(train, self.head, self.method)
        self.erasers = [self._eraser(vectors, labels.astype(str)) for labels in train.gold.T]
        self.parts = TrainMeans(train.gold, [eraser.part(vectors) for eraser in self.erasers])
        layers = need_layers(head, self.method) if self.retuned else None
        self.heads = [
            layers.refit(e.erase(vectors), train.probabilities) if layers else head
            for e in self.erasers
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
