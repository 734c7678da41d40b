"""Training whole models: a frozen encoder reads once, numbers unchanged; everything can learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers as tf
from tiny_models import CLASSES, byte_pairs, saved, toy_rows
from tokenizers import pre_tokenizers

from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.models.hf import HFClassifier
from lib.models.load import build_model
from lib.models.schemes import scheme_named
from lib.training.classifier import Settings, fit, token_forward, validation_split
from lib.training.transfer import Trainer

CPU = torch.device("cpu")
SETTINGS = Settings(epochs=6, lr=0.02, batch_size=16)


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


def test_texts_of_words_that_the_encoder_does_not_know_are_refused(tmp_path, capsys):
    train, test = halves()
    trainer, few = Trainer(saved(tmp_path, "bert"), "", CPU), train["sentence"].map(list)
    few[0] = ["zwölf", *few[0]]
    for seed in (0, 1):  # told once
        trainer.train("ZS", seed, train.assign(sentence=few), test, CLASSES, None)
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "its tokenizer does not know 1 of the" in said
    assert "'zwölf'" in said and str(tmp_path) in said
    strange = [["zwölf"] * len(words) for words in train["sentence"]]
    with pytest.raises(TouchstoneError, match="does not know .*'zwölf'.*so the model reads the"):
        trainer.train("C", 0, train.assign(sentence=strange), test, CLASSES, SETTINGS)


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


def test_a_data_set_is_read_in_the_same_batches_whatever_was_trained_before(tmp_path, monkeypatch):
    train, test = halves()
    few = [rows[rows["target"] < 2].reset_index(drop=True) for rows in (train, test)]
    folder, read = saved(tmp_path, "bert"), []
    plain = HFClassifier.read_all

    def noted(self, encoded, batch_size):
        read.append([one.ids for one in encoded])
        return plain(self, encoded, batch_size)

    monkeypatch.setattr(HFClassifier, "read_all", noted)
    trainer = Trainer(folder, "", CPU)
    trainer.train("C", 0, train, test, CLASSES, SETTINGS)
    read.clear()
    after = trainer.train("C", 0, *few, CLASSES[:2], SETTINGS)
    read_after = read.copy()
    read.clear()
    alone = Trainer(folder, "", CPU).train("C", 0, *few, CLASSES[:2], SETTINGS)
    assert read == read_after != []
    assert all(torch.equal(alone.trained[name], after.trained[name]) for name in alone.trained)


@pytest.mark.slow
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

    def watch(forward, trained, targets, lengths, split, settings, seed, **more):
        seen.update(settings=settings)
        return fit(forward, trained, targets, lengths, split, settings, seed, **more)

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
    """A byte-level tokenizer that puts no blank before a text.

    OLA must know the tokens that its own encoding gives.
    """
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
    """With a clock that only training moves.

    2 s a call and 3 s an epoch for the few sentences, scaled up to all.
    """
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
