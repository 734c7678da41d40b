"""Scores of tokens as scores of words.

Tokens become words by their letters: what was explained must be the row's words, whatever blanks
stand between them, and a word of several tokens gets the sum of their scores.

>>> rows = pd.DataFrame({"row_id": ["1-F"], "sentence_idx": [1], "target": [0],
...                      "sentence": [["she", "sings"]]})
>>> tokens = [["[CLS]", "she", "sing", "##s", "[SEP]"]]
>>> from_tokens(rows, tokens, [[9.0, 1.0, 2.0, 0.5, 9.0]], "mine")["scores"].tolist()
[[1.0, 2.5]]
"""

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pandas as pd
from tokenizers.decoders import ByteLevel

from ..attribution.seam import word_scores
from ..core.errors import TouchstoneError
from .readers import from_words, paired_with_rows

Span = tuple[int, int]
_SPECIAL = re.compile(r"[<\[]\S+[>\]]")  # <s>, <|endoftext|>, [CLS]


def word_owners(text: str, spans: Sequence[Span], words: Sequence[str]) -> list[int | None]:
    """Which word each token is of.

    Args:
        text: what was explained.
        spans: start and end of each token in it; equal ones for a token that is no part of it.
        words: the words that the text should have, whatever blanks stand between them.

    Returns:
        The place of a word, or None, by token. A token of blanks alone goes to the word behind it.

    Raises:
        TouchstoneError: the text has other words, a token covers two, or a word has no token.

    >>> word_owners("she sings.", [(0, 0), (0, 4), (4, 9), (9, 10)], ["she", "sings", "."])
    [None, 0, 1, 2]
    """
    letters = [(i, sign) for i, sign in enumerate(text) if not sign.isspace()]
    wanted = [(k, sign) for k, word in enumerate(words) for sign in word if not sign.isspace()]
    for (_, sign), (k, expected) in zip(letters, wanted):
        if sign != expected:
            raise TouchstoneError(_other_words(text, words, k))
    if len(letters) != len(wanted):
        k = wanted[len(letters)][0] if len(letters) < len(wanted) else len(words)
        raise TouchstoneError(_other_words(text, words, k))
    owner_at = {i: k for (i, _), (k, _) in zip(letters, wanted)}
    owners: list[int | None] = []
    for start, end in spans:
        own = sorted({owner_at[i] for i in range(start, end) if i in owner_at})
        if len(own) > 1:
            raise TouchstoneError(
                f"the token {text[start:end]!r} covers the words {words[own[0]]!r} and "
                f"{words[own[1]]!r}; split the text at its blanks, so that each word has a score"
            )
        behind = next((k for i, k in owner_at.items() if i >= end), None) if end > start else None
        owners.append(own[0] if own else behind)
    if lost := sorted({k for k, _ in wanted} - set(owners)):
        raise TouchstoneError(
            f"no token is of the word {words[lost[0]]!r} at place {lost[0]}; explain the row's "
            "words as they stand, and all of them"
        )
    return owners


def from_tokens(
    rows: pd.DataFrame,
    tokens: Sequence[Sequence[str]] | Mapping[str, Sequence[str]],
    scores: Sequence[Any] | Mapping[str, Any],
    method: str,
    **about: Any,
) -> pd.DataFrame:
    """Scores of tokens as a tokenizer writes them, with their marks (`##s`, `Ġthe`, `▁the`).

    Args:
        rows: the rows explained, see `from_words`.
        tokens: of each row; special ones, in brackets of either kind, get no word.
        scores: a number for each token.
        method: what your method is called.
        **about: what else `from_words` takes: targets, dataset, scheme, seed, settings, delta.

    Raises:
        TouchstoneError: naming the row, whose words the tokens do not spell.
    """
    explained, lists = paired_with_rows(rows, tokens)
    _, numbers = paired_with_rows(explained, scores)
    spelt = [spelt_text(of_row) for of_row in lists]
    return by_spans(explained, spelt, numbers, method, about)


def by_spans(
    rows: pd.DataFrame,
    spelt: Sequence[tuple[str, Sequence[Span]]],
    scores: Sequence[Any],
    method: str,
    about: Mapping[str, Any],
) -> pd.DataFrame:
    """The explanations of rows whose tokens have scores and spans of a text."""
    lists = []
    for row, (text, spans), of_row in zip(rows.itertuples(), spelt, scores, strict=True):
        where, values = f"{method}: row {row.row_id}: ", plain_array(of_row)
        if values.shape != (len(spans),):
            shape = " x ".join(map(str, values.shape))
            raise TouchstoneError(f"{where}{shape} scores for {len(spans)} tokens; give one each")
        try:
            owners = word_owners(text, spans, row.sentence)
        except TouchstoneError as error:
            raise TouchstoneError(f"{where}{error}") from None
        lists.append(word_scores(values, owners, len(row.sentence)))
    return from_words(rows, lists, method, **about)


def plain_array(values: Any) -> np.ndarray:
    """Numbers of a tensor, an array or a list; a tensor may be on a device or have a graph."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().float().numpy()
    return np.asarray(values, dtype=float)


def joined(pieces: Sequence[str]) -> tuple[str, list[Span]]:
    """The text that pieces make, and where each stands in it."""
    return "".join(pieces), list(pairwise([0, *accumulate(map(len, pieces))]))


def spelt_text(tokens: Sequence[str]) -> tuple[str, list[Span]]:
    """The text that a tokenizer's tokens spell, and where each stands in it.

    >>> spelt_text(["<s>", "▁the", "▁old", "er"])
    (' the older', [(0, 0), (0, 4), (4, 8), (8, 10)])
    """
    kept = ["" if _SPECIAL.fullmatch(token) else token for token in tokens]
    if any(mark in token for token in kept for mark in "ĠĊ"):
        # Two tokens may hold bytes of one letter: the text is read as far as each token goes, and
        # one that adds no letter is of the last.
        read = ByteLevel()
        ends = [0, *(len(read.decode(kept[: i + 1])) for i in range(len(kept)))]
        spans = [
            (start - 1 if token and start == end else start, end)
            for token, (start, end) in zip(kept, pairwise(ends), strict=True)
        ]
        return read.decode(kept), spans
    return joined([token.removeprefix("##").replace("▁", " ") for token in kept])


def _other_words(text: str, words: Sequence[str], k: int) -> str:
    if k == len(words):
        return f"the text {text[:60]!r} goes on behind the row's words; explain these alone"
    return (
        f"the text {text[:60]!r} does not have the row's word {words[k]!r} at place {k}; explain "
        "the words of the data as they stand, in their order"
    )
