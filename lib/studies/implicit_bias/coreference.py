"""Which word of its sentence a gendered pronoun speaks of, by rules over a parse.

A resolver is a function from a parsed sentence to clusters of mentions; a mention is a pair of
positions, both included. The rules come in two versions: "plain", a first attempt by binding and
role, and "full", which also asks what a proper noun is the name of, lets an object pronoun after a
preposition of place speak of the subject, and looks further afield.
"""

import re
from collections.abc import Callable, Iterator

from spacy.tokens import Doc, Token

from ...core.errors import TouchstoneError
from ...language.dependencies import (
    CLAUSES,
    INSIDE_NAME,
    OBJECTS,
    OBLIQUES,
    POSSESSIVES,
    RELATIVE_CLAUSES,
    ROOTS,
    SUBJECTS,
    root_of,
    subject_below,
)
from ...language.lexicon import PRONOUNS, load_lexicon
from ...language.word_lists import word_list

Span = tuple[int, int]
Clusters = list[list[Span]]
Resolver = Callable[[Doc], Clusters]

_INDEFINITE = frozenset("someone somebody anyone anybody everyone everybody".split())
_NOT_IN_PHRASE = CLAUSES | SUBJECTS | {"cc", "punct", "cop", "case", "prep", "mark", "advmod"}
# The endings of nouns for somebody who does something (baker, artist, employee).
_AGENT = re.compile(r"(?:[a-z]{3,}(?:ist|ian|eer|ologist)|[a-z]{2,}[^aeiou](?:er|or)|[a-z]{3,}ee)$")
_PREPOSITIONS_OF_PLACE = frozenset(
    "behind around beside near above below before after over under with against toward towards "
    "from on in off across past".split()
)
_BEFORE_THINGS = frozenset("in at on into near the a an of during since".split())
_NOT_PEOPLE = frozenset({"GPE", "ORG", "DATE", "LOC", "NORP"})
_TITLES = frozenset(
    "mr mrs ms miss dr prof professor sir lady lord judge justice president senator captain "
    "general king queen".split()
)


def rule_resolver(version: str = "full", any_subject: bool = False) -> Resolver:
    """The rules as a resolver: each pronoun with its antecedent, and what else speaks of it.

    Args:
        version: "full" or "plain".
        any_subject: a clause's subject may be an antecedent whatever it is (a dog, a camera).

    Raises:
        TouchstoneError: there is no such version.
    """
    if version not in ("plain", "full"):
        raise TouchstoneError(f"there is no version {version!r} of the rules; write plain or full")

    def resolve(doc: Doc) -> Clusters:
        """Pronouns of one antecedent, and its repetitions with "the", in one cluster."""
        clusters: dict[int, list[Span]] = {}
        for token in doc:
            if token.lower_ not in PRONOUNS:
                continue
            head = antecedent(token, version, any_subject)
            if head is not None:
                clusters.setdefault(head.i, [phrase(head)]).append((token.i, token.i))
        for i, spans in clusters.items():
            spans += [
                phrase(token)
                for token in doc[i + 1 :]
                if token.i not in clusters and _repeats(token, doc[i])
            ]
        return [sorted(spans) for spans in clusters.values()]

    return resolve


def _repeats(token: Token, head: Token) -> bool:
    """Whether a word is the same noun as a head, with "the" before it."""
    return (
        token.pos_ == "NOUN"
        and token.lemma_ == head.lemma_
        and any(child.lower_ == "the" for child in token.children)
    )


def head_of(doc: Doc, span: Span) -> Token:
    """The head word of a mention: the last one whose own head lies outside it (or is itself)."""
    start, end = span
    for token in reversed(list(doc[start : end + 1])):
        if not start <= token.head.i <= end or token.head.i == token.i:
            return token
    return doc[end]


def phrase(head: Token) -> Span:
    """The noun phrase of a head without the clauses that hang from it."""
    start = end = head.i
    for child in head.children:
        if child.i < head.i and child.dep_ not in _NOT_IN_PHRASE:
            start = min(start, child.left_edge.i)
        elif child.i > head.i and child.dep_ in INSIDE_NAME:
            end = max(end, child.right_edge.i)
    return start, end


