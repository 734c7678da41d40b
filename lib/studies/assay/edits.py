"""The truth of an edit: where a person removed words from a text, the model's answer changed by
f(long) - f(short), and what an explanation of the long text gives to these words should be that
change.

A pair is *nested* where the shorter text is the longer one with words removed: in small letters,
words and punctuation of the shorter one follow each other in the longer one in the same order.
Nothing was inserted and nothing exchanged, so no word of the short text is unknown to who explains
the long one.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError

_WORDS = re.compile(r"\w+|[^\w\s]")


def split_text(text: str) -> list[str]:
    """Words and punctuation marks, each by itself.

    >>> split_text("Good food, bad mood.")
    ['Good', 'food', ',', 'bad', 'mood', '.']
    """
    return _WORDS.findall(text)


def removed_words(long: Sequence[str], short: Sequence[str]) -> list[int] | None:
    """The places of `long` that are missing in `short`; None where the two are not nested.

    Where several choices leave the same text, the one with the fewest runs of words is taken, for
    people remove phrases; of these the earliest.

    >>> removed_words("not very very good".split(), "not very good".split())
    [1]
    >>> removed_words("good food".split(), "bad food".split()) is None
    True
    """
    whole, rest = ([word.lower() for word in words] for words in (long, short))
    n, m = len(whole), len(rest)
    if n < m:
        return None
    # runs[k][i, j]: the fewest runs that make rest[j:] of whole[i:], when word i - 1 was removed
    # (k = 1) or kept (k = 0); infinite where it cannot be done.
    runs = np.full((2, n + 1, m + 1), np.inf)
    runs[:, n, m] = 0
    for i in range(n - 1, -1, -1):
        for j in range(max(0, m - (n - i)), min(i, m) + 1):
            keep = runs[0, i + 1, j + 1] if j < m and whole[i] == rest[j] else np.inf
            remove = runs[1, i + 1, j]
            runs[0, i, j], runs[1, i, j] = min(keep, remove + 1), min(keep, remove)
    if np.isinf(runs[0, 0, 0]):
        return None
    places, was_removed, j = [], 0, 0
    for i in range(n):
        remove = runs[1, i + 1, j] + (0 if was_removed else 1)
        if remove == runs[was_removed, i, j]:
            places.append(i)
            was_removed = 1
        else:
            j, was_removed = j + 1, 0
    return places


def exchanged_words(text: Sequence[str], edited: Sequence[str]) -> list[int]:
    """The places of words that an edit took away, whatever it wrote in their place (small letters
    and capitals are the same).

    >>> exchanged_words("the food was very good".split(), "the food was bad".split())
    [3, 4]
    """
    before, after = ([word.lower() for word in words] for words in (text, edited))
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [i for tag, start, end, *_ in changes if tag != "equal" for i in range(start, end)]


def nested_pairs(texts: pd.DataFrame) -> pd.DataFrame:
    """The nested pairs of an original and one of its edits.

    Args:
        texts: text_id, group (of an original and its edits), is_original, text.

    Returns:
        One line a pair: long_id, short_id, group, long and short (lists of words), edited (the
        places of `long` that `short` does not have), was_inserted (whether the person added these
        words: the long text is the edit). Pairs that are the same text are left out.

    Raises:
        TouchstoneError: a group with two originals.
    """
    originals = texts[texts["is_original"]]
    if (twice := originals["group"][originals["group"].duplicated()]).size:
        raise TouchstoneError(f"group {twice.iloc[0]} has two originals; each edit is of one text")
    both = texts[~texts["is_original"]].merge(originals, on="group", suffixes=("", "_original"))
    pairs = []
    for row in both.itertuples():
        sides = [
            (row.text_id, split_text(row.text)),
            (row.text_id_original, split_text(row.text_original)),
        ]
        (long_id, long), (short_id, short) = sorted(sides, key=lambda side: -len(side[1]))
        if edited := removed_words(long, short):
            pairs.append(
                (long_id, short_id, row.group, long, short, edited, long_id == row.text_id)
            )
    columns = ["long_id", "short_id", "group", "long", "short", "edited", "was_inserted"]
    return pd.DataFrame(pairs, columns=columns)


def estimated_change(scores: Sequence[float], edited: Sequence[int]) -> float:
    """What an explanation of the long text says that its edited words do: the sum of their scores.

    >>> estimated_change([0.5, -1.0, 0.25], [1, 2])
    -0.75
    """
    return float(np.asarray(scores, float)[list(edited)].sum())
