"""CausaLM and the Causal Proxy Model: explainers that train an encoder."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as tf
from tiny_models import TEXTS, tiny, tiny_module

from lib.core.errors import TouchstoneError
from lib.models.masked_lm import MaskedLM
from lib.studies.cebab.encoders import (
    PACE,
    CausaLM,
    CausalProxy,
    ProxySettings,
    concept_labels,
    concept_losses,
    reverse_gradient,
    shorten,
    unlearn,
    with_wish,
)
from lib.studies.cebab.questions import Head, Questions, Texts
from lib.studies.cebab.reviews import ASPECTS, VALUES
from lib.training.classifier import Settings
from lib.training.masked_lm import Batch, MaskedSettings


def small_masked_lm() -> MaskedLM:
    return MaskedLM(*tiny_module("bert", tf.AutoModelForMaskedLM))


def test_the_reversal_turns_the_gradient_and_not_the_numbers() -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = reverse_gradient(x, 0.25)
    assert torch.equal(y, x)
    (y**2).sum().backward()
    assert torch.allclose(x.grad, -0.25 * 2 * x.detach())


def test_the_adversary_learns_while_the_encoder_is_told_the_opposite() -> None:
    """The treated head's own gradient is that of its loss; what reaches the states is minus
    strength times it.
    """
    torch.manual_seed(0)
    states = torch.randn(4, 3, 5, requires_grad=True)
    labels, none = torch.tensor([0, 1, 2, 0]), torch.full((4,), -100)
    start = Head(
        np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32), np.zeros(3, np.float32)
    )
    weight = torch.tensor(start.weight, requires_grad=True)
    mean = torch.nn.functional.normalize(states.sum(1), dim=-1)
    plain = torch.autograd.grad(
        torch.nn.functional.cross_entropy(mean @ weight.T, labels), [states, weight]
    )
    batch = Batch(
        [0, 1, 2, 3], torch.ones(4, 3, dtype=torch.long), torch.ones(4, 3, dtype=torch.long), states
    )
    for place, factor in ((0, -0.5), (1, 1.0)):
        second = concept_losses(
            [labels, none] if place == 0 else [none, labels], [start, start], strength=0.5
        )
        states.grad = None
        second.loss(batch).backward()
        head = second.parameters[2 * place]
        assert torch.allclose(states.grad, factor * plain[0], atol=1e-6) and torch.allclose(
            head * PACE, weight
        )
        assert torch.allclose(head.grad, PACE * plain[1], atol=1e-4)


def test_labels_that_are_no_value_do_not_count() -> None:
    assert concept_labels(["Positive", "", "no majority", "Negative"]).tolist() == [
        2,
        -100,
        -100,
        0,
    ]
    start = Head(np.zeros((3, 4), np.float32), np.zeros(3, np.float32))
    second = concept_losses([torch.full((2,), -100)] * 2, [start, start], 1.0)
    ones = torch.ones(2, 3, dtype=torch.long)
    assert second.loss(Batch([0, 1], ones, ones, torch.randn(2, 3, 4))).item() == 0


def test_the_adversary_loses_what_it_could_read() -> None:
    """With a reversal the heads' loss rises above chance, without one it falls: the head reads the
    concept from the first step.
    """
    words = {"Positive": "She", "Negative": "He", "unknown": "They"}
    rng = np.random.default_rng(0)
    values = rng.choice(np.array(VALUES, dtype=object), (120, len(ASPECTS)))
    texts = [
        f"{words[v]} loves her old {rng.choice(['piano', 'horse', 'singer'])} ."
        for v in values[:, 0]
    ]
    settings = MaskedSettings(15, 4e-3, 256)
    loss = {
        strength: unlearn(small_masked_lm(), texts, values, "food", settings, strength, seed=0)[
            "second_loss"
        ].to_numpy()
        for strength in (0.0, 1.0)
    }
    assert loss[0.0][-1] < 2 * math.log(3) < loss[1.0][-1], loss


def test_bad_requests_to_unlearn() -> None:
    model = small_masked_lm()
    nothing = np.full((len(TEXTS), len(ASPECTS)), "", dtype=object)
    with pytest.raises(TouchstoneError, match="the aspect to unlearn is 'price'; write"):
        unlearn(model, TEXTS, nothing, "price", MaskedSettings(1, 1e-3), 1.0, 0)
    for aspect in ASPECTS:
        control = "service" if aspect == "food" else "food"
        with pytest.raises(TouchstoneError, match=f"two values of {aspect} or of {control}"):
            unlearn(model, TEXTS, nothing, aspect, MaskedSettings(1, 1e-3), 1.0, 0)
    with pytest.raises(TouchstoneError, match="3 layers are asked for and the encoder has 2"):
        shorten(model, 3)


def test_a_shortened_encoder_keeps_its_lowest_layers() -> None:
    whole, short = small_masked_lm(), shorten(small_masked_lm(), 1)
    assert short.module.config.num_hidden_layers == 1
    ids, mask = torch.tensor([[2, 7, 9, 3]]), torch.ones(1, 4, dtype=torch.long)
    inner = whole.module.base_model(
        input_ids=ids, attention_mask=mask, output_hidden_states=True
    ).hidden_states
    assert torch.allclose(short.hidden(short.embed(ids), mask), inner[1], atol=1e-6)


def test_causalm_subtracts_the_answer_of_the_explained_model(toy) -> None:
    """Where the vectors hold all but the concept, the new layer can only give what remains; the old
    answer is the model's own.
    """
    found = CausaLM().fit(toy.texts, None, 0)
    after = found.effects(toy.questions) + toy.questions.texts.probabilities
    for aspect in range(len(ASPECTS)):
        rows = np.flatnonzero(toy.questions.aspect == aspect)
        other = Questions(
            toy.questions.texts.take(rows),
            toy.questions.aspect[rows],
            toy.questions.new[rows],
            toy.questions.old[rows],
        )
        assert np.array_equal(
            found.effects(other), found.effects(toy.questions)[rows]
        )  # deaf to the direction
        assert np.allclose(
            after[rows],
            found.heads[aspect].probabilities(toy.questions.texts.without[aspect][rows]),
        )
    released = CausaLM(as_released=True).fit(toy.texts, None, 0).effects(toy.questions)
    assert not np.allclose(released, found.effects(toy.questions), atol=0.01)
    with pytest.raises(TouchstoneError, match="needs the vectors of 5 encoders"):
        CausaLM().fit(replace(toy.texts, without=toy.texts.without[:3]), None, 0)


def some_texts(n: int = 60) -> Texts:
    """Texts of one word per aspect; the model's answer depends on the first alone."""
    words = {"Positive": "She", "Negative": "He", "unknown": "They"}
    values = np.random.default_rng(1).choice(np.array(VALUES, dtype=object), (n, len(ASPECTS)))
    p = np.select([values[:, 0] == "Positive", values[:, 0] == "Negative"], [0.9, 0.1], 0.5)
    answers = np.column_stack([(1 - p) / 2, (1 - p) / 2, p])
    sentences = np.array([" ".join(words[v] for v in row) for row in values], dtype=object)
    return Texts(
        np.arange(n).astype(str).astype(object), values, values.copy(), answers, words=sentences
    )


