"""Whether "her" and "his" stand before what is possessed (him or his? her or hers?), from the words around them.

A small tagger errs on "her" in one case out of twenty, so the neighbours decide where they can, and the tagger where they
cannot. The rules are about word classes and a few kinds of verbs; they were written on GECO's training part. For "her" they
are one voice among others (`lib.language.possessives`).
"""

from __future__ import annotations

import re

from spacy.tokens import Token

from lib.language.lexicon import load_lexicon
from lib.language.possessives import stands_before_possessed

POSSESSIVES = frozenset({"nmod:poss", "poss"})
POSSESSORS = frozenset("his her hers its my your our their".split())
POSSESSED = frozenset({"NN", "NNS", "NNP", "NNPS"})
MODIFIERS = frozenset({"JJ", "JJR", "JJS", "VBN", "VBG", "CD", "RB", "RBS", "RBR"})
NOT_POSSESSED = frozenset(
    {
        "DT",
        "IN",
        "TO",
        "CC",
        "PRP",
        "PRP$",
        "WP",
        "WDT",
        "WRB",
        "MD",
        "VBD",
        "VBZ",
        "VBP",
        "RP",
        "EX",
        "UH",
        ".",
        ",",
        ":",
        "''",
        "``",
        "-LRB-",
        "-RRB-",
        "HYPH",
        "POS",
    }
)
ENDS_PHRASE = frozenset({"IN", "CC", ".", ",", ":", "''", "DT", "TO", "VBD", "-RRB-"})
OPENING = frozenset({"``", "-LRB-"})
BE = frozenset("is was are were be been being 's".split())
ASIDE = frozenset(
    "away back up down out off there here into again too reluctantly farewell".split()
)
CARRYING = re.compile(
    "t[ao]k|br[io]|dr[io]v|sen[dt]|walk|le[ad]d|carr|se[en]|saw|accompan|escort|follow|invit|call|order|g[eo]t|drag"
)
CAUSATIVE = re.compile(
    "ma[dk]|let|se[en]|saw|watch|hear|help|ha[sdv]|bid|find|found|leav|left|call|keep|kept|consider|think|catch|"
    "caught|render|driv|drov|declar|turn|want|set|g[eo]t|notic|spot|imagin|discover"
)
GIVING = re.compile(
    "g[ia]v|grant|offer|hand|pay|paid|len[dt]|sen[dt]|br[io]|tell|told|show|attack|owe"
)
NAMING = re.compile("call|nam|dub|nick|term|titl|label|tell|told|ask")


def is_possessive(token: Token) -> bool:
    """Whether "her" or "his" stands before what is possessed: "her" by rules and learnt weights, "his" by rules alone."""
    rule = by_rules(token)
    if (
        token.lower_ == "his" or token.i + 1 == len(token.doc) or token.nbor().tag_ in OPENING
    ):  # the weights see no further than the mark
        return rule
    return stands_before_possessed(token, rule)


def by_rules(token: Token) -> bool:
    """What the words around "her" or "his" say of it; they overrule a small tagger.

    "His" is possessive if a word of its phrase follows, or "and" with another possessor ("his and her friends").
    """
    if token.i + 1 == len(token.doc):
        return False
    right = token.nbor()
    if token.lower_ == "his":
        if right.tag_ == "CC" and right.i + 1 < len(token.doc):
            return right.nbor().lower_ in POSSESSORS - {"hers"}
        return right.tag_ not in ENDS_PHRASE or right.lower_ in ("back", "better")
    found = _by_next_word(token, right)
    if found is None and right.tag_ in MODIFIERS:
        found = _by_modifier(token, right)
    if (
        found is None
        and _tag(token, -1) == "IN"
        and token.nbor(-1).lower_ not in ("for", "that", "as")
    ):
        found = right.tag_ in POSSESSED or None
    return found if found is not None else token.tag_ == "PRP$" or token.dep_ in POSSESSIVES


