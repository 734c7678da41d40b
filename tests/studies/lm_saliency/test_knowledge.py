"""What models know of number: preferences, thresholds, AUC by construction."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from lib.models.language_model import LMConfig, Vocabulary, build_lm
from lib.models.probe import features
from lib.studies.lm_saliency.knowledge import (
    fit_threshold,
    knowledge_table,
    number_preference,
    right_answers,
)

WORDS = Vocabulary(("<pad>", "<eos>", "<unk>", "the", "is", "was", "are", "were", "key"))


def test_the_preference_is_that_of_the_models_own_probabilities() -> None:
    model = build_lm(LMConfig("LSTM", 1, 8, 8), len(WORDS), seed=0).eval()
    states = features(model, WORDS, [["the", "key"], ["the"]])
    found = number_preference(model, WORDS, states)
    for state, value in zip(states, found, strict=True):
        p = model.log_prob(state[None])[0].exp().tolist()
        plural, singular = p[6] + p[7], p[4] + p[5]
        assert value == pytest.approx(math.log(plural / singular), abs=1e-5)
    fewer = Vocabulary(WORDS.words[:-2] + ("keys", "key"))  # no "were"
    small = build_lm(LMConfig("LSTM", 1, 8, 8), len(fewer), seed=0).eval()
    assert np.isnan(number_preference(small, fewer, torch.zeros(2, 8))).all()


def test_a_threshold_splits_the_classes_best() -> None:
    assert fit_threshold([-3, -2, -1, 2], [0, 0, 1, 1]) == -1.5
    assert fit_threshold([1.0, 3.0, 2.0, 4.0], [0, 1, 0, 1]) == 2.5, "in any order"
    assert fit_threshold([-2.0, 2.0, -2.0, 2.0], [0, 1, 1, 0]) == 0.0
    for scores, tags in (([1.0, 2.0], [1, 1]), ([1.0, np.nan], [0, 1]), ([1.0, 1.0], [0, 1])):
        assert math.isnan(fit_threshold(scores, tags))


def known() -> tuple[pd.DataFrame, pd.DataFrame, dict[str, pd.DataFrame]]:
    """Forty lines of two constructions: the first is known, the second the other way round."""
    tag = np.tile([0, 1], 20)
    section = np.repeat(["across", "within"], 20)
    names = [f"{s}_{'plural' if t else 'singular'}" for s, t in zip(section, tag, strict=True)]
    rows = pd.DataFrame({"tag": tag, "pattern": names, "cluster": [f"c{i}" for i in range(40)]})
    score = np.where(section == "across", 1, -1) * np.where(tag == 1, 2.0, -2.0)
    answers = pd.DataFrame(
        {
            "dataset": "Syneval",
            "line": range(40),
            "architecture": "LSTM",
            "size": "full",
            "training": 0,
            "preference": score + np.linspace(0, 0.1, 40),
            "probe": np.nan,
            "matched": np.nan,
            "untrained": np.nan,
        }
    )
    about = ["number", "LSTM", "full", 0, "preference", 0.5]
    names = ["task", "architecture", "size", "training", "score", "threshold"]
    return answers, pd.DataFrame([about], columns=names), {"Syneval": rows}


def test_auc_and_accuracy_by_construction() -> None:
    table = knowledge_table(*known(), n_bootstrap=50, alpha=0.05, seed=0)
    found = table.set_index("section")[["auc", "balanced", "right_0", "right_1"]]
    assert list(found.index) == ["all", "across", "within"]
    assert found.loc["across"].tolist() == [1, 1, 1, 1]
    assert found.loc["within"].tolist() == [0, 0, 0, 0]
    assert found.loc["all", "balanced"] == 0.5 and table["n"].tolist() == [40, 20, 20]
    assert table["clusters"].tolist() == [40, 20, 20]


def test_right_answers_average_to_the_balanced_accuracy() -> None:
    answers, thresholds, sets = known()
    few = answers.drop(index=[0, 2, 4])  # three singular lines less
    right = right_answers(few, thresholds.assign(threshold=-9.0), sets)
    means = right.groupby("section")["right"].mean()
    assert means.tolist() == pytest.approx([0.5, 0.5]), "all plural: one class right"
    assert set(right["score"]) == {"preference"} and right["sentence_idx"].nunique() == 37
