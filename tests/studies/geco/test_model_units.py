"""The models of the study: trained once, found again, and loaded by the next stage."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file
from tiny_models import CLASSES, saved, toy_rows

from lib.core.errors import TouchstoneError
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.models.load import save_trained
from lib.studies.geco.model_units import (
    Job,
    digest,
    is_finished,
    load_trained,
    run_group,
    settings_by_scheme,
    trained_together,
)
from lib.training.classifier import Settings
from lib.training.transfer import Trainer

CPU = torch.device("cpu")
SETTINGS = Settings(epochs=6, lr=0.02, batch_size=16)
PARAMETERS = notebook_parameters(ROOT / "notebooks/geco/02_training.py")


def halves():
    rows = toy_rows()
    return rows[rows["sentence_idx"] < 20].reset_index(drop=True), rows[
        rows["sentence_idx"] >= 20
    ].reset_index(drop=True)


def unit(
    trainer, scheme="CEf", seed=0, settings=SETTINGS, reuse=False, rows=None, need_weights=False
):
    train, test = rows or halves()
    stage = open_stage("geco", "small", "02_training")
    (found,) = run_group(
        stage,
        Units("geco", "small", "02_training", reuse),
        trainer,
        [Job("D_A", scheme, seed, train, test, CLASSES, settings)],
        need_weights,
    )
    return stage, found


def test_a_finished_unit_is_not_trained_again(small_outputs, tmp_path, monkeypatch):
    trainer = Trainer(saved(tmp_path, "bert"), "", CPU)
    calls = []
    plain = Trainer.train
    monkeypatch.setattr(
        Trainer, "train", lambda self, *args: calls.append(args[0]) or plain(self, *args)
    )
    stage, (predictions, curve) = unit(trainer)
    folder = stage.folder / "models" / "D_A" / "CEf"
    assert sorted(p.name for p in folder.iterdir()) == ["seed0.json", "seed0.safetensors"]
    assert set(predictions) >= {
        "dataset",
        "scheme",
        "seed",
        "split",
        "row_id",
        "sentence_idx",
        "target",
        "predicted",
        "p_F",
    }
    assert (
        set(curve)
        >= {"epoch", "train_loss", "validation_loss", "validation_accuracy", "train_accuracy"}
        and len(curve) == 6
    )
    _, (again, curve_again) = unit(trainer)
    assert calls == ["CEf"]
    assert again[["p_F", "p_M", "p_NB"]].to_numpy() == pytest.approx(
        predictions[["p_F", "p_M", "p_NB"]].to_numpy(), abs=1e-7
    )
    assert curve_again["validation_loss"].to_numpy() == pytest.approx(
        curve["validation_loss"].to_numpy(), abs=1e-7
    )
    train, test = halves()
    unit(trainer, seed=1)
    unit(trainer, settings=Settings(epochs=1, lr=0.02, batch_size=16))
    unit(trainer, rows=(train.iloc[:-3], test))
    unit(Trainer(trainer.encoder, "", CPU, validation_share=0.3))
    assert len(calls) == 5


def test_a_published_unit_is_trained_again_only_where_its_weights_are_needed(
    small_outputs, tmp_path, monkeypatch
):
    trainer = Trainer(saved(tmp_path, "bert"), "", CPU)
    stage, (predictions, _) = unit(trainer)
    place = ("D_A", "CEf", 0)
    weights = stage.folder / "models" / "D_A" / "CEf"
    shutil.rmtree(weights)
    stage, (again, _) = unit(trainer)
    assert not weights.exists()
    stage.close(PARAMETERS)
    with pytest.raises(TouchstoneError, match="02_training -p need_weights true"):
        load_trained(open_stage("geco", "small", "03_attribution"), *place)
    stage, (kept, _) = unit(trainer, need_weights=True)
    stage.close(PARAMETERS)
    assert kept.equals(again) and np.allclose(kept["p_F"], predictions["p_F"], atol=1e-7)
    model = load_trained(open_stage("geco", "small", "03_attribution"), *place)
    assert model.probabilities(model.encode(halves()[1]["sentence"]), 8)[:, 0] == pytest.approx(
        kept["p_F"].to_numpy(), abs=1e-5
    )


def test_first_and_resumed_runs_give_the_same_numbers(small_outputs, tmp_path):
    """All digits are kept where nothing is published, and those that are kept are gone on with."""
    trainer, (train, test) = Trainer(saved(tmp_path, "bert"), "", CPU), halves()
    (first, curve), (again, curve_again) = (unit(trainer)[1] for _ in range(2))
    assert first.equals(again) and curve.equals(curve_again)
    trained = trainer.train("CEf", 0, train, test, CLASSES, SETTINGS).predictions
    assert first[list(trained)].equals(trained)
    rounded = Units("geco", "small", "02_training", digits=2)
    job = Job("D_A", "CEf", 1, train, test, CLASSES, SETTINGS)
    stage = open_stage("geco", "small", "02_training")
    ((first, _),), ((again, _),) = (run_group(stage, rounded, trainer, [job]) for _ in range(2))
    assert first.equals(again) and not np.allclose(first["p_F"], trained["p_F"], atol=0)


def test_damaged_weights_are_trained_again(small_outputs, tmp_path, capsys):
    trainer = Trainer(saved(tmp_path, "bert"), "", CPU)
    stage, _ = unit(trainer)
    weights = stage.folder / "models" / "D_A" / "CEf" / "seed0.safetensors"
    recipe, whole = weights.with_suffix(".json"), weights.read_bytes()
    unit(trainer)
    assert capsys.readouterr().out == ""
    other = recipe.read_text().replace('"unit": "', '"unit": "0')
    for path, content in (
        (weights, bytes(len(whole))),
        (recipe, recipe.read_bytes()[:20]),
        (recipe, other.encode()),
    ):
        path.write_bytes(content)
        unit(trainer)
        said = capsys.readouterr().out
        assert said.startswith(str(recipe)) and said.endswith("; the model is trained anew\n")
        assert weights.read_bytes() == whole
    weights.unlink()
    unit(trainer)
    assert weights.read_bytes() == whole


def test_other_weights_in_a_local_encoder_are_another_question(small_outputs, tmp_path):
    folder = saved(tmp_path, "bert")
    _, (old, _) = unit(Trainer(folder, "", CPU))
    weights = load_file(f"{folder}/model.safetensors")
    name = "bert.encoder.layer.0.attention.self.value.weight"
    save_file(weights | {name: -weights[name]}, f"{folder}/model.safetensors", {"format": "pt"})
    _, (new, _) = unit(Trainer(folder, "", CPU))
    assert not np.allclose(old["p_F"], new["p_F"], atol=1e-5)


def test_zero_shot_units_come_back_without_a_curve(small_outputs, tmp_path):
    trainer = Trainer(saved(tmp_path, "bert", tf.AutoModelForMaskedLM), "", CPU)
    first, second = (unit(trainer, "ZS", settings=None)[1] for _ in range(2))
    assert (
        first[1].empty
        and second[1].empty
        and second[0]["predicted"].tolist() == first[0]["predicted"].tolist()
    )


def test_the_digest_of_rows_sees_words_and_targets():
    rows = toy_rows()
    assert digest(rows) == digest(toy_rows()) != digest(rows.assign(target=0))
    assert digest(rows.iloc[1:]) != digest(rows)


def test_settings_come_one_value_per_scheme():
    tables = {
        "epochs": {"C": 3, "OLA-CEA": 9},
        "lr": {"C": 0.1, "OLA-CEA": 0.2},
        "batch_size": {"C": 8, "OLA-CEA": 64},
    }
    found = settings_by_scheme(["ZS", "C", "OLA-CEA"], 0.1, **tables)
    assert found["ZS"] is None and found["C"] == Settings(3, 0.1, 8, dropout=0.1)
    assert found["OLA-CEA"].eps == 1e-5 and found["OLA-CEA"].batch_size == 64
    with pytest.raises(
        TouchstoneError, match="parameter epochs has no value for scheme CE; add one"
    ):
        settings_by_scheme(["CE"], 0.0, **tables)
    with pytest.raises(TouchstoneError, match="no transfer scheme 'CD'"):
        settings_by_scheme(["CD"], 0.0, **tables)


def test_stage_03_loads_what_stage_02_left(small_outputs, tmp_path):
    rows, stage = toy_rows(), open_stage("geco", "small", "02_training")
    quick = Settings(epochs=1, lr=0.01, batch_size=16)
    found = Trainer(saved(tmp_path, "bert"), "", CPU).train("C", 0, rows, rows, CLASSES, quick)
    folder = stage.path("models") / "D_A" / "C"
    save_trained(folder, "seed0", found.recipe, found.model, found.trained, found.rows)
    stage.close(PARAMETERS)
    later = open_stage("geco", "small", "03_attribution")
    model = load_trained(later, "D_A", "C", 0)
    assert (
        model.predict(rows["sentence"], 8).argmax(1).tolist()
        == found.predictions["predicted"].tolist()
    )
    assert "02_training/models/D_A/C/seed0.safetensors" in later.inputs
    with pytest.raises(
        TouchstoneError, match="--scale small --stage 02_training -p need_weights true"
    ):
        load_trained(later, "D_A", "CE", 0)
    with pytest.raises(TouchstoneError, match="no transfer scheme"):
        load_trained(later, "D_A", "BERT", 0)


def test_a_unit_is_known_to_be_finished_without_training(small_outputs, tmp_path, monkeypatch):
    trainer, (train, test) = Trainer(saved(tmp_path, "bert"), "", CPU), halves()
    units = Units("geco", "small", "02_training", False)
    job = Job("D_A", "CEf", 0, train, test, CLASSES, SETTINGS)
    assert not is_finished(units, trainer, job)
    unit(trainer)
    assert is_finished(units, trainer, job)
    assert not is_finished(units, trainer, job._replace(seed=1))


def test_heads_of_all_seeds_are_trained_together_and_again_with_the_same_bytes(
    small_outputs, tmp_path, monkeypatch
):
    """Also where a run was stopped with one seed unfinished and another's weights damaged."""
    encoder, (train, test) = saved(tmp_path, "bert"), halves()
    asked, plain = [], Trainer.train_seeds
    monkeypatch.setattr(
        Trainer,
        "train_seeds",
        lambda self, scheme, seeds, *rest: asked.append(seeds) or plain(self, scheme, seeds, *rest),
    )
    places = [("C", 0), ("C", 1), ("C", 2), ("CEf", 0), ("CEf", 1)]
    jobs = [Job("D_A", scheme, k, train, test, CLASSES, SETTINGS) for scheme, k in places]
    groups = trained_together(jobs)
    assert [[job.seed for job in group] for group in groups] == [[0, 1, 2], [0], [1]]

    def run():
        stage = open_stage("geco", "small", "02_training")
        units = Units("geco", "small", "02_training", False)
        found = run_group(stage, units, Trainer(encoder, "", CPU), groups[0])
        files = [*stage.folder.glob("units/*.csv"), *stage.folder.glob("models/**/seed*")]
        return stage.folder, found, {path: path.read_bytes() for path in files}

    folder, first, before = run()
    assert len(before) == 12
    next(folder.glob("units/*seed1-predictions.csv")).unlink()
    (folder / "models" / "D_A" / "C" / "seed2.safetensors").write_bytes(b"")
    _, again, after = run()
    assert asked == [[0, 1, 2]] * 2 and after == before
    run()
    assert len(asked) == 2, "finished models are read"
    for (found, curve), (found_again, curve_again) in zip(first, again, strict=True):
        assert found.equals(found_again) and curve.equals(curve_again)
