"""Reading sentences, the steps of the filter, slots, masking and swapping."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lib.errors import TouchstoneError
from lib.paths import material
from lib.pronoun_sentences import (
    gender_frames,
    gendered_identities,
    gendered_pronouns,
    masked_words,
    may_have_pronoun,
    read_sentences,
    slot_of_word,
    split_words,
    sure_identities,
    with_gender,
    without_nouns,
)

OWN = material("implicit_bias")


def test_distinct_sentences_of_any_column_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "swag.csv"
    file.write_text('video-id,sent1,label\n1,"He sat, then  stood.",0\n2,,1\n3,"He sat, then stood.",2\n4,She left.,0\n', encoding="utf-8")
    found = read_sentences(file)
    assert found.to_numpy().tolist() == [[2, "He sat, then stood."], [5, "She left."]]
    (tmp_path / "w.tsv").write_text("sentid\tsentence\na\tShe left.\n", encoding="utf-8")
    assert read_sentences(tmp_path / "w.tsv", "sentence")["sentence"].tolist() == ["She left."]


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text\nShe left.\n", encoding="utf-8")
    with pytest.raises(TouchstoneError, match=r"a\.csv has no column 'txt'; did you mean 'text'.*its columns are text"):
        read_sentences(file, "txt")
    file.write_bytes(b"sent1\nfine\ncaf\xe9\n")
    with pytest.raises(TouchstoneError, match=r"a\.csv, line 3: the bytes are not UTF-8"):
        read_sentences(file)
    file.write_text("sent1\n  \n", encoding="utf-8")
    with pytest.raises(TouchstoneError, match="no sentence in its column"):
        read_sentences(file)
    with pytest.raises(TouchstoneError, match="there is no file"):
        read_sentences(tmp_path / "none.csv")


@pytest.mark.parametrize(("sentence", "pronouns", "identities"), [
    ("The belly dancer dances on stage shaking her hips and body.", ["her"], []),
    ("A girl will always want to play with her Barbie doll.", ["her"], ["girl"]),
    ("the boy met his friends in his house", ["his", "his"], ["boy"]),
    ("Someone winds up his right arm and knocks the fighter down with a haymaker.", ["his"], []),
    ("They sing themselves.", [], [])])
def test_the_papers_examples(sentence: str, pronouns: list[str], identities: list[str]) -> None:
    words = split_words(sentence)
    assert [words[i] for i in gendered_pronouns(words)] == pronouns
    assert [words[i] for i in gendered_identities(words)] == identities
    assert may_have_pronoun(sentence) == bool(pronouns)


def test_words_that_need_not_be_nouns_wait_for_the_parse() -> None:
    """"counts" may be a verb and may be noblemen; "girls" is a noun."""
    words = split_words("The cashier counts the coins that the girls gave her.")
    assert [words[i] for i in gendered_identities(words)] == ["counts", "girls"]
    assert [words[i] for i in sure_identities(words)] == ["girls"]


def test_the_quick_look_never_loses_a_pronoun() -> None:
    for sentence in read_sentences(OWN / "sentences.csv")["sentence"]:
        assert may_have_pronoun(sentence) or not gendered_pronouns(split_words(sentence))


def test_masking_and_swapping() -> None:
    words = ["Her", "coat", "fits", "her", "."]
    assert masked_words(words, 3) == ["Her", "coat", "fits", "[MASK]", "."]
    assert with_gender(words, 0, "possessive", "M")[0] == "His" and with_gender(words, 3, "object", "M")[3] == "him"
    for gender in "FM":
        assert with_gender(with_gender(words, 0, "possessive", "M"), 0, "possessive", gender)[0] == {"F": "Her", "M": "His"}[gender]
    assert [slot_of_word(w, b) for w, b in (("he", False), ("her", True), ("her", False), ("his", False), ("herself", False))] == [
        "subject", "possessive", "object", "independent", "reflexive"]
    with pytest.raises(TouchstoneError, match="no gendered pronoun"):
        with_gender(words, 1, "object", "F")


def test_frames_are_balanced_and_keep_to_the_rules() -> None:

    gate = {noun for noun, *_ in yaml.safe_load((OWN / "gate.yaml").read_text())}
    found = gender_frames(OWN / "frames.yaml", 400, 0)
    spoken = [words[i].lower() for words in found for i in gendered_pronouns(words)]
    assert len(found) == 400 and found == gender_frames(OWN / "frames.yaml", 400, 0)
    assert not gate & {word.lower() for words in found for word in words} and not {"N", "they", "them", "themself"} & {w for ws in found for w in ws}
    assert 0.4 < sum(word in ("he", "him", "his", "himself") for word in spoken) / len(spoken) < 0.6
    with pytest.raises(TouchstoneError, match="ask for fewer"):
        gender_frames(OWN / "frames.yaml", 100_000, 0)


def test_held_out_nouns_take_their_sentences_along() -> None:
    assert without_nouns([["The", "Wizard", "left"], ["Two", "wizards"], ["A", "witch"]], ["wizard"]) == [["A", "witch"]]


def test_labels_fit_the_sentences() -> None:
    import pandas as pd
    labels, second = pd.read_csv(OWN / "labels.csv", keep_default_na=False), pd.read_csv(OWN / "labels_second.csv")
    sentences = pd.read_csv(OWN / "sentences.csv")
    assert len(sentences) >= 300 and labels["id"].tolist() == sentences["id"].tolist() and len(second) >= 50
    both = labels.merge(sentences, on="id")
    for row in both[both["label"] == "passes"].itertuples():
        words = split_words(row.sent1)
        assert len(gendered_pronouns(words)) == 1 and row.antecedent.split()[-1] in [w.lower() for w in words]
    none = both[both["label"] == "no pronoun"]["sent1"]
    assert not any(gendered_pronouns(split_words(text)) for text in none)
