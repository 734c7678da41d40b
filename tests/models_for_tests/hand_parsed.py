"""Sentences parsed by hand."""

from __future__ import annotations

import spacy
from spacy.tokens import Doc

VOCAB = spacy.blank("en").vocab


def parsed(text: str) -> Doc:
    """A document from `word/TAG/relation/head` (head counted from 0), part of speech by the tag."""
    rows = [part.rsplit("/", 3) for part in text.split()]
    pos = {
        "PRP": "PRON",
        "PRP$": "PRON",
        "NNP": "PROPN",
        "NN": "NOUN",
        "NNS": "NOUN",
        "MD": "AUX",
        "DT": "DET",
    }
    return Doc(
        VOCAB,
        words=[r[0] for r in rows],
        tags=[r[1] for r in rows],
        deps=[r[2] for r in rows],
        heads=[int(r[3]) for r in rows],
        pos=[pos.get(r[1], "VERB" if r[1].startswith("V") else "X") for r in rows],
        lemmas=[r[0].lower() for r in rows],
    )


UD = parsed(
    "She/PRP/nsubj/3 is/VBZ/cop/3 a/DT/det/3 nun/NN/ROOT/3 and/CC/cc/5 loves/VBZ/conj/3 "
    "her/PRP$/nmod:poss/7 aunt/NN/obj/5 ././punct/3"
)
CLEAR = parsed(
    "She/PRP/nsubj/1 is/VBZ/ROOT/1 a/DT/det/3 nun/NN/attr/1 and/CC/cc/1 loves/VBZ/conj/1 "
    "her/PRP$/poss/7 aunt/NN/dobj/5 ././punct/1"
)


THIRD = "Mood=Ind|Number=Sing|Person=3|VerbForm=Fin"
FEATURES = {
    "VBZ": THIRD,
    "WAS": THIRD,
    "VBP": "Tense=Pres|VerbForm=Fin",
    "VBD": "Tense=Past|VerbForm=Fin",
    "MD": "VerbForm=Fin",
    "VB": "VerbForm=Inf",
    "VBN": "VerbForm=Part",
    "VBG": "VerbForm=Part",
    "NN": "Number=Sing",
    "NNP": "Number=Sing",
    "NNS": "Number=Plur",
    "NNPS": "Number=Plur",
    "SHE": "Gender=Fem|Number=Sing|Person=3|PronType=Prs",
    "HE": "Gender=Masc|Number=Sing|Person=3|PronType=Prs",
    "IT": "Gender=Neut|Number=Sing|Person=3|PronType=Prs",
    "THEY": "Number=Plur|Person=3|PronType=Prs",
}
PARTS = {
    "NN": "NOUN",
    "NNS": "NOUN",
    "NNP": "PROPN",
    "NNPS": "PROPN",
    "SHE": "PRON",
    "HE": "PRON",
    "IT": "PRON",
    "THEY": "PRON",
    "PRON": "PRON",
    ".": "PUNCT",
    "DT": "DET",
    "IN": "ADP",
    "RB": "ADV",
    "JJ": "ADJ",
}
NOUNS = frozenset(
    {
        "widow",
        "brother",
        "aunt",
        "woman",
        "king",
        "nun",
        "countess",
        "mother",
        "clergyman",
        "sister",
    }
)


def analysed(text: str) -> Doc:
    """A parse by hand: `word/tag/relation/head`, heads counted from 1; the root's head is 0."""
    cells = [cell.split("/") for cell in text.split()]
    lemmas = [
        word.lower().removesuffix("s") if tag == "NNS" else word.lower()
        for word, tag, _, _ in cells
    ]
    return Doc(
        VOCAB,
        words=[c[0] for c in cells],
        lemmas=lemmas,
        spaces=[True] * (len(cells) - 1) + [False],
        pos=[PARTS.get(tag, "VERB" if tag in FEATURES else "X") for _, tag, _, _ in cells],
        morphs=[FEATURES.get(tag, "") for _, tag, _, _ in cells],
        heads=[int(head) - 1 if head != "0" else i for i, (_, _, _, head) in enumerate(cells)],
        deps=["ROOT" if head == "0" else relation for _, _, relation, head in cells],
    )


# parse | third person singular? | subject | neuter? | human?
