"""The filters' answers on hand-built parses in both label schemes, and on our text."""

from __future__ import annotations

import pytest
from hand_parsed import NOUNS, analysed
from spacy.tokens import Doc

from lib.core.paths import material
from lib.language.dependencies import root_of, subject_of
from lib.language.parse import read_summaries, stored_annotation
from lib.language.word_lists import read_word_list
from lib.studies.geco.filters import apply_filters, is_human, is_neuter, is_third_singular

CLEAR = [
    (
        "She/SHE/nsubj/2 reads/VBZ/ROOT/0 a/DT/det/4 book/NN/dobj/2 ././punct/2",
        True,
        "She",
        False,
        True,
    ),
    (
        "She/SHE/nsubj/2 is/VBZ/ROOT/0 a/DT/det/4 nun/NN/attr/2 ././punct/2",
        True,
        "She",
        False,
        True,
    ),
    (
        "The/DT/det/2 widow/NN/nsubj/3 is/VBZ/ROOT/0 tired/JJ/acomp/3 ././punct/3",
        True,
        "widow",
        False,
        True,
    ),
    (
        "She/SHE/nsubj/3 has/VBZ/aux/3 gone/VBN/ROOT/0 home/RB/advmod/3 ././punct/3",
        True,
        "She",
        False,
        True,
    ),
    (
        "She/SHE/nsubjpass/3 is/VBZ/auxpass/3 taken/VBN/ROOT/0 in/RP/prt/3 by/IN/agent/3 "
        "a/DT/det/7 clergyman/NN/pobj/5 "
        "././punct/3",
        True,
        "She",
        False,
        True,
    ),
    (
        "He/HE/nsubjpass/4 has/VBZ/aux/4 been/VBN/auxpass/4 seen/VBN/ROOT/0 ././punct/4",
        True,
        "He",
        False,
        True,
    ),
    (
        "The/DT/det/2 king/NN/nsubjpass/4 was/WAS/auxpass/4 killed/VBN/ROOT/0 ././punct/4",
        True,
        "king",
        False,
        True,
    ),
    (
        "There/EX/expl/2 is/VBZ/ROOT/0 a/DT/det/4 widow/NN/attr/2 in/IN/prep/4 town/NN/pobj/5 "
        "././punct/2",
        True,
        None,
        False,
        False,
    ),
    ("It/IT/nsubj/2 rains/VBZ/ROOT/0 ././punct/2", True, "It", True, False),
    (
        "It/IT/nsubj/2 is/VBZ/ROOT/0 the/DT/det/4 widow/NN/attr/2 who/PRON/nsubj/6 "
        "pays/VBZ/relcl/4 ././punct/2",
        True,
        "It",
        True,
        False,
    ),
    ("They/THEY/nsubj/2 read/VBP/ROOT/0 ././punct/2", False, "They", False, False),
    (
        "Jane/NNP/compound/2 Eyre/NNP/nsubj/3 leaves/VBZ/ROOT/0 the/DT/det/5 house/NN/dobj/3 "
        "././punct/3",
        True,
        "Eyre",
        False,
        True,
    ),
    (
        "Mr./NNP/compound/2 Darcy/NNP/nsubj/3 refuses/VBZ/ROOT/0 ././punct/3",
        True,
        "Darcy",
        False,
        True,
    ),
    (
        "Her/SHE/poss/2 brother/NN/nsubj/3 leaves/VBZ/ROOT/0 ././punct/3",
        True,
        "brother",
        False,
        True,
    ),
    (
        "Jane/NNP/poss/3 's/POS/case/1 aunt/NN/nsubj/4 dies/VBZ/ROOT/0 ././punct/4",
        True,
        "aunt",
        False,
        True,
    ),
    (
        "Jane/NNP/nsubj/4 and/CC/cc/1 Elizabeth/NNP/conj/1 walk/VBP/ROOT/0 ././punct/4",
        False,
        "Jane",
        False,
        True,
    ),
    (
        "Jane/NNP/nsubj/2 walks/VBZ/ROOT/0 and/CC/cc/2 sings/VBZ/conj/2 ././punct/2",
        True,
        "Jane",
        False,
        True,
    ),
    (
        "They/THEY/nsubj/2 walk/VBP/ROOT/0 and/CC/cc/2 she/SHE/nsubj/5 sings/VBZ/conj/2 "
        "././punct/2",
        False,
        "They",
        False,
        False,
    ),
    (
        "The/DT/det/2 woman/NN/nsubj/6 who/PRON/nsubj/4 loves/VBZ/relcl/2 him/HE/dobj/4 "
        "stays/VBZ/ROOT/0 ././punct/6",
        True,
        "woman",
        False,
        True,
    ),
    (
        "The/DT/det/2 letters/NNS/nsubj/6 that/PRON/dobj/5 she/SHE/nsubj/5 writes/VBZ/relcl/2 "
        "arrive/VBP/ROOT/0 ././punct/6",
        False,
        "letters",
        False,
        False,
    ),
    (
        "Wickham/NNP/nsubj/6 ,/,/punct/1 a/DT/det/4 rogue/NN/appos/1 ,/,/punct/1 lies/VBZ/ROOT/0 "
        "././punct/6",
        True,
        "Wickham",
        False,
        True,
    ),
    ("The/DT/det/2 storm/NN/nsubj/3 breaks/VBZ/ROOT/0 ././punct/3", True, "storm", False, False),
    ("The/DT/det/2 teacher/NN/nsubj/3 reads/VBZ/ROOT/0 ././punct/3", True, "teacher", False, False),
    (
        "The/DT/det/2 sisters/NNS/nsubj/3 sing/VBP/ROOT/0 ././punct/3",
        False,
        "sisters",
        False,
        False,
    ),
    (
        "The/DT/det/2 Bennets/NNPS/nsubj/3 dine/VBP/ROOT/0 ././punct/3",
        False,
        "Bennets",
        False,
        False,
    ),
    ("He/HE/nsubj/3 can/MD/aux/3 read/VB/ROOT/0 ././punct/3", False, "He", False, True),
    (
        "He/HE/nsubj/4 does/VBZ/aux/4 not/RB/neg/4 read/VB/ROOT/0 ././punct/4",
        True,
        "He",
        False,
        True,
    ),
    (
        "She/SHE/nsubj/2 wants/VBZ/ROOT/0 to/TO/aux/4 read/VB/xcomp/2 ././punct/2",
        True,
        "She",
        False,
        True,
    ),
    (
        "She/SHE/nsubj/2 says/VBZ/ROOT/0 that/IN/mark/5 they/THEY/nsubj/5 read/VBP/ccomp/2 "
        "././punct/2",
        True,
        "She",
        False,
        True,
    ),
    (
        "They/THEY/nsubj/2 say/VBP/ROOT/0 that/IN/mark/5 she/SHE/nsubj/5 reads/VBZ/ccomp/2 "
        "././punct/2",
        False,
        "They",
        False,
        False,
    ),
    (
        "When/RB/advmod/3 they/THEY/nsubj/3 arrive/VBP/advcl/6 ,/,/punct/6 she/SHE/nsubj/6 "
        "leaves/VBZ/ROOT/0 ././punct/6",
        True,
        "she",
        False,
        True,
    ),
    (
        "Smiling/VBG/advcl/4 ,/,/punct/4 he/HE/nsubj/4 bows/VBZ/ROOT/0 ././punct/4",
        True,
        "he",
        False,
        True,
    ),
    (
        "To/TO/aux/2 read/VB/csubj/3 is/VBZ/ROOT/0 a/DT/det/5 joy/NN/attr/3 ././punct/3",
        True,
        None,
        False,
        False,
    ),
    (
        "The/DT/det/2 king/NN/nsubj/3 killed/VBD/ROOT/0 him/HE/dobj/3 ././punct/3",
        False,
        "king",
        False,
        True,
    ),
    (
        "He/HE/nsubj/2 gives/VBZ/ROOT/0 her/SHE/dative/2 a/DT/det/5 ring/NN/dobj/2 ././punct/2",
        True,
        "He",
        False,
        True,
    ),
    ("Read/VB/ROOT/0 the/DT/det/3 book/NN/dobj/1 ././punct/1", False, None, False, False),
    (
        "Everyone/PRON/nsubj/2 loves/VBZ/ROOT/0 her/SHE/dobj/2 ././punct/2",
        True,
        "Everyone",
        False,
        False,
    ),
    (
        "The/DT/det/3 old/JJ/amod/3 countess/NN/nsubj/8 ,/,/punct/8 however/RB/advmod/8 "
        ",/,/punct/8 never/RB/neg/8 "
        "forgives/VBZ/ROOT/0 him/HE/dobj/8 ././punct/8",
        True,
        "countess",
        False,
        True,
    ),
    (
        "His/HE/poss/2 mother/NN/nsubj/3 reveals/VBZ/ROOT/0 herself/SHE/dobj/3 to/IN/prep/3 "
        "her/SHE/pobj/5 ././punct/3",
        True,
        "mother",
        False,
        True,
    ),
]
UD = [
    ("She/SHE/nsubj/4 is/VBZ/cop/4 a/DT/det/4 nun/NN/root/0 ././punct/4", True, "She", False, True),
    (
        "The/DT/det/2 widow/NN/nsubj/4 is/VBZ/cop/4 tired/JJ/root/0 ././punct/4",
        True,
        "widow",
        False,
        True,
    ),
    (
        "They/THEY/nsubj/4 are/VBP/cop/4 her/SHE/nmod:poss/4 sisters/NNS/root/0 ././punct/4",
        False,
        "They",
        False,
        False,
    ),
    (
        "She/SHE/nsubj:pass/3 is/VBZ/aux:pass/3 taken/VBN/root/0 by/IN/case/6 a/DT/det/6 "
        "clergyman/NN/obl/3 ././punct/3",
        True,
        "She",
        False,
        True,
    ),
    (
        "There/EX/expl/2 is/VBZ/root/0 a/DT/det/4 widow/NN/nsubj/2 ././punct/2",
        True,
        None,
        False,
        False,
    ),
    (
        "The/DT/det/2 woman/NN/nsubj/6 who/PRON/nsubj/4 loves/VBZ/acl:relcl/2 him/HE/obj/4 "
        "stays/VBZ/root/0 ././punct/6",
        True,
        "woman",
        False,
        True,
    ),
    ("Jane/NNP/nsubj/3 Eyre/NNP/flat/1 leaves/VBZ/root/0 ././punct/3", True, "Jane", False, True),
    (
        "That/IN/mark/3 he/HE/nsubj/3 lies/VBZ/csubj/5 is/VBZ/cop/5 clear/JJ/root/0 ././punct/5",
        True,
        None,
        False,
        False,
    ),
]


