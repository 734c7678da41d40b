"""GECO's units as jobs: those of the notebooks, computed apart and found again by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small_models import as_rows, build
from tiny_models import CLASSES, saved, toy_rows

from lib.core.files import save_parquet
from lib.core.jobs import closed_stage
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.studies.geco import grid, jobs, units
from lib.studies.geco.grid import Unit, explain_group, groups_of, parts_of, run_units
from lib.studies.geco.jobs import jobs_of
from lib.studies.geco.model_units import Job, is_finished, models_of, run_group, settings_by_scheme
from lib.studies.geco.units import StageSources, plan_units, settings_by_method
from lib.training.transfer import Trainer

CPU = torch.device("cpu")


def defaults(stage: str) -> dict[str, Any]:
    return notebook_parameters(ROOT / "notebooks" / "geco" / f"{stage}.py")


def half(stage: object, name: str, split: str) -> pd.DataFrame:
    rows = toy_rows()
    chosen = rows["sentence_idx"] < 20 if split == "train" else rows["sentence_idx"] >= 26
    return rows[chosen].reset_index(drop=True)


@pytest.mark.slow
def test_jobs_are_the_notebooks_units_and_are_found_by_them(
    small_outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (jobs, units):
        monkeypatch.setattr(module, "load_dataset", half)
    chosen = {"encoder": saved(tmp_path, "bert"), "datasets": ["D_A"], "schemes": ["C", "OLA-CEA"]}
    values = defaults("02_training") | chosen | {"binary_schemes": [], "n_seeds_ola": 1}
    values |= {"epochs": {"C": 2, "OLA-CEA": 2}}
    stage = closed_stage("geco", "small", "02_training")
    training = jobs_of(stage, values)
    assert [job.key for job in training] == [
        "02_training/D_A-C-seed0",
        "02_training/D_A-OLA-CEA-seed0",
    ]
    assert all(job.needs == ("01_data_generation",) and job.seconds > 0 for job in training)
    for job in training:
        job.compute()
    assert not (stage.folder / "manifest.json").exists()
    tables = {name: values[name] for name in ("epochs", "lr", "batch_size", "weight_decay")}
    settings = settings_by_scheme(values["schemes"], values["dropout"], **tables)
    trainer = Trainer(values["encoder"], "", CPU, values["validation_share"], values["ola"])
    rows = [half(stage, "D_A", split) for split in ("train", "test")]
    stage, store = open_stage("geco", "small", "02_training"), Units("geco", "small", "02_training")
    monkeypatch.setattr(Trainer, "train", lambda *_: pytest.fail("trained again"))
    found = []
    for name, scheme, seed in models_of(values).itertuples(index=False):
        model = Job(name, scheme, seed, *rows, CLASSES, settings[scheme])
        assert is_finished(store, trainer, model)
        found.append(run_group(stage, store, trainer, [model])[0][0])
    save_parquet(pd.concat(found, ignore_index=True), stage.path("predictions.parquet"))
    stage.close(values)

    methods = ["Saliency", "InputXGradient", "Integrated Gradients", "Uniform random"]
    values = defaults("03_attribution") | chosen | {"methods": methods, "n_base": 2, "ig_steps": 4}
    values |= {"n_base_ola": 2, "one_pass_schemes": []}
    monkeypatch.setattr(grid, "MOST_PASSES", 20)
    stage = closed_stage("geco", "small", "03_attribution")
    explaining = jobs_of(stage, values)
    assert [job.key.partition("/")[2] for job in explaining] == [
        "D_A_-_seed-1_Uniform-random",
        "D_A_C_seed0_Saliency",  # Input x Gradient shares its pass
        "D_A_C_seed0_Integrated-Gradients_part1of2",
        "D_A_C_seed0_Integrated-Gradients_part2of2",
        "D_A_OLA-CEA_seed0_Saliency",
        "D_A_OLA-CEA_seed0_Integrated-Gradients",
    ]
    for job in explaining:
        job.compute()
    whole = stage.folder / "units" / "D_A_C_seed0_Integrated-Gradients.parquet"
    assert whole.is_file(), "the last part makes the whole"
    predictions = pd.read_parquet(stage.input("02_training", "predictions.parquet"))
    sources = StageSources(stage, predictions, 0, CPU)
    plan = plan_units(
        predictions[["dataset", "scheme", "seed"]].drop_duplicates(),
        methods,
        settings_by_method(
            values["explained"],
            values["aggregation"],
            False,
            {"Integrated Gradients": {"n_steps": 4}},
        ),
        2,
        2,
    )
    monkeypatch.setattr(StageSources, "model_of", lambda *_: pytest.fail("explained again"))
    made = run_units(plan, sources, Units("geco", "small", "03_attribution"))
    assert len(made) == 6 * (1 + 2 * 3)


class Fakes:
    """Six base sentences and a model, which counts how often it is asked for."""

    def __init__(self) -> None:
        texts = ["he sings .", "she", "they sing", "she runs .", "he", "they"]
        self.rows, self.model, self.asked = as_rows(texts), build("BERT"), 0
        self.rows["sentence_idx"] = range(6)

    def rows_of(self, unit: Unit) -> pd.DataFrame:
        return self.rows

    def model_of(self, unit: Unit) -> object:
        self.asked += 1
        return self.model

    def mark_of(self, unit: Unit) -> str:
        return "1"


def test_a_long_unit_is_made_in_parts_and_is_the_whole(
    small_outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_units(
        pd.DataFrame([("D_A", "CEf", 0)], columns=["dataset", "scheme", "seed"]),
        ["Integrated Gradients", "Saliency"],
        {"Integrated Gradients": {"n_steps": 10}},
        6,
        6,
    )
    unit, sources, store = plan[0], Fakes(), Units("geco", "small", "03_attribution")
    assert parts_of(unit, sources) == [] and len(groups_of(plan)) == 2
    (whole,), _ = explain_group([unit], sources, Units("geco", "whole", "03_attribution"))
    monkeypatch.setattr(grid, "MOST_PASSES", 20)
    parts = parts_of(unit, sources)
    assert [len(part.rows_of(unit)) for part in parts] == [2, 2, 2]
    assert pd.concat([part.rows_of(unit) for part in parts], ignore_index=True).equals(sources.rows)
    assert parts_of(plan[1], sources) == [], "one pass a row"
    sources.asked = 0
    explain_group(parts[1].units, parts[1], store)
    (found,), _ = explain_group([unit], sources, store)
    assert sources.asked == 3, "a part that was made is not made again"
    (again,), _ = explain_group([unit], sources, store)
    assert sources.asked == 3
    pd.testing.assert_frame_equal(found, again)
    assert found.drop(columns=["scores", "delta"]).equals(whole.drop(columns=["scores", "delta"]))
    for one, other in zip(found.scores, whole.scores, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=max(map(abs, other)) * 1e-5)
