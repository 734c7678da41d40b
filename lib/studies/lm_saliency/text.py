"""What the models of lm_saliency read: a corpus without its test lines, and examples for probes."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from ...language.corpora import Tagged
from .extraction import PRONOUNS, number_of_verb

CLASSES = {"number": ("singular", "plural"), "gender": ("male", "female")}  # of a probe, by task
TASKS = tuple(CLASSES)
_GENDER_SETS = ("Winobias", "OntoGUM", "CoNLL", "Held-out gender")


def number_examples(sentence: Tagged) -> list[tuple[list[str], int]]:
    """What a number probe learns from: every verb that shows a number.

    Returns:
        Pairs of the words before the verb and its number, 0 singular or 1 plural.
    """
    words = [word for word, _ in sentence]
    numbers = [number_of_verb(word, tag) for word, tag in sentence]
    return [(words[:i], number) for i, number in enumerate(numbers) if number is not None and i]


def gender_examples(words: Sequence[str]) -> list[tuple[list[str], int]]:
    """What a gender probe learns from: every gendered pronoun in small letters.

    Returns:
        Pairs of the words before the pronoun and its gender, 0 male or 1 female.

    >>> gender_examples("He met her".split())
    [(['He', 'met'], 1)]
    """
    return [
        (list(words[:i]), PRONOUNS[word]) for i, word in enumerate(words) if word in PRONOUNS and i
    ]


def probe_table(
    examples: Mapping[str, Iterable[tuple[Sequence[str], int]]], max_words: int
) -> pd.DataFrame:
    """Examples by split as a table (split, prefix, tag).

    Of a longer prefix the last `max_words` words are kept.
    """
    return pd.DataFrame(
        [
            (split, " ".join(prefix[-max_words:]), tag)
            for split, part in examples.items()
            for prefix, tag in part
        ],
        columns=["split", "prefix", "tag"],
    )


def without_prefixes(sentences: list[Tagged], prefixes: list[list[str]]) -> list[Tagged]:
    """The sentences that begin with none of the prefixes: test lines stay out of training.

    Letter case does not count.
    """
    # One look-up for each length of a prefix, since there are thousands of either.
    beginnings = {tuple(word.lower() for word in prefix) for prefix in prefixes}
    lengths = {len(prefix) for prefix in beginnings}
    outside = []
    for sentence in sentences:
        words = tuple(word.lower() for word, _ in sentence)
        if not any(words[:n] in beginnings for n in lengths):
            outside.append(sentence)
    return outside


def task_of_set(name: str) -> str:
    """What a set of agreement lines asks for.

    >>> task_of_set("Syneval"), task_of_set("Winobias")
    ('number', 'gender')
    """
    return "gender" if name in _GENDER_SETS else "number"
