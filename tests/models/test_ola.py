"""OLA against a second, plain implementation, and the one difference between its two variants."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tiny_models import CLASSES, SENTENCES, word_piece

from lib.models.ola import OneLayerAttention
from lib.models.text_model import TextModel, pad


def plain_attention(net, x, mask, masked_axis):
    """All tokens attend to all tokens; the mask hides keys or, as in the released code, queries."""
    scores = net.query(x) @ net.key(x).transpose(1, 2) / math.sqrt(64)
    hide = (mask == 0).unsqueeze(1 if masked_axis == "keys" else 2)
    weights = scores.masked_fill(hide, -1e6).softmax(-1)
    return net.classifier(torch.tanh(net.pooler((weights @ net.value(x))[:, 0])))


def ola(variant="corrected", used=None):
    tokenizer = word_piece()
    return OneLayerAttention(
        tokenizer, range(len(tokenizer)) if used is None else used, CLASSES, 0, variant
    )


@pytest.mark.parametrize(("variant", "axis"), [("corrected", "keys"), ("as_released", "queries")])
def test_only_the_query_of_cls_is_needed(variant, axis):
    model = ola(variant)
    ids, mask = pad(model.encode(SENTENCES), model.tokenizer.pad_token_id, length=50)
    x = model.embed(ids).detach().double().requires_grad_()
    model.module.double()
    ours, plain = model.logits(x, mask), plain_attention(model.module, x, mask, axis)
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-12)
    for k in range(3):
        torch.testing.assert_close(
            *(
                torch.autograd.grad(out[:, k].sum(), x, retain_graph=True)[0]
                for out in (ours, plain)
            ),
            rtol=0,
            atol=1e-12,
        )


def test_attention_weights_sum_to_one_and_leave_padding_out():
    model = ola()
    ids, mask = pad(model.encode(SENTENCES), 0, length=50)
    weights = model.module.attention(model.embed(ids), mask)
    torch.testing.assert_close(weights.sum(1), torch.ones(len(SENTENCES)))
    assert (weights[mask == 0] == 0).all() and (weights[mask == 1] > 0).all()


def test_padding_moves_the_released_model_and_not_the_corrected_one():
    for variant, moves in (("corrected", False), ("as_released", True)):
        model = ola(variant)
        encoded = model.encode(SENTENCES)
        short, long = (
            model.logits(model.embed(ids), mask)
            for ids, mask in (pad(encoded, 0), pad(encoded, 0, 55))
        )
        assert torch.allclose(short, long, atol=1e-6) != moves


def test_the_released_prediction_pads_to_the_longest_of_the_set():
    model = ola("as_released")
    ids, mask = pad(model.encode(SENTENCES), 0)
    whole = model.logits(model.embed(ids), mask).softmax(-1).detach().numpy()
    assert model.predict(SENTENCES, batch_size=2) == pytest.approx(whole, abs=1e-6)
    assert np.abs(model.predict(SENTENCES[2:3], 1) - whole[2]).max() > 1e-4


def test_ids_outside_the_vocabulary_in_use_are_unknown_words():
    tokenizer = word_piece()
    used = {
        i for ids in tokenizer(SENTENCES[:1], is_split_into_words=True)["input_ids"] for i in ids
    }
    model = ola(used=used)
    outside = next(i for i in range(len(tokenizer)) if i not in model.used_ids)
    assert torch.equal(
        model.embed(torch.tensor([[outside]])),
        model.embed(torch.tensor([[tokenizer.unk_token_id]])),
    )
    assert len(model.module.embeddings.weight) == len(model.used_ids) < len(tokenizer)
    inside = sorted(used)[-1]
    assert not torch.equal(
        model.embed(torch.tensor([[inside]])), model.embed(torch.tensor([[tokenizer.unk_token_id]]))
    )


def test_ola_has_the_shape_of_table_5_and_the_common_face():
    model = ola(used=[7, 9])
    assert isinstance(model, TextModel)
    shapes = {name: tuple(p.shape) for name, p in model.module.named_parameters()}
    assert shapes.pop("embeddings.weight")[1] == 64
    assert shapes == {
        f"{layer}.{kind}": shape
        for layer, n in (
            ("query", 64),
            ("key", 64),
            ("value", 64),
            ("pooler", 64),
            ("classifier", 3),
        )
        for kind, shape in (("weight", (n, 64)), ("bias", (n,)))
    }


def test_the_seed_decides_the_start_and_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, second = ola(), ola()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(
        torch.equal(a, b)
        for a, b in zip(first.module.parameters(), second.module.parameters(), strict=True)
    )
