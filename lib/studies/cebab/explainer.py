"""What an explainer is: fitted on train texts, then asked about changes it sees one side of."""

from abc import ABC, abstractmethod
from typing import Self

from .head import Head
from .questions import Effects, Questions, Texts


class Explainer(ABC):
    """Anything that estimates the effects of concepts on a model of K classes.

    All are handed the same; each may ignore what it likes, as floors and explainers from labels
    ignore the last layer. A class of one's own says what it learns (`learn`) and what it answers
    (`effects`), and joins the list as `EXPLAINERS["Mine"] = Entry(Mine, "ours")`.
    """

    train: Texts
    head: Head | None
    seed: int

    def fit(self, train: Texts, head: Head | None, seed: int) -> Self:
        """Learn from train texts.

        Args:
            train: n texts with `gold` labels (n, 4), `predicted` ones (n, 4) and the model's
                `probabilities` (n, K); the other fields are None where nobody has them.
            head: the model's last layer, which reads `train.embeddings`, or None where its weights
                are not known.
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
