"""The one training loop: epochs of batches, a loss, a step, and what held-out data say after it."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler


def descend(
    parameters: Sequence[nn.Parameter],
    optimiser: torch.optim.Optimizer,
    epochs: int,
    batches: Callable[[], Iterable[Any]],
    losses: Callable[[Any], Sequence[Tensor]],
    validate: Callable[[], Sequence[float]],
    schedule: LRScheduler | None = None,
    max_norm: float = math.inf,
    accumulate: bool = False,
    by_rows: bool = False,
    keep_best: bool = False,
) -> list[tuple[float, ...]]:
    """The learning curve of a gradient descent: epoch, mean of each training loss, measures.

    Args:
        batches: called once an epoch; gives the batches of that epoch.
        losses: the terms of a batch's loss, whose sum is minimised and whose means are reported.
        validate: called after each epoch; its measures stand at the end of a line of the curve.
        schedule: takes a step after each step of the optimiser.
        max_norm: gradients longer than this are shortened to it.
        accumulate: see `take_step`.
        by_rows: whether the means weigh a batch by its length; otherwise all batches weigh alike.
        keep_best: leave the parameters at the epoch with the lowest first measure, not the last.
    """
    curve: list[tuple[float, ...]] = []
    best, best_values = math.inf, [p.detach().clone() for p in parameters if keep_best]
    for epoch in range(1, epochs + 1):
        weights, noted = [], []
        for batch in batches():
            terms = losses(batch)
            take_step(sum(terms[1:], terms[0]), parameters, optimiser, max_norm, accumulate)
            if schedule is not None:
                schedule.step()
            weights.append(len(batch) if by_rows else 1)
            noted.append(torch.stack([term.detach() for term in terms]))
        # Read once an epoch: to read a loss is to wait for the device.
        columns = torch.stack(noted).T.tolist() if noted else []
        means = [
            sum(loss * weight for loss, weight in zip(column, weights, strict=True)) / sum(weights)
            for column in columns
        ]
        measures = validate()
        curve.append((epoch, *means, *measures))
        # Strictly better: of equal epochs the first is kept.
        if keep_best and measures[0] < best:
            best, best_values = measures[0], [p.detach().clone() for p in parameters]
    with torch.no_grad():
        # Without keep_best there are no values, and nothing is put back.
        for parameter, value in zip(parameters, best_values, strict=keep_best):
            parameter.copy_(value)
    return curve


def take_step(
    loss: Tensor,
    parameters: Sequence[nn.Parameter],
    optimiser: torch.optim.Optimizer,
    max_norm: float,
    accumulate: bool = False,
) -> None:
    """One optimiser step. Gradients are zeroed, computed, clipped, then used.

    `accumulate` is what the released code of OLA does: gradients are never zeroed, and they are
    clipped only after they were used.
    """
    if not accumulate:
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, max_norm)
        optimiser.step()
    else:
        loss.backward()
        optimiser.step()
        nn.utils.clip_grad_norm_(parameters, max_norm)
