"""Faults of form are found, repaired, kept or dropped; faults of wording counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.studies.geco.corpus import DATASETS, GENDERS, SPLITS, read_geco
from lib.studies.geco.faults import (
    BLANK_WORD,
    EDGE_BLANK,
    LENGTH,
    SAME_WORD,
    aligned_masks,
    fault_table,
    faults_of,
    find_wording_faults,
)

Words = list[str]


def rows(tmp_path: Path, *forms: tuple[Words, list[int]], on_fault: str = "repair") -> pd.DataFrame:
    """Read the forms of base sentence 3, beside a sound base sentence 4."""
    sound = [(["She", "sleeps", "."], [1, 0, 0]), (["He", "sleeps", "."], [1, 0, 0])]
    lines = [
        {
            "sentence": words,
            "ground_truth": mask,
            "target": target,
            "gender": GENDERS[target],
            "sentence_idx": idx,
        }
        for idx, group in ((3, forms), (4, sound))
        for target, (words, mask) in enumerate(group)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_geco(path, on_fault)  # type: ignore[arg-type]


EDGE = (["She", "reads", "."], [1, 0, 0]), (["He ", "reads", "."], [1, 0, 0])
BLANK = (["She", " ", "reads"], [1, 0, 0]), (["He", " ", "reads"], [1, 0, 0])
SHORT = (
    (["He", "reads"], [1, 1, 1]),
    (["She", "reads"], [1, 1, 1]),
    (["They", "read", "."], [1, 1, 1]),
)
SAME = (["She", "Reads", "."], [1, 1, 0]), (["He", "reads ", "."], [1, 1, 0])


def test_blanks_at_the_edges_go(tmp_path: Path) -> None:
    read = rows(tmp_path, *EDGE)
    assert read["sentence"][1] == ["He", "reads", "."]
    assert faults_of(read).values.tolist() == [["3-M", 3, 1, EDGE_BLANK, "blanks removed"]]


def test_a_word_of_blanks_goes_with_its_mask_entry(tmp_path: Path) -> None:
    read = rows(tmp_path, *BLANK)
    assert read["sentence"][0] == ["She", "reads"] and read["ground_truth"][0] == [1, 0]
    assert set(faults_of(read)["fault"]) == {BLANK_WORD}


def test_an_empty_word_in_one_form_only_leaves_it_shorter_and_says_so(tmp_path: Path) -> None:
    read = rows(tmp_path, (["She", "", "reads"], [1, 1, 0]), (["He", "'s", "reads"], [1, 1, 0]))
    assert [len(words) for words in read["sentence"][:2]] == [2, 3]
    assert faults_of(read)["what_was_done"].str.contains("shorter").all()


def test_a_mask_that_does_not_fit_is_made_anew(tmp_path: Path) -> None:
    read = rows(tmp_path, *SHORT)
    assert list(read["ground_truth"][:3]) == [[1, 1], [1, 1], [1, 1, 1]]
    assert set(faults_of(read)["fault"]) == {LENGTH}
    assert all(
        len(s) == len(g) for s, g in zip(read["sentence"], read["ground_truth"], strict=True)
    )


def test_a_mask_that_does_not_fit_and_has_no_other_form_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        TouchstoneError, match=r"rows\.jsonl: .*row 3-F has 3 entries for 2 words.*on_fault"
    ):
        rows(tmp_path, (["She", "reads"], [1, 0, 0]))


def test_a_masked_word_that_differs_in_case_and_blanks_only_is_unmasked(tmp_path: Path) -> None:
    read = rows(tmp_path, *SAME)
    assert list(read["ground_truth"][:2]) == [[1, 0, 0], [1, 0, 0]]
    assert read["sentence"][0][1] == "Reads", "wording is never touched"
    assert {SAME_WORD, EDGE_BLANK} == set(faults_of(read)["fault"])


@pytest.mark.parametrize("forms", [EDGE, BLANK, SHORT, SAME])
def test_keep_changes_nothing_and_drop_leaves_the_base_sentence_out(
    tmp_path: Path, forms: tuple
) -> None:
    kept = rows(tmp_path, *forms, on_fault="keep")
    assert list(zip(kept["sentence"], kept["ground_truth"]))[: len(forms)] == [
        tuple(form) for form in forms
    ]
    assert set(faults_of(kept)["what_was_done"]) == {"kept"}
    dropped = rows(tmp_path, *forms, on_fault="drop")
    assert list(dropped["row_id"]) == ["4-F", "4-M"]
    assert set(faults_of(dropped)["what_was_done"]) == {"base sentence left out"}


def test_the_order_of_rows_survives_a_repair(tmp_path: Path) -> None:
    assert list(rows(tmp_path, *SHORT)["row_id"]) == ["3-F", "3-M", "3-NB", "4-F", "4-M"]


def test_aligned_masks_of_equal_lengths_are_positional() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        words = [f"w{i}" for i in range(8)]
        other = [w if rng.random() < 0.7 else f"v{i}" for i, w in enumerate(words)]
        expected = [int(a != b) for a, b in zip(words, other, strict=True)]
        assert aligned_masks([words, other]) == [expected, expected]


def test_wording_faults_by_hand() -> None:
    forms = [
        ["She", "tries", "his", "hat", ";"],
        ["He", "tries", "his", "hat", ";"],
        ["They", "trie", "them", "big hat", ";"],
    ]
    table = pd.DataFrame(
        {
            "row_id": ["0-F", "0-M", "0-NB"],
            "sentence_idx": 0,
            "target": [0, 1, 2],
            "sentence": forms,
            "ground_truth": [[1, 1, 1, 1, 0]] * 3,
        }
    )
    found = find_wording_faults(table)
    at = {(fault, row): words for row, fault, words in found.itertuples(index=False)}
    assert at["them for possessive his", "0-NB"] == 1
    assert at["verb without its last letter", "0-NB"] == 1
    assert at["masked word same in female and male", "0-NB"] == 3
    assert at["several words in one", "0-NB"] == 1
    assert (
        at["pronoun of another class", "0-F"] == 1 and ("pronoun of another class", "0-M") not in at
    )
    assert {("no full stop at the end", row) for row in ("0-F", "0-M", "0-NB")} <= set(at)


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff", "\u00ad\u200d", "\u2060 "])
def test_a_word_without_width_is_a_blank_word(tmp_path: Path, unseen: str) -> None:
    lines = (["She", unseen, "reads"], [1, 1, 0]), (["He", unseen, "reads"], [1, 1, 0])
    read = rows(tmp_path, *lines)
    assert BLANK_WORD in set(faults_of(read)["fault"])
    assert read["sentence"][0] == ["She", "reads"] and read["ground_truth"][0] == [1, 0]


def test_the_table_of_all_faults_takes_them_out_of_attrs(tmp_path: Path) -> None:
    read = rows(tmp_path, *EDGE)
    table = fault_table({"D_A_binary": {"train": read}})
    assert table.values.tolist() == [
        ["D_A_binary", "train", "3-M", EDGE_BLANK, 0, "blanks removed"]
    ]
    assert "faults" not in read.attrs and len(pd.concat([read, rows(tmp_path, *EDGE[:1])]))
    three = rows(tmp_path, *SHORT)
    assert set(fault_table({"D_A": {"test": three}})["what_was_done"]) == {
        "mask made anew from the aligned variants",
        "reported",
    }


@pytest.fixture
def published(geco_data: Path) -> dict[tuple[str, str], pd.DataFrame]:
    """The published three-class sets as they are."""
    return {
        (name, split): read_geco(geco_data / DATASETS[name] / f"{split}.jsonl", "keep")
        for name in ("D_A", "D_S")
        for split in SPLITS
    }


@pytest.mark.slow
def test_faults_of_form_in_the_published_files(geco_data: Path, published: dict) -> None:
    def count(name: str, split: str, fault: str) -> int:
        return int((faults_of(published[name, split])["fault"] == fault).sum())

    assert [count("D_S", split, LENGTH) for split in SPLITS] == [2, 2]
    assert [count("D_A", split, LENGTH) for split in SPLITS] == [0, 0]
    assert [count("D_A", split, BLANK_WORD) for split in SPLITS] == [3, 1]
    assert [
        count("D_A", split, EDGE_BLANK) + count("D_A", split, BLANK_WORD) for split in SPLITS
    ] == [78, 17]
    assert [count("D_A", split, SAME_WORD) for split in SPLITS] == [
        3,
        3,
    ]  # one position, three rows
    lengths = faults_of(published["D_S", "test"]).query("fault == @LENGTH")
    assert sorted(lengths["row"]) == ["988-F", "988-M"]
    for name in DATASETS.values():
        for split in SPLITS:
            repaired = read_geco(geco_data / name / f"{split}.jsonl")
            assert all(
                len(s) == len(g) and all(s)
                for s, g in zip(repaired["sentence"], repaired["ground_truth"], strict=True)
            )
            assert (
                not read_geco(geco_data / name / f"{split}.jsonl", "drop")["sentence_idx"]
                .isin(faults_of(repaired)["sentence_idx"])
                .any()
            )


@pytest.mark.slow
def test_faults_of_wording_in_the_published_files(published: dict) -> None:
    found = {
        name: pd.concat([find_wording_faults(published[name, split]) for split in SPLITS])
        for name in ("D_A", "D_S")
    }

    def words(name: str, fault: str) -> int:
        return int(found[name].query("fault == @fault")["words"].sum())

    def by_class(name: str, fault: str) -> list[int]:
        row = found[name].query("fault == @fault")["row"]
        return [int(row.str.endswith(f"-{gender}").sum()) for gender in ("F", "M", "NB")]

    assert [words(name, "masked word same in female and male") for name in found] == [1772, 1449]
    assert [words(name, "masked word same in male and neutral") for name in found] == [30, 5]
    assert [words(name, "them for possessive his") for name in found] == [499, 246]
    assert words("D_A", "several words in one") == 55
    assert by_class("D_A", "no pronoun of its own class") == [11, 11, 10]
    assert by_class("D_S", "no pronoun of its own class") == [45, 37, 70]
    assert by_class("D_A", "pronoun of another class") == [146, 139, 9]
    assert by_class("D_S", "pronoun of another class") == [880, 566, 1133]
    assert (
        sum(by_class("D_S", "no masked word")) == 33 and sum(by_class("D_A", "no masked word")) == 3
    )
    assert words("D_A", "verb without its last letter") == 66


def test_masked_shares_of_words_in_the_published_files(geco_data: Path) -> None:
    shares = {}
    for name, folder in DATASETS.items():
        table = read_geco(geco_data / folder / "test.jsonl", "keep")
        shares[name] = np.mean([sum(g) / len(g) for g in table["ground_truth"]])
    expected = {"D_A": 0.234, "D_S": 0.145, "D_A_binary": 0.169, "D_S_binary": 0.090}
    assert {name: round(float(share), 3) for name, share in shares.items()} == pytest.approx(
        expected, abs=6e-4
    )
