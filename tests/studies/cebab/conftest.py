"""A small world for all tests of effects: texts with labels, an exact linear model, questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from lib.studies.cebab.questions import Head, Questions, Texts, ask, one_hot
from lib.studies.cebab.reviews import ASPECTS, VALUES


@dataclass
class Toy:
    """Texts whose embedding is twelve one-hot columns (and noise), read by a linear head."""

    texts: Texts
    head: Head
    pairs: pd.DataFrame
    questions: Questions


@pytest.fixture
def toy() -> Toy:
    rng = np.random.default_rng(0)
    gold = rng.choice(np.array(VALUES, dtype=object), (400, len(ASPECTS)))
    embeddings = np.column_stack([one_hot(gold), 0.1 * rng.normal(size=(400, 3))])
    head = Head(
        np.column_stack([rng.normal(size=(3, 12)), np.zeros((3, 3))]), np.array([0.1, 0.0, -0.2])
    )
    ids = np.array([f"t{i}" for i in range(400)], dtype=object)
    words = np.array(
        [
            " ".join(
                ["She" if v == "Positive" else "He" if v == "Negative" else "They" for v in row]
            )
            for row in gold
        ],
        dtype=object,
    )
    without = np.array(
        [
            *(np.delete(embeddings, slice(3 * a, 3 * a + 3), axis=1) for a in range(len(ASPECTS))),
            embeddings[:, 3:],
        ]
    )
    answers, is_original = head.probabilities(embeddings), np.arange(400) % 3 == 0
    texts = Texts(ids, gold, gold.copy(), answers, embeddings, words, without, is_original)
    aspect = rng.integers(0, 4, 60)
    old = gold[np.arange(60), aspect]
    new = np.array([rng.choice([v for v in VALUES if v != value]) for value in old], dtype=object)
    pairs = pd.DataFrame(
        {"base_id": ids[:60], "aspect": np.array(ASPECTS)[aspect], "old": old, "new": new}
    )
    return Toy(texts, head, pairs, ask(pairs, texts))


@pytest.fixture
def truth(toy: Toy) -> np.ndarray:
    """What the linear model does when the asked aspect, and nothing else, is changed."""
    after = toy.texts.gold[:60].copy()
    after[np.arange(60), toy.questions.aspect] = toy.questions.new
    embeddings = toy.texts.embeddings[:60].copy()
    embeddings[:, :12] = one_hot(after)
    return toy.head.probabilities(embeddings) - toy.texts.probabilities[:60]
