"""For a model that adds up its words, whoever gives each word its number is exact under every truth
about the model; whoever knows the yardstick, and not the model, is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from lib.attribution import Row
from lib.core.errors import TouchstoneError
from lib.models.text_model import Encoded
from lib.studies.assay.answers import (
    is_verified,
    other_and_padding,
    rules_followed,
    true_answers,
    two_trainings,
)
from lib.studies.assay.edits import removed_words
from lib.studies.assay.explainers import FLOORS, ask, fit_floors, merge_identical
from lib.studies.assay.items import with_replacements
from lib.studies.assay.models import log_odds
from lib.studies.assay.nouns import Kind
from lib.studies.assay.swapped import score_swaps
from lib.studies.assay.truths import score_deletion, score_items

HONEST = ["InputXGradient", "Integrated Gradients", "Occlusion", "Exact Shapley"]
N_WORDS = 60


class Adding:
    """The log-odds of class 1 are the sum of the words' numbers; padding has none."""

    classes = ("0", "1")
    max_length = 40
    tokenizer = SimpleNamespace(pad_token_id=0)

    def __init__(self, seed: int) -> None:
        numbers = torch.randn(N_WORDS, generator=torch.Generator().manual_seed(seed))
        self.table = torch.cat([torch.zeros(1), numbers]).unsqueeze(1)  # (word, 1)
        self.module = nn.Linear(1, 2, bias=False)
        self.module.weight.data = torch.tensor([[-0.5], [0.5]])

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        return [Encoded([1 + int(w[1:]) for w in s], list(range(len(s)))) for s in sentences]

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table[ids]

    def logits(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.module((embeddings * mask[..., None]).sum(1))

    def reference_ids(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(ids)


def words(*numbers: int) -> list[str]:
    return [f"w{number}" for number in numbers]


def explained(model: Adding, items: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Honest explanations, and those of one who knows the marks."""
    fitted = fit_floors(pd.DataFrame({"sentence": [["w0"], ["w1"]], "target": [0, 1]}))
    lines = []
    for row in items.itertuples():
        scores, refused = ask(model, fitted, row.sentence, row.target, dict.fromkeys(names, {}))
        assert not refused
        lines += [(row.item_id, name, found) for name, found in scores.items()]
        lines.append((row.item_id, "knows the marks", list(row.mark)))
    return pd.DataFrame(lines, columns=["item_id", "explainer", "scores"])


def told(model: Adding, items: pd.DataFrame, altered: pd.DataFrame) -> pd.DataFrame:
    forms = pd.DataFrame(columns=["row_id", "sentence_idx", "target", "sentence"])
    return true_answers(model, items, altered, forms).assign(training=0)


@pytest.mark.parametrize("seed", range(3))
def test_edits_are_exact(seed: int) -> None:
    model, rng = Adding(seed), np.random.default_rng(seed)
    rows, altered = [], []
    for i in range(8):
        long = words(*rng.choice(N_WORDS, 9, replace=False))
        kept = sorted(rng.choice(9, 6, replace=False))
        removed = removed_words(long, [long[k] for k in kept])
        mark = [float(k in removed) for k in range(9)]
        rows.append((f"e{i}", "edit", "m", f"c{i}", long, 1, mark))
        altered.append((f"e{i}", "removed", -1, [long[k] for k in kept]))
    names = ["item_id", "truth", "model", "cluster", "sentence", "target", "mark"]
    items = told(
        model,
        pd.DataFrame(rows, columns=names),
        pd.DataFrame(altered, columns=["item_id", "change", "at", "sentence"]),
    )
    answers = explained(model, items, HONEST)
    first = answers[answers["explainer"] == "Occlusion"].set_index("item_id")["scores"]
    for row in items.itertuples():
        said = sum(np.asarray(first[row.item_id])[np.asarray(row.mark) > 0])
        assert said == pytest.approx(row.change, abs=1e-4)
    value = score_items(items, answers).groupby("explainer")["value"].mean()
    assert value[HONEST].to_numpy() == pytest.approx(1.0)
    assert value["knows the marks"] == 0, "it says the same of every pair"


@pytest.mark.parametrize("seed", range(3))
def test_a_second_editor_is_asked_from_the_side_that_was_edited(seed: int) -> None:
    model = Adding(seed)
    number = model.table[1:, 0].numpy()
    rows = [(f"e{i}", "edit", "m", "c", words(1, 2, 3), 1, [0.0, 0.0, 1.0]) for i in (0, 1)]
    names = ["item_id", "truth", "model", "cluster", "sentence", "target", "mark"]
    altered = [
        ("e0", "removed", -1, words(1, 2)),
        ("e0", "second editor, short", -1, words(1, 4)),
        ("e1", "removed", -1, words(1, 2)),
        ("e1", "second editor, long", -1, words(1, 2, 5)),
    ]
    items = told(
        model,
        pd.DataFrame(rows, columns=names),
        pd.DataFrame(altered, columns=["item_id", "change", "at", "sentence"]),
    )
    assert items["change"].tolist() == pytest.approx([number[3], number[3]], abs=1e-5)
    shortened, lengthened = number[2] + number[3] - number[4], number[5]
    assert items["second"].tolist() == pytest.approx([shortened, lengthened], abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_words_exchanged_for_the_same_others_are_exact(seed: int) -> None:
    model = Adding(seed)
    kinds = {f"w{i}": Kind("NN", "a", 0) for i in range(30)}
    sentence = words(40, 3, 50, 17, 25, 55)
    item = ("n0", "noun", "m", "c", sentence, 1, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    names = ["item_id", "truth", "model", "cluster", "sentence", "target", "mark"]
    items = pd.DataFrame([item], columns=names).assign(tags=[["NN"] * 6])
    altered = with_replacements(items, kinds, 29, seed)
    assert set(altered["at"]) == {1, 3, 4}, "words without a kind stay"
    asked = told(model, items, altered)
    assert np.isnan(np.asarray(asked["key"][0])[[0, 2, 5]]).all()
    value = score_items(asked, explained(model, asked, HONEST)).set_index("explainer")["value"]
    assert value[HONEST].to_numpy() == pytest.approx(1.0)
    assert value["knows the marks"] < 1


def test_no_order_of_deletion_is_better() -> None:
    model, sentence = Adding(0), words(1, 2, 3, 4, 5)
    about = {"model": "m", "training": 0, "text": " ".join(sentence)}
    items = pd.DataFrame(
        [{"item_id": "d", "cluster": "c", "sentence": sentence, "target": 1} | about]
    )
    numbers = [float(model.table[1 + n, 0]) for n in (1, 2, 3, 4, 5)]
    lines = [{"explainer": "honest", "scores": numbers}]
    lines += [{"explainer": "upside down", "scores": [-x for x in numbers]}]
    explanations = pd.DataFrame(lines).assign(**about)
    found = score_deletion(model, items, explanations, "pad").set_index("explainer")
    assert found["value"][["honest", "oracle"]].tolist() == pytest.approx([1.0, 1.0])
    assert found["value"]["upside down"] == pytest.approx(0.0)
    assert set(found["truth"]) == {"deletion, pad"} and set(found["cluster"]) == {"c"}


@pytest.mark.parametrize("seed", range(3))
def test_swaps_are_exact_and_who_knows_the_yardstick_is_below(seed: int) -> None:
    model, rng = Adding(seed), np.random.default_rng(seed)
    number = model.table[1:, 0].numpy()
    forms, items, rows = [], [], []
    for i in range(6):
        sides = np.split(rng.choice(N_WORDS, 10, replace=False), 2)
        sides[1][1] = sides[0][1]  # one word is the same in both forms
        sentences = [words(*side) for side in sides]
        forms += [(f"{i}-{t}", i, t, sentences[t]) for t in (0, 1)]
        about = {"model": "m", "training": 0, "text": " ".join(sentences[1])}
        items.append(about | {"item_id": f"d{i}", "cluster": "c", "target": 1, "sentence_idx": i})
        effect = number[sides[1]] - number[sides[0]]
        said = {
            "honest": effect,
            "upside down": -effect,
            "Cheater: sizes": np.abs(effect),
            "Cheater: marks": (effect != 0).astype(float),
        }
        rows += [about | {"explainer": name, "scores": x.tolist()} for name, x in said.items()]
    names = ["row_id", "sentence_idx", "target", "sentence"]
    found = score_swaps(
        model, pd.DataFrame(items), pd.DataFrame(rows), pd.DataFrame(forms, columns=names)
    )
    value = found.groupby("explainer")["value"].mean()
    assert value[["honest", "oracle"]].tolist() == pytest.approx([1.0, 1.0])
    assert value["upside down"] == pytest.approx(0.0)
    assert value["Cheater: marks"] < 0.9 and value["Cheater: sizes"] < 0.9
    assert set(found["truth"]) == {"deletion, swap"}


def test_a_cue_is_verified_where_it_alone_turns_the_answer() -> None:
    both = ["cue exchanged", "attractor exchanged"]
    assert is_verified(-1.0, both, np.array([2.0, -0.5]))
    assert not is_verified(1.0, both, np.array([2.0, 0.5])), "the cue does not decide"
    assert not is_verified(1.0, both, np.array([-2.0, -0.5])), "the attractor decides as well"
    assert not is_verified(0.2, both, np.array([-0.1, 3.0])), "the attractor moves it further"
    assert not is_verified(1.0, both[1:], np.array([0.5])), "there is no cue"


def test_padding_stands_where_the_model_puts_it() -> None:
    model = Adding(0)
    number = model.table[1:, 0].numpy()
    forms = pd.DataFrame(
        {"sentence_idx": [0, 0], "target": [1, 0], "sentence": [words(1, 2), words(3, 2)]}
    )
    own, other = (float(number[[i, 2]].sum()) for i in (1, 3))
    row = {"sentence": words(1, 2), "target": 1, "sentence_idx": 0, "f": own}
    form, found = other_and_padding(model, SimpleNamespace(**row), forms)
    assert form == pytest.approx(other)
    assert found == pytest.approx((0 - other) / (own - other))


def test_two_trainings_stand_side_by_side() -> None:
    nan = float("nan")
    rows = [
        ("swap", "s", 0, [nan, 1.0, 2.0], nan),
        ("swap", "s", 1, [nan, 3.0, 4.0], nan),
        ("edit", "e", 0, [0.0, 1.0], -0.5),
        ("edit", "e", 1, [0.0, 1.0], 0.7),
        ("edit", "e", 2, [0.0, 1.0], 9.0),
    ]
    found = two_trainings(
        pd.DataFrame(rows, columns=["truth", "item_id", "training", "key", "change"])
    ).set_index("truth")
    assert found.loc["edit", ["at", "first", "second"]].tolist() == [-1, -0.5, 0.7]
    swaps = found.loc["swap", ["at", "first", "second"]]
    assert swaps.to_numpy().tolist() == [[1, 1, 3], [2, 2, 4]]


def test_a_floor_sees_no_model_and_a_refusal_is_told() -> None:
    fitted = fit_floors(pd.DataFrame({"sentence": [["w7"], ["w1"]], "target": [0, 1]}))
    answers = [
        ask(Adding(seed), fitted, words(7, 1), 1, dict.fromkeys(FLOORS, {})) for seed in (0, 1)
    ]
    assert answers[0] == answers[1] and set(answers[0][0]) == set(FLOORS)
    assert answers[0][0]["Word counts"][1] > 0 > answers[0][0]["Word counts"][0]
    assert answers[0][0]["Nearest"] == [0.5, 1.0] and answers[0][0]["Even"] == [1.0, 1.0]
    _, refused = ask(Adding(0), fitted, words(7, 1), 1, {"Attention rollout": {}})
    assert "Attention rollout" in refused


def by_length(model: object, rows: Sequence[Row]) -> list[list[float]]:
    return [[float(len(word)) for word in row.words] for row in rows]


def test_a_function_of_ones_own_joins_and_a_misspelt_name_does_not() -> None:
    fitted = fit_floors(pd.DataFrame({"sentence": [["w7"], ["w1"]], "target": [0, 1]}))
    scores, _ = ask(Adding(0), fitted, words(12, 1), 1, {f"{__name__}:by_length": {}})
    assert list(scores.values()) == [[3.0, 2.0]]
    with pytest.raises(TouchstoneError, match="there is no method 'Oclusion'; did you mean"):
        ask(Adding(0), fitted, words(12, 1), 1, {"Oclusion": {}})


def test_the_explained_class_turns_the_sign() -> None:
    assert log_odds(Adding(0), [words(3)] * 2, [1, 0]).sum() == 0
    assert log_odds(Adding(0), [words(3)], [1])[0] == pytest.approx(float(Adding(0).table[4, 0]))


def test_equal_numbers_are_one_explainer() -> None:
    about = {"model": "m", "training": 0}
    lines = [("a", "x", [1.0, 2.0]), ("b", "x", [1.0, 2.0 + 1e-7]), ("c", "x", [1.0, 2.1])]
    lines += [("a", "y", [0.0]), ("b", "y", [0.0]), ("c", "y", [0.0]), ("d", "y", [0.0])]
    table = pd.DataFrame(lines, columns=["explainer", "text", "scores"]).assign(**about)
    merged, copies = merge_identical(table)
    assert copies == {"b": "a"}, "c differs on x, and d does not explain x"
    assert set(merged["explainer"]) == {"a", "c", "d"}


def test_a_rule_is_followed_where_nine_of_ten_labels_are_right() -> None:
    model = Adding(0)
    numbers = model.table[1:, 0].numpy()
    up, down = (int(i) for i in (numbers.argmax(), numbers.argmin()))
    texts = [words(up)] * 10 + [words(down)] * 10
    planted = pd.DataFrame({"rule": ["a"] * 10 + ["b"] * 10, "sentence": texts, "target": 1})
    planted.loc[10:11, "target"] = 0
    found = rules_followed(model, planted).set_index("rule")
    assert found["right"].tolist() == [1.0, 0.2] and found["is_followed"].tolist() == [True, False]
