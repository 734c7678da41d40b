"""Which word of its sentence a gendered pronoun speaks of: one interface, rules over a parse, or clusters from a file.

A resolver is a function from a parsed sentence to clusters of mentions; a mention is a pair of positions, both included.
The rules come in two versions: "plain", a first attempt by binding and role, and "full", which also asks what a proper
noun is the name of, lets an object pronoun after a preposition of place speak of the subject, and looks further afield.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc, Token

from lib.core.errors import TouchstoneError
from lib.core.files import read_utf8
from lib.core.paths import material
from lib.language.lexicon import PRONOUNS, load_lexicon
from lib.language.names import first_names
from lib.language.parse import SUBJECTS, read_word_list

Span = tuple[int, int]
Clusters = list[list[Span]]
Resolver = Callable[[Doc], Clusters]

INDEFINITE = frozenset("someone somebody anyone anybody everyone everybody".split())
OBJECTS = frozenset({"obj", "dobj", "iobj", "dative"})
OBLIQUES = frozenset({"obl", "pobj", "nmod", "obl:agent", "agent", "obl:unmarked"})
POSSESSIVES = frozenset({"nmod:poss", "poss"})
RELATIVES = frozenset({"acl:relcl", "relcl"})
CLAUSES = (
    frozenset(
        {"advcl", "ccomp", "xcomp", "acl", "conj", "parataxis", "csubj", "pcomp", "advcl:relcl"}
    )
    | RELATIVES
)
INSIDE_NAME = frozenset({"flat", "flat:name", "compound", "goeswith", "nmod:desc"})
AGENT = re.compile(r"(?:[a-z]{3,}(?:ist|ian|eer|ologist)|[a-z]{2,}[^aeiou](?:er|or)|[a-z]{3,}ee)$")
PLACE = frozenset(
    "behind around beside near above below before after over under with against toward towards from on in off across past".split()
)
TITLES = frozenset(
    "mr mrs ms miss dr prof professor sir lady lord judge justice president senator captain general king queen".split()
)


class Wordlists(NamedTuple):
    """Nouns for a person of any gender, endings' exceptions, and proper nouns that name no person."""

    people: frozenset[str]
    not_people: frozenset[str]
    not_names: frozenset[str]


@cache
def load_wordlists() -> Wordlists:
    """The word lists of this repository."""
    folder = material("implicit_bias")
    lists = (
        read_word_list(folder / f"{name}.txt")
        for name in ("person_nouns", "not_person_nouns", "not_names")
    )
    return Wordlists(*lists)


def rule_resolver(version: str = "full", any_subject: bool = False) -> Resolver:
    """The rules as a resolver. `any_subject`: a clause's subject may be an antecedent whatever it is (a dog, a camera)."""
    if version not in ("plain", "full"):
        raise TouchstoneError(f"there is no version {version!r} of the rules; write plain or full")

    def resolve(doc: Doc) -> Clusters:
        """Each pronoun with its antecedent; pronouns of one antecedent, and its repetitions, in one cluster."""
        found: dict[int, list[Span]] = {}
        for token in doc:
            if (
                token.lower_ in PRONOUNS
                and (head := antecedent(token, version, any_subject)) is not None
            ):
                found.setdefault(head.i, [phrase(head)]).append((token.i, token.i))
        for i, spans in found.items():
            spans += [
                phrase(t)
                for t in doc
                if t.i > i
                and t.i not in found
                and t.pos_ == "NOUN"
                and t.lemma_ == doc[i].lemma_
                and any(c.lower_ == "the" for c in t.children)
            ]
        return [sorted(spans) for spans in found.values()]

    return resolve


