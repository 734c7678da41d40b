"""Names of people: which words are one, and what becomes of them (a pronoun, or nothing)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from spacy.tokens import Doc, Token

from .dependencies import SUBJECTS
from .labels import Replacement
from .lexicon import ACCUSATIVE, NOMINATIVE, POSSESSIVE, Lexicon, in_case_of
from .word_lists import word_list

_SUFFIXES = frozenset({"Jr.", "Sr.", "Jr", "II", "III", "IV"})
_RANKS = frozenset(
    "Dr. Dr Doctor Professor Colonel Captain Major General Lieutenant Sergeant Inspector Judge "
    "Reverend Rev. President".split()
)
_PARTICLES = frozenset({"de", "von", "van", "la", "le", "du", "di"})
_BEFORE_PLACES = frozenset({"the", "in", "at", "near"})
_GENITIVES = frozenset({"'s", "’s", "'", "’"})


def find_names(doc: Doc, lexicon: Lexicon, known: Collection[str] = ()) -> list[list[int]]:
    """The names of people in a sentence, as runs of positions; a title is no part of the name.

    A run of proper nouns is a person's if it holds a common first name or a name known from
    elsewhere in the text, follows a title, or is a PERSON to the pipeline's entity recogniser, if
    there is one.
    """
    runs: list[list[int]] = []  # one known word makes a name of the words beside it, too
    for token in doc:
        if _may_be_name(token, lexicon):
            if runs and runs[-1][-1] == token.i - 1:
                runs[-1].append(token.i)
            else:
                runs.append([token.i])
    people = word_list("first_names") | set(known)
    return [run for run in runs if _is_person(doc, run, lexicon, people)]


def names_of_text(docs: Iterable[Doc], lexicon: Lexicon) -> frozenset[str]:
    """The words that name people somewhere in a text: "Darcy" is known once "Mr. Darcy" was met.

    A further proper noun counts if it does or owns something (subject of a verb, before "'s") more
    often than it stands after "the" or a preposition of place.
    """
    known: set[str] = set()
    # Counted over the whole text, so that one wrong tag makes no person of a place.
    acts, places = Counter[str](), Counter[str]()
    for doc in docs:
        known |= {doc[i].text for run in find_names(doc, lexicon) for i in run}
        for token in doc:
            if _may_be_name(token, lexicon):
                right = token.nbor() if token.i + 1 < len(doc) else token
                acts[token.text] += right.tag_ == "POS" or (
                    token.dep_ in SUBJECTS and token.head.pos_ in ("VERB", "ADJ", "NOUN")
                )
                places[token.text] += token.i > 0 and (
                    token.nbor(-1).lower_ in _BEFORE_PLACES | {"into"}
                )
    known |= {word for word, n in acts.items() if n > places[word]}
    return frozenset(word for word in known if len(word) > 1)


def name_replacements(
    doc: Doc, lexicon: Lexicon, known: Collection[str], words: Mapping[int, object]
) -> dict[int, Replacement]:
    """What becomes of every word of a name: the first a pronoun in its case, the others nothing.

    A name after a title keeps its words (Mrs. Hill, Colonel Hill). One after a noun that changes
    goes ("her aunt Jane"), for it would tell what the noun no longer does. With an "'s" a name
    becomes a possessive and the "'s" goes.

    Args:
        known: further words that are names of people in this text.
        words: the gendered words of the sentence, by position.
    """
    replacements: dict[int, Replacement] = {}
    for run in find_names(doc, lexicon, known):
        first = doc[run[0]]
        before = doc[first.i - 1] if first.i else None
        # A rank tells no gender, and needs its name.
        if first.text in _RANKS or (before is not None and before.text in _RANKS):
            continue
        if before is not None and before.i in words:
            if before.text[:1].isupper():  # a title
                continue
            if before.pos_ == "NOUN":
                replacements |= dict.fromkeys(run)
                continue
        after = doc[run[-1] + 1] if run[-1] + 1 < len(doc) else None
        is_owner = after is not None and after.text in _GENITIVES and after.tag_ == "POS"
        forms = POSSESSIVE if is_owner else NOMINATIVE if _is_subject(doc, run) else ACCUSATIVE
        replacements |= dict.fromkeys(run) | {first.i: forms if first.i else in_case_of("A", forms)}
        if is_owner and after is not None:
            replacements[after.i] = None
    return replacements


def _may_be_name(token: Token, lexicon: Lexicon) -> bool:
    text = token.text
    if text in _SUFFIXES or (
        token.lower_ in _PARTICLES and token.i and token.nbor(-1).pos_ == "PROPN"
    ):
        return token.pos_ == "PROPN"
    capitalised = text[:1].isupper() and text[1:].islower()
    return (
        (capitalised or ("-" in text and text.istitle()))
        and (token.pos_ == "PROPN" or text in word_list("first_names"))
        and lexicon.find(text) is None
    )


def _is_person(doc: Doc, run: list[int], lexicon: Lexicon, people: Collection[str]) -> bool:
    before = doc[run[0] - 1].text if run[0] else ""
    is_place = before.lower() in _BEFORE_PLACES and len(run) > 1
    return (
        lexicon.is_title(before)
        or any(doc[i].ent_type_ == "PERSON" for i in run)
        or (not is_place and any(doc[i].text in people for i in run))
    )


def _is_subject(doc: Doc, run: list[int]) -> bool:
    """Whether a name does something: by the parse, or as the first words of a clause."""
    if run[0] == 0 or any(doc[i].dep_ in SUBJECTS for i in run):
        return True
    opens_clause = doc[run[0] - 1].tag_ == "CC" or doc[run[0] - 1].text == ","
    after = run[-1] + 1
    return opens_clause and after < len(doc) and doc[after].tag_ in ("VBZ", "VBD", "MD")
