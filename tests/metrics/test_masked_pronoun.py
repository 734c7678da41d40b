"""Bias scores and their rules on a model with known probabilities; word lists."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from lib.core.errors import TouchstoneError
from lib.metrics.masked_pronoun import (
    bias_score,
    gender_probabilities,
    judge_sentences,
    right_gender_first,
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
