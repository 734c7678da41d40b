"""What a check says: a sentence that helps, and never the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lib.core.errors import TouchstoneError
from lib.core.exercises import (
    Unsolved,
    check_choice,
    check_function,
    check_list,
    check_number,
    read_committed,
)

RIGHT = 0.6173  # no message may hold it
SLIPS = {"signs are dropped first.": 0.25}


@pytest.mark.parametrize(
    "check",
    [
        lambda answer: check_number(answer, RIGHT),
        lambda answer: check_choice(answer, "b", {"a": "Look again."}),
        lambda answer: check_list(answer, [1, 0], "Look again."),
    ],
)
def test_a_hole_is_told_from_a_wrong_answer(check: Callable[[Any], str]) -> None:
    with pytest.raises(Unsolved, match="There is no answer yet"):
        check(...)


@pytest.mark.parametrize("answer", ["0.6", None, True, float("nan"), [0.6]])
def test_what_is_no_number_is_refused(answer: object) -> None:
    with pytest.raises(Unsolved, match="is no number; write one such as"):
        check_number(answer, RIGHT)


def test_a_usual_slip_is_named_and_the_answer_is_not() -> None:
    with pytest.raises(Unsolved, match="0.25 is a usual slip: signs are dropped first"):
        check_number(0.25, RIGHT, SLIPS)
    with pytest.raises(Unsolved, match="0.9 is another number than ours. Look again.") as error:
        check_number(0.9, RIGHT, SLIPS, "Look again.")
    assert "0.61" not in str(error.value)


def test_a_number_counts_within_the_tolerance() -> None:
    assert check_number(0.62, RIGHT) == check_number(np.float64(RIGHT), RIGHT) == "Right."
    with pytest.raises(Unsolved):
        check_number(0.623, RIGHT)
    assert check_number(3, 3, tolerance=0) == "Right."


def test_a_choice_is_answered_with_what_speaks_against_it() -> None:
    why_not = {"a": "The model is fixed.", "b": "never shown", "c": "Rounding is smaller."}
    assert check_choice(" B", "b", why_not) == "Right."
    with pytest.raises(Unsolved, match="Not 'c'. Rounding is smaller.") as error:
        check_choice("c", "b", why_not)
    assert "never shown" not in str(error.value)
    with pytest.raises(Unsolved, match="'d' is no choice; write one of 'a', 'b', 'c'"):
        check_choice("d", "b", why_not)


def test_of_a_list_the_number_of_wrong_entries_is_said() -> None:
    assert check_list(np.array([1, 0, 1]), [1, 0, 1], "") == "Right."
    with pytest.raises(Unsolved, match="2 of 3 entries are not ours. Look again."):
        check_list([0, 1, 1], [1, 0, 1], "Look again.")
    with pytest.raises(Unsolved, match="there are 1 entries; 3 are asked for"):
        check_list([1], [1, 0, 1], "")
    with pytest.raises(Unsolved, match="5 is no list"):
        check_list(5, [1], "")


def first(words: list[str]) -> Any:
    return words[0]


def test_where_a_cell_checks_several_answers_the_one_is_named() -> None:
    with pytest.raises(Unsolved, match="^share: 0.9 is another number"):
        check_number(0.9, RIGHT, name="share")
    with pytest.raises(Unsolved, match="^share: There is no answer yet"):
        check_number(..., RIGHT, name="share")
    with pytest.raises(Unsolved, match="^why: Not 'C'. No."):
        check_choice("C", "b", {"c": "No."}, name="why")
    with pytest.raises(Unsolved, match="^mask: 1 of 1 entries"):
        check_list([1], [0], "", name="mask")


def test_of_a_function_the_first_failing_call_is_said() -> None:
    cases = {"One word.": [["a"]], "The first, not the last.": [["a", "b"]]}
    assert check_function(first, lambda words: words[0], cases) == "Right."

    def last(words: list[str]) -> str:
        return words[-1]

    with pytest.raises(Unsolved, match=r"last\(\['a', 'b'\]\) returns 'b', which is not it. The f"):
        check_function(last, first, cases)


def test_a_percentage_is_named_as_one() -> None:
    with pytest.raises(Unsolved, match="75 is a percentage; write it as a share"):
        check_number(75, 0.75)
    with pytest.raises(Unsolved, match="another number"):
        check_number(75, 7.5)


def test_a_function_may_fail_return_nothing_or_another_shape() -> None:
    def fails(words: list[str]) -> None:
        raise KeyError("x")

    cases = {"Look again.": [["a"]]}
    with pytest.raises(Unsolved, match=r"fails\(\['a'\]\) stops with KeyError"):
        check_function(fails, first, cases)
    with pytest.raises(Unsolved, match="Is a `return` missing"):
        check_function(lambda words: None, first, cases)
    with pytest.raises(Unsolved, match="returns nothing yet"):
        check_function(lambda words: ..., first, cases)
    for wrong in ([1, 2], "text", [[1], [1, 2]]):
        with pytest.raises(Unsolved, match="which is not it. Look again."):
            check_function(lambda words, wrong=wrong: wrong, lambda words: 1.0, cases)


def test_text_is_compared_as_it_is_and_arguments_are_the_checks_own() -> None:
    def spoils(words: list[str]) -> str:
        word = words.pop()
        return word + "x"

    with pytest.raises(Unsolved, match="returns 'ax'"):  # cut to one letter it would be right
        check_function(spoils, first, {"No x.": [["a"]]})


def test_a_notebook_shows_the_sentence_alone() -> None:
    assert Unsolved("Look again.")._render_traceback_() == ["Not yet. Look again."]


def test_committed_tables_are_read_and_a_missing_one_is_said() -> None:
    assert len(read_committed("geco", "cpu", "01_data_generation", "counts"))
    with pytest.raises(TouchstoneError, match="exercises need a checkout of the repository"):
        read_committed("geco", "cpu", "01_data_generation", "nothing")
