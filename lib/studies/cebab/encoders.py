"""Explainers that train an encoder: CausaLM and the Causal Proxy Model.

CausaLM (Feder et al. 2021, arXiv 2005.13407) asks what the model would say if it read with an
encoder that has unlearnt a concept: a masked language model goes on learning its words, while an
adversary reads the treated concept from its states and the reversed gradient takes from the states
what the adversary reads; a second head keeps a control concept readable. CEBaB's released code has
no reversal: it subtracts the adversary's loss, so that its head, too, learns to be wrong, without a
bound.

The Causal Proxy Model in its input form (Wu et al. 2022, arXiv 2209.14279) is a student of the
model that is told what to imagine.
"""

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...core.errors import TouchstoneError, check_choice
from ...core.seeds import seed_for
from ...models.hf import HFClassifier
from ...models.masked_lm import MaskedLM
from ...models.text_model import BATCH, device_of, lengths_of
from ...training.classifier import Settings, Split, fit, token_forward
from ...training.masked_lm import Batch, MaskedSettings, SecondLoss, fit_masked_lm
from .explainer import Explainer
from .from_labels import Approx
from .questions import Effects, Head, Questions, Texts, fit_head, refit_head
from .reviewers import sentence_vectors, words_of
from .reviews import ASPECTS, VALUES
from .upper_layers import check_depth, upper_parameters

PACE = 100  # how many times faster than the encoder the heads of the concepts learn
_IGNORED = -100  # cross-entropy's mark for a text whose label is no value
_PENALTY = 3e-5  # of the new last layers; the vectors have length one
_HELD_OUT = 0.05  # of the student's rows: they only show the loss, the last epoch is kept


def reverse_gradient(x: Float[Tensor, "..."], strength: float) -> Float[Tensor, "..."]:
    """The same numbers, whose gradient comes back times minus `strength`.

    Ganin et al. 2016 (arXiv 1505.07818).

    >>> x = torch.ones(2, requires_grad=True)
    >>> reverse_gradient(x, 0.5).sum().backward()
    >>> x.grad.tolist()
    [-0.5, -0.5]
    """
    # A view, so that the hook turns the gradient of this use alone.
    same = x.view_as(x)
    if same.requires_grad:
        same.register_hook(lambda gradient: -strength * gradient)
    return same


def concept_labels(values: Sequence[str]) -> Int[Tensor, "batch"]:
    """The number of each value in VALUES; what is no value is left out of the loss."""
    return torch.tensor([VALUES.index(v) if v in VALUES else _IGNORED for v in values])


def concept_losses(
    labels: Sequence[Int[Tensor, "batch"]], starts: Sequence[Head], strength: float
) -> SecondLoss:
    """The losses of two linear heads: the treated concept behind a reversal, the control without.

    They read the mean of a text's states, of length one. They learn PACE times faster than the
    encoder: a head that has yet to learn a concept pushes the states about without taking anything
    away; one that reads it from the first step does not.

    Args:
        labels: of the treated concept and of the control (`concept_labels`), one a text.
        starts: where the two heads begin.
        strength: how strongly the first one's gradient is reversed, lambda.
    """
    heads = nn.ModuleList([nn.Linear(*reversed(start.weight.shape)) for start in starts])
    for head, start in zip(heads, starts, strict=True):
        # Adam moves a number by about the learning rate; times PACE, in `loss`, it moves faster.
        head.load_state_dict({k: torch.tensor(v) / PACE for k, v in asdict(start).items()})

    def loss(batch: Batch) -> Tensor:
        # Of length one, so that the sum over tokens serves as the mean, (batch, hidden).
        mean = F.normalize((batch.hidden * batch.mask.unsqueeze(-1)).sum(1), dim=-1)
        heads.to(mean.device)
        total = torch.zeros((), device=mean.device)
        sides = (reverse_gradient(mean, strength), mean)
        for head, side, of_text in zip(heads, sides, labels, strict=True):
            asked = of_text[batch.rows].to(mean.device)
            # A sum, divided here: the mean over a batch without any value would be no number.
            missed = F.cross_entropy(PACE * head(side), asked, reduction="sum")
            total = total + missed / (asked != _IGNORED).sum().clamp(min=1)
        return total

    return SecondLoss(loss, list(heads.parameters()))


def unlearn(
    model: MaskedLM,
    texts: Sequence[str],
    values: np.ndarray,
    aspect: str,
    settings: MaskedSettings,
    strength: float,
    seed: int,
) -> pd.DataFrame:
    """Train a masked LM further, in place, until the aspect is hard to read from it.

    Args:
        model: the masked language model.
        texts: what it reads.
        values: the gold labels of the texts, a column for each of ASPECTS.
        aspect: the treated concept.
        settings: of the training.
        strength: how strongly the adversary's gradient is reversed, lambda.
        seed: of the training.

    Returns:
        The curve of `fit_masked_lm`.
    """
    check_choice("the aspect to unlearn", aspect, ASPECTS)
    control = "service" if aspect == "food" else "food"  # as released
    labels = [concept_labels(values[:, ASPECTS.index(name)]) for name in (aspect, control)]
    is_known = [numbers != _IGNORED for numbers in labels]
    # With a single value there is nothing to tell apart, and no head to begin with.
    if any(len(numbers[known].unique()) < 2 for numbers, known in zip(labels, is_known)):
        raise TouchstoneError(
            f"the train texts have fewer than two values of {aspect} or of {control}, so nothing "
            "can be unlearnt; use more train texts"
        )
    vectors = sentence_vectors(model, texts)
    starts = [
        fit_head(vectors[known], numbers[known].numpy(), len(VALUES))
        for numbers, known in zip(labels, is_known)
    ]
    losses = concept_losses(labels, starts, strength)
    return fit_masked_lm(model, model.encode(words_of(texts)), [], settings, seed, losses)


