"""Words in a terminal: colour by sign and size, plain text where there are no colours."""

from __future__ import annotations

import pytest

from lib.core.errors import TouchstoneError
from lib.plots import words_to_terminal


def test_orange_for_violet_against_nothing_for_weak_words() -> None:
    text = words_to_terminal(["She", "sings", "well"], [1.0, -1.0, 0.01], [1, 0, 0])
    she, sings, well = text.split(" ")
    assert "48;2;224;130;20" in she and "\x1b[4;" in she
    assert "48;2;128;115;172" in sings and "\x1b[4;" not in sings
    assert well == "well"


def test_half_the_size_is_half_the_colour() -> None:
    assert "48;2;240;192;138" in words_to_terminal(["a", "b"], [2.0, 1.0])


def test_without_colours_shares_stand_beside_the_words() -> None:
    shown = words_to_terminal(["a", "b", "c"], [3.0, -1.0, 0.0], [0, 0, 1], coloured=False)
    assert shown == "a(+75) b(-25) c*"
    assert words_to_terminal(["a"], [0.0], coloured=False) == "a"


@pytest.mark.parametrize("scores", [[1.0], [1.0, float("nan")]])
def test_one_finite_score_a_word(scores: list[float]) -> None:
    with pytest.raises(TouchstoneError, match="give one finite score a word"):
        words_to_terminal(["a", "b"], scores)