@pytest.mark.parametrize(("parse", "third", "subject", "neuter", "human"), CLEAR + UD)
def test_what_each_filter_decides(
    parse: str, third: bool, subject: str | None, neuter: bool, human: bool
) -> None:
    sentence = analysed(parse)
    assert is_third_singular(sentence) == third
    found = subject_of(sentence)
    assert (found.text if found is not None else None) == subject
    if found is not None:
        assert is_neuter(found) == neuter
        assert is_human(found, NOUNS) == human


def test_the_hand_built_parses_cover_the_relations_of_spacys_own_scheme() -> None:
    used = {token.dep_ for parse, *_ in CLEAR for token in analysed(parse)}
    assert len(CLEAR) >= 30
    assert used >= {
        "nsubj",
        "nsubjpass",
        "dobj",
        "dative",
        "pobj",
        "prep",
        "poss",
        "case",
        "aux",
        "auxpass",
        "attr",
        "acomp",
        "appos",
        "compound",
        "conj",
        "cc",
        "relcl",
        "expl",
        "agent",
        "advcl",
        "ccomp",
        "xcomp",
        "csubj",
        "mark",
        "neg",
        "prt",
        "det",
        "amod",
        "advmod",
        "punct",
        "ROOT",
    }


def test_the_two_schemes_agree_on_the_same_sentences() -> None:
    """Three sentences stand in both lists: their roots differ, the filters' answers do not."""
    for clear, ud in ((CLEAR[1], UD[0]), (CLEAR[2], UD[1]), (CLEAR[7], UD[4])):
        assert clear[1:] == ud[1:]
    assert [root_of(analysed(parse)).text for parse in (CLEAR[1][0], UD[0][0])] == ["is", "nun"]


