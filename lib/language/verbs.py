"""Verbs that agree with "they": which ones change once a pronoun does, and into what (UD and CLEAR labels)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache
from typing import Literal

from spacy.tokens import Doc, Token

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.labels import Replacement
from lib.language.parse import FINITE_HELPERS, SUBJECTS, read_word_list

Agreement = Literal["full", "adjacent"]
FINITE = frozenset({"VBZ", "VBD", "VBP", "MD"})
PHRASE = frozenset({"IN", "DT", "PRP$", "JJ", "JJS", "NN", "NNS", "NNP", "RB", "CD"})
INNER = frozenset({"ccomp", "advcl"})
RELATIVE = frozenset({"acl:relcl", "relcl"})
BE_HAVE_DO = {"is": "are", "was": "were", "has": "have", "does": "do"}
THIRD_PERSON = (
    (r"^(?!bel|unt|underl)(..+)ies$", r"\1y"),
    (r"^(?!.*(?:^|tooth|heart|head)ach)(.*(?:ss|sh|ch|x|zz|tz|[^h]o))es$", r"\1"),
    (r"^(.+)s$", r"\1"),
)


def they_form(verb: str) -> str:
    """A verb in the third person singular as it stands after "they"; other words come back as they are.

    >>> [they_form(verb) for verb in ("studies", "dies", "goes", "Catches", "chooses", "is", "WAS", "went")]
    ['study', 'die', 'go', 'Catch', 'choose', 'are', 'WERE', 'went']
    """
    low = verb.lower()
    stem = BE_HAVE_DO.get(low)
    for pattern, replacement in () if stem else THIRD_PERSON:
        if re.match(pattern, low) and not low.endswith("ss"):
            stem = re.sub(pattern, replacement, low)
            break
    if stem is None:
        return verb
    return (
        stem.upper()
        if verb.isupper() and len(verb) > 1
        else stem.capitalize()
        if verb[:1].isupper()
        else stem
    )


def agreeing_verbs(
    doc: Doc, subjects: Collection[int], agreement: Agreement, others: Collection[int] = ()
) -> dict[int, Replacement]:
    """The verbs that change once the words at `subjects` become "they", with their three forms.

    `full`: the finite verb of each, and of what is coordinated with it or tells of it ("who is"). `adjacent`: what the
    published GECO does, which looks at the word beside any form of "they" (`others`: them, their), and at no grammar.
    """
    if agreement not in ("full", "adjacent"):
        raise TouchstoneError(
            f"agreement is {agreement!r}; choose full, or adjacent (the rule of the published GECO)"
        )
    if agreement == "adjacent":
        beside = {
            word.i
            for i in {*subjects, *others}
            for word in _beside_as_published(doc[i], i in subjects)
        }
        return {i: (doc[i].text, doc[i].text, _cut(doc[i].text)) for i in sorted(beside)}
    verbs = {
        verb.i
        for i in subjects
        for verb in (*_beside(doc[i]), *_governed(doc[i]), *_past_adverbs(doc[i]))
    }
    verbs |= _inherited(doc, subjects, verbs)
    return {i: (doc[i].text, doc[i].text, _plural(doc[i])) for i in sorted(verbs)}


@cache
def _known_beside() -> frozenset[str]:
    return read_word_list(material("geco") / "adjacent_words.txt")


def _beside_as_published(pronoun: Token, is_subject: bool) -> Iterable[Token]:
    """The word that GECO's program cuts beside a form of "they": known words as it did, others if they are verbs of "they"."""
    known, right = _known_beside(), list(pronoun.doc[pronoun.i + 1 : pronoun.i + 3])
    if right and right[0].tag_.startswith(("RB", "JJ")) and f"-{right[0].lower_}" not in known:
        right.pop(0)
    if right and right[0].lower_ in known:
        yield right[0]
    elif is_subject:
        yield from (verb for verb in _beside(pronoun) if f"-{verb.lower_}" not in known)


def _cut(word: str) -> str:
    return they_form(word) if they_form(word) != word else word[:-1]


