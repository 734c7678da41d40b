"""Explainers that need labels of concepts and the model's answers, and no weights."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import cosine_similarity

from ...core.errors import TouchstoneError, check_choice
from .explainer import Explainer
from .questions import (
    Effects,
    Questions,
    Texts,
    TrainMeans,
    Vectors,
    no_train_text,
    one_hot,
)
from .reviews import ASPECTS


class CONEXP(Explainer):
    """Conditional expectation: the mean answer where C is c', minus that where C is c.

    CEBaB eq. 7; Goyal et al. 2019 (arXiv 1907.07165). It does not see the text, and it takes what
    comes with a value for its effect.
    """

    def effects(self, questions: Questions) -> Effects:
        """The difference of two means, by the gold labels of train, whatever the text."""
        means = TrainMeans(self.train.gold, [self.train.probabilities] * len(ASPECTS))
        return means.of(questions.aspect, questions.new) - means.of(questions.aspect, questions.old)


@dataclass
class Approx(Explainer):
    """Approximate counterfactuals: the answer to a train text with C = c', minus the text's own.

    CEBaB eq. 6. Candidates are train texts with the gold value c' of the asked aspect and the
    base's predicted values of the others; where there is none, those that agree on most.

    Args:
        form: "sample" (one candidate at random, the paper's), "mean" (all of them) or "top_k" (the
            mean of the k whose embeddings are most similar by cosine).
        k: how many candidates top_k takes.
        match: "all" aspects, or the "asked" one alone.
        pool: "all" train texts, or "originals" alone, as the paper says (all, where no original
            has the new value).
    """

    form: str = "mean"
    k: int = 10
    match: str = "all"
    pool: str = "all"

    def __post_init__(self) -> None:
        if self.form not in ("sample", "mean", "top_k") or self.match not in ("all", "asked"):
            raise TouchstoneError(
                f"Approx has no form {self.form!r} with match {self.match!r}; choose sample, mean "
                "or top_k, and all or asked"
            )

    def learn(self) -> None:
        """Nothing; the train texts are looked through when a question comes."""
        if self.pool == "originals" and self.train.is_original is None:
            raise TouchstoneError(
                "Approx from originals needs to know which train texts are; hand in is_original"
            )
        if self.form == "top_k" and self.train.embeddings is None:
            raise TouchstoneError(
                "Approx with form top_k compares embeddings; hand in embeddings, or choose mean"
            )

    def effects(self, questions: Questions) -> Effects:
        """One search per different question: same aspect, new value and values of the others."""
        rng = np.random.default_rng(self.seed)
        # As strings throughout, since rows of an array are compared by one type.
        asked = np.column_stack([questions.aspect.astype(str), questions.changed().astype(str)])
        different, question_of = np.unique(asked, axis=0, return_inverse=True)
        answers = np.empty_like(questions.texts.probabilities)
        for number, (aspect, *wanted) in enumerate(different):
            rows = np.flatnonzero(question_of == number)
            candidates = self._candidates(int(aspect), np.array(wanted))
            answers[rows] = self._answers(candidates, questions.texts, rows, rng)
        return answers - questions.texts.probabilities

    def _candidates(self, aspect: int, wanted: np.ndarray) -> Int[np.ndarray, "batch"]:
        fits = self.train.gold[:, aspect] == wanted[aspect]
        if self.pool == "originals" and (fits & self.train.is_original).any():
            fits &= self.train.is_original
        pool = np.flatnonzero(fits)
        if not len(pool):
            raise no_train_text(aspect, str(wanted[aspect]))
        if self.match == "asked":
            return pool
        others = np.arange(len(ASPECTS)) != aspect
        n_alike = (self.train.predicted[pool][:, others] == wanted[others]).sum(1)
        return pool[n_alike == n_alike.max()]

    def _answers(
        self, candidates: np.ndarray, texts: Texts, rows: np.ndarray, rng: np.random.Generator
    ) -> Effects:
        answers = self.train.probabilities
        if self.form == "sample":
            return answers[rng.choice(candidates, len(rows))]
        if self.form == "mean" or len(candidates) <= self.k:
            return np.tile(answers[candidates].mean(0), (len(rows), 1))
        assert texts.embeddings is not None and self.train.embeddings is not None
        # (rows, candidates)
        nearness = cosine_similarity(texts.embeddings[rows], self.train.embeddings[candidates])
        nearest = np.argsort(-nearness, axis=1, kind="stable")[:, : self.k]
        return answers[candidates[nearest]].mean(1)


@dataclass
class SLearner(Explainer):
    """S-Learner: a logistic regression of the answers on the aspects; its change for c to c'.

    CEBaB eq. 8; Künzel et al. 2019 (arXiv 1706.03461).

    Args:
        target: "hard" (the model's class, the paper's) or "soft" (its probabilities).
        known_old: keep the value of the asked aspect, which the question tells; the released code
            replaces it by a prediction.
        minus: "fitted" subtracts the regression's own value at c, "text" the model's actual answer
            to the text.
    """

    target: str = "hard"
    known_old: bool = True
    minus: str = "fitted"

    def learn(self) -> None:
        """The regression, on the gold labels of train."""
        self.answer = fit_answers(one_hot(self.train.gold), self.train.probabilities, self.target)

    def effects(self, questions: Questions) -> Effects:
        """The regression at c' minus the regression at c, or minus the model's answer."""
        after = self.answer(one_hot(questions.changed()))
        if self.minus == "text":
            return after - questions.texts.probabilities
        return after - self.answer(one_hot(questions.values(self.known_old)))


@dataclass
class ConceptLIME(Explainer):
    """LIME on concepts: a logistic regression around each text, its change for c to c'.

    After Ribeiro et al. 2016 (arXiv 1602.04938). Train texts weigh exp(-d^2 / width^2), with d the
    Manhattan distance of the twelve one-hot columns, as in the released code, which has the
    explainer without running it. Texts with the same aspects share a regression: at most 81.
    """

    width: float = 4.0
    target: str = "hard"

    def effects(self, questions: Questions) -> Effects:
        """The local regression at c' minus itself at c."""
        features, answers = one_hot(self.train.gold), self.train.probabilities
        before, after = one_hot(questions.values()), one_hot(questions.changed())
        effects = np.empty_like(questions.texts.probabilities)
        places, place_of = np.unique(before, axis=0, return_inverse=True)
        for number, place in enumerate(places):
            rows = place_of == number
            weights = np.exp(-((np.abs(features - place).sum(1) / self.width) ** 2))
            answer = fit_answers(features, answers, self.target, weights)
            effects[rows] = answer(after[rows]) - answer(before[rows])
        return effects


