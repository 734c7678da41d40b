"""Texts of the other rows: whole sentences in both forms, whole groups of reviews."""

from __future__ import annotations

import pandas as pd

from lib.studies.assay.published import first_groups, two_forms


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