def _plural(verb: Token) -> str:
    """The form after "they"; of "'s" that of "is" or, before a participle that is not passive, of "has"."""
    if verb.lower_ in ("'s", "’s"):
        after = next(
            (token for token in verb.doc[verb.i + 1 :] if not token.tag_.startswith("RB")), None
        )
        has = (
            verb.dep_ == "aux"
            and verb.head.tag_ in ("VBN", "VBD")
            or after is not None
            and after.lower_ in ("been", "got", "had")
        )
        return verb.text[0] + ("ve" if has else "re")
    return they_form(verb.text)


def _inflected(token: Token) -> bool:
    ends_in_s = re.search("[^suoi]s$" if token.tag_ != "VBZ" else "s$", token.lower_) is not None
    return token.lower_ in ("is", "was", "has", "does") or (
        token.tag_ in ("VBZ", "VB", "VBP") and ends_in_s
    )


def _beside(subject: Token) -> Iterable[Token]:
    """The next word, or the one after an adverb or adjective, if it is a verb that changes."""
    right = subject.doc[subject.i + 1 : subject.i + 3]
    is_he = subject.lower_ in ("he", "she")
    if len(right) and (_inflected(right[0]) or (is_he and _mistaken(right[0]))):
        yield right[0]
    elif (
        len(right) > 1
        and right[0].tag_.startswith(("RB", "JJ"))
        and (
            _inflected(right[1])
            or (is_he and right[0].tag_.startswith("RB") and _mistaken(right[1]))
        )
    ):
        yield right[1]


def _past_adverbs(subject: Token) -> Iterable[Token]:
    """The verb after several adverbs, after a relative "who", and behind a phrase between commas."""
    words = list(subject.doc[subject.i + 1 :])
    while words and words[0].tag_.startswith("RB"):
        words.pop(0)
    if words and words[0].text == ",":
        words.pop(0)
        if words and words[0].lower_ == "who":
            yield from _past_adverbs(words[0])
        words = words[
            next((k for k, word in enumerate(words) if word.text == ","), len(words)) + 1 :
        ]
        while words and words[0].tag_.startswith("RB"):
            words.pop(0)
    if words and (
        _inflected(words[0])
        or (words[0].tag_ == "NNS" and subject.lower_ in ("he", "she") and _mistaken(words[0]))
    ):
        yield words[0]


@cache
def _verb_forms() -> frozenset[str]:
    return read_word_list(material("geco") / "verb_forms.txt")


def _mistaken(token: Token) -> bool:
    """A verb that a small tagger takes for a noun in the plural ("she quickly recovers")."""
    by_shape = (
        token.tag_.startswith(("NN", "VB", "JJ"))
        and token.text.islower()
        and re.search("[^s]s$", token.text) is not None
    )
    return token.lower_ in _verb_forms() or by_shape


def _governed(subject: Token) -> Iterable[Token]:
    for relative in (child for child in subject.children if child.dep_ in RELATIVE):
        if any(
            child.dep_ in SUBJECTS and child.lower_ in ("who", "that")
            for child in relative.children
        ):
            yield from _finite(relative)
    if subject.dep_ in SUBJECTS:
        yield from _finite(subject.head)
        for verb in _conjuncts(subject.head):
            yield from _finite(verb)


def _finite(head: Token) -> Iterable[Token]:
    """The word of a verb group that carries person and number, if it changes after "they"."""
    group = [head, *(child for child in head.children if child.dep_ in FINITE_HELPERS)]
    group = sorted(group, key=lambda token: token.i)
    if not any(token.tag_ == "MD" for token in group):
        yield from [token for token in group if _inflected(token)][:1]


def _conjuncts(head: Token) -> Iterable[Token]:
    for child in head.children:
        if child.dep_ == "conj" and not any(
            grandchild.dep_ in SUBJECTS for grandchild in child.children
        ):
            yield child
            yield from _conjuncts(child)


def _inherited(doc: Doc, subjects: Collection[int], verbs: set[int]) -> set[int]:
    """Verbs right after "and", "but" or a comma that have no subject of their own, where the parse lost their link.

    They take the subject of the verb before, or, after a comma, that of the last verb outside a relative clause.
    """
    found: set[int] = set()
    owners: list[
        tuple[Token, bool, bool]
    ] = []  # finite verbs so far: is the subject "they", is it a relative clause
    for token in doc:
        if token.i in verbs:
            owners.append((token, True, False))
        elif token.tag_ in FINITE or (
            (token.tag_ == "NNS" or token.lower_ in _verb_forms())
            and _mistaken(token)
            and _joint(token) is not None
        ):
            joint = _joint(token)
            if (
                joint is None
                or not owners
                or (
                    joint.text == ","
                    and (token.lower_ in BE_HAVE_DO or _closes_phrase(joint, owners[-1][0]))
                )
            ):
                owners.append((token, _own_subject(token) in subjects, _is_relative(token)))
                continue
            theirs = _owner(token, joint, owners)
            owners.append((token, theirs, False))
            if theirs and (
                _inflected(token) or (_mistaken(token) and _opens_object(token, joint, verbs))
            ):
                found.add(token.i)
    return found


