"""Explainers from elsewhere: functions, classes, tables of estimates."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.studies.cebab.from_labels import CONEXP
from lib.studies.cebab.own_explainer import (
    ABOUT,
    ExplainedModel,
    OwnExplainer,
    read_estimates,
    refuse_known_names,
)
from lib.studies.cebab.questions import ask
from lib.studies.cebab.registry import explainer_named, family_of
from lib.studies.cebab.reviews import ASPECTS

MODULE = """
import numpy as np
from lib.studies.cebab.explainer import Explainer
from lib.studies.cebab.questions import TrainMeans

ASPECTS = ("food", "service", "ambiance", "noise")
SEEN = []
NUMBER = 3

def conexp(text, concept, old, new, model):
    at = ASPECTS.index(concept)
    answers, gold = model.train.probabilities, model.train.gold[:, at]
    return answers[gold == new].mean(0) - answers[gold == old].mean(0)

def curious(text, concept, old, new, model):
    SEEN.append((text, concept, old, new, model))
    return np.zeros(3)

class Means(Explainer):
    def learn(self):
        self.means = TrainMeans(self.train.gold, [self.train.probabilities] * 4)
    def effects(self, questions):
        assert len(set(questions.texts.words)) == 1 and not questions.texts.ids.any()
        after, before = (self.means.of(questions.aspect, v) for v in (questions.new, questions.old))
        return after - before

class Short(Explainer):
    def effects(self, questions):
        return np.zeros((len(questions) + 1, 3))

class Stranger:
    pass

def two(text, concept, old, new, model):
    return [0.5, -0.5]

def nan(text, concept, old, new, model):
    return [float("nan"), 0.0, 0.0]

def stars(text, concept, old, new, model):
    return [-40.0, 0.0, 40.0]

def text(text, concept, old, new, model):
    return ["much", "less", "more"]

def nothing(text, concept, old, new, model):
    return None

def ragged(text, concept, old, new, model):
    return [[1.0], 0.0, 0.0]
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "mine_for_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "mine_for_test"
    sys.modules.pop("mine_for_test", None)


@pytest.mark.parametrize("name", ["conexp", "Means"])
def test_a_function_and_a_class_answer_like_the_explainer_that_they_copy(toy, mine, name) -> None:
    entry = explainer_named(f"{mine}:{name}")
    assert entry.family == family_of(f"{mine}:{name}") == "outside"
    found = entry.make().fit(toy.texts, toy.head, 0).effects(toy.questions)
    expected = CONEXP().fit(toy.texts, None, 0).effects(toy.questions)
    assert np.allclose(found, expected)


def test_it_is_asked_in_the_words_of_the_definition_and_sees_one_text(toy, mine) -> None:
    OwnExplainer(f"{mine}:curious").fit(toy.texts, toy.head, 7).effects(toy.questions)
    seen = sys.modules[mine].SEEN
    questions = toy.questions
    asked = {
        (questions.texts.words[i], ASPECTS[questions.aspect[i]], questions.old[i], questions.new[i])
        for i in range(len(questions))
    }
    assert {row[:4] for row in seen} == asked and len(seen) == len(questions)
    for text, *_, model in seen:
        assert isinstance(model, ExplainedModel) and model.seed == 7
        assert model.asked.words.tolist() == [text] and model.asked.ids.tolist() == [""]
        assert not (model.asked.gold != "").any(), "its labels would tell what its edits say"
        assert np.allclose(model.predict([text]), model.asked.probabilities)
        assert model.predict(list(model.train.words[:2])).shape == (2, 3)
        with pytest.raises(TouchstoneError, match="only answers of this model are known"):
            model.predict(["A text that nobody has read"])


class Network:
    """In the place of a model that can be run."""

    def predict(self, texts: list[list[str]], batch: int) -> np.ndarray:
        return np.array([[len(words), 0.0, 0.0] for words in texts])


def test_a_model_that_can_be_run_answers_any_text(toy) -> None:
    model = ExplainedModel(toy.texts, toy.texts.take(np.array([0])), None, 0, Network())
    assert model.predict(["a b c"]).tolist() == [[3.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("two", r"text 't\d+' \(\w+ from \w+ to \w+\): the answer has the shape \(2,\); return 3"),
        ("nan", r"the answer is \[nan, 0.0, 0.0\]; a change of a probability is a number from -1"),
        ("stars", r"the answer is \[-40.0, 0.0, 40.0\]"),
        ("text", "the answer holds something that is no real number"),
        ("nothing", r"the answer has the shape \(\); return 3 numbers"),
        ("ragged", "no numbers"),
        ("Short", r"answers \d questions with \(\d, 3\); return a row for each"),
        ("Stranger", "is a class, and no Explainer"),
        ("NUMBER", "is int, not a function"),
        ("none", "has no 'none'; correct the name"),
    ],
)
def test_what_is_no_estimate_is_refused_by_name(toy, mine, name: str, said: str) -> None:
    with pytest.raises(TouchstoneError, match=f"{mine}:{name}.*{said}"):
        OwnExplainer(f"{mine}:{name}").fit(toy.texts, toy.head, 0).effects(toy.questions)


def test_unknown_names_say_how_yours_is_named() -> None:
    with pytest.raises(TouchstoneError, match="did you mean 'Zero'.*named as module:function"):
        explainer_named("Zer")
    with pytest.raises(TouchstoneError, match="explainer 'no_such_module:f': No module named"):
        explainer_named("no_such_module:f")