def file_resolver(path: Path | str) -> Resolver:
    """Clusters that another system made: JSON lines `{"words": [...], "clusters": [[[start, end], ...], ...]}`.

    Sentences are found by their words; ends are included. Raises TouchstoneError, naming file and line, for a line that
    is not such an object or has a span outside its sentence, for a sentence that the file does not hold, and where no
    file is named or it is not there.
    """
    stored: dict[tuple[str, ...], Clusters] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            one = json.loads(line)
            words, clusters = (
                tuple(map(str, one["words"])),
                [[(int(a), int(b)) for a, b in c] for c in one["clusters"]],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise TouchstoneError(
                f'{path}, line {number}: not {{"words": [...], "clusters": [[[0, 1], [4, 4]]]}} ({error}); '
                "write one such object per sentence"
            ) from None
        if bad := [
            span for c in clusters for span in c if not 0 <= span[0] <= span[1] < len(words)
        ]:
            raise TouchstoneError(
                f"{path}, line {number}: the mention {list(bad[0])} lies outside the {len(words)} words; "
                "count from 0, both ends included"
            )
        stored[words] = clusters

    def resolve(doc: Doc) -> Clusters:
        """The clusters that the file holds for the sentence."""
        words = tuple(token.text for token in doc)
        if words not in stored:
            raise TouchstoneError(
                f"{path} holds no clusters for the sentence {doc.text[:60]!r}; resolve the sentences "
                "as they are split here (candidates.jsonl of stage 1)"
            )
        return stored[words]

    return resolve


def _lines(path: Path | str) -> list[str]:
    if not str(path).strip(". "):
        raise TouchstoneError(
            'resolver is "file", and clusters_file names none; name the file of JSON lines that your system wrote'
        )
    try:
        return read_utf8(Path(path)).splitlines()
    except OSError as error:
        raise TouchstoneError(
            f"the file of clusters {path} cannot be read ({error.strerror}); correct clusters_file"
        ) from None


def head_of(doc: Doc, span: Span) -> Token:
    """The head word of a mention: the one whose own head lies outside it."""
    inside = [
        t
        for t in doc[span[0] : span[1] + 1]
        if not span[0] <= t.head.i <= span[1] or t.head.i == t.i
    ]
    return inside[-1] if inside else doc[span[1]]


def phrase(head: Token) -> Span:
    """The noun phrase of a head without the clauses that hang from it."""
    inside = [head.i]
    for child in head.children:
        if child.i < head.i and child.dep_ not in CLAUSES | SUBJECTS | {
            "cc",
            "punct",
            "cop",
            "case",
            "prep",
            "mark",
            "advmod",
        }:
            inside.append(child.left_edge.i)
        elif child.i > head.i and child.dep_ in INSIDE_NAME:
            inside.append(child.right_edge.i)
    return min(inside), max(inside)


def antecedent(pronoun: Token, version: str = "full", any_subject: bool = False) -> Token | None:
    """The head word that a gendered pronoun speaks of within its sentence, or None.

    Reflexive: the subject of its clause. Possessive: that subject, then the nearest by role. Subject: a subject of
    another clause. Object: neither the subject nor another argument of its own verb. Before its noun (cataphora): the
    subject of the main clause.
    """
    subjects = {t.i for t in pronoun.doc if t.dep_ in SUBJECTS} if any_subject else set()
    gender = PRONOUNS[pronoun.lower_]
    fits = {
        t.i
        for t in pronoun.doc
        if t.i != pronoun.i
        and _agrees(t, gender)
        and (is_person(t, version) or t.i in subjects and t.pos_ in ("NOUN", "PROPN"))
    }
    return next((t for t in _preferred(pronoun, version) if t.i in fits), None)


def is_person(token: Token, version: str = "full") -> bool:
    """Whether a word is the head of an expression for one person."""
    low, lists = token.lower_, load_wordlists()
    if low in INDEFINITE:
        return True
    if "Plur" in token.morph.get("Number") or token.tag_ in ("NNS", "NNPS"):
        return False
    if token.dep_ in INSIDE_NAME and not (version == "full" and _may_be_subject(token)):
        return False
    if version == "full" and any(
        c.dep_ in SUBJECTS and c.lower_ in ("i", "you", "we") for c in token.children
    ):
        return False  # "I was a writer": nobody else is meant
    if token.pos_ == "PROPN" and token.text[:1].isupper():
        return (
            version == "plain"
            or low in lists.people
            or _is_agent(low, lists)
            or _is_name(token, lists)
        )
    if token.pos_ not in ("NOUN", "PROPN"):
        return False
    word = low.rpartition("-")[2]
    if word in lists.people or load_lexicon().find(token.text) is not None:
        return True
    return _is_agent(word, lists)


def _may_be_subject(token: Token) -> bool:
    """Whether a noun that the parser hung from the next word is rather its subject: "The miner coughs", read as two nouns."""
    head, verbless = token.head, not any(c.dep_ in SUBJECTS for c in token.head.children)
    return (
        token.dep_ == "compound"
        and head.i == token.i + 1
        and head.tag_ in ("NNS", "NN")
        and head.lower_.endswith("s")
        and verbless
    )


def _is_agent(word: str, lists: Wordlists) -> bool:
    return word not in lists.not_people | lists.not_names and AGENT.match(word) is not None


def _is_name(token: Token, lists: Wordlists) -> bool:
    """A proper noun that names a person: a first name or a title beside it, or nothing that speaks against it."""
    run = [token, *(c for c in token.children if c.dep_ in INSIDE_NAME)]
    words = {t.text.strip(".") for t in run}
    if (
        words & first_names()
        or any(w.lower() in TITLES for w in words)
        or token.ent_type_ == "PERSON"
    ):
        return True
    if any(w.lower() in lists.not_names for w in words) or token.ent_type_ in (
        "GPE",
        "ORG",
        "DATE",
        "LOC",
        "NORP",
    ):
        return False
    if any(w.isupper() or any(ch.isdigit() for ch in w) for w in words):
        return False
    before = {c.lower_ for c in token.children if c.dep_ in ("case", "prep", "det")} | {
        token.head.lower_ if token.dep_ == "pobj" else ""
    }
    return not before & {
        "in",
        "at",
        "on",
        "into",
        "near",
        "the",
        "a",
        "an",
        "of",
        "during",
        "since",
    }


def _agrees(token: Token, gender: str) -> bool:
    """Whether a word may be of the pronoun's gender: nouns with another gender are not."""
    found = load_lexicon().find(token.text)
    return token.lower_ not in PRONOUNS and (found is None or found[0] == gender)


def _preferred(pronoun: Token, version: str) -> Iterator[Token]:
    """The words of a sentence in the order in which they are tried as antecedents."""
    verb = clause_of(pronoun)
    chain = list(_subjects_above(verb, pronoun))
    own = chain[0] if chain else None
    left = sorted(
        (t for t in pronoun.doc if t.i < pronoun.i),
        key=lambda t: (t.dep_ not in SUBJECTS, pronoun.i - t.i),
    )
    if (
        pronoun.dep_ in POSSESSIVES
        or pronoun.lower_ in ("his", "hers")
        or pronoun.lower_.endswith("self")
    ):
        before = [
            t
            for t in verb.children
            if t.dep_ in OBJECTS and t.i < pronoun.i and t.i != pronoun.head.i
        ]
        first = [t for t in chain if not _above(t, pronoun)]
        yield from first[:1]
        yield from before if version == "full" else ()
        yield from first[1:]
        if not pronoun.lower_.endswith("self"):
            yield from (t for t in left if not _above(t, pronoun))
            yield from _cataphora(pronoun, verb)
        return
    if pronoun.dep_ in SUBJECTS:
        yield from (t for t in chain if t.i != pronoun.i)
        yield from (t for t in left if not _governs(verb, t) or _clause_between(t, verb))
        yield from _cataphora(pronoun, verb)
        return
    barred = {t.i for t in verb.children if t.dep_ in OBJECTS | OBLIQUES} | (
        {own.i} if own is not None else set()
    )
    if version == "full" and _in_place(pronoun):
        barred -= {own.i} if own is not None else set()
        barred -= {t.i for t in verb.children if t.dep_ in OBJECTS and t.i < pronoun.i}
    yield from (t for t in chain if t.i not in barred)
    yield from (t for t in left if t.i not in barred and not _above(t, pronoun))


def clause_of(token: Token) -> Token:
    """The predicate of the clause that a word stands in."""
    for t in (token, *token.ancestors):
        if t.dep_ in CLAUSES and (
            t.dep_ != "conj"
            or t.pos_ in ("VERB", "AUX")
            or any(c.dep_ in SUBJECTS for c in t.children)
        ):
            return t
        if t.dep_ in ("ROOT", "root"):
            return t
    return token.head


def _subjects_above(verb: Token, pronoun: Token) -> Iterator[Token]:
    """The subject of a clause, said or understood, then those of the clauses around it."""
    seen: set[int] = set()
    while verb.i not in seen:
        seen.add(verb.i)
        subject = next((c for c in verb.children if c.dep_ in SUBJECTS and c.i != pronoun.i), None)
        if (
            subject is not None
            and subject.lower_ in ("who", "that", "which")
            and verb.dep_ in RELATIVES
        ):
            yield verb.head
        elif subject is not None:
            yield subject
            yield from (c for c in subject.children if c.dep_ == "conj")
        elif verb.dep_ in ("acl", *RELATIVES):
            yield verb.head
        if verb.head.i == verb.i:
            return
        verb = clause_of(verb.head)


def _cataphora(pronoun: Token, verb: Token) -> Iterator[Token]:
    """The subject of the main clause after a pronoun in a clause or phrase that goes before it."""
    root = next(t for t in pronoun.doc if t.head.i == t.i)
    subject = next((c for c in root.children if c.dep_ in SUBJECTS), None)
    if (
        subject is not None
        and subject.i > pronoun.i
        and (verb.i != root.i or not _above(subject, pronoun))
    ):
        yield subject


def _above(token: Token, other: Token) -> bool:
    """Whether a word governs another: "coach" in "his coach"."""
    return (
        token.i != other.i
        and token.is_ancestor(other)
        and token.pos_ not in ("VERB", "AUX")
        and not _clause_between(other, token)
    )


def _governs(verb: Token, token: Token) -> bool:
    return verb.i != token.i and verb.is_ancestor(token)


def _clause_between(token: Token, top: Token) -> bool:
    """Whether a clause of its own lies between a word and one above it."""
    for t in (token, *token.ancestors):
        if t.i == top.i:
            return False
        if t.dep_ in CLAUSES:
            return True
    return False


def _in_place(pronoun: Token) -> bool:
    """Whether a pronoun stands after a preposition of place: "a boy with a dog behind him"."""
    case = [c.lower_ for c in pronoun.children if c.dep_ in ("case", "prep")] or [
        pronoun.head.lower_
    ]
    return bool(set(case) & PLACE)