def _owner(verb: Token, joint: Token, owners: list[tuple[Token, bool, bool]]) -> bool:
    """Whether the subject that a verb inherits is "they": that of the last verb of its tense, outside a relative clause."""
    after_comma = joint.text == "," or (joint.i > 0 and joint.nbor(-1).text == ",")
    outer = [owner for owner in owners if not (after_comma and owner[2])] or owners
    if joint.lower_ == "but":
        outer = [
            owner for owner in outer if not owner[2] and _clause_of(owner[0]) not in INNER
        ] or outer
    same = [owner for owner in outer if (owner[0].tag_ == "VBD") == (verb.tag_ == "VBD")]
    return (same or outer)[-1][1]


def _closes_phrase(comma: Token, verb: Token) -> bool:
    """Whether a comma is the second of a pair since the last verb: "the ship, still looking for him, rescues"."""
    return any(token.text == "," for token in comma.doc[verb.i + 1 : comma.i])


def _joint(verb: Token) -> Token | None:
    """The conjunction or comma before a verb, with adverbs or one phrase between; None where something else stands there."""
    doc, left = verb.doc, verb.i - 1
    while left > 0 and (
        doc[left].tag_.startswith("RB") or re.fullmatch("there|first|.+ly", doc[left].lower_)
    ):
        left -= 1
    token = doc[max(left, 0)]
    if token.text == "," and (opening := _opening(token)) is not None:
        token = opening
    elif token.text != "," and token.tag_ != "CC" and verb.tag_ in FINITE:
        while left > 0 and doc[left].tag_ in PHRASE:
            left -= 1
        token = doc[left] if doc[left + 1].tag_ == "IN" and doc[left + 1].dep_ != "mark" else token
    has_subject = any(
        child.dep_ in SUBJECTS
        for child in verb.children
        if token.i < child.i < verb.i and child.lower_ != "there"
    )
    return token if not has_subject and (token.tag_ == "CC" or token.text == ",") else None


def _opening(comma: Token) -> Token | None:
    """The "and" before the first of two commas: "and, misunderstanding her, flees"."""
    first = next(
        (
            token
            for token in reversed(list(comma.doc[: comma.i]))
            if token.text == "," or token.tag_ in FINITE
        ),
        None,
    )
    return (
        first.nbor(-1)
        if first is not None and first.text == "," and first.i and first.nbor(-1).tag_ == "CC"
        else None
    )


def _own_subject(verb: Token) -> int:
    group = [verb, verb.head] if verb.dep_ in FINITE_HELPERS else [verb]
    return next(
        (child.i for head in group for child in head.children if child.dep_ in SUBJECTS), -1
    )


def _clause_of(verb: Token) -> str:
    return verb.head.dep_ if verb.dep_ in FINITE_HELPERS else verb.dep_


def _is_relative(verb: Token) -> bool:
    subject = _own_subject(verb)
    return subject >= 0 and verb.doc[subject].lower_ in ("who", "which", "that")


def _opens_object(token: Token, joint: Token, verbs: Collection[int]) -> bool:
    """Whether a supposed plural noun after "and" is a verb after all, by the words around the two."""
    following = token.nbor() if token.i + 1 < len(token.doc) else token
    if token.lower_ in _verb_forms():
        return True
    if (
        following.tag_ in ("DT", "PRP", "PRP$", "TO", "JJ", "NN", "NNS")
        or following.lower_ == "that"
        or token.i - joint.i > 1
    ):
        return True
    if token.dep_ == "conj" and (token.head.tag_ == "VBZ" or token.head.i in verbs):
        return True
    return (
        joint.i > 0
        and not joint.nbor(-1).tag_.startswith(("N", "JJ", ",", "IN"))
        and following.tag_ != "CC"
    )
