"""Items are drawn one a cluster, and altered in one thing."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lib.studies.assay.edits import nested_pairs
from lib.studies.assay.items import (
    agreement_rows,
    content_tags,
    count_items,
    draw_items,
    exchange_number,
    mixed_edits,
    nested_rows,
    planted_rows,
    swapped_rows,
    with_other_numbers,
    with_replacements,
    with_second_questions,
    with_short_texts,
    without_items,
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
            "second": [None] * 4,
            "was_inserted": False,
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
    spare = draw_items(rows(), "edit", "reviews", 10, 0, part="dev")
    assert spare["item_id"].tolist()[0] == "edit-reviews-dev0" and set(spare["part"]) == {"dev"}


def test_a_second_editors_text_stands_on_the_side_that_was_edited() -> None:
    drawn = draw_items(rows(), "edit", "reviews", 10, 0).assign(
        second=[["so"], ["so"], None], was_inserted=[True, False, False]
    )
    changes = with_short_texts(drawn)["change"].tolist()
    assert changes == [
        "removed",
        "second editor, long",
        "removed",
        "second editor, short",
        "removed",
    ]


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
    item = {"item_id": "n", "sentence": ["the1", "Noun2", "odd", "noun3"]}
    items = pd.DataFrame([item | {"tags": ["", "NN", "JJ", "VB"]}])
    altered = with_replacements(items, kinds, 20, 0)
    assert len(altered) == 20
    assert set(altered["at"]) == {1}, "noun3 is a verb here, odd has no kind, the1 no tag"
    assert all(text[0] == "the1" and text[2] == "odd" for text in altered["sentence"])


def test_content_words_have_tags_and_auxiliaries_have_none(tmp_path: Path) -> None:
    lines = ["1\tDogs\tdog\tNOUN\tNNS\t_\t0\troot\t_\t_", "2\tare\tbe\tAUX\tVBP\t_\t1\taux\t_\t_"]
    (tmp_path / "a.conllu").write_text("\n".join(lines) + "\n\n")
    assert content_tags([tmp_path / "a.conllu"]) == {("Dogs", "are"): ["NNS", ""]}


def test_classes_take_turns() -> None:
    many = pd.DataFrame({"target": [0] * 20 + [1] * 4, "cluster": range(24), "mark": [[1]] * 24})
    drawn = draw_items(many, "mask", "m", 8, 0)
    assert drawn["target"].value_counts().to_dict() == {0: 4, 1: 4}
    by_rule = draw_items(many.assign(rule=["a", "b", "c"] * 8), "mask", "m", 6, 0, by="rule")
    assert set(by_rule["rule"].value_counts()) == {2}


def test_a_nested_pair_knows_its_words_and_its_goal() -> None:
    about = {"group": "g", "edit_type": None, "food": "Positive", "is_original": True}
    about |= {"edit_goal": None}
    edited = {"text_id": "e", "is_original": False, "edit_type": "food", "food": "unknown"}
    texts = pd.DataFrame(
        [
            about | {"text_id": "o", "text": "Good food. We sat."},
            about | edited | {"text": "We sat."},
        ]
    )
    pairs = nested_pairs(texts)
    found = nested_rows(pairs, texts, 10).iloc[0]
    assert found["mark"] == [True, True, True, False, False, False] and found["goal"] == 1.0
    assert nested_rows(pairs, texts, 5).empty
    worse = texts.assign(food=["Negative", "Positive"])
    assert nested_rows(pairs, worse, 10)["goal"].tolist() == [-2.0]


def test_a_second_editor_had_the_same_goal_and_wrote_another_text() -> None:
    about = {"group": "g", "edit_type": None, "edit_goal": None, "food": "Positive"}
    edited = {"is_original": False, "edit_type": "food", "food": "unknown", "edit_goal": "unknown"}
    texts = pd.DataFrame(
        [
            about | {"text_id": "o", "is_original": True, "text": "Good food. We sat."},
            about | edited | {"text_id": "e", "text": "We sat."},
            about | edited | {"text_id": "f", "text": "They sat."},
            about | edited | {"text_id": "g", "text": "Bad food.", "edit_goal": "Negative"},
        ]
    )
    found = nested_rows(nested_pairs(texts), texts, 10).iloc[0]
    assert found["second"] == ["They", "sat", "."] and found["has_second"]
    alone = texts[texts["text_id"] != "f"]
    assert nested_rows(nested_pairs(alone), alone, 10).iloc[0]["second"] is None


def test_a_line_with_a_word_that_the_model_does_not_know_is_left_out() -> None:
    line = {"tag": 1, "cues": [(1, 1)], "attractors": [(4, 4)], "cluster": "c"}
    texts = ["the keys near the box", "the keys near the moon"]
    lines = pd.DataFrame([line | {"prefix": text.split()} for text in texts])
    found = agreement_rows(lines, set(texts[0].split()))
    assert found["mark"].tolist() == [[0, 1, 0, 0, -1]] and found["target"].tolist() == [1]


def test_altered_texts_are_counted_by_truth() -> None:
    items = pd.DataFrame(
        {
            "truth": ["cue", "cue", "mask"],
            "part": ["test", "test", "dev"],
            "item_id": ["a", "b", "c"],
            "cluster": ["x", "x", "y"],
            "sentence": [["u"], ["u", "v"], ["w"]],
        }
    )
    found = count_items(items, pd.DataFrame({"item_id": ["a", "a", "b"]})).set_index("truth")
    assert (
        found.loc["cue"].tolist() == [2, 1, 1.5, 3]
        and found.loc["mask, to fit a scale", "items"] == 1
    )


def test_swapped_and_planted_rows_have_marks_and_clusters() -> None:
    swapped = swapped_rows(
        pd.DataFrame({"sentence_idx": [4, 5], "ground_truth": [[1, 1, 0, 1], [1, 0, 0, 1]]})
    )
    assert swapped[["mark", "cluster"]].to_numpy().tolist() == [[[1, 1, 0, 1], "text-4"]]
    planted = pd.DataFrame({"sentence_idx": [0, 3], "truth": [[0.0, 0.0], [0.5, 0.5]]})
    found = planted_rows(planted, n_sentences=2)
    assert found[["mark", "cluster"]].to_numpy().tolist() == [[[0.5, 0.5], "text-1"]]


def test_mask_and_planted_are_asked_twice() -> None:
    names = ["item_id", "truth", "model", "cluster", "sentence", "target", "mark"]
    rows = {
        "mask": ("mask-gender-0", "mask", "gender", "c", ["a"], 1, [1.0]),
        "planted": ("planted-planted-0", "planted", "planted", "c", ["a"], 1, [1.0]),
    }
    drawn = {
        truth: pd.DataFrame([row], columns=names).assign(
            part="test", rule=None, goal=None, sentence_idx=0
        )
        for truth, row in rows.items()
    }
    found = with_second_questions(drawn).set_index("item_id")
    assert found.loc["swap-gender-0", ["truth", "model"]].tolist() == ["swap", "gender"]
    again = found.loc["ola-planted-planted-0", ["truth", "model"]].tolist()
    assert again == ["planted", "planted-ola"] and len(found) == 4


def test_what_is_asked_is_not_learnt() -> None:
    train = pd.DataFrame({"model": ["a", "a", "b"], "sentence": [["x"], ["y"], ["x"]]})
    asked = pd.DataFrame({"model": ["a", "c"], "sentence": [["x"], ["y"]]})
    left = without_items(train, asked)
    assert left.to_numpy().tolist() == [["a", ["y"]], ["b", ["x"]]]
    assert without_items(train, asked.tail(1)).equals(train)


def test_mixed_edits_are_those_of_explained_originals_that_wrote_new_words() -> None:
    texts = pd.DataFrame(
        [("o", "Good food , slow staff", True), ("a", "Good food", False)]
        + [("b", "Good food , rude staff", False), ("c", "bad food , fast staff", False)],
        columns=["text_id", "text", "is_original"],
    ).assign(group="g", edit_type="service", edit_goal="Negative", service="Negative")
    rows = nested_rows(nested_pairs(texts), texts, 10).assign(item_id="i")
    found = mixed_edits(rows, texts)
    assert found["at"].tolist() == [[3], [0, 3]] and set(found["item_id"]) == {"i"}
    assert found["sentence"].tolist()[0] == "Good food , rude staff".split()
    turned = rows.assign(was_inserted=True)
    assert mixed_edits(turned, texts).empty
    assert list(mixed_edits(turned, texts)) == ["item_id", "at", "sentence"]
