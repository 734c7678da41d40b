"""Every path of lib that takes a device, on the pretend one: the host's numbers, at a bounded cost.

`traffic.csv` holds the most times that the host may wait, and the most tensors that may be copied,
in each path. Where a path has become cheaper, write the smaller number; where a test says that one
costs more, it lists the lines of lib that caused it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from device_paths import EXPLAINING, DevicePath, numbers
from device_trainings import NOT_RUN, TRAININGS
from pretend_device import LIB, PretendDevice

from lib.core.seeds import pinned_copies

CPU = torch.device("cpu")
PATHS = {path.name: path for path in (*EXPLAINING, *TRAININGS)}
LEARNING = {path.name for path in TRAININGS}
MOST = pd.read_csv(Path(__file__).parent / "traffic.csv", index_col="path")
SPOKEN = {"device", "device_of", "pick_device"}


@contextmanager
def entered() -> Iterator[set[str]]:
    """Within, the functions of lib that are entered, as "room.file:function"."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(LIB):
            file = path[len(LIB) + 1 : -len(".py")].replace("/", ".")
            found.add(f"{file}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def speaks_of_a_device(node: ast.AST) -> bool:
    """Whether a function has an argument `device`, hands one over, or reads one."""
    names = (
        getattr(part, field, None) for part in ast.walk(node) for field in ("arg", "id", "attr")
    )
    return bool(SPOKEN & set(names))


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Public functions and methods, by qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            is_public = not child.name.startswith("_") or child.name in ("__init__", "__call__")
            if isinstance(child, ast.ClassDef) and is_public:
                yield from functions(child, f"{prefix}{child.name}.")
            elif is_public:
                yield prefix + child.name, child


@pytest.mark.slow
@pytest.mark.parametrize("name", PATHS)
def test_a_path_gives_the_hosts_numbers_at_a_bounded_cost(name: str, device: PretendDevice) -> None:
    path = PATHS[name]
    expected = numbers(path.run(CPU, 2))
    assert not device.traffic.waits, "the host's run came to the device"
    with entered() as seen:
        found = numbers(path.run(device.torch, 2))
    assert len(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert set(path.covers) <= seen
    # In trainings PyTorch's adaptive softmax adds rows by index, each of them once.
    assert name in LEARNING or not device.traffic.unordered, "other bits at each run on a GPU"
    costs, most = device.traffic.totals(), MOST.loc[name]
    assert all(costs[kind] <= most[kind] for kind in costs), f"{costs}\n{device.traffic}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, path in PATHS.items() if path.per_row is not None])
def test_no_row_makes_the_host_wait(name: str, device: PretendDevice) -> None:
    path, costs = PATHS[name], []
    for n_rows in (3, 5):
        device.traffic.clear()
        path.run(device.torch, n_rows)
        costs.append(device.traffic.totals())
    few, many = costs
    assert many["waits"] <= few["waits"], str(device.traffic)
    assert path.per_row is not None
    assert many["copies"] <= few["copies"] + 2 * path.per_row, str(device.traffic)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Saliency", "LIME", "language model, LSTM", "masked language model", "transfer, C"]
)
def test_pinned_copies_change_no_number(name: str, device: PretendDevice) -> None:
    path = PATHS[name]
    usual = numbers(path.run(device.torch, 3))
    assert not device.traffic.pinned
    with pinned_copies():
        found = numbers(path.run(device.torch, 3))
        of_host = numbers(path.run(CPU, 3))
    assert np.array_equal(found, usual, equal_nan=True)
    assert device.traffic.pinned and len(of_host) == len(usual)


def test_every_function_that_takes_a_device_is_run() -> None:
    """A new one belongs into a path of `device_paths` (its `covers`), or into NOT_RUN."""
    speaking = {
        f"{file.relative_to(LIB).with_suffix('').as_posix().replace('/', '.')}:{name}"
        for file in Path(LIB).rglob("*.py")
        for name, node in functions(ast.parse(file.read_text(encoding="utf-8")))
        if speaks_of_a_device(node)
    }
    covered = {name for path in PATHS.values() for name in path.covers}
    assert speaking - covered - NOT_RUN.keys() == set()
    assert NOT_RUN.keys() - speaking == set() and not NOT_RUN.keys() & covered


def test_every_path_has_its_bounds() -> None:
    assert set(MOST.index) == set(PATHS) and MOST.index.is_unique


def test_a_path_that_mixes_devices_or_waits_for_each_row_is_caught(device: PretendDevice) -> None:
    """The suite can fail: what it is for, done wrong on purpose."""

    def mixes(where: torch.device, n: int) -> Any:
        return torch.ones(n, device=where) * torch.ones(n)

    def waits(where: torch.device, n: int) -> Any:
        return [x.item() for x in torch.ones(n, device=where)]

    with pytest.raises(RuntimeError, match="same device"):
        DevicePath("", mixes).run(device.torch, 2)
    waits(device.torch, 5)
    assert device.traffic.waits["outside of lib"] == 5
