"""Whether "her" and "his" stand before what is possessed, by rules and fitted weights.

"Sees her" becomes *sees him*, "her dog" *his dog*; "his dog" becomes *her dog*, "a friend of his"
*hers*. The rules ask for word classes (Penn tags) and a few kinds of verbs around the word; they
were written on GECO's training part. "His" is decided by them alone. For "her", on which a small
tagger errs in one case out of twenty, a linear score over the words and tags around it, and over
what the rules say, decides. Its weights were learnt from the persons in which English tells object
and possessive apart (him/his, them/their, me/my, us/our): every such word of an open corpus became
"her" and left its own form behind as the answer (`tools/fit_annotator.py possessives`).
"""

import re

from spacy.tokens import Token

from .dependencies import POSSESSIVES
from .lexicon import load_lexicon
from .word_lists import load_weights, weighted_sum

_OPENING_MARKS = frozenset({"``", "-LRB-"})
_POSSESSORS = frozenset("his her hers its my your our their".split())
_NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS"})
_MODIFIERS = frozenset({"JJ", "JJR", "JJS", "VBN", "VBG", "CD", "RB", "RBS", "RBR"})
_NOT_POSSESSED = frozenset(
    "DT IN TO CC PRP PRP$ WP WDT WRB MD VBD VBZ VBP RP EX UH HYPH POS . , : '' `` -LRB- "
    "-RRB-".split()
)
_ENDS_PHRASE = frozenset({"IN", "CC", ".", ",", ":", "''", "DT", "TO", "VBD", "-RRB-"})
_BE = frozenset("is was are were be been being 's".split())
_ASIDE = frozenset(
    "away back up down out off there here into again too reluctantly farewell".split()
)
# Verbs by their beginnings: what can be done to her rather than to something of hers.
_CARRYING = re.compile(
    "t[ao]k|br[io]|dr[io]v|sen[dt]|walk|le[ad]d|carr|se[en]|saw|accompan|escort|follow|invit|call|order"
    "|g[eo]t|drag"
)
_CAUSATIVE = re.compile(
    "ma[dk]|let|se[en]|saw|watch|hear|help|ha[sdv]|bid|find|found|leav|left|call|keep|kept|consider|think"
    "|catch|caught|render|driv|drov|declar|turn|want|set|g[eo]t|notic|spot|imagin|discover"
)
_GIVING = re.compile(
    "g[ia]v|grant|offer|hand|pay|paid|len[dt]|sen[dt]|br[io]|tell|told|show|attack|owe"
)
_NAMING = re.compile("call|nam|dub|nick|term|titl|label|tell|told|ask")
_PERCEIVING = re.compile("se[en]|saw|watch|hear|let")


def is_possessive(token: Token) -> bool:
    """Whether "her" or "his" stands before what is possessed."""
    rule = by_rules(token)
    # The features see no further than an opening mark, the rules look behind it.
    if token.lower_ == "his" or _tag(token, 1) in _OPENING_MARKS or token.i + 1 == len(token.doc):
        return rule
    return possessive_score(token, rule) > 0


def possessive_score(token: Token, rule: bool) -> float:
    """The linear score of one "her": above 0 it is a possessive; near 0 little evidence decided.

    Args:
        rule: what the rules say (`by_rules`).
    """
    return weighted_sum(load_weights("possessive_weights"), describe(token, rule))


def describe(token: Token, rule: bool | None = None) -> list[str]:
    """The names of the features that hold of a "her": words and tags around it, the rules' answer.

    Args:
        rule: what the rules say; None where they are not asked.
    """
    doc, i = token.doc, token.i
    word = {k: doc[i + k].lower_ if 0 <= i + k < len(doc) else "" for k in (-1, 1, 2)}
    tag = {k: doc[i + k].tag_ if 0 <= i + k < len(doc) else "" for k in (-2, -1, 1, 2, 3)}
    end, right = word[1][-3:], f"{tag[1]} {tag[2]}"
    base = [
        f"own {token.tag_}",
        f"word {word[1]}",
        f"end {end}",
        f"end {word[1][-2:]}",
        f"then {word[2]}",
        f"left {word[-1]}",
        f"tags {tag[1]}",
        f"then tags {tag[2]}",
        f"tags {right}",
        f"tags {right} {tag[3]}",
        f"left tags {tag[-1]}",
        f"left tags {tag[-2]} {tag[-1]}",
    ]
    pairs = [
        f"{tag[-1]}_{tag[1]}",
        f"{tag[-1]}_{right}",
        f"{word[-1]}_{tag[1]}",
        f"{word[-1]}_{word[1]}",
        f"{end}_{tag[2]}",
        f"{word[1]}_{tag[2]}",
        f"own {token.tag_}_{tag[1]}",
    ]
    said = [
        f"rule {rule}{rest}" for rest in ("", f"_{tag[1]}", f"_{right}", f"_{tag[-1]}_{tag[1]}")
    ]
    return ["bias", *base, *pairs, *(said if rule is not None else [])]


