"""Items are drawn one a cluster, and altered in one thing."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lib.studies.assay.items import (
    count_words,
    draw_items,
    exchange_number,
    with_other_numbers,
    with_replacements,
    with_short_texts,
)
from lib.studies.assay.nouns import Kind


def rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "cluster": ["a", "a", "b", "c"],
            "sentence": [["x", "y"], ["x", "z"], ["u"], ["v"]],
            "target": 1,
            "mark": [[True, False], [0, 1], [1], [1]],
            "short": [["x"], ["x"], [], []],
        }
    )


def test_one_item_of_a_cluster_and_the_same_every_time() -> None:
    drawn = draw_items(rows(), "edit", "reviews", 10, 0)
    assert sorted(drawn["cluster"]) == ["a", "b", "c"]
    assert drawn["item_id"].tolist() == [f"edit-reviews-{i}" for i in range(3)]
    assert draw_items(rows(), "edit", "reviews", 10, 0).equals(drawn)
    assert all(isinstance(mark, float) for marks in drawn["mark"] for mark in marks)
    assert len(draw_items(rows(), "edit", "reviews", 2, 0)) == 2
    short = with_short_texts(drawn)
    assert short["item_id"].tolist() == drawn["item_id"].tolist()
    assert short["sentence"].tolist() == drawn["short"].tolist()


def test_each_marked_noun_gets_its_other_number() -> None:
    line = {"item_id": "c", "sentence": ["the", "keys", "near", "the", "box"]}
    items = pd.DataFrame([line | {"mark": [0.0, 1.0, 0.0, 0.0, -1.0]}])
    altered = with_other_numbers(items).set_index("change")
    assert altered.loc["cue exchanged", "sentence"][1] == "key"
    assert altered.loc["attractor exchanged", "sentence"][4] == "boxs", "regular nouns only"
    assert altered["at"].tolist() == [1, 4] and exchange_number(["dog"], 0) == ["dogs"]


def test_content_words_are_exchanged_and_others_are_not() -> None:
    kinds = {f"noun{i}": Kind("NN", "a", 0) for i in range(30)}
    kinds |= {f"the{i}": Kind("DT", "a", 0) for i in range(30)}
    items = pd.DataFrame([{"item_id": "n", "sentence": ["the1", "Noun2", "odd"]}])
    altered = with_replacements(items, kinds, 20, 0)
    assert len(altered) == 20 and set(altered["at"]) == {1}
    assert all(text[0] == "the1" and text[2] == "odd" for text in altered["sentence"])


def test_words_are_counted_with_their_tags(tmp_path: Path) -> None:
    line = "1\tDogs\tdog\tNOUN\tNNS\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "a.conllu").write_text(line)
    assert count_words([tmp_path / "a.conllu"] * 2) == {("dogs", "NNS"): 2}
