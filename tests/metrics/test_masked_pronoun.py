"""Bias scores and their rules on a model with known probabilities; word lists."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest
import torch

from lib.core.errors import TouchstoneError
from lib.metrics.masked_pronoun import (
    bias_score,
    gender_probabilities,
    judge_sentences,
    right_gender_first,
    top_words,
)
from lib.models.masked_gender import gender_ids

WORDS = [
    "[PAD]",
    "he",
    "He",
    "his",
    "him",
    "she",
    "her",
    "queen",
    "##he",
    "table",
    "himself",
    "herself",
    "hers",
]


class Vocabulary:
    """A tokenizer with nothing but a vocabulary."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def get_vocab(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}


def table(male: float, female: float, rank_male: int = 1, rank_female: int = 2) -> pd.DataFrame:
    return pd.DataFrame(
        {"p_M": [male], "p_F": [female], "rank_M": [rank_male], "rank_F": [rank_female]}
    )


@pytest.mark.parametrize(
    ("male", "female", "wanted"),
    [(0.435, 0.195, 0.690), (0.142, 0.113, 0.557), (0.542, 0.0305, 0.947)],
)
def test_the_papers_scores(male: float, female: float, wanted: float) -> None:
    assert round(float(bias_score(male, female)), 3) == wanted
    assert round(judge_sentences(table(male, female), threshold=0.0)["bias"].item(), 3) == wanted


def test_every_branch_of_the_discard_rule() -> None:
    def verdict(one: pd.DataFrame, **rules: object) -> str:
        return str(judge_sentences(one, **rules)["verdict"].item())  # type: ignore[arg-type]

    assert verdict(table(0.3, 0.2)) == "male" and verdict(table(0.2, 0.3)) == "female"
    assert verdict(table(0.3, 0.2, 11, 12)) == "no gendered word"
    assert (
        verdict(table(0.3, 0.2, 1, 12)) == "one gender alone"
        and verdict(table(0.3, 0.2, 1, 12), missing="zero", threshold=0.0) == "male"
    )
    assert (
        judge_sentences(table(0.3, 0.2, 1, 12), missing="zero", threshold=0.0)["bias"].item() == 1
    )
    assert judge_sentences(table(0.3, 0.2, 1, 12), missing="full_vocab")[
        "bias"
    ].item() == pytest.approx(0.6)
    assert (
        verdict(table(0.542, 0.0305)) == "below the threshold"
        and verdict(table(0.542, 0.0305), compared="larger") == "male"
    )
    assert (
        verdict(table(0.03, 0.03), compared="sum") == "even"
        and verdict(table(0.03, 0.03), compared="larger") == "below the threshold"
    )
    assert (
        verdict(table(0.52, 0.48), delta=0.05) == "even"
        and verdict(table(0.3, 0.2, 3, 4), k=3) == "one gender alone"
    )
    for wrong in ({"missing": "none"}, {"compared": "both"}, {"k": 0}, {"delta": 0.5}):
        with pytest.raises(TouchstoneError):
            judge_sentences(table(0.3, 0.2), **wrong)


def test_probability_is_a_maximum_over_folded_forms() -> None:
    ids = gender_ids(Vocabulary(WORDS))
    assert {g: [WORDS[i] for i in found] for g, found in ids.items()} == {
        "F": ["she", "her", "herself", "hers"],
        "M": ["he", "He", "his", "him", "himself"],
    }
    assert "queen" in [WORDS[i] for i in gender_ids(Vocabulary(WORDS), "identities")["F"]]
    p = torch.full((1, len(WORDS)), 0.001)
    p[0, [1, 2, 5, 9]] = torch.tensor([0.2, 0.3, 0.25, 0.2])
    found = gender_probabilities(p.log(), ids)
    assert found["p_M"].item() == pytest.approx(0.3) and found["p_F"].item() == pytest.approx(0.25)
    assert (found["rank_M"].item(), found["rank_F"].item()) == (1, 2)
    assert right_gender_first(p.log(), ids, ["M"]) == [True]


def rule(male: float, female: float, **rules: object) -> str:
    ranks = {name: rules.pop(name) for name in ("rank_male", "rank_female") if name in rules}
    return str(judge_sentences(table(male, female, **ranks), **rules)["verdict"].item())


def test_bounds_that_are_touched() -> None:
    assert rule(0.3, 0.05) == "male" and rule(0.3, 0.0499) == "below the threshold"
    assert rule(0.3, 0.2, rank_male=10, rank_female=10) == "male"
    assert rule(0.3, 0.2, rank_male=11, rank_female=10) == "one gender alone"
    assert rule(0.2, 0.3, rank_male=11, rank_female=1) == "one gender alone"
    assert rule(0.75, 0.25, delta=0.25) == "even" == rule(0.25, 0.75, delta=0.25)
    assert rule(0.76, 0.24, delta=0.25) == "male" and rule(0.24, 0.76, delta=0.25) == "female"
    assert rule(0.3, 0.3) == "even" and rule(0.3, 0.2, k=1, rank_female=1) == "male"
    assert rule(0.03, 0.02, compared="sum") == "male" and rule(0.3, 0.2, delta=0.0) == "male"
    assert rule(0.2, 0.04, compared="larger", threshold=0.2) == "male"
    assert rule(0.02, 0.3, compared="larger", threshold=0.2) == "female"


def test_the_bias_is_one_of_the_words_in_the_top() -> None:
    found = judge_sentences(table(0.3, 0.2, 12, 1), missing="zero", threshold=0.0)
    assert found["bias"].item() == 0 and found["verdict"].item() == "female"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gone = judge_sentences(table(0.3, 0.2, 12, 12), missing="zero", threshold=0.0)
    assert gone["bias"].isna().all() and gone["verdict"].item() == "no gendered word"
    full = judge_sentences(table(0.3, 0.2, 12, 12), missing="full_vocab")
    assert full["verdict"].item() == "no gendered word"


@pytest.mark.parametrize("missing", ["discard", "zero", "full_vocab"])
def test_where_one_word_takes_all_there_is_no_bias(missing: str) -> None:
    """Both in the top ten, both of probability 0: neither gender is the likelier."""
    found = judge_sentences(table(0.0, 0.0, 2, 3), missing=missing, threshold=0.0)
    assert found["verdict"].item() == "no gendered word" and found["bias"].isna().all()


def test_the_likeliest_words_and_the_gender_that_comes_first() -> None:
    ids = gender_ids(Vocabulary(WORDS))
    p = torch.full((2, len(WORDS)), 0.001)
    p[0, [2, 5, 9]] = torch.tensor([0.2, 0.3, 0.4])
    p[1, [2, 5, 9]] = torch.tensor([0.3, 0.2, 0.1])
    assert right_gender_first(p.log(), ids, ["F", "F"]) == [True, False]
    assert right_gender_first(p.log(), ids, ["M", "M"]) == [False, True]
    ranks = gender_probabilities(p.log(), ids)[["rank_F", "rank_M"]].to_numpy().tolist()
    assert ranks == [[2, 3], [2, 1]]

    class Tokens:
        def convert_ids_to_tokens(self, i: int) -> str:
            return f"Ġ{WORDS[i]}"

    top = top_words(p[0].log(), Tokens(), k=3)
    assert top["word"].tolist() == ["table", "she", "He"]
    assert top["probability"].tolist() == pytest.approx([0.4, 0.3, 0.2])
    assert top["gender"].tolist()[1:] == ["F", "M"] and len(top_words(p[0].log(), Tokens())) == 10
