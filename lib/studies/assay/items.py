"""The items: texts that are explained, and beside them the same texts altered, which no explainer
sees.

Items: item_id, truth, model (the task that its model has learnt), cluster, sentence (a list of
words), target (the class whose log-odds are explained), mark (a number a word: what the truth knows
before any model is asked), part (test, or dev: a scale is fitted there). Altered texts: item_id,
change (what was done), at (the place of the word, or -1), sentence.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...core.seeds import seed_for
from ...language.conllu import read_conllu
from .edits import exchanged_words, removed_words, split_text
from .nouns import Kind, replacements

ITEM = ["item_id", "truth", "model", "cluster", "sentence", "target", "mark"]
ALTERED = ["item_id", "change", "at", "sentence"]
ORDERED = 3  # words that have an order, at least
_CONTENT = ("NOUN", "VERB", "ADJ", "ADV")
_VALENCE = {"Negative": -1.0, "Positive": 1.0}  # of an aspect of a review; else 0


def draw_items(
    rows: pd.DataFrame,
    truth: str,
    model: str,
    n: int,
    seed: int,
    by: str = "target",
    part: str = "test",
) -> pd.DataFrame:
    """Items drawn from rows, at most one of a cluster; other columns stay.

    Args:
        rows: cluster, sentence, target, mark.
        n: how many, at most.
        by: the column whose values take turns, so that each has about as many items.
        part: "test", or "dev" for items on which a scale is fitted and nothing is scored.
    """
    shuffled = rows.sample(frac=1, random_state=seed_for("items", truth, model, seed))
    turns = np.argsort(shuffled.groupby(by).cumcount().to_numpy(), kind="stable")
    chosen = shuffled.iloc[turns].drop_duplicates("cluster").head(n)
    name = f"{truth}-{model}-" + ("" if part == "test" else part)
    ids = [f"{name}{i}" for i in range(len(chosen))]
    drawn = chosen.assign(item_id=ids, truth=truth, model=model, part=part)
    drawn["mark"] = [[float(mark) for mark in marks] for marks in drawn["mark"]]
    return drawn.reset_index(drop=True)


def nested_rows(pairs: pd.DataFrame, texts: pd.DataFrame, longest: int) -> pd.DataFrame:
    """Rows of nested pairs for `draw_items`: the long text, with the words of the edit marked.

    Args:
        pairs: of `edits.nested_pairs`.
        texts: the reviews: text_id, group, text, is_original, edit_type (the aspect that was
            edited), edit_goal, and a column for each aspect.
        longest: pairs whose long text has more words are left out.

    Returns:
        The pairs with sentence, target (1), cluster, mark, and goal: by how much better readers
        judge the edited aspect in the long text than in the short one, in steps (from -2 to 2); no
        model is asked for it. And second: the text of another editor with the same goal, None
        where there is none.
    """
    rows = pairs[pairs["long"].map(len) <= longest]
    of = texts.set_index("text_id")
    goals, seconds = [], []
    for row in rows.itertuples():
        sides = of.loc[row.long_id], of.loc[row.short_id]
        edit = next(side for side in sides if not side["is_original"])
        aspect = edit["edit_type"]
        long, short = (_VALENCE.get(str(side[aspect]), 0.0) for side in sides)
        goals.append(long - short)
        same = (texts["group"] == row.group) & (texts["edit_type"] == aspect)
        same &= (texts["edit_goal"] == edit["edit_goal"]) & (texts["text_id"] != edit.name)
        others = [text for text in texts.loc[same, "text"] if text != edit["text"]]
        seconds.append(split_text(others[0]) if others else None)
    marks = [[i in row.edited for i in range(len(row.long))] for row in rows.itertuples()]
    return rows.assign(
        sentence=rows["long"],
        target=1,
        cluster=rows["group"],
        mark=marks,
        goal=goals,
        second=seconds,
        has_second=[text is not None for text in seconds],
    )


def agreement_rows(lines: pd.DataFrame, known: Collection[str]) -> pd.DataFrame:
    """Beginnings of sentences for `draw_items`, with a cue marked 1 and an attractor -1.

    Args:
        lines: prefix (words), tag (the number of the next verb), cues and attractors (lists of
            spans of one word), cluster.
        known: the words of the language model; a line with another word is left out.
    """
    rows = lines[[set(words) <= set(known) for words in lines["prefix"]]]
    marks = [
        [((i, i) in row.cues) - ((i, i) in row.attractors) for i in range(len(row.prefix))]
        for row in rows.itertuples()
    ]
    return rows.assign(sentence=rows["prefix"], target=rows["tag"], mark=marks)


def swapped_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of gendered sentences for `draw_items`: those with at least three altered words, for two
    have no order to speak of.

    Args:
        rows: sentence_idx, sentence, target, ground_truth (1 for an altered word).
    """
    rows = rows[rows["ground_truth"].map(sum) >= ORDERED]
    clusters = "text-" + rows["sentence_idx"].astype(str)
    return rows.assign(mark=rows["ground_truth"], cluster=clusters)