def vectors_without(
    base: MaskedLM,
    train: Sequence[str],
    values: np.ndarray,
    parts: Sequence[Sequence[str]],
    settings: MaskedSettings,
    strength: float,
    seed: int,
) -> Float[np.ndarray, "concept batch hidden"]:
    """The vectors of texts by encoders without each of ASPECTS, and last by `base` as it is.

    Each encoder is a copy of `base` that goes on learning the words of the train texts, with the
    adversary. The arguments are those of `unlearn`; the texts of `parts` are read afterwards, part
    by part, so that no part's vectors depend on another one.
    """

    def read(model: MaskedLM) -> Float[np.ndarray, "batch hidden"]:
        return np.concatenate([sentence_vectors(model, texts) for texts in parts])

    vectors = []
    for aspect in ASPECTS:
        # Each aspect begins anew: what one encoder has lost must still be there for the next.
        model = copy.deepcopy(base)
        unlearn(model, train, values, aspect, settings, strength, seed_for("unlearn", aspect, seed))
        vectors.append(read(model))
    return np.array([*vectors, read(base)])


def shorten(model: MaskedLM, n_layers: int) -> MaskedLM:
    """Keep the lowest layers of a masked LM, in place: a smaller encoder of the same words."""
    stack = check_depth(model.module, n_layers, least=1)
    del stack[n_layers:]
    model.module.config.num_hidden_layers = n_layers
    return model


@dataclass
class CausaLM(Explainer):
    """The answer of a last layer over an encoder without the concept, minus the answer with it.

    CEBaB eq. 10; Feder et al. 2021. Each encoder gets a last layer of its own, fitted to the
    model's answers on the train texts. What is subtracted is the answer of the *explained* model.
    Taking a concept away is the same for every change.

    Args:
        as_released: subtract the answer of an encoder that has unlearnt nothing, with its own last
            layer, so that the explained model's answer to the text is not looked at (the encoders
            are those trained with the reversal here, too).
        nothing: the answer over the encoder that has unlearnt nothing, minus the model's: a floor,
            since no concept was taken away.
    """

    as_released: bool = False
    nothing: bool = False

    def learn(self) -> None:
        """One last layer for each encoder."""
        without, answers = _need_vectors(self.train), self.train.probabilities
        # A class that is never answered would begin at the logarithm of zero.
        bias = np.log(np.maximum(answers.mean(0), 1e-6))
        start = Head(np.zeros((answers.shape[1], without.shape[2])), bias)
        self.heads = [refit_head(start, v.astype(float), answers, _PENALTY) for v in without]

    def effects(self, questions: Questions) -> Effects:
        """The same answer for every new value of the asked aspect."""
        without = _need_vectors(questions.texts)
        untreated = self.heads[-1].probabilities(without[-1])
        before = untreated if self.as_released else questions.texts.probabilities
        if self.nothing:
            return untreated - before
        after = np.empty_like(before)
        for aspect in range(len(ASPECTS)):
            rows = questions.aspect == aspect
            after[rows] = self.heads[aspect].probabilities(without[aspect][rows])
        return after - before


def _need_vectors(texts: Texts) -> Float[np.ndarray, "concept batch hidden"]:
    if texts.without is None or len(texts.without) != len(ASPECTS) + 1:
        raise TouchstoneError(
            f"CausaLM needs the vectors of {len(ASPECTS) + 1} encoders, one without each of "
            f"{', '.join(ASPECTS)} and one without none; hand in `without`"
        )
    return texts.without


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
            missing = "the texts (`words`)" if self.model else "the explained model to copy"
            raise TouchstoneError(
                f"the Causal Proxy Model needs {missing}; hand in both, or leave it out"
            )
        if train.probabilities.shape[1] != len(self.model.classes):
            raise TouchstoneError(
                f"the model has {len(self.model.classes)} classes and the predictions "
                f"{train.probabilities.shape[1]}; hand in the model that made them"
            )
        # The tokenizer is shared, the parameters are not.
        self.student = copy.copy(self.model)
        self.student.module = copy.deepcopy(self.model.module)
        imagined, wishes = self._wishes(train, seed)
        encoded = self.student.encode(words_of(train.words) + wishes)
        generator = torch.Generator().manual_seed(seed_for("held out", seed))
        order = torch.randperm(len(encoded), generator=generator)
        n_held = max(1, round(_HELD_OUT * len(order)))
        fit(
            token_forward(self.student, encoded),
            upper_parameters(self.student, self.settings.n_layers),
            torch.tensor(
                np.concatenate([train.probabilities, imagined]),
                dtype=torch.float32,
                device=device_of(self.student.module),
            ),
            torch.tensor(lengths_of(encoded)),
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
        aspects = (ASPECTS[aspect] for aspect in questions.aspect)
        wishes = list(zip(texts.words, aspects, questions.new, strict=True))
        # Pairs of edits share their texts, so most wishes come more than once.
        different = list(dict.fromkeys(wishes))
        answers = self.student.predict([with_wish(*wish) for wish in different], BATCH)
        row_of = {wish: row for row, wish in enumerate(different)}
        return answers[[row_of[wish] for wish in wishes]] - texts.probabilities

    def _wishes(self, train: Texts, seed: int) -> tuple[Effects, list[list[str]]]:
        """For each train text some changes: the mean answer to its matches, and the words."""
        assert train.words is not None
        rng = np.random.default_rng(seed)
        rows = np.repeat(np.arange(len(train)), self.settings.n_questions)
        aspect = rng.integers(0, len(ASPECTS), len(rows))
        old = train.gold[rows, aspect]
        # Drawn for all rows, so that no draw depends on which labels are known.
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
