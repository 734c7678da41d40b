"""Sentences whose only sign of gender is one pronoun: reading, the steps of the filter, masking and swapping (Ye et al., section 3.2)."""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path

import pandas as pd
import spacy
import yaml
from spacy.language import Language
from spacy.tokens import Token

from lib.core.errors import TouchstoneError, did_you_mean
from lib.core.files import read_utf8
from lib.language.annotator import is_possessive
from lib.language.lexicon import MASK, PRONOUNS, load_lexicon, pronoun_forms

SLOTS = ("subject", "object", "possessive", "independent", "reflexive")
GENDERS = {"F": "female", "M": "male"}
NOT_ONLY_NOUNS = frozenset(
    "count counts prior master masters host hosts groom grooms father fathers mother mothers mans".split()
)
_ANY = re.compile(rf"\b({'|'.join(PRONOUNS)})\b", re.IGNORECASE)


def read_sentences(path: Path | str, column: str = "sent1") -> pd.DataFrame:
    """The distinct, non-empty sentences of a CSV or TSV file: `row` (line on which its first copy begins, from 1), `sentence`.

    SWAG's files have them in `sent1`. In a TSV file a quotation mark is a letter like any other. Raises TouchstoneError
    where file or column is missing, no line holds a sentence, the bytes are not UTF-8, or a row does not have the
    fields of the head (with the number of the line).
    """
    path = Path(path)
    (_, columns), *rows = _rows(path)
    if column not in columns:
        raise TouchstoneError(
            f"{path} has no column {column!r}{did_you_mean(column, columns)}; its columns are "
            f"{', '.join(columns[:12])}"
        )
    at = columns.index(column)
    found = pd.DataFrame(
        [(line, " ".join(fields[at].split())) for line, fields in rows], columns=["row", "sentence"]
    ).astype({"sentence": object})
    found = found[found["sentence"] != ""].drop_duplicates("sentence", ignore_index=True)
    if found.empty:
        raise TouchstoneError(
            f"{path} has no sentence in its column {column!r}; choose another column or file"
        )
    return found


def split_words(sentence: str) -> list[str]:
    """The words of a sentence as spaCy's English rules split it (no pipeline is needed)."""
    return [token.text for token in _tokenizer().make_doc(sentence) if not token.is_space]


def gendered_pronouns(words: Sequence[str]) -> list[int]:
    """The positions of the eight pronouns: he, his, him, himself, she, her, hers, herself."""
    return [i for i, word in enumerate(words) if word.lower() in PRONOUNS]


def gendered_identities(words: Sequence[str]) -> list[int]:
    """The positions of other words that carry gender ("sister", "boy", "actress"), by the lexicon of the repository."""
    lexicon = load_lexicon()
    return [
        i
        for i, word in enumerate(words)
        if word.lower() not in PRONOUNS and lexicon.find(word) is not None
    ]


def sure_identities(words: Sequence[str]) -> list[int]:
    """Those of them that can be nothing but nouns: "counts" may be a verb, which only a parse can tell."""
    return [i for i in gendered_identities(words) if words[i].lower() not in NOT_ONLY_NOUNS]


def may_have_pronoun(sentence: str) -> bool:
    """A quick look at the letters, so that only sentences with such a word are split; it lets too many pass, never too few."""
    return _ANY.search(sentence) is not None


def pronoun_slot(token: Token) -> str:
    """What a pronoun does: subject, object, possessive (before a noun), independent ("it is hers"), reflexive.

    >>> from lib.studies.implicit_bias.sentences import slot_of_word
    >>> slot_of_word("him", False), slot_of_word("her", True), slot_of_word("her", False)
    ('object', 'possessive', 'object')
    """
    return slot_of_word(token.text, is_possessive(token))


def slot_of_word(word: str, before_noun: bool) -> str:
    """The slot of a pronoun; "her" and "his" need to know whether they stand before what is possessed."""
    low = word.lower()
    if low in ("her", "his") and before_noun:
        return "possessive"
    return {
        "he": "subject",
        "she": "subject",
        "him": "object",
        "her": "object",
        "his": "independent",
        "hers": "independent",
        "himself": "reflexive",
        "herself": "reflexive",
    }[low]


