"""Reading sentences, the steps of the filter, slots, masking and swapping."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import data_root, material
from lib.studies.implicit_bias.sentences import (
    gendered_identities,
    gendered_pronouns,
    masked_words,
    may_have_pronoun,
    read_sentences,
    slot_of_word,
    split_words,
    sure_identities,
    with_gender,
)

OWN = material("implicit_bias")


def test_distinct_sentences_of_any_column_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "swag.csv"
    file.write_text(
        'video-id,sent1,label\n1,"He sat, then  stood.",0\n2,,1\n3,"He sat, then stood.",2\n'
        "4,She left.,0\n",
        encoding="utf-8",
    )
    found = read_sentences(file)
    assert found.to_numpy().tolist() == [[2, "He sat, then stood."], [5, "She left."]]
    (tmp_path / "w.tsv").write_text("sentid\tsentence\na\tShe left.\n", encoding="utf-8")
    assert read_sentences(tmp_path / "w.tsv", "sentence")["sentence"].tolist() == ["She left."]


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text\nShe left.\n", encoding="utf-8")
    with pytest.raises(
        TouchstoneError,
        match=r"a\.csv has no column 'txt'; did you mean 'text'.*its columns are text",
    ):
        read_sentences(file, "txt")
    file.write_bytes(b"sent1\nfine\ncaf\xe9\n")
    with pytest.raises(TouchstoneError, match=r"a\.csv, line 3: the bytes are not UTF-8"):
        read_sentences(file)
    file.write_text("sent1\n  \n", encoding="utf-8")
    with pytest.raises(TouchstoneError, match="no sentence in its column"):
        read_sentences(file)
    with pytest.raises(TouchstoneError, match="there is no file"):
        read_sentences(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "a.csv is empty; it needs a line with the names"),
        (
            "a.csv",
            "id,sent1\n1,She left.\n2,He sat, then stood.\n",
            "a.csv, line 3: 3 fields, and the head has 2; complete the row",
        ),
        ("a.csv", 'id,sent1\n1,"She\nleft."\n2,He sat.\n3\n', "a.csv, line 5: 1 fields"),
        (
            "a.csv",
            'id,sent1\n1,"She left.\n2,He sat.\n',
            "a.csv, line 2: the row that begins here cannot be read .*close its quotation marks",
        ),
        ("a.tsv", "id\tsent1\n1\tShe left.\tnow\n", "a.tsv, line 2: 3 fields"),
    ],
)
def test_rows_that_cannot_be_read_are_named(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(TouchstoneError, match=message):
        read_sentences(tmp_path / name)


def test_the_row_is_the_line_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('sent1,n\n"She\nleft.",1\n\nHe sat.,2\n', encoding="utf-8")
    assert read_sentences(tmp_path / "a.csv").to_numpy().tolist() == [
        [2, "She left."],
        [5, "He sat."],
    ]


def test_a_mark_in_a_tsv_file_is_a_letter_and_what_pandas_wrote_comes_back(tmp_path: Path) -> None:
    (tmp_path / "a.TSV").write_text(
        'id\tsent1\n1\tHe is 6" tall.\n2\t"Go," she said, "now."\n3\t"Go!"\n', encoding="utf-8"
    )
    sentences = ['He is 6" tall.', '"Go," she said, "now."', '"Go!"']
    assert read_sentences(tmp_path / "a.TSV")["sentence"].tolist() == sentences
    pd.DataFrame({"sent1": sentences}).to_csv(tmp_path / "b.tsv", sep="\t", index=False)
    assert read_sentences(tmp_path / "b.tsv")["sentence"].tolist() == sentences


@pytest.mark.parametrize(
    ("sentence", "pronouns", "identities"),
    [
        ("The belly dancer dances on stage shaking her hips and body.", ["her"], []),
        ("A girl will always want to play with her Barbie doll.", ["her"], ["girl"]),
        ("the boy met his friends in his house", ["his", "his"], ["boy"]),
        (
            "Someone winds up his right arm and knocks the fighter down with a haymaker.",
            ["his"],
            [],
        ),
        ("They sing themselves.", [], []),
    ],
)
def test_the_papers_examples(sentence: str, pronouns: list[str], identities: list[str]) -> None:
    words = split_words(sentence)
    assert [words[i] for i in gendered_pronouns(words)] == pronouns
    assert [words[i] for i in gendered_identities(words)] == identities
    assert may_have_pronoun(sentence) == bool(pronouns)


def test_words_that_need_not_be_nouns_wait_for_the_parse() -> None:
    """ "counts" may be a verb and may be noblemen; "girls" is a noun."""
    words = split_words("The cashier counts the coins that the girls gave her.")
    assert [words[i] for i in gendered_identities(words)] == ["counts", "girls"]
    assert [words[i] for i in sure_identities(words)] == ["girls"]


def test_the_quick_look_never_loses_a_pronoun() -> None:
    for sentence in read_sentences(OWN / "sentences.csv")["sentence"]:
        assert may_have_pronoun(sentence) or not gendered_pronouns(split_words(sentence))


def test_masking_and_swapping() -> None:
    words = ["Her", "coat", "fits", "her", "."]
    assert masked_words(words, 3) == ["Her", "coat", "fits", "[MASK]", "."]
    assert (
        with_gender(words, 0, "possessive", "M")[0] == "His"
        and with_gender(words, 3, "object", "M")[3] == "him"
    )
    for gender in "FM":
        assert (
            with_gender(with_gender(words, 0, "possessive", "M"), 0, "possessive", gender)[0]
            == {"F": "Her", "M": "His"}[gender]
        )
    assert [
        slot_of_word(w, b)
        for w, b in (
            ("he", False),
            ("her", True),
            ("her", False),
            ("his", False),
            ("herself", False),
        )
    ] == ["subject", "possessive", "object", "independent", "reflexive"]
    with pytest.raises(TouchstoneError, match="no gendered pronoun"):
        with_gender(words, 1, "object", "F")


def test_labels_fit_the_sentences() -> None:
    labels = pd.read_csv(OWN / "labels.csv", keep_default_na=False)
    second = pd.read_csv(OWN / "labels_second.csv")
    sentences = pd.read_csv(OWN / "sentences.csv")
    assert (
        len(sentences) >= 300
        and labels["id"].tolist() == sentences["id"].tolist()
        and len(second) >= 50
    )
    both = labels.merge(sentences, on="id")
    for row in both[both["label"] == "passes"].itertuples():
        words = split_words(row.sent1)
        assert len(gendered_pronouns(words)) == 1 and row.antecedent.split()[-1] in [
            w.lower() for w in words
        ]
    none = both[both["label"] == "no pronoun"]["sent1"]
    assert not any(gendered_pronouns(split_words(text)) for text in none)


def test_the_verdicts_on_captions_are_of_a_random_draw() -> None:
    verdicts = pd.read_csv(OWN / "filter_verdicts.csv", comment="#")
    passed = pd.read_csv(OWN / "filter_draw.csv", comment="#")["row"]
    assert passed.is_monotonic_increasing and passed.is_unique and len(passed) == 779
    assert verdicts["sentence_id"].tolist() == [
        f"r{row}" for row in sorted(passed.sample(60, random_state=0))
    ]
    assert set(verdicts["verdict"]) == {"right", "doubtful", "wrong"}


def test_each_drawn_line_holds_a_caption_with_one_pronoun() -> None:
    root = data_root()
    if root is None or not (root / "swag" / "anet_captions.csv").is_file():
        pytest.skip(
            "needs the captions: set TOUCHSTONE_DATA to a folder that holds swag/anet_captions.csv"
        )
    passed = set(pd.read_csv(OWN / "filter_draw.csv", comment="#")["row"])
    captions = read_sentences(root / "swag" / "anet_captions.csv")
    drawn = captions[captions["row"].isin(passed)]["sentence"]
    assert len(drawn) == len(passed)
    assert all(len(gendered_pronouns(split_words(sentence))) == 1 for sentence in drawn)
