"""LIME on a pool of rows: the package's draws, as exact as asked for, equal texts once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_models import LinearText, as_rows

from lib.attribution import explain
from lib.attribution.perturbed_texts import TextPool, kernel, lime_masks
from lib.attribution.regression import all_masks
from lib.attribution.seam import Row
from lib.models.text_model import RunsFromEmbeddings, TextModel


def test_lime_stops_when_its_error_is_small(bert: TextModel) -> None:
    rows = as_rows(["he sings the old song .", "she", "they sing a song . they sing a song ."])
    found = explain(bert, rows, "LIME", {"tolerance": 0.02, "n_samples": 4000})
    long = explain(bert, rows, "LIME", {"n_samples": 20_000})
    assert (found.error[found.samples < 4000] <= 0.02).all() and (found.samples < 4000).any()
    for one, better in zip(found.scores, long.scores, strict=True):
        share, best = np.divide(one, np.abs(one).sum()), np.divide(better, np.abs(better).sum())
        assert np.abs(share - best).max() < 0.08  # four standard errors


def test_exact_lime_is_what_many_draws_tend_to(family: RunsFromEmbeddings) -> None:
    """To within four of the errors that the draws themselves report."""
    rows = as_rows(["he sings the song ."])
    found = explain(family, rows, "LIME", {"exact": True, "n_samples": 6000})
    drawn = explain(family, rows, "LIME", {"tolerance": 1e-9, "n_samples": 6000})
    assert found.samples[0] == 32 and found.error[0] == 0 and drawn.samples[0] == 6000
    one, other = (np.divide(t.scores[0], np.abs(t.scores[0]).sum()) for t in (found, drawn))
    assert np.abs(one - other).max() < 4 * drawn.error[0] < 0.3


@pytest.mark.parametrize(("n_words", "seed"), [(1, 0), (2, 5), (7, 1), (23, 2)])
def test_the_draws_are_limes(n_words: int, seed: int) -> None:
    from lime.lime_text import LimeTextExplainer

    seen: list[list[bool]] = []

    def listen(texts: list[str]) -> np.ndarray:
        seen.extend([[str(i) in text.split() for i in range(n_words)] for text in texts])
        return np.zeros((len(texts), 1))

    explainer = LimeTextExplainer(
        split_expression=str.split, feature_selection="none", random_state=seed
    )
    explainer.explain_instance(
        " ".join(map(str, range(n_words))), listen, labels=(0,), num_samples=50
    )
    assert lime_masks(n_words, 50, seed).tolist() == seen
    assert lime_masks(n_words, 50, seed, n_words + 2)[:, -2:].all()
    assert kernel(torch.tensor([1.0, 0.0])).tolist() == pytest.approx([1.0, np.exp(-8.0)])


def test_equal_texts_go_through_the_model_once(linear: LinearText) -> None:
    """Two rows that differ in one word are the same text when that word is out.

    2^2 + 2^2 - 2 different ones.
    """
    rows = [Row("1", 0, 0, ["she", "sings"], 0), Row("2", 0, 1, ["nothing", "sings"], 0)]
    pool = TextPool(linear, rows, "logit")
    found = pool.scores([0, 1], torch.stack([all_masks(2), all_masks(2)]))
    assert len(pool.logits) == 6
    # the empty text is one padding, (1, 0): left 1, right .5
    assert found.tolist() == [[1, 1, -3, -2], [0.5, 2.5, 6, 8.5]]
    pool.scores([1], all_masks(2)[None])
    assert len(pool.logits) == 6
