"""The corrected neutral GECO: each kind of fault by hand, and the frozen result on all files."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.studies.geco.corpus import DATASETS, check_choices, read_geco
from lib.studies.geco.corrections import (
    AGREE,
    BLANK,
    NON_WORD,
    NOT_A_VERB,
    OTHER_SUBJECT,
    POSITIONS,
    THEIR,
    correct_neutral,
    correct_word,
    plural_form,
    read_gold,
    read_positions,
)

FROZEN = {  # rows, words and masks as they were before the annotator was scored against them
    ("D_A", "train"): ("5a75371fde8041c0bfe63724d24d7590fba43e30e36e16cb41ab9fe21c5a240d", 947),
    ("D_A", "test"): ("d0345d3dd56845269f4820056ec43ec0b0e27209c14ab38d556427bc7a657f14", 242),
    ("D_S", "train"): ("3de8e1f09b005b6c44019cb3a5d2fd4df2207762c59dd91be2686ee34d6de36c", 707),
    ("D_S", "test"): ("4e5a2031ea337e1782cee0f89c3207248feb3c7b818a4b8ba91f7b968996e592", 168),
}


def forms(female: str, male: str, neutral: str, idx: int = 7) -> pd.DataFrame:
    """Three forms of a base sentence, blanks between words, `_` for a blank inside a word."""
    sentences = [
        [word.replace("_", " ") for word in text.split(" ")] for text in (female, male, neutral)
    ]
    return pd.DataFrame(
        {
            "row_id": [f"{idx}-{c}" for c in ("F", "M", "NB")],
            "sentence_idx": idx,
            "target": [0, 1, 2],
            "gender": ["female", "male", "neutral"],
            "sentence": sentences,
            "ground_truth": [[0] * len(words) for words in sentences],
        }
    )


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("tries", "try"),
        ("dies", "die"),
        ("passes", "pass"),
        ("watches", "watch"),
        ("uses", "use"),
        ("realizes", "realize"),
        ("chooses", "choose"),
        ("goes", "go"),
        ("fixes", "fix"),
        ("buzzes", "buzz"),
        ("is", "are"),
        ("Was", "Were"),
        ("has", "have"),
    ],
)
def test_the_form_after_they(verb: str, expected: str) -> None:
    assert plural_form(verb) == expected


@pytest.mark.parametrize(
    ("female", "male", "neutral", "agree", "expected", "kinds"),
    [
        (
            "She sees her dog .",
            "He sees his dog .",
            "They see them dog .",
            [1],
            "They see their dog .",
            [THEIR],
        ),
        ("It is hers .", "It is his .", "It is them .", [], "It is theirs .", [THEIR]),
        ("She sees her .", "He sees him .", "They see them .", [1], "They see them .", []),
        ("She tries .", "He tries .", "They trie .", [1], "They try .", [NON_WORD]),
        ("She soon eats .", "He soon eats .", "They soon eats .", [2], "They soon eat .", [AGREE]),
        (
            "Of her wounds .",
            "Of his wounds .",
            "Of them wound .",
            [],
            "Of their wounds .",
            [THEIR, NOT_A_VERB],
        ),
        (
            "Her aunt is old .",
            "His uncle is old .",
            "Them pibling are old .",
            [],
            "Their pibling is old .",
            [THEIR, OTHER_SUBJECT],
        ),
        (
            "Who sees her has won .",
            "Who sees him has won .",
            "Who sees them have won .",
            [],
            "Who sees them has won .",
            [OTHER_SUBJECT],
        ),
        ("Mrs._ Lee .", "Mr._ Lee .", "Mx._ Lee .", [], "Mx. Lee .", [BLANK]),
    ],
)
def test_each_kind_by_hand(
    female: str, male: str, neutral: str, agree: list[int], expected: str, kinds: list[str]
) -> None:
    rows, done = correct_neutral(forms(female, male, neutral), {7: agree})
    assert " ".join(rows["sentence"][2]) == expected
    assert list(done["kind"]) == kinds


def test_masks_are_made_anew_and_shared() -> None:
    rows, _ = correct_neutral(
        forms("She soon eats her pie .", "He soon eats his pie .", "They soon eats them pie ."),
        {7: [2]},
    )
    assert list(rows["ground_truth"]) == [[1, 0, 1, 1, 0, 0]] * 3


def test_forms_of_different_length_keep_their_wording() -> None:
    rows, done = correct_neutral(forms("She sees .", "He sees .", "They trie to see ."), {7: [1]})
    assert rows["sentence"][2] == ["They", "trie", "to", "see", "."] and done.empty


def test_a_position_outside_the_sentence_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="base sentence 7 has no position 9"):
        correct_neutral(forms("She sees .", "He sees .", "They see ."), {7: [9]})


def test_a_correction_is_shown_with_the_words_beside_it() -> None:
    _, done = correct_neutral(
        forms("She sees her dog .", "He sees his dog .", "They see them dog ."), {7: [1]}
    )
    assert done[["sentence_idx", "position", "published", "corrected"]].values.tolist() == [
        [7, 2, "see them dog", "see their dog"]
    ]


@pytest.mark.parametrize(
    ("gold", "source", "on_fault", "message"),
    [
        ("mended", "geco", "repair", "choose one of published, corrected"),
        ("corrected", "bundled", "repair", "here they are bundled and repair"),
        ("corrected", "geco", "keep", "here they are geco and keep"),
    ],
)
def test_a_gold_that_cannot_be_is_refused(
    gold: str, source: str, on_fault: str, message: str
) -> None:
    with pytest.raises(TouchstoneError, match=message):
        check_choices(source, on_fault, gold)


def test_the_gold_is_as_published_unless_it_is_to_be_corrected(geco_data: Path) -> None:
    rows, done = read_gold("D_A", "test", folder=geco_data)
    pd.testing.assert_frame_equal(rows, read_geco(geco_data / DATASETS["D_A"] / "test.jsonl"))
    assert done.empty
    rows, done = read_gold("D_A", "test", "corrected", folder=geco_data)
    assert (
        done["kind"].value_counts()[THEIR] == 104
        and not (done["published"] == done["corrected"]).any()
    )
    for row in done.itertuples():
        assert row.corrected in " ".join(
            rows.loc[
                (rows["sentence_idx"] == row.sentence_idx) & (rows["target"] == 2), "sentence"
            ].iloc[0]
        )
    binary, none = read_gold("D_A_binary", "test", "corrected", folder=geco_data)
    assert set(binary["target"]) == {0, 1} and none.empty


def test_correcting_twice_changes_nothing() -> None:
    once, _ = correct_neutral(
        forms("She tries her best .", "He tries his best .", "They trie them best ."), {7: [1]}
    )
    again, done = correct_neutral(once, {7: [1]})
    assert list(again["sentence"]) == list(once["sentence"]) and done.empty


@pytest.mark.slow
@pytest.mark.parametrize(("dataset", "split"), list(FROZEN))
def test_the_correction_is_frozen(geco_data: Path, dataset: str, split: str) -> None:
    rows, done = read_gold(dataset, split, "corrected", folder=geco_data)
    text = json.dumps(
        list(zip(rows["row_id"], rows["sentence"], rows["ground_truth"], strict=True))
    )
    assert (
        hashlib.sha256(text.encode()).hexdigest(),
        int((done["kind"] != BLANK).sum()),
    ) == FROZEN[dataset, split]


def test_only_the_neutral_form_changes_its_wording(geco_data: Path) -> None:
    rows, _ = read_gold("D_A", "test", "corrected", folder=geco_data)
    published = read_geco(geco_data / DATASETS["D_A"] / "test.jsonl", "repair")
    same = rows["target"] < 2
    assert list(rows["sentence"][same]) == list(published["sentence"][same])


@pytest.mark.slow
def test_the_verdicts_are_of_a_random_draw_of_corrections(geco_data: Path) -> None:
    verdicts = pd.read_csv(material("geco") / "neutral_verdicts.csv")
    keys = []
    for dataset in ("D_A", "D_S"):
        both = [
            read_gold(dataset, split, "corrected", folder=geco_data)[1].assign(split=split)
            for split in ("train", "test")
        ]
        done = pd.concat(both)
        done = done[done["kind"] != BLANK].sort_values(["sentence_idx", "position"])
        keys += [
            (dataset, *row)
            for row in done[["split", "sentence_idx", "position", "kind"]].itertuples(index=False)
        ]
    drawn = sorted(random.Random(60).sample(range(len(keys)), 60))
    assert [keys[k] for k in drawn] == list(
        verdicts.drop(columns="verdict").itertuples(index=False, name=None)
    )
    assert set(verdicts["verdict"]) <= {"right", "wrong"}


def test_the_positions_hold_no_words() -> None:
    text = (material("geco") / POSITIONS).read_text()
    assert set(text.replace("dataset,sentence_idx,positions", "")) <= set("DAS_,0123456789 \n")
    assert read_positions(material("geco") / POSITIONS, "D_A")


def test_a_noun_after_they_is_left_alone() -> None:
    words = ["They", "see", "words"]
    assert correct_word(2, words, ["He", "sees", "words"], ["She", "sees", "words"], False) == (
        "words",
        "",
    )
