"""Training whole models: the frozen encoder reads once with the same numbers, and everything can learn."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
import transformers as tf
from tiny_models import CLASSES, byte_pairs, saved, toy_rows
from tokenizers import pre_tokenizers

from lib.core.errors import TouchstoneError
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT
from lib.core.seeds import seed_for
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.models.load import build_model, load_trained
from lib.models.schemes import scheme_named
from lib.training.classifier import Settings, fit, token_forward, validation_split
from lib.training.transfer import Trainer, digest, is_finished, run_unit, settings_by_scheme

CPU = torch.device("cpu")
SETTINGS = Settings(epochs=6, lr=0.02, batch_size=16)
PARAMETERS = {
    name: p.default
    for name, p in notebook_parameters(ROOT / "notebooks/geco/02_training.py").items()
}


def halves():
    rows = toy_rows()
    return rows[rows["sentence_idx"] < 20].reset_index(drop=True), rows[
        rows["sentence_idx"] >= 20
    ].reset_index(drop=True)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet", "gpt2"])
def test_reading_once_gives_the_numbers_of_reading_always(family, tmp_path):
    train, test = halves()
    trainer = Trainer(saved(tmp_path, family), "", CPU)
    found = trainer.train("C", 3, train, test, CLASSES, SETTINGS)
    model, trained = build_model(trainer.recipe("C", CLASSES, 3))
    encoded = model.encode(train["sentence"])
    split = validation_split(train["sentence_idx"], 0.2, seed_for("validation", 3))
    curve = fit(
        token_forward(model, encoded),
        trained,
        torch.tensor(train["target"].to_numpy()),
        torch.tensor([len(one.ids) for one in encoded]),
        split,
        SETTINGS,
        seed_for("fit", "C", 3),
    )
    assert found.curve.to_numpy() == pytest.approx(curve.to_numpy(), abs=1e-4)
    expected = model.predict(test["sentence"], 64)
    assert found.predictions[[f"p_{c}" for c in CLASSES]].to_numpy() == pytest.approx(
        expected, abs=1e-4
    )


def test_the_encoder_reads_each_sentence_once_for_all_seeds(tmp_path, monkeypatch):
    train, test = halves()
    trainer = Trainer(saved(tmp_path, "bert"), "", CPU)
    rows_read = []
    plain = tf.BertModel.forward

    def counting(self, *args, **kwargs):
        rows_read.append(len(kwargs["inputs_embeds"]))
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(tf.BertModel, "forward", counting)
    texts = {tuple(words) for split in (train, test) for words in split["sentence"]}
    found = [trainer.train("C", seed, train, test, CLASSES, SETTINGS) for seed in (0, 1)]
    checks = 2 * max(rows_read)  # each call of read_all compares one batch with the plain forward
    assert len(texts) <= sum(rows_read) <= len(texts) + checks
    assert not np.allclose(found[0].predictions["p_F"], found[1].predictions["p_F"])


@pytest.mark.parametrize("scheme", ["CE", "CEf", "CEfAf", "OLA-CEA"])
def test_models_learn_what_a_pronoun_says(scheme, tmp_path):
    train, test = halves()
    settings = Settings(epochs=24, lr=0.01, batch_size=8, eps=1e-5)
    found = Trainer(saved(tmp_path, "bert"), "", CPU).train(
        scheme, 0, train, test, CLASSES, settings
    )
    assert (
        found.predictions["predicted"] == found.predictions["target"]
    ).mean() > 0.8 and found.train_accuracy > 0.8
    assert (
        len(found.curve) == 24 and found.predictions["row_id"].tolist() == test["row_id"].tolist()
    )
    assert found.predictions[["p_F", "p_M", "p_NB"]].sum(axis=1).to_numpy() == pytest.approx(
        np.ones(len(test)), abs=1e-5
    )
    learns = scheme_named(scheme).trained()
    assert set(found.trained) == {name for part in learns for name in found.model.parts()[part]}
    assert not any(m.training for m in found.model.module.modules())


def test_two_classes_give_two_probabilities(tmp_path):
    train, test = (rows[rows["target"] < 2].reset_index(drop=True) for rows in halves())
    found = Trainer(saved(tmp_path, "bert"), "", CPU).train(
        "C", 0, train, test, CLASSES[:2], SETTINGS
    )
    assert list(found.predictions.columns[-2:]) == ["p_F", "p_M"] and set(
        found.predictions["predicted"]
    ) <= {0, 1}


def test_the_released_ola_accumulates_over_sets_padded_whole(tmp_path, monkeypatch):
    import lib.training.transfer as module

    seen = {}

    def watch(forward, trained, targets, lengths, split, settings, seed):
        seen.update(settings=settings)
        return fit(forward, trained, targets, lengths, split, settings, seed)

    monkeypatch.setattr(module, "fit", watch)
    train, test = halves()
    for variant, gradients, grouped in (
        ("corrected", "zeroed", True),
        ("as_released", "accumulated", False),
    ):
        trainer = Trainer(saved(tmp_path, "bert"), "", CPU, ola=variant)
        found = trainer.train("OLA-CEA", 0, train, test, CLASSES, SETTINGS)
        assert (seen["settings"].gradients, seen["settings"].grouped) == (gradients, grouped)
        assert found.model.variant == variant
        trainer.train("CEf", 0, train, test, CLASSES, SETTINGS)
        assert seen["settings"].gradients == "zeroed"  # the fault is OLA's alone


def test_the_vocabulary_is_of_tokens_within_a_text(monkeypatch):
    """A byte-level tokenizer that puts no blank before a text: OLA must know the tokens that its own encoding gives."""
    tokenizer = byte_pairs.__wrapped__(framed=False)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    monkeypatch.setattr("lib.training.transfer.load_tokenizer", lambda *args: tokenizer)
    rows, tail = toy_rows(), toy_rows().iloc[:3]
    found = Trainer("unused", "", CPU).vocabulary(rows, tail)
    assert found == sorted(
        {i for text in rows["sentence"] for i in tokenizer(" ".join(text))["input_ids"]}
    )


def test_weight_decay_trains_the_whole_table(tmp_path):
    train, test = halves()
    trainer = Trainer(saved(tmp_path, "bert"), "", CPU)
    found = trainer.train(
        "CEf", 0, train, test, CLASSES, Settings(epochs=1, lr=0.01, batch_size=16, weight_decay=0.1)
    )
    start = build_model(trainer.recipe("CEf", CLASSES, 0))[0].module.get_input_embeddings().weight
    assert found.rows == [] and not torch.equal(
        found.model.module.get_input_embeddings().weight[-1], start[-1]
    )


def test_the_time_is_predicted_from_a_few_sentences(monkeypatch):
    """With a clock that only training moves: 2 s a call and 3 s an epoch for the few sentences, scaled up to all."""
    train, test = halves()
    clock = [0.0]

    def train_for(self, scheme, seed, some, others, classes, settings):
        clock[0] += 2.0 + 3.0 * settings.epochs

    monkeypatch.setattr(Trainer, "train", train_for)
    monkeypatch.setattr("lib.training.transfer.time.perf_counter", lambda: clock[0])
    few = train["sentence_idx"].isin(train["sentence_idx"].unique()[:8]).sum()
    found = Trainer("unused", "", CPU).predicted_seconds(
        "CEfAf", train, test, CLASSES, Settings(50, 0.01, 8), n_base=8
    )
    assert found == pytest.approx(
        2.0 * (len(train) + len(test)) / (2 * few) + 3.0 * 50 * len(train) / few
    )


def unit(
    trainer, scheme="CEf", seed=0, settings=SETTINGS, reuse=False, rows=None, need_weights=False
):
    train, test = rows or halves()
    stage = open_stage("geco", "small", "02_training")
    found = run_unit(
        stage,
        Units("geco", "small", "02_training", reuse),
        trainer,
        "D_A",
        scheme,
        seed,
        train,
        test,
        CLASSES,
        settings,
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


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet", "gpt2"])
def test_heads_learn_side_by_side_as_they_do_alone(family, tmp_path):
    train, test = halves()
    trainer = Trainer(saved(tmp_path, family), "", CPU)
    together = list(trainer.train_seeds("C", [0, 3, 5], train, test, CLASSES, SETTINGS))
    for seed, found in zip([0, 3, 5], together, strict=True):
        alone = trainer.train("C", seed, train, test, CLASSES, SETTINGS)
        assert (
            found.curve.to_numpy() == pytest.approx(alone.curve.to_numpy(), abs=1e-4)
            and found.recipe == alone.recipe
        )
        names = [f"p_{c}" for c in CLASSES]
        assert found.predictions[names].to_numpy() == pytest.approx(
            alone.predictions[names].to_numpy(), abs=1e-4
        )
        assert found.train_accuracy == pytest.approx(alone.train_accuracy)
        assert found.trained.keys() == alone.trained.keys()
        assert all(
            torch.allclose(found.trained[name], p, atol=1e-4) for name, p in alone.trained.items()
        )
    assert not torch.equal(*(list(one.trained.values())[0] for one in together[:2]))
    encoders = [one.model.module.get_input_embeddings().weight for one in together]
    assert encoders[0] is encoders[1] is encoders[2]


@pytest.mark.parametrize(("scheme", "settings"), [("CEf", SETTINGS), ("ZS", None)])
def test_seeds_that_share_nothing_are_trained_one_by_one(scheme, settings, tmp_path, monkeypatch):
    train, test = halves()
    asked = []
    monkeypatch.setattr(
        Trainer, "train", lambda self, scheme, seed, *rest: asked.append((scheme, seed))
    )
    list(
        Trainer(saved(tmp_path, "bert"), "", CPU).train_seeds(
            scheme, [1, 2], train, test, CLASSES, settings
        )
    )
    assert asked == [(scheme, 1), (scheme, 2)]


def test_a_unit_is_known_to_be_finished_without_training(small_outputs, tmp_path, monkeypatch):
    trainer, (train, test) = Trainer(saved(tmp_path, "bert"), "", CPU), halves()
    units, about = (
        Units("geco", "small", "02_training", False),
        ("D_A", "CEf", 0, train, test, CLASSES, SETTINGS),
    )
    assert not is_finished(units, trainer, *about)
    unit(trainer)
    assert is_finished(units, trainer, *about)
    assert not is_finished(units, trainer, "D_A", "CEf", 1, *about[3:])
