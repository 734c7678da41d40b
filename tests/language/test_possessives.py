"""Whether "her" and "his" stand before what is possessed: rules, features and weights."""

from __future__ import annotations

import pytest
import spacy
from hand_parsed import parsed
from spacy.tokens import Doc

from lib.language.possessives import describe, is_possessive, possessive_score

VOCAB = spacy.blank("en").vocab


def doc(text: str) -> Doc:
    parts = [part.rsplit("/", 1) for part in text.split()]
    return Doc(VOCAB, words=[word for word, _ in parts], tags=[tag for _, tag in parts])


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("He/PRP/nsubj/1 sees/VBZ/ROOT/1 her/PRP$/obj/1 ././punct/1", 2, False),
        ("He/PRP/nsubj/1 sees/VBZ/ROOT/1 her/PRP/obj/1 own/JJ/amod/4 dog/NN/obj/1", 2, True),
        (
            "He/PRP/nsubj/1 finds/VBZ/ROOT/1 her/PRP$/obj/1 distraught/JJ/xcomp/1 ././punct/1",
            2,
            False,
        ),
        ("He/PRP/nsubj/1 takes/VBZ/ROOT/1 her/PRP$/obj/1 home/NN/obj/1 ././punct/1", 2, False),
        ("by/IN/case/2 her/PRP/nmod/2 master/NN/ROOT/2", 1, True),
        ("The/DT/det/1 dog/NN/ROOT/1 is/VBZ/cop/1 his/PRP$/nmod/1 ././punct/1", 3, False),
        ("his/PRP$/nmod:poss/1 dog/NN/ROOT/1", 0, True),
        ("his/PRP$/nmod:poss/3 and/CC/cc/2 her/PRP$/conj/0 friends/NNS/ROOT/3", 0, True),
        (
            "is/VBZ/cop/1 it/PRP/ROOT/1 his/PRP$/nmod/1 or/CC/cc/4 hers/PRP/conj/2 ?/./punct/1",
            2,
            False,
        ),
        (
            "that/DT/nsubj/2 is/VBZ/cop/2 his/PRP$/ROOT/2 and/CC/cc/5 I/PRP/nsubj/5 go/VBP/conj/2",
            2,
            False,
        ),
        (
            "She/PRP/nsubj/1 thanks/VBZ/ROOT/1 her/PRP$/obj/1 warmly/RB/advmod/1 and/CC/cc/5 "
            "goes/VBZ/conj/1",
            2,
            False,
        ),
        (
            "She/PRP/nsubj/1 sees/VBZ/ROOT/1 her/PRP$/obj/1 standing/VBG/xcomp/1 there/RB/advmod/3",
            2,
            False,
        ),
        ("She/PRP/nsubj/1 was/VBD/ROOT/1 her/PRP/obj/1 betrothed/VBN/dep/1 ././punct/1", 2, True),
        (
            "She/PRP/nsubj/1 values/VBZ/ROOT/1 her/PRP/obj/1 more/RBR/advmod/4 moderate/JJ/amod/5 "
            "tone/NN/obj/1",
            2,
            True,
        ),
        (
            "of/IN/case/1 her/PRP/nmod/0 (/-LRB-/punct/3 wild/JJ/dep/1 )/-RRB-/punct/3 "
            "cat/NN/dep/1 ././punct/1",
            1,
            True,
        ),
        (
            'He/PRP/nsubj/1 calls/VBZ/ROOT/1 her/PRP$/obj/1 "/``/punct/4 Mouse/NN/xcomp/1 '
            "\"/''/punct/4 ././punct/1",
            2,
            False,
        ),
        (
            "She/PRP/nsubj/1 asks/VBZ/ROOT/1 her/PRP/obj/1 maid/VBD/xcomp/1 to/TO/mark/5 "
            "go/VB/xcomp/3",
            2,
            True,
        ),
        ("despite/IN/case/2 her/PRP$/nsubj/2 warning/VBG/ROOT/2 ././punct/2", 1, True),
        (
            "She/PRP/nsubj/1 enters/VBZ/ROOT/1 her/PRP$/nmod:poss/3 home/NN/obj/1 "
            "alone/RB/advmod/1",
            2,
            True,
        ),
    ],
)
def test_her_and_his_are_told_apart(text: str, position: int, expected: bool) -> None:
    assert is_possessive(parsed(text)[position]) is expected


def test_description_of_what_stands_around() -> None:
    found = describe(doc("She/PRP sees/VBZ her/PRP$ dog/NN run/VB")[2], rule=True)
    assert {
        "bias",
        "own PRP$",
        "word dog",
        "end dog",
        "end og",
        "then run",
        "left sees",
        "tags NN",
        "tags NN VB",
        "sees_NN",
        "rule True",
        "rule True_NN",
    } <= set(found)
    assert not any(
        name.startswith("rule") for name in describe(doc("She/PRP sees/VBZ her/PRP$")[2])
    )  # at the end, and unasked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He/PRP brushes/VBZ her/PRP$ hair/NN ./.", True),
        ("He/PRP meets/VBZ her/PRP$ in/IN town/NN ./.", False),
        ("He/PRP tells/VBZ her/PRP$ that/IN it/PRP rains/VBZ ./.", False),
    ],
)
def test_plain_cases_with_the_weights_of_the_repository(text: str, expected: bool) -> None:
    assert (possessive_score(doc(text)[2], rule=expected) > 0) is expected
