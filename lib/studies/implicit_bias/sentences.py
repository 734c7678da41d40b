"""Sentences whose only sign of gender is one pronoun (Ye et al., arXiv 2110.01094, section 3.2).

Reading them from tables, what the steps of the filter ask of the words, masking and swapping, and
coreference clusters from a file. A sentence is a list of words; positions in it count from 0.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import spacy
from spacy.tokens import Doc

from ...core.errors import TouchstoneError, did_you_mean
from ...core.files import csv_rows, read_utf8, strict_json
from ...language.lexicon import MASK, PRONOUNS, load_lexicon, pronoun_forms
from ...language.visible import is_visible
from .coreference import Clusters, Resolver

SLOTS = ("subject", "object", "possessive", "independent", "reflexive")
# Words of the lexicon that may be verbs or adjectives: only a parse can tell.
_NOT_ONLY_NOUNS = frozenset(
    "count counts prior master masters host hosts groom grooms "
    "father fathers mother mothers mans".split()
)
_blank = cache(spacy.blank)  # a pipeline without parts, loaded when a sentence is first split
_ANY = re.compile(rf"\b({'|'.join(PRONOUNS)})\b", re.IGNORECASE)


def read_sentences(path: Path | str, column: str = "sent1") -> pd.DataFrame:
    """The distinct, non-empty sentences of a CSV or TSV file.

    In a TSV file a quotation mark is a letter like any other.

    Args:
        path: the file.
        column: where the sentences stand; in SWAG's files that is `sent1`.

    Returns:
        The columns `row` (the line, from 1, on which a sentence's first copy begins) and
        `sentence`.

    Raises:
        TouchstoneError: file or column is missing, no line holds a sentence, the bytes are not
            UTF-8, or a row does not have the fields of the head (with the number of the line).
    """
    path = Path(path)
    (_, columns), *rows = csv_rows(path)
    if column not in columns:
        raise TouchstoneError(
            f"{path} has no column {column!r}{did_you_mean(column, columns)}; its columns are "
            f"{', '.join(columns[:12])}"
        )
    if columns.count(column) > 1:
        raise TouchstoneError(f"{path} has the column {column!r} twice; give one another name")
    at = columns.index(column)
    table = pd.DataFrame(
        [(line, " ".join(fields[at].split())) for line, fields in rows], columns=["row", "sentence"]
    ).astype({"sentence": object})
    seen = table[table["sentence"].map(is_visible)]
    sentences = seen.drop_duplicates("sentence", ignore_index=True)
    if sentences.empty:
        raise TouchstoneError(
            f"{path} has no sentence in its column {column!r}; choose another column or file"
        )
    return sentences


def split_words(sentence: str) -> list[str]:
    """The words of a sentence as spaCy's English rules split it (no pipeline is needed).

    >>> split_words("She's here.")
    ['She', "'s", 'here', '.']
    """
    return [token.text for token in _blank("en").make_doc(sentence) if not token.is_space]


def gendered_pronouns(words: Sequence[str]) -> list[int]:
    """The positions of the eight pronouns: he, his, him, himself, she, her, hers, herself.

    >>> gendered_pronouns(["The", "nurse", "lost", "Her", "hat"])
    [3]
    """
    return [i for i, word in enumerate(words) if word.lower() in PRONOUNS]


def gendered_identities(words: Sequence[str]) -> list[int]:
    """The positions of other words that carry gender (sister, boy, actress), by the lexicon.

    >>> gendered_identities(["Her", "sister", "acts"])
    [1]
    """
    return [
        i
        for i, word in enumerate(words)
        if word.lower() not in PRONOUNS and load_lexicon().find(word) is not None
    ]


def sure_identities(words: Sequence[str]) -> list[int]:
    """Those of them that can be nothing but nouns: of "counts" only a parse can tell."""
    return [i for i in gendered_identities(words) if words[i].lower() not in _NOT_ONLY_NOUNS]


def may_have_pronoun(sentence: str) -> bool:
    """Whether the letters of a pronoun occur: a fast test before a sentence is split into words.

    It lets too many sentences pass, never too few.
    """
    return _ANY.search(sentence) is not None


def slot_of_word(word: str, before_noun: bool) -> str:
    """What a pronoun does in its sentence, one of SLOTS.

    Args:
        word: one of the eight pronouns.
        before_noun: whether it stands before what is possessed, for "her" and "his".

    >>> slot_of_word("him", False), slot_of_word("her", True), slot_of_word("her", False)
    ('object', 'possessive', 'object')
    """
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
    """The sentence with the pronoun of one gender in the same slot.

    Args:
        words: the sentence.
        at: the position of its pronoun.
        slot: what the pronoun does, one of SLOTS.
        gender: F or M.

    >>> with_gender(["He", "sat"], 0, "subject", "F")
    ['She', 'sat']
    >>> with_gender(["on", "her", "arm"], 1, "possessive", "M")
    ['on', 'his', 'arm']
    """
    forms = pronoun_forms(words[at], slot == "possessive")
    if forms is None:
        raise TouchstoneError(f"{words[at]!r} is no gendered pronoun; give the position of one")
    return [*words[:at], forms[0 if gender == "F" else 1], *words[at + 1 :]]


def file_resolver(path: Path | str) -> Resolver:
    """Clusters that another system made, found by the words of a sentence.

    Args:
        path: JSON lines `{"words": [...], "clusters": [[[start, end], ...], ...]}`, ends included.

    Raises:
        TouchstoneError: naming file and line, for a line that is no such object, has a span outside
            its sentence, or says something else of a sentence than a line above; where no file is
            named or it is not there; and, when the resolver is called, for a sentence that the file
            does not hold.
    """
    stored: dict[tuple[str, ...], Clusters] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            words, clusters = _clusters_of(strict_json(line))
        except (ValueError, KeyError, TypeError) as error:
            raise TouchstoneError(
                f'{path}, line {number}: not {{"words": [...], "clusters": [[[0, 1], [4, 4]]]}} '
                f"({error}); write one such object per sentence"
            ) from None
        for start, end in (span for spans in clusters for span in spans):
            if not 0 <= start <= end < len(words):
                raise TouchstoneError(
                    f"{path}, line {number}: the mention {[start, end]} lies outside the "
                    f"{len(words)} words; count from 0, both ends included"
                )
        if stored.setdefault(words, clusters) != clusters:
            raise TouchstoneError(
                f"{path}, line {number}: the sentence stands there twice, with other clusters; "
                "keep one of the two lines"
            )
    if not stored:
        raise TouchstoneError(f"{path} holds no clusters; write one object per sentence")

    def resolve(doc: Doc) -> Clusters:
        """The clusters that the file holds for the sentence."""
        words = tuple(token.text for token in doc)
        if words not in stored:
            raise TouchstoneError(
                f"{path} holds no clusters for the sentence {doc.text[:60]!r}; "
                "resolve the sentences as they are split here (candidates.jsonl of stage 1)"
            )
        return stored[words]

    return resolve


def _clusters_of(entry: Any) -> tuple[tuple[str, ...], Clusters]:
    """Words and clusters of a line; an error says what it is not."""
    words, clusters = entry["words"], entry["clusters"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("words is no list of texts")
    ends = [end for spans in clusters for span in spans for end in span]
    if odd := [end for end in ends if type(end) is not int]:  # true, 0.5 and "1" would be read
        raise ValueError(f"{odd[0]!r} is no position")
    return tuple(words), [[(start, end) for start, end in spans] for spans in clusters]


def _lines(path: Path | str) -> list[str]:
    if not str(path).strip(". "):
        raise TouchstoneError(
            'resolver is "file", and clusters_file names none; '
            "name the file of JSON lines that your system wrote"
        )
    return read_utf8(path).splitlines()
