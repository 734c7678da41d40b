"""The page to play with: its numbers are the study's, and it is one file that loads nothing."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import player
import pytest

from lib.core.paths import material, reference_dir
from lib.studies.geco.labels import labelled_rows, read_labels

DATA = json.loads((player.SOURCE / "data.json").read_text(encoding="utf-8"))
SENTENCES = DATA["sentences"]


def test_the_sentences_are_labelled_ones_with_their_truth_and_their_forms() -> None:
    rows = labelled_rows(list(read_labels(material("geco") / "labels.yaml").values()), "all")
    known = {
        (tuple(words), tuple(mask), target)
        for words, mask, target in zip(rows["sentence"], rows["ground_truth"], rows["target"])
    }
    for sentence in SENTENCES:
        for target, form in enumerate(sentence["forms"]):
            assert (tuple(form), tuple(sentence["mask"]), target) in known, sentence["row_id"]
        assert sentence["words"] == sentence["forms"][sentence["target"]]


def test_the_scores_are_those_of_the_committed_table() -> None:
    table = pd.read_csv(reference_dir("geco", "small") / "04_metrics" / "example_sentence.csv")
    table = table[(table["dataset"] == "D_A") & table["scheme"].isin(["CEfAf", "-"])]
    shared = [s for s in SENTENCES if s["row_id"] in set(table["row_id"])]
    assert shared, "the sentence that stage 04 shows is one of them"
    for sentence in shared:
        shown = table[table["row_id"] == sentence["row_id"]].set_index(["method", "position"])
        for method in DATA["methods"]:
            sizes = np.abs(sentence["scores"][method["name"]])
            expected = shown.loc[method["name"], "share"].sort_index()
            assert sizes / sizes.sum() == pytest.approx(expected.abs(), abs=1e-3), method["name"]


def test_there_are_eight_explainers_and_two_floors_with_a_score_a_word() -> None:
    kinds = [method["kind"] for method in DATA["methods"]]
    assert sorted(kinds) == ["explainer"] * 8 + ["floor"] * 2
    assert 12 <= len(SENTENCES) <= 20
    for sentence in SENTENCES:
        assert set(sentence["scores"]) == {method["name"] for method in DATA["methods"]}
        lengths = {len(scores) for scores in sentence["scores"].values()}
        assert lengths == {len(sentence["words"])} == {len(sentence["mask"])}
        assert sum(sentence["probabilities"]) == pytest.approx(1, abs=1e-4)
        assert int(np.argmax(sentence["probabilities"])) == sentence["target"], "it says so"


def test_the_page_is_one_small_file_that_loads_nothing(tmp_path) -> None:
    path = player.build(tmp_path / "index.html")
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 1_000_000
    assert (player.SOURCE / "data.json").stat().st_size <= 300_000
    assert not re.search(r"https?:|\bsrc=|<link|url\(|@import|fetch\(", text)
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert json.loads(embedded[1]) == DATA
