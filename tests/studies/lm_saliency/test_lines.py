"""The three-file format, its faults, and the two baselines."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.studies.lm_saliency.lines import (
    agreement_statistics,
    check_line,
    frame_groups,
    last_words,
    load_sets,
    nearest_baseline,
    random_baseline,
    read_agreement,
    save_sets,
    shortened,
    span_tokens,
    write_agreement,
)

ROWS = pd.DataFrame(
    [
        (["the", "dogs", "near", "the", "old", "car"], 1, [(1, 1)], [(5, 5)]),
        (["A", "taxi", "driver", "saw", "men"], 0, [(1, 2)], [(4, 4)]),
    ],
    columns=["prefix", "tag", "cues", "attractors"],
)


def put(folder, prefixes, tags, spans):
    for name, lines in (
        ("all.prefx.txt", prefixes),
        ("all.tag.txt", tags),
        ("all.subjs.txt", spans),
    ):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_written_lines_are_read_back(tmp_path) -> None:
    write_agreement(ROWS, tmp_path)
    found = read_agreement(tmp_path)
    pd.testing.assert_frame_equal(found[ROWS.columns], ROWS)
    assert list(found["pattern"]) == list(found["cluster"]) == frame_groups(ROWS)
    assert (
        tmp_path / "all.subjs.txt"
    ).read_text() == "[(1, 1)] ||| [(5, 5)]\n[(1, 2)] ||| [(4, 4)]\n"


def test_the_other_name_of_the_tag_file_is_read_too(tmp_path) -> None:
    write_agreement(ROWS, tmp_path)
    (tmp_path / "all.tag.txt").rename(tmp_path / "all.tags.txt")
    assert list(read_agreement(tmp_path)["tag"]) == [1, 0]


@pytest.mark.parametrize(
    ("prefixes", "tags", "spans", "message"),
    [
        (["a b", "a b"], ["0"], ["[(0, 0)] ||| [(1, 1)]"] * 2, "aligned line by line"),
        (["a b"], ["2"], ["[(0, 0)] ||| [(1, 1)]"], "line 1: the tag is '2'"),
        (["a b", ""], ["0", "1"], ["[(0, 0)] ||| [(1, 1)]"] * 2, "line 2: the prefix is empty"),
        (
            ["a b"],
            ["0"],
            ["[(0, 0)] ||| [(1, 2)]"],
            r"line 1: attractor span \(1, 2\) does not lie",
        ),
        (["a b"], ["0"], ["[(1, 0)] ||| [(1, 1)]"], r"line 1: cue span \(1, 0\) does not lie"),
        (["a b"], ["0"], ["[] ||| [(1, 1)]"], "line 1: there is no cue span"),
        (["a b"], ["0"], ["[(0, 0)]"], "line 1: .* is not two lists of spans"),
        (
            ["a b"],
            ["0"],
            ["__import__('os').abort() ||| [(1, 1)]"],
            "line 1: .* is not two lists of spans",
        ),
    ],
)
def test_bad_input_is_named_by_file_and_line(tmp_path, prefixes, tags, spans, message) -> None:
    with pytest.raises(TouchstoneError, match=message) as error:
        read_agreement(put(tmp_path, prefixes, tags, spans))
    assert str(tmp_path) in str(error.value)


def test_a_byte_order_mark_is_no_part_of_a_word_and_other_bytes_are_named(tmp_path) -> None:
    write_agreement(ROWS, tmp_path)
    for name in ("all.prefx.txt", "all.tag.txt", "all.subjs.txt"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    pd.testing.assert_frame_equal(read_agreement(tmp_path)[list(ROWS)], ROWS)
    (tmp_path / "all.prefx.txt").write_bytes("the dogs\nthe café".encode("latin-1"))
    with pytest.raises(TouchstoneError, match="all.prefx.txt, line 2: the bytes are not UTF-8"):
        read_agreement(tmp_path)


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(TouchstoneError, match="all.prefx.txt; a set needs"):
        read_agreement(tmp_path)


def test_random_baseline_is_the_share_of_orders_in_which_a_cue_leads() -> None:
    rows = pd.DataFrame([([*"abcd"], 0, [(0, 1)], [(1, 3)])], columns=ROWS.columns)
    cues, attractors = {0, 1}, {1, 2, 3}
    orders = list(itertools.permutations(range(4)))
    wins = [max(o[i] for i in cues) > max(o[i] for i in attractors) for o in orders]
    assert random_baseline(rows) == pytest.approx([np.mean(wins)])


def test_nearest_baseline_and_frames_by_hand() -> None:
    assert list(nearest_baseline(ROWS)) == [False, False]
    swapped = ROWS.rename(columns={"cues": "attractors", "attractors": "cues"})
    assert list(nearest_baseline(swapped)) == [True, True]
    assert frame_groups(ROWS)[1] == "A [cue] [cue] saw [attractor]"
    assert span_tokens([(2, 3), (3, 4)]) == [2, 3, 4]


def test_nearest_by_the_last_listed_span_is_the_papers() -> None:
    # Lists need not be in order: (0, 3) ends last, (1, 1) is named last.
    spans = ([(0, 3), (1, 1)], [(2, 2)]), ([(0, 0), (3, 3)], [(2, 2)]), ([(0, 0)], [(3, 3), (1, 1)])
    rows = pd.DataFrame([([*"abcd"], 0, *sides) for sides in spans], columns=ROWS.columns)
    assert list(nearest_baseline(rows)) == [True, True, False]
    assert list(nearest_baseline(rows, "listed")) == [False, True, False]
    with pytest.raises(TouchstoneError, match="last is 'list'; write one of ending, listed"):
        nearest_baseline(rows, "list")


def test_statistics_by_hand() -> None:
    """Two lines of tag 1 (one of them twice) and one of tag 0; 'driver' is a second cue token."""
    rows = pd.concat([ROWS, ROWS[:1]], ignore_index=True)
    found = agreement_statistics(rows)
    assert found == {
        "lines": 3,
        "tag_0": 1,
        "tag_1": 2,
        "words_mean": pytest.approx(17 / 3),
        "words_min": 5,
        "words_max": 6,
        "cue_spans": 1,
        "attractor_spans": 1,
        "word_types": 10,
        "repeated": 1,
        "random": pytest.approx((1 / 2 + 2 / 3 + 1 / 2) / 3),
        "nearest": 0,
    }
    both_ends = ROWS.assign(cues=[[(4, 5)], [(4, 4)]])
    assert nearest_baseline(both_ends).tolist() == [False, False]  # a tie fails


def test_a_line_is_checked_on_its_own() -> None:
    check_line(["a", "b"], [(0, 0)], [(1, 1)], "here")
    with pytest.raises(TouchstoneError, match="here: the prefix is empty"):
        check_line([], [(0, 0)], [(1, 1)], "here")


def test_long_lines_keep_their_end_and_lines_that_lose_a_side_go() -> None:
    rows = pd.DataFrame(
        [
            ("a b c d e".split(), 1, [(0, 0), (1, 3)], [(4, 4)], "p", "c"),
            ("a b c d e".split(), 1, [(0, 1)], [(4, 4)], "p", "c"),
            (["a", "b"], 0, [(0, 0)], [(1, 1)], "p", "c"),
        ],
        columns=["prefix", "tag", "cues", "attractors", "pattern", "cluster"],
    )
    found = last_words(rows, 3)
    assert found["prefix"].tolist() == [["c", "d", "e"], ["a", "b"]]
    assert found["cues"].tolist() == [[(0, 1)], [(0, 0)]] and found["attractors"].tolist() == [
        [(2, 2)],
        [(1, 1)],
    ]
    assert last_words(rows, 9).equals(rows)
    of_one = last_words(rows.assign(cues=[[(4, 4)], [(3, 4)], [(0, 0)]]), 1)
    assert of_one["prefix"].tolist() == [["e"], ["e"]] and of_one["cues"].tolist() == [[(0, 0)]] * 2
    with pytest.raises(TouchstoneError, match="keep at least one word"):
        last_words(rows, 0)


def test_what_a_cut_takes_away_is_kept_beside_it(tmp_path) -> None:
    rows = pd.DataFrame(
        [
            ("a b c d e".split(), 1, [(0, 1)], [(4, 4)], "p", "c"),  # loses its cue
            ("a b c d e".split(), 1, [(0, 0), (1, 3)], [(4, 4)], "p", "c"),
            (["a", "b"], 0, [(0, 0)], [(1, 1)], "p", "c"),
        ],
        columns=["prefix", "tag", "cues", "attractors", "pattern", "cluster"],
    )
    sets, whole = shortened({"long": rows, "short": rows.tail(1)}, 3)
    assert sets["long"]["prefix"].tolist() == [["c", "d", "e"], ["a", "b"]]
    assert list(whole) == ["long whole"] and list(sets["short"].index) == [0]
    assert whole["long whole"].equals(rows.loc[[1, 2, 0]].reset_index(drop=True))
    none = shortened({"long": rows}, 5)[1]
    save_sets(none, tmp_path / "whole.parquet")
    assert none == {} == load_sets(tmp_path / "whole.parquet")


def test_sets_are_read_back(tmp_path) -> None:
    rows = pd.DataFrame(
        [(["the", "dog"], 1, [(1, 1)], [(0, 0), (1, 1)], "p", "c")],
        columns=["prefix", "tag", "cues", "attractors", "pattern", "cluster"],
    )
    save_sets({"two": rows, "one": rows}, tmp_path / "sets.parquet")
    found = load_sets(tmp_path / "sets.parquet")
    assert list(found) == ["two", "one"]
    assert found["one"].equals(rows) and found["two"].equals(rows)


@pytest.mark.parametrize("prefix", ["", "the \u200b keys"])
def test_a_prefix_without_words_or_with_one_that_nobody_sees_is_refused(
    tmp_path: Path, prefix: str
) -> None:
    write_agreement(ROWS.head(1), tmp_path)
    (tmp_path / "all.prefx.txt").write_text(prefix + "\n")
    with pytest.raises(TouchstoneError, match="all.prefx.txt, line 1: the prefix is empty, or a"):
        read_agreement(tmp_path)
