"""Leaving out what is not read changes no score and no gradient."""

from __future__ import annotations

import pytest
import torch
from tiny_models import FAMILIES, SENTENCES, tiny

from lib.models.shortcuts import check_reading, first_token_only
from lib.models.text_model import pad

APPLIES = {"bert", "roberta", "electra"}


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_and_gradients_are_the_same(family):
    model = tiny(family)
    model.module.double()
    ids, mask = pad(model.encode(SENTENCES), model.tokenizer.pad_token_id)
    targets = model.module.get_input_embeddings().weight

    def run():
        model.module.zero_grad()
        scores = model.logits(model.embed(ids), mask)
        scores[:, 0].sum().backward()
        return scores.detach(), targets.grad.clone()

    plain = run()
    with first_token_only(model) as applies:
        short = run()
    assert applies == (family in APPLIES)
    torch.testing.assert_close(short, plain, rtol=0, atol=1e-11)
    torch.testing.assert_close(run(), plain, rtol=0, atol=0)  # and nothing is left behind


@pytest.mark.parametrize("family", sorted(APPLIES))
def test_the_last_layer_goes_on_with_one_token(family):
    model = tiny(family)
    seen = []
    model.module.base_model.encoder.layer[-1].intermediate.register_forward_pre_hook(
        lambda m, args: seen.append(args[0].shape[1])
    )
    model.module.base_model.encoder.layer[0].intermediate.register_forward_pre_hook(
        lambda m, args: seen.append(args[0].shape[1])
    )
    ids, mask = pad(model.encode(SENTENCES), model.tokenizer.pad_token_id)
    with torch.no_grad(), first_token_only(model):
        model.logits(model.embed(ids), mask)
    assert seen == [ids.shape[1], 1]


@pytest.mark.parametrize("family", [*FAMILIES, "albert"])
def test_the_heads_of_transformers_read_one_token(family):
    """What the shortcuts take for granted is tried on two texts.

    A head that reads more is in tests/doors/test_own_model.py.
    """
    model = tiny(family)
    model.one_token = None
    check_reading(model)
    assert model.one_token is True
