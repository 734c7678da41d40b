"""What the models of lm_saliency read: a corpus without its test lines, and examples for probes."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from ...language.books import authors_of, book_archive, book_sentences, list_books, split_authors
from ...language.corpora import Tagged
from .extraction import PRONOUNS, number_of_verb
from .naming import BALANCED, WHOLE

CLASSES = {"number": ("singular", "plural"), "gender": ("male", "female")}  # of a probe, by task
TASKS = tuple(CLASSES)
BALANCED_KIND = BALANCED.strip()  # gender examples, as many of either class
DRAWN = {"matched": "number", BALANCED_KIND: "gender"}  # examples drawn from others, and their task
_NOUNS = {"NN": 0, "NNP": 0, "NNS": 1, "NNPS": 1}
_GENDER_SETS = ("Winobias", "OntoGUM", "CoNLL", "Held-out gender")


def number_examples(sentence: Tagged) -> list[tuple[list[str], int]]:
    """What a number probe learns from: every verb that shows a number.

    Returns:
        Pairs of the words before the verb and its number, 0 singular or 1 plural.
    """
    words = [word for word, _ in sentence]
    numbers = [number_of_verb(word, tag) for word, tag in sentence]
    return [(words[:i], number) for i, number in enumerate(numbers) if number is not None and i]


def matched_examples(sentence: Tagged) -> list[tuple[list[str], int, int]]:
    """The number examples whose words hold a noun, with the number of the nearest one.

    Returns:
        Triples of the words before the verb, its number, and the number of the last noun before it
        (0 for NN and NNP, 1 for NNS and NNPS).

    >>> matched_examples([("keys", "NNS"), ("of", "IN"), ("Ann", "NNP"), ("are", "VBP")])
    [(['keys', 'of', 'Ann'], 1, 0)]
    """
    found = []
    for words, number in number_examples(sentence):
        nouns = [_NOUNS[tag] for _, tag in sentence[: len(words)] if tag in _NOUNS]
        if nouns:
            found.append((words, number, nouns[-1]))
    return found


def balanced(table: pd.DataFrame, by: Sequence[str], seed: int) -> pd.DataFrame:
    """As many rows of each kind in every split, drawn; the order stays.

    Args:
        table: with a column split.
        by: the columns whose values make a kind.
        seed: of the draw.
    """
    kinds = table.groupby(["split", *by])[by[0]].transform("size")
    fewest = kinds.groupby(table["split"]).transform("min")
    drawn = pd.Series(np.random.default_rng(seed).permutation(len(table)), index=table.index)
    place = drawn.groupby([table[name] for name in ("split", *by)]).rank(method="first")
    return table[place <= fewest].reset_index(drop=True)


def tagged_table(corpus: Mapping[str, Sequence[Tagged]], max_words: int, seed: int) -> pd.DataFrame:
    """Number examples of the tagged sentences alone, both classes equally often.

    In untagged text only was and were are seen, and was is the more frequent one.
    """
    examples = {
        part: [
            example
            for sentence in sentences
            if any(tag for _, tag in sentence)
            for example in number_examples(sentence)
        ]
        for part, sentences in corpus.items()
    }
    return balanced(probe_table(examples, max_words), ["tag"], seed)


def matched_table(
    corpus: Mapping[str, Sequence[Tagged]], max_words: int, seed: int
) -> pd.DataFrame:
    """Number examples in which the nearest noun says nothing of the verb.

    Returns:
        split, prefix, tag, nearest (`matched_examples`); every pair of tag and nearest equally
        often.
    """
    examples = {
        part: [example for sentence in sentences for example in matched_examples(sentence)]
        for part, sentences in corpus.items()
    }
    pairs = {part: [(words, tag) for words, tag, _ in found] for part, found in examples.items()}
    nearest = [near for found in examples.values() for *_, near in found]
    table = probe_table(pairs, max_words).assign(nearest=nearest)
    return balanced(table, ["tag", "nearest"], seed)


def with_books(
    corpus: Mapping[str, list[Tagged]],
    prefixes: list[list[str]],
    n_words: int,
    n_valid: int,
    n_parts: int,
    seed: int,
) -> dict[str, list[Tagged]]:
    """What models read: a corpus, and sentences of books among its own.

    Args:
        corpus: sentences by part, train and valid.
        prefixes: of test lines; a sentence that begins with one is left out.
        n_words: about how many words of books to learn from; 0 for the corpus as it is.
        n_valid: about how many of other authors to validate on.
        n_parts: authors are split into so many parts of about as many words; the first one
            validates, as for the models of `lib.training.pretrain`.
        seed: of the draws.
    """
    if not n_words:
        return dict(corpus)
    books, archive = list_books(), book_archive()
    apart, *others = split_authors(books, n_parts)
    drawn = {"train": (sum(others, []), n_words), "valid": (apart, n_valid)}
    mixed = {}
    for part, (authors, size) in drawn.items():
        found = book_sentences(archive, authors_of(books, authors), size, seed)
        untagged: list[Tagged] = [[(word, "") for word in words] for words in found]
        together = [*corpus[part], *without_prefixes(untagged, prefixes)]
        order = np.random.default_rng([seed, 1]).permutation(len(together))
        mixed[part] = [together[i] for i in order]
    return mixed


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

    >>> task_of_set("Syneval"), task_of_set("Winobias"), task_of_set("OntoGUM whole balanced")
    ('number', 'gender', 'gender')
    """
    plain = name.removesuffix(BALANCED).removesuffix(WHOLE)
    return "gender" if plain in _GENDER_SETS else "number"
