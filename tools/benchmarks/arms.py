"""What all benchmarks share: arms that take turns on one clock, and the machine they ran on."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
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


@dataclass
class Arm:
    """One side of a comparison: its rounds in seconds, and what it found."""

    run: Callable[[], Any]
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seconds: list[float] = field(default_factory=list)
    found: Any = None

    def round(self) -> None:
        """Run once and note the time."""
        start = now(self.device)
        self.found = self.run()
        self.seconds.append(now(self.device) - start)

    @property
    def best(self) -> float:
        """The fastest round: what else the machine does can only make a round slower."""
        return min(self.seconds)

    def spread(self) -> float:
        """How much slower the slowest round was than the fastest, as a share."""
        return max(self.seconds) / min(self.seconds) - 1


def take_turns(arms: Mapping[str, Arm], rounds: int) -> None:
    """Let the arms run one after the other, `rounds` times."""
    for _ in range(rounds):
        for arm in arms.values():
            arm.round()


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
