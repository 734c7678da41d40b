"""Names of people: which words are one, of which gender, and what becomes of them (a pronoun, or nothing)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from spacy.tokens import Doc, Token

from lib.core.paths import material
from lib.language.labels import Replacement
from lib.language.lexicon import ACCUSATIVE, NOMINATIVE, POSSESSIVE, Lexicon, Triple, like
from lib.language.parse import SUBJECTS, read_word_list

SUFFIXES = frozenset({"Jr.", "Sr.", "Jr", "II", "III", "IV"})
RANKS = frozenset(
    "Dr. Dr Doctor Professor Colonel Captain Major General Lieutenant Sergeant Inspector Judge Reverend Rev. "
    "President".split()
)
PARTICLES = frozenset({"de", "von", "van", "la", "le", "du", "di"})


@cache
def first_names() -> frozenset[str]:
    """Common English first names (written for this repository)."""
    return read_word_list(material("geco") / "first_names.txt")


def find_names(doc: Doc, lexicon: Lexicon, known: Collection[str] = ()) -> list[list[int]]:
    """The names of people in a sentence, each a run of positions; a title before it is not part of it.

    A run of proper nouns is a person's if it holds a common first name or a name known from elsewhere in the text,
    follows a title, or is a PERSON to the pipeline's entity recogniser, where it has one.
    """
    runs: list[list[int]] = []
    for token in doc:
        if _may_be_name(token, lexicon):
            if runs and runs[-1][-1] == token.i - 1:
                runs[-1].append(token.i)
            else:
                runs.append([token.i])
    people = first_names() | set(known)
    return [run for run in runs if _is_person(doc, run, lexicon, people)]


def names_of_text(docs: Iterable[Doc], lexicon: Lexicon) -> frozenset[str]:
    """The words that are names of people somewhere in a text, so that "Darcy" is known once "Mr. Darcy" was met.

    A further proper noun counts if it does or owns something (subject of a verb, before "'s") more often than it stands
    after "the" or a preposition of place.
    """
    known, acts, places = set(), Counter[str](), Counter[str]()
    for doc in docs:
        known |= {
            doc[i].text for run in find_names(doc, lexicon) for i in run if len(doc[i].text) > 1
        }
        for token in doc:
            if _may_be_name(token, lexicon):
                right = token.nbor() if token.i + 1 < len(doc) else token
                acts[token.text] += (
                    token.dep_ in SUBJECTS and token.head.pos_ in ("VERB", "ADJ", "NOUN")
                ) or right.tag_ == "POS"
                places[token.text] += token.i > 0 and token.nbor(-1).lower_ in (
                    "the",
                    "in",
                    "at",
                    "near",
                    "into",
                )
    return frozenset(
        known | {word for word, n in acts.items() if n > places[word] and len(word) > 1}
    )


def name_replacements(
    doc: Doc, lexicon: Lexicon, known: Collection[str], words: Mapping[int, object]
) -> dict[int, Replacement]:
    """What becomes of every word of a name: the first a pronoun in the right case, the others nothing.

    A name after a title keeps its words (Mrs. Hill, Colonel Hill); one after a noun that changes ("her aunt Jane") goes,
    for it would tell what the noun no longer does. With an "'s" a name becomes a possessive and the "'s" goes.
    """
    found: dict[int, Replacement] = {}
    for run in find_names(doc, lexicon, known):
        first, after = doc[run[0]], doc[run[-1] + 1] if run[-1] + 1 < len(doc) else None
        before = doc[first.i - 1] if first.i else None
        if first.text in RANKS or (
            before is not None
            and (
                before.text in RANKS
                or (
                    before.i in words
                    and (lexicon.is_title(before.text) or before.text[:1].isupper())
                )
            )
        ):
            continue
        if before is not None and before.i in words and before.pos_ == "NOUN":
            found |= dict.fromkeys(run)
            continue
        is_owner = (
            after is not None and after.text in ("'s", "’s", "'", "’") and after.tag_ == "POS"
        )
        forms = POSSESSIVE if is_owner else NOMINATIVE if _is_subject(doc, run) else ACCUSATIVE
        found[first.i] = _at_start(first, forms)
        found |= dict.fromkeys(run[1:])
        if is_owner and after is not None:
            found[after.i] = None
    return found


def _may_be_name(token: Token, lexicon: Lexicon) -> bool:
    if token.text in SUFFIXES or (
        token.lower_ in PARTICLES and token.i and token.nbor(-1).pos_ == "PROPN"
    ):
        return token.pos_ == "PROPN"
    starts = (
        token.text[:1].isupper()
        and token.text[1:].islower()
        or "-" in token.text
        and token.text.istitle()
    )
    return (
        bool(starts)
        and (token.pos_ == "PROPN" or token.text in first_names())
        and lexicon.find(token.text) is None
    )


def _is_person(doc: Doc, run: list[int], lexicon: Lexicon, people: Collection[str]) -> bool:
    after_title = run[0] > 0 and lexicon.is_title(doc[run[0] - 1].text)
    place = run[0] > 0 and doc[run[0] - 1].lower_ in ("in", "at", "near", "the") and not after_title
    named = any(doc[i].text in people for i in run)
    return (
        after_title
        or any(doc[i].ent_type_ == "PERSON" for i in run)
        or (named and not (place and len(run) > 1))
    )


def _is_subject(doc: Doc, run: list[int]) -> bool:
    """Whether a name does something by the parse, opens the sentence, or stands between a conjunction and a finite verb."""
    opens = run[0] == 0 or doc[run[0] - 1].tag_ == "CC" or doc[run[0] - 1].text == ","
    is_before_verb = run[-1] + 1 < len(doc) and doc[run[-1] + 1].tag_ in ("VBZ", "VBD", "MD")
    return any(doc[i].dep_ in SUBJECTS for i in run) or run[0] == 0 or (opens and is_before_verb)


def _at_start(token: Token, forms: Triple) -> Triple:
    return (
        (like("A", forms[0]), like("A", forms[1]), like("A", forms[2])) if token.i == 0 else forms
    )
