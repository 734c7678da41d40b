"""Word scores of other programs, as plain lists and arrays, in the one format."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small_models import as_rows

from lib.attribution import load_explanations, save_explanations
from lib.attribution.table import DEFAULTS, SCHEMA
from lib.core.errors import TouchstoneError
from lib.doors import from_words
from lib.metrics import score_explanations

ROWS = as_rows(["he sings .", "she"])  # 0-F and 1-M
SCORES = [[0.5, -0.25, 0.125], [2.0]]


def test_three_arguments_are_enough_and_the_rest_has_defaults() -> None:
    made = from_words(ROWS, SCORES, "mine")
    assert list(made) == list(SCHEMA)
    assert made["scores"].tolist() == SCORES and made["words"].tolist() == ROWS["sentence"].tolist()
    for name in ("row_id", "sentence_idx", "target"):
        assert made[name].tolist() == ROWS[name].tolist()
    for name, value in DEFAULTS.items():
        assert made[name].isna().all() if value is None else (made[name] == value).all(), name
    assert (made["method"] == "mine").all() and (made["dataset"] == "own").all()


@pytest.mark.parametrize(
    "scores",
    [
        [np.array(row) for row in SCORES],
        [np.float32(row) for row in SCORES],
        [torch.tensor(row) for row in SCORES],
        tuple(map(tuple, SCORES)),
        dict(zip(ROWS["row_id"], SCORES, strict=True)),
        dict(zip(ROWS["row_id"][::-1], SCORES[::-1], strict=True)),
        pd.Series(SCORES),
    ],
    ids="arrays float32 tensors tuples dictionary other-order series".split(),
)
def test_lists_arrays_and_dictionaries_say_the_same(scores: Any) -> None:
    pd.testing.assert_frame_equal(
        from_words(ROWS, scores, "mine"), from_words(ROWS, SCORES, "mine")
    )


def test_what_is_written_is_read_and_scored_against_the_data(tmp_path: Path) -> None:
    rows = ROWS.assign(ground_truth=[[1, 0, 0], [1]])
    made = from_words(rows, {"0-F": SCORES[0]}, "mine", dataset="D_A", settings={"n": 3}, delta=[1])
    assert made["row_id"].tolist() == ["0-F"] and made["delta"].tolist() == [1.0]
    save_explanations(tmp_path / "mine.parquet", made)
    known = rows.assign(dataset="D_A")
    back = load_explanations(tmp_path / "mine.parquet", known)
    pd.testing.assert_frame_equal(back, made)
    assert score_explanations(back, known)["MA"].tolist() == [0.5 / 0.875]


def test_rows_of_two_data_sets_keep_their_own(tmp_path: Path) -> None:
    rows = pd.concat([ROWS.assign(dataset=name) for name in ("D_A", "D_S")], ignore_index=True)
    made = from_words(rows, [*SCORES, *SCORES], "mine", words=[*ROWS["sentence"]] * 2)
    assert made["dataset"].tolist() == ["D_A", "D_A", "D_S", "D_S"]
    with pytest.raises(TouchstoneError, match="there are two rows 0-F; give a list for each row"):
        from_words(rows, {"0-F": SCORES[0]}, "mine")
    with pytest.raises(TouchstoneError, match="rows are of D_A, and dataset is 'D_S'; leave it"):
        from_words(rows, [*SCORES, *SCORES], "mine", dataset="D_S")


FINITE = "mine: the scores of row 1-M are no list of finite numbers (of sizes below 1e+150); give"
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "one row too few": ({"scores": SCORES[:1]}, "1 lists are given for 2 rows; give one a row"),
    "no rows": ({"rows": ROWS[:0], "scores": []}, "0 lists are given for 0 rows"),
    "empty dictionary": ({"scores": {}}, "no row has a list; give one for each row"),
    "one word too many": (
        {"scores": [SCORES[0], [1.0, 2.0]]},
        "mine: the scores, line 1 (row 1-M, method mine): there are 2 scores for 1 words",
    ),
    "nan": ({"scores": [SCORES[0], [float("nan")]]}, FINITE),
    "padded": ({"scores": np.array([SCORES[0], [2.0, np.nan, np.nan]])}, FINITE),
    "complex": ({"scores": [SCORES[0], [1j]]}, FINITE),
    "text": ({"scores": [SCORES[0], ["2"]]}, FINITE),
    "true": ({"scores": [SCORES[0], [True]]}, FINITE),
    "a number": ({"scores": [SCORES[0], 2.0]}, FINITE),
    "nested": ({"scores": [SCORES[0], [[1.0, 2.0]]]}, FINITE),
    "ragged": ({"scores": [SCORES[0], [[1.0], [1.0, 2.0]]]}, FINITE),
    "with a graph": ({"scores": [SCORES[0], torch.ones(1, requires_grad=True)]}, FINITE),
    "unknown row": (
        {"scores": {"0-M": SCORES[0]}},
        "there is no row '0-M' to be explained; did you mean '1-M'?",
    ),
    "other words": (
        {"words": [["he", "sings", "!"], ["she"]]},
        "the explanation of row 0-F (own, mine) has the word '!' at place 2, and the row has '.'",
    ),
    "words in another order": (
        {"words": {"0-F": ["sings", "he", "."], "1-M": ["she"]}},
        "has the word 'sings' at place 0, and the row has 'he'",
    ),
    "words of another row": ({"words": {"2-F": ["she"]}}, "there is no row '2-F'"),
    "no column": ({"rows": ROWS.drop(columns="target")}, "the rows have no column 'target'"),
    "sentences as text": (
        {"rows": ROWS.assign(sentence=["he sings .", "she"])},
        "the sentence of row 0-F is one text; split it into words",
    ),
    "gaps": ({"delta": [0.1]}, "delta has 1 numbers for 2 explained rows; give one each"),
    "settings": ({"settings": {"f": print}}, "the settings of mine cannot be written as JSON"),
    "twice": (
        {"rows": pd.concat([ROWS[:1]] * 2), "scores": [SCORES[0]] * 2},
        "explains row 0-F twice with mine",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_fit_the_rows_is_refused_in_one_sentence(fault: str) -> None:
    changed, message = FAULTS[fault]
    arguments = {"rows": ROWS, "scores": SCORES, "method": "mine"} | changed
    with pytest.raises(TouchstoneError, match=re.escape(message)) as raised:
        from_words(**arguments)
    assert "\n" not in str(raised.value)
