"""Planted words: labels by their rule, truths by Shapley's formula, and measures by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.studies.assay.plants import RULES, overlap, plant_words, planted_texts, plants_first

TEXTS = [f"text {i} has some words of its own".split() for i in range(400)]
WORDS, DECOY = ("zorb", "quim"), "blip"


def planted(rule: str) -> pd.DataFrame:
    return plant_words(TEXTS, rule, WORDS, DECOY, seed=3)


def label_of(rule: str, words: list[str]) -> int:
    first, second = ([i for i, word in enumerate(words) if word == plant] for plant in WORDS)
    if rule == "single":
        assert bool(first) != bool(second)
        return int(bool(first))
    if rule == "order":
        return int(first[0] < second[0])
    return int(bool(first) and bool(second)) if rule == "and" else int(bool(first) or bool(second))


@pytest.mark.parametrize("rule", RULES)
def test_the_label_follows_from_the_planted_words_alone(rule: str) -> None:
    rows = planted(rule)
    assert rows["target"].tolist() == [label_of(rule, words) for words in rows["sentence"]]
    assert 0.4 < rows["target"].mean() < 0.6
    for text, row in zip(TEXTS, rows.itertuples(), strict=True):
        assert [word for word in row.sentence if word not in (*WORDS, DECOY)] == text


@pytest.mark.parametrize("rule", RULES)
def test_the_decoy_says_nothing(rule: str) -> None:
    rows = planted(rule)
    has_decoy = rows["decoy_at"] >= 0
    shares = has_decoy.groupby(rows["target"]).mean()
    assert (shares - 0.5).abs().max() < 0.1
    for row in rows[has_decoy].itertuples():
        assert row.sentence[row.decoy_at] == DECOY and row.truth[row.decoy_at] == 0


@pytest.mark.parametrize("rule", ["and", "or"])
def test_the_truth_is_the_shapley_value_of_the_words(rule: str) -> None:
    rows = planted(rule)
    for row in rows[rows["target"] == 1].itertuples():
        players = [i for i, word in enumerate(row.sentence) if word in WORDS]
        values = dict.fromkeys(players, 0.0)
        orders = list(permutations(players))
        for order in orders:
            kept = [word for word in row.sentence if word not in WORDS]
            for player in order:
                before = label_of(rule, kept)
                kept = [*kept, row.sentence[player]]
                values[player] += (label_of(rule, kept) - before) / len(orders)
        assert {i: row.truth[i] for i in players} == pytest.approx(values)
        assert sum(row.truth) == 1
    assert not any(any(truth) for truth in rows.loc[rows["target"] == 0, "truth"])


@pytest.mark.parametrize(("rule", "n"), [("single", 1), ("order", 2)])
def test_every_row_has_a_truth_where_the_words_are_always_there(rule: str, n: int) -> None:
    truths = planted(rule)["truth"]
    assert all(sum(truth) == 1 and np.count_nonzero(truth) == n for truth in truths)


def test_places_are_drawn_and_do_not_tell_the_label() -> None:
    rows = planted("single")
    place = rows["truth"].map(np.argmax)
    assert place.nunique() >= 8
    by_label = place.groupby(rows["target"]).mean()
    assert abs(by_label[0] - by_label[1]) < 0.8
    assert plant_words(TEXTS[:5], "single", WORDS, DECOY, seed=3).equals(rows.head(5))


def test_the_measures_by_hand() -> None:
    assert overlap([1, 1, 0, 0], [0.5, 0.5, 0, 0]) == 1
    assert overlap([-2, 0, 0, 0], [0.5, 0.5, 0, 0]) == 0.5
    assert overlap([1, 1, 1, 1], [0.5, 0.5, 0, 0]) == 0.5
    assert overlap([0, 0], [1, 0]) == 0 and np.isnan(overlap([1, 1], [0, 0]))
    assert plants_first([-3, 1, 0], [1, 0, 0]) == 1 and plants_first([1, 1], [1, 0]) == 0.5
    assert np.isnan(plants_first([1.0], [1.0]))


def test_what_cannot_be_planted_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="'some' cannot be planted"):
        plant_words(TEXTS, "and", ("zorb", "some"), DECOY)
    with pytest.raises(TouchstoneError, match="three different"):
        plant_words(TEXTS, "and", ("zorb", "zorb"), DECOY)
    with pytest.raises(TouchstoneError, match="ordr"):
        plant_words(TEXTS, "ordr", WORDS, DECOY)


def test_sentences_are_used_again_where_there_are_fewer() -> None:
    rules = {"single": ("mango", "cello"), "order": ("tulip", "radar")}
    found = planted_texts([["we", "sat"], ["they", "ran"]], rules, "lemon", 5)
    assert found["rule"].value_counts().to_dict() == {"single": 5, "order": 5}
    assert found["row_id"].is_unique and "they" in found["sentence"][3]
