"""Randomness and devices: the same seed gives the same numbers on every machine."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from .arithmetic import in_force
from .errors import TouchstoneError

if TYPE_CHECKING:
    import torch

_pinned: ContextVar[bool] = ContextVar("pinned", default=False)


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

    "cuda:1" is the second GPU; "mps" that of an Apple computer, which has no float64 and is taken
    only by name.

    Raises:
        TouchstoneError: the name is none of these, or the device is not there.
    """
    import torch

    kind, _, number = device.partition(":")
    if device not in ("auto", "cpu", "cuda", "mps") and not (kind == "cuda" and number.isdecimal()):
        raise TouchstoneError(f"device is {device!r}; write auto, cpu, cuda, cuda:1 or mps")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise TouchstoneError("device is mps, but PyTorch finds no such GPU; write device: auto")
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "cuda" and int(number or 0) >= n_gpus:
        found = f"only {n_gpus}, counted from 0" if n_gpus else "no GPU"
        raise TouchstoneError(
            f"device is {device}, but PyTorch finds {found}; write device: auto or device: cpu"
        )
    if device == "auto":
        device = "cuda" if n_gpus else "cpu"
    # Unasked, cuDNN's LSTM would multiply with ten bits of a mantissa, as nothing else does.
    torch.backends.cudnn.allow_tf32 = False
    return torch.device(device)


@contextmanager
def pinned_copies() -> Iterator[None]:
    """Within, `to_device` copies from pinned memory, and the host goes on while a copy is made.

    What is copied here are token ids, 8 bytes each: a batch of 32 rows of 512 tokens is 131 kB, ten
    microseconds of a PCIe bus. So it is an option, and off.
    """
    token = _pinned.set(True)
    try:
        yield
    finally:
        _pinned.reset(token)


def to_device(tensor: torch.Tensor, device: torch.device | str) -> torch.Tensor:
    """A tensor of the host on the device, see `pinned_copies`; on the host it is the tensor."""
    if _pinned.get() and str(device) != "cpu" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