def _by_next_word(token: Token, right: Token) -> bool | None:
    """What the next word says of "her": function words and marks make it an object, "own" and a person a possessive."""
    left, tag = _left_word(token), _tag(token, -1)
    if right.lower_ in ("own", "self", "will") or (
        right.lower_ == "best" and left in ("do", "does", "did", "done", "doing")
    ):
        return True
    if right.tag_ in OPENING:
        return _past_opening(token, right, left)
    if (
        right.tag_ == "VBD"
        and (_tag(right, 1) in POSSESSED or tag.startswith("VB"))
        and (not tag.startswith("VB") or load_lexicon().find(right.lower_) is not None)
    ):
        return True  # "her deceased/VBD daughter", "instructs her maid/VBD"
    if right.tag_ in ("VB", "VBP") and tag == "IN" and left not in ("for", "that"):
        return True  # "as soon as her resolve/VBP"
    if right.tag_ in NOT_POSSESSED or (
        tag.startswith("VB")
        and (right.lower_ in ASIDE or (right.lower_ == "home" and CARRYING.match(left)))
    ):
        return False
    if right.tag_ == "VB":
        return CAUSATIVE.match(left) is None
    if (
        right.tag_ == "NN"
        and re.match("se[en]|saw|watch|hear|let", left)
        and right.i + 1 < len(right.doc)
        and right.nbor().lower_ in ASIDE
    ):
        return False  # "sees her melt/NN away"
    return False if right.tag_ == "CD" and GIVING.match(left) else None


def _by_modifier(token: Token, right: Token) -> bool | None:
    """ "Her" before adjectives, participles and adverbs: possessive if a noun follows them, unless somebody makes her so."""
    left, tag, word = _left_word(token), _tag(token, -1), right
    while word.i + 1 < len(token.doc) and word.tag_ in MODIFIERS:
        word = word.nbor()
    adverb = right.tag_ == "RB" or right.lower_.endswith("ly")
    if adverb and _tag(right, 1) not in POSSESSED | MODIFIERS:
        return False  # "thanks her tenderly"
    if left in BE or (tag == "IN" and right.tag_ == "VBG" and _tag(right, 1) in (".", ",")):
        return True  # "was her betrothed", "despite her warning."
    if (
        tag.startswith("VB")
        and right.tag_ == "JJ"
        and _tag(right, 1) == "TO"
        and not CAUSATIVE.match(left)
    ):
        return True  # "renews her resolve/JJ to"
    if CAUSATIVE.match(left) and (
        right.tag_ == "VBG" or (_tag(right, 1) in (",", "CC") and right.tag_ != "CD")
    ):
        return False  # "finds her sleeping", "makes her wet, ..."
    if word.tag_ in POSSESSED and (right.tag_ != "RB" or word.i > right.i + 1):
        return None if CAUSATIVE.match(left) or right.tag_ == "RB" else True
    if _tag(right, 1) not in POSSESSED | MODIFIERS | {"CC", ",", "HYPH"} and right.tag_ != "CD":
        return False
    return None


def _past_opening(token: Token, right: Token, left: str) -> bool:
    """ "Her" before a quotation mark or bracket: possessive if a noun stands behind or in it, unless she is named or told."""
    closing = next(
        (word for word in token.doc[right.i + 1 :] if word.tag_ in ("''", "-RRB-")), None
    )
    if closing is None or NAMING.match(left):
        return False
    after = _tag(closing, 1)
    return after in POSSESSED | MODIFIERS or (
        right.tag_ == "``" and _tag(right, 1) in POSSESSED | {"JJ", "VBN", "VBG"}
    )


def _tag(token: Token, step: int) -> str:
    return token.doc[token.i + step].tag_ if 0 <= token.i + step < len(token.doc) else "."


def _left_word(token: Token) -> str:
    return token.nbor(-1).lower_ if token.i else ""
