"""The training loop: when gradients are clipped, how losses are averaged, which epoch is kept, and
that a training in parts is the one that was never stopped.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import get_linear_schedule_with_warmup

from lib.core.errors import TouchstoneError
from lib.training.loop import PartEnded, Parts, _read, descend, products_in, take_step


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


def test_products_in_bfloat16_are_near_and_the_process_is_left_as_it_was() -> None:
    before = torch.get_float32_matmul_precision()
    a, b = torch.randn(2, 64, 512, generator=torch.Generator().manual_seed(0))
    with products_in("bfloat16"):
        assert torch.get_float32_matmul_precision() == "medium"
        near = a @ b.T
    assert torch.get_float32_matmul_precision() == before
    # Eight bits a factor: an error of 2^-8 in each of 512 terms, which add up as their root.
    assert (near - a @ b.T).abs().max() < 512**0.5 * 2**-6
    with products_in("float32"):
        assert torch.get_float32_matmul_precision() == before


def train(parts: Parts | None = None, accumulate: bool = False, deadly: int = 0) -> list[bytes]:
    """Six epochs of a small net, with draws of every kind; the bytes of its weights and curve.

    With `deadly` the process kills itself in the course of that epoch.
    """
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 1))
    generator = torch.Generator().manual_seed(2)
    x = torch.arange(36.0).view(12, 3).sin()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05, weight_decay=0.01, fused=True)
    begun = [0]

    def batches() -> list[torch.Tensor]:
        begun[0] += 1
        if begun[0] == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return list(torch.randperm(12, generator=generator).split(4))

    curve = descend(
        list(net.parameters()),
        optimiser,
        6,
        batches,
        lambda rows: [(net(x[rows]) - x[rows].sum(1, keepdim=True)).square().mean()],
        lambda: [(torch.rand(1, generator=generator) + net(x).std()).item()],
        get_linear_schedule_with_warmup(optimiser, 2, 18),
        1.0,
        accumulate=accumulate,
        by_rows=True,
        keep_best=True,
        parts=parts,
        generators=[generator],
    )
    return [*(p.detach().numpy().tobytes() for p in net.parameters()), repr(curve).encode()]


@pytest.mark.parametrize("accumulate", [False, True])
def test_three_parts_are_the_whole(tmp_path: Path, accumulate: bool) -> None:
    path = tmp_path / "training.pt"
    for until in (2, 4):
        with pytest.raises(PartEnded, match=f"{until} of 6 epochs"):
            train(Parts(path, "mine", 2, until), accumulate)
    with pytest.raises(PartEnded, match="4 of 6"):  # asked for again, with more done by now
        train(Parts(path, "mine", 2, until=2), accumulate)
    whole = train(accumulate=accumulate)
    assert train(Parts(path, "mine", 2), accumulate) == whole
    assert train(Parts(path, "another", 2), accumulate) == whole, "not gone on with"


def test_a_part_that_was_killed_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    if not (child := os.fork()):
        train(Parts(path, "mine", 2), deadly=4)
        os._exit(0)  # not reached
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    kept = _read(path)
    assert [epoch for epoch, *_ in kept["curve"]] == [1, 2]
    assert train(Parts(path, "mine", 2)) == train()


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    train(Parts(path, "mine", 2))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(TouchstoneError, match="training.pt is damaged .*delete it"):
        train(Parts(path, "mine", 2))
