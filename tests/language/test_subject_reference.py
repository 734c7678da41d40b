"""Which words speak of the subject."""

from __future__ import annotations

from hand_parsed import parsed

from lib.language.annotator import annotate_sentence
from lib.language.subject_reference import subject_chain


def test_the_name_of_somebody_else_is_not_the_subject() -> None:
    doc = parsed("Tom/NNP/nsubj/1 adores/VBZ/ROOT/1 Ann/NNP/obj/1 blindly/RB/advmod/1")
    label = annotate_sentence(doc)
    assert sorted(label.subj) == [0, 1] and sorted(label.all) == [0, 1, 2]


def test_the_subject_takes_its_own_words_only() -> None:
    doc = parsed(
        "He/PRP/nsubj/1 hurts/VBZ/ROOT/1 himself/PRP/obj/1 and/CC/cc/4 thanks/VBZ/conj/1 "
        "her/PRP/obj/4 ././punct/1"
    )
    assert subject_chain(doc, 0, {0: "M", 2: "M", 5: "F"}, ()) == {0, 2}
    assert subject_chain(doc, 0, {0: "M", 2: "M", 5: "F"}, (), weights={}) == {0}
