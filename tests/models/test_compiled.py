"""A compiled network: the same explanations, really compiled, and as it was afterwards."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from tiny_models import SENTENCES, tiny

from lib.doors import explain_texts
from lib.models.shortcuts import compiled, in_precision
from lib.models.text_model import pad

# of two lengths: what is compiled for the second serves any length
TEXTS = [" ".join(words) for words in SENTENCES[:2]]
# one pass with its gradient, panels of points, a hooked model, one under rules, texts without words
METHODS = ("InputXGradient", "DeepLift", "Integrated Gradients", "Guided Backprop", "LIME")


def n_graphs() -> int:
    """How many graphs have been compiled so far."""
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def largest_gap(backend: str, methods: tuple[str, ...]) -> float:
    """Between explanations of a compiled tiny BERT and its own; some graph must be compiled."""
    model = tiny("bert")
    plain = [explain_texts(model, TEXTS, method, 0) for method in methods]
    before = n_graphs()
    with compiled(model, backend):
        fast = [explain_texts(model, TEXTS, method, 0) for method in methods]
        assert n_graphs() > before
    assert "forward" not in vars(model.module)
    return max(
        np.abs(np.concatenate(a["scores"].tolist()) - np.concatenate(b["scores"].tolist())).max()
        for a, b in zip(plain, fast, strict=True)
    )


@pytest.mark.more
def test_traced_explanations_are_the_models_own() -> None:
    assert largest_gap("aot_eager", METHODS[:2]) < 1e-6


@pytest.mark.more
def test_compiled_explanations_are_the_models_own() -> None:
    assert largest_gap("aot_eager", METHODS[2:]) < 1e-6
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler: install g++")
    assert largest_gap("inductor", METHODS[:1]) < 1e-5


@pytest.mark.slow
def test_hooks_and_precision_inside_a_compiled_model() -> None:
    model = tiny("bert")
    ids, mask = pad(model.encode(SENTENCES), model.tokenizer.pad_token_id)
    seen: list[int] = []
    with compiled(model, "aot_eager"), torch.no_grad():
        plain = model.logits(model.embed(ids), mask)
        hook = model.module.base_model.encoder.register_forward_hook(
            lambda module, inputs, output: seen.append(1) or None
        )
        again = model.logits(model.embed(ids), mask)  # the hook is noticed by what is compiled
        hook.remove()
        with in_precision(model, "bfloat16") as low:
            rounded = low.logits(low.embed(ids), mask)
    assert seen and torch.equal(plain, again)
    assert 0 < (rounded - plain).abs().max() < 0.1 * plain.abs().max()
