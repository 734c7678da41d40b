"""How much of a run is the model's matrix products, which no arm of a comparison can leave out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Attention has products of its own; its fused kernels count whole, there and back.
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "matmul", "linear"}
ATTENTION = "scaled_dot_product"
TRIED = 5000  # operations that do next to nothing, from which it is seen what watching costs


def share_of_products(run: Callable[[], Any]) -> float:
    """The share of a run's processor time that is spent in matrix products, forward and backward.

    Every operation of torch is watched, which makes the run slower. That time is measured on
    operations that do next to nothing, and taken off. Everything is of one run, for a shared
    processor is faster at one time than at another.
    """
    start = time.process_time()
    with _Watch() as watch:
        run()
    seconds = time.process_time() - start
    return watch.seconds / (seconds - watch.operations * seconds_to_watch())


def seconds_to_watch() -> float:
    """What watching one operation costs."""
    small, taken = torch.zeros(1), []
    for watched in (False, True):
        start = time.process_time()
        with _Watch() if watched else torch.no_grad():
            for _ in range(TRIED):
                small.add(1)
        taken.append(time.process_time() - start)
    return max(0.0, taken[1] - taken[0]) / TRIED


class _Watch(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seconds, self.operations = 0.0, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.operations += 1
        name = func.overloadpacket.__name__
        if name not in PRODUCTS and ATTENTION not in name:
            return func(*args, **(kwargs or {}))
        start = time.process_time()
        found = func(*args, **(kwargs or {}))
        self.seconds += time.process_time() - start
        return found
