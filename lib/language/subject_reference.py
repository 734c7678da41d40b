"""Which gendered words of a sentence speak of its grammatical subject (the set D_S of GECO).

The subject's head is found in the parse (`subject_head`). Every other gendered word of the
subject's gender is a candidate, described by features of its surroundings: its form, who is the
subject of its clause, which kind of clause that is, who else of the same gender was named before. A
linear score over these features decides, from left to right, so that an earlier decision counts in
a later one. The weights were fitted on the training split of GECO alone (`tools/fit_annotator.py
reference`); they hold no word of its text.
"""

from collections.abc import Collection, Mapping

from spacy.tokens import Doc, Token

from .dependencies import (
    CLAUSE_KINDS,
    COARSE,
    ROOTS,
    SUBJECTS,
    root_of,
    subject_below,
    subject_of,
)
from .lexicon import PRONOUNS, Gender
from .word_lists import load_weights, weighted_sum

_CASE_OF_FORM = {
    "he": "nom",
    "she": "nom",
    "him": "acc",
    "his": "poss",
    "hers": "poss",
    "himself": "refl",
    "herself": "refl",
}
_IN_APPOSITION = frozenset({"flat", "compound", "appos", "nmod", "flat:name", "nmod:desc"})
_SHARE_A_SUBJECT = frozenset({"conj", "xcomp", "advcl", "acl", "pcomp"})


def subject_head(doc: Doc, people: Collection[int]) -> int:
    """The position of the main subject's head word.

    Args:
        people: the positions of gendered words and names. Where the main clause's subject is none
            of them, the first of them that is a subject takes its place.
    """
    subject = subject_of(doc)
    if subject is not None and (subject.i in people or _title_of(subject, people)):
        return subject.i
    for i in sorted(people):
        if doc[i].dep_ in SUBJECTS or doc[i].lower_ in ("he", "she"):
            return i
    return subject.i if subject is not None else min(people, default=0)


def subject_chain(
    doc: Doc,
    subject: int,
    genders: Mapping[int, Gender],
    names: Collection[int],
    weights: Mapping[str, float] | None = None,
) -> set[int]:
    """The positions that speak of the subject, itself included if it has a gender or is a name.

    Args:
        subject: the position of the subject's head (`subject_head`).
        genders: the gendered words by position.
        names: the positions of names.
        weights: by name of feature; the fitted ones if none are given.
    """
    weights = load_weights("reference_weights") if weights is None else weights
    chain = seed_chain(doc, subject, genders, names)
    gender = next((genders[i] for i in sorted(chain) if i in genders), None)
    for i in candidates(genders, chain, None):
        # Until a word of the chain has told the gender, words of both may join it.
        is_open = gender in (None, genders[i])
        if is_open and weighted_sum(weights, describe(doc, i, subject, chain, genders)) > 0:
            chain.add(i)
            gender = gender or genders[i]
    return chain


def seed_chain(
    doc: Doc, subject: int, genders: Mapping[int, Gender], names: Collection[int]
) -> set[int]:
    """The subject's own words: its head if that carries gender or is a name, else its title."""
    known = set(genders) | set(names)
    chain = {subject} & known
    for step in (-1, 1):  # the other words of a name
        i = subject + step
        while subject in names and i in names:
            chain.add(i)
            i += step
    return chain or _title_of(doc[subject], known)


def candidates(
    genders: Mapping[int, Gender], chain: Collection[int], gender: Gender | None
) -> list[int]:
    """The positions to decide on, left to right: gendered words outside `chain`.

    Args:
        gender: the subject's; None (a name leaves it open) takes words of both.
    """
    return [i for i in sorted(genders) if i not in chain and gender in (None, genders[i])]


