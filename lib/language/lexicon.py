"""Words that carry gender: nouns and titles for people with their female, male and neutral forms, and the pronouns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from lib.core.errors import TouchstoneError
from lib.core.paths import material

Triple = tuple[str, str, str]  # female, male, neutral
Gender = Literal["F", "M"]
COLUMNS = ["female", "male", "neutral", "kind", "source"]
TITLES, FEMININE = "title", "feminine"

NOMINATIVE: Triple = ("she", "he", "they")
ACCUSATIVE: Triple = ("her", "him", "them")
POSSESSIVE: Triple = ("her", "his", "their")
INDEPENDENT: Triple = ("hers", "his", "theirs")
REFLEXIVE: Triple = ("herself", "himself", "themself")
PRONOUNS: Mapping[str, Gender] = {
    "she": "F",
    "her": "F",
    "hers": "F",
    "herself": "F",
    "he": "M",
    "him": "M",
    "his": "M",
    "himself": "M",
}
MASK = "[MASK]"  # how a masked word is written in tables, whatever a model's own mask token is
PLURALS = {
    "person": "people",
    "child": "children",
    "wife": "wives",
    "everyman": "everymen",
    "god": "gods",
}


@dataclass(frozen=True)
class Lexicon:
    """Triples by word: `exact` as they are written (titles), `folded` in small letters; singular and plural."""

    exact: Mapping[str, tuple[Gender, Triple]]
    folded: Mapping[str, tuple[Gender, Triple]]
    kinds: Mapping[Triple, str]

    def find(self, word: str) -> tuple[Gender, Triple] | None:
        """The gender of a word and its three forms in the word's own letter case, or None.

        >>> load_lexicon().find("Fishermen")
        ('M', ('Fisherwomen', 'Fishermen', 'Fishers'))
        """
        found = self.exact.get(word)
        if word == "God":  # a name
            return None
        if found is None and (found := self.folded.get(word.lower())) is not None:
            gender, (female, male, neutral) = found
            found = gender, (like(word, female), like(word, male), like(word, neutral))
        return found or self._ends_in_man(word)

    def is_title(self, word: str) -> bool:
        """Whether a word is a title that stands before a name (Mrs., Lord)."""
        return word in self.exact

    def _ends_in_man(self, word: str) -> tuple[Gender, Triple] | None:
        """A compound with a hyphen that ends in a word of the list: cabin-boy, under-secretary-woman."""
        head, hyphen, tail = word.rpartition("-")
        found = self.folded.get(tail.lower()) if hyphen and len(head) > 1 else None
        return (
            (found[0], (f"{head}-{found[1][0]}", f"{head}-{found[1][1]}", f"{head}-{found[1][2]}"))
            if found
            else None
        )


def like(model: str, word: str) -> str:
    """A word in the letter case of another one; several words become capitalised one by one.

    >>> like("King", "head teacher"), like("KING", "monarch"), like("king", "Noble")
    ('Head Teacher', 'MONARCH', 'Noble')
    """
    if len(model) > 1 and model.isupper():
        return word.upper()
    return (
        " ".join(part[:1].upper() + part[1:] for part in word.split(" "))
        if model[:1].isupper()
        else word
    )


def plural(word: str) -> str:
    """The plural of a noun of the list, its last word inflected.

    >>> [plural(word) for word in ("washerwoman", "wife", "lady", "witch", "domestic worker", "mother-in-law")]
    ['washerwomen', 'wives', 'ladies', 'witches', 'domestic workers', 'mothers-in-law']
    """
    if word.endswith("-in-law"):
        return plural(word.removesuffix("-in-law")) + "-in-law"
    head, blank, last = word.rpartition(" ")
    for end, many in PLURALS.items():
        if last.endswith(end):
            return head + blank + last[: -len(end)] + many
    if re.search(r"(?<!hu)(?<!Ger)(?<!Ro)man$", last):
        return head + blank + last[:-2] + "en"
    if re.search(r"[^aeiou]y$", last):
        return head + blank + last[:-1] + "ies"
    return head + blank + last + ("es" if re.search(r"(s|x|z|(?<!ar)ch|sh)$", last) else "s")


def read_lexicon(path: Path) -> Lexicon:
    """Read a lexicon (CSV with a head of `#` comments). Raises TouchstoneError naming file and line for a bad row."""
    lines = [
        (n, line)
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if not line.startswith("#")
    ]
    if not lines or lines[0][1].split(",") != COLUMNS:
        raise TouchstoneError(
            f"{path} does not begin with the columns {','.join(COLUMNS)}; write them above the words"
        )
    exact: dict[str, tuple[Gender, Triple]] = {}
    folded: dict[str, tuple[Gender, Triple]] = {}
    kinds: dict[Triple, str] = {}
    for (number, _), row in zip(lines[1:], csv.reader(line for _, line in lines[1:]), strict=True):
        if len(row) != len(COLUMNS) or not all(row):
            raise TouchstoneError(
                f"{path}, line {number}: not five filled fields ({','.join(COLUMNS)}); complete the row"
            )
        triple: Triple = (row[0], row[1], row[2])
        kinds[triple] = row[3]
        for forms in _forms(triple, row[3]):
            target = exact if row[3] == TITLES else folded
            for gender, word in (("F", forms[0]), ("M", forms[1])):
                if forms[0] != forms[1] and (gender == "F" or row[3] != FEMININE):
                    target.setdefault(word if target is exact else word.lower(), (gender, forms))  # type: ignore[arg-type]
    return Lexicon(exact, folded, kinds)


@cache
def load_lexicon() -> Lexicon:
    """The lexicon of this repository."""
    return read_lexicon(material("geco") / "gender_lexicon.csv")


def pronoun_forms(word: str, is_possessive: bool) -> Triple | None:
    """The three forms of a gendered pronoun; "her" and "his" need to know whether they stand before what is possessed.

    >>> pronoun_forms("Her", True), pronoun_forms("his", False)
    (('Her', 'His', 'Their'), ('hers', 'his', 'theirs'))
    """
    low = word.lower()
    if low not in PRONOUNS:
        return None
    if low in ("her", "his") and is_possessive:
        forms = POSSESSIVE
    else:
        forms = {
            "her": ACCUSATIVE,
            "him": ACCUSATIVE,
            "his": INDEPENDENT,
            "hers": INDEPENDENT,
            "herself": REFLEXIVE,
            "himself": REFLEXIVE,
        }.get(low, NOMINATIVE)
    return like(word, forms[0]), like(word, forms[1]), like(word, forms[2])


def _forms(triple: Triple, kind: str) -> Iterable[Triple]:
    yield triple
    if kind not in (TITLES, "adjective") and triple[2] != "everyone":
        yield plural(triple[0]), plural(triple[1]), plural(triple[2])
