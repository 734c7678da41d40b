from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_models import TEXTS, saved, tiny

from lib.core.errors import TouchstoneError
from lib.models.bilstm import BiLSTM
from lib.models.load import read_trained
from lib.studies.cebab import reading
from lib.studies.cebab.reading import load_reading, load_vectors, save_vectors
from lib.studies.cebab.reviewers import (
    Reviewer,
    build_reviewer,
    last_layer,
    predict_aspects,
    read_texts,
    sentence_vectors,
    train_reviewer,
    words_of,
)
from lib.studies.cebab.reviews import ASPECTS
from lib.training.classifier import Settings


def test_the_lstm_does_not_read_padding() -> None:
    model = BiLSTM(tiny("bert"), ["1", "2", "3"], seed=0, hidden=8)
    alone = model.predict(words_of(TEXTS[2:3]), 8)
    ids = torch.tensor([model.encode(words_of(TEXTS[2:3]))[0].ids])
    padded = torch.cat([ids, torch.zeros((1, 5), dtype=torch.long)], 1)
    mask = torch.cat([torch.ones_like(ids), torch.zeros((1, 5), dtype=torch.long)], 1)
    with torch.no_grad():
        assert np.allclose(
            model.logits(model.embed(padded), mask).softmax(-1).numpy(), alone, atol=1e-6
        )


def test_the_same_seed_draws_the_same_lstm_and_its_words_stay_frozen() -> None:
    one, two = (BiLSTM(tiny("bert"), ["1", "2"], seed=3, hidden=8) for _ in range(2))
    assert all(torch.equal(p, q) for p, q in zip(one.module.parameters(), two.module.parameters()))
    before = one.module.embeddings.weight.clone()
    curve = train_reviewer(
        one,
        one.encode(words_of(TEXTS)),
        np.array([0, 1, 0, 1, 0]),
        4,
        Settings(12, 0.05, 2),
        seed=0,
    )
    assert torch.equal(one.module.embeddings.weight, before)
    assert curve["train_loss"].iloc[-1] < 0.5 * curve["train_loss"].iloc[0]


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2"])
def test_the_last_layer_makes_the_answers_from_the_vectors(family: str) -> None:
    model = tiny(family)
    reading = read_texts(model, model.encode(words_of(TEXTS)))
    assert np.allclose(reading.probabilities, model.predict(words_of(TEXTS), 2), atol=1e-5)
    assert np.allclose(
        reading.head.probabilities(reading.vectors), reading.probabilities, atol=1e-5
    )
    assert len(np.unique(reading.vectors.round(5), axis=0)) == len(
        TEXTS
    )  # GPT-2's is that of the last token, not the first


def test_a_model_without_a_last_linear_layer_is_refused() -> None:
    model = tiny("bert")
    model.classes = ("only",) * 7
    with pytest.raises(TouchstoneError, match="ends in no linear layer"):
        last_layer(model)


def test_training_an_encoder_lowers_its_loss_and_keeps_unused_words() -> None:
    model = tiny("bert")
    table = model.module.get_input_embeddings().weight
    unused = max(
        set(range(len(table))) - {i for one in model.encode(words_of(TEXTS)) for i in one.ids}
    )
    before = table[unused].clone()
    curve = train_reviewer(
        model,
        model.encode(words_of(TEXTS)),
        np.array([0, 1, 2, 1, 0]),
        4,
        Settings(10, 0.01, 2),
        seed=0,
    )
    assert curve["train_loss"].iloc[-1] < curve["train_loss"].iloc[0]
    assert torch.equal(model.module.get_input_embeddings().weight[unused], before)


def test_a_reading_is_kept_with_its_key(tmp_path) -> None:
    reading = read_texts(tiny("bert"), tiny("bert").encode(words_of(TEXTS)))
    reading.save(tmp_path / "a.npz", "key", list("abcde"))
    ids, again = load_reading(tmp_path / "a.npz", "key")
    assert list(ids) == list("abcde") and np.allclose(
        again.probabilities, reading.probabilities, atol=1e-5
    )
    assert (
        load_reading(tmp_path / "a.npz", "other") is None
        and load_reading(tmp_path / "b.npz") is None
    )


def test_kept_arrays_are_found_by_the_code_that_made_them(tmp_path, monkeypatch) -> None:
    save_vectors(tmp_path / "v.npz", "key", ["a"], np.ones((1, 3)))
    assert load_vectors(tmp_path / "v.npz", "key") is not None
    monkeypatch.setattr(reading, "made_by", lambda study, stage: {"code": "other"})
    assert load_vectors(tmp_path / "v.npz", "key") is None
    assert load_vectors(tmp_path / "v.npz") is not None, "the next stage reads what is there"


