"""From a parsed sentence to its gender label: which words change with the gender of its people, and into what.

GECO (arXiv 2406.11547, appendix A.1.3) was labelled by hand. Here the same labels follow from a lexicon, a dependency
parse (UD or CLEAR labels) and rules: every gendered pronoun and noun (D_A), those of the grammatical subject and of the
pronouns that refer to it (D_S, `lib.language.subject_reference`), and the verbs that must agree once a subject becomes "they".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Literal

from spacy.tokens import Doc

from lib.language.labels import Label, Replacement
from lib.language.lexicon import (
    NOMINATIVE,
    PRONOUNS,
    Gender,
    Lexicon,
    like,
    load_lexicon,
    pronoun_forms,
)
from lib.language.names import name_replacements
from lib.language.possessive_rules import is_possessive
from lib.language.subject_reference import subject_chain, subject_head
from lib.language.verbs import Agreement, agreeing_verbs

Names = Literal["replace", "keep"]
VERBS_TOO = frozenset(
    "miss master mother father lord lady host guy groom dame nurse king queen man".split()
)


def gendered_words(doc: Doc, lexicon: Lexicon) -> dict[int, tuple[Gender, tuple[str, str, str]]]:
    """Every gendered pronoun, noun, adjective and title of a sentence: its gender and its three forms, by position."""
    found: dict[int, tuple[Gender, tuple[str, str, str]]] = {}
    for token in doc:
        word = token.text.strip()
        if forms := pronoun_forms(word, is_possessive(token)):
            found[token.i] = PRONOUNS[word.lower()], forms
        elif (entry := lexicon.find(word)) and not (
            word.islower() and word in VERBS_TOO and token.tag_.startswith(("VB", "UH"))
        ):
            found[token.i] = entry
    return found


def articles(doc: Doc, changes: Mapping[int, Replacement]) -> dict[int, Replacement]:
    """ "A" or "an" right before an altered word, where the forms ask for different ones (an uncle, a parent's sibling)."""
    found: dict[int, Replacement] = {}
    for i, forms in changes.items():
        if i and forms is not None and doc[i - 1].lower_ in ("a", "an"):
            kinds = [
                "an" if re.match(r"(?!us|uni|eu|one)[aeiou]|heir|hono", word.lower()) else "a"
                for word in forms
            ]
            if len(set(kinds)) == 2:
                found[i - 1] = tuple(
                    like(doc[i - 1].text.title(), kind) if doc[i - 1].text[0].isupper() else kind
                    for kind in kinds
                )  # type: ignore[assignment]
    return found


def _named_with(i: int, changes: Mapping[int, Replacement]) -> int:
    """The first word of the name that a deleted word belongs to: in "Ann Lee reads", the verb hangs from Lee."""
    while i in changes and changes[i] is None:
        i -= 1
    return i


def annotate_sentence(
    doc: Doc,
    name: str = "",
    lexicon: Lexicon | None = None,
    agreement: Agreement = "full",
    names: Names = "replace",
    known_names: Collection[str] = (),
) -> Label:
    """The label of one parsed sentence: D_A ("all"), D_S ("subj"), its names and its subject.

    `names`: whether names become pronouns (the published GECO has no first names left: "keep"). `known_names`: further
    words that are names of people in this text. A sentence with nobody in it has empty labels.
    """
    lexicon = lexicon or load_lexicon()
    words = gendered_words(doc, lexicon)
    named = name_replacements(doc, lexicon, known_names, words) if names == "replace" else {}
    subject = subject_head(doc, words.keys() | named.keys())
    chain = subject_chain(doc, subject, {i: entry[0] for i, entry in words.items()}, named.keys())
    scopes: dict[str, dict[int, Replacement]] = {}
    for scope, keeps in (("all", set(words) | set(named)), ("subj", chain)):
        changes: dict[int, Replacement] = {
            i: entry[1] for i, entry in words.items() if i in keeps and i not in named
        }
        changes |= {i: forms for i, forms in named.items() if i in keeps}
        theirs = {
            i
            for i, forms in changes.items()
            if forms is not None and forms[2].lower() == NOMINATIVE[2]
        }
        theirs |= {
            i for i, forms in changes.items() if forms is None and _named_with(i, changes) in theirs
        }
        follow = articles(doc, changes) if agreement == "full" else {}
        others = {
            i
            for i, forms in changes.items()
            if forms is not None and forms[2].lower() in ("them", "their", "theirs")
        }
        scopes[scope] = agreeing_verbs(doc, theirs, agreement, others) | follow | changes
    return Label(
        name,
        tuple(token.text.strip() for token in doc),
        subject,
        dict.fromkeys(named, "name"),
        dict(sorted(scopes["subj"].items())),
        dict(sorted(scopes["all"].items())),
    )
