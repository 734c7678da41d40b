"""From a parsed sentence to its gender label: which words change with the gender of its people, and into what.

GECO (arXiv 2406.11547, appendix A.1.3) was labelled by hand. Here the same labels follow from a lexicon, a dependency
parse (UD or CLEAR labels) and rules: every gendered pronoun and noun (D_A), those of the grammatical subject and of the
pronouns that refer to it (D_S, `lib.reference`), and the verbs that must agree once a subject becomes "they".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from spacy.tokens import Doc, Token

from lib.errors import TouchstoneError
from lib.labels import Label, Replacement
from lib.lexicon import NOMINATIVE, PRONOUNS, Gender, Lexicon, like, load_lexicon, pronoun_forms
from lib.names import name_replacements
from lib.reference import subject_chain, subject_head
from lib.text import FINITE_HELPERS, SUBJECTS

Agreement = Literal["full", "adjacent"]
Names = Literal["replace", "keep"]
POSSESSIVES = frozenset({"nmod:poss", "poss"})
RELATIVE = frozenset({"acl:relcl", "relcl"})
NOT_POSSESSED = frozenset({"DT", "IN", "TO", "CC", "PRP", "PRP$", "WP", "WDT", "WRB", "MD", "VBD", "VBZ", "VBP", "RP", "EX", "UH",
                           ".", ",", ":", "''", "``", "-LRB-", "-RRB-", "HYPH", "POS"})
POSSESSED = frozenset({"NN", "NNS", "NNP", "NNPS"})
MODIFIERS = frozenset({"JJ", "JJR", "JJS", "VBN", "VBG", "CD", "RB", "RBS", "RBR"})
ASIDE = frozenset("home away back up down out off there here into again too away reluctantly farewell".split())
ENDS_PHRASE = frozenset({"IN", "CC", ".", ",", ":", "''", "DT", "TO", "VBD", "-RRB-"})
CAUSATIVE = re.compile("ma[dk]|let|se[en]|saw|watch|hear|help|ha[sdv]|bid|find|found|leav|left|call|keep|kept|consider|think")
GIVING = re.compile("g[ia]v|grant|offer|hand|pay|paid|len[dt]|sen[dt]|br[io]|tell|told|show|attack|owe")
VERBS_TOO = frozenset("miss master mother father lord lady host guy groom dame nurse king queen man".split())
BE_HAVE_DO = {"is": "are", "was": "were", "has": "have", "does": "do", "'s": "are"}
THIRD_PERSON = ((r"^(?!bel|unt|underl)(..+)ies$", r"\1y"), (r"^(?!.*(?:^|tooth|heart|head)ach)(.*(?:ss|sh|ch|x|zz|[^h]o))es$", r"\1"),
                (r"^(.+)s$", r"\1"))


def they_form(verb: str) -> str:
    """A verb in the third person singular as it stands after "they"; other words come back as they are.

    >>> [they_form(verb) for verb in ("studies", "dies", "goes", "Catches", "chooses", "is", "went")]
    ['study', 'die', 'go', 'Catch', 'choose', 'are', 'went']
    """
    low = verb.lower()
    if low in BE_HAVE_DO:
        return BE_HAVE_DO[low].capitalize() if verb[:1].isupper() else BE_HAVE_DO[low]
    for pattern, replacement in THIRD_PERSON:
        if re.match(pattern, low) and not low.endswith("ss"):
            stem = re.sub(pattern, replacement, low)
            return stem.capitalize() if verb[:1].isupper() else stem
    return verb


def is_possessive(token: Token) -> bool:
    """Whether "her" or "his" stands before what is possessed; the words around "her" overrule a small tagger.

    "His" is possessive if a word follows. For "her" the tagger decides where the words right of it do not: a function
    word or mark, or an adjective or participle with nothing after it, make it an object; "own", "will", an adjective
    with a noun and a bare verb ("her resolve") make it possessive, unless somebody makes or sees her do it.
    """
    if token.i + 1 == len(token.doc):
        return False
    right, left = token.nbor(), token.nbor(-1) if token.i else token
    if token.lower_ == "his":
        return right.tag_ not in ENDS_PHRASE or right.lower_ in ("back", "better")
    if right.lower_ in ("own", "self", "will"):
        return True
    if right.tag_ in NOT_POSSESSED or (right.lower_ in ASIDE and left.tag_.startswith("VB")):
        return False
    after = right.nbor().tag_ if right.i + 1 < len(right.doc) else "."
    if right.tag_ in MODIFIERS and after not in POSSESSED | MODIFIERS | {"CC", ",", "HYPH"} and right.tag_ != "CD":
        return False
    if right.tag_ in ("VB", "VBP"):
        return CAUSATIVE.match(left.lower_) is None
    if right.tag_ == "CD" and GIVING.match(left.lower_):
        return False
    if (right.tag_ in MODIFIERS and right.tag_ != "RB" and after in POSSESSED and not CAUSATIVE.match(left.lower_)) or (
            left.tag_ == "IN" and left.lower_ not in ("for", "that", "as") and right.tag_ in POSSESSED):
        return True
    return token.tag_ == "PRP$" or token.dep_ in POSSESSIVES


def gendered_words(doc: Doc, lexicon: Lexicon) -> dict[int, tuple[Gender, tuple[str, str, str]]]:
    """Every gendered pronoun, noun, adjective and title of a sentence: its gender and its three forms, by position."""
    found: dict[int, tuple[Gender, tuple[str, str, str]]] = {}
    for token in doc:
        word = token.text.strip()
        if forms := pronoun_forms(word, is_possessive(token)):
            found[token.i] = PRONOUNS[word.lower()], forms
        elif (entry := lexicon.find(word)) and not (word.islower() and word in VERBS_TOO and token.tag_.startswith(("VB", "UH"))):
            found[token.i] = entry
    return found


def agreeing_verbs(doc: Doc, subjects: Collection[int], agreement: Agreement) -> dict[int, Replacement]:
    """The verbs that change once the words at `subjects` become "they", with their three forms.

    `full`: the finite verb of each, and of what is coordinated with it or tells of it ("who is"). `adjacent`: only the
    next word, or the one after an adverb, which is what the published GECO does.
    """
    if agreement not in ("full", "adjacent"):
        raise TouchstoneError(f"agreement is {agreement!r}; choose full, or adjacent (the rule of the published GECO)")
    verbs = {verb.i for i in subjects for verb in _beside(doc[i])}
    if agreement == "full":
        verbs |= {verb.i for i in subjects for verb in (*_governed(doc[i]), *_past_adverbs(doc[i]))}
        verbs |= _inherited(doc, subjects, verbs)
    return {i: (doc[i].text, doc[i].text, they_form(doc[i].text)) for i in sorted(verbs)}


def articles(doc: Doc, changes: Mapping[int, Replacement]) -> dict[int, Replacement]:
    """"A" or "an" right before an altered word, where the forms ask for different ones (an uncle, a parent's sibling)."""
    found: dict[int, Replacement] = {}
    for i, forms in changes.items():
        if i and forms is not None and doc[i - 1].lower_ in ("a", "an"):
            kinds = ["an" if re.match(r"(?!us|uni|eu|one)[aeiou]|heir|hono", word.lower()) else "a" for word in forms]
            if len(set(kinds)) == 2:
                found[i - 1] = tuple(like(doc[i - 1].text.title(), kind) if doc[i - 1].text[0].isupper() else kind
                                     for kind in kinds)  # type: ignore[assignment]
    return found


def _inflected(token: Token) -> bool:
    return token.lower_ in ("is", "was", "has", "does") or (token.tag_ == "VBZ" and token.lower_.endswith("s"))


def _beside(subject: Token) -> Iterable[Token]:
    """The next word, or the one after an adverb or adjective, if it is a verb that changes."""
    right = subject.doc[subject.i + 1:subject.i + 3]
    is_he = subject.lower_ in ("he", "she")
    if len(right) and (_inflected(right[0]) or (is_he and _mistaken(right[0]))):
        yield right[0]
    elif len(right) > 1 and right[0].tag_.startswith(("RB", "JJ")) and (
            _inflected(right[1]) or (is_he and right[0].tag_.startswith("RB") and _mistaken(right[1]))):
        yield right[1]


def _past_adverbs(subject: Token) -> Iterable[Token]:
    """The verb after several adverbs, after a relative "who", and behind a phrase between commas."""
    words = list(subject.doc[subject.i + 1:])
    while words and words[0].tag_.startswith("RB"):
        words.pop(0)
    if words and words[0].text == ",":
        words.pop(0)
        if words and words[0].lower_ == "who":
            yield from _past_adverbs(words[0])
        words = words[next((k for k, word in enumerate(words) if word.text == ","), len(words)) + 1:]
        while words and words[0].tag_.startswith("RB"):
            words.pop(0)
    if words and (_inflected(words[0]) or (words[0].tag_ == "NNS" and subject.lower_ in ("he", "she") and _mistaken(words[0]))):
        yield words[0]


def _mistaken(token: Token) -> bool:
    """A verb that a small tagger takes for a noun in the plural ("she quickly recovers")."""
    return token.tag_.startswith(("NN", "VB", "JJ")) and token.text.islower() and re.search("[^s]s$", token.text) is not None


def _governed(subject: Token) -> Iterable[Token]:
    for relative in (child for child in subject.children if child.dep_ in RELATIVE):
        if any(child.dep_ in SUBJECTS and child.lower_ in ("who", "that") for child in relative.children):
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
        if child.dep_ == "conj" and not any(grandchild.dep_ in SUBJECTS for grandchild in child.children):
            yield child
            yield from _conjuncts(child)


def _inherited(doc: Doc, subjects: Collection[int], verbs: set[int]) -> set[int]:
    """Verbs right after "and", "but" or a comma that have no subject of their own, where the parse lost their link.

    They take the subject of the verb before, or, after a comma, that of the last verb outside a relative clause.
    """
    found: set[int] = set()
    owners: list[tuple[Token, bool, bool]] = []  # finite verbs so far: is the subject "they", is it a relative clause
    for token in doc:
        if token.i in verbs:
            owners.append((token, True, False))
        elif token.tag_ in ("VBZ", "VBD", "VBP", "MD") or (token.tag_ == "NNS" and _mistaken(token) and _joint(token) is not None):
            joint = _joint(token)
            if joint is None or not owners or (joint.text == "," and _closes_phrase(joint, owners[-1][0])):
                owners.append((token, _own_subject(token) in subjects, _is_relative(token)))
                continue
            theirs = _owner(token, joint, owners)
            owners.append((token, theirs, False))
            if theirs and (_inflected(token) or (_mistaken(token) and _opens_object(token, joint))):
                found.add(token.i)
    return found


def _owner(verb: Token, joint: Token, owners: list[tuple[Token, bool, bool]]) -> bool:
    """Whether the subject that a verb inherits is "they": that of the last verb of its tense, outside a relative clause."""
    after_comma = joint.text == "," or (joint.i > 0 and joint.nbor(-1).text == ",")
    outer = [owner for owner in owners if not (after_comma and owner[2])] or owners
    same = [owner for owner in outer if (owner[0].tag_ == "VBD") == (verb.tag_ == "VBD")]
    return (same or outer)[-1][1]


def _closes_phrase(comma: Token, verb: Token) -> bool:
    """Whether a comma is the second of a pair since the last verb: "the ship, still looking for him, rescues"."""
    return any(token.text == "," for token in comma.doc[verb.i + 1:comma.i])


def _joint(verb: Token) -> Token | None:
    """The conjunction or comma before a verb, with adverbs between; None where something else stands there."""
    left = verb.i - 1
    while left > 0 and verb.doc[left].tag_.startswith("RB"):
        left -= 1
    token = verb.doc[max(left, 0)]
    has_subject = any(child.dep_ in SUBJECTS for child in verb.children if child.i < verb.i and child.i > token.i)
    return token if not has_subject and (token.tag_ == "CC" or token.text == ",") else None


def _own_subject(verb: Token) -> int:
    group = [verb, verb.head] if verb.dep_ in FINITE_HELPERS else [verb]
    return next((child.i for head in group for child in head.children if child.dep_ in SUBJECTS), -1)


def _is_relative(verb: Token) -> bool:
    subject = _own_subject(verb)
    return subject >= 0 and verb.doc[subject].lower_ in ("who", "which", "that")


def _opens_object(token: Token, joint: Token) -> bool:
    """Whether a supposed plural noun after "and" is a verb after all, by the words around the two."""
    following = token.nbor() if token.i + 1 < len(token.doc) else token
    if following.tag_ in ("DT", "PRP", "PRP$", "TO") or following.lower_ == "that" or token.i - joint.i > 1:
        return True
    return joint.i > 0 and not joint.nbor(-1).tag_.startswith(("N", "JJ", ",")) and following.tag_ != "CC"


def annotate_sentence(doc: Doc, name: str = "", lexicon: Lexicon | None = None, agreement: Agreement = "full",
                      names: Names = "replace", known_names: Collection[str] = ()) -> Label:
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
        changes: dict[int, Replacement] = {i: entry[1] for i, entry in words.items() if i in keeps and i not in named}
        changes |= {i: forms for i, forms in named.items() if i in keeps}
        theirs = {i for i, forms in changes.items() if forms is not None and forms[2].lower() == NOMINATIVE[2]}
        follow = articles(doc, changes) if agreement == "full" else {}
        scopes[scope] = agreeing_verbs(doc, theirs, agreement) | follow | changes
    return Label(name, tuple(token.text.strip() for token in doc), subject, dict.fromkeys(named, "name"),
                 dict(sorted(scopes["subj"].items())), dict(sorted(scopes["all"].items())))
