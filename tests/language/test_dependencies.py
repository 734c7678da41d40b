"""Roots and subjects in both label schemes."""

from __future__ import annotations

from hand_parsed import CLEAR, UD, parsed

from lib.language.dependencies import root_of, subject_below, subject_of


def test_the_schemes_differ_in_the_root_and_agree_in_the_subject() -> None:
    assert (root_of(UD).text, root_of(CLEAR).text) == ("nun", "is")
    assert subject_of(UD) is not None and subject_of(UD).i == subject_of(CLEAR).i == 0
    assert subject_below(UD[0]) is None


def test_what_there_is_counts_as_no_subject() -> None:
    doc = parsed("There/EX/expl/1 is/VBZ/ROOT/1 a/DT/det/3 widow/NN/nsubj/1")
    assert subject_of(doc) is None and subject_below(doc[1]) == doc[3]