def test_aspects_are_learnt_from_words_and_cells_without_a_value_are_left_out() -> None:
    texts = pd.DataFrame(
        {"text_id": [str(i) for i in range(40)], "text": ["good soup", "bad soup"] * 20}
    )
    for aspect in ASPECTS:
        texts[aspect] = ["Positive", "Negative"] * 20
    texts.loc[:3, "noise"] = ""
    found = predict_aspects(texts, np.zeros((40, 4)), texts, np.zeros((40, 4)))
    assert (found["food"] == texts["food"]).all() and set(found["noise"]) == {
        "Positive",
        "Negative",
    }


def test_a_text_that_weighs_nothing_teaches_nothing() -> None:
    texts = pd.DataFrame({"text_id": list("abcdef"), "text": ["good soup", "bad soup"] * 3})
    for aspect in ASPECTS:
        texts[aspect] = ["Positive", "Negative"] * 2 + ["Negative", "Positive"]
    flat = np.zeros((6, 4))
    weights = np.array([0.1, 0.1, 0.1, 0.1, 5.0, 5.0])
    found = predict_aspects(texts, flat, texts, flat, weights)["food"]
    assert found[:2].tolist() == ["Negative", "Positive"], "the two heavy texts say so"
    alike = predict_aspects(texts, flat, texts, flat)["food"]
    assert alike[:2].tolist() == ["Positive", "Negative"]


def test_sentence_vectors_are_means_of_length_one() -> None:
    model = tiny("bert")
    found = sentence_vectors(model, TEXTS)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    ids = torch.tensor([model.encode(words_of(TEXTS[1:2]))[0].ids])
    with torch.no_grad():
        states = model.module.base_model(input_ids=ids).last_hidden_state[0].mean(0)
    assert np.allclose(found[1], (states / states.norm()).numpy(), atol=1e-5)


@pytest.mark.parametrize("n_frozen", [0, 1])
def test_what_is_kept_of_an_encoder_is_the_model_that_was_read(tmp_path, n_frozen: int) -> None:
    rows = pd.DataFrame({"text": TEXTS, "label": [0, 1, 2, 1, 0]})
    reviewer = Reviewer(
        "toy", "encoder", 0, saved(tmp_path, "bert"), "", 3, Settings(2, 0.01, 2), n_frozen
    )
    reading = reviewer.read(
        rows[:3], rows[3:4], rows[4:], torch.device("cpu"), "last", tmp_path / "models"
    )
    again = read_trained(
        tmp_path / "models" / "toy-encoder-seed0.json",
        tmp_path / "models" / "toy-encoder-seed0.safetensors",
    )
    read = [*TEXTS[:3], TEXTS[4]]  # the dev text is not read
    assert np.allclose(again.predict(words_of(read), 2), reading.probabilities, atol=1e-5)


def test_vectors_are_kept_with_their_key(tmp_path) -> None:
    save_vectors(
        tmp_path / "v.npz", "key", ["a", "b"], np.arange(12.0).reshape(2, 2, 3), {"perplexity": 2.5}
    )
    ids, vectors, about = load_vectors(tmp_path / "v.npz", "key")
    assert list(ids) == ["a", "b"] and vectors[1, 1, 2] == 11 and about == {"perplexity": 2.5}
    assert (
        load_vectors(tmp_path / "v.npz", "other") is None
        and load_vectors(tmp_path / "w.npz") is None
    )


def test_the_last_epoch_can_be_kept() -> None:
    """With the best epoch the validation loss of the model is the curve's lowest, with the last it
    is the last one.
    """
    labels, left = np.array([0, 1, 2, 1, 0]), {}
    for keep in ("best", "last"):
        model = tiny("bert")
        encoded = model.encode(words_of(TEXTS))
        curve = train_reviewer(model, encoded, labels, 4, Settings(12, 0.05, 2), 0, keep)[
            "validation_loss"
        ]
        left[keep] = (
            -np.log(read_texts(model, encoded).probabilities[4, 0]),
            curve.min(),
            curve.iloc[-1],
        )
    assert np.isclose(left["best"][0], left["best"][1], atol=1e-3) and np.isclose(
        left["last"][0], left["last"][2], atol=1e-3
    )
    with pytest.raises(TouchstoneError, match="the epoch that is kept is 'first'"):
        train_reviewer(
            tiny("bert"),
            tiny("bert").encode(words_of(TEXTS)),
            labels,
            4,
            Settings(1, 0.05, 2),
            0,
            "first",
        )


def test_bad_names() -> None:
    with pytest.raises(
        TouchstoneError, match="network to train is 'LSTM'; write one of encoder, BiLSTM"
    ):
        build_reviewer("LSTM", "all-MiniLM-L6-v2", "", 5, 0)
    rows = pd.DataFrame({"text": ["a"], "label": [0]})
    with pytest.raises(TouchstoneError, match="encoder has no settings"):
        Reviewer("d", "encoder", 0, "all-MiniLM-L6-v2", "", 5, None).read(
            rows, rows, rows, torch.device("cpu")
        )
