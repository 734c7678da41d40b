"""Models that differ in their seed alone, trained side by side.

The numbers of one after the other, in one set of calls.

A small model's step is over before Python has asked for the next one, so five models cost hardly
more than one. Every model keeps its own start, its own validation rows, its own order of batches,
its own clipping and its own best epoch.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..core.errors import TouchstoneError
from .classifier import CURVE, Settings, Split, adam, batches

# parameters by name, those of each seed along the first axis
Stack = dict[str, Float[Tensor, "seed ..."]]
StackedForward = Callable[[Stack, Int[Tensor, "seed batch"]], Float[Tensor, "seed batch class"]]


def can_stack(splits: Sequence[Split], settings: Settings) -> bool:
    """Whether `fit_seeds` gives what `fit` gives.

    Equally many steps, no dropout (a draw per call), gradients zeroed.
    """
    sizes = {len(split.train) for split in splits}
    return len(sizes) == 1 and settings.dropout == 0 and settings.gradients == "zeroed"


def fit_seeds(
    forward: StackedForward,
    trained: Sequence[Mapping[str, nn.Parameter]],
    targets: Int[Tensor, "batch"],
    lengths: Int[Tensor, "batch"],
    splits: Sequence[Split],
    settings: Settings,
    seeds: Sequence[int],
) -> list[pd.DataFrame]:
    """`lib.training.classifier.fit` for several seeds at once.

    Each model is left at its own epoch of lowest validation loss.

    Returns:
        A learning curve per seed.

    Raises:
        TouchstoneError: where `can_stack` says no.
    """
    if not can_stack(splits, settings):
        raise TouchstoneError(
            "these seeds cannot be trained side by side: their splits differ in size, or dropout "
            "or accumulated gradients are wanted; train them one after the other"
        )
    stack = _stacked(trained)
    n_train = len(splits[0].train)
    # Adam works number by number, so one optimiser for all seeds does what one for each would.
    optimiser, schedule = adam(stack.values(), settings, n_train)
    # One stream a seed, each read as `fit` would read it.
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    curves: list[list[tuple[float, ...]]] = [[] for _ in seeds]
    best = [math.inf] * len(seeds)
    best_values = {name: p.detach().clone() for name, p in stack.items()}
    for epoch in range(1, settings.epochs + 1):
        total = torch.zeros(len(seeds), device=targets.device)
        orders = [
            batches(splits[i].train, lengths, settings, generators[i]) for i in range(len(seeds))
        ]
        for index in zip(*orders, strict=True):  # the same step of every seed
            total += _take_steps(forward, stack, index, targets, optimiser, settings)
            schedule.step()
        losses, accuracies = _evaluate_seeds(forward, stack, targets, splits)
        sums = total.tolist()
        for i, (loss, accuracy) in enumerate(zip(losses, accuracies, strict=True)):
            curves[i].append((epoch, sums[i] / n_train, loss, accuracy))
            if loss < best[i]:
                best[i] = loss
                for name, p in stack.items():
                    best_values[name][i] = p.detach()[i]
    _put_back(best_values, trained)
    return [pd.DataFrame(curve, columns=CURVE) for curve in curves]


def _stacked(trained: Sequence[Mapping[str, nn.Parameter]]) -> Stack:
    return {
        name: torch.stack([parameters[name].detach() for parameters in trained]).requires_grad_()
        for name in trained[0]
    }


@torch.no_grad()
def _put_back(values: Stack, trained: Sequence[Mapping[str, nn.Parameter]]) -> None:
    for i, parameters in enumerate(trained):
        for name, parameter in parameters.items():
            parameter.copy_(values[name][i])


def _take_steps(
    forward: StackedForward,
    stack: Stack,
    index: Sequence[Int[Tensor, "batch"]],
    targets: Int[Tensor, "batch"],
    optimiser: torch.optim.Optimizer,
    settings: Settings,
) -> Float[Tensor, "seed"]:
    """One step of every seed on its own batch; returns each one's loss, summed over its rows.

    The gradient of the sum of all losses is to each seed the gradient of its own, and it is clipped
    by its own length.
    """
    rows, counts = (part.to(targets.device) for part in aligned(index))
    optimiser.zero_grad()
    losses = cross_entropies(forward(stack, rows), targets[rows])  # (seed, batch)
    sums = (losses * counts).sum(1)
    (sums / counts.sum(1)).sum().backward()
    gradients = [p.grad for p in stack.values() if p.grad is not None]
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)  # (seed)
    shrink = (settings.max_norm / (norms + 1e-6)).clamp(max=1.0)  # as in torch's clip_grad_norm_
    for g in gradients:
        g.mul_(shrink.view(-1, *[1] * (g.ndim - 1)))
    optimiser.step()
    return sums.detach()


@torch.no_grad()
def _evaluate_seeds(
    forward: StackedForward, stack: Stack, targets: Int[Tensor, "batch"], splits: Sequence[Split]
) -> tuple[list[float], list[float]]:
    """Each seed's mean cross-entropy and accuracy on its own validation rows."""
    validation = aligned([split.validation for split in splits])
    rows, counts = (part.to(targets.device) for part in validation)
    scores, wanted = forward(stack, rows), targets[rows]  # (seed, batch, class), (seed, batch)
    n = counts.sum(1)
    right = (scores.argmax(-1) == wanted) * counts
    missed = cross_entropies(scores, wanted) * counts
    losses, accuracies = torch.stack([missed.sum(1) / n, right.sum(1) / n]).tolist()
    return losses, accuracies


def aligned(
    index: Sequence[Int[Tensor, "batch"]],
) -> tuple[Int[Tensor, "seed batch"], Float[Tensor, "seed batch"]]:
    """Rows of every seed side by side, and which of them count (1, else 0).

    Shorter ones are filled up with row 0.

    >>> rows, counts = aligned([torch.tensor([4, 2]), torch.tensor([3])])
    >>> rows.tolist(), counts.tolist()
    ([[4, 2], [3, 0]], [[1.0, 1.0], [1.0, 0.0]])
    """
    rows = nn.utils.rnn.pad_sequence(list(index), batch_first=True)
    lengths = torch.tensor([len(rows_of_seed) for rows_of_seed in index], device=rows.device)
    return rows, (torch.arange(rows.shape[1], device=rows.device) < lengths[:, None]).float()


def cross_entropies(
    scores: Float[Tensor, "seed batch class"], targets: Int[Tensor, "seed batch"]
) -> Float[Tensor, "seed batch"]:
    """The cross-entropy of every row of every seed."""
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="none").view(
        targets.shape
    )
