"""The sentence filters of GECO (arXiv 2406.11547, appendix A.1.2): who is a candidate."""

from collections.abc import Callable, Collection, Mapping

import pandas as pd
from spacy.tokens import Doc, Token

from ...language.dependencies import FINITE_HELPERS, root_of


def is_third_singular(doc: Doc) -> bool:
    """Whether the main clause is in the third person singular: she walks, has gone, is a nun.

    The paper asks the root alone; in UD the root of "she is a nun" is the nun, and in both schemes
    that of "she has gone" is a participle, so the finite words of the verb group are asked here.
    """
    root = root_of(doc)
    group = [root, *(child for child in root.children if child.dep_ in FINITE_HELPERS)]
    return any(
        "Fin" in word.morph.get("VerbForm")
        and "3" in word.morph.get("Person")
        and "Sing" in word.morph.get("Number")
        for word in group
    )


def is_neuter(token: Token) -> bool:
    """Whether a word is marked as neuter (it, itself, its)."""
    return "Neut" in token.morph.get("Gender")


def is_human(token: Token, human_nouns: Collection[str]) -> bool:
    """Whether a subject is one gendered person, never a plural.

    Args:
        human_nouns: lemmas of nouns for people; proper nouns, he and she are human anyway.
    """
    if "Plur" in token.morph.get("Number"):
        return False
    if token.pos_ == "NOUN":
        return token.lemma_.lower() in human_nouns
    return token.pos_ == "PROPN" or token.lower_ in ("he", "she")


def apply_filters(
    docs: Mapping[str, Doc], filters: Mapping[str, Callable[[Doc], bool]]
) -> tuple[dict[str, Doc], dict[str, str], pd.DataFrame]:
    """Apply named filters one after the other, then leave out repeated sentences.

    Args:
        docs: parsed sentences by id.
        filters: by name, whether a sentence stays.

    Returns:
        The documents that are left by id, the filter that took each of the others, and a table
        (step, sentences) of what was left after each step.
    """
    left, steps = dict(docs), [("sentences", len(docs))]
    lost: dict[str, str] = {}
    for name, keeps in filters.items():
        lost |= {key: name for key, doc in left.items() if not keeps(doc)}
        left = {key: doc for key, doc in left.items() if key not in lost}
        steps.append((name, len(left)))
    first = {doc.text: key for key, doc in reversed(left.items())}
    lost |= {key: "no duplicate" for key, doc in left.items() if first[doc.text] != key}
    left = {key: doc for key, doc in left.items() if key not in lost}
    steps.append(("no duplicate", len(left)))
    return left, lost, pd.DataFrame(steps, columns=["step", "sentences"])
