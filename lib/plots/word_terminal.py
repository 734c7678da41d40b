"""A sentence's word scores in a terminal: words on orange and violet ground."""

from collections.abc import Sequence

import numpy as np

from ..core.errors import TouchstoneError

_ORANGE, _VIOLET = (224, 130, 20), (128, 115, 172)  # as in `word_colours`
_LEAST = 0.08  # of the largest size: a weaker colour is not seen


def words_to_terminal(
    words: Sequence[str], scores: Sequence[float], marks: Sequence[int] = (), coloured: bool = True
) -> str:
    """One sentence as text for a terminal: orange words speak for the answer, violet ones against.

    Args:
        words: the words of the sentence.
        scores: one finite number a word, in any unit; the largest size has the full colour.
        marks: 1 for each word that is underlined; none by default.
        coloured: False writes a share of the sizes beside each word instead, in percent, and an
            asterisk for a mark: for files, and for terminals without colours.

    Raises:
        TouchstoneError: there is not one finite score (or mark) a word.

    >>> words_to_terminal(["She", "sings"], [0.6, -0.2], [1, 0], coloured=False)
    'She*(+75) sings(-25)'
    """
    values = np.asarray(scores, float)
    marked = list(marks) or [0] * len(words)
    if values.shape != (len(words),) or not np.isfinite(values).all() or len(marked) != len(words):
        raise TouchstoneError(
            f"there are {len(words)} words, {values.size} scores and {len(marked)} marks; give one "
            "finite score a word, and one mark or none"
        )
    if not coloured:
        shares = 100 * values / max(np.abs(values).sum(), 1e-300)
        return " ".join(
            f"{word}{'*' * mark}({share:+.0f})" if round(share) else f"{word}{'*' * mark}"
            for word, share, mark in zip(words, shares, marked, strict=True)
        )
    strengths = values / max(np.abs(values).max(initial=0.0), 1e-300)
    return " ".join(map(_painted, words, strengths.tolist(), marked))


def _painted(word: str, strength: float, mark: int) -> str:
    """A word with its colour mixed with white as far as it is weak, in dark letters."""
    codes = ["4"] if mark else []
    if abs(strength) >= _LEAST:
        hue = _ORANGE if strength > 0 else _VIOLET
        mixed = [round(255 + (part - 255) * abs(strength)) for part in hue]
        codes += ["38;2;34;34;34", "48;2;{};{};{}".format(*mixed)]
    return f"\x1b[{';'.join(codes)}m{word}\x1b[0m" if codes else word
