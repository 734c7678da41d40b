"""Fitting: batches, the split, the schedule, and the epoch that is kept."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.core.errors import TouchstoneError
from lib.training.classifier import (
    Settings,
    Split,
    batches,
    evaluate,
    fit,
    validation_split,
)

LENGTHS = torch.randint(5, 40, (100,), generator=torch.Generator().manual_seed(1))


def waste(found):
    return sum(int(LENGTHS[b].max()) * len(b) for b in found) / int(LENGTHS.sum())


@pytest.mark.parametrize("grouped", [True, False])
def test_an_epoch_takes_every_row_once(grouped):
    settings = Settings(epochs=1, lr=1.0, batch_size=8, grouped=grouped)
    found = list(batches(torch.arange(100), LENGTHS, settings, torch.Generator().manual_seed(0)))
    assert sorted(torch.cat(found).tolist()) == list(range(100)) and len(found) == 13
    again = list(batches(torch.arange(100), LENGTHS, settings, torch.Generator().manual_seed(0)))
    other = list(batches(torch.arange(100), LENGTHS, settings, torch.Generator().manual_seed(1)))
    assert torch.equal(torch.cat(found), torch.cat(again)) and not torch.equal(
        torch.cat(found), torch.cat(other)
    )


def test_grouping_by_length_saves_padding():
    found = [
        list(
            batches(
                torch.arange(100),
                LENGTHS,
                Settings(1, 1.0, 8, grouped=grouped),
                torch.Generator().manual_seed(0),
            )
        )
        for grouped in (True, False)
    ]
    assert waste(found[0]) < 1.2 < 1.4 < waste(found[1])


def test_the_variants_of_a_sentence_stay_on_one_side():
    sentence_idx = [i for i in range(50) for _ in range(3)]
    split = validation_split(sentence_idx, share=0.2, seed=4)
    sides = [{sentence_idx[i] for i in rows.tolist()} for rows in (split.train, split.validation)]
    assert (
        not sides[0] & sides[1]
        and len(sides[1]) == 10
        and len(split.train) + len(split.validation) == 150
    )
    assert torch.equal(validation_split(sentence_idx, 0.2, 4).validation, split.validation)
    assert not torch.equal(validation_split(sentence_idx, 0.2, 5).validation, split.validation)


def linear_task(n=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator)
    y = (x[:, 0] > 0).long()
    layer = nn.Linear(4, 2)
    return x, y, layer


def run(settings, seed=0, split=None, noise=False):
    torch.manual_seed(0)
    x, y, layer = linear_task()
    if noise:
        y = torch.randint(0, 2, (60,), generator=torch.Generator().manual_seed(5))
    split = split or Split(torch.arange(40), torch.arange(40, 60))
    seen = []

    def forward(index):
        if layer.training and torch.is_grad_enabled():
            seen.append(layer.weight.detach().clone())
        return layer(x[index])

    lengths = torch.ones(60, dtype=torch.long)
    curve = fit(forward, dict(layer.named_parameters()), y, lengths, split, settings, seed)
    return curve, layer, (forward, y, lengths, split), seen


def test_it_learns_and_the_seed_decides_all():
    settings = Settings(epochs=30, lr=0.1, batch_size=10)
    curve, layer, (forward, y, lengths, split), _ = run(settings)
    assert evaluate(forward, y, lengths, split.validation, 7)[1] >= 0.9
    assert curve["train_loss"].iloc[-1] < curve["train_loss"].iloc[0] / 2 and curve[
        "epoch"
    ].tolist() == list(range(1, 31))
    again, other = run(settings)[1], run(settings, seed=1)[1]
    assert torch.equal(layer.weight, again.weight) and not torch.equal(layer.weight, other.weight)


def test_the_best_epoch_by_validation_loss_is_kept():
    curve, _, (forward, y, lengths, split), _ = run(
        Settings(epochs=40, lr=0.3, batch_size=10), noise=True
    )
    best = curve["validation_loss"].min()
    assert (
        curve["validation_loss"].iloc[-1] > best + 1e-3
    )  # it gets worse again: there is something to choose
    assert evaluate(forward, y, lengths, split.validation, 20)[0] == pytest.approx(best, abs=1e-6)


def test_the_schedule_warms_up_over_a_tenth_and_ends_at_zero():
    _, layer, _, seen = run(
        Settings(epochs=5, lr=0.1, batch_size=10)
    )  # 20 steps, 2 of them warm-up
    moved = [(b - a).abs().max().item() for a, b in zip(seen, seen[1:], strict=False)]
    assert moved[0] == 0.0  # the first step has rate 0
    assert moved[1] == pytest.approx(0.05, rel=0.3) and moved[2] == pytest.approx(0.1, rel=0.3)
    assert max(moved[3:8]) > 3 * moved[-1]


def test_evaluation_is_the_mean_over_rows_whatever_the_batches():
    x, y, layer = linear_task()
    lengths = torch.arange(60) % 7
    results = [
        evaluate(lambda i: layer(x[i]), y, lengths, torch.arange(60), size) for size in (1, 7, 60)
    ]
    loss = F.cross_entropy(layer(x), y).item()
    for found, accuracy in results:
        assert (
            found == pytest.approx(loss, abs=1e-6)
            and accuracy == (layer(x).argmax(1) == y).double().mean().item()
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gradients": "kept"}, "write one of zeroed, accumulated"),
        ({"epochs": 0}, "epochs is 0; write 1 or more"),
        ({"batch_size": 0}, "batch_size is 0; write 1 or more"),
    ],
)
def test_settings_that_mean_nothing_are_refused(change, message):
    with pytest.raises(TouchstoneError, match=message):
        Settings(**({"epochs": 1, "lr": 1.0, "batch_size": 1} | change))
