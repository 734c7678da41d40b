"""Words that carry gender: nouns and titles for people in three forms, and the pronouns.

The nouns stand in `gender_lexicon.csv` (female, male, neutral, kind, source). Gendered pronouns and
those of the neutral class are defined here, once for all rooms: by case (`CASES`), by class
(`PRONOUN_FORMS`), and as the gender of a form (`PRONOUNS`).
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from ..core.errors import TouchstoneError, check_choice
from ..core.files import read_text
from .word_lists import resource

Triple = tuple[str, str, str]  # female, male, neutral
Gender = Literal["F", "M"]

NOMINATIVE: Triple = ("she", "he", "they")
ACCUSATIVE: Triple = ("her", "him", "them")
POSSESSIVE: Triple = ("her", "his", "their")
_CASES: tuple[Triple, ...] = (
    NOMINATIVE,
    ACCUSATIVE,
    POSSESSIVE,
    ("hers", "his", "theirs"),
    ("herself", "himself", "themself"),
)
# Every form of a class's pronoun once, in the order of the cases.
PRONOUN_FORMS: Mapping[str, tuple[str, ...]] = {
    "F": tuple(dict.fromkeys(case[0] for case in _CASES)),
    "M": tuple(dict.fromkeys(case[1] for case in _CASES)),
    "NB": (*(case[2] for case in _CASES), "themselves"),
}
PRONOUNS: Mapping[str, Gender] = {
    **dict.fromkeys(PRONOUN_FORMS["F"], "F"),
    **dict.fromkeys(PRONOUN_FORMS["M"], "M"),
}
_COLUMNS = ["female", "male", "neutral", "kind", "source"]
_TITLE = "title"
_KINDS = (
    *("adjective", "feminine", "kin", "magic", "nobility", "partner"),
    *("person", "religion", _TITLE, "work"),
)
# how a masked word is written in tables, whatever a model's own mask token is
MASK = "[MASK]"
_PLURALS = {
    "person": "people",
    "child": "children",
    "wife": "wives",
    "everyman": "everymen",
    "god": "gods",
}


@dataclass(frozen=True)
class Lexicon:
    """The lexicon, singular and plural.

    Args:
        exact: titles, as they are written ("Mrs."), with their gender and three forms.
        folded: all other words, in small letters.
        kinds: the kind of each triple of the file.
    """

    exact: dict[str, tuple[Gender, Triple]]
    folded: dict[str, tuple[Gender, Triple]]
    kinds: dict[Triple, str]

    def find(self, word: str) -> tuple[Gender, Triple] | None:
        """The gender of a word and its three forms in the word's own letter case, or None.

        >>> load_lexicon().find("Fishermen")
        ('M', ('Fisherwomen', 'Fishermen', 'Fishers'))
        """
        if word == "God":  # a name
            return None
        if word in self.exact:
            return self.exact[word]
        if (entry := self.folded.get(word.lower())) is not None:
            gender, forms = entry
            return gender, in_case_of(word, forms)
        return self._compound(word)

    def is_title(self, word: str) -> bool:
        """Whether a word is a title that stands before a name (Mrs., Lord)."""
        return word in self.exact

    def _compound(self, word: str) -> tuple[Gender, Triple] | None:
        """A compound with a hyphen that ends in a word of the list: cabin-boy, step-mother."""
        head, _, tail = word.rpartition("-")
        # A letter before the hyphen is no word: X-man.
        entry = self.folded.get(tail.lower()) if len(head) > 1 else None
        if entry is None:
            return None
        gender, (female, male, neutral) = entry
        return gender, (f"{head}-{female}", f"{head}-{male}", f"{head}-{neutral}")


def like(model: str, word: str) -> str:
    """A word in the letter case of another one; several words become capitalised one by one.

    >>> like("King", "head teacher"), like("KING", "monarch"), like("king", "Noble")
    ('Head Teacher', 'MONARCH', 'Noble')
    """
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return " ".join(part[:1].upper() + part[1:] for part in word.split(" "))
    return word


def plural(word: str) -> str:
    """The plural of a noun of the list, its last word inflected.

    >>> [plural(noun) for noun in ("washerwoman", "wife", "lady", "witch")]
    ['washerwomen', 'wives', 'ladies', 'witches']
    >>> plural("domestic worker"), plural("mother-in-law")
    ('domestic workers', 'mothers-in-law')
    """
    if word.endswith("-in-law"):
        return plural(word.removesuffix("-in-law")) + "-in-law"
    head, blank, last = word.rpartition(" ")
    for end, many in _PLURALS.items():
        if last.endswith(end):
            return head + blank + last[: -len(end)] + many
    # Humans, Germans and Romans are no compounds of "man".
    if re.search(r"(?<!hu)(?<!Ger)(?<!Ro)man$", last):
        return head + blank + last[:-2] + "en"
    if re.search(r"[^aeiou]y$", last):
        return head + blank + last[:-1] + "ies"
    return head + blank + last + ("es" if re.search(r"(s|x|z|(?<!ar)ch|sh)$", last) else "s")


def read_lexicon(path: Path) -> Lexicon:
    """Read a lexicon: CSV with the columns female, male, neutral, kind, source below `#` comments.

    Raises:
        TouchstoneError: naming file and line, for a bad head or row.
    """
    text = read_text(path).splitlines()
    lines = [(n, line) for n, line in enumerate(text, 1) if not line.startswith("#")]
    if not lines or lines[0][1].split(",") != _COLUMNS:
        raise TouchstoneError(
            f"{path} does not begin with the columns {','.join(_COLUMNS)}; "
            "write them above the words"
        )
    lexicon = Lexicon({}, {}, {})
    for (number, _), row in zip(lines[1:], csv.reader(line for _, line in lines[1:]), strict=True):
        if len(row) != len(_COLUMNS) or not all(row):
            raise TouchstoneError(
                f"{path}, line {number}: not five filled fields ({','.join(_COLUMNS)}); "
                "complete the row"
            )
        check_choice(f"{path}, line {number}: the kind", row[3], _KINDS)
        _enter(lexicon, (row[0], row[1], row[2]), row[3])
    return lexicon


def _enter(lexicon: Lexicon, triple: Triple, kind: str) -> None:
    """Add a row; an earlier one wins. The male form of a row of kind "feminine" tells no gender."""
    lexicon.kinds[triple] = kind
    words = lexicon.exact if kind == _TITLE else lexicon.folded
    genders: tuple[Gender, ...] = ("F",) if kind == "feminine" else ("F", "M")
    rows = [triple]
    if kind not in (_TITLE, "adjective") and triple[2] != "everyone":
        rows.append((plural(triple[0]), plural(triple[1]), plural(triple[2])))
    for forms in rows:
        for gender, word in zip(genders, forms, strict=False):
            # Forms that are alike tell no gender.
            if forms[0] != forms[1]:
                words.setdefault(word if kind == _TITLE else word.lower(), (gender, forms))


@cache
def load_lexicon() -> Lexicon:
    """The lexicon of this repository."""
    return read_lexicon(resource("gender_lexicon.csv"))


def pronoun_forms(word: str, is_possessive: bool) -> Triple | None:
    """The three forms of a gendered pronoun in the word's letter case, or None for another word.

    Args:
        is_possessive: whether "her" or "his" stands before what is possessed; else they are an
            object ("sees her") and an independent possessive ("a friend of his").

    >>> pronoun_forms("Her", True), pronoun_forms("his", False)
    (('Her', 'His', 'Their'), ('hers', 'his', 'theirs'))
    """
    low = word.lower()
    if low not in PRONOUNS:
        return None
    if low in ("her", "his") and is_possessive:
        return in_case_of(word, POSSESSIVE)
    others = (case for case in _CASES if case is not POSSESSIVE)
    return in_case_of(word, next(case for case in others if low in case))


def in_case_of(word: str, forms: Triple) -> Triple:
    """Three forms in the letter case of a word (`like`)."""
    return like(word, forms[0]), like(word, forms[1]), like(word, forms[2])


def as_counted(words: Sequence[str]) -> list[str]:
    """Words as an uncased model reads them: in lower case, without spaces at the edges.

    Nothing is split or dropped.

    >>> as_counted(["Mx. ", "She"])
    ['mx.', 'she']
    """
    return [word.strip().lower() for word in words]


def first_pronoun(
    words: Sequence[str], classes: Sequence[str] = tuple(PRONOUN_FORMS)
) -> tuple[int, int] | None:
    """Position and class index of the first third-person pronoun of these classes, or None.

    >>> first_pronoun("Here she meets him".split())
    (1, 0)
    """
    class_of = {form: k for k, name in enumerate(classes) for form in PRONOUN_FORMS[name]}
    return next(
        ((i, class_of[word]) for i, word in enumerate(as_counted(words)) if word in class_of), None
    )
