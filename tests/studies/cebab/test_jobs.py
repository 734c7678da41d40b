"""cebab's units as jobs: those of the notebooks, computed apart and found again by them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as tf
from tiny_models import byte_pairs

from lib.core import units
from lib.core.errors import TouchstoneError
from lib.core.files import save_parquet
from lib.core.jobs import closed_stage
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT, material
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.studies.cebab import trainings
from lib.studies.cebab.asking import Asking
from lib.studies.cebab.jobs import jobs_of
from lib.studies.cebab.pairs import edit_pairs
from lib.studies.cebab.reviewers import Reviewer
from lib.studies.cebab.reviews import ASPECTS
from lib.studies.cebab.trainings import Trainings
from lib.studies.cebab.worlds import World, generate_reviews, read_wordings

ASKED = ["Zero", "CONEXP", "LEACE", "CausaLM", "Causal Proxy Model"]


def defaults(stage: str) -> dict[str, Any]:
    """The parameters of one stage, and of no other."""
    return notebook_parameters(ROOT / "notebooks" / "cebab" / f"{stage}.py")


def saved_encoder(folder: Path) -> str:
    """A tiny random encoder that reads whole reviews, as one would find it on a hub."""
    tokenizer = byte_pairs(True, places=320)
    torch.manual_seed(0)
    config = tf.RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=322,
        pad_token_id=1,
        initializer_range=0.3,
    )
    tf.RobertaForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def first_stage(small_outputs: Path) -> pd.DataFrame:
    """Stage 01 with a few reviews of our own; its texts."""
    wordings = read_wordings(material("cebab") / "wordings.yaml")
    n_originals = {"train": 24, "dev": 4, "test": 6}
    texts = generate_reviews(World(0.8), wordings, n_originals, 2, 0).assign(dataset="confounded")
    stage = open_stage("cebab", "small", "01_data_generation")
    save_parquet(texts, stage.path("texts.parquet"))
    pairs = [
        edit_pairs(texts[texts["split"] == split]).assign(dataset="confounded", split=split)
        for split in ("dev", "test")
    ]
    save_parquet(pd.concat(pairs, ignore_index=True), stage.path("pairs.parquet"))
    stage.close(defaults("01_data_generation"))
    return texts


def close_training(stage: Any, study: Trainings, values: dict[str, Any]) -> None:
    """Write what stage 03 reads of stage 02, as the notebook does."""
    answers = [
        study.answers(*model).assign(**dict(zip(("dataset", "model", "seed"), model)))
        for model in study.models()
    ]
    known = study.texts[["dataset", "text_id", "split"]]
    predictions = pd.concat(answers, ignore_index=True).merge(known, on=["dataset", "text_id"])
    unlearnt = pd.concat([study.unlearnt(*unit) for unit in study.unlearnings()])
    save_parquet(predictions, stage.path("predictions.parquet"))
    save_parquet(study.aspects("confounded"), stage.path("aspects.parquet"))
    save_parquet(study.record(predictions, unlearnt), stage.path("trainings.parquet"))
    stage.close(values)


FEW = {"epochs": {"encoder": 2, "BiLSTM": 2}, "n_frozen": 1, "n_seeds": 2}
FEW |= {"models": ["encoder", "BiLSTM", "frozen encoder"]}


@pytest.mark.slow
def test_jobs_are_the_notebooks_units_and_are_found_by_them(
    first_stage: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = defaults("02_training") | FEW | {"encoder": saved_encoder(tmp_path / "encoder")}
    jobs = jobs_of(closed_stage("cebab", "small", "02_training"), values)
    names = [f"{kind}-seed{k}" for kind in ("encoder", "BiLSTM") for k in (0, 1)]
    names = ["frozen", "without-seed0", "without-seed1", *names, "frozen_encoder-seed0"]
    assert [job.key for job in jobs] == [f"02_training/confounded-{name}" for name in names]
    assert all(job.needs == ("01_data_generation",) and job.seconds > 0 for job in jobs)
    for job in reversed(jobs):  # in any order: the head over a frozen encoder comes first
        job.compute()
    stage = open_stage("cebab", "small", "02_training")
    monkeypatch.setattr(Reviewer, "read", lambda *_, **__: pytest.fail("trained again"))
    for name in ("vectors_without", "sentence_vectors", "fit_head", "masked_lm_of"):
        monkeypatch.setattr(trainings, name, lambda *_: pytest.fail("computed again"))
    study = Trainings(stage, Units("cebab", "small", "02_training"), values)
    first, second = (study.without("confounded", seed)[1] for seed in (0, 1))
    assert first.shape[0] == len(ASPECTS) + 1 and not np.allclose(first, second), "own draws"
    assert set(study.frozen("confounded")) == {"train", "dev", "dev edits", "test"}
    close_training(stage, study, values)

    values = defaults("03_attribution") | {"explainers": ASKED}  # it knows no encoder
    jobs = jobs_of(closed_stage("cebab", "small", "03_attribution"), values)
    keys = [job.key.removeprefix("03_attribution/confounded-") for job in jobs]
    assert len(keys) == 2 * len(ASKED) + 3 * (len(ASKED) - 1)
    assert keys[4] == "encoder-seed0-Causal_Proxy_Model"
    assert not [key for key in keys if "LSTM" in key and "Proxy" in key], "it copies an encoder"
    assert {job.model for job in jobs[:5]} == {"confounded-encoder-seed0"}
    assert all(job.needs == ("01_data_generation", "02_training") for job in jobs)
    for job in jobs:
        job.compute()
    stage = open_stage("cebab", "small", "03_attribution")
    study = Asking(stage, Units("cebab", "small", "03_attribution"), values)
    monkeypatch.setattr(Asking, "_made", lambda *_: pytest.fail("asked again"))
    for *model, _, _, _ in study.models.itertuples(index=False):
        found = [study.answers(name, *model) for name in ASKED]
        assert [table is None for table in found] == [False] * 4 + [model[1] != "encoder"]
        assert all(len(table) == len(study.asked(*model)) > 0 for table in found[:4])
        assert found[0]["scale"].eq(0).all() and found[3]["scale"].ge(0).all()
    noted = "02_training/models/confounded-encoder-seed{}.{}"
    kinds = ("json", "safetensors")
    assert {noted.format(k, kind) for k in (0, 1) for kind in kinds} <= set(stage.inputs)


def test_other_stages_have_no_units_and_models_from_outside_are_no_jobs(
    first_stage: pd.DataFrame,
) -> None:
    for name in ("01_data_generation", "04_metrics", "05_figures"):
        assert jobs_of(closed_stage("cebab", "small", name), defaults(name)) == []
    asking = closed_stage("cebab", "small", "03_attribution")
    with pytest.raises(TouchstoneError, match="02_training has not been completed"):
        jobs_of(asking, defaults("03_attribution"))
    stage = open_stage("cebab", "small", "02_training")
    columns = ["dataset", "model", "seed", "text_id", "split", "p_1", "p_2"]
    nobody = pd.DataFrame(columns=columns)
    save_parquet(nobody, stage.path("predictions.parquet"))
    study = Trainings(stage, Units("cebab", "small", "02_training"), defaults("02_training") | FEW)
    none = Trainings(stage, study.store, {**study.values, "models": []})
    save_parquet(none.record(nobody, nobody), stage.path("trainings.parquet"))
    stage.close(defaults("02_training"))
    assert jobs_of(asking, defaults("03_attribution")) == []


def test_a_large_encoder_is_predicted_to_cost_more(first_stage: pd.DataFrame) -> None:
    stage, values = closed_stage("cebab", "small", "02_training"), defaults("02_training")
    small = jobs_of(stage, values)
    large = jobs_of(stage, values | {"encoder": "google-bert/bert-base-uncased"})
    for one, other in zip(small, large, strict=True):
        assert other.seconds > 5 * one.seconds and other.gigabytes > one.gigabytes
    n_models = len(values["models"])
    assert len(jobs_of(stage, values | {"models": []})) == len(small) - n_models - 1


@pytest.mark.slow
def test_a_clone_goes_on_from_published_units(
    first_stage: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "reference_dir", lambda study, scale: tmp_path / "reference")
    values = defaults("02_training") | FEW | {"encoder": saved_encoder(tmp_path / "encoder")}
    values |= {"n_seeds": 1, "reuse_units": True, "resample_aspects": True}
    asked = defaults("03_attribution") | {"reuse_units": True}

    def two_stages(names: list[str]) -> pd.DataFrame:
        stage = open_stage("cebab", "small", "02_training")
        study = Trainings(stage, Units("cebab", "small", "02_training", True), values)
        close_training(stage, study, values)
        stage = open_stage("cebab", "small", "03_attribution")
        asking = Asking(stage, Units("cebab", "small", "03_attribution", True), asked)
        places = asking.models[["dataset", "model", "seed"]].itertuples(index=False)
        return pd.concat([asking.answers(name, *place) for place in places for name in names])

    names = ["CONEXP", "LEACE", "CausaLM"]
    first = two_stages(names)
    published = [path for path in (tmp_path / "reference").rglob("*") if path.is_file()]
    assert len(published) == 3 + 1 + 3 * len(names) + 2
    texts, pairs = sorted(path for path in published if path.stem.endswith("-rows"))
    assert set(pd.read_parquet(pairs).stack()) <= set(pd.read_parquet(texts)["text_id"])
    for _, rows in first.groupby(["explainer", "model"]):
        pd.testing.assert_frame_equal(
            rows[["base_id", "counterfactual_id"]].reset_index(drop=True), pd.read_parquet(pairs)
        )
    effects = first[[f"e_{k + 1}" for k in range(5)]]
    assert (effects * 10_000 - (effects * 10_000).round()).abs().max().max() < 1e-6
    run = Path(os.environ["TOUCHSTONE_OUTPUTS"]) / "cebab" / "small"
    for stage in ("02_training", "03_attribution"):
        shutil.rmtree(run / stage)
    with monkeypatch.context() as nothing:
        nothing.setattr(Reviewer, "read", lambda *_, **__: pytest.fail("trained again"))
        pd.testing.assert_frame_equal(two_stages(names), first)
        with pytest.raises(TouchstoneError, match="set need_vectors: true"):
            two_stages(["TCAV"])
    values["need_vectors"] = True
    assert len(two_stages(["TCAV"])) == len(first) / len(names)
