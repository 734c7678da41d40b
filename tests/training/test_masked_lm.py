"""Masked-LM training: what is masked, what learns, the second loss, and perplexities by hand."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
import transformers as tf
from tiny_models import tiny_masked_lm as tiny
from tiny_models import tiny_module

from lib.core.errors import TouchstoneError
from lib.models.masked_lm import MaskedLM
from lib.models.text_model import Encoded, special_ids
from lib.training.masked_lm import (
    IGNORED,
    Batch,
    MaskedSettings,
    SecondLoss,
    asked_positions,
    fit_masked_lm,
    mask_tokens,
    masked_perplexity,
    unigram,
    unigram_perplexity,
)

TEXT = ["She loves her old piano .", "He loves his horse .", "They sing to their friends ."] * 8


def test_masking_keeps_to_its_shares_and_never_touches_special_tokens() -> None:
    ids = torch.full((400, 50), 7)
    ids[:, 0], ids[:, 40:] = 2, 0
    inputs, targets = mask_tokens(ids, [0, 2, 3], 4, 1000, 0.15, torch.Generator().manual_seed(0))
    asked = targets != IGNORED
    assert (
        (targets[asked] == 7).all()
        and not asked[:, 0].any()
        and not asked[:, 40:].any()
        and asked.any(1).all()
    )
    assert asked.sum().item() / (400 * 39) == pytest.approx(0.15, abs=0.01)
    assert (inputs[asked] == 4).double().mean().item() == pytest.approx(0.8, abs=0.03)
    assert (inputs[asked] == 7).double().mean().item() == pytest.approx(0.1, abs=0.03)
    assert torch.equal(inputs[~asked], ids[~asked])


def test_short_row_has_one_word_to_predict_and_an_empty_one_none() -> None:
    ids = torch.tensor([[2, 9, 3], [2, 3, 0]])
    _, targets = mask_tokens(ids, [0, 2, 3], 4, 10, 0.01, torch.Generator().manual_seed(0))
    assert targets.tolist() == [[IGNORED, 9, IGNORED], [IGNORED] * 3]


def test_same_seed_same_model_and_perplexity_falls() -> None:
    settings = MaskedSettings(epochs=6, lr=5e-3, batch_tokens=64, masked=0.3, tuned="encoder")
    curves = []
    for _ in range(2):
        model = MaskedLM(*tiny_module("bert", tf.AutoModelForMaskedLM))
        encoded = model.encode([text.split() for text in TEXT])
        curves.append(fit_masked_lm(model, encoded, encoded, settings, seed=1))
    assert curves[0].equals(curves[1])
    assert curves[0]["perplexity"].iloc[-1] < 0.7 * curves[0]["perplexity"].iloc[0]
    assert (curves[0]["second_loss"] == 0).all()


@pytest.mark.parametrize("tuned", ["head", "upper", "encoder"])
def test_only_what_is_named_learns(tuned: str) -> None:
    model = tiny("bert")
    before = {name: p.detach().clone() for name, p in model.module.named_parameters()}
    encoded = model.encode([text.split() for text in TEXT])
    fit_masked_lm(model, encoded, encoded, MaskedSettings(1, 1e-2, 64, tuned=tuned), seed=0)
    changed = {
        name for name, p in model.module.named_parameters() if not torch.equal(p, before[name])
    }
    assert changed and changed <= set(model.trained_parameters(tuned))
    assert any(".layer.1." in name for name in changed) == (tuned != "head")
    assert any(".layer.0." in name for name in changed) == (tuned == "encoder")
    assert all(p.requires_grad for p in model.module.parameters())


def test_second_loss_sees_its_rows_and_can_reverse_a_gradient() -> None:
    """A probe of the row's label behind a reversal.

    The probe learns, and the encoder moves against it.
    """
    model = tiny("bert")
    encoded = model.encode([text.split() for text in TEXT])
    labels = torch.tensor([i % 3 for i in range(len(TEXT))])
    probe, seen = torch.nn.Linear(16, 3), []

    def loss(batch: Batch) -> torch.Tensor:
        seen.extend(batch.rows)
        assert batch.hidden.shape[:2] == batch.ids.shape == batch.mask.shape
        reversed_ = batch.hidden[:, 0] - 2 * (batch.hidden[:, 0] - batch.hidden[:, 0].detach())
        return torch.nn.functional.cross_entropy(probe(reversed_), labels[batch.rows])

    before = probe.weight.detach().clone()
    curve = fit_masked_lm(
        model,
        encoded,
        encoded,
        MaskedSettings(2, 1e-3, 64),
        0,
        SecondLoss(loss, tuple(probe.parameters())),
    )
    assert sorted(seen) == sorted(list(range(len(TEXT))) * 2) and (curve["second_loss"] > 0).all()
    assert not torch.equal(probe.weight, before)


def test_unigram_perplexity_by_hand() -> None:
    model = tiny("bert")
    n, a, b = model.module.config.vocab_size, 10, 11
    train = [Encoded([2, a, a, a, 3], []), Encoded([2, b, 3], [])]
    found = unigram(train, n, special_ids(model.tokenizer))
    assert found[a].item() == pytest.approx(4 / (n + 4)) and found[b].item() == pytest.approx(
        2 / (n + 4)
    )
    assert unigram_perplexity(model, train, [Encoded([2, a, 3], [])]) == pytest.approx(
        (n + 4) / 4, rel=1e-5
    )


def test_perplexity_agrees_with_the_whole_module() -> None:
    model = tiny("bert")
    encoded = model.encode([["They", "sing", "."]])
    inputs, mask, targets = next(asked_positions(model, encoded, 0.5))
    logits = model.module(inputs, attention_mask=mask).logits
    asked = targets != IGNORED
    expected = F.cross_entropy(logits[asked], targets[asked]).exp().item()
    assert masked_perplexity(model, encoded, 0.5) == pytest.approx(expected, rel=1e-4)
    assert math.isnan(masked_perplexity(model, []))


def test_unusable_settings_are_refused() -> None:
    for wrong in ({"epochs": 0, "lr": 1e-3}, {"epochs": 1, "lr": 1e-3, "masked": 1.0}):
        with pytest.raises(
            TouchstoneError,
            match="epochs is 0; write 1 or more|masked is 1.0; write above 0 to below 1",
        ):
            MaskedSettings(**wrong)


def test_watched_words_are_asked_about_more_often() -> None:
    ids = torch.tensor([[7, 8] * 30] * 200)
    _, targets = mask_tokens(
        ids, [0], 4, 100, 0.1, torch.Generator().manual_seed(0), watched=[8], watched_share=0.6
    )
    asked = targets != IGNORED
    assert asked[ids == 7].double().mean().item() == pytest.approx(0.1, abs=0.02)
    assert asked[ids == 8].double().mean().item() == pytest.approx(0.6, abs=0.02)


def test_a_training_in_bfloat16_ends_near_that_in_float32() -> None:
    curves = []
    for precision in ("float32", "bfloat16"):
        model = tiny("bert")
        encoded = model.encode([["They", "sing", "."], ["She", "works", "here", "."]] * 8)
        settings = MaskedSettings(2, 1e-3, 64, tuned="all", precision=precision)
        curves.append(fit_masked_lm(model, encoded, encoded, settings, 0))
    assert curves[1]["perplexity"].iloc[-1] == pytest.approx(
        curves[0]["perplexity"].iloc[-1], rel=0.01
    )
