"""Spans of a sentence: pairs (start, end) of word positions, counted from 0, both ends included."""

from collections.abc import Iterable

Span = tuple[int, int]


def span_tokens(spans: Iterable[Span]) -> list[int]:
    """The word positions of spans, in order, each once.

    >>> span_tokens([(3, 4), (0, 0)])
    [0, 3, 4]
    """
    return sorted({i for start, end in spans for i in range(start, end + 1)})
