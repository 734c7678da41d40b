"""The Causal Proxy Model in its input form: a student of the model that is told what to imagine.

Wu et al. 2022 (arXiv 2209.14279).
"""

import copy
from dataclasses import dataclass, field

import numpy as np
import torch

from ...core.errors import TouchstoneError
from ...core.seeds import seed_for
from ...models.hf import HFClassifier
from ...training.classifier import Settings, Split, fit, token_forward
from .explainer import Explainer
from .from_labels import Approx
from .questions import Effects, Questions, Texts
from .reviews import ASPECTS, VALUES
from .upper_layers import upper_parameters

_HELD_OUT = 0.05  # of the rows: they only show the loss, the last epoch is kept
_READ_AT_ONCE = 64  # texts; no result depends on it


def with_wish(text: str, aspect: str, value: str) -> list[str]:
    """The words of a text, and at its end what is to be imagined.

    >>> with_wish("Cold soup.", "food", "Positive")
    ['Cold', 'soup.', '|', 'food', 'positive']
    """
    return [*text.split(), "|", aspect, value.lower()]


@dataclass(frozen=True)
class ProxySettings:
    """How a student learns.

    The paper trains all layers for many epochs and gives each concept and value a new token; here
    the wish is put in words that the encoder knows, for which few epochs suffice.

    Args:
        fit: of the training.
        n_questions: wishes for each train text.
        n_layers: so many layers learn, from above.
    """

    fit: Settings = field(default_factory=lambda: Settings(1, 1e-4, 16))
    n_questions: int = 1
    n_layers: int = 2


@dataclass
class CausalProxy(Explainer):
    """The student's answer to the text and the wish, minus the model's answer to the text (CPM-IN).

    Wu et al. 2022. The student begins as a copy of the explained model and learns two
    things at once: what the model answers to a train text, and, told "food, positive", what the
    model answers to approximate counterfactuals of this text. The paper draws one of them; here the
    target is their mean, for which the expected loss is the same.
    """

    model: HFClassifier | None = None
    settings: ProxySettings = field(default_factory=ProxySettings)
    student: HFClassifier | None = field(default=None, init=False)

    def learn(self) -> None:
        """Train the student on the train texts; the model that is handed in stays as it is."""
        train, seed = self.train, self.seed
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
        imagined, wishes = self._wishes(train, seed)
        targets = np.concatenate([train.probabilities, imagined])
        encoded = self.student.encode([text.split() for text in train.words] + wishes)
        generator = torch.Generator().manual_seed(seed_for("held out", seed))
        order = torch.randperm(len(encoded), generator=generator)
        n_held = max(1, round(_HELD_OUT * len(order)))
        fit(
            token_forward(self.student, encoded),
            upper_parameters(self.student, self.settings.n_layers),
            torch.tensor(targets, dtype=torch.float32),
            torch.tensor([len(text.ids) for text in encoded]),
            Split(*order.split([len(order) - n_held, n_held])),
            self.settings.fit,
            seed,
            keep="last",
        )

    def effects(self, questions: Questions) -> Effects:
        """The student reads each different wish once."""
        texts = questions.texts
        if self.student is None or texts.words is None:
            raise TouchstoneError(
                "the Causal Proxy Model has no student or no texts; call fit first, and hand in "
                "`words`"
            )
        aspects = [ASPECTS[aspect] for aspect in questions.aspect]
        wishes = list(zip(texts.words, aspects, questions.new, strict=True))
        different = list(dict.fromkeys(wishes))
        answers = self.student.predict([with_wish(*wish) for wish in different], _READ_AT_ONCE)
        row_of = {wish: row for row, wish in enumerate(different)}
        return answers[[row_of[wish] for wish in wishes]] - texts.probabilities

    def _wishes(self, train: Texts, seed: int) -> tuple[Effects, list[list[str]]]:
        """For each train text some changes: the mean answer to its matches, and the words."""
        assert train.words is not None
        rng = np.random.default_rng(seed)
        rows = np.repeat(np.arange(len(train)), self.settings.n_questions)
        aspect = rng.integers(0, len(ASPECTS), len(rows))
        old = train.gold[rows, aspect]
        new = [rng.choice([v for v in VALUES if v != value]) for value in old]
        known = np.isin(old.astype(str), VALUES)
        asked = Questions(
            train.take(rows[known]), aspect[known], old[known], np.array(new, dtype=object)[known]
        )
        answers = Approx("mean").fit(train, None, seed).effects(asked) + asked.texts.probabilities
        return answers, [
            with_wish(train.words[row], ASPECTS[a], value)
            for row, a, value in zip(rows[known], asked.aspect, asked.new, strict=True)
        ]