def by_rules(token: Token) -> bool:
    """What the words around "her" or "his" say of it; they overrule a small tagger.

    "His" is possessive if a word of its phrase follows, or "and" with another possessor ("his and
    her friends").
    """
    if token.i + 1 == len(token.doc):
        return False
    right = token.nbor()
    if token.lower_ == "his":
        if right.tag_ == "CC" and right.i + 1 < len(token.doc):
            return right.nbor().lower_ in _POSSESSORS - {"hers"}
        return right.tag_ not in _ENDS_PHRASE or right.lower_ in ("back", "better")
    decision = _by_next_word(token, right)
    if decision is None and right.tag_ in _MODIFIERS:
        decision = _by_modifier(token, right)
    if (
        decision is None
        and _tag(token, -1) == "IN"
        and token.nbor(-1).lower_ not in ("for", "that", "as")
    ):
        decision = right.tag_ in _NOUNS or None
    return decision if decision is not None else token.tag_ == "PRP$" or token.dep_ in POSSESSIVES


def _by_next_word(token: Token, right: Token) -> bool | None:
    """What the next word says of "her"; None where it does not decide.

    Function words and marks make it an object, "own" and a person a possessive.
    """
    left, tag = _left_word(token), _tag(token, -1)
    if right.lower_ in ("own", "self", "will") or (
        right.lower_ == "best" and left in ("do", "does", "did", "done", "doing")
    ):
        return True
    if right.tag_ in _OPENING_MARKS:
        return _past_opening(token, right, left)
    if (
        right.tag_ == "VBD"
        and (_tag(right, 1) in _NOUNS or tag.startswith("VB"))
        and (not tag.startswith("VB") or load_lexicon().find(right.lower_) is not None)
    ):
        return True  # "her deceased/VBD daughter", "instructs her maid/VBD"
    if right.tag_ in ("VB", "VBP") and tag == "IN" and left not in ("for", "that"):
        return True  # "as soon as her resolve/VBP"
    if right.tag_ in _NOT_POSSESSED or (
        tag.startswith("VB")
        and (right.lower_ in _ASIDE or (right.lower_ == "home" and _CARRYING.match(left)))
    ):
        return False
    if right.tag_ == "VB":
        return _CAUSATIVE.match(left) is None
    if (
        right.tag_ == "NN"
        and _PERCEIVING.match(left)
        and right.i + 1 < len(right.doc)
        and right.nbor().lower_ in _ASIDE
    ):
        return False  # "sees her melt/NN away"
    return False if right.tag_ == "CD" and _GIVING.match(left) else None


def _by_modifier(token: Token, right: Token) -> bool | None:
    """What follows adjectives, participles and adverbs after "her"; None where it does not decide.

    It is possessive if a noun follows them, unless somebody makes her so ("finds her sleeping").
    """
    left, tag, word = _left_word(token), _tag(token, -1), right
    while word.i + 1 < len(token.doc) and word.tag_ in _MODIFIERS:
        word = word.nbor()
    adverb = right.tag_ == "RB" or right.lower_.endswith("ly")
    if adverb and _tag(right, 1) not in _NOUNS | _MODIFIERS:
        return False  # "thanks her tenderly"
    if left in _BE or (tag == "IN" and right.tag_ == "VBG" and _tag(right, 1) in (".", ",")):
        return True  # "was her betrothed", "despite her warning."
    if (
        tag.startswith("VB")
        and right.tag_ == "JJ"
        and _tag(right, 1) == "TO"
        and not _CAUSATIVE.match(left)
    ):
        return True  # "renews her resolve/JJ to"
    if _CAUSATIVE.match(left) and (
        right.tag_ == "VBG" or (_tag(right, 1) in (",", "CC") and right.tag_ != "CD")
    ):
        return False  # "finds her sleeping", "makes her wet, ..."
    if word.tag_ in _NOUNS and (right.tag_ != "RB" or word.i > right.i + 1):
        return None if _CAUSATIVE.match(left) or right.tag_ == "RB" else True
    if _tag(right, 1) not in _NOUNS | _MODIFIERS | {"CC", ",", "HYPH"} and right.tag_ != "CD":
        return False
    return None


def _past_opening(token: Token, right: Token, left: str) -> bool:
    """ "Her" before a quotation mark or bracket: possessive if a noun stands behind or in it.

    She is an object where she is named or told something ("calls her 'Mouse'").
    """
    closing = next(
        (word for word in token.doc[right.i + 1 :] if word.tag_ in ("''", "-RRB-")), None
    )
    if closing is None or _NAMING.match(left):
        return False
    return _tag(closing, 1) in _NOUNS | _MODIFIERS or (
        right.tag_ == "``" and _tag(right, 1) in _NOUNS | {"JJ", "VBN", "VBG"}
    )


def _tag(token: Token, step: int) -> str:
    return token.doc[token.i + step].tag_ if 0 <= token.i + step < len(token.doc) else "."


def _left_word(token: Token) -> str:
    return token.nbor(-1).lower_ if token.i else ""
