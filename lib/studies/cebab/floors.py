"""Explainers that know nothing of concepts: what the others have to beat."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lib.studies.cebab.questions import Effects, Head, Questions, Texts


@dataclass
class RandomEffects:
    """The difference of two random answers, each uniform numbers that are made to sum to one (CEBaB, Figure 2)."""

    seed: int = field(default=0, init=False)
    n_classes: int = field(default=0, init=False)

    def fit(self, train: Texts, head: Head | None, seed: int) -> RandomEffects:
        """Remember the number of classes."""
        self.seed, self.n_classes = seed, train.probabilities.shape[1]
        return self

    def effects(self, questions: Questions) -> Effects:
        """A new draw for each question."""
        draws = np.random.default_rng(self.seed).random((2, len(questions), self.n_classes))
        draws /= draws.sum(2, keepdims=True)
        return draws[1] - draws[0]


@dataclass
class ZeroEffects:
    """No change ever makes a difference. Its cosine is 1 by definition, and its L2 is its normdiff."""

    n_classes: int = field(default=0, init=False)

    def fit(self, train: Texts, head: Head | None, seed: int) -> ZeroEffects:
        """Remember the number of classes."""
        self.n_classes = train.probabilities.shape[1]
        return self

    def effects(self, questions: Questions) -> Effects:
        """Zeros."""
        return np.zeros((len(questions), self.n_classes))


@dataclass
class NoConcept:
    """The mean answer on train minus the text's own answer: the same for every concept and every change.

    Whatever a text's answer is, that to another text of its group is on average nearer to the mean: probability leaves the
    class where it is now. Every explainer that subtracts the text's own answer has this for nothing.
    """

    mean: np.ndarray = field(default_factory=lambda: np.zeros(0), init=False)

    def fit(self, train: Texts, head: Head | None, seed: int) -> NoConcept:
        """The mean answer."""
        self.mean = train.probabilities.mean(0)
        return self

    def effects(self, questions: Questions) -> Effects:
        """Back to the mean."""
        return self.mean - questions.texts.probabilities
