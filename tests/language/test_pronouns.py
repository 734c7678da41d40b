"""The first pronoun of a sentence, by hand."""

from __future__ import annotations

from lib.language.pronouns import first_pronoun

SENTENCES = [
    ["She", "meets", "him"],
    ["Mx. ", "Darcy", "loves ", "Their", "dog"],
    ["Himself", "alone"],
    ["The", "mother"],
    ["To", "her", ",", "he", "lies"],
]


def test_the_first_pronoun_is_found_in_any_case() -> None:
    assert [first_pronoun(words) for words in SENTENCES] == [
        (0, 0),
        (3, 2),
        (0, 1),
        None,
        (1, 0),
    ]
    assert first_pronoun(["them", "he"], ("F", "M")) == (1, 1)  # with two classes, they is nobody's
