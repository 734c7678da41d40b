"""What all benchmarks share: arms that take turns on one clock, and the machine they ran on."""

from __future__ import annotations

import gc
import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F

SHAPE = (2016, 384, 1536)  # 96 sentences of 21 tokens through MiniLM's widest layer


def now(device: torch.device) -> float:
    """Seconds of this process's processor time; with a GPU, wall time once its work is done."""
    if device.type != "cuda":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


@contextmanager
def no_old_garbage() -> Iterator[None]:
    """Within, the garbage collector walks only what is made within.

    It stays on, as it is for a user; but when it would walk the objects of all libraries is chance.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@dataclass
class Arm:
    """One side of a comparison: its rounds in seconds of a run, and what it found.

    A round runs it `repeats` times: a short run alone would be mostly chance.
    """

    run: Callable[[], Any]
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seconds: list[float] = field(default_factory=list)
    found: Any = None
    repeats: int = 1

    def round(self) -> None:
        """Run and note the time."""
        with no_old_garbage():
            start = now(self.device)
            for _ in range(self.repeats):
                self.found = self.run()
            self.seconds.append((now(self.device) - start) / self.repeats)

    @property
    def best(self) -> float:
        """The fastest round: what else the machine does can only make a round slower."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The median of the rounds, in seconds."""
        return median(self.seconds)

    def spread(self) -> float:
        """How much slower the slowest round was than the fastest, as a share."""
        return max(self.seconds) / min(self.seconds) - 1


def take_turns(arms: Mapping[Any, Arm], rounds: int) -> None:
    """Let the arms run one after the other, `rounds` times, every other time in reverse: A B, B A.

    Whatever makes the machine slower little by little then meets both sides alike.
    """
    order = list(arms.values())
    for number in range(rounds):
        for arm in reversed(order) if number % 2 else order:
            arm.round()


def interval_of_median(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """The narrowest interval between ordered values that holds their median at `level`.

    Of n independent rounds the k-th smallest and the k-th largest hold it unless fewer than k lie
    on one side, which a binomial of n and 1/2 says. Whatever the distribution; both are nan where
    even all the values (fewer than six) hold it more seldom.

    >>> interval_of_median([3, 1, 2, 5, 4, 7, 6]), interval_of_median(range(9))
    ((1, 7), (1, 7))
    """
    ordered, n = sorted(values), len(values)
    missed, k = 0.0, 0
    while (missed := missed + 2 * comb(n, k) / 2**n) <= 1 - level:
        k += 1
    return (ordered[k - 1], ordered[-k]) if k else (float("nan"), float("nan"))


def paired(
    theirs: Sequence[float], ours: Sequence[float], name: str = "ratio", short: str = "ratio"
) -> dict[str, float]:
    """The ratio of each round's two times: the median, its interval, and the range of the rounds.

    Columns are `name`, and `short` with `_low` and `_high` (of the interval), `_min` and `_max`.
    """
    ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
    low, high = interval_of_median(ratios)
    return {
        name: median(ratios),
        f"{short}_low": low,
        f"{short}_high": high,
        f"{short}_min": min(ratios),
        f"{short}_max": max(ratios),
    }


def compared(theirs: Arm, ours: Arm) -> dict[str, float]:
    """The ratio of the fastest rounds, its lowest and highest over the rounds, both spreads."""
    return {
        "ratio": theirs.best / ours.best,
        "ratio_low": min(theirs.seconds) / max(ours.seconds),
        "ratio_high": max(theirs.seconds) / min(ours.seconds),
        "original_spread": theirs.spread(),
        "engine_spread": ours.spread(),
        "load": os.getloadavg()[0],
    }


def machine(device: torch.device) -> dict[str, str | float]:
    """What the figures were measured on; a plain matrix product in both precisions (GFLOP/s)."""
    about = Path("/proc/cpuinfo")
    text = about.read_text() if about.is_file() else ""
    name = re.search(r"model name\s*:\s*(.*)", text)
    rates = {
        f"gflops_{str(dtype)[6:]}": matrix_rate(dtype, device)
        for dtype in (torch.float32, torch.bfloat16)
    }
    return {
        "processor": name.group(1).strip() if name else platform.processor(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "bfloat16_instructions": str("avx512_bf16" in text),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        **{package: version(package) for package in ("torch", "transformers", "captum", "lime")},
        **rates,
    }


@torch.inference_mode()
def matrix_rate(dtype: torch.dtype, device: torch.device, seconds: float = 0.2) -> float:
    """How many billion operations a second a linear layer makes at best: the limit of engines."""
    rows, width, out = SHAPE
    x, w = (
        torch.randn(rows, width, dtype=dtype, device=device),
        torch.randn(out, width, dtype=dtype, device=device),
    )
    best = float("inf")
    for _ in range(4):
        n, start = 0, now(device)
        while now(device) - start < seconds / 4:
            F.linear(x, w)
            n += 1
        best = min(best, (now(device) - start) / n)
    return 2 * rows * width * out / best / 1e9
