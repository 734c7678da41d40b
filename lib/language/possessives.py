"""Whether "her" and "his" stand before what is possessed, by rules and fitted weights.

"His" is decided by the rules alone (`possessive_rules`). For "her" a linear score over the words
and tags around it, and over what the rules say, decides. Its weights were learnt from the persons
in which English tells object and possessive apart (him/his, them/their, me/my, us/our): every such
word of an open corpus became "her" and left its own form behind as the answer
(`tools/fit_annotator.py possessives`).
"""

from spacy.tokens import Token

from .linear import load_weights, weighted_sum
from .possessive_rules import OPENING_MARKS, by_rules
from .word_lists import resource


def is_possessive(token: Token) -> bool:
    """Whether "her" or "his" stands before what is possessed."""
    rule = by_rules(token)
    is_last = token.i + 1 == len(token.doc)
    # The features see no further than an opening mark, the rules look behind it.
    if token.lower_ == "his" or is_last or token.nbor().tag_ in OPENING_MARKS:
        return rule
    return possessive_score(token, rule) > 0


def possessive_score(token: Token, rule: bool) -> float:
    """The linear score of one "her": above 0 it is a possessive; near 0 little evidence decided.

    Args:
        rule: what the rules say (`by_rules`).
    """
    weights = load_weights(resource("possessive_weights.json"))
    return weighted_sum(weights, describe(token, rule))


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
