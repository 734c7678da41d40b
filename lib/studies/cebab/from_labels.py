"""Explainers that need labels of concepts and the model's answers, and no weights: CONEXP, Approx, S-Learner, concept LIME."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression

from lib.core.errors import TouchstoneError
from lib.studies.cebab.questions import Effects, Head, Questions, Texts, one_hot
from lib.studies.cebab.reviews import ASPECTS, CELLS


@dataclass
class CONEXP:
    """Conditional expectation (CEBaB eq. 7; Goyal et al. 2019): mean answer where C is c', minus that where C is c.

    It does not see the text, and it takes what comes with a value for its effect.
    """

    means: dict[tuple[int, str], np.ndarray] = field(default_factory=dict, init=False)

    def fit(self, train: Texts, head: Head | None, seed: int) -> CONEXP:
        """The mean answer for each aspect and value of the gold labels."""
        self.means = {
            (a, value): train.probabilities[rows].mean(0)
            for a in range(len(ASPECTS))
            for value in CELLS
            if (rows := train.gold[:, a] == value).any()
        }
        return self

    def effects(self, questions: Questions) -> Effects:
        """The difference of two means, whatever the text."""
        return np.array(
            [
                self._mean(a, new) - self._mean(a, old)
                for a, old, new in zip(questions.aspect, questions.old, questions.new, strict=True)
            ]
        )

    def _mean(self, aspect: int, value: str) -> np.ndarray:
        if (aspect, value) not in self.means:
            raise TouchstoneError(
                f"no train text has {ASPECTS[aspect]} {value!r}, so CONEXP has no mean; use more train texts"
            )
        return self.means[aspect, value]


@dataclass
class Approx:
    """Approximate counterfactuals (CEBaB eq. 6): the answer to a train text with C = c' and all else alike, minus the own answer.

    Candidates have the gold value c' of the asked aspect and the base's predicted values of the others; where there is none, those
    that agree on most. `form`: "sample" (one at random, the paper's), "mean" (all of them), "top_k" (the mean of the k whose
    embeddings are most similar by cosine). `match`: "all" aspects, or the "asked" one alone.
    """

    form: str = "mean"
    k: int = 10
    match: str = "all"
    train: Texts | None = field(default=None, init=False)
    seed: int = field(default=0, init=False)
    n_exact: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.form not in ("sample", "mean", "top_k") or self.match not in ("all", "asked"):
            raise TouchstoneError(
                f"Approx has no form {self.form!r} with match {self.match!r}; choose sample, mean or top_k, "
                "and all or asked"
            )

    def fit(self, train: Texts, head: Head | None, seed: int) -> Approx:
        """Keep the train texts."""
        if self.form == "top_k" and train.embeddings is None:
            raise TouchstoneError(
                "Approx with form top_k compares embeddings; hand in embeddings, or choose mean"
            )
        self.train, self.seed = train, seed
        return self

    def effects(self, questions: Questions) -> Effects:
        """One search per different question; questions that agree in aspect, new value and other aspects share it."""
        if self.train is None:
            raise TouchstoneError("Approx has no train texts; call fit first")
        rng = np.random.default_rng(self.seed)
        values = questions.values()
        values[np.arange(len(questions)), questions.aspect] = questions.new
        keys, of = np.unique(
            np.column_stack([questions.aspect.astype(str), values.astype(str)]),
            axis=0,
            return_inverse=True,
        )
        answers, self.n_exact = np.empty((len(questions), self.train.probabilities.shape[1])), 0
        for number, key in enumerate(keys):
            rows = np.flatnonzero(of == number)
            found, exact = self._candidates(int(key[0]), key[1:])
            self.n_exact += len(rows) * exact
            answers[rows] = self._answer(found, questions.texts, rows, rng)
        return answers - questions.texts.probabilities

    def _candidates(self, aspect: int, wanted: np.ndarray) -> tuple[Int[np.ndarray, "batch"], bool]:
        train = self.train
        assert train is not None
        pool = np.flatnonzero(train.gold[:, aspect] == wanted[aspect])
        if not len(pool):
            raise TouchstoneError(
                f"no train text has {ASPECTS[aspect]} {wanted[aspect]!r}; use more train texts"
            )
        if self.match == "asked":
            return pool, True
        others = [a for a in range(len(ASPECTS)) if a != aspect]
        alike = (train.predicted[np.ix_(pool, others)] == wanted[others]).sum(1)
        return pool[alike == alike.max()], bool(alike.max() == len(others))

    def _answer(
        self, found: np.ndarray, texts: Texts, rows: np.ndarray, rng: np.random.Generator
    ) -> Effects:
        train = self.train
        assert train is not None
        if self.form == "sample":
            return train.probabilities[rng.choice(found, len(rows))]
        if self.form == "mean" or len(found) <= self.k:
            return np.tile(train.probabilities[found].mean(0), (len(rows), 1))
        assert texts.embeddings is not None and train.embeddings is not None
        nearness = _unit(texts.embeddings[rows]) @ _unit(train.embeddings[found]).T
        nearest = np.argsort(-nearness, axis=1, kind="stable")[:, : self.k]
        return train.probabilities[found[nearest]].mean(1)


@dataclass
class SLearner:
    """S-Learner (CEBaB eq. 8; Künzel et al. 2019): a logistic regression of the answers on the aspects; its change for c to c'.

    `target`: "hard" (the model's class, the paper's) or "soft" (its probabilities). `known_old`: keep the value of the asked aspect,
    which the question tells; the released code replaces it by a prediction. `minus`: "fitted" subtracts the regression's own
    value at c, "text" the model's actual answer to the text.
    """

    target: str = "hard"
    known_old: bool = True
    minus: str = "fitted"
    model: LogisticRegression | None = field(default=None, init=False)
    n_classes: int = field(default=0, init=False)

    def fit(self, train: Texts, head: Head | None, seed: int) -> SLearner:
        """Fit on the gold labels of train."""
        self.n_classes = train.probabilities.shape[1]
        self.model = fit_answers(one_hot(train.gold), train.probabilities, self.target)
        return self

    def effects(self, questions: Questions) -> Effects:
        """The regression at c' minus the regression at c, or minus the model's answer."""
        before = questions.values(self.known_old)
        after = before.copy()
        after[np.arange(len(questions)), questions.aspect] = questions.new
        own = questions.texts.probabilities if self.minus == "text" else self._answers(before)
        return self._answers(after) - own

    def _answers(self, values: np.ndarray) -> Effects:
        if self.model is None:
            raise TouchstoneError("the S-Learner has no regression; call fit first")
        return answers_of(self.model, one_hot(values), self.n_classes)


@dataclass
class ConceptLIME:
    """LIME on concepts: for each text a logistic regression of its own, train texts weighing less the more aspects differ.

    Weight exp(-d^2 / width^2) with d the Manhattan distance of the twelve one-hot columns, as in the released code, which
    has the explainer without running it. Texts with the same aspects share a regression, so there are at most 81.
    """

    width: float = 4.0
    target: str = "hard"
    train: Texts | None = field(default=None, init=False)

    def fit(self, train: Texts, head: Head | None, seed: int) -> ConceptLIME:
        """Keep the train texts."""
        self.train = train
        return self

    def effects(self, questions: Questions) -> Effects:
        """The local regression at c' minus itself at c."""
        if self.train is None:
            raise TouchstoneError("concept LIME has no train texts; call fit first")
        features, answers = one_hot(self.train.gold), self.train.probabilities
        before = questions.values()
        after = before.copy()
        after[np.arange(len(questions)), questions.aspect] = questions.new
        before, after = one_hot(before), one_hot(after)
        found = np.empty((len(questions), answers.shape[1]))
        places, of = np.unique(before, axis=0, return_inverse=True)
        for number, place in enumerate(places):
            rows = of == number
            distance = np.abs(features - place).sum(1)
            local = fit_answers(
                features, answers, self.target, np.exp(-((distance / self.width) ** 2))
            )
            found[rows] = answers_of(local, after[rows], answers.shape[1]) - answers_of(
                local, before[rows], answers.shape[1]
            )
        return found


