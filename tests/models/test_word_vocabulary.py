"""Vocabularies of whole words by hand."""

from __future__ import annotations

from lib.models.language_model import build_vocabulary


def test_the_vocabulary_orders_by_frequency_and_keeps_what_is_forced() -> None:
    vocabulary = build_vocabulary(
        [["b", "a", "a"], ["A", "c", "b", "d"]], size=2, forced=["Zoo", "a"]
    )
    assert vocabulary.words == ("<pad>", "<eos>", "<unk>", "a", "b", "zoo")
    assert vocabulary.encode(["A", "zoo", "c"]) == [3, 5, 2]
    assert vocabulary.share_unknown([["a", "c"], ["d", "zoo"]]) == 0.5
