"""Explanations are scored row by row; the rows that count are those that were asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_tables import explanations

from lib.core.errors import TouchstoneError
from lib.metrics import (
    METRICS,
    add_relative,
    by_correctness,
    piece_counts,
    score_explanations,
    select_rows,
    without_predictions,
)

ROWS = pd.DataFrame(
    [
        {"dataset": "D_A", "row_id": f"0-{c}", "ground_truth": [1, 0], "token_counts": [3, 1]}
        for c in ("F", "M")
    ]
)


def test_one_table_with_every_measure():
    scored = score_explanations(explanations([3.0, 1.0]), ROWS)
    assert set(METRICS) < set(scored.columns) and scored["share_of"].item() == "tokens"
    assert scored["MA"].item() == 0.75 and scored["share"].item() == 0.75
    assert scored["MA_chance_normalised"].item() == 0.0
    by_words = score_explanations(explanations([3.0, 1.0]), ROWS.drop(columns="token_counts"))
    assert by_words["share"].item() == 0.5 and by_words["share_of"].item() == "words"


@pytest.mark.parametrize(
    ("scores", "about", "message"),
    [
        ([1.0, 2.0], {"row_id": "9-F"}, "row 9-F .* belongs to no row"),
        ([1.0], {}, "row 0-F .* 1 scores for 2 words"),
        ([1.0, np.nan], {}, "row 0-F .* not finite"),
        ([1.0, 1j], {}, "row 0-F .* not finite"),
        ([[1.0], [2.0, 3.0]], {}, "row 0-F .* not finite"),
    ],
)
def test_what_cannot_be_scored_is_named(scores, about, message):
    with pytest.raises(TouchstoneError, match=message):
        score_explanations(explanations(scores, **about), ROWS)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"words": ["sings", "He"]}, "has the word 'sings' at place 0, and the row has 'He'"),
        ({"words": ["HE", "sings"]}, "has the word 'HE'"),
        ({"target": 1}, "has target 1, and the row has 0"),
        ({"sentence_idx": 3}, "has sentence_idx 3, and the row has 0"),
        ({"dataset": "D_S"}, "has the word 'He' at place 0, and the row has 'They'"),
    ],
)
def test_an_explanation_of_another_row_is_not_scored(about, message):
    told = ROWS.assign(sentence=[["He", "sings"]] * 2, target=[0, 1], sentence_idx=0)
    rows = pd.concat([told, told.assign(dataset="D_S", sentence=[["They", "sings"]] * 2)])
    with pytest.raises(TouchstoneError, match="belongs to no row"):
        score_explanations(explanations([3.0, 1.0]), rows.head(0))
    with pytest.raises(TouchstoneError, match="the data have two rows D_A 0-F; keep one"):
        score_explanations(explanations([3.0, 1.0]), pd.concat([rows, told]))
    right = {"words": ["He", "sings"]}
    assert score_explanations(explanations([3.0, 1.0], **right), rows)["MA"].item() == 0.75
    with pytest.raises(TouchstoneError, match=f"row 0-F .* {message}"):
        score_explanations(explanations([3.0, 1.0], **(right | about)), rows)


def test_row_sets():
    scored = pd.DataFrame(
        [
            {
                "dataset": "D_A",
                "scheme": s,
                "seed": k,
                "method": m,
                "row_id": f"{i}-{c}",
                "sentence_idx": i,
            }
            for s, k, m in (("C", 0, "LIME"), ("CE", 0, "LIME"), ("-", -1, "First pronoun"))
            for i in (0, 1)
            for c in "FM"
        ]
    )
    predictions = pd.DataFrame(
        [
            {
                "dataset": "D_A",
                "scheme": s,
                "seed": 0,
                "row_id": f"{i}-{c}",
                "sentence_idx": i,
                "target": t,
                "predicted": 0 if (s, i, t) == ("CE", 1, 1) else t,
            }
            for s in ("C", "CE")
            for i in (0, 1)
            for t, c in enumerate("FM")
        ]
    )
    assert len(select_rows(scored, predictions, "all")) == 12
    own = select_rows(scored, predictions, "correct_by_model")
    assert own.groupby("scheme").size().to_dict() == {"-": 4, "C": 4, "CE": 3}
    elsewhere = scored[scored["scheme"] == "C"].assign(scheme="mine")
    assert len(select_rows(elsewhere, predictions, "correct_by_model")) == len(
        elsewhere
    )  # nobody said where that model is right
    told = without_predictions(pd.concat([scored, elsewhere]), predictions)
    assert told.to_dict("records") == [{"dataset": "D_A", "scheme": "mine", "seed": 0, "rows": 4}]
    few = predictions[predictions["row_id"] != "0-F"]  # a row of which nothing is said is not wrong
    kept = select_rows(scored, few, "correct_by_model")
    assert kept.groupby("scheme").size().to_dict() == {"-": 4, "C": 4, "CE": 3}
    everyone = select_rows(scored, predictions, "correct_by_all")
    assert everyone.groupby("scheme").size().to_dict() == {"-": 2, "C": 2, "CE": 2}
    with pytest.raises(TouchstoneError, match="correct_by_all"):
        select_rows(scored, predictions, "right")


def test_sentences_of_unequal_length_are_scored_together():
    rows = pd.concat([ROWS, ROWS[:1].assign(row_id="1-F", ground_truth=[[0, 0, 1]])])
    many = pd.concat(
        [explanations([3.0, 1.0]), explanations([1.0, 0.0, 1.0], row_id="1-F")], ignore_index=True
    )
    scored = score_explanations(many, rows.drop(columns="token_counts"))
    assert scored["MA"].tolist() == [0.75, 0.5] and scored["share"].tolist() == [0.5, 1 / 3]


def test_a_row_without_a_prediction_is_kept_and_counted():
    """Whether of a model that was asked of other rows, or where no model was asked."""
    about = {"dataset": "D_A", "scheme": "C", "seed": 0, "method": "LIME"}
    scored = pd.DataFrame([{**about, "row_id": f"{i}-F", "sentence_idx": i} for i in range(3)])
    asked = scored[:2].assign(target=[0, 0], predicted=[0, 1])
    for which in ("correct_by_model", "correct_by_all"):
        assert select_rows(scored, asked, which)["row_id"].tolist() == ["0-F", "2-F"]
    assert without_predictions(scored, asked)["rows"].tolist() == [1]
    assert without_predictions(scored[:2], asked).empty


def test_relative_to_the_same_row_of_the_untrained_model():
    scored = pd.DataFrame(
        [
            {"dataset": "D_A", "scheme": s, "seed": k, "method": "LIME", "row_id": r, "MA": ma}
            for s, k, r, ma in (
                ("ZS", 0, "a", 0.2),
                ("ZS", 0, "b", 0.0),
                ("C", 0, "a", 0.6),
                ("C", 1, "a", 0.1),
                ("C", 0, "b", 0.3),
            )
        ]
    )
    relative = add_relative(scored)
    assert relative["RMA"].tolist()[2:4] == pytest.approx([3.0, 0.5]) and np.isnan(
        relative["RMA"].iloc[4]
    )
    assert relative["RMA"].iloc[0] == 1.0


def test_right_and_wrong_rows_of_a_sentence_are_kept_apart():
    about = {"dataset": "D_A", "scheme": "C", "seed": 0, "method": "LIME", "sentence_idx": 7}
    scored = pd.DataFrame(
        [{**about, "row_id": f"7-{c}", "MA": ma} for c, ma in (("F", 0.2), ("M", 0.4), ("NB", 0.9))]
    )
    predictions = pd.DataFrame(
        [
            {**about, "row_id": f"7-{c}", "target": t, "predicted": p}
            for c, t, p in (("F", 0, 0), ("M", 1, 1), ("NB", 2, 0))
        ]
    )
    found = by_correctness(scored, predictions).set_index("is_correct")["MA"]
    assert found[True] == pytest.approx(0.3) and found[False] == pytest.approx(0.9)
    for order, wanted in ((1, [True, False]), (-1, [False, True])):  # that of the table
        table = by_correctness(scored[::order], predictions)
        assert table["is_correct"].tolist() == wanted and table["row_id"].eq("7").all()


def test_sub_words_are_counted_word_by_word():
    class Pieces:
        """A tokenizer that cuts words into pieces of two letters."""

        def __call__(self, words, is_split_into_words, add_special_tokens):
            assert is_split_into_words and not add_special_tokens
            self.found = [i for i, word in enumerate(words) for _ in range(0, len(word.strip()), 2)]
            return self

        def word_ids(self):
            return self.found

    assert piece_counts([["she", "is", " "], ["benchmark"]], Pieces()) == [[2, 1, 0], [5]]