@pytest.mark.slow
def test_the_student_learns_what_the_wish_does() -> None:
    texts = some_texts()
    settings = ProxySettings(Settings(40, 5e-3, 16), n_questions=4, n_layers=2)
    model = tiny("bert")
    before = {name: p.clone() for name, p in model.module.named_parameters()}
    proxy = CausalProxy(model, settings).fit(texts, None, 0)
    assert all(
        torch.equal(p, before[name]) for name, p in model.module.named_parameters()
    )  # the model itself stays
    negative = np.flatnonzero(texts.gold[:, 0] == "Negative")[:8]
    ask = Questions(
        texts.take(np.tile(negative, 2)),
        np.repeat([0, 1], 8),
        np.full(16, "Negative", object),
        np.full(16, "Positive", object),
    )
    found = proxy.effects(ask)
    assert np.allclose(found.sum(1), 0, atol=1e-6)
    assert (
        found[:8, 2].mean() > 0.5 and abs(found[8:, 2].mean()) < 0.25
    )  # food decides, service does not


def test_bad_input_for_the_student(toy) -> None:
    with pytest.raises(TouchstoneError, match="needs the explained model"):
        CausalProxy().fit(toy.texts, None, 0)
    with pytest.raises(TouchstoneError, match=r"needs the texts \(`words`\)"):
        CausalProxy(tiny("bert")).fit(replace(toy.texts, words=None), None, 0)
    two = replace(toy.texts, probabilities=toy.texts.probabilities[:, :2])
    with pytest.raises(TouchstoneError, match="the model has 3 classes and the predictions 2"):
        CausalProxy(tiny("bert")).fit(two, None, 0)
    with pytest.raises(TouchstoneError, match="no student or no texts"):
        CausalProxy(tiny("bert")).effects(toy.questions)
    assert with_wish("Good soup .", "noise", "unknown") == [
        "Good",
        "soup",
        ".",
        "|",
        "noise",
        "unknown",
    ]
    assert math.isclose(ProxySettings().fit.lr, 1e-4)
