"""The training loop: when gradients are clipped, how losses are averaged, which epoch is kept."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lib.training.loop import descend, take_step


def one_weight() -> tuple[nn.Parameter, torch.optim.Optimizer]:
    weight = nn.Parameter(torch.zeros(2))
    return weight, torch.optim.SGD([weight], lr=1.0)


def test_gradients_are_clipped_before_the_step() -> None:
    weight, optimiser = one_weight()
    take_step((weight * torch.tensor([30.0, 40.0])).sum(), [weight], optimiser, 1.0)
    assert weight.tolist() == pytest.approx([-0.6, -0.8], abs=1e-5)
    take_step((weight * torch.tensor([0.0, 0.5])).sum(), [weight], optimiser, 1.0)
    assert weight.tolist() == pytest.approx(
        [-0.6, -1.3], abs=1e-5
    )  # the earlier gradient is gone, a small one is left alone


def test_the_released_step_accumulates_and_clips_afterwards() -> None:
    weight, optimiser = one_weight()
    take_step(
        (weight * torch.tensor([30.0, 40.0])).sum(), [weight], optimiser, 1.0, accumulate=True
    )
    assert weight.tolist() == [-30.0, -40.0] and weight.grad.tolist() == pytest.approx(
        [0.6, 0.8], abs=1e-5
    )
    take_step((weight * torch.tensor([0.0, 0.5])).sum(), [weight], optimiser, 1.0, accumulate=True)
    assert weight.tolist() == pytest.approx([-30.6, -41.3], abs=1e-4)
    assert weight.grad.norm().item() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(("keep_best", "kept"), [(True, -1.0), (False, -3.0)])
def test_the_best_epoch_or_the_last_one_is_kept(keep_best: bool, kept: float) -> None:
    weight = nn.Parameter(torch.zeros(1))
    measures = iter([(2.0,), (5.0,), (3.0,)])
    curve = descend(
        [weight],
        torch.optim.SGD([weight], lr=1.0),
        epochs=3,
        batches=lambda: [[0]],
        losses=lambda rows: [weight.sum()],
        validate=lambda: next(measures),
        keep_best=keep_best,
    )
    assert curve == [(1, 0.0, 2.0), (2, -1.0, 5.0), (3, -2.0, 3.0)] and weight.item() == kept


@pytest.mark.parametrize(("by_rows", "mean"), [(True, 3.0), (False, 2.0)])
def test_batches_weigh_by_their_rows_or_alike(by_rows: bool, mean: float) -> None:
    weight = nn.Parameter(torch.zeros(1))
    losses = {1: 0.0, 3: 4.0}  # by the number of rows
    curve = descend(
        [weight],
        torch.optim.SGD([weight], lr=0.0),
        epochs=1,
        batches=lambda: [[0], [1, 2, 3]],
        losses=lambda rows: [weight.sum() + losses[len(rows)], weight.sum() + 1],
        validate=lambda: (),
        by_rows=by_rows,
    )
    assert curve == [(1, mean, 1.0)]
