"""Checks of a student's answer: what is wrong with it, in a sentence, and not what is right.

A hole is a `...` in a cell with the tag `hole`. The cell with the tag `check` that follows calls
one of these functions, with what is right computed there and never written down.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from .errors import TouchstoneError
from .paths import reference_dir

_NOTHING_YET = "There is no answer yet: write yours in the place of the three dots."


class Unsolved(TouchstoneError):
    """An answer is missing or wrong; the message is for the student."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the sentence alone."""
        return [f"Not yet. {self}"]


def read_committed(study: str, scale: str, stage: str, name: str) -> pd.DataFrame:
    """A table of a run that is committed, `outputs/reference/<study>/<scale>/<stage>/<name>.csv`.

    Raises:
        TouchstoneError: no such table is committed.
    """
    path = reference_dir(study, scale) / stage / f"{name}.csv"
    if not path.is_file():
        raise TouchstoneError(f"{path} is not there; exercises need a checkout of the repository")
    return pd.read_csv(path)


def check_number(
    answer: Any,
    right: float,
    slips: Mapping[str, float] | None = None,
    hint: str = "Go through the definition step by step.",
    tolerance: float = 0.005,
    name: str = "",
) -> str:
    """Compare a number with the right one.

    Args:
        answer: the student's.
        right: the right number.
        slips: what a usual slip gives, by the sentence that helps.
        hint: what helps with any other number.
        tolerance: the largest difference that counts as equal.
        name: of the answer, where a cell checks several.

    Returns:
        A word of praise.

    Raises:
        Unsolved: the answer is missing, is no number or is another one.

    >>> check_number(0.504, 0.5)
    'Right.'
    """
    of = f"{name}: " if name else ""
    number = _number(answer, of)
    if abs(number - right) <= tolerance:
        return "Right."
    for help_, wrong in (slips or {}).items():
        if abs(number - wrong) <= tolerance:
            raise Unsolved(f"{of}{number:g} is a usual slip: {help_}")
    if 0 < right < 1 and abs(number / 100 - right) <= tolerance:
        raise Unsolved(f"{of}{number:g} is a percentage; write it as a share, such as 0.5.")
    raise Unsolved(f"{of}{number:g} is another number than ours. {hint}")


def check_choice(answer: Any, right: str, why_not: Mapping[str, str], name: str = "") -> str:
    """Compare a choice with the right one.

    Args:
        answer: the student's, a letter.
        right: the right letter.
        why_not: for each other letter, what speaks against it.
        name: of the answer, where a cell checks several.

    Returns:
        A word of praise.

    Raises:
        Unsolved: the answer is missing, is none of the choices or is another one.

    >>> check_choice("B", "b", {"a": "Look again."})
    'Right.'
    """
    of = f"{name}: " if name else ""
    if answer is ...:
        raise Unsolved(of + _NOTHING_YET)
    letter = str(answer).strip().lower()
    if letter == right.lower():
        return "Right."
    choices = sorted({right, *why_not})
    why_not = {choice.lower(): why for choice, why in why_not.items()}
    if letter not in why_not:
        known = ", ".join(map(repr, choices))
        raise Unsolved(f"{of}{answer!r} is no choice; write one of {known}.")
    raise Unsolved(f"{of}Not {answer!r}. {why_not[letter]}")


def check_list(answer: Any, right: Sequence[Any], hint: str, name: str = "") -> str:
    """Compare a list with the right one, entry by entry.

    Args:
        answer: the student's.
        right: the right entries.
        hint: what helps where some are others.
        name: of the answer, where a cell checks several.

    Returns:
        A word of praise.

    Raises:
        Unsolved: the answer is missing, too long or short, or has other entries: it says how many.

    >>> check_list([1, 0], [1, 0], "Look again.")
    'Right.'
    """
    of = f"{name}: " if name else ""
    if answer is ...:
        raise Unsolved(of + _NOTHING_YET)
    if not isinstance(answer, list | tuple | np.ndarray):
        raise Unsolved(f"{of}{answer!r} is no list; write one such as [1, 0].")
    if len(answer) != len(right):
        raise Unsolved(f"{of}there are {len(answer)} entries; {len(right)} are asked for.")
    if n_wrong := sum(given != wanted for given, wanted in zip(answer, right)):
        raise Unsolved(f"{of}{n_wrong} of {len(right)} entries are not ours. {hint}")
    return "Right."


def check_function(
    function: Callable[..., Any],
    right: Callable[..., Any],
    cases: Mapping[str, Sequence[Any]],
    tolerance: float = 1e-6,
) -> str:
    """Compare a function with the right one on some cases.

    Args:
        function: the student's.
        right: the right function.
        cases: arguments, by the sentence that helps where they are answered wrongly.
        tolerance: the largest difference that counts as equal.

    Returns:
        A word of praise.

    Raises:
        Unsolved: the function fails, returns nothing or something else; the message names the
            arguments.

    >>> check_function(abs, lambda x: max(x, -x), {"Mind the sign.": [-2]})
    'Right.'
    """
    for help_, arguments in cases.items():
        call = f"{function.__name__}({', '.join(map(_shown, arguments))})"
        try:
            answer = function(*copy.deepcopy(arguments))
        except Exception as error:
            raise Unsolved(f"{call} stops with {type(error).__name__}: {error}") from error
        if answer is ...:
            raise Unsolved(f"{call} returns nothing yet: put your code in the place of the dots.")
        if answer is None:
            raise Unsolved(f"{call} returns None. Is a `return` missing?")
        if not _is_close(answer, right(*copy.deepcopy(arguments)), tolerance):
            raise Unsolved(f"{call} returns {_shown(answer)}, which is not it. {help_}")
    return "Right."


def _number(answer: Any, of: str) -> float:
    if answer is ...:
        raise Unsolved(of + _NOTHING_YET)
    if isinstance(answer, bool) or not isinstance(answer, Real) or not math.isfinite(answer):
        raise Unsolved(f"{of}{answer!r} is no number; write one such as 0.5.")
    return float(answer)


def _is_close(answer: Any, right: Any, tolerance: float) -> bool:
    """Whether an answer has the shape and entries of the right one; numbers may differ a bit."""
    wanted = np.asarray(right)
    is_text = wanted.dtype.kind in "UO"
    try:
        given = np.asarray(answer, dtype=None if is_text else float)
    except (TypeError, ValueError):  # no numbers, or lists of unequal length
        return False
    if given.shape != wanted.shape:
        return False
    if is_text:
        return bool((given == wanted).all())
    return np.allclose(given, wanted.astype(float), atol=tolerance, equal_nan=True)


def _shown(value: Any) -> str:
    """A value, as short as a sentence can bear."""
    if callable(value):
        return getattr(value, "__name__", "a function")
    text = repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)
    return text if len(text) <= 80 else f"{text[:77]}..."
