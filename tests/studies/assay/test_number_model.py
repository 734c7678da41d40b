"""A language model that reads few words learns which number the next verb has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.studies.assay.number_model import (
    CLASSES,
    LanguagePlan,
    fit_language_model,
    fit_number_probe,
)


@pytest.mark.slow
def test_the_number_of_the_next_verb_is_learnt() -> None:
    rng = np.random.default_rng(0)
    corpus, rows = [], []
    for i in range(400):
        plural = int(rng.integers(2))
        noun = ["dog", "cat", "cow"][rng.integers(3)]
        before = ["the", noun + "s" * plural]
        corpus.append([*before, ["runs", "run"][plural], "."])
        rows.append((before, plural, i))
    plan = LanguagePlan(epochs=4, lr=0.01, width=16, batch_words=64)
    model, words = fit_language_model(corpus, [["the", "owl"]], plan, 0)
    assert len(words) >= 11, "the words that are asked about are known as well"
    table = pd.DataFrame(rows, columns=["sentence", "target", "sentence_idx"])
    probe, accuracy = fit_number_probe(model, words, table, 4, 0)
    assert accuracy > 0.95 and CLASSES == ("singular", "plural")
    assert probe.classes == CLASSES
