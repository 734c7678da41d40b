"""Verbs that agree with "they": which ones change once a pronoun does, and into what."""

import re
from collections.abc import Collection, Iterable
from itertools import dropwhile
from typing import Literal, NamedTuple

from lemminflect import getLemma
from spacy.tokens import Doc, Token

from ..core.errors import TouchstoneError
from .dependencies import (
    EMBEDDED_CLAUSES,
    FINITE_HELPERS,
    RELATIVE_CLAUSES,
    SUBJECTS,
    subject_below,
)
from .labels import Replacement
from .lexicon import like
from .word_lists import word_list

Agreement = Literal["full", "adjacent"]
_FINITE = frozenset({"VBZ", "VBD", "VBP", "MD"})
_IN_PHRASE = frozenset({"IN", "DT", "PRP$", "JJ", "JJS", "NN", "NNS", "NNP", "RB", "CD"})
_OPENS_OBJECT = frozenset({"DT", "PRP", "PRP$", "TO", "JJ", "NN", "NNS"})
_BE_HAVE_DO = {"is": "are", "was": "were", "has": "have", "does": "do"}
_CONTRACTED = frozenset({"'s", "’s"})


def they_form(verb: str) -> str:
    """A verb in the third person singular as it stands after "they", in the verb's letter case.

    The base form is lemminflect's; other words come back as they are.

    >>> [they_form(verb) for verb in ("studies", "dies", "Catches", "focuses", "WAS", "went")]
    ['study', 'die', 'Catch', 'focus', 'WERE', 'went']
    """
    low = verb.lower()
    if low in _BE_HAVE_DO:
        return like(verb, _BE_HAVE_DO[low])
    if not low.endswith("s") or low.endswith("ss"):
        return verb
    return like(verb, getLemma(low, upos="VERB")[0])


def agreeing_verbs(
    doc: Doc, subjects: Collection[int], agreement: Agreement, others: Collection[int] = ()
) -> dict[int, Replacement]:
    """The verbs that change once the words at `subjects` become "they", with their three forms.

    Args:
        agreement: "full" takes the finite verb of each subject, and those that are coordinated
            with it or tell of it ("who is"). "adjacent" does what the published GECO does: it
            looks at the word beside any form of "they", and at no grammar.
        others: the positions that become another case of "they" (them, their).
    """
    if agreement not in ("full", "adjacent"):
        raise TouchstoneError(
            f"agreement is {agreement!r}; choose full, or adjacent (the rule of the published GECO)"
        )
    if agreement == "adjacent":
        neutral_of = _cut
        verbs = {
            verb.i
            for i in {*subjects, *others}
            for verb in _beside_as_published(doc[i], i in subjects)
        }
    else:
        neutral_of = _plural
        verbs = {
            verb.i
            for i in subjects
            for verb in (*_beside(doc[i]), *_governed(doc[i]), *_past_adverbs(doc[i]))
        }
        # Last, since these verbs take their subject from the ones found before.
        verbs |= _inherited(doc, subjects, verbs)
    return {i: (doc[i].text, doc[i].text, neutral_of(doc[i])) for i in sorted(verbs)}


def _beside_as_published(pronoun: Token, is_subject: bool) -> Iterable[Token]:
    """The word that GECO's program cuts beside a form of "they".

    The list `adjacent_words` holds the words that it is known to cut, and with a leading "-" those
    that it is known to leave; other words are cut if they are verbs of "they".
    """
    known = word_list("adjacent_words")
    right = list(pronoun.doc[pronoun.i + 1 : pronoun.i + 3])
    if right and right[0].tag_.startswith(("RB", "JJ")) and f"-{right[0].lower_}" not in known:
        right.pop(0)
    if right and right[0].lower_ in known:
        yield right[0]
    elif is_subject:
        yield from (verb for verb in _beside(pronoun) if f"-{verb.lower_}" not in known)


def _cut(verb: Token) -> str:
    """The form as GECO's program writes it: a word that is no verb loses its last letter."""
    form = they_form(verb.text)
    return form if form != verb.text else verb.text[:-1]


