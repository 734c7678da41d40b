"""The arms of the training benchmark make the same steps. Nothing is timed."""

from __future__ import annotations

import pytest
import torch
from tiny_models import toy_rows

from lib.core.paths import ROOT
from lib.training.classifier import Settings


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "tools" / "benchmarks")
    import training

    return training


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "seeds"), [("C", 2), ("CEfAf", 1), ("OLA-CEA", 2)])
def test_both_arms_make_the_same_steps(training: object, scheme: str, seeds: int) -> None:
    line = training.Line("toy", scheme, 20, 2, seeds, 2, 20, 2, seeds)
    training.SETTINGS[scheme] = Settings(2, 1e-3, 8, eps=1e-5)
    found = training.measure(line, toy_rows(), torch.device("cpu"), rounds=1)
    assert found["loss_difference"] < 1e-4 and found["logit_difference"] < 1e-4
    assert found["compared"] == f"{seeds} seeds x 2 epochs x 20 rows" and found["extrapolated"] == (
        seeds > 1
    )


@pytest.mark.slow
def test_in_double_nothing_is_left_of_a_difference(training: object) -> None:
    line = training.Line("toy", "OLA-CEA", 20, 30, 1, 30, 20, 30, 1, check_double=True)
    found = training.measure(line, toy_rows(), torch.device("cpu"), rounds=1)
    assert found["loss_difference_float64"] < 1e-10 and torch.get_default_dtype() == torch.float32
