"""Texts of the other rows: whole sentences in both forms, whole groups of reviews; and a user's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.stage import open_stage
from lib.studies.assay.items import swapped_rows
from lib.studies.assay.published import (
    check_texts,
    first_groups,
    in_place_of,
    own_texts,
    two_forms,
)
from lib.studies.geco.corpus import read_geco


def test_a_sentence_needs_both_forms_of_one_length() -> None:
    rows = pd.DataFrame(
        [
            (1, 0, ["she", "sang"]),
            (1, 1, ["he", "sang"]),
            (1, 2, ["they", "sang"]),
            (2, 0, ["she"]),
            (3, 0, ["she", "sang"]),
            (3, 1, ["he", "has", "sung"]),
            (4, 0, ["she", "sang"]),  # the first one again: it would be asked and learnt from
            (4, 1, ["he", "sang"]),
        ],
        columns=["sentence_idx", "target", "sentence"],
    )
    assert two_forms(rows)[["sentence_idx", "target"]].to_numpy().tolist() == [[1, 0], [1, 1]]


def test_the_first_rated_groups_of_each_split_stay_whole() -> None:
    rows = [
        ("cebab", split, f"{split}{group}", is_original, rating)
        for split in ("train", "test")
        for group, rating in (("a", 0), ("b", 4), ("c", 2), ("d", 1))
        for is_original in (True, False)
    ]
    names = ["dataset", "split", "group", "is_original", "rating"]
    texts = pd.DataFrame([*rows, ("world", "test", "testb", True, 5)], columns=names)
    texts = texts.drop(index=3).sample(frac=1, random_state=0)  # an edit of trainb is lost
    found = first_groups(texts, {"train": 2, "test": 1})
    assert set(found["dataset"]) == {"cebab"} and (found["rating"] > 0).all()
    sizes = found.groupby(["split"])["group"].nunique().to_dict()
    assert sizes == {"train": 2, "test": 1}
    lone = texts[~(texts["group"].eq("testc") & texts["is_original"])]
    assert "testc" not in set(first_groups(lone, {"train": 9, "test": 9})["group"])


def test_a_users_data_set_takes_the_place_of_our_sentences(
    small_outputs: Path, tmp_path: Path, a_data_set: Callable[[Path, int], Path]
) -> None:
    folder = a_data_set(tmp_path / "tale", 10)
    stage = open_stage("assay", "small", "01_data_generation")
    reviews = pd.DataFrame({"text": ["Good ."]})
    given = stage, {"geco": str(folder)}, {}, read_geco
    gendered, same = in_place_of(pd.DataFrame(), reviews, *given)
    assert same is reviews and len(gendered) == 2 * 10, "both splits, and no neutral form"
    assert gendered["sentence_idx"].nunique() == 10 and set(gendered["target"]) == {0, 1}
    assert set(gendered["ground_truth"].map(tuple)) == {(1, 0, 1, 1, 0, 0)}, "no verb of theirs"
    assert len(swapped_rows(gendered)) == 20
    recorded = {Path(name).relative_to(folder).as_posix() for name in stage.externals}
    assert recorded == {f"binary_gender_all/{split}.jsonl" for split in ("train", "test")}


def test_what_touchstone_dataset_did_not_make_is_refused(
    small_outputs: Path, tmp_path: Path
) -> None:
    stage = open_stage("assay", "small", "01_data_generation")
    with pytest.raises(TouchstoneError, match=r"no .*train.jsonl; .*touchstone dataset made"):
        in_place_of(pd.DataFrame(), pd.DataFrame(), stage, {"geco": f"{tmp_path}/x"}, {}, read_geco)


@pytest.mark.parametrize(("n", "longest"), [(65, 24), (70, 5)])
def test_texts_that_are_too_few_or_too_long_are_refused(
    n: int, longest: int, tmp_path: Path, a_data_set: Callable[[Path, int], Path]
) -> None:
    folder = a_data_set(tmp_path / "tale", n)
    found = n if longest > 5 else 0
    with pytest.raises(TouchstoneError, match=f"has {found} sentences .*and {n} in both forms"):
        check_texts(folder, read_geco, longest, 6)


def test_texts_that_are_enough_pass(
    tmp_path: Path, a_data_set: Callable[[Path, int], Path]
) -> None:
    check_texts(a_data_set(tmp_path / "tale", 66), read_geco, 24, 6)


def test_of_a_large_folder_four_hundred_sentences_are_taken(
    tmp_path: Path, a_data_set: Callable[[Path, int], Path]
) -> None:
    rows = own_texts(a_data_set(tmp_path / "novel", 430), read_geco)
    assert rows["sentence_idx"].nunique() == 400 and len(rows) == 800
    assert set(rows.groupby("sentence_idx")["target"].nunique()) == {2}
