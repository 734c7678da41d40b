"""cebab's units as jobs: those of the notebooks, computed apart and found again by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import transformers as tf
from tiny_models import byte_pairs

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
    pairs = edit_pairs(texts[texts["split"] == "test"]).assign(dataset="confounded", split="test")
    save_parquet(pairs, stage.path("pairs.parquet"))
    stage.close(defaults("01_data_generation"))
    return texts


def close_training(stage: Any, study: Trainings, values: dict[str, Any]) -> None:
    """Write what stage 03 reads of stage 02, as the notebook does."""
    found = {model: study.reading(*model) for model in study.models()}
    answers = [
        pd.DataFrame(reading.probabilities, columns=[f"p_{k + 1}" for k in range(5)]).assign(
            text_id=ids, dataset=name, model=kind, seed=number
        )
        for (name, kind, number), (ids, reading) in found.items()
    ]
    save_parquet(pd.concat(answers, ignore_index=True), stage.path("predictions.parquet"))
    said = [part.assign(split=split) for split, part in study.data["confounded"].items()]
    said = pd.concat(said)[["dataset", "split", "text_id", *ASPECTS]]
    save_parquet(said, stage.path("aspects.parquet"))
    stage.close(values)


@pytest.mark.slow
def test_jobs_are_the_notebooks_units_and_are_found_by_them(
    first_stage: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"epochs": {"encoder": 2, "BiLSTM": 2}, "n_frozen": 1, "n_seeds": 2}
    few |= {
        "models": ["encoder", "BiLSTM", "frozen encoder"],
        "encoder": saved_encoder(tmp_path / "encoder"),
    }
    values = defaults("02_training") | few
    jobs = jobs_of(closed_stage("cebab", "small", "02_training"), values)
    names = [f"{kind}-seed{k}" for kind in ("encoder", "BiLSTM") for k in (0, 1)]
    names = ["frozen", "without", *names, "frozen_encoder-seed0"]
    assert [job.key for job in jobs] == [f"02_training/confounded-{name}" for name in names]
    assert all(job.needs == ("01_data_generation",) and job.seconds > 0 for job in jobs)
    for job in reversed(jobs):  # in any order: the head over a frozen encoder comes first
        job.compute()
    stage = open_stage("cebab", "small", "02_training")
    monkeypatch.setattr(Reviewer, "read", lambda *_, **__: pytest.fail("trained again"))
    for name in ("vectors_without", "sentence_vectors", "fit_head"):
        monkeypatch.setattr(trainings, name, lambda *_: pytest.fail("computed again"))
    study = Trainings(stage, Units("cebab", "small", "02_training"), values)
    assert study.without("confounded")[1].shape[0] == len(ASPECTS) + 1
    assert set(study.frozen("confounded")) == {("confounded", s) for s in ("train", "dev", "test")}
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
    for model in study.models.itertuples(index=False):
        given = study.gathered(*model)
        found = [study.answers(name, *model, given) for name in ASKED]
        assert [table is None for table in found] == [False] * 4 + [model[1] != "encoder"]
        assert all(len(table) == len(given[3]) > 0 for table in found[:4])
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
    columns = ["dataset", "model", "seed", "text_id", "p_1", "p_2"]
    save_parquet(pd.DataFrame(columns=columns), stage.path("predictions.parquet"))
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
