"""Errors that a reader can act on: one sentence naming file, row and remedy."""

import difflib
from collections.abc import Iterable


class TouchstoneError(ValueError):
    """Something given is not usable; the message says what, where, and what to do about it."""


def check_choice(what: str, given: object, known: Iterable[object]) -> None:
    """Refuse a setting that is none of those that there are.

    >>> check_choice("mode", "slow", ("fast", "slow"))
    """
    names = [str(name) for name in known]
    if str(given) not in names:
        near = did_you_mean(str(given), names)
        raise TouchstoneError(f"{what} is {given!r}; write one of {', '.join(names)}{near}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest known one, or nothing without any.

    >>> did_you_mean("lime", ["DeepLift", "LIME"])
    "; did you mean 'LIME'?"
    """
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""
