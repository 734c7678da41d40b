"""Resolvers: rules on parsed sentences."""

from __future__ import annotations

import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.lexicon import PRONOUNS
from lib.language.parse import annotate_tokens, load_pipeline, read_docs
from lib.studies.implicit_bias.coreference import antecedent, head_of, phrase, rule_resolver

OWN = material("implicit_bias")
DOCS = {doc.text.strip(): doc for doc in read_docs(OWN / "annotation_1.conllu").values()}


def said(sentence: str, version: str = "full") -> str:
    doc = DOCS[sentence]
    found = antecedent(next(t for t in doc if t.lower_ in PRONOUNS), version)
    return found.lower_ if found is not None else ""


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("The nurse puts her coat over the chair before the night shift begins .", "nurse"),
        ("The scientist blamed himself for the error .", "scientist"),
        ("The surgeon explains that he will operate at noon .", "surgeon"),
        ("When the plumber arrived , he asked for the water meter .", "plumber"),
        ("After her long shift , the guard slept until noon .", "guard"),
        ("He jumps off the platform and swims to the edge .", ""),
        ("The dog brings her the ball .", ""),
        ("The players lifted him into the air .", ""),
        ("Someone puts the letter in his pocket .", "someone"),
    ],
)
def test_rules_by_kind_of_pronoun(sentence: str, wanted: str) -> None:
    assert said(sentence) == wanted


def test_a_cluster_holds_the_pronoun_and_the_phrase() -> None:
    doc = DOCS["The tennis player throws his racket on the ground ."]
    assert rule_resolver()(doc) == [[(0, 2), (4, 4)]]
    assert head_of(doc, (0, 2)).text == "player" == head_of(doc, phrase(doc[2])).text
    with pytest.raises(TouchstoneError, match="no version 'best'"):
        rule_resolver("best")


def test_stored_annotation_is_what_the_pipeline_says(spacy_pipeline: str) -> None:
    pipeline = load_pipeline("environment")
    if pipeline.path.name != "en_ud_sm":
        pytest.skip("the stored annotation is that of en_ud_sm")
    some = list(DOCS.values())[:60]
    for stored, fresh in zip(
        some, annotate_tokens([[t.text for t in doc] for doc in some], pipeline)
    ):
        assert [(t.dep_, t.head.i, t.tag_) for t in fresh] == [
            (t.dep_, t.head.i, t.tag_) for t in stored
        ]