def fit_answers(
    features: Vectors,
    answers: Effects,
    target: str,
    weights: Float[np.ndarray, "batch"] | None = None,
) -> Callable[[Vectors], Effects]:
    """A logistic regression of a model's answers on features, with scikit-learn's defaults.

    So it is released. Texts with equal features are joined first, which changes no number and saves
    most of the time.

    Args:
        features: a row a text.
        answers: the model's probabilities.
        target: "hard" (the class with the highest one) or "soft": each text counts once for every
            class, weighted by its probability.
        weights: of the texts.

    Returns:
        The fitted regression: features to the probabilities of all classes. A class that train
        never had gets 0 (the released code fails there).

    Raises:
        TouchstoneError: the model gives one class only.
    """
    check_choice("the target", target, ("hard", "soft"))
    n_classes = answers.shape[1]
    mass = np.eye(n_classes)[answers.argmax(1)] if target == "hard" else answers
    places, place_of = np.unique(features, axis=0, return_inverse=True)
    joined = np.zeros((len(places), n_classes))
    np.add.at(joined, place_of, mass if weights is None else mass * weights[:, None])
    at, classes = np.nonzero(joined)
    if len(set(classes.tolist())) < 2:
        raise TouchstoneError(
            "the model answers every train text with one class; there is nothing to explain"
        )
    regression = LogisticRegression(max_iter=1000)
    regression.fit(places[at], classes, sample_weight=joined[at, classes])

    def answer(features: Vectors) -> Effects:
        # A class without a train text is none of the regression; it keeps its zero.
        probabilities = np.zeros((len(features), n_classes))
        probabilities[:, regression.classes_] = regression.predict_proba(features)
        return probabilities

    return answer