def _plural(verb: Token) -> str:
    """The form after "they"; of "'s" that of "is" or, before an active participle, of "has"."""
    if verb.lower_ not in _CONTRACTED:
        return they_form(verb.text)
    after = next((word for word in verb.doc[verb.i + 1 :] if not word.tag_.startswith("RB")), None)
    is_perfect = verb.dep_ == "aux" and verb.head.tag_ in ("VBN", "VBD")
    has = is_perfect or (after is not None and after.lower_ in ("been", "got", "had"))
    return verb.text[0] + ("ve" if has else "re")


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
    elif len(right) > 1:
        between, verb = right
        mistaken = is_he and between.tag_.startswith("RB") and _mistaken(verb)
        if between.tag_.startswith(("RB", "JJ")) and (_inflected(verb) or mistaken):
            yield verb


def _past_adverbs(subject: Token) -> Iterable[Token]:
    """The verb after several adverbs, after "who", and behind a phrase between commas."""
    words = _without_adverbs(subject.doc[subject.i + 1 :])
    if words and words[0].text == ",":
        if len(words) > 1 and words[1].lower_ == "who":
            yield from _past_adverbs(words[1])
        closing = next((k for k, word in enumerate(words[1:], 1) if word.text == ","), len(words))
        words = _without_adverbs(words[closing + 1 :])
    for verb in words[:1]:
        is_mistaken = verb.tag_ == "NNS" and _mistaken(verb) and subject.lower_ in ("he", "she")
        if _inflected(verb) or is_mistaken:
            yield verb


def _without_adverbs(words: Iterable[Token]) -> list[Token]:
    """The words from the first that is no adverb."""
    return list(dropwhile(lambda word: word.tag_.startswith("RB"), words))


def _is_verb_form(token: Token) -> bool:
    return token.lower_ in word_list("verb_forms")


def _mistaken(token: Token) -> bool:
    """A verb that a small tagger takes for a noun in the plural ("she quickly recovers")."""
    by_shape = (
        token.tag_.startswith(("NN", "VB", "JJ"))
        and token.text.islower()
        and re.search("[^s]s$", token.text) is not None
    )
    return by_shape or _is_verb_form(token)


def _governed(subject: Token) -> Iterable[Token]:
    """The finite verbs that the parse ties to a subject: its own, conjuncts, relative clauses."""
    for relative in (child for child in subject.children if child.dep_ in RELATIVE_CLAUSES):
        relatives = (child.lower_ for child in relative.children if child.dep_ in SUBJECTS)
        if not {"who", "that"}.isdisjoint(relatives):
            yield from _finite(relative)
    if subject.dep_ in SUBJECTS:
        for verb in (subject.head, *_conjuncts(subject.head)):
            yield from _finite(verb)


def _finite(head: Token) -> Iterable[Token]:
    """The word of a verb group that carries person and number, if it changes after "they"."""
    helpers = [child for child in head.children if child.dep_ in FINITE_HELPERS]
    group = sorted([head, *helpers], key=lambda token: token.i)
    if not any(token.tag_ == "MD" for token in group):
        yield from [token for token in group if _inflected(token)][:1]


def _conjuncts(head: Token) -> Iterable[Token]:
    for child in head.children:
        if child.dep_ == "conj" and subject_below(child) is None:
            yield child
            yield from _conjuncts(child)


class _Verb(NamedTuple):
    """A finite verb met so far: is its subject "they", and is its clause a relative one?"""

    token: Token
    is_of_they: bool
    is_relative: bool = False


