"""Errors that a reader can act on: one sentence naming file, row and remedy."""

import difflib
import re
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
    >>> did_you_mean("IG", ["LIME", "Integrated Gradients", "InputXGradient"])
    "; did you mean 'Integrated Gradients'?"
    """
    by_lower = {name.lower(): name for name in known}
    near = [lower for lower, name in by_lower.items() if _abbreviates(word, name)]
    if len(near) != 1:
        near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


def _abbreviates(word: str, name: str) -> bool:
    """Whether a word has the first letter of every part of a name, and between them others of it.

    >>> _abbreviates("GBP", "Guided Backprop"), _abbreviates("KS", "LIME")
    (True, False)
    """
    parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)  # InputXGradient has three
    initials = [part[0].lower() for part in parts]
    asked = [letter for letter in word.lower() if letter.isalnum()]
    return len(parts) > 1 and _in_order(initials, asked) and _in_order(asked, name.lower())


def _in_order(letters: Iterable[str], text: Iterable[str]) -> bool:
    rest = iter(text)  # each search goes on where the last one ended
    return all(letter in rest for letter in letters)
