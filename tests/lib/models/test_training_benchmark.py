"""The arms of the training benchmark make the same steps, and the table of aims says what was measured. Nothing is timed."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from tiny_models import toy_rows

from lib.paths import ROOT
from lib.training import Settings


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import training

    return training


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import bench

    return bench


@pytest.mark.parametrize(("scheme", "seeds"), [("C", 2), ("CEfAf", 1), ("OLA-CEA", 2)])
def test_both_arms_make_the_same_steps(training: object, scheme: str, seeds: int) -> None:
    line = training.Line("toy", scheme, 20, 2, seeds, 2, 20, 2, seeds)
    training.SETTINGS[scheme] = Settings(2, 1e-3, 8, eps=1e-5)
    found = training.measure(line, toy_rows(), torch.device("cpu"), rounds=1)
    assert found["loss_difference"] < 1e-4 and found["logit_difference"] < 1e-4
    assert found["compared"] == f"{seeds} seeds x 2 epochs x 20 rows" and found["extrapolated"] == (seeds > 1)


def test_in_double_nothing_is_left_of_a_difference(training: object) -> None:
    line = training.Line("toy", "OLA-CEA", 20, 30, 1, 30, 20, 30, 1, check_double=True)
    found = training.measure(line, toy_rows(), torch.device("cpu"), rounds=1)
    assert found["loss_difference_float64"] < 1e-10 and torch.get_default_dtype() == torch.float32


def line(**values: float) -> pd.Series:
    return pd.Series({"ratio": 1.0, "ratio_low": 0.9, "ratio_high": 1.1, "of_limit": 0.5, "share_difference": 0.0,
                      "difference_float64": 0.0, "rows": 4, "rounds": 2, "steps": 30.0, "largest_gap": 0.005,
                      "logit_difference": 0.0, "loss_difference": 2e-4, "loss_difference_float64": 1e-13, "scale": "full"} | values)


def test_an_aim_is_met_by_ratio_or_limit_or_missed(bench: object) -> None:
    aim = bench.Aim("x", "x", 1.35)
    assert bench.verdict(aim, line(ratio=1.4)) == "met" and bench.verdict(aim, line()) == "missed"
    assert bench.verdict(aim, line(of_limit=0.96)) == "met by the limit"
    steps = bench.Aim("x", "x", 25, "steps", True, False, ("largest_gap", 0.01))
    assert bench.verdict(steps, line()) == "missed" and bench.verdict(steps, line(steps=20)) == "met"
    assert bench.verdict(steps, line(steps=20, largest_gap=0.02)) == "met, but largest_gap 0.02"


def test_the_table_shows_every_aim_and_says_why_one_is_missed(bench: object) -> None:
    about = pd.Series({"gflops_bfloat16": 200.0, "gflops_float32": 100.0})
    lines = {aim.line: line(ratio=500.0, steps=20, of_limit=1.2) for aim in bench.AIMS}
    lines["LIME, 5000 samples, bfloat16"] = line(ratio=6.0, of_limit=0.5)
    table = bench.table_of_aims(lines, about).set_index("what")
    assert len(table) == len(bench.AIMS) + 1
    assert table.loc["LIME 5000, bf16", "verdict"] == "missed"
    assert "2.0 times as fast" in table.loc["LIME 5000, bf16", "why"]
    assert "1e-13 with 64-bit" in table.loc["OLA-CEA, 5 seeds x 200 epochs", "why"]
    assert table.loc["one GPU, bert-base shape, whole method set", "verdict"] == "not run"
    text = bench.as_markdown(table.reset_index())
    assert text.count("\n") == len(table) + 1 and "**missed**" in text and "500 (0.9-1.1)" in text


def test_the_readme_shows_the_committed_table(bench: object) -> None:
    reference = ROOT / "outputs" / "reference" / "benchmarks"
    text = (ROOT / "benchmarks" / "README.md").read_text()
    shown = text.partition(bench.BEGIN)[2].partition(bench.END)[0].strip()
    assert shown == bench.as_markdown(pd.read_csv(reference / "table.csv"))
    plan = pd.read_csv(reference / "plan_paper.csv").iloc[-1]
    hours = [round(plan[name] / 3600) for name in ("seconds", "low", "high")]
    assert f"about {hours[0]} hours of one such core (95 % interval {hours[1]} to\n{hours[2]})" in text
