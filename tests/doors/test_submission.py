"""Submissions: read strictly, and told apart from rules that never look at a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from lib.core.errors import TouchstoneError
from lib.core.files import save_parquet
from lib.doors.submission import ABOUT, NUMBERS, Submission, alike, read_submission, remarks

ITEMS = pd.DataFrame(
    {
        "item_id": ["a@0", "b@0", "a@1", "b@1"],
        "model": "gender",
        "training": [0, 0, 1, 1],
        "sentence": [["she", "sings", "well"], ["he", "is", "old"]] * 2,
        "text": ["she sings well", "he is old"] * 2,
    }
)
SAID = [[3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [2.0, 1.0, 3.0]]
RIGHT = {"author": "A", "method": "mine", "settings": {}, "code": "mine:by_hand", "tuned": False}


@pytest.mark.parametrize("content", [b"", b"item_id,scores\n", b"PAR1 cut off"])
def test_scores_that_are_no_parquet_are_named(hand_in: Callable[..., Path], content: bytes) -> None:
    folder = hand_in()
    (folder / NUMBERS).write_bytes(content)
    with pytest.raises(TouchstoneError, match=rf"{NUMBERS} is not a Parquet file; write"):
        read_submission(folder, ITEMS)


@pytest.fixture
def hand_in(tmp_path: Path) -> Callable[..., Path]:
    def write(scores: list[Any] = SAID, items: list[str] | None = None, **about: Any) -> Path:
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        (folder / ABOUT).write_text(yaml.safe_dump(RIGHT | about))
        ids = list(ITEMS["item_id"]) if items is None else items
        save_parquet(pd.DataFrame({"item_id": ids, "scores": scores}), folder / NUMBERS)
        return folder

    return write


def test_a_submission_is_read_as_it_is(hand_in: Callable[..., Path]) -> None:
    found = read_submission(hand_in(), ITEMS)
    assert (found.name, found.about) == ("mine", RIGHT)
    assert found.explanations["scores"].tolist() == SAID
    assert set(found.explanations["explainer"]) == {"mine"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"scores": SAID[:3], "items": ["a@0", "b@0", "a@1"]}, "leaves out 1 of 4 items.*b@1"),
        ({"items": ["a@0", "b@0", "a@1", "a@1"]}, "item a@1 stands there twice"),
        ({"items": ["a@0", "b@0", "a@1", "b@11"]}, "no item 'b@11'.*b@1"),
        ({"scores": [[1.0], *SAID[1:]]}, "item a@0: 1 scores, and 3 words"),
        ({"scores": [[1.0, float("nan"), 0.0], *SAID[1:]]}, "item a@0: 3 scores, .*finite"),
        ({"tuned": "no"}, "tuned is 'no'; write true where"),
        ({"author": " "}, "author is empty"),
        ({"autor": "A"}, "'autor' is no field.*author"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    given: dict[str, Any], told: str, hand_in: Callable[..., Path]
) -> None:
    with pytest.raises(TouchstoneError, match=told):
        read_submission(hand_in(**given), ITEMS)


@pytest.mark.parametrize("name", [ABOUT, NUMBERS])
def test_a_missing_file_is_named(name: str, hand_in: Callable[..., Path]) -> None:
    folder = hand_in()
    (folder / name).unlink()
    with pytest.raises(TouchstoneError, match=name):
        read_submission(folder, ITEMS)


@pytest.mark.parametrize("field", list(RIGHT))
def test_every_field_is_asked_for(field: str, hand_in: Callable[..., Path]) -> None:
    folder = hand_in()
    left = {name: value for name, value in RIGHT.items() if name != field}
    (folder / ABOUT).write_text(yaml.safe_dump(left))
    with pytest.raises(TouchstoneError, match=f"does not say {field}"):
        read_submission(folder, ITEMS)


def submission(scores: list[list[float]], **about: Any) -> Submission:
    table = pd.DataFrame({"item_id": ITEMS["item_id"], "explainer": "mine", "scores": scores})
    return Submission("mine", RIGHT | about, table)


def test_scores_that_do_not_change_with_the_model_are_model_blind() -> None:
    longer = [[1.5 * x for x in scores] for scores in SAID[:2]]
    told = remarks(submission([*SAID[:2], *longer]), ITEMS, {})
    assert told == ["model-blind: the explanations do not change with the model"]
    assert remarks(submission(SAID), ITEMS, {}) == []


def test_a_floor_in_disguise_is_named_and_so_is_what_cannot_be_rerun() -> None:
    floor = pd.DataFrame({"item_id": ITEMS["item_id"], "scores": SAID})
    doubled = [[x**3 for x in scores] for scores in SAID]
    told = remarks(submission(doubled, code="", tuned=True), ITEMS, {"Word counts": floor})
    assert told == [
        "tuned on these items",
        "same answers as Word counts",
        "not blind: a file on public items, no code",
    ]
    linked = remarks(submission(SAID, code="https://example.org/mine.py"), ITEMS, {})
    assert linked == ["not blind: a file on public items, and code that the board does not run"]


def test_constant_scores_are_like_each_other_and_like_nothing_else() -> None:
    assert alike([[1.0, 1.0]], [[2.0, 2.0]]) == 1.0
    assert alike([[1.0, 1.0]], [[1.0, 2.0]]) == 0.0
