"""Randomness and devices: the same seed gives the same numbers on every machine."""

from __future__ import annotations

import hashlib
import json
import random
from typing import TYPE_CHECKING

import numpy as np

from .arithmetic import in_force
from .errors import TouchstoneError

if TYPE_CHECKING:
    import torch


def seed_for(*parts: str | int) -> int:
    """A seed in [0, 2**31) that depends on nothing but its parts: a method and a row, say.

    >>> seed_for("LIME", "12-F", 0) == seed_for("LIME", "12-F", 0) != seed_for("LIME", "12-F", 1)
    True
    """
    # hash() would differ between processes; NumPy takes no seed of more than 32 bits.
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") % 2**31


def set_up(seed: int, n_threads: int = 1) -> None:
    """Seed Python, NumPy and PyTorch, and set PyTorch's threads.

    Args:
        seed: the one seed of all three.
        n_threads: threads of PyTorch, on which the last digits of sums depend.
    """
    import torch  # here, so that seed_for costs nobody the import

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(2 if in_force() == "two_threads" else n_threads)


def pick_device(device: str) -> torch.device:
    """The device that a name stands for; "auto" takes a GPU where there is one.

    Raises:
        TouchstoneError: the name is not auto, cpu or cuda, or cuda is asked for and not there.
    """
    import torch

    if device not in ("auto", "cpu", "cuda"):
        raise TouchstoneError(f"device is {device!r}; write auto, cpu or cuda")
    has_gpu = torch.cuda.is_available()
    if device == "cuda" and not has_gpu:
        raise TouchstoneError(
            "device is cuda, but PyTorch finds no GPU; write device: auto or device: cpu"
        )
    return torch.device("cuda" if has_gpu and device != "cpu" else "cpu")
