"""Tagged text and probe examples by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.studies.lm_saliency.lines import load_sets, save_sets
from lib.studies.lm_saliency.text import (
    gender_examples,
    number_examples,
    probe_table,
    read_plain,
    read_tagged,
    split_tagged,
)


def test_tagged_lines_and_a_word_without_a_tag(tmp_path) -> None:
    (tmp_path / "t.txt").write_text("The_DT end_NN\n\nof_IN it\n")
    with pytest.raises(TouchstoneError, match="line 3: 'it' has no tag"):
        read_tagged(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_text("The_DT end_NN\n\nof_IN it_PRP\n")
    assert [len(line) for line in read_tagged(tmp_path / "t.txt")] == [2, 2]


def test_plain_lines_without_headings(tmp_path) -> None:
    (tmp_path / "p.txt").write_text(" = Title = \n\nA line .\n")
    assert read_plain(tmp_path / "p.txt") == [["A", "line", "."]]


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


def test_sets_are_read_back(tmp_path) -> None:
    rows = pd.DataFrame(
        [(["the", "dog"], 1, [(1, 1)], [(0, 0), (1, 1)], "p", "c")],
        columns=["prefix", "tag", "cues", "attractors", "pattern", "cluster"],
    )
    save_sets({"one": rows, "two": rows}, tmp_path / "sets.parquet")
    found = load_sets(tmp_path / "sets.parquet")
    assert list(found) == ["one", "two"]
    assert found["one"].equals(rows) and found["two"].equals(rows)
