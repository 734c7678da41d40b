"""Seeds trained side by side.

Each has the losses, the epoch and the weights of its training alone.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lib.core.errors import TouchstoneError
from lib.training.classifier import Settings, Split, fit
from lib.training.side_by_side import aligned, can_stack, cross_entropies, fit_seeds

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(70, 5, generator=GENERATOR)
Y = torch.randint(
    0, 3, (70,), generator=GENERATOR
)  # noise: it is learnt by heart, so there is a best epoch to choose
LENGTHS = torch.randint(3, 9, (70,), generator=GENERATOR)
SETTINGS = Settings(epochs=25, lr=0.2, batch_size=16, weight_decay=0.01, max_norm=0.3)
SEEDS = [3, 4, 9]


def splits():
    orders = [torch.randperm(70, generator=torch.Generator().manual_seed(seed)) for seed in SEEDS]
    return [
        Split(order[:45], order[45 : 45 + n]) for order, n in zip(orders, (25, 20, 25), strict=True)
    ]


def layers():
    found = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        found.append(nn.Linear(5, 3))
    return found


def stacked(parameters, rows):
    return torch.einsum("sbh,sch->sbc", X[rows], parameters["weight"]) + parameters["bias"][:, None]


def test_every_seed_learns_as_it_does_alone():
    alone, together = layers(), layers()
    curves = [
        fit(
            lambda i, layer=layer: layer(X[i]),
            dict(layer.named_parameters()),
            Y,
            LENGTHS,
            split,
            SETTINGS,
            seed,
        )
        for layer, split, seed in zip(alone, splits(), SEEDS, strict=True)
    ]
    found = fit_seeds(
        stacked,
        [dict(layer.named_parameters()) for layer in together],
        Y,
        LENGTHS,
        splits(),
        SETTINGS,
        SEEDS,
    )
    for a, b in zip(curves, found, strict=True):
        assert b.to_numpy() == pytest.approx(a.to_numpy(), abs=1e-5)
    for a, b in zip(alone, together, strict=True):
        assert torch.allclose(a.weight, b.weight, atol=1e-5) and torch.allclose(
            a.bias, b.bias, atol=1e-5
        )
    kept = {int(curve["validation_loss"].idxmin()) for curve in curves}
    assert (
        len(kept) > 1 and 24 not in kept
    )  # the seeds keep epochs of their own, and not the last one
    assert not torch.allclose(together[0].weight, together[1].weight, atol=0.01)


def test_rows_that_fill_up_count_for_nothing():
    rows, counts = aligned([torch.tensor([5, 6, 7]), torch.tensor([8])])
    assert rows.tolist() == [[5, 6, 7], [8, 0, 0]] and counts.sum(1).tolist() == [3.0, 1.0]
    scores = torch.zeros(2, 3, 4)
    assert cross_entropies(scores, rows % 4).tolist() == [pytest.approx([1.386294] * 3)] * 2


@pytest.mark.parametrize("change", [{"dropout": 0.1}, {"gradients": "accumulated"}])
def test_what_would_give_other_numbers_is_refused(change):
    settings = Settings(**{"epochs": 1, "lr": 0.1, "batch_size": 8} | change)
    assert not can_stack(splits(), settings)
    with pytest.raises(TouchstoneError, match="one after the other"):
        fit_seeds(
            stacked,
            [dict(layer.named_parameters()) for layer in layers()],
            Y,
            LENGTHS,
            splits(),
            settings,
            SEEDS,
        )


def test_splits_of_different_size_cannot_be_stacked():
    assert can_stack(splits(), SETTINGS)
    assert not can_stack(
        [Split(torch.arange(9), torch.arange(2)), Split(torch.arange(8), torch.arange(2))], SETTINGS
    )
