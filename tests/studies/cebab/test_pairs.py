from __future__ import annotations

import time

import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.studies.cebab.pairs import (
    edit_pairs,
    goals_reached,
    pairs_by_loop,
    rated_pairs,
    repeated_edits,
    spill_over,
)
from lib.studies.cebab.reviews import ASPECTS, train_set
from lib.studies.cebab.worlds import World, generate_reviews, read_wordings

KEYS = ["base_id", "counterfactual_id"]


def rows(*lines: tuple) -> pd.DataFrame:
    names = ["text_id", "group", "edit_type", "edit_goal", "food", "service", "ambiance", "noise"]
    return pd.DataFrame(lines, columns=names).assign(
        is_original=lambda t: t["edit_type"].isna(), editor=lambda t: "by " + t["text_id"]
    )


TOY = rows(
    ("o", "1", None, None, "Positive", "Negative", "Positive", "unknown"),
    ("f-", "1", "food", "Negative", "Negative", "Negative", "Positive", "unknown"),
    ("f?", "1", "food", "unknown", "unknown", "Negative", "Positive", "unknown"),
    ("s+", "1", "service", "Positive", "Positive", "Positive", "Positive", "unknown"),
    (
        "s=",
        "1",
        "service",
        "unknown",
        "Positive",
        "Negative",
        "Positive",
        "unknown",
    ),  # the edit failed
    ("o2", "2", None, None, "Negative", "", "", ""),
)


def test_pairs_by_hand() -> None:
    found = {
        (p.base_id, p.counterfactual_id, p.aspect, p.old, p.new, p.kind)
        for p in edit_pairs(TOY).itertuples()
    }
    forward = {
        ("o", "f-", "food", "Positive", "Negative", "original"),
        ("o", "f?", "food", "Positive", "unknown", "original"),
        ("o", "s+", "service", "Negative", "Positive", "original"),
    }
    back = {(b, a, aspect, new, old, "reverse") for a, b, aspect, old, new, _ in forward}
    edits = {
        ("f-", "f?", "food", "Negative", "unknown", "edits"),
        ("f?", "f-", "food", "unknown", "Negative", "edits"),
        ("s+", "s=", "service", "Positive", "Negative", "edits"),
        ("s=", "s+", "service", "Negative", "Positive", "edits"),
    }
    assert found == forward | back | edits


def test_the_join_is_the_loop() -> None:
    texts = generate_reviews(
        World(0.5),
        read_wordings(material("cebab") / "wordings.yaml"),
        {"train": 12, "dev": 4, "test": 4},
        5,
        1,
    )
    joined, looped = (
        p.sort_values(KEYS, ignore_index=True) for p in (edit_pairs(texts), pairs_by_loop(texts))
    )
    pd.testing.assert_frame_equal(joined, looped, check_dtype=False)


def test_repeated_edits_by_label_and_by_goal() -> None:
    more = rows(
        ("f2", "1", "food", "Negative", "unknown", "", "", ""),
        ("f3", "1", "food", "Positive", "Negative", "", "", ""),
    )
    texts = pd.concat([TOY, more], ignore_index=True)
    by_label = {frozenset((r.first_id, r.second_id)) for r in repeated_edits(texts).itertuples()}
    assert by_label == {frozenset(("f-", "f3")), frozenset(("f?", "f2"))}
    by_goal = repeated_edits(texts, "goal")
    assert {frozenset((r.first_id, r.second_id)) for r in by_goal.itertuples()} == {
        frozenset(("f-", "f2"))
    }
    assert set(by_goal.iloc[0][["new", "new_second"]]) == {"Negative", "unknown"}
    unknown = repeated_edits(texts.assign(editor=None))  # nobody knows, and no text is its own pair
    assert (unknown["first_id"] < unknown["second_id"]).all() and len(unknown) == len(by_label)
    alone = texts.assign(editor="one person")  # who edits twice is no second editor
    assert not len(repeated_edits(alone)) and not len(repeated_edits(alone, "goal"))
    with pytest.raises(TouchstoneError, match="the same is 'editor'; write one of label, goal"):
        repeated_edits(texts, "editor")


