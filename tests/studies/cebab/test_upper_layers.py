"""The upper layers of an encoder, trained and read on what the lower ones say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import TEXTS, tiny

from lib.core.errors import TouchstoneError
from lib.models.hf import layer_stack
from lib.studies.cebab.reviewers import read_texts, train_reviewer, words_of
from lib.studies.cebab.upper_layers import (
    from_states,
    lower_states,
    upper_parameters,
)
from lib.training.classifier import Settings


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_the_states_of_the_lower_layers_give_the_same_scores(family: str) -> None:
    model = tiny(family)
    encoded = model.encode(words_of(TEXTS))
    states = lower_states(model, encoded, 1)
    assert [len(state) for state in states.of_text] == [len(one.ids) for one in encoded]
    with from_states(model, states) as forward, torch.no_grad():
        found = forward(torch.arange(len(TEXTS))).softmax(-1).numpy()
    assert np.allclose(found, model.predict(words_of(TEXTS), 2), atol=1e-5)
    assert len(layer_stack(model.module)) == 2


def test_training_on_states_is_training_the_upper_layers() -> None:
    """The same numbers as with the whole model, of which only the upper layer learns."""
    labels, settings = np.array([0, 1, 2, 1, 0]), Settings(3, 0.01, 2)
    one = tiny("bert")
    encoded = one.encode(words_of(TEXTS))
    frozen = [p.clone() for p in layer_stack(one.module)[0].parameters()]
    states = lower_states(one, encoded, 1)
    curve = train_reviewer(one, encoded, labels, 4, settings, 0, "last", states)
    assert all(
        torch.equal(p, q)
        for p, q in zip(frozen, layer_stack(one.module)[0].parameters(), strict=True)
    )
    assert curve["train_loss"].iloc[-1] < curve["train_loss"].iloc[0]
    from_states, from_words = read_texts(one, encoded, states), read_texts(one, encoded)
    assert np.allclose(from_states.probabilities, from_words.probabilities, atol=1e-5)
    assert np.allclose(from_states.vectors, from_words.vectors, atol=1e-5)


def test_what_learns() -> None:
    model = tiny("bert")
    learns = upper_parameters(model, 1)
    assert any(".layer.1." in name for name in learns) and any(
        "classifier" in name for name in learns
    )
    assert not any(".layer.0." in name or "embeddings" in name for name in learns)
    assert {name for name, p in model.module.named_parameters() if p.requires_grad} == set(learns)
    assert any(".h.1." in name for name in upper_parameters(tiny("gpt2"), 1))


def test_what_cannot_be_taken_apart_is_refused() -> None:
    model = tiny("bert")
    with pytest.raises(
        TouchstoneError, match="7 layers are asked for and the encoder has 2; choose from 1 to 2"
    ):
        lower_states(model, model.encode(words_of(TEXTS)), 7)
    for family in ("gpt2", "electra"):
        other = tiny(family)
        with pytest.raises(TouchstoneError, match="train it as a whole"):
            lower_states(other, other.encode(words_of(TEXTS)), 1)
