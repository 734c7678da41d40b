"""A model from elsewhere: its trainings, what explainers get of it, and claims about it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib import stats
from lib.core.errors import TouchstoneError
from lib.core.files import parse_yaml
from lib.core.notebooks import find_notebooks
from lib.core.parameters import check_params, read_ranges, study_parameters
from lib.core.paths import ROOT, material
from lib.studies.cebab.outside import (
    OutsideModel,
    answers_to_score,
    caution,
    claims_about_it,
    given_of,
    names_by_seed,
    read_outside_model,
    refuse_equal,
    split_verdicts,
)
from lib.studies.cebab.pairs import rated_pairs
from lib.studies.cebab.questions import Head
from lib.studies.cebab.reviews import ASPECTS

TEXTS = pd.DataFrame(
    {
        "dataset": "cebab",
        "text_id": ["a", "b", "c", "d", "e"],
        "text": ["one", "two", "three", "four", "five"],
        "group": ["g", "g", "h", "h", "i"],
        "split": ["test", "test", "train", "train", "dev"],
        "rating": [5, 1, 4, 3, 2],
        **dict.fromkeys(ASPECTS, "Positive"),
    }
)
PAIRS = pd.DataFrame(
    {
        "dataset": "cebab",
        "base_id": ["a", "b"],
        "counterfactual_id": ["b", "a"],
        "aspect": "food",
        "old": ["Positive", "Negative"],
        "new": ["Negative", "Positive"],
    }
)
ANSWERS = pd.DataFrame(
    {"text_id": ["d", "b", "a", "e"], "p_1": [0.1, 0.2, 0.3, 0.4], "p_2": [0.9, 0.8, 0.7, 0.6]}
)
SAID = TEXTS[["text_id", *ASPECTS]]
MODEL = OutsideModel(ANSWERS, SAID)


def test_each_training_has_its_files() -> None:
    names = {"outside_predictions": "p{seed}.csv", "outside_aspects": "a.csv", "outside_head": ""}
    assert names_by_seed(names, [3, 11]) == {
        3: {"outside_predictions": "p3.csv", "outside_aspects": "a.csv", "outside_head": ""},
        11: {"outside_predictions": "p11.csv", "outside_aspects": "a.csv", "outside_head": ""},
    }
    one = {"outside_predictions": "p.csv", "outside_vectors": "v.npz"}
    assert names_by_seed(one, [0]) == {0: one}, "what was handed in before there were seeds"


@pytest.mark.parametrize(
    ("names", "seeds", "said"),
    [
        (
            {"outside_predictions": "p.csv"},
            [0, 1],
            "outside_predictions names one file, p.csv, for",
        ),
        (
            {"outside_predictions": "p{seed}.csv", "outside_vectors": "v.npz"},
            [0, 1],
            "outside_vectors names one file, v.npz, for 2 trainings; write {seed}",
        ),
        ({"outside_predictions": "p{seed}.csv"}, [1, 1], r"outside_seeds is \[1, 1\]"),
        ({"outside_predictions": "p{seed}.csv"}, [], r"outside_seeds is \[\]"),
        (
            {"outside_predictions": "", "outside_vectors": "v.npz"},
            [0],
            "outside_vectors is named, and outside_predictions is not",
        ),
    ],
)
def test_trainings_that_cannot_be_told_apart_are_refused(names, seeds, said: str) -> None:
    with pytest.raises(TouchstoneError, match=said):
        names_by_seed(names, seeds)


def test_one_file_handed_in_twice_is_noticed() -> None:
    other = replace(MODEL, predictions=ANSWERS.assign(p_1=0.5, p_2=0.5))
    refuse_equal({0: MODEL, 1: other})
    turned = replace(MODEL, predictions=ANSWERS.iloc[::-1][["p_2", "text_id", "p_1"]])
    with pytest.raises(TouchstoneError, match="of seed 0 and seed 2 are equal"):
        refuse_equal({0: MODEL, 1: other, 2: turned})


def test_explainers_get_the_test_texts_and_the_train_texts_that_were_answered() -> None:
    train, questions, head, asked = given_of(MODEL, TEXTS, PAIRS, 2)
    assert train.ids.tolist() == ["d"] and questions.texts.ids.tolist() == ["a", "b"]
    assert questions.texts.probabilities.tolist() == [[0.3, 0.7], [0.2, 0.8]]
    assert head is None and asked.equals(PAIRS)


@pytest.mark.parametrize(
    ("changes", "n_classes", "said"),
    [
        ({}, 5, "have 2 classes, and this run has 5"),
        ({"predictions": ANSWERS.iloc[1:]}, 2, "name no train text"),
        ({"predictions": ANSWERS.iloc[[0, 1]]}, 2, "text 'a' and 0 others have no predictions"),
        ({"aspects": SAID.iloc[:3]}, 2, "text 'd' and 0 others have no predicted aspects"),
        (
            {
                "vectors": (np.array(["a", "b", "d"]), np.zeros((3, 4))),
                "head": Head(np.zeros((2, 4)), np.zeros(2)),
            },
            2,
            "text 'd': the head's answer to its vector is off its prediction by 0.400",
        ),
    ],
)
def test_a_model_that_does_not_fit_the_run_is_refused(changes, n_classes: int, said: str) -> None:
    with pytest.raises(TouchstoneError, match=said):
        given_of(replace(MODEL, **changes), TEXTS, PAIRS, n_classes)


def test_files_of_one_training(tmp_path: Path) -> None:
    ANSWERS.to_csv(tmp_path / "p.csv", index=False)
    SAID.to_csv(tmp_path / "a.csv", index=False)
    for said in (SAID, tmp_path / "a.csv"):
        model = read_outside_model(tmp_path / "p.csv", said)
        assert model.predictions.equals(ANSWERS) and model.head is None
        assert model.aspects["food"].tolist() == SAID["food"].tolist()
    ours = SAID[SAID["text_id"] != "d"]  # no text of the train set of stage 2
    model = read_outside_model(tmp_path / "p.csv", ours)
    assert model.predictions["text_id"].tolist() == ["b", "a", "e"]
    with pytest.raises(TouchstoneError, match="mine:head reads vectors, and there are none"):
        read_outside_model(tmp_path / "p.csv", SAID, head="mine:head")
    with pytest.raises(TouchstoneError, match="no column 'p_1'"):
        read_outside_model(tmp_path / "a.csv", SAID)


def test_what_is_scored_are_the_answers_to_test_texts_of_each_training() -> None:
    columns = ["dataset", "model", "seed", "split", "text_id", "group", "label", "p_1", "p_2"]
    table = answers_to_score({2: MODEL, 5: MODEL}, TEXTS, columns)
    assert list(table) == columns and table["seed"].tolist() == [2, 2, 5, 5]
    assert table["text_id"].tolist() == ["b", "a"] * 2 and table["p_1"].tolist() == [0.2, 0.3] * 2
    assert set(table["model"]) == {"outside"} and set(table["dataset"]) == {"cebab"}


def scored(model: str) -> pd.DataFrame:
    """Approx is worse than the other methods by .2, in two trainings and 30 groups."""
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame(
            {
                "dataset": "cebab",
                "model": model,
                "seed": seed,
                "explainer": name,
                "row_id": np.arange(30),
                "sentence_idx": np.arange(30),
                "L2": 0.5 + 0.2 * (name == "Approx") + 0.01 * rng.random(30),
            }
        )
        for seed in (0, 1)
        for name in ("Approx", "CONEXP", "S-Learner", "TCAV", "INLP")
    ]
    return pd.concat(parts, ignore_index=True)


def test_a_claim_about_the_papers_models_says_that_another_one_stands_in() -> None:
    claims = {claim.id: claim for claim in stats.read_claims(material("cebab") / "claims.yaml")}
    for name, claim in claims.items():
        is_said = "another model stands in" in caution(claim).caveat
        assert is_said == (claim.source != "ours" and name != "edits_reach_their_goal"), name
    assert sum(bool(claim.registered) for claim in claims.values()) == 8


def test_claims_have_a_verdict_of_their_own_about_a_model_from_outside() -> None:
    claims = stats.read_claims(material("cebab") / "claims.yaml")
    about_it = claims_about_it(claims)
    about_models = [claim for claim in claims if "model" in claim.over]
    assert [c.id for c in about_it] == [f"{c.id} (outside)" for c in about_models]
    rows = []
    for claim in (claims[0], about_it[0]):
        parts = stats.judge_contrasts(claim, {"errors": scored("outside")}, n_bootstrap=50)
        rows.append(stats.summarise(claim, parts, "mine"))
    assert [row["verdict"] for row in rows] == ["not run", "fails"]
    assert rows[1]["why"].endswith("; the model from outside")
    ours, theirs = split_verdicts(pd.DataFrame(rows))
    assert ours["verdict"].tolist() == ["not run"] and theirs["verdict"].tolist() == ["fails"]
    assert theirs["id"].tolist() == ours["id"].tolist() == ["approx_best_L2"]


def test_pairs_with_a_text_without_a_class_are_not_asked_about() -> None:
    pairs = pd.DataFrame(
        {"dataset": "cebab", "base_id": ["a", "a", "d"], "counterfactual_id": ["b", "d", "a"]}
    )
    assert len(rated_pairs(pairs, TEXTS, 5)) == 3
    assert rated_pairs(pairs, TEXTS, 2)["counterfactual_id"].tolist() == ["b"]
    assert rated_pairs(pairs.assign(dataset="other"), TEXTS, 5).empty


def test_the_parameters_that_the_readme_shows_are_allowed() -> None:
    readme = (ROOT / "notebooks/cebab/README.md").read_text()
    shown = re.findall(r"```yaml\n(.*?)```", readme, flags=re.S)
    declared, ranges = study_parameters(find_notebooks("cebab")), read_ranges("cebab", ROOT)
    values = check_params(parse_yaml(shown[0], "README"), declared, "README", ranges)
    assert values["models"] == [] and len(shown) == 1
    names = {name: values[name] for name in ("outside_predictions", "outside_vectors")}
    assert len(names_by_seed(names, values["outside_seeds"])) == 3
