"""Explainers that look for concepts as directions among the embeddings: TCAV and ConceptSHAP."""

from dataclasses import dataclass, field
from itertools import combinations
from math import factorial

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import softmax
from sklearn.linear_model import SGDClassifier

from ...core.errors import TouchstoneError
from .explainer import Explainer
from .head import need_embeddings
from .questions import (
    Effects,
    Questions,
    TrainMeans,
    Vectors,
    no_train_text,
)
from .reviews import ASPECTS


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
    classifier = SGDClassifier(alpha=0.01, max_iter=1000, tol=1e-3, random_state=seed)
    normal = classifier.fit(vectors, present).coef_[0]
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
    directions: dict[tuple[int, str, str], np.ndarray] = field(init=False)

    def learn(self) -> None:
        """Nothing yet; directions are found when they are asked for."""
        need_embeddings(self.train, self.head, "TCAV")
        self.directions = {}

    def effects(self, questions: Questions) -> Effects:
        """Slopes at each text's embedding."""
        vectors, head = need_embeddings(questions.texts, self.head, "TCAV")
        changes = zip(questions.aspect, questions.old, questions.new, strict=True)
        directions = np.array([self._direction(*change) for change in changes])
        slopes = directions @ head.weight.T  # of the logits, (batch, class)
        if self.as_released:
            return np.tanh(np.repeat(slopes.sum(1, keepdims=True), slopes.shape[1], axis=1))
        answers = head.probabilities(vectors)
        return answers * (slopes - (answers * slopes).sum(1, keepdims=True))

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
        assert self.train.embeddings is not None
        return self.train.embeddings[rows].astype(float)


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
    directions: Float[np.ndarray, "concept hidden"] = field(init=False)
    centre: tuple[np.ndarray, np.ndarray] = field(init=False)
    layers: tuple[np.ndarray, np.ndarray] = field(init=False)
    means: TrainMeans = field(init=False)

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
        self.centre = places.mean(0), np.maximum(places.std(0), 1e-12)
        self.layers = fit_subsets(self._places(vectors), train.probabilities)
        values = self._values(vectors)
        self.means = TrainMeans(train.gold, [values[:, i] for i in range(len(ASPECTS))])

    def effects(self, questions: Questions) -> Effects:
        """Minus the Shapley value of the asked concept, or what it becomes at the new value."""
        assert questions.texts.embeddings is not None
        values = self._values(questions.texts.embeddings.astype(float))
        present = values[np.arange(len(questions)), questions.aspect]  # (batch, class)
        if self.as_released:
            return softmax(present, axis=1) - 0.5
        if self.towards:
            return self.means.of(questions.aspect, questions.new) - present
        return -present

    def _places(self, vectors: Vectors) -> Float[np.ndarray, "batch concept"]:
        mean, spread = self.centre
        return (vectors @ self.directions.T - mean) / spread

    def _values(self, vectors: Vectors) -> Float[np.ndarray, "batch concept class"]:
        weight, bias = self.layers
        # (batch, concept) and (set, concept, class) give (set, batch, class)
        logits = np.einsum("nc,sck->snk", self._places(vectors), weight) + bias[:, None]
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
    masks = torch.zeros(len(subsets()), places.shape[1], 1, dtype=torch.float64)
    for i, chosen in enumerate(subsets()):
        masks[i, list(chosen)] = 1
    x, y = torch.tensor(places, dtype=torch.float64), torch.tensor(answers, dtype=torch.float64)
    weight = torch.zeros(
        len(masks), places.shape[1], answers.shape[1], dtype=torch.float64, requires_grad=True
    )
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