def planted_rows(planted: pd.DataFrame, n_sentences: int) -> pd.DataFrame:
    """Rows of planted texts for `draw_items`: those whose label rests on words that are there.
    Texts that are made from one sentence are a cluster.

    Args:
        planted: of `plants.planted_texts`, from that many sentences.
    """
    rows = planted[planted["truth"].map(any)]
    clusters = [f"text-{i % n_sentences}" for i in rows["sentence_idx"]]
    return rows.assign(mark=rows["truth"], cluster=clusters)


def with_second_questions(drawn: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """All items: those that were drawn, *mask* again as *swap*, *planted* again for a second model.

    Args:
        drawn: the items by truth.
    """
    swap = drawn["mask"].assign(
        truth="swap", item_id=drawn["mask"]["item_id"].str.replace("mask", "swap")
    )
    again = drawn["planted"].assign(
        model="planted-ola", item_id="ola-" + drawn["planted"]["item_id"]
    )
    items = pd.concat([*drawn.values(), swap, again], ignore_index=True)
    return items[[*ITEM, "part", "rule", "goal", "sentence_idx"]]


def without_items(train: pd.DataFrame, asked: pd.DataFrame) -> pd.DataFrame:
    """The training texts that no model is asked about: published texts, and short beginnings of
    sentences, stand there more than once.

    Args:
        train: model, sentence (a list of words).
        asked: the items.
    """
    known = set(zip(asked["model"], asked["sentence"].map(tuple), strict=True))
    texts = zip(train["model"], train["sentence"].map(tuple), strict=True)
    return train[[text not in known for text in texts]].reset_index(drop=True)


def content_tags(paths: Iterable[Path]) -> dict[tuple[str, ...], list[str]]:
    """The tags of the content words of each sentence of CoNLL-U files; "" for other words.

    Auxiliaries, which can hardly be exchanged, are no content words.
    """
    return {
        tuple(row.form for row in tree.rows): [
            row.xpos if row.upos in _CONTENT else "" for row in tree.rows
        ]
        for path in paths
        for tree in read_conllu(path)
    }


def count_words(tagged: Mapping[tuple[str, ...], Sequence[str]]) -> Counter[tuple[str, str]]:
    """How often each (content word in small letters, tag) stands in sentences (`content_tags`).

    >>> count_words({("Dogs", "are", "dogs"): ["NNS", "", "NNS"]})
    Counter({('dogs', 'NNS'): 2})
    """
    return Counter(
        (word.lower(), tag)
        for words, tags in tagged.items()
        for word, tag in zip(words, tags, strict=True)
        if tag
    )


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

    Words that are not of their usual kind here, or of which there are too few others, are left as
    they are, and the truth says nothing of them.

    Args:
        items: item_id, sentence, tags (`content_tags`).
    """
    rows = [
        (row.item_id, "replacement", at, [*row.sentence[:at], other, *row.sentence[at + 1 :]])
        for row in items.itertuples()
        for at, (word, tag) in enumerate(zip(row.sentence, row.tags, strict=True))
        if (kind := kinds.get(word.lower())) and kind.tag == tag
        for other in replacements(word, kinds, n, seed)
    ]
    return pd.DataFrame(rows, columns=ALTERED)


def with_short_texts(items: pd.DataFrame) -> pd.DataFrame:
    """The text that a person left, in the column `short` of nested pairs; and where another editor
    had the same goal, that editor's text, long or short as this one's is.
    """
    rows = []
    for row in items.itertuples():
        rows.append((row.item_id, "removed", -1, list(row.short)))
        if row.second is not None:
            side = "long" if row.was_inserted else "short"
            rows.append((row.item_id, f"second editor, {side}", -1, list(row.second)))
    return pd.DataFrame(rows, columns=ALTERED)


def mixed_edits(items: pd.DataFrame, texts: pd.DataFrame) -> pd.DataFrame:
    """Other edits of originals that are explained: those that remove words and write others.

    Args:
        items: drawn from nested pairs (`nested_rows`); those whose long text is the edit have none.
        texts: the reviews, as for `nested_rows`.

    Returns:
        item_id, at (the places of the words that are gone), sentence (the words of the edit).
    """
    rows = []
    for row in items[items["was_inserted"].eq(False)].itertuples():
        words = list(row.sentence)
        same = texts[(texts["group"] == row.group) & ~texts["is_original"]]
        for edited in same["text"].map(split_text):
            is_nested = any(
                removed_words(*sides) is not None for sides in ((words, edited), (edited, words))
            )
            if not is_nested and (gone := exchanged_words(words, edited)):
                rows.append((row.item_id, gone, edited))
    return pd.DataFrame(rows, columns=["item_id", "at", "sentence"])


def count_items(items: pd.DataFrame, altered: pd.DataFrame) -> pd.DataFrame:
    """How many items and clusters each truth has, their mean length, and how many altered texts.

    Items on which a scale is fitted are counted by themselves.
    """
    is_dev = items["part"] == "dev"
    items = items.assign(truth=items["truth"].mask(is_dev, items["truth"] + ", to fit a scale"))
    counts = items.groupby("truth", sort=False).agg(
        items=("item_id", "size"),
        clusters=("cluster", "nunique"),
        words=("sentence", lambda part: part.map(len).mean()),
    )
    of_truth = altered["item_id"].map(items.set_index("item_id")["truth"]).value_counts()
    counts["altered texts"] = of_truth.reindex(counts.index).fillna(0).astype(int)
    return counts.reset_index()