def _inherited(doc: Doc, subjects: Collection[int], verbs: set[int]) -> set[int]:
    """Verbs right after "and", "but" or a comma without a subject, where the parse lost their link.

    They take the subject of the verb before, or, after a comma, that of the last verb outside a
    relative clause.
    """
    inherited: set[int] = set()
    met: list[_Verb] = []
    for token in doc:
        if token.i in verbs:
            met.append(_Verb(token, True))
            continue
        is_finite = token.tag_ in _FINITE
        is_noun = token.tag_ == "NNS" or _is_verb_form(token)
        joint = _joint(token) if is_finite or (is_noun and _mistaken(token)) else None
        if joint is not None and met and not _has_own_subject(token, joint, met[-1].token):
            met.append(_Verb(token, _inherits_they(token, joint, met)))
            is_verb = _inflected(token) or (_mistaken(token) and _opens_object(token, joint, verbs))
            if met[-1].is_of_they and is_verb:
                inherited.add(token.i)
        elif is_finite or joint is not None:
            owner = _own_subject(token)
            is_relative = owner >= 0 and doc[owner].lower_ in ("who", "which", "that")
            met.append(_Verb(token, owner in subjects, is_relative))
    return inherited


def _inherits_they(verb: Token, joint: Token, met: list[_Verb]) -> bool:
    """Whether the last verb of the same tense outside a relative clause has the subject "they"."""
    after_comma = joint.text == "," or (joint.i > 0 and joint.nbor(-1).text == ",")
    outer = [before for before in met if not (after_comma and before.is_relative)] or met
    if joint.lower_ == "but":
        main = [
            before
            for before in outer
            if not before.is_relative and _clause_of(before.token) not in EMBEDDED_CLAUSES
        ]
        outer = main or outer
    same = [before for before in outer if (before.token.tag_ == "VBD") == (verb.tag_ == "VBD")]
    return (same or outer)[-1].is_of_they


def _has_own_subject(verb: Token, joint: Token, last: Token) -> bool:
    """Whether a verb after a comma does not go on with the subject of the last verb.

    It does not if the comma is the second since then: "the ship, still at sea, rescues him".
    """
    between = [token.text for token in joint.doc[last.i + 1 : joint.i]]
    return joint.text == "," and (verb.lower_ in _BE_HAVE_DO or "," in between)


def _joint(verb: Token) -> Token | None:
    """The conjunction or comma before a verb, with adverbs or one phrase between; else None."""
    doc, left = verb.doc, verb.i - 1
    while left > 0 and (
        doc[left].tag_.startswith("RB") or re.fullmatch("there|first|.+ly", doc[left].lower_)
    ):
        left -= 1
    token = doc[max(left, 0)]
    if token.text == "," and (opening := _opening(token)) is not None:
        token = opening
    elif token.text != "," and token.tag_ != "CC" and verb.tag_ in _FINITE:
        while left > 0 and doc[left].tag_ in _IN_PHRASE:
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
    earlier = reversed(list(comma.doc[: comma.i]))
    first = next((word for word in earlier if word.text == "," or word.tag_ in _FINITE), None)
    if first is None or first.text != "," or not first.i:
        return None
    return first.nbor(-1) if first.nbor(-1).tag_ == "CC" else None


def _own_subject(verb: Token) -> int:
    """The position of a verb's subject, or, for a helper, of its head's; -1 if there is none."""
    group = [verb, verb.head] if verb.dep_ in FINITE_HELPERS else [verb]
    subjects = [subject.i for head in group if (subject := subject_below(head)) is not None]
    return subjects[0] if subjects else -1


def _clause_of(verb: Token) -> str:
    return verb.head.dep_ if verb.dep_ in FINITE_HELPERS else verb.dep_


def _opens_object(token: Token, joint: Token, verbs: Collection[int]) -> bool:
    """Whether a supposed plural noun after "and" is a verb after all, by the words around."""
    following = token.nbor() if token.i + 1 < len(token.doc) else token
    if _is_verb_form(token) or token.i - joint.i > 1:
        return True
    if following.tag_ in _OPENS_OBJECT or following.lower_ == "that":
        return True
    if token.dep_ == "conj" and (token.head.tag_ == "VBZ" or token.head.i in verbs):
        return True
    after_noun = joint.i == 0 or joint.nbor(-1).tag_.startswith(("N", "JJ", ",", "IN"))
    return not after_noun and following.tag_ != "CC"
