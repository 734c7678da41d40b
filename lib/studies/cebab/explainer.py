"""What an explainer is: fitted on train texts, then asked about changes it sees one side of.

At the end stand the floors, which know nothing of concepts: what the others have to beat.
"""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from .questions import AnyHead, Effects, Questions, Texts


class Explainer(ABC):
    """Anything that estimates the effects of concepts on a model of K classes.

    All are handed the same; each may ignore what it likes, as floors and explainers from labels
    ignore the last layer. A class of one's own says what it learns (`learn`) and what it answers
    (`effects`), and is named in the parameter `explainers` as "module:Mine", or in `EXPLAINERS`.
    """

    def fit(self, train: Texts, head: AnyHead | None, seed: int) -> Self:
        """Learn from train texts.

        Args:
            train: n texts with `gold` labels (n, 4), `predicted` ones (n, 4) and the model's
                `probabilities` (n, K); the other fields are None where nobody has them.
            head: the model's last layer (or layers), which reads `train.embeddings`, or None where
                it is not known.
            seed: of all that is random; the same seed gives the same estimates.

        Returns:
            The explainer itself.

        Raises:
            TouchstoneError: something is missing that it needs; the message says what to hand in.
        """
        self.train, self.head, self.seed = train, head, seed
        self.learn()
        return self

    def learn(self) -> None:  # noqa: B027
        """What is learnt of `train`, `head`, `seed` before the first question; often nothing."""

    @abstractmethod
    def effects(self, questions: Questions) -> Effects:
        """Estimate what each change would do to the model's answer, one side of the pair in sight.

        Args:
            questions: m base texts, each with the number of an aspect, its value `old` and the
                value `new` that it should have. `questions.texts` holds what the model says of the
                base texts; `gold` is empty there.

        Returns:
            (m, K): for each question and class the probability after the change minus the one
            before it, from -1 to 1. Both are distributions, so a row sums to 0.
        """


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