ASKED = pd.DataFrame(
    {
        "dataset": "cebab",
        "model": "outside",
        "seed": [0, 0, 1, 1],
        "base_id": ["a", "b"] * 2,
        "counterfactual_id": ["b", "a"] * 2,
        "group": "g",
        "aspect": "food",
        "old": ["Positive", "Negative"] * 2,
        "new": ["Negative", "Positive"] * 2,
    }
)
TABLE = ASKED[["base_id", "counterfactual_id", "seed"]].assign(
    e_1=[-0.5, 0.5, -0.25, 0.25], e_2=[0.5, -0.5, 0.25, -0.25]
)


def test_a_table_is_read_by_name_in_any_order(tmp_path: Path) -> None:
    (TABLE.iloc[::-1]).to_csv(tmp_path / "mine.csv", index=False)
    TABLE.assign(explainer="mine", model="outside").to_parquet(tmp_path / "other.parquet")
    for file in ("mine.csv", "other.parquet"):
        found = read_estimates(tmp_path / file, ASKED, 2)
        assert found["explainer"].unique().tolist() == ["mine"]
        assert (
            found[["seed", *ABOUT]].to_numpy().tolist()
            == ASKED[["seed", *ABOUT]].to_numpy().tolist()
        )
        assert found["e_1"].tolist() == TABLE["e_1"].tolist()
        assert found["seed"].dtype.kind == "i"


def test_a_table_may_be_about_questions_and_about_one_model(tmp_path: Path) -> None:
    by_question = ASKED[["base_id", "aspect", "new", "seed"]].assign(e_1=[0.1, 0.2] * 2, e_2=0.0)
    by_question[by_question["seed"] == 1].to_csv(tmp_path / "q.csv", index=False)
    found = read_estimates(tmp_path / "q.csv", ASKED, 2)
    assert found["seed"].unique().tolist() == [1] and found["e_1"].tolist() == [0.1, 0.2]
    one = ASKED[ASKED["seed"] == 0]
    extra = pd.DataFrame({"base_id": ["z"], "counterfactual_id": ["y"], "e_1": [0.0], "e_2": [0.0]})
    table = pd.concat([TABLE.head(2).drop(columns="seed"), extra])
    table.to_csv(tmp_path / "p.csv", index=False)
    assert len(read_estimates(tmp_path / "p.csv", one, 2)) == 2


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            TABLE.iloc[1:],
            r"pair a > b \(food, Positive to Negative\) and 0 others have no estimate",
        ),
        (TABLE.iloc[[0, 0, 1, 2, 3]], "base_id a, counterfactual_id b stands there twice"),
        (TABLE.assign(e_1="nan"), r"pair a > b \(.*the answer is \[nan, 0.5\]"),
        (TABLE.assign(e_1=[0.5, None, 0, 0]), r"no real number \('' in row 2\)"),
        (TABLE.assign(e_1=[-50, 50, -25, 25]), r"the answer is \[-50.0, 0.5\]"),
        (TABLE.assign(e_1="much"), "mine.csv holds something that is no real number"),
        (TABLE.assign(e_3=0.0), "mine.csv has 3 classes, and this run has 2; write e_1 to e_2"),
        (TABLE.rename(columns={"e_2": "e_3"}), "has no column 'e_2'; it has e_1, e_3"),
        (TABLE.drop(columns="seed"), "has no column 'seed', and explained are 0, 1"),
        (TABLE.assign(seed=[0, 0, 2, 2]), "seed is '2'; write one of 0, 1"),
        (TABLE.assign(seed="first"), "seed holds something that is no real number"),
        (TABLE.assign(model="BERT"), "model is 'BERT'; write one of outside"),
        (TABLE.assign(dataset="imdb"), "dataset is 'imdb'; write one of cebab"),
        (TABLE.drop(columns="counterfactual_id"), "no column 'aspect'; write base_id and"),
        (TABLE.drop(columns="base_id"), "has no column base_id"),
        (TABLE.assign(new=["Positive", "Negative"] * 2), "a > b .* has new 'Positive' in the file"),
        (TABLE.assign(aspect="service"), "has aspect 'service' in the file"),
        (TABLE.head(0), "mine.csv has no row"),
    ],
)
def test_a_table_that_could_be_misread_is_refused(tmp_path: Path, table, said: str) -> None:
    table.to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(TouchstoneError, match=f"mine.csv.*{said}|{said}"):
        read_estimates(tmp_path / "mine.csv", ASKED, 2)


def test_a_name_of_ours_is_not_taken_again() -> None:
    with pytest.raises(TouchstoneError, match="t.csv names its explainer 'Zero', as one of this"):
        refuse_known_names(["Zero"], ["CONEXP", "Zero"], "t.csv")


def test_every_question_of_a_pair_reaches_its_row(toy) -> None:
    """Asked text by text and out of order, the answers stand where the questions do."""
    pairs = toy.pairs.iloc[::-1].reset_index(drop=True)
    questions = ask(pairs, toy.texts)
    explainer = OwnExplainer.__new__(OwnExplainer)
    explainer.name, explainer.network = "mine", None
    explainer.chosen = lambda text, concept, old, new, model: (
        model.asked.probabilities[0] * (1 if new == "Positive" else -1)
    )
    found = explainer.fit(toy.texts, None, 0).effects(questions)
    sign = np.where(questions.new == "Positive", 1, -1)[:, None]
    assert np.allclose(found, sign * questions.texts.probabilities)
