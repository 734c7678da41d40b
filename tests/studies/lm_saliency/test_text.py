"""Corpora without test lines, and probe examples, by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from lib.language.books import Book
from lib.language.corpora import split_tagged
from lib.studies.lm_saliency import text
from lib.studies.lm_saliency.text import (
    balanced,
    gender_examples,
    matched_examples,
    matched_table,
    number_examples,
    probe_table,
    tagged_table,
    with_books,
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


def test_the_nearest_noun_of_a_matched_example_is_the_last_one_before_the_verb() -> None:
    sentence = split_tagged("Keys_NNS of_IN Ann_NNP are_VBP old_JJ and_CC it_PRP is_VBZ")
    assert [(number, near) for _, number, near in matched_examples(sentence)] == [(1, 0), (0, 0)]
    assert matched_examples(split_tagged("It_PRP is_VBZ")) == [], "no noun"


def test_every_kind_is_as_frequent_in_a_balanced_table() -> None:
    kinds = [("train", 0)] * 5 + [("train", 1)] * 2 + [("valid", 0)] * 1 + [("valid", 1)] * 4
    table = pd.DataFrame(kinds, columns=["split", "tag"]).assign(prefix=[str(i) for i in range(12)])
    found = balanced(table, ["tag"], seed=0)
    assert found.groupby(["split", "tag"]).size().tolist() == [2, 2, 1, 1]
    assert found["prefix"].astype(int).is_monotonic_increasing, "the order stays"
    assert found.equals(balanced(table, ["tag"], seed=0))


def test_probes_learn_from_tags_in_equal_parts() -> None:
    plural, singular = "Keys_NNS by_IN Ann_NNP are_VBP", "Ann_NNP by_IN keys_NNS is_VBZ"
    near = ["Keys_NNS are_VBP", "Ann_NNP is_VBZ"]
    tagged = [split_tagged(line) for line in (plural, singular, *near, plural)]
    untagged = [[("it", ""), ("was", "")]] * 3
    corpus = {"train": tagged + untagged, "valid": tagged}
    table = tagged_table(corpus, 10, seed=0)
    assert table.groupby(["split", "tag"]).size().tolist() == [2, 2, 2, 2]
    assert "it" not in set(table["prefix"])
    matched = matched_table(corpus, 10, seed=0)
    assert matched.groupby(["split", "tag", "nearest"]).size().tolist() == [1] * 8


def test_books_join_a_corpus_and_other_authors_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    books = [Book("A/x.md", 9, ""), Book("B/x.md", 8, ""), Book("C/x.md", 2, "")]
    monkeypatch.setattr(text, "list_books", lambda: books)
    monkeypatch.setattr(text, "book_archive", lambda: None)
    monkeypatch.setattr(
        text, "book_sentences", lambda _, some, *rest: [[b.author, "sat", "there"] for b in some]
    )
    corpus = {"train": [[("it", "PRP")]], "valid": [[("they", "PRP")]]}
    assert with_books(corpus, [], 0, 5, 2, seed=0) == corpus
    mixed = with_books(corpus, [["c", "sat"]], 10, 5, 2, seed=0)
    first = {part: {sentence[0][0] for sentence in found} for part, found in mixed.items()}
    assert first == {"train": {"it", "B"}, "valid": {"they", "A"}}, "C begins as a test line"
