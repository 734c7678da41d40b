"""Bias scores and their rules on a model with known probabilities; word lists."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
import yaml

from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT, material
from lib.metrics.masked_pronoun import (
    bias_score,
    check_lists,
    gender_probabilities,
    judge_sentences,
    may_be_shown,
    passes_gate,
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


def test_no_row_of_a_training_below_the_gate_is_shown() -> None:
    models = pd.DataFrame(
        {
            "model": ["base", "placebo", "placebo", "augmented"],
            "base": 0,
            "seed": [-1, 0, 1, 0],
            "right_first": [0.92, 0.9, 0.88, 0.96],
            "perplexity": [71.0, 73.0, 73.0, 900.0],
            "unigram": 736.0,
        }
    )
    models["passes"] = passes_gate(models, 0.9)
    assert models["passes"].tolist() == [
        True,
        True,
        False,
        False,
    ]  # exactly .9 is enough; a model worse than word frequencies is not
    rows = pd.DataFrame(
        {
            "model": ["base", "placebo", "placebo", "augmented"],
            "base": 0,
            "seed": [-1, 0, 1, 0],
            "bias": 0.5,
        }
    )
    assert may_be_shown(rows, models)[["model", "base", "seed"]].to_numpy().tolist() == [
        ["base", 0, -1],
        ["placebo", 0, 0],
    ]
    with pytest.raises(
        TouchstoneError, match="augmented, base 0, seed 0, was never put through the gate"
    ):
        may_be_shown(rows, models.iloc[:2])


@pytest.mark.parametrize("scale", ["small", "cpu"])
def test_the_committed_tables_hold_no_model_below_the_gate(scale: str) -> None:
    stage = ROOT / "outputs/reference/implicit_bias" / scale / "04_metrics"
    tested = pd.read_csv(stage / "shown.csv")
    passed = tested[tested["passes"]]
    assert (passed["right_first"] >= 0.9).all() and (
        tested["scores"].str.startswith("not shown: gate") == ~tested["passes"]
    ).all()
    for name in ("distribution", "histogram"):
        rows = pd.read_csv(stage / f"{name}.csv")
        key = [
            "model",
            "base" if "base" in rows else "seed",
        ]  # tables of before there were several base models name the seed
        shown = rows[key].drop_duplicates()
        assert set(shown.itertuples(index=False, name=None)) <= set(
            passed[key].itertuples(index=False, name=None)
        ), name
    arms = pd.read_csv(stage / "arms.csv")
    assert set(arms.loc[arms["estimate"].notna(), "model"]) <= set(passed["model"])


def test_every_training_at_small_passes_the_gate() -> None:
    """The tolerances of the arms' tables rest on it: no cell of them is empty."""
    stage = ROOT / "outputs/reference/implicit_bias/small/04_metrics"
    tested = pd.read_csv(stage / "shown.csv")
    assert tested["passes"].all() and set(tested["model"]) == {
        "base",
        "placebo",
        "even placebo",
        "augmented",
    }
    assert (
        pd.read_csv(stage / "arms.csv")["estimate"].notna().all()
        and pd.read_csv(stage / "power.csv")["detectable"].gt(0).all()
    )


def test_unusable_lists_are_refused() -> None:
    with pytest.raises(TouchstoneError, match="the word list A is empty"):
        check_lists({"X": ["a"], "Y": ["b"], "A": []})
    with pytest.raises(TouchstoneError, match="X and Y have 1 and 2 words"):
        check_lists({"X": ["a"], "Y": ["b", "c"]})


def test_bundled_lists_and_phrases() -> None:
    lists = yaml.safe_load((material("implicit_bias") / "weat.yaml").read_text())
    for about in lists.values():
        check_lists({name: about[name] for name in "XYAB"}, [("X", "Y"), ("A", "B")])
        assert all(len(set(about[name])) == 8 for name in "XYAB")
    phrases = yaml.safe_load((material("implicit_bias") / "phrases.yaml").read_text())
    assert (
        len(phrases["male"]) == len(phrases["female"])
        and len(phrases["male"]) + len(phrases["female"]) >= 32
    )
