"""The items: texts that are explained, and beside them the same texts altered, which no explainer
sees.

Items: item_id, truth, model (the task that its model has learnt), cluster, sentence (a list of
words), target (the class whose log-odds are explained), mark (a number a word: what the truth knows
before any model is asked). Altered texts: item_id, change (what was done), at (the place of the
word, or -1), sentence.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from ...core.seeds import seed_for
from ...language.conllu import read_conllu
from .nouns import Kind, replacements

ITEM = ["item_id", "truth", "model", "cluster", "sentence", "target", "mark"]
ALTERED = ["item_id", "change", "at", "sentence"]
_CONTENT = ("N", "V", "J", "R")  # how the tags of nouns, verbs, adjectives and adverbs begin


def draw_items(rows: pd.DataFrame, truth: str, model: str, n: int, seed: int) -> pd.DataFrame:
    """Items drawn from rows, at most one of a cluster; other columns of the rows stay.

    Args:
        rows: cluster, sentence, target, mark.
        n: how many, at most.
    """
    draw_seed = seed_for("items", truth, model, seed)
    chosen = rows.sample(frac=1, random_state=draw_seed).drop_duplicates("cluster").head(n)
    ids = [f"{truth}-{model}-{i}" for i in range(len(chosen))]
    drawn = chosen.assign(item_id=ids, truth=truth, model=model)
    drawn["mark"] = [[float(mark) for mark in marks] for marks in drawn["mark"]]
    return drawn.reset_index(drop=True)


def count_words(paths: Iterable[Path]) -> Counter[tuple[str, str]]:
    """How often each (word in small letters, tag) stands in CoNLL-U files."""
    trees = (tree for path in paths for tree in read_conllu(path))
    return Counter((row.form.lower(), row.xpos) for tree in trees for row in tree.rows)


def exchange_number(words: Sequence[str], at: int) -> list[str]:
    """The words with one regular noun in the other number.

    >>> exchange_number("the keys to the cabinet".split(), 1)
    ['the', 'key', 'to', 'the', 'cabinet']
    """
    noun = words[at]
    other = noun.removesuffix("s") if noun.endswith("s") else f"{noun}s"
    return [*words[:at], other, *words[at + 1 :]]


def with_other_numbers(items: pd.DataFrame) -> pd.DataFrame:
    """Each marked noun of an item in the other number: a cue (mark 1), an attractor (mark -1)."""
    names = {1.0: "cue exchanged", -1.0: "attractor exchanged"}
    rows = [
        (row.item_id, names[mark], at, exchange_number(row.sentence, at))
        for row in items.itertuples()
        for at, mark in enumerate(row.mark)
        if mark in names
    ]
    return pd.DataFrame(rows, columns=ALTERED)


def with_replacements(
    items: pd.DataFrame, kinds: Mapping[str, Kind], n: int, seed: int
) -> pd.DataFrame:
    """Each content word of an item exchanged for up to `n` others of its kind.

    Words of which there are too few others are left as they are, and the truth says nothing of
    them.
    """
    rows = [
        (row.item_id, "replacement", at, [*row.sentence[:at], other, *row.sentence[at + 1 :]])
        for row in items.itertuples()
        for at, word in enumerate(row.sentence)
        if (kind := kinds.get(word.lower())) and kind.tag.startswith(_CONTENT)
        for other in replacements(word, kinds, n, seed)
    ]
    return pd.DataFrame(rows, columns=ALTERED)


def with_short_texts(items: pd.DataFrame) -> pd.DataFrame:
    """The text that a person left, in the column `short` of nested pairs."""
    rows = [(row.item_id, "removed", -1, list(row.short)) for row in items.itertuples()]
    return pd.DataFrame(rows, columns=ALTERED)