def test_goals_and_spill_over_by_hand() -> None:
    texts = TOY.assign(dataset="toy", split="test")
    assert set(goals_reached(texts)["seed"]) == {0}  # texts, and no training
    goals = goals_reached(texts).set_index("row_id")["reached"]
    assert goals.to_dict() == {"f-": 1, "f?": 1, "s+": 1, "s=": 0}
    assert goals_reached(texts.assign(food="no majority"))["has_majority"].tolist() == [0, 0, 1, 1]
    said = texts[["dataset", "text_id", *ASPECTS]].assign(seed=0)
    said.loc[said["text_id"] == "f-", ["service", "food"]] = ["Positive", "Positive"]
    pairs = edit_pairs(texts).assign(dataset="toy")
    found = spill_over(texts, pairs, pd.concat([said, said.assign(seed=1)]))
    named = "dataset seed row_id sentence_idx edited aspect changed heard"
    assert found.columns.tolist() == named.split()
    assert len(found) == 2 * 3 * 3, "two classifiers, three edits with a new label, three others"
    changed = found[found["changed"] == 1]
    assert changed["row_id"].tolist() == ["o>f- service"] * 2 and set(changed["seed"]) == {0, 1}
    heard = found.groupby("edited")["heard"].mean()
    assert heard.to_dict() == {"food": 0.5, "service": 1}, "the classifiers missed that of f-"
    twin = texts[texts["text_id"] == "f-"].assign(text_id="f=", editor="by somebody else")
    both = pd.concat([texts, twin])
    again = spill_over(both, pairs, pd.concat([said, said.tail(1).assign(text_id="f=")]))
    assert again.query("edited == 'nothing'")["aspect"].tolist() == list(ASPECTS)


def test_two_failed_edits_had_one_goal_and_no_label_in_common() -> None:
    """Both editors were asked for a bad meal, and both texts still praise it."""
    texts = rows(
        ("o", "1", None, None, "Positive", "", "", ""),
        ("e", "1", "food", "Negative", "Positive", "", "", ""),
        ("f", "1", "food", "Negative", "Positive", "", "", ""),
    )
    assert not len(repeated_edits(texts))
    found = repeated_edits(texts, "goal")
    names = "group original_id aspect old new new_second first_id second_id"
    assert list(found) == names.split()
    assert found.values.tolist() == [["1", "o", "food", *["Positive"] * 3, "e", "f"]]


def test_pairs_keep_the_order_of_the_groups() -> None:
    turned = pd.concat([TOY.assign(group="9"), TOY.assign(group="3")], ignore_index=True)
    assert pairs_by_loop(turned)["group"].unique().tolist() == ["9", "3"]


def test_the_published_pairs(cebab: pd.DataFrame) -> None:
    test = edit_pairs(cebab[cebab["split"] == "test"])
    assert len(test) == 3958 and test["kind"].value_counts().to_dict() == {
        "edits": 1332,
        "original": 1313,
        "reverse": 1313,
    }
    assert test.groupby("aspect").size().to_dict() == {
        "food": 1364,
        "service": 1046,
        "ambiance": 828,
        "noise": 720,
    }
    assert len(edit_pairs(cebab[cebab["split"] == "dev"])) == 3898
    train = edit_pairs(train_set(cebab, "inclusive"))
    assert (
        len(train) == 19684
        and ((train["old"] == "no majority") | (train["new"] == "no majority")).sum() == 596
    )


def test_repeated_edits_of_the_published_data(cebab: pd.DataFrame) -> None:
    """Most edits that share a goal reached different labels, so the goal cannot say what two
    editors have in common.
    """
    counts = {}
    for split in ("train", "dev", "test"):
        goal = repeated_edits(cebab[cebab["split"] == split], "goal")
        counts[split] = (len(goal), int((goal["new"] == goal["new_second"]).sum()))
    assert counts == {"train": (141, 11), "dev": (16, 1), "test": (15, 2)}, counts


@pytest.mark.slow
def test_the_join_is_much_faster_than_the_loop(cebab: pd.DataFrame) -> None:
    test = cebab[cebab["split"] == "test"]
    seconds = []
    for build in (edit_pairs, edit_pairs, edit_pairs, pairs_by_loop):
        start = time.process_time()
        build(test)
        seconds.append(time.process_time() - start)
    assert seconds[-1] > 30 * min(seconds[:-1]), seconds


def test_a_pair_needs_a_class_on_both_sides() -> None:
    texts = pd.DataFrame(
        {"dataset": "d", "text_id": ["low", "middle", "high"], "rating": ["1", "3", "5"]}
    )
    pairs = pd.DataFrame(
        [(a, b) for a in texts["text_id"] for b in texts["text_id"] if a != b],
        columns=["base_id", "counterfactual_id"],
    ).assign(dataset="d")
    kept = rated_pairs(pairs, texts, 2)
    assert kept[["base_id", "counterfactual_id"]].to_numpy().tolist() == [
        ["low", "high"],
        ["high", "low"],
    ]
    assert len(rated_pairs(pairs, texts, 5)) == 6
