"""Fitting a probe: it learns, and the language model stays as it was."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from tiny_language_models import VOCABULARY, tiny_lm

from lib.core.errors import TouchstoneError
from lib.models.text_model import TextModel
from lib.training.probe import ProbeSettings, fit_probe


def examples() -> pd.DataFrame:
    rows = [
        ("the dog", 0),
        ("the dogs", 1),
        ("a cat", 0),
        ("cats", 1),
        ("the old man", 0),
        ("old men", 1),
    ] * 10
    return pd.DataFrame(
        [(split, *row) for split in ("train", "valid") for row in rows],
        columns=["split", "prefix", "tag"],
    )


def test_a_probe_learns_and_the_model_stays_as_it_was() -> None:
    model = tiny_lm("Transformer")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    probe, curve = fit_probe(
        model,
        VOCABULARY,
        ("singular", "plural"),
        examples(),
        ProbeSettings(epochs=30, lr=0.03),
        seed=0,
    )
    assert curve["validation_accuracy"].iloc[-1] == 1.0
    assert isinstance(probe, TextModel) and all(
        torch.equal(before[k], v) for k, v in model.state_dict().items()
    )
    assert probe.predict([["the", "dogs"], ["a", "cat"]]).argmax(1).tolist() == [1, 0]
    with pytest.raises(TouchstoneError, match="no examples in the split valid"):
        fit_probe(
            model,
            VOCABULARY,
            ("singular", "plural"),
            examples().query("split == 'train'"),
            ProbeSettings(),
            0,
        )
