"""A planted token: inserted as said, learnt, verified, and found on a one-layer model."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_models import CLASSES, saved, toy_rows, word_piece

from lib.attribution import explain_many
from lib.core.errors import TouchstoneError
from lib.metrics import planting
from lib.metrics.planting import (
    check_shortcut,
    free_words,
    mass_on_token,
    plant,
    planted_mass,
    token_swaps,
    train_shortcut,
)
from lib.training.classifier import Settings
from lib.training.transfer import Trainer

TOKENS = {0: "alpha", 1: "beta", 2: "gamma"}


def test_a_token_stands_where_the_mask_says_and_words_are_otherwise_unchanged():
    rows = toy_rows()
    found = plant(rows, TOKENS, seed=1)
    for row, old in zip(found.itertuples(), rows["sentence"], strict=True):
        assert row.sentence[row.planted] == TOKENS[row.target] and np.flatnonzero(
            row.ground_truth
        ) == [row.planted]
        assert [word for word in row.sentence if word not in TOKENS.values()] == list(old)
    assert (
        found.groupby("sentence_idx")["target"]
        .apply(sorted)
        .equals(rows.groupby("sentence_idx")["target"].apply(sorted))
    )
    assert 0.2 < (found["target"] == rows["target"]).mean() < 0.5  # of three classes dealt out anew
    assert len(set(found["planted"])) > 3 and plant(rows, TOKENS, seed=1).equals(found)
    part = plant(rows.iloc[10:20], TOKENS, seed=1)
    assert part["planted"].tolist() == found["planted"].iloc[10:20].tolist()


def test_the_class_decides_who_gets_a_token():
    rows = toy_rows()
    found = plant(rows, {1: "beta"})
    share = (found["planted"] >= 0).groupby(found["target"]).mean()
    assert share.tolist() == [0, 1, 0]
    assert all(
        sum(mask) == (place >= 0)
        for mask, place in zip(found["ground_truth"], found["planted"], strict=True)
    )
    with pytest.raises(TouchstoneError, match="already stands in the rows"):
        plant(rows, {0: rows["sentence"].iloc[0][0]})


def test_free_words_are_one_token_each_and_not_in_the_data():
    sentences = toy_rows()["sentence"]
    found = free_words(word_piece(), sentences, 3)
    assert found == sorted(found) and not set(found) & {
        w.lower() for words in sentences for w in words
    }
    with pytest.raises(TouchstoneError, match="name the tokens yourself"):
        free_words(word_piece(), sentences, 10_000)


class Cutter:
    """A tokenizer of words, that cuts "seaside" in two."""

    def __init__(self, *words):
        self.words = words

    def get_vocab(self):
        return {word: i for i, word in enumerate(self.words)}

    def __call__(self, words, is_split_into_words, add_special_tokens):
        assert is_split_into_words and not add_special_tokens
        return {"input_ids": [0, 1] if words == ["seaside"] else [0]}


def test_free_words_by_hand():
    """Four ASCII letters or more, all small; neither a piece nor in a sentence."""
    odd = ["caf\u00e9", "Tree", "c3po", "##ing", "cat", "seaside", "here", "don't"]
    tokenizer = Cutter("zebra", *odd, "tree", "apple")
    assert free_words(tokenizer, [["Here ", "it"]], 3) == ["apple", "tree", "zebra"]
    with pytest.raises(TouchstoneError, match="has 3 words of one token"):
        free_words(tokenizer, [["Here ", "it"]], 4)


def test_every_place_has_the_same_chance():
    """Two words have three places; a class without a token has none."""
    rows = pd.DataFrame({"row_id": map(str, range(600)), "sentence_idx": range(600), "target": 0})
    rows = rows.assign(sentence=[["a", "b"]] * 600)
    found = plant(rows, TOKENS)
    shares = found["planted"].value_counts(normalize=True).sort_index()
    assert shares.index.tolist() == [0, 1, 2] and shares.tolist() == pytest.approx([1 / 3] * 3, 0.2)
    assert plant(rows, {1: "beta"})["planted"].eq(-1).all()
    assert found.equals(plant(rows, TOKENS, seed=0)) and not found.equals(plant(rows, TOKENS, 1))


def test_a_model_is_verified_and_methods_find_the_token(tmp_path):
    rows = toy_rows()
    train, test = (
        rows[rows["sentence_idx"] < 20].reset_index(drop=True),
        rows[rows["sentence_idx"] >= 20].reset_index(drop=True),
    )
    tokens = dict(enumerate(free_words(word_piece(), rows["sentence"], 3)))
    trainer = Trainer(saved(tmp_path, "bert"), "", torch.device("cpu"))
    settings = Settings(epochs=40, lr=0.02, batch_size=16, eps=1e-5)
    model, planted, swaps = train_shortcut(trainer, train, test, CLASSES, settings, tokens)
    assert check_shortcut(swaps) >= 0.95 and len(swaps) == 3 * len(test)
    names = ["Integrated Gradients", "Occlusion", "Uniform random"]
    explained = explain_many(
        model,
        planted,
        [(n, {"n_steps": 20} if n.startswith("Int") else {}) for n in names],
    )
    mass = mass_on_token(explained, planted)
    needed = (
        mass[mass["row_id"].isin(rows_that_need_it(model, planted))]
        .groupby("method")[["mass", "is_first", "even"]]
        .mean()
    )
    assert (needed.loc[names[:2], "mass"] > 0.6).all() and (
        needed.loc[names[:2], "is_first"] > 0.9
    ).all()
    assert needed.loc["Uniform random", "mass"] < needed["even"].iloc[0] + 0.15
    with pytest.raises(
        TouchstoneError, match="the model does not rest on it"
    ):  # one epoch teaches nothing
        train_shortcut(
            trainer, train, test, CLASSES, Settings(epochs=1, lr=1e-5, batch_size=16), tokens
        )


def rows_that_need_it(model, planted):
    """The rows that the model puts into another class without their token: one class is its
    answer where none stands.
    """
    bare = [
        [*words[:place], *words[place + 1 :]]
        for words, place in zip(planted["sentence"], planted["planted"], strict=True)
    ]
    needed = model.predict(bare, 16).argmax(1) != planted["target"]
    assert needed.mean() > 0.6
    return planted["row_id"][needed]


def test_the_whole_route_says_how_firmly_the_model_follows(tmp_path):
    rows = toy_rows()
    train, test = (
        rows[rows["sentence_idx"] < 20].reset_index(drop=True),
        rows[rows["sentence_idx"] >= 20].reset_index(drop=True),
    )
    recipe = {"encoder": saved(tmp_path, "bert"), "revision": "", "classes": CLASSES}
    found = planted_mass(
        recipe,
        train,
        test,
        test["row_id"][:6],
        ["Occlusion", "Uniform random", ("Kernel SHAP", {"n_samples": 200})],
        epochs=60,
    )
    assert found["method"].unique().tolist() == [
        "Occlusion",
        "Uniform random",
        "Kernel SHAP, n_samples 200",
    ]
    assert found["row_id"].nunique() == 6 and (found["follows"] >= 0.95).all()
    assert found.query("method == 'Occlusion'")["mass"].mean() > found["even"].mean() + 0.3


def test_an_encoder_that_has_not_learnt_the_word_is_refused_too(tmp_path):
    rows = toy_rows()
    train, test = (rows[rows["sentence_idx"] < 20], rows[rows["sentence_idx"] >= 20])
    parts = [part.reset_index(drop=True) for part in (train, test)]
    recipe = {"encoder": saved(tmp_path, "bert"), "revision": "", "classes": CLASSES}
    learn = {"scheme": "CEfAf", "lr": 1e-5, "batch_size": 16}
    with pytest.raises(TouchstoneError, match="the model does not rest on it"):
        planted_mass(recipe, *parts, test["row_id"][:6], ["Occlusion"], epochs=1, **learn)


def test_the_share_by_hand():
    swaps = pd.DataFrame(
        {"follows": [True] * 19 + [False] + [False] * 5, "is_swapped": [True] * 20 + [False] * 5}
    )
    assert check_shortcut(swaps) == 0.95
    with pytest.raises(TouchstoneError, match="95.0% of 20 predictions"):
        check_shortcut(swaps, at_least=0.99)
    one_less = swaps.assign(follows=[True] * 18 + [False] * 7)
    with pytest.raises(TouchstoneError, match="90.0% of 20 predictions .* 95% are asked for"):
        check_shortcut(one_less)  # what counts as resting on the token unless one says otherwise

    class Reader:
        def predict(self, sentences, batch_size):
            return np.eye(3)[[2 if "gamma" in words else 0 for words in sentences]]

    found = token_swaps(Reader(), plant(toy_rows().head(6), TOKENS), TOKENS)
    assert (
        found.query("token_of != 1")["follows"].all()
        and not found.query("token_of == 1")["follows"].any()
    )


PLANTED = pd.DataFrame(
    {
        "row_id": ["0-F", "1-F", "2-F"],
        "sentence_idx": [0, 1, 2],
        "target": [0, 1, 2],
        "sentence": [["alpha", "a", "b"], ["c", "beta", "d"], ["e", "f"]],
        "ground_truth": [[1, 0, 0], [0, 1, 0], [0, 0]],
        "planted": [0, 1, -1],
    }
)


def test_tokens_are_swapped_where_they_stand() -> None:
    seen = []

    class Reader:
        def predict(self, sentences, batch_size):
            seen.extend(sentences)
            return np.tile([0.1, 0.7, 0.2], (len(sentences), 1))

    found = token_swaps(Reader(), PLANTED, {0: "alpha", 1: "beta"})
    assert seen[:2] == [["alpha", "a", "b"], ["c", "alpha", "d"]]
    assert seen[2:] == [["beta", "a", "b"], ["c", "beta", "d"]]
    assert found["row_id"].tolist() == ["0-F", "1-F"] * 2 and found.index.tolist() == [0, 1, 2, 3]
    assert found["is_swapped"].tolist() == [False, True, True, False]
    assert found["follows"].tolist() == [False, False, True, True]
    bare = token_swaps(Reader(), PLANTED[2:], {0: "alpha", 1: "beta"})
    assert bare.empty and len(seen) == 4
    with pytest.raises(TouchstoneError, match="0.0% of 0 predictions"):
        check_shortcut(bare)


def test_the_mass_on_the_token_by_hand() -> None:
    explained = pd.DataFrame(
        {
            "dataset": "-",
            "scheme": "-",
            "seed": 0,
            "method": "M",
            "row_id": PLANTED["row_id"],
            "sentence_idx": PLANTED["sentence_idx"],
            "target": PLANTED["target"],
            "words": PLANTED["sentence"],
            "scores": [[3.0, 1.0, 0.0], [2.0, 1.0, -1.0], [1.0, 1.0]],
        }
    )
    found = mass_on_token(explained, PLANTED)
    assert found["row_id"].tolist() == ["0-F", "1-F"] and found["mass"].tolist() == [0.75, 0.25]
    assert found["is_first"].tolist() == [1.0, 0.0]
    assert found["even"].tolist() == pytest.approx([1 / 3, 1 / 3])


def test_what_is_trained_unless_one_says_otherwise(tmp_path, monkeypatch) -> None:
    """Seed 0, of the tokens' places as well; steps of .01 on batches of 64."""
    rows = toy_rows()
    asked = {}

    class Student:
        def predict(self, sentences, batch_size):
            tokens = [[t for t in TOKENS if TOKENS[t] in words][0] for words in sentences]
            return np.eye(3)[tokens]

    class Teacher:
        def train(self, scheme, seed, train, test, classes, settings):
            asked.update(scheme=scheme, seed=seed, train=train, settings=settings)
            return SimpleNamespace(model=Student())

    how = Settings(epochs=1, lr=0.1, batch_size=4)
    _, planted, swaps = train_shortcut(Teacher(), rows, rows, CLASSES, how, TOKENS)
    assert (asked["scheme"], asked["seed"]) == ("OLA-CEA", 0) and swaps["follows"].all()
    assert planted.equals(plant(rows, TOKENS, seed=0)) and asked["train"].equals(planted)

    def student(trainer, train, test, classes, settings, tokens, seed, scheme):
        asked.update(seed=seed, settings=settings, scheme=scheme)
        return None, PLANTED.assign(sentence_idx=0), swaps

    monkeypatch.setattr(planting, "train_shortcut", student)
    recipe = {"encoder": saved(tmp_path, "bert"), "revision": "", "classes": CLASSES}
    found = planted_mass(recipe, rows, rows, ["1-F"], ["Uniform random"], epochs=3)
    assert found["row_id"].tolist() == ["1-F"] and asked["seed"] == 0
    assert asked["settings"] == Settings(epochs=3, lr=0.01, batch_size=64, eps=1e-5)
    assert asked["scheme"] == "OLA-CEA"
    planted_mass(
        recipe,
        rows,
        rows,
        ["1-F"],
        ["Uniform random"],
        2,
        7,
        scheme="CEfAf",
        lr=1e-4,
        batch_size=32,
    )
    assert asked["settings"] == Settings(epochs=2, lr=1e-4, batch_size=32)
    assert (asked["scheme"], asked["seed"]) == ("CEfAf", 7)