def masked_words(words: Sequence[str], at: int) -> list[str]:
    """The sentence with the pronoun masked (step 4)."""
    return [*words[:at], MASK, *words[at + 1 :]]


def with_gender(words: Sequence[str], at: int, slot: str, gender: str) -> list[str]:
    """The sentence with the pronoun of the other gender (or the same) in the same slot; `gender` is F or M.

    >>> with_gender(["He", "sat"], 0, "subject", "F"), with_gender(["on", "her", "arm"], 1, "possessive", "M")
    (['She', 'sat'], ['on', 'his', 'arm'])
    """
    forms = pronoun_forms(words[at], slot == "possessive")
    if forms is None:
        raise TouchstoneError(f"{words[at]!r} is no gendered pronoun; give the position of one")
    return [*words[:at], forms[0 if gender == "F" else 1], *words[at + 1 :]]


def gender_frames(path: Path, n: int, seed: int) -> list[list[str]]:
    """`n` sentences drawn from nouns and frames (`material/frames.yaml`), as words, both genders alike."""
    about = yaml.safe_load(path.read_text(encoding="utf-8"))
    forms = {
        "F": {"they": "she", "them": "her", "their": "her", "themself": "herself"},
        "M": {"they": "he", "them": "him", "their": "his", "themself": "himself"},
    }
    every = {
        g: [(noun, frame) for noun in about["nouns"][g] for frame in about["frames"]]
        for g in GENDERS
    }
    if n > 2 * min(map(len, every.values())):
        raise TouchstoneError(
            f"{path.name} gives {2 * min(map(len, every.values()))} sentences and {n} were asked for; ask for fewer"
        )
    chooser, found = random.Random(seed), []
    for gender, pairs in every.items():
        for noun, frame in chooser.sample(pairs, n // 2):
            words = [forms[gender].get(word, word) for word in frame.split()]
            found.append(
                [part for word in words for part in (noun.split() if word == "N" else [word])]
            )
    return found


def without_nouns(sentences: Iterable[Sequence[str]], nouns: Collection[str]) -> list[list[str]]:
    """The sentences that hold none of some nouns, in the singular or with an -s."""
    taken = {form for noun in nouns for form in (noun, noun + "s", noun + "es")}
    return [list(words) for words in sentences if not taken & {word.lower() for word in words}]


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows of a table that are not empty, head included, each with the line on which it begins."""
    is_tsv = path.suffix.lower() == ".tsv"
    reader = csv.reader(
        io.StringIO(_text(path), newline=""),
        delimiter="\t" if is_tsv else ",",
        strict=True,
        quoting=csv.QUOTE_NONE if is_tsv else csv.QUOTE_MINIMAL,
    )
    rows, line = [], 1
    try:
        for fields in reader:
            fields = [_unquoted(field) for field in fields] if is_tsv else fields
            if fields and rows and len(fields) != len(rows[0][1]):
                raise TouchstoneError(
                    f"{path}, line {line}: {len(fields)} fields, and the head has {len(rows[0][1])}; "
                    "complete the row, or put quotation marks around a field with a comma in it"
                )
            rows += [(line, fields)] if fields else []
            line = reader.line_num + 1
    except csv.Error as error:
        raise TouchstoneError(
            f"{path}, line {line}: the row that begins here cannot be read ({error}); close its quotation "
            "marks, and double those inside a field"
        ) from None
    if not rows:
        raise TouchstoneError(
            f"{path} is empty; it needs a line with the names of the columns, and rows below it"
        )
    return rows


def _unquoted(field: str) -> str:
    """A field of a TSV file without the marks that pandas puts around one that holds a mark: its own are doubled."""
    return (
        field[1:-1].replace('""', '"')
        if re.fullmatch('"(?:[^"]|"")*""(?:[^"]|"")*"', field)
        else field
    )


def _text(path: Path) -> str:
    if not path.is_file():
        raise TouchstoneError(f"there is no file {path}; correct the parameter that names it")
    return read_utf8(path)


@cache
def _tokenizer() -> Language:
    return spacy.blank("en")
