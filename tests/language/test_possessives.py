"""Questions about "her" from persons that tell *him* and *his* apart, and the weights that answer them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc

from lib.core.errors import TouchstoneError
from lib.language.possessives import (
    asked_of_her,
    describe,
    fit_weights,
    load_weights,
    stands_before_possessed,
)

VOCAB = spacy.blank("en").vocab


def doc(text: str) -> Doc:
    parts = [part.rsplit("/", 1) for part in text.split()]
    return Doc(VOCAB, words=[word for word, _ in parts], tags=[tag for _, tag in parts])


@pytest.mark.parametrize(
    ("text", "asked", "answers"),
    [
        ("He told them about his dog", "He told her about her dog", {2: False, 4: True}),
        ("My aunt saw me .", "Her aunt saw her .", {0: True, 3: False}),
        ("a friend of his .", "a friend of his .", {}),  # hers
        ("his and their friends", "his and her friends", {2: True}),
        ("She saw her", "She saw her", {}),
    ],
)
def test_unambiguous_words_become_questions(
    text: str, asked: str, answers: dict[int, bool]
) -> None:
    assert asked_of_her(text.split()) == (asked.split(), answers)


def test_description_of_what_stands_around() -> None:
    found = describe(doc("She/PRP sees/VBZ her/PRP$ dog/NN run/VB")[2], rule=True)
    assert {
        "bias",
        "own PRP$",
        "word dog",
        "end dog",
        "end og",
        "then run",
        "left sees",
        "tags NN",
        "tags NN VB",
        "sees_NN",
        "rule True",
        "rule True_NN",
    } <= set(found)
    assert not any(
        name.startswith("rule") for name in describe(doc("She/PRP sees/VBZ her/PRP$")[2])
    )  # at the end, and unasked


def test_weights_separate_what_can_be_separated(tmp_path: Path) -> None:
    rows = [["bias", "word dog"], ["bias", "word then"]] * 20
    weights = fit_weights(rows, [True, False] * 20)
    assert (
        weights["word dog"] > 0 > weights["word then"]
        and abs(weights["word dog"] + weights["word then"]) < 0.1
    )
    (tmp_path / "w.json").write_text(json.dumps({"about": "x"}))
    with pytest.raises(TouchstoneError, match=r"w\.json holds no weights"):
        load_weights(tmp_path / "w.json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He/PRP brushes/VBZ her/PRP$ hair/NN ./.", True),
        ("He/PRP meets/VBZ her/PRP$ in/IN town/NN ./.", False),
        ("He/PRP tells/VBZ her/PRP$ that/IN it/PRP rains/VBZ ./.", False),
    ],
)
def test_plain_cases_with_the_weights_of_the_repository(text: str, expected: bool) -> None:
    assert stands_before_possessed(doc(text)[2], rule=expected) is expected
