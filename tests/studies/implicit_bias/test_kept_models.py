"""Masked models are trained once: what is kept is read, and a changed recipe trains again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as tf
from tiny_models import saved

from lib.models.masked_lm import MaskedLM, new_masked_lm
from lib.studies.implicit_bias import kept_models
from lib.studies.implicit_bias.kept_models import fit_or_read
from lib.training.masked_lm import MaskedSettings

TEXT = ["She loves her old piano .", "He loves his horse .", "They sing to their friends ."] * 8


def test_a_trained_model_is_kept_and_a_changed_recipe_trains_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(tmp_path, "bert", tf.AutoModel)
    texts = [text.split() for text in TEXT]
    recipe, starts = {"encoder": folder, "revision": "", "seed": 1}, []

    def start() -> MaskedLM:
        starts.append(1)
        return new_masked_lm(folder, 1)

    settings = MaskedSettings(1, 1e-2, 64)
    model, curve = fit_or_read(tmp_path / "kept", recipe, start, texts, texts[:3], settings)
    again, same = fit_or_read(tmp_path / "kept", recipe, start, texts, texts[:3], settings)
    one = model.encode([["She", model.tokenizer.mask_token, "."]])
    assert (
        len(starts) == 1
        and torch.equal(model.log_prob(one), again.log_prob(one))
        and np.allclose(curve, same)
    )
    fit_or_read(tmp_path / "kept", recipe, start, texts[1:], texts[:3], settings)
    fit_or_read(tmp_path / "kept", recipe, start, texts[1:], texts[:3], MaskedSettings(1, 2e-2, 64))
    assert len(starts) == 3
    for name in ("kept.safetensors", "kept.json"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        fit_or_read(
            tmp_path / "kept", recipe, start, texts[1:], texts[:3], MaskedSettings(1, 2e-2, 64)
        )
        assert len(starts) == (4 if name == "kept.safetensors" else 5), "damaged: trained again"
    monkeypatch.setattr(kept_models, "made_by", lambda study, stage: {"code": "other"})
    for _ in range(2):
        fit_or_read(tmp_path / "kept", recipe, start, texts, texts[:3], settings)
    assert len(starts) == 6, "other code: trained again, once"
