"""Forms after "they", and which verbs take them, near the pronoun and far from it."""

from __future__ import annotations

import pytest
from hand_parsed import parsed

from lib.language.verbs import agreeing_verbs, they_form


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("tries", "try"),
        ("lies", "lie"),
        ("confesses", "confess"),
        ("goes", "go"),
        ("reaches", "reach"),
        ("aches", "ache"),
        ("approaches", "approach"),
        ("enriches", "enrich"),
        ("realises", "realise"),
        ("Has", "Have"),
        ("buzzes", "buzz"),
        ("buys", "buy"),
        ("ate", "ate"),
    ],
)
def test_verbs_after_they(verb: str, expected: str) -> None:
    assert they_form(verb) == expected


@pytest.mark.parametrize(
    ("text", "subjects", "expected"),
    [
        (
            "He/PRP/nsubj/2 soon/RB/advmod/2 eats/VBZ/ROOT/2 and/CC/cc/4 sleeps/VBZ/conj/2",
            [0],
            {2: "eat", 4: "sleep"},
        ),
        ("He/PRP/nsubj/2 has/VBZ/aux/2 gone/VBN/ROOT/2", [0], {1: "have"}),
        ("He/PRP/nsubj:pass/2 was/VBD/aux:pass/2 seen/VBN/ROOT/2", [0], {1: "were"}),
        ("He/PRP/nsubj/2 may/MD/aux/2 go/VB/ROOT/2", [0], {}),
        (
            "He/PRP/nsubj/1 waves/VBZ/ROOT/1 and/CC/cc/4 Ann/NNP/nsubj/4 nods/VBZ/conj/1",
            [0],
            {1: "wave"},
        ),
        (
            "He/PRP/nsubj/5 ,/,/punct/3 who/WP/nsubj/3 limps/VBZ/acl:relcl/0 ,/,/punct/5 "
            "sings/VBZ/ROOT/5",
            [0],
            {3: "limp", 5: "sing"},
        ),
        ("She/PRP/nsubj/1 quickly/RB/ROOT/1 recovers/NNS/dep/1 ././punct/1", [0], {2: "recover"}),
        (
            "He/PRP/nsubj/1 waits/VBZ/ROOT/1 but/CC/cc/6 in/IN/case/5 the/DT/det/5 end/NN/obl/6 "
            "leaves/VBZ/dep/1",
            [0],
            {1: "wait", 6: "leave"},
        ),
        (
            "He/PRP/nsubj/1 hears/VBZ/ROOT/1 and/CC/cc/7 ,/,/punct/4 misled/VBN/dep/1 ,/,/punct/7 "
            "soon/RB/advmod/7 flees/NNS/dep/1 it/PRP/obj/7",
            [0],
            {1: "hear", 7: "flee"},
        ),
        (
            "He/PRP/nsubj/1 knits/VBZ/ROOT/1 and/CC/cc/3 sews/VB/conj/1 socks/NNS/obj/3",
            [0],
            {1: "knit", 3: "sew"},
        ),
        (
            "He/PRP/nsubj/1 sees/VBZ/ROOT/1 dogs/NNS/obj/1 and/CC/cc/4 cats/NNS/conj/2 ././punct/1",
            [0],
            {1: "see"},
        ),
        (
            "He/PRP/nsubj/1 thinks/VBZ/ROOT/1 it/PRP/nsubj/4 is/VBZ/cop/4 ill/JJ/ccomp/1 "
            "but/CC/cc/6 stays/VBZ/conj/4",
            [0],
            {1: "think", 6: "stay"},
        ),
        ("He/PRP/nsubj/2 's/VBZ/aux/2 gone/VBN/ROOT/2", [0], {1: "'ve"}),
        (
            "He/PRP/nsubj/4 's/VBZ/aux/4 never/RB/advmod/4 been/VBN/cop/4 ill/JJ/ROOT/4",
            [0],
            {1: "'ve"},
        ),
        ("HE/PRP/nsubj/2 IS/VBZ/cop/2 HERE/RB/ROOT/2", [0], {1: "ARE"}),
        ("He/PRP/nsubj:pass/2 's/VBZ/aux:pass/2 seen/VBN/ROOT/2", [0], {1: "'re"}),
        ("He/PRP/nsubj/2 's/VBZ/cop/2 ill/JJ/ROOT/2", [0], {1: "'re"}),
    ],
)
def test_agreement_near_and_far(text: str, subjects: list[int], expected: dict[int, str]) -> None:
    found = agreeing_verbs(parsed(text), subjects, "full")
    assert {i: forms[2] for i, forms in found.items()} == expected


def test_the_published_rule_looks_at_the_next_word_only() -> None:
    doc = parsed(
        "He/PRP/nsubj/1 weeps/VBZ/ROOT/1 and/CC/cc/3 dies/VBZ/conj/1 of/IN/case/6 "
        "his/PRP$/nmod:poss/6 wounds/NNS/obl/3"
    )
    assert {i: f[2] for i, f in agreeing_verbs(doc, [0], "adjacent", [5]).items()} == {
        6: "wound"
    }, "weeps: a word it did not know"
    other = parsed("He/PRP/nsubj/1 zigzags/VBZ/ROOT/1 and/CC/cc/3 dies/VBZ/conj/1")
    assert {i: f[2] for i, f in agreeing_verbs(other, [0], "adjacent").items()} == {1: "zigzag"}
