"""Names: found by list, title and text, and replaced or kept."""

from __future__ import annotations

from hand_parsed import parsed

from lib.language.annotator import annotate_sentence
from lib.language.labels import gender_variants
from lib.language.lexicon import load_lexicon
from lib.language.names import find_names, names_of_text


def test_names_become_pronouns_and_titles_keep_theirs() -> None:
    doc = parsed(
        "Ann/NNP/nsubj/2 Lee/NNP/flat/0 meets/VBZ/ROOT/2 Mr./NNP/compound/4 Hill/NNP/obj/2 "
        "and/CC/cc/8 Tom/NNP/nmod:poss/8 "
        "'s/POS/case/6 dog/NN/conj/4"
    )
    label = annotate_sentence(doc)
    forms = gender_variants(label, "all")
    assert " ".join(forms["F"]) == "She meets Mrs. Hill and her dog"
    assert " ".join(forms["NB"]) == "They meet Mx. Hill and their dog"
    assert sorted(label.names) == [0, 1, 6, 7]


def test_a_name_after_a_noun_that_changes_goes_and_one_after_a_rank_stays() -> None:
    aunt = parsed(
        "Tom/NNP/nsubj/1 fears/VBZ/ROOT/1 his/PRP$/nmod:poss/3 aunt/NN/obj/1 Jane/NNP/flat/3 "
        "././punct/1"
    )
    assert (
        " ".join(gender_variants(annotate_sentence(aunt), "all")["NB"])
        == "They fear their parent's sibling ."
    )
    rank = parsed("Colonel/NNP/nsubj/2 James/NNP/flat/0 sleeps/VBZ/ROOT/2")
    assert not annotate_sentence(rank).all


def test_the_verb_of_a_name_of_two_words_agrees() -> None:
    doc = parsed("Tom/NNP/compound/1 Lee/NNP/nsubj/2 sings/VBZ/ROOT/2")
    assert (
        " ".join(gender_variants(annotate_sentence(doc, known_names={"Lee"}), "all")["NB"])
        == "They sing"
    )


def test_a_name_is_known_from_elsewhere_in_the_text() -> None:
    lexicon = load_lexicon()
    texts = [
        parsed("Mr./NNP/compound/1 Darcy/NNP/nsubj/2 bows/VBZ/ROOT/2"),
        parsed("Darcy/NNP/nsubj/1 leaves/VBZ/ROOT/1"),
    ]
    assert not find_names(texts[1], lexicon)
    assert names_of_text(texts, lexicon) == {"Darcy"}
    assert find_names(texts[1], lexicon, {"Darcy"}) == [[0]]
