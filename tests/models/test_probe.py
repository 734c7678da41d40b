"""Probes: the states they read, and the files that keep them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_language_models import SENTENCES, VOCABULARY, tiny_lm
from torch import nn

from lib.core.errors import TouchstoneError
from lib.models.language_model import save_lm
from lib.models.probe import Probe, features, load_probe, save_probe

NUMBER = ("singular", "plural")


def test_states_do_not_depend_on_the_rows_beside_them() -> None:
    model = tiny_lm("Transformer")
    together = features(model, VOCABULARY, [["the"], "the old man reads".split()])
    torch.testing.assert_close(together[0], features(model, VOCABULARY, [["the"]])[0])


def test_a_saved_probe_answers_the_same(tmp_path) -> None:
    probe = Probe(tiny_lm("QRNN"), VOCABULARY, nn.Linear(16, 2), NUMBER)
    save_lm(probe.lm, VOCABULARY, tmp_path / "lm.safetensors")
    save_probe(probe, tmp_path / "probe.safetensors")
    again = load_probe(tmp_path / "lm.safetensors", tmp_path / "probe.safetensors", NUMBER)
    np.testing.assert_allclose(
        again.predict(SENTENCES[:3]), probe.predict(SENTENCES[:3]), rtol=1e-6
    )


def test_a_probe_of_another_model_or_task_is_refused_though_its_size_fits(tmp_path) -> None:
    mine, other = tiny_lm("QRNN"), tiny_lm("LSTM")
    assert mine.config.embedding == other.config.embedding
    for name, model in (("mine", mine), ("other", other)):
        save_lm(model, VOCABULARY, tmp_path / f"{name}.safetensors")
    save_probe(
        Probe(mine, VOCABULARY, nn.Linear(16, 2), NUMBER),
        tmp_path / "probe.safetensors",
    )
    with pytest.raises(
        TouchstoneError, match="is a probe of another model .*not of other.safetensors"
    ):
        load_probe(tmp_path / "other.safetensors", tmp_path / "probe.safetensors", NUMBER)
    with pytest.raises(
        TouchstoneError,
        match="is a probe of another task .singular plural., not of mine.safetensors "
        "for male or female",
    ):
        load_probe(
            tmp_path / "mine.safetensors", tmp_path / "probe.safetensors", ("male", "female")
        )
