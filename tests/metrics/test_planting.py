"""A planted token: inserted as said, learnt, verified, and found on a one-layer model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_models import CLASSES, saved, toy_rows, word_piece

from lib.attribution import explain_many
from lib.core.errors import TouchstoneError
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
