"""`hub.yaml` names a whole BERT and a published GPT-2; its units run through with a tiny random one
of each, found by their names in its parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as tf
from tiny_models import saved

from lib.core.files import load_parquet, read_json, save_parquet
from lib.core.jobs import Job, closed_stage
from lib.core.parameters import read_params
from lib.core.paths import ROOT
from lib.core.runner import plan_jobs
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.models.hf_lm import HFLanguageModel
from lib.models.weights import load_tokenizer
from lib.studies.assay import trainings
from lib.studies.assay.asking import Asking
from lib.studies.assay.deleting import Deletions
from lib.studies.assay.explainers import FLOORS
from lib.studies.assay.jobs import jobs_of
from lib.studies.assay.trainings import NUMBER, Trainings

pytestmark = [pytest.mark.more, pytest.mark.slow]

HUB = read_params(ROOT / "params" / "assay" / "hub.yaml")
ASKED = {  # the explainers of hub.yaml, with fewer passes
    name: dict.fromkeys(given, 6) for name, given in HUB["explainers"].items()
}
# What makes the run small; a folder has no commit.
SMALLER = {
    "encoder_revision": "",
    "language_model_revision": "",
    "n_seeds": 2,
    "epochs": {"gender": 1, "planted": 1, "planted-ola": 2, "reviews": 1, "pronoun": 1},
    "lstm_epochs": {"gender": 1},
    "probe_epochs": 1,
    "explainers": ASKED,
    "budgets": [10],
    "n_deleted": 1,
}


@pytest.fixture
def values(small_outputs: Path, tmp_path: Path, first_stage: Callable[..., None]) -> dict[str, Any]:
    """The parameters of hub.yaml, with folders for its two models; stage 01 is there."""
    config = tf.BertConfig(
        vocab_size=30522,
        hidden_size=12,
        num_hidden_layers=HUB["n_layers"],
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    torch.manual_seed(0)
    tf.BertForMaskedLM(config).save_pretrained(tmp_path / "bert")
    load_tokenizer("all-MiniLM-L6-v2").save_pretrained(tmp_path / "bert")
    published = {
        "encoder": str(tmp_path / "bert"),
        "language_model": saved(tmp_path, "gpt2", tf.AutoModelForCausalLM),
    }
    stages = plan_jobs("assay", "hub", parameters=SMALLER | published)
    first_stage(stages[0].all)
    return {name: value for job in stages for name, value in job.all.items()}


def computed(stage: str, values: dict[str, Any]) -> list[Job]:
    jobs = list(jobs_of(closed_stage("assay", "hub", stage), values))
    for job in jobs:
        job.compute()
    return jobs


def store_of(stage: str) -> Units:
    return Units("assay", "hub", stage, reuse=False)


def test_the_units_of_hub_yaml_run_through_with_tiny_models(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(SMALLER) - set(HUB) == {"probe_epochs", "epochs", "lstm_epochs"}, (
        "else hub.yaml's own values"
    )
    monkeypatch.setattr(trainings, "save_lm", lambda *_: pytest.fail("an LSTM was trained"))
    trained = computed("02_training", values)
    models = [*SMALLER["epochs"], NUMBER]
    trained_too = [*models, "gender-lstm"]
    assert [job.model for job in trained] == [f"{n}-{t}" for n in trained_too for t in (0, 1)]

    stage = open_stage("assay", "hub", "02_training")
    study = Trainings(stage, store_of("02_training"), values)
    note, layer = study.files(NUMBER, 1)
    assert read_json(note, "")["hugging_face"] == values["language_model"]
    assert layer.name == "number-1-probe.safetensors", "the published weights are not copied"
    truths = pd.concat([study.answers(*place) for place in study.models()], ignore_index=True)
    assert np.isfinite(truths["f"]).all() and truths["model"].nunique() == len(models)
    swap = truths[truths["truth"] == "swap"]
    assert np.allclose(
        [np.nansum(key) for key in swap["key"]], swap["f"] - swap["other"], atol=1e-3
    )
    assert truths.loc[truths["truth"] == "edit", "change"].notna().all()
    nouns = truths.loc[truths["truth"] == "noun", "key"]
    assert all(np.flatnonzero(np.isfinite(key)).tolist() == [1, 2, 4] for key in nouns)
    save_parquet(truths.drop(columns=["other", "padding"]), stage.path("truths.parquet"))
    second = pd.concat([study.answers(*place) for place in study.second_models()])
    save_parquet(second.drop(columns=["other", "padding"]), stage.path("second_models.parquet"))
    stage.close(values)

    computed("03_attribution", values)
    stage = open_stage("assay", "hub", "03_attribution")
    asking = Asking(stage, store_of("03_attribution"), values)
    assert isinstance(asking.loaded((NUMBER, 0)).lm, HFLanguageModel)
    said = pd.concat([asking.explained(*place) for place in asking.models()], ignore_index=True)
    everybody = {*HUB["explainers"], *FLOORS}
    assert said.groupby(["model", "training"])["explainer"].agg(set).map(everybody.__eq__).all()
    refused = said.loc[said["why"] != "", ["explainer", "model"]].drop_duplicates()
    assert set(refused.itertuples(index=False, name=None)) == {
        ("Attention rollout", NUMBER),
        ("Attention rollout", "pronoun"),
    }
    answers = said[said["why"] == ""]
    n_words = answers["text"].str.split(" ").map(len)
    assert answers["scores"].map(len).equals(n_words)
    assert np.isfinite(np.concatenate(answers["scores"].to_list())).all()
    save_parquet(answers.drop(columns="why"), stage.path("explanations.parquet"))
    second = pd.concat([asking.explained(*place) for place in asking.second_models()])
    answered = second["why"] == ""
    assert set(second.loc[~answered, "explainer"]) == {
        "DeepLift rescale",
        "AttnLRP",
        "Attention rollout",
    }, "an LSTM has no attention between words"
    save_parquet(second[answered].drop(columns="why"), stage.path("second_models.parquet"))
    stage.close(values)

    computed("04_metrics", values)
    stage = closed_stage("assay", "hub", "04_metrics")
    deletions = Deletions(stage, store_of("04_metrics"), values)
    scores = deletions.scores()
    assert scores["truth"].nunique() == 3 and scores["training"].nunique() == 2
    assert set(scores["explainer"]) >= everybody
    assert scores["value"].between(-1e-6, 1 + 1e-6).all()
    assert set(scores["model"]) == {"gender", "reviews", "gender-lstm"}
    mixed = deletions.mixed_changes()
    edits = set(load_parquet(stage.input("01_data_generation", "mixed.parquet"))["item_id"])
    assert {name.partition("@")[0] for name in mixed["item_id"]} == edits and len(edits)
    assert np.isfinite(mixed["change"]).all()