def antecedent(pronoun: Token, version: str = "full", any_subject: bool = False) -> Token | None:
    """The head word that a gendered pronoun speaks of within its sentence, or None.

    Reflexive: the subject of its clause. Possessive: that subject, then the nearest by role.
    Subject: a subject of another clause. Object: neither the subject nor another argument of its
    own verb. Before its noun (cataphora): the subject of the main clause.

    Args:
        version, any_subject: as in `rule_resolver`.
    """
    gender = PRONOUNS[pronoun.lower_]
    for token in _preferred(pronoun, version):
        is_noun_subject = token.dep_ in SUBJECTS and token.pos_ in ("NOUN", "PROPN")
        if (
            token.i != pronoun.i
            and _may_have(token, gender)
            and (is_person(token, version) or (any_subject and is_noun_subject))
        ):
            return token
    return None


def is_person(token: Token, version: str = "full") -> bool:
    """Whether a word is the head of an expression for one person."""
    low, is_full = token.lower_, version == "full"
    if low in _INDEFINITE:
        return True
    if "Plur" in token.morph.get("Number") or token.tag_ in ("NNS", "NNPS"):
        return False
    if token.dep_ in INSIDE_NAME and not (is_full and _may_be_subject(token)):
        return False
    if is_full and any(
        child.dep_ in SUBJECTS and child.lower_ in ("i", "you", "we") for child in token.children
    ):
        return False  # "I was a writer": nobody else is meant
    if token.pos_ == "PROPN" and token.text[:1].isupper():
        is_noun = low in word_list("person_nouns") or _is_agent(low)
        return not is_full or is_noun or _is_name(token)
    if token.pos_ not in ("NOUN", "PROPN"):
        return False
    word = low.rpartition("-")[2]
    is_listed = word in word_list("person_nouns") or load_lexicon().find(token.text) is not None
    return is_listed or _is_agent(word)


def _may_be_subject(token: Token) -> bool:
    """Whether a noun hung from the next one is its subject: "The miner coughs", read as nouns."""
    head = token.head
    return (
        token.dep_ == "compound"
        and head.i == token.i + 1
        and head.tag_ in ("NNS", "NN")
        and head.lower_.endswith("s")
        and subject_below(head) is None
    )


def _is_agent(word: str) -> bool:
    is_exception = word in word_list("not_person_nouns") or word in word_list("not_names")
    return not is_exception and _AGENT.match(word) is not None


def _is_name(token: Token) -> bool:
    """A proper noun that names a person: by a first name or title, or if nothing forbids it."""
    parts = [token, *(child for child in token.children if child.dep_ in INSIDE_NAME)]
    words = {part.text.strip(".") for part in parts}
    lower = {word.lower() for word in words}
    if words & word_list("first_names") or lower & _TITLES or token.ent_type_ == "PERSON":
        return True
    if lower & word_list("not_names") or token.ent_type_ in _NOT_PEOPLE:
        return False
    if any(word.isupper() or any(char.isdigit() for char in word) for word in words):
        return False
    before = {child.lower_ for child in token.children if child.dep_ in ("case", "prep", "det")}
    if token.dep_ == "pobj":
        before.add(token.head.lower_)
    return not before & _BEFORE_THINGS


def _may_have(token: Token, gender: str) -> bool:
    """Whether a word may be of the pronoun's gender: no pronoun, and no noun of another gender."""
    entry = load_lexicon().find(token.text)
    return token.lower_ not in PRONOUNS and (entry is None or entry[0] == gender)


