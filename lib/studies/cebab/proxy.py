"""The Causal Proxy Model in its input form: a student of the model that is told in its input what to imagine (Wu et al. 2022)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np
import torch

from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.models.hf import HFClassifier
from lib.studies.cebab.from_labels import Approx
from lib.studies.cebab.questions import Effects, Head, Questions, Texts
from lib.studies.cebab.reviews import ASPECTS, VALUES
from lib.studies.cebab.upper_layers import upper_parameters
from lib.training.classifier import Settings, Split, fit, token_forward

HELD_OUT = 0.05  # of the rows: they only show the loss, the last epoch is kept
READ_AT_ONCE = 64  # texts; no result depends on it


def with_wish(text: str, aspect: str, value: str) -> list[str]:
    """The words of a text, and at its end what is to be imagined.

    >>> with_wish("Cold soup.", "food", "Positive")
    ['Cold', 'soup.', '|', 'food', 'positive']
    """
    return [*text.split(), "|", aspect, value.lower()]


@dataclass(frozen=True)
class ProxySettings:
    """How a student learns: `fit` for the training, `n_questions` for each train text, and the `n_layers` that learn (from above).

    The paper trains all layers for many epochs and gives each concept and value a new token; here the wish is put in words that
    the encoder knows, for which few epochs suffice.
    """

    fit: Settings = field(default_factory=lambda: Settings(1, 1e-4, 16))
    n_questions: int = 1
    n_layers: int = 2


@dataclass
class CausalProxy:
    """The student's answer to the text and the wish, minus the model's answer to the text (Wu et al. 2022, CPM-IN).

    The student begins as a copy of the explained model and learns two things at once: what the model answers to a train text,
    and, told "food, positive", what the model answers to approximate counterfactuals of this text. The paper draws one of
    them; here the target is their mean, for which the expected loss is the same.
    """

    model: HFClassifier | None = None
    settings: ProxySettings = field(default_factory=ProxySettings)
    student: HFClassifier | None = field(default=None, init=False)

    def fit(self, train: Texts, head: Head | None, seed: int) -> CausalProxy:
        """Train the student on the train texts; the model that is handed in stays as it is."""
        if self.model is None or train.words is None:
            missing = (
                "the explained model, of which the student is a copy"
                if self.model is None
                else "the texts (`words`)"
            )
            raise TouchstoneError(
                f"the Causal Proxy Model needs {missing}; hand in both, or leave it out"
            )
        if train.probabilities.shape[1] != len(self.model.classes):
            raise TouchstoneError(
                f"the model has {len(self.model.classes)} classes and the predictions "
                f"{train.probabilities.shape[1]}; hand in the model that made them"
            )
        self.student = copy.copy(self.model)
        self.student.module = copy.deepcopy(self.model.module)
        asked, wishes = self._wishes(train, seed)
        sentences = [text.split() for text in train.words] + wishes
        targets = torch.tensor(np.concatenate([train.probabilities, asked]), dtype=torch.float32)
        encoded = self.student.encode(sentences)
        order = torch.randperm(
            len(encoded), generator=torch.Generator().manual_seed(seed_for("held out", seed))
        )
        split = Split(
            *order.split([len(order) - (held := max(1, round(HELD_OUT * len(order)))), held])
        )
        lengths = torch.tensor([len(one.ids) for one in encoded])
        fit(
            token_forward(self.student, encoded),
            upper_parameters(self.student, self.settings.n_layers),
            targets,
            lengths,
            split,
            self.settings.fit,
            seed,
            keep="last",
        )
        return self

    def effects(self, questions: Questions) -> Effects:
        """The student reads each different wish once."""
        if self.student is None or questions.texts.words is None:
            raise TouchstoneError(
                "the Causal Proxy Model has no student or no texts; call fit first, and hand in `words`"
            )
        wishes = [
            (text, ASPECTS[a], new)
            for text, a, new in zip(
                questions.texts.words, questions.aspect, questions.new, strict=True
            )
        ]
        different = list(dict.fromkeys(wishes))
        answers = self.student.predict([with_wish(*wish) for wish in different], READ_AT_ONCE)
        place = {wish: i for i, wish in enumerate(different)}
        return answers[[place[wish] for wish in wishes]] - questions.texts.probabilities

    def _wishes(self, train: Texts, seed: int) -> tuple[Effects, list[list[str]]]:
        """For each train text some changes, with the mean answer to its approximate counterfactuals."""
        assert train.words is not None
        rng = np.random.default_rng(seed)
        rows = np.repeat(np.arange(len(train)), self.settings.n_questions)
        aspect = rng.integers(0, len(ASPECTS), len(rows))
        old = train.gold[rows, aspect]
        new = np.array(
            [rng.choice([v for v in VALUES if v != value]) for value in old], dtype=object
        )
        known = np.isin(old.astype(str), VALUES)
        rows, aspect, old, new = rows[known], aspect[known], old[known], new[known]
        asked = Questions(train.take(rows), aspect, old, new)
        answers = Approx("mean").fit(train, None, seed).effects(asked) + asked.texts.probabilities
        return answers, [
            with_wish(train.words[i], ASPECTS[a], v)
            for i, a, v in zip(rows, aspect, new, strict=True)
        ]