def fit_answers(
    features: Float[np.ndarray, "batch concept"],
    answers: Effects,
    target: str,
    weights: Float[np.ndarray, "batch"] | None = None,
) -> LogisticRegression:
    """A logistic regression (scikit-learn's defaults, as released) of a model's answers, hard or soft, on features.

    Soft: each text counts once for every class, weighted by its probability. Texts with equal features are joined first,
    which changes no number and saves most of the time. Raises TouchstoneError where the model gives one class only.
    """
    if target not in ("hard", "soft"):
        raise TouchstoneError(f"the target is 'hard' or 'soft', not {target!r}")
    n_classes = answers.shape[1]
    mass = np.eye(n_classes)[answers.argmax(1)] if target == "hard" else answers
    mass = mass if weights is None else mass * weights[:, None]
    places, of = np.unique(features, axis=0, return_inverse=True)
    joined = np.zeros((len(places), n_classes))
    np.add.at(joined, of, mass)
    at, classes = np.nonzero(joined)
    if len(set(classes.tolist())) < 2:
        raise TouchstoneError(
            "the model answers every train text with one class; there is nothing to explain"
        )
    return LogisticRegression(max_iter=1000).fit(
        places[at], classes, sample_weight=joined[at, classes]
    )


def answers_of(
    model: LogisticRegression, features: Float[np.ndarray, "batch concept"], n_classes: int
) -> Effects:
    """The regression's probabilities for all classes: a class that train never had gets 0 (the released code fails there)."""
    found = np.zeros((len(features), n_classes))
    found[:, model.classes_] = model.predict_proba(features)
    return found


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
