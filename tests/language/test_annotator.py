"""The annotator by hand in both label schemes."""

from __future__ import annotations

import pytest
from hand_parsed import CLEAR, UD, parsed
from spacy.tokens import Doc

from lib.core.errors import TouchstoneError
from lib.language.annotator import annotate_sentence, articles
from lib.language.labels import differing_positions, gender_variants
from lib.language.parse import annotate_tokens, load_pipeline


@pytest.mark.parametrize("doc", [UD, CLEAR], ids=["UD", "CLEAR"])
def test_both_schemes_give_the_same_label(doc: Doc) -> None:
    forms = gender_variants(annotate_sentence(doc), "all")
    assert " ".join(forms["M"]) == "He is a monk and loves his uncle ."
    assert " ".join(forms["NB"]) == "They are a monastic and love their parent's sibling ."
    assert differing_positions(list(forms.values())) == [1, 1, 0, 1, 0, 1, 1, 1, 0]
    assert " ".join(
        gender_variants(annotate_sentence(doc, agreement="adjacent"), "all")["NB"]
    ).startswith("They are a monastic and loves")


def test_an_unknown_rule_of_agreement_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="choose full, or adjacent"):
        annotate_sentence(UD, agreement="near")  # type: ignore[arg-type]


def test_articles_follow_the_next_word() -> None:
    doc = parsed("An/DT/det/1 actor/NN/nsubj/2 sees/VBZ/ROOT/2 a/DT/det/4 queen/NN/obj/2")
    changes = {1: ("actress", "actor", "performer"), 4: ("queen", "king", "monarch")}
    assert articles(doc, changes) == {0: ("An", "An", "A")}


def test_words_given_in_advance_are_kept(spacy_pipeline: str) -> None:
    nlp = load_pipeline(spacy_pipeline)
    doc = annotate_tokens([["She", "likes", "ice cream", "."]], nlp)[0]
    assert annotate_sentence(doc).words == ("She", "likes", "ice cream", ".")
