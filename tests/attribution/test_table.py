"""The one format of explanations, and files that do not keep to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from small_models import as_rows

from lib.attribution import explain, load_explanations, save_explanations
from lib.attribution.table import SCHEMA, are_finite
from lib.core.errors import TouchstoneError


@pytest.fixture
def good() -> pd.DataFrame:
    return explain(None, as_rows(["he sings", "she"]), "Pronoun list", dataset="D_A")


def test_what_is_saved_is_what_is_loaded(good: pd.DataFrame, tmp_path: Path) -> None:
    save_explanations(tmp_path / "e.parquet", good)
    back = load_explanations(tmp_path / "e.parquet")
    pd.testing.assert_frame_equal(back, good)
    assert isinstance(back.scores[0], list) and isinstance(back.words[0][0], str)


def changed(name: str, value: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        values = frame[name].astype(object).tolist()
        return frame.assign(**{name: pd.Series([values[0], value], dtype=object)})

    return change


FAULTS = {
    "no column": (
        lambda f: f.drop(columns="settings"),
        "has no column 'settings'; it holds the method's settings",
    ),
    "unknown column": (lambda f: f.assign(scor=1), "unknown column 'scor'; did you mean 'scores'"),
    "steps are text": (
        lambda f: f.assign(steps=[9.0, "many"]),
        "line 1 .*steps is 'many', not a number; it holds points",
    ),
    "too many scores": (
        changed("scores", [1.0, 2.0]),
        r"line 1 \(row 1-M, method Pronoun list\): there are 2 scores for 1 words",
    ),
    "nan": (changed("scores", [float("nan")]), "line 1 .*not a finite number"),
    "infinite": (changed("scores", [float("-inf")]), "line 1 .*not a finite number"),
    "shares would be nan": (changed("scores", [-1e308]), "line 1 .*number of a size below 1e.150"),
    "scores are text": (changed("scores", ["1"]), "line 1 .*not a finite number"),
    "no list": (changed("scores", 1.0), "line 1 .*scores is 1.0, not list"),
    "words are numbers": (changed("words", [7]), "line 1 .*words must be text"),
    "class is text": (changed("target", "M"), "line 1 .*target is 'M', not int"),
    "seed is missing": (changed("seed", None), "line 1 .*seed is None, not int"),
    "settings": (changed("settings", "n=3"), "line 1 .*settings is not JSON"),
    "settings are a list": (changed("settings", "[3]"), "line 1 .*settings must be a JSON object"),
    "twice": (changed("row_id", "0-F"), "explains row 0-F twice with Pronoun list"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_malformed_table_is_refused(good: pd.DataFrame, tmp_path: Path, fault: str) -> None:
    change, message = FAULTS[fault]
    with pytest.raises(TouchstoneError, match=f"mine.parquet.*{message}"):
        save_explanations(tmp_path / "mine.parquet", change(good))
    assert not list(tmp_path.iterdir())


def test_a_file_made_elsewhere_is_checked_on_reading(good: pd.DataFrame, tmp_path: Path) -> None:
    good.drop(columns="words").to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(TouchstoneError, match="mine.parquet has no column 'words'"):
        load_explanations(tmp_path / "mine.parquet")
    good[list(reversed(SCHEMA))].to_parquet(tmp_path / "fine.parquet")
    assert list(load_explanations(tmp_path / "fine.parquet")) == list(SCHEMA)


def test_a_file_that_is_no_table_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "mine.parquet").write_text("row_id,scores\n")
    with pytest.raises(TouchstoneError, match="mine.parquet is not a Parquet file"):
        load_explanations(tmp_path / "mine.parquet")
    with pytest.raises(TouchstoneError, match="there is no file of explanations"):
        load_explanations(tmp_path / "other.parquet")


ROWS = as_rows(["he sings", "she"])


def test_a_file_of_five_columns_is_enough(good: pd.DataFrame, tmp_path: Path) -> None:
    columns = ["dataset", "method", "row_id", "words", "scores"]
    good[columns].to_parquet(tmp_path / "mine.parquet")
    read = load_explanations(tmp_path / "mine.parquet", ROWS)
    assert list(read) == list(SCHEMA) and read["target"].tolist() == ROWS["target"].tolist()
    assert read["sentence_idx"].tolist() == ROWS["sentence_idx"].tolist()
    assert set(read["scheme"]) == {"own"} and set(read["seed"]) == {-1}
    with pytest.raises(TouchstoneError, match="mine.parquet has no column 'sentence_idx'"):
        load_explanations(tmp_path / "mine.parquet")


OTHER_ROWS = {
    "reversed words": ({"words": [["sings", "he"], ["she"]]}, "has the word 'sings' at place 0"),
    "upper case": ({"words": [["he", "sings"], ["SHE"]]}, "row 1-M .*has the word 'SHE' .*'she'"),
    "a word more": (
        {"words": [["he", "sings"], ["she", "."]], "scores": [[1.0, 0.0], [1.0, 0.0]]},
        "is of 2 words, and the row has 1",
    ),
    "another class": ({"target": [0, 7]}, "row 1-M .*has target 7, and the row has 1"),
    "another base sentence": ({"sentence_idx": [0, 0]}, "row 1-M .*has sentence_idx 0"),
    "no such row": ({"row_id": ["0-F", "9-F"]}, "row 9-F .*belongs to no row"),
    "another data set": ({"dataset": "D_S"}, "row 0-F .D_S, .*belongs to no row"),
}


@pytest.mark.parametrize("fault", OTHER_ROWS)
def test_what_explains_other_rows_is_refused(
    good: pd.DataFrame, tmp_path: Path, fault: str
) -> None:
    rows = ROWS.assign(dataset="D_A")
    good.to_parquet(tmp_path / "mine.parquet")
    assert len(load_explanations(tmp_path / "mine.parquet", rows)) == 2
    changes, message = OTHER_ROWS[fault]
    good.assign(**changes).to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(TouchstoneError, match=f"mine.parquet: the explanation of .*{message}"):
        load_explanations(tmp_path / "mine.parquet", rows)


def test_a_file_without_rows_is_refused(good: pd.DataFrame, tmp_path: Path) -> None:
    good.head(0).to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(TouchstoneError, match="mine.parquet holds no explanations"):
        load_explanations(tmp_path / "mine.parquet")


def test_scores_are_a_plain_list_of_finite_numbers() -> None:
    assert are_finite([1, 2.5]) and are_finite([])
    for scores in ([1j, 1.0], [[1.0], [2.0]], [[1.0], [2.0, 3.0]], [float("inf")], ["1"], [True]):
        assert not are_finite(scores)


def test_a_data_set_of_another_name_is_told(good: pd.DataFrame, tmp_path: Path) -> None:
    good.assign(dataset="own").to_parquet(tmp_path / "mine.parquet")
    rows = pd.concat([as_rows(["he sings", "she"]).assign(dataset=d) for d in ("D_S", "D_A")])
    message = "D_A and D_S have one of that name: write its data set in the column dataset"
    with pytest.raises(TouchstoneError, match=message):
        load_explanations(tmp_path / "mine.parquet", rows.reset_index(drop=True))
