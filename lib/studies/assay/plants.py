"""The truth of a plant: words that were put into texts and alone decide the label, and a decoy that
was put in as often and decides nothing (after Bastings et al. 2022).

| rule | the label is 1 where | the truth of an explained row |
|---|---|---|
| single | the first word is there, 0 where the second is | 1 on the word |
| and | both words are there | one half on each |
| or | at least one of them is there | 1 on a word alone, one half on each of two |
| order | the first word stands before the second (both always do) | one half on each |

One half is the Shapley value of a word in AND and in OR, with the text without both as the empty
coalition. Labels are dealt at random, so that the text's own words say nothing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError, check_choice
from ...core.seeds import seed_for


class Rule(NamedTuple):
    """Which of the two words a row of each label may hold, each choice as often; and whether their
    order is drawn or follows the label.
    """

    label_0: tuple[tuple[int, ...], ...]
    label_1: tuple[tuple[int, ...], ...]
    is_ordered: bool = False


DECOY = "lemon"  # decides nothing
RULES = {
    "single": Rule(((1,),), ((0,),)),
    "and": Rule(((), (0,), (1,)), ((0, 1),)),
    "or": Rule(((),), ((0,), (1,), (0, 1))),
    "order": Rule(((0, 1),), ((0, 1),), is_ordered=True),
}


def plant_words(
    sentences: Sequence[Sequence[str]],
    rule: str,
    words: tuple[str, str],
    decoy: str,
    seed: int = 0,
) -> pd.DataFrame:
    """Texts with planted words at random places.

    Args:
        sentences: texts, each a list of words.
        rule: one of `RULES`.
        words: the two words that are planted.
        decoy: a word that is planted in half of the texts of either label.
        seed: what a text gets depends on its place and this alone.

    Returns:
        row_id, sentence_idx (the place of the text), target (the label), sentence, truth (a number
        a word, summing to 1; zeros where the label rests on no word being there), decoy_at (its
        place, -1 without).

    Raises:
        TouchstoneError: another rule; words that are not three different ones, or stand in the
            texts already.
    """
    check_choice("the rule", rule, RULES)
    new = [*words, decoy]
    known = {word.lower() for sentence in sentences for word in sentence}
    if len(set(new)) < 3 or (taken := [word for word in new if word.lower() in known]):
        raise TouchstoneError(
            f"{new if len(set(new)) < 3 else taken[0]!r} cannot be planted: take three different "
            "words that stand in no text"
        )
    rows = []
    for idx, sentence in enumerate(sentences):
        rng = np.random.default_rng(seed_for("plant", rule, idx, seed))
        label = int(rng.integers(2))
        choices = RULES[rule].label_1 if label else RULES[rule].label_0
        chosen = [words[i] for i in choices[rng.integers(len(choices))]]
        if RULES[rule].is_ordered and not label:
            chosen.reverse()
        text, planted = _insert(list(sentence), chosen, RULES[rule].is_ordered, rng)
        if rng.random() < 0.5:
            at = int(rng.integers(len(text) + 1))
            text.insert(at, decoy)
            planted = [place + (place >= at) for place in planted]
        truth = np.zeros(len(text))
        truth[planted] = 1 / max(1, len(planted)) if _decides(rule, label, len(planted)) else 0.0
        decoy_at = text.index(decoy) if decoy in text else -1
        rows.append((f"{rule}-{idx}", idx, label, text, truth.tolist(), decoy_at))
    columns = ["row_id", "sentence_idx", "target", "sentence", "truth", "decoy_at"]
    return pd.DataFrame(rows, columns=columns)


def planted_texts(
    sentences: Sequence[Sequence[str]],
    rules: Mapping[str, tuple[str, str]],
    decoy: str,
    n: int,
    seed: int = 0,
) -> pd.DataFrame:
    """`n` texts of each rule, one below the other; sentences are used again where there are fewer.

    Args:
        rules: the two words that are planted, by rule.

    Returns:
        As `plant_words`, with the rule.
    """
    texts = [sentences[i % len(sentences)] for i in range(n)]
    parts = [plant_words(texts, rule, words, decoy, seed) for rule, words in rules.items()]
    return pd.concat(
        [part.assign(rule=rule) for rule, part in zip(rules, parts, strict=True)], ignore_index=True
    )


def overlap(scores: Sequence[float], truth: Sequence[float]) -> float:
    """How much of the absolute attribution lies where the truth is: 1 minus the total variation
    distance of the two, each summing to one. NaN without a truth; 0 without any attribution.

    >>> overlap([0.5, 0.5, 1.0], [0.5, 0.5, 0.0])
    0.5
    """
    sizes, shares = np.abs(np.asarray(scores, float)), np.asarray(truth, float)
    if not shares.any():
        return float("nan")
    return float(np.minimum(sizes / (sizes.sum() or 1.0), shares).sum())


def plants_first(scores: Sequence[float], truth: Sequence[float]) -> float:
    """How often a planted word has a larger absolute score than another word; a tie counts half.

    NaN without a truth or without another word.

    >>> plants_first([3.0, 0.1, 2.0, 1.0], [0.5, 0.5, 0.0, 0.0])
    0.5
    """
    sizes, is_planted = np.abs(np.asarray(scores, float)), np.asarray(truth) > 0
    pairs = np.sign(sizes[is_planted][:, None] - sizes[~is_planted][None])  # (planted, other)
    return float(pairs.mean() / 2 + 0.5) if pairs.size else float("nan")


def _decides(rule: str, label: int, n_planted: int) -> bool:
    """Whether the label rests on the planted words, not on one that is missing."""
    return n_planted > 0 and (rule in ("single", "order") or label == 1)


def _insert(
    text: list[str], chosen: Sequence[str], is_ordered: bool, rng: np.random.Generator
) -> tuple[list[str], list[int]]:
    """Put words at random places, in their order if that matters; the text and their places."""
    order = list(chosen) if is_ordered else [chosen[i] for i in rng.permutation(len(chosen))]
    gaps = np.sort(rng.integers(len(text) + 1, size=len(order)))
    for i, (gap, word) in enumerate(zip(gaps, order, strict=True)):
        text.insert(int(gap) + i, word)
    return text, [int(gap) + i for i, gap in enumerate(gaps)]
