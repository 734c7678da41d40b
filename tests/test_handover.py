"""What is published of cebab's stages 2 and 3 (scale cpu) gives the published errors of stage 4."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.files import load_parquet, save_parquet
from lib.core.paths import ROOT, reference_dir
from lib.core.stage import open_stage
from lib.metrics.concept_effects import DISTANCES, order_faithfulness, score_estimates
from lib.studies.cebab.pairs import edit_pairs
from lib.studies.cebab.registry import EXPLAINERS


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("handover", ROOT / "tools" / "handover.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_byte_keeps_small_numbers_better_than_large_ones(tool: ModuleType) -> None:
    numbers = np.linspace(-0.9, 0.9, 2001)
    again = tool.from_bytes(*tool.to_bytes(numbers))
    assert (
        np.abs(again - numbers).max() < 0.02
        and np.abs(again - numbers)[np.abs(numbers) < 0.01].max() < 0.002
    )
    assert not tool.from_bytes(*tool.to_bytes(np.zeros(3))).any()


def test_nothing_is_put_in_the_place_of_a_run(tool: ModuleType, small_outputs: Path) -> None:
    with pytest.raises(TouchstoneError, match="nothing is published of cebab at scale paper"):
        tool.restore("paper")
    open_stage("cebab", "cpu", "02_training").close(
        {"scale": "cpu", **tool._parameters(open_stage("cebab", "cpu", "02_training"))}
    )
    with pytest.raises(TouchstoneError, match="02_training has been run here at scale cpu"):
        tool.restore("cpu")


@pytest.mark.slow
def test_a_fresh_clone_gets_the_published_errors(
    tool: ModuleType, cebab: pd.DataFrame, small_outputs: Path
) -> None:
    first, texts = open_stage("cebab", "cpu", "01_data_generation"), cebab.assign(dataset="cebab")
    save_parquet(texts, first.path("texts.parquet"))
    save_parquet(
        edit_pairs(texts[texts["split"] == "test"]).assign(dataset="cebab", split="test"),
        first.path("pairs.parquet"),
    )
    first.close(tool._parameters(first))
    tool.restore("cpu")
    predictions = load_parquet(small_outputs / "cebab/cpu/02_training/predictions.parquet")
    estimates = load_parquet(small_outputs / "cebab/cpu/03_attribution/estimates.parquet")
    asked = set(EXPLAINERS) - {"Approx (originals)"}  # which came after that run
    assert set(estimates["explainer"]) == asked and len(estimates) == 3 * 3958 * len(asked)
    questions = score_estimates(estimates, predictions)
    scored = questions.groupby("explainer")[list(DISTANCES)].mean().stack()
    published = pd.read_csv(reference_dir("cebab", "cpu") / "04_metrics/errors.csv").set_index(
        ["explainer", "metric"]
    )["error"]
    assert (scored - published[scored.index]).abs().max() < 0.001
    agreed = {
        (name, seed): order_faithfulness(
            part, part[["effect"]].to_numpy(), part[["estimate"]].to_numpy()
        )["agree"].mean()
        for (name, seed), part in questions.groupby(["explainer", "seed"])
    }
    means = pd.Series(agreed).groupby(level=0).mean()
    order = pd.read_csv(reference_dir("cebab", "cpu") / "04_metrics/order.csv")
    moved = (means - order.set_index("explainer")["agree"]).abs().max()
    assert 0.005 < moved < 0.006, "what the tool says of it"