def _preferred(pronoun: Token, version: str) -> Iterator[Token]:
    """The words of a sentence in the order in which they are tried as antecedents."""
    verb = _clause_of(pronoun)
    subjects = list(_subjects_above(verb, pronoun))
    left = sorted(
        pronoun.doc[: pronoun.i], key=lambda token: (token.dep_ not in SUBJECTS, -token.i)
    )
    is_reflexive = pronoun.lower_.endswith("self")
    if is_reflexive or pronoun.dep_ in POSSESSIVES or pronoun.lower_ in ("his", "hers"):
        outside = [token for token in subjects if not _above(token, pronoun)]
        yield from outside[:1]
        if version == "full":
            yield from (
                child
                for child in verb.children
                if child.dep_ in OBJECTS and child.i < pronoun.i and child.i != pronoun.head.i
            )
        yield from outside[1:]
        if not is_reflexive:
            yield from (token for token in left if not _above(token, pronoun))
            yield from _cataphora(pronoun, verb)
    elif pronoun.dep_ in SUBJECTS:
        yield from (token for token in subjects if token.i != pronoun.i)
        yield from (
            token for token in left if not verb.is_ancestor(token) or _clause_between(token, verb)
        )
        yield from _cataphora(pronoun, verb)
    else:
        barred = _barred_for_object(pronoun, verb, subjects[:1], version)
        yield from (token for token in subjects if token.i not in barred)
        yield from (token for token in left if token.i not in barred and not _above(token, pronoun))


def _barred_for_object(pronoun: Token, verb: Token, subject: list[Token], version: str) -> set[int]:
    """The arguments of an object pronoun's own verb, of which it cannot speak.

    In the full version a pronoun after a preposition of place may: "a boy with a dog behind him".
    """
    in_place = version == "full" and _in_place(pronoun)
    barred = set() if in_place else {token.i for token in subject}
    for child in verb.children:
        is_earlier_object = child.dep_ in OBJECTS and child.i < pronoun.i
        if child.dep_ in OBJECTS | OBLIQUES and not (in_place and is_earlier_object):
            barred.add(child.i)
    return barred


def _clause_of(token: Token) -> Token:
    """The predicate of the clause that a word stands in."""
    for word in (token, *token.ancestors):
        is_predicate = word.pos_ in ("VERB", "AUX") or subject_below(word) is not None
        if word.dep_ in ROOTS or (word.dep_ in CLAUSES and (word.dep_ != "conj" or is_predicate)):
            return word
    return token.head


def _subjects_above(verb: Token, pronoun: Token) -> Iterator[Token]:
    """The subject of a clause, said or understood, then those of the clauses around it."""
    seen: set[int] = set()
    while verb.i not in seen:
        seen.add(verb.i)
        subject = next(
            (child for child in verb.children if child.dep_ in SUBJECTS and child.i != pronoun.i),
            None,
        )
        is_relative = verb.dep_ in RELATIVE_CLAUSES
        if subject is None:
            if verb.dep_ == "acl" or is_relative:
                yield verb.head
        elif is_relative and subject.lower_ in ("who", "that", "which"):
            yield verb.head
        else:
            yield subject
            yield from (child for child in subject.children if child.dep_ == "conj")
        if verb.head.i == verb.i:
            return
        verb = _clause_of(verb.head)


def _cataphora(pronoun: Token, verb: Token) -> Iterator[Token]:
    """The main clause's subject after a pronoun in a clause or phrase that goes before it."""
    root = root_of(pronoun.doc)
    subject = subject_below(root)
    if subject is None or subject.i <= pronoun.i:
        return
    if verb.i != root.i or not _above(subject, pronoun):
        yield subject


def _above(token: Token, other: Token) -> bool:
    """Whether a word governs another: "coach" in "his coach"."""
    return (
        token.i != other.i
        and token.is_ancestor(other)
        and token.pos_ not in ("VERB", "AUX")
        and not _clause_between(other, token)
    )


def _clause_between(token: Token, top: Token) -> bool:
    """Whether a clause of its own lies between a word and one above it."""
    for word in (token, *token.ancestors):
        if word.i == top.i:
            return False
        if word.dep_ in CLAUSES:
            return True
    return False


def _in_place(pronoun: Token) -> bool:
    """Whether a pronoun stands after a preposition of place: "a boy with a dog behind him"."""
    before = {child.lower_ for child in pronoun.children if child.dep_ in ("case", "prep")}
    return not _PREPOSITIONS_OF_PLACE.isdisjoint(before or {pronoun.head.lower_})
