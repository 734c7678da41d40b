"""Splitting texts, parsing them, and stored parses."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy
from hand_parsed import analysed
from write_conllu import write_conllu

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.parse import (
    annotate,
    annotate_tokens,
    load_pipeline,
    parse_by,
    read_docs,
    read_summaries,
    split_sentences,
    stored_annotation,
    stored_pipeline,
)

VOCAB = spacy.blank("en").vocab


def test_sentences_end_at_full_stops_and_not_at_titles() -> None:
    assert split_sentences("Mr. Darcy bows. Mrs. Long, who knows St. James, laughs! Why?") == [
        "Mr. Darcy bows.",
        "Mrs. Long, who knows St. James, laughs!",
        "Why?",
    ]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            'Ann sits by her brother. "I\'m tired," she said. He left.',
            ["Ann sits by her brother.", '"I\'m tired," she said.', "He left."],
        ),
        (
            "She took his hands. “I’m tired,” she said. “Go.” He went.",
            ["She took his hands.", "“I’m tired,” she said.", "“Go.”", "He went."],
        ),
        ('"First." "Second," he said. "Third!"', ['"First."', '"Second," he said.', '"Third!"']),
        (
            'Ann sat . " I am ill , " she said . He went .',
            ["Ann sat .", '" I am ill , " she said .', "He went ."],
        ),
        (
            "“Are you ill?” she asked. ‘No!’ he cried. 'Never,' she said.",
            ["“Are you ill?” she asked.", "‘No!’ he cried.", "'Never,' she said."],
        ),
        ("He left. (She stayed.) They met.", ["He left.", "(She stayed.)", "They met."]),
        (
            "The boys' mother left. It was '90s music. He read.",
            ["The boys' mother left.", "It was '90s music.", "He read."],
        ),
        ('"', ['"']),
        ("", []),
    ],
)
def test_quotation_marks_stay_with_their_sentence(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_summaries_are_numbered_within_their_title(tmp_path: Path) -> None:
    path = tmp_path / "texts.md"
    path.write_text(
        "# Preface\n\nNot this.\n\n## Emma (Jane Austen, 1815)\n\nShe plans. She\nerrs.\n\nHe "
        "waits.\n\n## Dracula\n\nHe bites.\n"
    )
    sentences = read_summaries(path)
    assert list(sentences["sentence_id"]) == ["emma-01", "emma-02", "emma-03", "dracula-01"]
    assert list(sentences["paragraph"]) == [1, 1, 2, 1]
    assert sentences["sentence"][1] == "She errs."
    path.write_text("no title\n")
    with pytest.raises(TouchstoneError, match=r"texts\.md has no headings"):
        read_summaries(path)


def test_conllu_brings_back_every_annotation(tmp_path: Path) -> None:
    first = analysed(
        "She/SHE/nsubjpass/3 is/VBZ/auxpass/3 taken/VBN/ROOT/0 in/RP/prt/3 ././punct/3"
    )
    write_conllu(
        {
            "a-01": first,
            "a-02": analysed("She/SHE/nsubj/4 is/VBZ/cop/4 a/DT/det/4 nun/NN/root/0 ././punct/4"),
        },
        tmp_path / "a.conllu",
        ["by the spaCy pipeline x with spaCy 1, today"],
    )
    again = read_docs(tmp_path / "a.conllu")
    assert list(again) == ["a-01", "a-02"] and again["a-01"].text == first.text
    for one, other in zip(first, again["a-01"], strict=True):
        assert (
            one.text,
            one.lemma_,
            one.pos_,
            str(one.morph),
            one.dep_,
            one.head.i,
            one.whitespace_,
        ) == (
            other.text,
            other.lemma_,
            other.pos_,
            str(other.morph),
            other.dep_,
            other.head.i,
            other.whitespace_,
        )
    assert stored_pipeline(tmp_path / "a.conllu") == "x with spaCy 1"


def test_a_damaged_annotation_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text("# nothing\n# sent_id = a-01\n1\tShe\n\n")
    with pytest.raises(TouchstoneError, match=r"a\.conllu, line 3: 2 columns"):
        read_docs(path)
    with pytest.raises(TouchstoneError, match="does not name its pipeline"):
        stored_pipeline(path)


def test_a_text_that_changed_since_it_was_annotated_is_noticed() -> None:
    files = sorted(material("geco").glob("annotation_*.conllu"))
    with pytest.raises(
        TouchstoneError,
        match="does not hold the sentence 'A sentence that nobody wrote.'.*spacy_pipeline",
    ):
        stored_annotation(["A sentence that nobody wrote."], files)
    stored = parse_by("stored", [(text := next(iter(read_docs(files[0]).values())).text)], files)
    assert stored[0][0].text == text and stored[1] == stored_pipeline(files[0])


def test_a_missing_pipeline_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        TouchstoneError, match="'en_no_such_pipeline' cannot be loaded.*spacy_pipeline: stored"
    ):
        load_pipeline("en_no_such_pipeline")
    monkeypatch.delenv("TOUCHSTONE_SPACY", raising=False)
    with pytest.raises(TouchstoneError, match="TOUCHSTONE_SPACY is not set"):
        load_pipeline("environment")


def test_a_pipeline_without_a_parser_is_refused(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(TouchstoneError, match="has no parser"):
        load_pipeline(str(tmp_path / "blank"))


def test_words_that_are_given_stay_as_they_are(spacy_pipeline: str) -> None:
    pipeline = load_pipeline(spacy_pipeline)
    words = ["He", "can", "not", "leave", "his", "brother-in-law", "."]
    (parsed,) = annotate_tokens([words], pipeline)
    assert [token.text for token in parsed] == words and len(list(parsed.sents)) == 1
    (one,) = annotate(["She leaves. He stays."], pipeline)
    assert len(list(one.sents)) == 1
