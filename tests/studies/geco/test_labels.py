"""Labels: checked with sentence and position, and turned into forms and masks."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.labels import Label, gender_variants
from lib.language.lexicon import PRONOUNS
from lib.studies.geco.corpus import CLASSES
from lib.studies.geco.labels import (
    altered_words,
    bound_table,
    label_agreement,
    labelled_rows,
    read_labels,
)

GOOD = {
    "tokens": "Jane Eyre loves him .",
    "subject": 1,
    "names": {0: "name", 1: "surname"},
    "subj": {0: ["She", "He", "They"], 1: None, 2: ["loves", "loves", "love"]},
    "all": {
        0: ["She", "He", "They"],
        1: None,
        2: ["loves", "loves", "love"],
        3: ["her", "him", "them"],
    },
}


def write(path: Path, **changes: object) -> Path:
    path.write_text(yaml.safe_dump({"jane-01": GOOD | changes}))
    return path


@pytest.fixture
def label(tmp_path: Path) -> Label:
    return read_labels(write(tmp_path / "labels.yaml"))["jane-01"]


def test_forms_by_hand(label: Label) -> None:
    assert gender_variants(label, "subj") == {
        "F": ["She", "loves", "him", "."],
        "M": ["He", "loves", "him", "."],
        "NB": ["They", "love", "him", "."],
    }
    assert gender_variants(label, "all")["NB"] == ["They", "love", "them", "."]
    assert altered_words(label, "all") == [1, 1, 1, 1, 0]


def test_rows_have_one_mask_per_base_sentence_and_set(label: Label) -> None:
    three = labelled_rows([label, label], "all")
    assert list(three["row_id"]) == ["0-F", "0-M", "0-NB", "1-F", "1-M", "1-NB"]
    assert set(map(tuple, three["ground_truth"])) == {(1, 1, 1, 0)}
    two = labelled_rows([label], "all", CLASSES[:2])
    assert list(two["target"]) == [0, 1] and set(map(tuple, two["ground_truth"])) == {
        (1, 0, 1, 0)
    }, "no verb"
    assert set(map(tuple, labelled_rows([label], "subj")["ground_truth"])) == {(1, 1, 0, 0)}


def test_agreement_by_hand(label: Label) -> None:
    assert label_agreement({"a": label}, {"a": label}, "all") == {
        "sentences": 1,
        "identical": 1,
        "share_identical": 1.0,
        "words": 5,
        "words_agree": 1.0,
        "kappa": 1.0,
    }
    other = Label("a", label.words, 1, {}, {0: ("She", "He", "They")}, {})
    found = label_agreement({"a": label}, {"a": other}, "subj")
    assert found["identical"] == 0 and found["words_agree"] == 3 / 5
    # flags 1 1 1 0 0 and 1 0 0 0 0: observed 3/5, by chance (3*1 + 2*4)/25
    assert found["kappa"] == pytest.approx((3 / 5 - 11 / 25) / (1 - 11 / 25))


def test_the_bounds_by_hand() -> None:
    """Ten sentences, four wrong: one is ours, so the best that is left to reach is seven of ten."""
    scores = pd.DataFrame(
        {
            "input": ["male"],
            "quantity": ["to the other gender"],
            "F1": [None],
            "sentences_right": [0.6],
        }
    )
    verdicts = [
        "annotator wrong",
        "gold has another right form",
        "gold lost or swapped words",
        "text does not tell who is meant",
    ]
    errors = pd.DataFrame(
        {
            "input": "male",
            "quantity": "to the other gender",
            "sentence_idx": range(4),
            "words": 2,
            "verdict": verdicts,
            "second": [verdicts[0], verdicts[1], "not read twice", verdicts[3]],
        }
    )
    row = bound_table(scores, errors).iloc[0]
    assert (row["errors"], row["gold_at_fault"], row["text_does_not_tell"], row["ours"]) == (
        4,
        2,
        1,
        1,
    )
    assert row["highest"] == pytest.approx(0.7)
    assert row["agreed"] == 1 and row["mended"] == pytest.approx(
        0.7
    )  # one of the two faults of the gold was found by both readings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subj": {9: ["a", "b", "c"]}}, r"subj, position 9 is not in the sentence of 5 words"),
        ({"names": {-1: "name"}}, r"names, position -1 is not in the sentence"),
        ({"subject": 5}, r"subject, position 5 is not in the sentence"),
        (
            {"all": GOOD["all"] | {3: ["her", "", "them"]}},
            r"all, position 3 \(him\) has an empty replacement",
        ),
        (
            {"all": GOOD["all"] | {3: ["her", "him", " "]}},
            r"all, position 3 \(him\) has an empty replacement",
        ),
        (
            {"all": GOOD["all"] | {3: ["her", "him", "them all"]}},
            r"position 3 \(him\) .* blank in it",
        ),
        (
            {"all": GOOD["all"] | {3: ["her", "him"]}},
            r"all, position 3 \(him\) is not \[female, male, neutral\]",
        ),
        (
            {"all": GOOD["all"] | {3: ["her", None, "them"]}},
            r"position 3 \(him\) is not \[female, male, neutral\]",
        ),
        (
            {"all": GOOD["all"] | {3: ["him", "him", "him"]}},
            r"position 3 \(him\) becomes 'him' in every variant",
        ),
        (
            {"all": GOOD["all"] | {3: ["she", "he", "they"]}},
            r"position 3 \(him\) is none of its own variants",
        ),
        (
            {"all": {0: ["She", "He", "They"], 1: None, 3: ["her", "him", "them"]}},
            r"position 2 \(loves\) is altered in subj",
        ),
        ({"subj": {}}, r"alters nothing for its subject"),
    ],
)
def test_a_bad_label_is_named_with_sentence_and_position(
    tmp_path: Path, changes: dict, message: str
) -> None:
    with pytest.raises(TouchstoneError, match=rf"labels\.yaml, sentence jane-01.*{message}"):
        read_labels(write(tmp_path / "labels.yaml", **changes))


def test_subject_words_may_differ_between_the_sets_with_a_reason(tmp_path: Path) -> None:
    changed = {"all": GOOD["all"] | {0: ["Jane", "He", "They"]}}
    with pytest.raises(TouchstoneError, match="give a reason"):
        read_labels(write(tmp_path / "a.yaml", **changed))
    assert read_labels(write(tmp_path / "b.yaml", **changed, reasons={0: "her name is a pun"}))


def test_files_that_are_no_labels_are_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.yaml"
    path.write_text("a: [1, 2\n")
    with pytest.raises(TouchstoneError, match=r"labels\.yaml is not readable as YAML"):
        read_labels(path)
    path.write_text("- a\n")
    with pytest.raises(TouchstoneError, match="does not map sentence ids"):
        read_labels(path)
    path.write_text("jane-01: {tokens: a b, subject: 0, names: {}}\n")
    with pytest.raises(TouchstoneError, match="sentence jane-01 lacks all, subj"):
        read_labels(path)


@pytest.fixture(scope="module")
def ours() -> dict[str, Label]:
    return read_labels(material("geco") / "labels.yaml")


def test_our_labels_suffice(ours: dict[str, Label]) -> None:
    assert len(ours) >= 160
    assert len(read_labels(material("geco") / "labels_second.yaml")) >= 50
    assert len({label.words for label in ours.values()}) == len(ours)


def test_they_never_takes_a_singular_verb_next_to_it(ours: dict[str, Label]) -> None:
    for name, label in ours.items():
        for scope in ("subj", "all"):
            words = [word.lower() for word in gender_variants(label, scope)["NB"]]
            for first, second in zip(words, words[1:]):
                assert first != "they" or not re.fullmatch(r"is|was|has|does|\w+[^s]s", second), (
                    name,
                    first,
                    second,
                )


def test_no_gendered_pronoun_of_another_class_is_left_in_d_a(ours: dict[str, Label]) -> None:
    for name, label in ours.items():
        for gender, words in gender_variants(label, "all").items():
            others = {form for form in PRONOUNS if PRONOUNS[form] != gender}
            assert not others & {word.lower() for word in words}, (name, words)


def test_possessives_become_their_and_objects_them(ours: dict[str, Label]) -> None:
    pronouns = {
        ("she", "he"): {"they"},
        ("her", "him"): {"them"},
        ("her", "his"): {"their"},
        ("hers", "his"): {"theirs"},
        ("herself", "himself"): {"themself", "themselves"},
    }
    for name, label in ours.items():
        for change in label.all.values():
            if change is not None and (pair := (change[0].lower(), change[1].lower())) in pronouns:
                assert change[2].lower() in pronouns[pair], (name, change)
            assert (
                change is None or change[2].lower() not in ("them", "their") or pair in pronouns
            ), (name, change)


def test_forms_begin_with_a_capital_and_articles_fit(ours: dict[str, Label]) -> None:
    for name, label in ours.items():
        for scope in ("subj", "all"):
            for words in gender_variants(label, scope).values():
                assert words[0][0].isupper(), (name, words)
                for article, word in zip(words, words[1:]):
                    if article.lower() in ("a", "an") and word.lower() not in (
                        "honest",
                        "heir",
                        "heiress",
                    ):
                        assert (article.lower() == "an") == (word[0].lower() in "aeiou"), (
                            name,
                            article,
                            word,
                        )


def test_every_label_gives_evidence_in_every_set(ours: dict[str, Label]) -> None:
    for scope in ("subj", "all"):
        for classes in (CLASSES, CLASSES[:2]):
            rows = labelled_rows(list(ours.values()), scope, classes)  # type: ignore[arg-type]
            assert rows["ground_truth"].map(sum).min() > 0


@pytest.mark.parametrize(
    "text, says",
    [
        ("a: 3\n", "sentence a lacks"),
        ("a: {tokens: She ran, subject: 0, names: [0], subj: {}, all: {}}\n", r"names is \[0\]"),
        ("a: {tokens: 3, subject: 0, names: {}, subj: {}, all: {}}\n", "tokens: write words"),
        ("a: {tokens: She  ran, subject: 0, names: {}, subj: {}, all: {}}\n", "one blank"),
        ("a: {tokens: A, subject: 0, names: {}, subj: {}, all: {}, alll: {}}\n", "mean 'all'"),
        ("a: {}\na: {}\n", "'a' is set twice"),
    ],
)
def test_a_label_of_another_form_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "labels.yaml").write_text(text)
    with pytest.raises(TouchstoneError, match=f"labels.yaml.*{says}"):
        read_labels(tmp_path / "labels.yaml")


def test_labels_that_are_missing_or_not_utf8_are_named(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="labels.yaml cannot be read"):
        read_labels(tmp_path / "labels.yaml")
    (tmp_path / "labels.yaml").write_bytes("a: caf\xe9\n".encode("latin-1"))
    with pytest.raises(TouchstoneError, match="labels.yaml, line 1: the bytes are not UTF-8"):
        read_labels(tmp_path / "labels.yaml")
