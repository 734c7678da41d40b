"""Reference within a sentence: the grammatical subject, and the words that speak of the same person (D_S)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from spacy.tokens import Doc, Token

from lib.lexicon import Gender, Lexicon
from lib.text import SUBJECTS, root_of, subject_of


def subject_head(doc: Doc, people: Collection[int]) -> int:
    """The position of the main subject's head word; where the parse has none, the first person of the sentence."""
    subject = subject_of(doc)
    if subject is not None:
        return subject.i
    return min(people, default=0)


def subject_chain(doc: Doc, subject: int, genders: Mapping[int, Gender], names: Collection[int], lexicon: Lexicon) -> set[int]:
    gender = genders.get(subject)
    if gender is None: return set()
    return {i for i,g in genders.items() if g==gender and doc[i].pos_=='PRON'}|{subject}
