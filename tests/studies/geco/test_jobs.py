"""GECO's units as jobs: those of the notebooks, computed apart and found again by them."""

from __future__ import annotations

import os
import signal
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
from lib.core.parameters import notebook_parameters, read_params
from lib.core.paths import ROOT
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.studies.geco import grid, jobs, model_units, units
from lib.studies.geco.grid import Unit, explain_group, groups_of, parts_of, run_units
from lib.studies.geco.jobs import jobs_of
from lib.studies.geco.model_units import Job, is_finished, models_of, run_group, settings_by_scheme
from lib.studies.geco.units import StageSources, plan_units, settings_by_method
from lib.training import classifier
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


def tree(folder: Path) -> dict[str, bytes]:
    """The files of a stage but its locks, by name."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_a_long_training_in_parts_leaves_the_bytes_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "load_dataset", half)
    chosen = {"encoder": saved(tmp_path, "bert"), "datasets": ["D_A"], "schemes": ["C", "CEfAf"]}
    values = defaults("02_training") | chosen | {"binary_schemes": [], "dropout": 0.2}
    values |= {"epochs": {"C": 6, "CEfAf": 6}}

    def listed(root: str) -> tuple[Path, list[Any]]:
        monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / root))
        stage = closed_stage("geco", "small", "02_training")
        return stage.folder, list(jobs_of(stage, values))

    whole, (*_, job) = listed("whole")
    job.compute()
    monkeypatch.setattr(model_units, "MOST_SECONDS", job.seconds / 2.5)
    folder, made = listed("parts")
    keys = [f"02_training/D_A-CEfAf-seed0{part}" for part in ("_part1of3", "_part2of3", "")]
    assert [one.key for one in made] == ["02_training/D_A-C-seed0", *keys]
    assert [one.needs[1:] for one in made[1:]] == [(), (keys[0],), (keys[1],)]
    checkpoint = folder / ".checkpoints" / "D_A-CEfAf-seed0.safetensors"
    for one in made[1:3]:
        one.compute()
        assert checkpoint.is_file() and not list(folder.glob("units/*.csv"))
    made[3].compute()
    assert not checkpoint.exists() and tree(folder) == tree(whole)
    with monkeypatch.context() as nothing:
        nothing.setattr(Trainer, "train", lambda *_: pytest.fail("trained again"))
        for one in made[1:]:
            one.compute()

    folder, made = listed("killed")
    if not (child := os.fork()):
        once, calls = classifier.evaluate, []

        def deadly(*asked: Any) -> tuple[float, float]:
            calls.append(1)
            if len(calls) == 3:  # in the first epoch of the second part
                os.kill(os.getpid(), signal.SIGKILL)
            return once(*asked)

        monkeypatch.setattr(classifier, "evaluate", deadly)
        made[3].compute()
        os._exit(0)  # not reached
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    made[3].compute()
    assert tree(folder) == tree(whole)


def test_no_job_of_the_papers_grid_is_longer_than_half_an_hour(
    small_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(stage: object, name: str, split: str) -> pd.DataFrame:
        n = (3864 if split == "train" else 966) * (2 if name.endswith("binary") else 3) // 3
        return pd.DataFrame({"sentence_idx": range(n)})

    monkeypatch.setattr(jobs, "load_dataset", rows)
    values = defaults("02_training") | read_params(ROOT / "params" / "geco" / "paper.yaml")
    stage = closed_stage("geco", "paper", "02_training")
    made = jobs_of(stage, {name: values[name] for name in values})
    assert max(job.seconds for job in made) <= 1800 + 966 * 0.2, "and the test rows once"
    assert sum(job.key.endswith("D_A-CEfAf-seed0") for job in made) == 1
    small = jobs_of(stage, defaults("02_training"))
    assert not [job.key for job in small if "part" in job.key]


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