def describe(
    doc: Doc, i: int, subject: int, chain: Collection[int], genders: Mapping[int, Gender]
) -> list[str]:
    """The names of the features that hold of the candidate at position i; "a*b": both hold.

    The first factor of a product is the candidate's form (noun, or the case of a pronoun).
    """
    token, gender = doc[i], genders[i]
    verb, clause = _clause(token)
    form = _form(token)
    owner = _owner(verb, token, chain, genders)
    earlier = [j for j in sorted(genders) if j < i]
    same_gender = [j for j in earlier if genders[j] == gender]
    n_rivals = sum(j not in chain for j in same_gender)
    rivals = ("no rival", "one rival", "rivals")[min(n_rivals, 2)]
    recent = "none" if not same_gender else "chain" if same_gender[-1] in chain else "other"
    role = COARSE.get(token.dep_, token.dep_)
    held = COARSE.get(token.head.dep_, token.head.dep_) if form == "poss" else "-"
    side = "before" if i < subject else "after"
    kin = "kin" if form == "poss" and token.head.i in genders else "-"
    single = [
        owner,
        clause,
        role,
        held,
        rivals,
        recent,
        side,
        _nominal(token, subject) if form == "noun" else "-",
        kin,
        "again" if any(doc[j].lower_ == token.lower_ for j in earlier) else "first",
        f"left {token.nbor(-1).tag_ if i else 'start'}",
    ]
    pairs = [
        (owner, clause),
        (owner, rivals),
        (recent, rivals),
        (clause, rivals),
        (held, owner),
        (side, held),
        (owner, recent),
        (role, owner),
        (side, clause),
        (kin, rivals),
    ]
    products = [*single, *(f"{a}*{b}" for a, b in pairs)]
    return ["bias", form, *(f"{form}*{name}" for name in products)]


def _form(token: Token) -> str:
    if token.lower_ not in PRONOUNS:
        return "noun"
    return _CASE_OF_FORM.get(token.lower_, "poss" if token.tag_ == "PRP$" else "acc")


def _title_of(subject: Token, known: Collection[int]) -> set[int]:
    """The title of a subject that is a name: "Mr." before "Darcy"."""
    doc = subject.doc
    beside = range(max(0, subject.i - 2), min(len(doc), subject.i + 2))
    nouns = [doc[i] for i in beside if i in known and doc[i].lower_ not in PRONOUNS]
    return {
        noun.i
        for noun in nouns
        if noun.text[:1].isupper() or noun.head.i == subject.i and noun.dep_ in _IN_APPOSITION
    }


def _clause(token: Token) -> tuple[Token, str]:
    """The head of the clause that a word is in, and the kind of the clause."""
    for word in (token, *token.ancestors):
        if word.dep_ in CLAUSE_KINDS and (word.i != token.i or token.dep_ in ROOTS):
            return word, CLAUSE_KINDS[word.dep_]
    return root_of(token.doc), "root"


def _owner(verb: Token, token: Token, chain: Collection[int], genders: Mapping[int, Gender]) -> str:
    """Whose clause it is by its subject: the word's own, the chain's, a rival's, unsaid, ..."""
    head = verb
    # A clause without a subject of its own has that of the clause above it.
    while (subject := subject_below(head)) is None:
        if head.head.i == head.i or head.dep_ not in _SHARE_A_SUBJECT:
            return "none"
        head = head.head
    if subject.i == token.i:
        return "own"
    if subject.i in chain:
        return "chain"
    if subject.lower_ in ("who", "which", "that"):
        return "relative"
    if subject.i not in genders:
        return "thing"
    return "rival" if genders[subject.i] == genders[token.i] else "other gender"


def _nominal(token: Token, subject: int) -> str:
    """How a noun is tied to the subject: its predicate, a part of it, or not at all."""
    is_attribute = token.dep_ == "attr"
    if is_attribute or any(child.dep_ == "cop" for child in token.children):
        owner = token.head if is_attribute else token
        is_its = any(child.i == subject for child in owner.children)
        return "predicate" if is_its else "predicate elsewhere"
    if token.head.i == subject:
        return f"part {token.dep_}"
    return "predicate" if token.dep_ in ROOTS else "elsewhere"
