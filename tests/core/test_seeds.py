"""The same parts give the same seed everywhere, and a device that is not there is refused."""

from __future__ import annotations

import random
from fnmatch import fnmatch

import numpy as np
import pytest
import torch
import yaml

from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT
from lib.core.seeds import pick_device, seed_for, set_up


def test_seeds_are_fixed_numbers() -> None:
    assert seed_for("LIME", "12-F", 0) == 525333588  # on every machine, in every version
    assert len({seed_for("a", i) for i in range(1000)}) == 1000
    assert all(0 <= seed_for(i) < 2**31 for i in range(100))
    assert seed_for("1") != seed_for(1) and seed_for("a", "b") != seed_for("ab")


def test_set_up_seeds_all_three_and_sets_the_threads() -> None:
    draws = []
    for seed in (5, 5, 6):
        set_up(seed)
        draws.append((random.random(), float(np.random.rand()), float(torch.rand(()))))
    assert draws[0] == draws[1] and not set(draws[0]) & set(draws[2])
    assert torch.get_num_threads() == 1


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("auto").type == pick_device("cpu").type == "cpu"
    with pytest.raises(
        TouchstoneError, match="device is cuda, but PyTorch finds no GPU; write device: auto"
    ):
        pick_device("cuda")
    for name in ("gpu", "cuda:", "cuda:first", "cuda:-1", "mps:1", "cpu:0"):
        with pytest.raises(TouchstoneError, match=f"device is '{name}'; write auto, cpu, cuda"):
            pick_device(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [pick_device(name).type for name in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]
    torch.backends.cudnn.allow_tf32 = True
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    assert not torch.backends.cudnn.allow_tf32, "an LSTM would multiply with ten bits"
    with pytest.raises(TouchstoneError, match="device is cuda:2, but PyTorch finds only 2"):
        pick_device("cuda:2")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(TouchstoneError, match="device is mps, but PyTorch finds no such GPU"):
        pick_device("mps")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert pick_device("mps").type == "mps"


@pytest.mark.parametrize("name", ["auto", "cpu", "cuda", "cuda:1", "mps"])
def test_a_parameter_file_may_name_every_device(name: str) -> None:
    ranges = yaml.safe_load((ROOT / "params" / "ranges.yaml").read_text())
    assert any(fnmatch(name, rule) for rule in ranges["every study"]["device"])
