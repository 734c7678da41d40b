"""Training language models over words: pieces, perplexity, and learning from a teacher."""

from __future__ import annotations

import math

import pytest
import torch
from tiny_language_models import SENTENCES, VOCABULARY, tiny_lm

from lib.models.language_model import ARCHITECTURES, END, student_of
from lib.training.language_model import (
    Distillation,
    LMSettings,
    batch_loss,
    fit_lm,
    perplexity,
    pieces,
    word_batches,
)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ten_sentences_are_learnt_by_heart(architecture) -> None:
    model, encoded = tiny_lm(architecture), pieces(SENTENCES, VOCABULARY, 64)
    before = perplexity(model, encoded, VOCABULARY)
    curve = fit_lm(
        model,
        encoded,
        encoded,
        VOCABULARY,
        LMSettings(epochs=100, lr=0.02, batch_words=200),
        seed=0,
    )
    assert (
        before > 15 and curve["perplexity"].iloc[-1] < 2.5
    )  # first words are drawn among ten sentences


def test_a_pass_is_measured_several_times_and_its_best_check_is_kept() -> None:
    encoded = pieces(SENTENCES, VOCABULARY, 64)
    # A rate so high that the model is worse at the end than before.
    settings = LMSettings(epochs=1, lr=0.5, batch_words=20, checks=4, warm_up=0.5)
    model = tiny_lm("LSTM")
    curve = fit_lm(model, encoded, encoded, VOCABULARY, settings, seed=0)
    assert curve["epoch"].tolist() == [0.25, 0.5, 0.75, 1.0]
    best = curve["perplexity"].min()
    assert perplexity(model, encoded, VOCABULARY, 20) == pytest.approx(best, rel=1e-4)
    assert curve["perplexity"].iloc[-1] != best


def test_perplexity_by_hand() -> None:
    model, encoded = tiny_lm("LSTM"), pieces(SENTENCES[:3], VOCABULARY, 64)
    total, n = 0.0, 0
    for one in encoded:
        ids = torch.tensor([one.ids])
        found = model.log_prob(model.run(model.embed(ids[:, :-1]))[0])
        total -= found[range(len(one.ids) - 1), ids[0, 1:]].sum().item()
        n += len(one.ids) - 1
    assert perplexity(model, encoded, VOCABULARY) == pytest.approx(math.exp(total / n), rel=1e-4)


def test_long_lines_are_cut_and_no_word_is_lost() -> None:
    found = pieces([["the"] * 10], VOCABULARY, 4)
    assert [len(one.ids) for one in found] == [5, 5, 4] and all(
        one.ids[0] == VOCABULARY.ids[END] for one in found
    )
    batches = list(word_batches(found, 10, 0, torch.Generator().manual_seed(0)))
    assert (
        sum(int(mask.sum()) for _, mask in batches) == 14
        and max(ids.numel() for ids, _ in batches) <= 10
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_student_begins_as_its_teacher_and_learns_from_it(architecture) -> None:
    teacher, encoded = tiny_lm(architecture, n_layers=3), pieces(SENTENCES, VOCABULARY, 64)
    student = student_of(teacher, [0, 2])
    assert student.config.n_layers == 2
    torch.testing.assert_close(
        student.embedding.tables[0].weight, teacher.embedding.tables[0].weight
    )
    same = [
        torch.equal(a, b)
        for a, b in zip(student.stack.layers[1].parameters(), teacher.stack.layers[2].parameters())
    ]
    assert all(same)
    ids, mask = next(word_batches(encoded, 500, 0, None))
    before = batch_loss(student.eval(), ids, mask, Distillation(teacher)).item()
    fit_lm(
        student,
        encoded,
        encoded,
        VOCABULARY,
        LMSettings(epochs=30, lr=0.01, batch_words=200),
        0,
        Distillation(teacher),
    )
    assert batch_loss(student.eval(), ids, mask, Distillation(teacher)).item() < before


def test_distilling_a_model_into_itself_leaves_entropy_and_lm_loss() -> None:
    model, encoded = tiny_lm("Transformer"), pieces(SENTENCES, VOCABULARY, 64)
    ids, mask = next(word_batches(encoded, 500, 0, None))
    hidden = model.run(model.embed(ids[:, :-1]))[mask[:, 1:].bool()]
    found = model.log_prob(hidden)
    entropy = -(found.exp() * found).sum(-1).mean()
    expected = entropy + batch_loss(model, ids, mask)
    torch.testing.assert_close(batch_loss(model, ids, mask, Distillation(model)), expected)
