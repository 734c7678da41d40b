"""The floors on sentences whose answer is known, and on the published data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.studies.geco.corpus import CLASSES, DATASETS, read_geco
from lib.studies.geco.floors import (
    bag_of_words,
    first_pronoun_class,
    first_pronoun_is_other,
)

ROWS = pd.DataFrame(
    {
        "sentence": [
            ["She", "meets", "him"],
            ["Mx. ", "Darcy", "loves ", "Their", "dog"],
            ["Himself", "alone"],
            ["The", "mother"],
            ["To", "her", ",", "he", "lies"],
        ],
        "ground_truth": [[1, 0, 0], [1, 0, 0, 1, 0], [1, 0], [0, 1], [0, 0, 0, 1, 1]],
        "target": [0, 2, 1, 0, 1],
    }
)


def test_the_rule_takes_its_class():
    assert first_pronoun_class(ROWS).tolist() == [0, 2, 1, 0, 0]


def test_whose_pronoun_it_is_can_be_told_from_the_mask():
    assert first_pronoun_is_other(ROWS).tolist() == [False, False, False, False, True]


def test_a_bag_of_words_learns_words_and_not_their_order():
    train = pd.DataFrame(
        {
            "sentence": [["He", "sings"], ["She", "sings"], ["They", "sing"]] * 5,
            "target": [1, 0, 2] * 5,
        }
    )
    test = pd.DataFrame({"sentence": [["Loudly", "she", "sings"], ["sing", "they"], ["he "]]})
    assert bag_of_words(train, test).tolist() == [0, 2, 1]
    order = pd.DataFrame(
        {"sentence": [["he", "sees", "her"], ["her", "sees", "he"]] * 5, "target": [1, 0] * 5}
    )
    assert (bag_of_words(order, order) == order["target"]).mean() == 0.5


@pytest.mark.parametrize(("dataset", "rule", "other"), [("D_A", 0.987, 12), ("D_S", 0.941, 81)])
def test_the_rule_on_the_published_data(geco_data, dataset, rule, other):
    test = read_geco(geco_data / DATASETS[dataset] / "test.jsonl")
    right = first_pronoun_class(test) == test["target"].to_numpy()
    assert right.mean() == pytest.approx(rule, abs=0.002)
    elsewhere = first_pronoun_is_other(test)
    assert elsewhere.sum() == other
    assert right[elsewhere].mean() == pytest.approx(
        1 / len(CLASSES)
    )  # all three variants get the same answer
    assert np.unique(first_pronoun_class(test)).tolist() == [0, 1, 2]
