"""Dependency labels by their meaning, and the steps through a parse that all rules here take.

Two schemes are understood everywhere: Universal Dependencies ("UD", universaldependencies.org:
nsubj:pass, aux:pass, and a copula that hangs below its predicate) and the CLEAR labels of spaCy's
own English pipelines (nsubjpass, auxpass, the copula as head). Each set holds the labels of both
schemes, so that a rule which asks for membership works on either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who asks for the labels alone need not load spaCy
    from spacy.tokens import Doc, Token

ROOTS = frozenset({"ROOT", "root"})
SUBJECTS = frozenset({"nsubj", "nsubj:pass", "nsubjpass"})
OBJECTS = frozenset({"obj", "dobj", "iobj", "dative"})
OBLIQUES = frozenset({"obl", "pobj", "nmod", "obl:agent", "agent", "obl:unmarked"})
POSSESSIVES = frozenset({"nmod:poss", "poss"})
FINITE_HELPERS = frozenset({"cop", "aux", "aux:pass", "auxpass"})
INSIDE_NAME = frozenset({"flat", "flat:name", "compound", "goeswith", "nmod:desc"})
RELATIVE_CLAUSES = frozenset({"acl:relcl", "relcl"})
EMBEDDED_CLAUSES = frozenset({"ccomp", "advcl"})
CLAUSES = (
    EMBEDDED_CLAUSES
    | RELATIVE_CLAUSES
    | {"xcomp", "acl", "conj", "parataxis", "csubj", "pcomp", "advcl:relcl"}
)
# The names that the fitted weights of `subject_reference` have for clauses and for roles.
CLAUSE_KINDS = {
    **{label: label for label in ("advcl", "ccomp", "xcomp", "acl", "conj", "csubj", "parataxis")},
    **dict.fromkeys(RELATIVE_CLAUSES, "relcl"),
    **dict.fromkeys(ROOTS, "root"),
    "pcomp": "advcl",
    "dep": "parataxis",
}
COARSE = {
    "dobj": "obj",
    "pobj": "obl",
    "poss": "nmod:poss",
    "nsubjpass": "nsubj",
    "nsubj:pass": "nsubj",
    "dative": "iobj",
    "attr": "pred",
    "oprd": "xcomp",
    "npadvmod": "obl",
    "nmod": "obl",
    "obl:agent": "obl",
    "obl:unmarked": "obl",
}


def root_of(doc: Doc) -> Token:
    """The head of the sentence: of "She is happy" the predicate in UD, the verb in CLEAR."""
    return next(token for token in doc if token.head.i == token.i)


def subject_below(token: Token) -> Token | None:
    """The first subject that hangs from a word, or None."""
    return next((child for child in token.children if child.dep_ in SUBJECTS), None)


def subject_of(doc: Doc) -> Token | None:
    """The head word of the main clause's subject, active or passive, or None.

    UD calls the widow of "There is a widow" a subject and CLEAR does not; both give None here.
    """
    root = root_of(doc)
    if any(child.dep_ == "expl" for child in root.children):
        return None
    return subject_below(root)
