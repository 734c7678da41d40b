"""Errors that a reader can act on: one sentence naming file, row and remedy."""

import difflib
from collections.abc import Iterable


class TouchstoneError(ValueError):
    """Something given is not usable; the message says what, where, and what to do about it."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest known one, or nothing without any.

    >>> did_you_mean("lime", ["DeepLift", "LIME"])
    "; did you mean 'LIME'?"
    """
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""
