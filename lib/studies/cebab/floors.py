"""Explainers that know nothing of concepts: what the others have to beat."""

import numpy as np

from .explainer import Explainer
from .questions import Effects, Questions


class RandomEffects(Explainer):
    """The difference of two random answers, which sum to one each (CEBaB, Figure 2)."""

    def effects(self, questions: Questions) -> Effects:
        """A new draw for each question."""
        draws = np.random.default_rng(self.seed).random((2, *questions.texts.probabilities.shape))
        draws /= draws.sum(2, keepdims=True)
        return draws[1] - draws[0]


class ZeroEffects(Explainer):
    """No change ever makes a difference. Its cosine is 1 by definition, its L2 is its normdiff."""

    def effects(self, questions: Questions) -> Effects:
        """Zeros."""
        return np.zeros_like(questions.texts.probabilities)


class NoConcept(Explainer):
    """The mean answer on train minus the text's own: the same for every concept and every change.

    Whatever a text's answer is, that to another text of its group is on average nearer to the mean:
    probability leaves the class where it is now. Every explainer that subtracts the text's own
    answer has this for nothing.
    """

    def effects(self, questions: Questions) -> Effects:
        """Back to the mean."""
        return self.train.probabilities.mean(0) - questions.texts.probabilities
