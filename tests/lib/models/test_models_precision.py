"""A model in bfloat16: nearly the same answers, the original untouched, and clear refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import SENTENCES, tiny

from lib.errors import TouchstoneError
from lib.models.face import pad
from lib.models.ola import OneLayerAttention
from lib.models.precision import in_precision


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "llama"])
def test_bfloat16_inside_float32_at_both_ends(family: str) -> None:
    model = tiny(family)
    ids, mask = pad(model.encode(SENTENCES), model.tokenizer.pad_token_id)
    with in_precision(model, "bfloat16") as low:
        inputs = low.embed(ids).detach().requires_grad_()
        found = low.logits(inputs, mask)
        gradient = torch.autograd.grad(found.sum(), inputs)[0]
        assert next(low.module.parameters()).dtype == torch.bfloat16 and low.module.config._attn_implementation == "eager"
    assert found.dtype == gradient.dtype == inputs.dtype == torch.float32
    exact = model.logits(model.embed(ids), mask)
    assert 0 < (found - exact).abs().max() < 0.1 * exact.abs().max()
    assert next(model.module.parameters()).dtype == torch.float32


def test_float32_is_the_model_itself() -> None:
    model = tiny("bert")
    with in_precision(model, "float32") as same:
        assert same is model


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="did you mean 'bfloat16'"), in_precision(tiny("bert"), "bfloat"):
        pass
    ola = OneLayerAttention(tiny("bert").tokenizer, [5, 6], ("F", "M"), seed=0)
    with pytest.raises(TouchstoneError, match="stays in float32"), in_precision(ola, "bfloat16"):
        pass
    assert np.isfinite(ola.predict(SENTENCES[:1], 1)).all()
