from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from lib.studies.cebab.questions import fit_head, refit_head


def test_a_head_is_scikit_learns_and_knows_classes_without_a_label() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 3)), rng.integers(0, 3, 90)
    assert np.allclose(
        fit_head(x, y, 3).probabilities(x),
        LogisticRegression(C=10, max_iter=2000).fit(x, y).predict_proba(x),
        atol=1e-6,
    )
    four = fit_head(x, np.where(y == 2, 3, y), 4).probabilities(x)
    assert four[:, 2].max() < 1e-6 and np.allclose(four.sum(1), 1)
    two = fit_head(x, np.where(y > 0, 2, 1), 3)
    assert np.allclose(
        two.probabilities(x)[:, 1:],
        LogisticRegression(C=10, max_iter=2000).fit(x, y > 0).predict_proba(x),
        atol=1e-6,
    )


def test_a_refitted_head_gives_the_same_answers_from_the_same_embeddings(toy) -> None:
    again = refit_head(toy.head, toy.texts.embeddings, toy.texts.probabilities, strength=0.0)
    assert np.allclose(
        again.probabilities(toy.texts.embeddings), toy.texts.probabilities, atol=1e-5
    )
