"""A model in bfloat16: nearly the same answers, the original untouched, and clear refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import SENTENCES, tiny
from transformers import LlamaConfig, LlamaForSequenceClassification

from lib.attribution.perturbed_texts import sequence_logits
from lib.core.errors import TouchstoneError
from lib.doors import explain_texts
from lib.models.hf import HFClassifier
from lib.models.ola import OneLayerAttention
from lib.models.shortcuts import in_precision
from lib.models.text_model import pad


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "llama"])
def test_bfloat16_inside_float32_at_both_ends(family: str) -> None:
    model = tiny(family)
    ids, mask = pad(model.encode(SENTENCES), model.tokenizer.pad_token_id)
    with in_precision(model, "bfloat16") as low:
        inputs = low.embed(ids).detach().requires_grad_()
        found = low.logits(inputs, mask)
        gradient = torch.autograd.grad(found.sum(), inputs)[0]
        assert (
            next(low.module.parameters()).dtype == torch.bfloat16
            and low.module.config._attn_implementation == "eager"
        )
    assert found.dtype == gradient.dtype == inputs.dtype == torch.float32
    exact = model.logits(model.embed(ids), mask)
    assert 0 < (found - exact).abs().max() < 0.1 * exact.abs().max()
    assert next(model.module.parameters()).dtype == torch.float32


def test_float32_is_the_model_itself() -> None:
    model = tiny("bert")
    with in_precision(model, "float32") as same:
        assert same is model


def test_tf32_is_asked_for_only_within() -> None:
    before, model = torch.get_float32_matmul_precision(), tiny("bert")
    with in_precision(model, "tf32") as same:
        assert same is model and torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before


def test_a_precision_is_recorded_with_its_deviation() -> None:
    model, texts = tiny("bert"), [" ".join(words) for words in SENTENCES[:2]]
    found = {
        name: explain_texts(model, texts, "InputXGradient", 0, {"precision": name})
        for name in ("float32", "tf32", "bfloat16")
    }
    assert "deviation" not in found["float32"] and "precision" not in found["float32"].settings[0]
    for name in ("tf32", "bfloat16"):
        assert f'"precision": "{name}"' in found[name].settings[0]
    assert (found["tf32"]["deviation"] < 1e-2).all()  # a CPU without such products: 0
    assert (found["bfloat16"]["deviation"] > 0).all()
    ids = [tuple(row.ids) for row in model.encode(SENTENCES[:2])]
    with in_precision(model, "bfloat16") as low:
        gap = (sequence_logits(low, ids) - sequence_logits(model, ids)).abs().amax(1)
    assert found["bfloat16"]["deviation"].tolist() == pytest.approx(gap.tolist())


def test_what_cannot_be_done_is_refused() -> None:
    with (
        pytest.raises(TouchstoneError, match="did you mean 'bfloat16'"),
        in_precision(tiny("bert"), "bfloat"),
    ):
        pass
    ola = OneLayerAttention(tiny("bert").tokenizer, [5, 6], ("F", "M"), seed=0)
    with pytest.raises(TouchstoneError, match="stays in float32"), in_precision(ola, "bfloat16"):
        pass
    assert np.isfinite(ola.predict(SENTENCES[:1], 1)).all()


def test_positions_keep_their_digits_in_long_texts() -> None:
    """Rotary frequencies in bfloat16 turn the two hundredth token a radian too far.

    The weights' rounding does far less.
    """
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=16,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=1,
        head_dim=64,
        intermediate_size=64,
        num_labels=3,
        pad_token_id=0,
        max_position_embeddings=512,
        initializer_range=0.3,
    )
    model = HFClassifier(
        LlamaForSequenceClassification(config), tiny("llama").tokenizer, ("F", "M", "NB")
    )
    inputs, mask = torch.randn(4, 200, 64) * 0.3, torch.ones(4, 200, dtype=torch.long)
    with torch.no_grad(), in_precision(model, "bfloat16") as low:
        assert low.module.model.rotary_emb.inv_freq.dtype == torch.float32
        states = [
            one.module.model(inputs_embeds=inputs.to(kind), attention_mask=mask)
            .last_hidden_state[:, -1]
            .float()
            for one, kind in ((model, torch.float32), (low, torch.bfloat16))
        ]
    assert (states[1] - states[0]).norm() / states[0].norm() < 0.06  # .077 with rounded frequencies
