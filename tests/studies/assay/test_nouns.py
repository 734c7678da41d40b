"""Words exchanged for others of their kind: by hand, and exactly for an additive model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lib.core.errors import TouchstoneError
from lib.studies.assay.nouns import (
    LEAST,
    Kind,
    replacements,
    skewed_sentences,
    word_effects,
    word_kinds,
)

COUNTS = {(f"{first}noun{i}", "NN"): i + 1 for first in "abe" for i in range(100)} | {
    (f"verb{i}", "VB"): 5 for i in range(30)
}


def test_kinds_have_tag_article_and_band() -> None:
    kinds = word_kinds(COUNTS | {("run", "VB"): 3, ("run", "NN"): 2})
    assert kinds["run"].tag == "VB"
    assert kinds["bnoun0"] == Kind("NN", "a", 0) and kinds["anoun99"] == Kind("NN", "an", 4)
    sizes = np.bincount([kind.band for kind in kinds.values() if kind.tag == "NN"])
    assert sizes.tolist() == [60] * 5


def test_replacements_are_of_one_kind_and_the_same_every_time() -> None:
    kinds = word_kinds(COUNTS)
    found = replacements("Anoun5", kinds, 30)
    assert len(set(found)) == 30 and "anoun5" not in found
    assert {kinds[word] for word in found} == {kinds["anoun5"]}
    assert replacements("anoun5", kinds, 30) == found != replacements("anoun5", kinds, 30, seed=1)
    assert replacements("bnoun5", kinds, 100) == [], "nineteen others are too few"
    assert replacements("unknown", kinds, 30) == []
    assert replacements("verb3", kinds, 30) == [], "six of a band are too few"
    with pytest.raises(TouchstoneError, match=f"take {LEAST} or more"):
        replacements("anoun5", kinds, 5)


def test_an_additive_model_loses_the_word_and_gains_the_mean_of_the_others() -> None:
    kinds = word_kinds(COUNTS)
    rng = np.random.default_rng(0)
    worth = {word: float(rng.normal()) for word in kinds}

    def g(texts: Sequence[Sequence[str]]) -> np.ndarray:
        return np.array([sum(worth.get(word, 0.0) for word in text) for text in texts])

    text = ["the", "anoun5", "and", "the", "enoun80"]
    others = {i: replacements(text[i], kinds, 40) for i in (1, 4)}
    effects = word_effects(g, text, others)
    assert list(effects) == [1, 4]
    for i, effect in effects.items():
        expected = worth[text[i]] - np.mean([worth[word] for word in others[i]])
        assert effect == pytest.approx(expected, abs=1e-12)


def test_each_noun_gets_a_share_of_he_of_its_own() -> None:
    nouns = [f"noun{i}" for i in range(9)]
    frames = [
        "N shook their head .",
        "When they rang , N said that they slept .",
        "We saw N and told them .",
    ]
    found = skewed_sentences(nouns, frames, n=20, seed=3)
    shares = found.groupby("noun")["target"].mean()
    assert (
        sorted(shares) == pytest.approx(np.linspace(0.1, 0.9, 9)) and found["noun"].nunique() == 9
    )
    assert shares.tolist() != sorted(shares), "which noun has which share is drawn"
    assert skewed_sentences(reversed(nouns), frames, 20, 3).equals(found)
    assert not skewed_sentences(nouns, frames, 20, 4).equals(found)
    for row in found.itertuples():
        assert row.sentence.count("[MASK]") == 1 and row.noun in row.sentence
        assert "slept" not in row.sentence, "a second pronoun would tell the first"
    assert skewed_sentences(["baker"], frames, 10)["target"].mean() == 0.5
    assert skewed_sentences(nouns, frames, 0).empty
    with pytest.raises(TouchstoneError, match="exactly one form of they"):
        skewed_sentences(nouns, frames[1:2], 5)
