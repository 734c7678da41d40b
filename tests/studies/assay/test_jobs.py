"""The assay's units as jobs: those of the notebooks, computed apart and found again by them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import transformers as tf
from tiny_models import saved, toy_rows

from lib.core import units
from lib.core.errors import TouchstoneError
from lib.core.files import load_parquet, save_parquet
from lib.core.jobs import Job, closed_stage
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.studies.assay import asking, deleting, models, trainings
from lib.studies.assay import explainers as who
from lib.studies.assay.asking import Asking
from lib.studies.assay.deleting import Deletions
from lib.studies.assay.items import with_other_numbers
from lib.studies.assay.jobs import jobs_of
from lib.studies.assay.models import log_odds, read_model
from lib.studies.assay.trainings import Trainings

ASKED = {"Saliency": {}, "Gradient norm": {}, "Attention rollout": {}, "LIME": {"n_samples": 8}}
PLANTED = [(["tulip", "horse", "sings"], 1), (["a", "horse", "sings"], 0)]


def defaults(stage: str) -> dict[str, Any]:
    """The parameters of one stage, and of no other."""
    return notebook_parameters(ROOT / "notebooks" / "assay" / f"{stage}.py")


def item(name: str, truth: str, model: str, sentence: list[str], mark: list[float]) -> dict:
    about = {"item_id": name, "truth": truth, "model": model, "cluster": name, "target": 1}
    about |= {"sentence": sentence, "mark": mark, "part": "test", "rule": None, "goal": np.nan}
    return about | {"sentence_idx": np.nan}


def first_stage() -> None:
    """What stage 01 leaves, in little."""
    forms = toy_rows().query("target < 2").reset_index(drop=True)
    asked = []
    for row in forms[forms["sentence_idx"] < 2].query("target == 1").itertuples():
        for truth in ("mask", "swap"):
            mark = list(map(float, row.ground_truth))
            one = item(f"{truth}{row.sentence_idx}", truth, "gender", row.sentence, mark)
            asked.append(one | {"sentence_idx": float(row.sentence_idx)})
    for model in ("planted", "planted-ola"):
        one = item(f"{model}0", "planted", model, PLANTED[0][0], [1.0, 0.0, 0.0])
        asked.append(one | {"rule": "single"})
    line = "the dogs near the cat".split()
    asked.append(item("cue0", "cue", "number", line, [0.0, 1.0, 0.0, 0.0, -1.0]))
    heard = ["the dogs near the cat sing .".split(), "the dog near the cats sings .".split()] * 30
    numbers = [(text[:5], int(text[1] == "dogs"), i) for i, text in enumerate(heard)]
    columns = ["sentence", "target", "sentence_idx"]
    planted = pd.DataFrame(PLANTED * 12, columns=columns[:2]).assign(sentence_idx=range(24))
    learnt = {"gender": forms[columns], "planted": planted[columns]}
    learnt["number"] = pd.DataFrame(numbers, columns=columns)
    train = [rows.assign(model=name) for name, rows in learnt.items()]
    items = pd.DataFrame(asked)
    tables = {
        "items": items,
        "altered": with_other_numbers(items[items["truth"] == "cue"]),
        "forms": forms,
        "train": pd.concat(train, ignore_index=True),
        "corpus": pd.DataFrame({"sentence": heard}),
        "planted": planted.assign(rule="single"),
    }
    stage = open_stage("assay", "small", "01_data_generation")
    for name, table in tables.items():
        save_parquet(table, stage.path(f"{name}.parquet"))
    stage.close(defaults("01_data_generation"))


@pytest.fixture
def values(small_outputs: Path, tmp_path: Path) -> dict[str, Any]:
    """The parameters of all stages, with a tiny encoder and three models; stage 01 is there."""
    first_stage()
    stages = [defaults(name) for name in ("02_training", "03_attribution", "04_metrics")]
    few = {"n_layers": 1, "lm_epochs": 1, "lm_width": 8, "probe_epochs": 1, "n_deleted": 2}
    few |= {"epochs": {"gender": 1, "planted": 1, "planted-ola": 2}, "lstm_epochs": {"gender": 1}}
    few |= {"explainers": ASKED, "budgets": [10], "budget_trainings": 2}
    encoder = saved(tmp_path, "bert", tf.AutoModelForMaskedLM)
    return stages[0] | stages[1] | stages[2] | few | {"encoder": encoder}


def store_of(stage: str, values: dict[str, Any]) -> Units:
    return Units("assay", "small", stage, values["reuse_units"])


def listed(stage: str, values: dict[str, Any]) -> list[Job]:
    return list(jobs_of(closed_stage("assay", "small", stage), values))


def own(stage: str, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in defaults(stage)}


def close_training(values: dict[str, Any]) -> pd.DataFrame:
    """What the notebook of stage 02 does with the units; its truths."""
    stage = open_stage("assay", "small", "02_training")
    study = Trainings(stage, store_of("02_training", values), values)
    truths = pd.concat([study.answers(*one) for one in study.models()], ignore_index=True)
    second = pd.concat([study.answers(*one) for one in study.second_models()], ignore_index=True)
    for name, table in (("truths", truths), ("second_models", second)):
        save_parquet(table.drop(columns=["other", "padding"]), stage.path(f"{name}.parquet"))
    stage.path("models")
    stage.close(own("02_training", values))
    return truths


def close_asking(values: dict[str, Any]) -> pd.DataFrame:
    """What the notebook of stage 03 does with the units; all that was said."""
    stage = open_stage("assay", "small", "03_attribution")
    study = Asking(stage, store_of("03_attribution", values), values)
    redrawn = study.explained("gender", 0, "redrawn")
    parts = [*(study.explained(*one) for one in study.models()), study.bought(), redrawn]
    said = pd.concat(parts[:-2], ignore_index=True)
    second = pd.concat([study.explained(*one) for one in study.second_models()], ignore_index=True)
    for name, table in (("explanations", said), ("second_models", second)):
        kept = table[table["why"] == ""].drop(columns="why")
        save_parquet(kept, stage.path(f"{name}.parquet"))
    stage.close(own("03_attribution", values))
    return pd.concat(parts, ignore_index=True)


def scores(values: dict[str, Any]) -> pd.DataFrame:
    """What the notebook of stage 04 does with the units."""
    stage = closed_stage("assay", "small", "04_metrics")
    study = Deletions(stage, store_of("04_metrics", values), values)
    return study.scores()


@pytest.mark.slow
def test_jobs_are_the_notebooks_units_and_are_found_by_them(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch, small_outputs: Path
) -> None:
    jobs = listed("02_training", values)
    names = ("gender", "planted", "planted-ola", "number", "gender-lstm")
    assert [job.key for job in jobs] == [f"02_training/{n}-{t}" for n in names for t in (0, 1)]
    assert all(job.needs == ("01_data_generation",) and job.seconds > 0 for job in jobs)
    for job in reversed(jobs):  # in any order
        job.compute()
    monkeypatch.setattr(models, "train", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(trainings, "save_probe", lambda *_: pytest.fail("trained again"))
    truths = close_training(values)
    folder = small_outputs / "assay" / "small" / "02_training" / "models"
    second = load_parquet(folder.parent / "second_models.parquet")
    check_second(truths, second)
    for name in ("gender", "planted-ola", "gender-lstm"):
        both = pd.concat([truths, second])
        mine = both[(both["model"] == name) & (both["training"] == 1)]
        model = read_model(*(folder / f"{name}-1.{end}" for end in ("json", "safetensors")))
        assert np.allclose(log_odds(model, mine["sentence"], mine["target"]), mine["f"])
    swaps = truths[truths["truth"] == "swap"]
    sums = [np.nansum(key) for key in swaps["key"]]
    assert np.allclose(sums, swaps["f"] - swaps["other"], atol=1e-3)
    assert truths["padding"].notna().equals(truths["truth"].eq("swap"))

    jobs = listed("03_attribution", values)
    keys = [job.key.removeprefix("03_attribution/") for job in jobs]
    assert keys[:2] == ["gender-0-single_pass", "gender-0-LIME"] and len(set(keys)) == 10 * 2 + 8
    budgets = ["Integrated_Gradients-10", "LIME-10", "Kernel_SHAP-10"]
    bought = [f"gender-{training}-{name}" for training in (0, 1) for name in budgets]
    assert keys[-8:] == [*bought, "gender-0-single_pass-redrawn", "gender-0-LIME-redrawn"]
    assert {job.model for job in jobs[:2]} == {"gender-0"} and min(j.seconds for j in jobs) > 0
    for job in jobs:
        job.compute()
    monkeypatch.setattr(Asking, "loaded", lambda *_: pytest.fail("explained again"))
    said = close_asking(values)
    check_said(said)

    jobs = listed("04_metrics", values)
    operators = ("pad", "mask", "swap")
    assert [job.key for job in jobs] == [
        *(f"04_metrics/gender-{t}-{operator}" for t in (0, 1) for operator in operators),
        *(f"04_metrics/gender-lstm-{t}-mask" for t in (0, 1)),
    ]
    assert jobs[0].needs[-1] == "03_attribution"
    for job in jobs:
        job.compute()
    monkeypatch.setattr(deleting, "read_model", lambda *_: pytest.fail("scored again"))
    found = scores(values)
    assert set(found["truth"]) == {f"deletion, {operator}" for operator in operators}
    assert found.query("explainer == 'oracle'")["value"].eq(1).all()
    assert set(ASKED) | set(who.FLOORS) <= set(found["explainer"])


def check_second(truths: pd.DataFrame, second: pd.DataFrame) -> None:
    """The LSTM is asked the items of the encoder, under other names, and answers otherwise."""
    of_encoder = truths[truths["model"] == "gender"].reset_index(drop=True)
    assert second["item_id"].tolist() == ("lstm-" + of_encoder["item_id"]).tolist()
    shared = ["truth", "target", "cluster", "training"]
    pd.testing.assert_frame_equal(second[shared], of_encoder[shared])
    assert second["sentence"].map(list).tolist() == of_encoder["sentence"].map(list).tolist()
    assert set(second["model"]) == {"gender-lstm"} and second["f"].nunique() > 1
    assert not np.isclose(second["f"], of_encoder["f"]).any()


def check_said(said: pd.DataFrame) -> None:
    """Everybody in order: texts, then explainers, then floors."""
    everybody = [*ASKED, *who.FLOORS]
    first = said[(said["model"] == "gender") & (said["training"] == 0)]
    n_texts = first["text"].nunique()
    orders = [*everybody * n_texts, *[*who.PASSES] * n_texts, *everybody * n_texts]
    assert first["explainer"].tolist() == orders
    refused = said.loc[said["why"] != "", ["explainer", "model"]].drop_duplicates()
    assert refused.to_numpy().tolist() == [["Attention rollout", "number"]]
    lengths = said["scores"].map(len)[said["why"] == ""]
    assert lengths.equals(said["text"].str.split(" ").map(len)[said["why"] == ""])
    usual, redrawn = first.iloc[0], first.iloc[-len(everybody) * n_texts]
    assert usual["explainer"] == redrawn["explainer"] and usual["text"] == redrawn["text"]
    assert usual["scores"] != redrawn["scores"], "its weights were drawn anew"


def test_other_stages_have_no_units(values: dict[str, Any]) -> None:
    for name in ("01_data_generation", "05_figures"):
        assert listed(name, values) == []
    with pytest.raises(TouchstoneError, match="02_training has not been completed"):
        listed("03_attribution", values)


def test_a_large_encoder_is_predicted_to_cost_more(values: dict[str, Any]) -> None:
    small = listed("02_training", values | {"encoder": "all-MiniLM-L6-v2"})
    large = listed("02_training", values | {"encoder": "google-bert/bert-base-uncased"})
    assert large[0].seconds > small[0].seconds and large[0].gigabytes > small[0].gigabytes
    assert large[-1].seconds == small[-1].seconds, "the language model has no encoder"


@pytest.mark.slow
def test_a_clone_without_weights_goes_on_from_published_units(
    values: dict[str, Any], small_outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "reference_dir", lambda study, scale: tmp_path / "reference")
    values |= {"reuse_units": True, "epochs": {"gender": 1}, "n_seeds": 1}
    truths = close_training(values)
    said, scored = close_asking(values), scores(values)
    published = sorted((tmp_path / "reference").rglob("*.parquet"))
    assert len(published) == 2 * 3 + (2 * 3 + 3 + 2) + 4, "one training, so one with budgets"
    text = {word for words in truths["sentence"] for word in words if len(word) > 4}
    for path in published:
        cells = load_parquet(path).to_numpy().ravel()
        assert not text & {word for cell in cells for word in str(cell).split()}
    run = small_outputs / "assay" / "small"
    for stage in ("02_training", "03_attribution", "04_metrics"):
        shutil.rmtree(run / stage)
    with monkeypatch.context() as nothing:
        for place, name in ((models, "train"), (trainings, "save_probe"), (asking, "read_model")):
            nothing.setattr(place, name, lambda *_: pytest.fail("computed again"))
        pd.testing.assert_frame_equal(close_training(values), truths)
        assert not list(run.rglob("*.safetensors"))
        pd.testing.assert_frame_equal(close_asking(values), said)
        pd.testing.assert_frame_equal(scores(values), scored)
        more = values | {"explainers": ASKED | {"Occlusion": {}}, "n_deleted": 1}
        for later in (scores, close_asking):
            with pytest.raises(TouchstoneError, match="gender-0 has no weights .*reuse_units fal"):
                later(more)


@pytest.mark.slow
def test_weights_that_are_gone_are_made_again(values: dict[str, Any], small_outputs: Path) -> None:
    stage = closed_stage("assay", "small", "02_training")
    study = Trainings(stage, store_of("02_training", values), values)
    first = study.answers("gender", 0)
    weights = study.files("gender", 0)[1]
    before = weights.read_bytes()
    weights.unlink()
    pd.testing.assert_frame_equal(study.answers("gender", 0), first)
    assert weights.read_bytes() == before
    other = Trainings(stage, study.store, values | {"n_layers": 2})
    assert not np.allclose(other.answers("gender", 0)["f"], first["f"])


@pytest.mark.slow
def test_a_model_is_trained_again_when_its_own_rows_change_and_no_other(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    close_training(values)
    stage = closed_stage("assay", "small", "02_training")
    study = Trainings(stage, store_of("02_training", values), values)
    train = study.tables["train"]
    fewer = train.drop(train.index[train["model"] == "planted"][0]).reset_index(drop=True)
    study.tables["train"] = fewer
    made = []

    def train_it(recipe: dict[str, Any], *_: object) -> None:
        made.append(recipe["kind"])
        raise TouchstoneError("trained again")

    monkeypatch.setattr(models, "train", train_it)
    monkeypatch.setattr(trainings, "save_probe", lambda *_: pytest.fail("trained again"))
    for name in ("gender", "number", "gender-lstm"):
        study.answers(name, 0)
    for name in ("planted", "planted-ola"):
        with pytest.raises(TouchstoneError, match="trained again"):
            study.answers(name, 0)
    assert made == ["classifier", "one layer"]