def counts_after_each_filter(docs: list[Doc]) -> list[int]:
    nouns = read_word_list(material("geco") / "human_nouns.txt")
    filters = {
        "3sg": is_third_singular,
        "subject": lambda d: subject_of(d) is not None,
        "length": lambda d: len(d) < 30,
        "stop": lambda d: d[-1].text == ".",
        "neuter": lambda d: not is_neuter(subject_of(d)),
        "human": lambda d: is_human(subject_of(d), nouns),
    }
    left, lost, counts = apply_filters({str(k): one for k, one in enumerate(docs)}, filters)
    assert len(left) + len(lost) == len(docs) and len(left) == counts["sentences"].iloc[-1]
    return list(counts["sentences"])[1:]


def test_filters_run_in_order_and_the_first_of_equal_sentences_stays() -> None:
    docs = {
        "a": analysed(CLEAR[0][0]),
        "b": analysed(CLEAR[1][0]),
        "c": analysed(CLEAR[0][0]),
        "d": analysed(CLEAR[10][0]),
    }
    left, lost, counts = apply_filters(
        docs, {"third": is_third_singular, "reads": lambda d: "reads" in d.text}
    )
    assert list(left) == ["a"] and lost == {"d": "third", "b": "reads", "c": "no duplicate"}
    assert counts.values.tolist() == [
        ["sentences", 4],
        ["third", 3],
        ["reads", 2],
        ["no duplicate", 1],
    ]


def test_the_stored_annotation_covers_the_text_and_gives_the_candidates() -> None:
    sentences = read_summaries(material("geco") / "plots.md")["sentence"]
    docs = stored_annotation(sentences, sorted(material("geco").glob("annotation_*.conllu")))
    assert len(docs) == 810 and [one.text for one in docs] == list(sentences)
    assert counts_after_each_filter(docs) == [584, 547, 386, 386, 383, 296, 296]
    assert all(path.stat().st_size < 500_000 for path in material("geco").glob("*.conllu"))
