"""Nested pairs by hand, against every way of removing words, and on an additive model."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.core.errors import TouchstoneError
from lib.studies.assay.edits import (
    estimated_change,
    exchanged_words,
    nested_pairs,
    removed_words,
    split_text,
)

FEW = st.lists(st.sampled_from("abA"), max_size=8)


def n_runs(places: tuple[int, ...]) -> int:
    return sum(1 for i in places if i - 1 not in places)


@given(FEW, FEW)
def test_of_all_ways_to_remove_words_the_one_of_fewest_runs_is_found(
    long: list[str], short: list[str]
) -> None:
    found = removed_words(long, short)
    ways = [
        places
        for places in combinations(range(len(long)), max(0, len(long) - len(short)))
        if [word.lower() for i, word in enumerate(long) if i not in places]
        == [word.lower() for word in short]
    ]
    if not ways or len(long) < len(short):
        assert found is None
    else:
        assert tuple(found) in ways
        assert n_runs(tuple(found)) == min(map(n_runs, ways))


def test_a_phrase_is_removed_as_one() -> None:
    long = split_text("The food was good, but the service was slow.")
    assert removed_words(long, split_text("The food was good.")) == [4, 5, 6, 7, 8, 9]
    assert removed_words(long, split_text("the Food was slow.")) == [2, 3, 4, 5, 6, 7]
    assert removed_words(long, long) == []
    assert removed_words(split_text("Good."), long) is None


def reviews() -> pd.DataFrame:
    rows = [
        ("1_0", "1", True, "The food was good, but noisy."),
        ("1_1", "1", False, "The food was good."),
        ("1_2", "1", False, "The food was bad, but noisy."),
        ("1_3", "1", False, "The food was good, but noisy and dark."),
        ("1_4", "1", False, "the food was good, but noisy."),
        ("2_0", "2", True, "Nice."),
    ]
    return pd.DataFrame(rows, columns=["text_id", "group", "is_original", "text"])


def test_the_pairs_of_a_group() -> None:
    pairs = nested_pairs(reviews())
    assert pairs[["long_id", "short_id", "was_inserted"]].to_numpy().tolist() == [
        ["1_0", "1_1", False],
        ["1_3", "1_0", True],
    ]
    assert pairs["edited"].tolist() == [[4, 5, 6], [7, 8]]
    with pytest.raises(TouchstoneError, match="group 2 has two originals"):
        nested_pairs(pd.concat([reviews(), reviews().tail(1)]))


def test_the_words_of_an_additive_model_add_up_to_the_change() -> None:
    worth = {word: value for value, word in enumerate("the food was good , but noisy .".split())}
    rng = np.random.default_rng(0)
    for _ in range(20):
        long = [str(word) for word in rng.choice(list(worth), 12)]
        kept = rng.random(12) < 0.6
        short = [word for word, stays in zip(long, kept, strict=True) if stays]
        scores = [worth[word] for word in long]
        change = sum(scores) - sum(worth[word] for word in short)
        assert estimated_change(scores, removed_words(long, short) or []) == change


@given(FEW, FEW)
def test_words_that_are_not_exchanged_stand_in_the_edit_in_the_same_order(
    text: list[str], edited: list[str]
) -> None:
    gone = exchanged_words(text, edited)
    assert gone == sorted(set(gone)) and set(gone) <= set(range(len(text)))
    kept = [word for i, word in enumerate(text) if i not in gone]
    assert removed_words(edited, kept) is not None
    assert exchanged_words(text, text) == []
