"""Corpora without test lines, and probe examples, by hand."""

from __future__ import annotations

from lib.language.corpora import split_tagged
from lib.studies.lm_saliency.text import (
    gender_examples,
    number_examples,
    probe_table,
    without_prefixes,
)


def test_number_examples_have_the_words_before_the_verb() -> None:
    found = number_examples(split_tagged("Dogs_NNS bark_VBP and_CC it_PRP was_VBD late_JJ"))
    assert found == [(["Dogs"], 1), (["Dogs", "bark", "and", "it"], 0)]
    assert number_examples(split_tagged("Is_VBZ it_PRP")) == []


def test_gender_examples_leave_capitals_alone() -> None:
    assert gender_examples("He met her and himself".split()) == [
        (["He", "met"], 1),
        (["He", "met", "her", "and"], 0),
    ]


def test_long_prefixes_keep_their_end() -> None:
    table = probe_table({"train": [(["a", "b", "c"], 1)], "valid": [(["d"], 0)]}, max_words=2)
    assert list(table["prefix"]) == ["b c", "d"] and list(table["split"]) == ["train", "valid"]


def test_test_lines_stay_out_of_training() -> None:
    sentences = [
        [("The", ""), ("Keys", ""), ("are", "")],
        [("the", ""), ("key", "")],
        [("The", "")],
    ]
    assert without_prefixes(sentences, [["the", "keys"]]) == sentences[1:]
