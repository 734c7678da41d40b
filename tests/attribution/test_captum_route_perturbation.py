"""Kernel SHAP against exact Shapley values, LIME against its ridge regression in closed form."""

from __future__ import annotations

from itertools import combinations
from math import comb, exp, sqrt

import numpy as np
import pytest
import torch
from lime.lime_text import LimeTextExplainer
from small_models import LinearText, as_rows

from lib.attribution import explain
from lib.attribution.batch import TokenBatch
from lib.attribution.captum_route import kernel_shap
from lib.attribution.explain import token_batch
from lib.attribution.seam import Row, class_score
from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.models.text_model import TextModel

SHORT = "she sings a song ."


def batch_of(model: TextModel, sentence: str = SHORT, explained: str = "probability") -> TokenBatch:
    words = sentence.split()
    return token_batch(model, [Row("1-F", 1, 0, words, seed=3)], model.encode([words]), explained)


@torch.no_grad()
def exact_shapley(batch: TokenBatch) -> np.ndarray:
    """Every coalition of word tokens, each player's mean contribution (Shapley's formula)."""
    players = batch.is_word[0].nonzero()[:, 0].tolist()
    worth = {}
    for size in range(len(players) + 1):
        for present in combinations(players, size):
            keep = torch.zeros_like(batch.is_word)
            keep[0, list(present)] = True
            x = torch.where((keep | ~batch.is_word)[..., None], batch.embeddings, batch.baselines)
            worth[frozenset(present)] = batch.score(x, batch.mask).item()
    values = np.zeros(batch.mask.shape[1])
    for player in players:
        for before, value in worth.items():
            if player not in before:
                share = 1 / (len(players) * comb(len(players) - 1, len(before)))
                values[player] += share * (worth[before | {player}] - value)
    return values


@pytest.mark.slow
def test_kernel_shap_tends_to_the_exact_shapley_values(model: TextModel) -> None:
    batch = batch_of(model)
    exact = exact_shapley(batch)
    found = kernel_shap(batch, n_samples=4000).scores[0].numpy()
    np.testing.assert_allclose(found, exact, atol=0.06 * np.abs(exact).max())


def test_kernel_shap_is_efficient_even_with_few_samples(model: TextModel) -> None:
    """The full and the empty sentence are fitted exactly: scores sum to the score's change."""
    batch = batch_of(model)
    with torch.no_grad():
        change = batch.score(batch.embeddings, batch.mask) - batch.score(
            batch.baselines, batch.mask
        )
    assert kernel_shap(batch, n_samples=10).scores.sum().item() == pytest.approx(
        change.item(), abs=1e-3
    )


def test_kernel_shap_gives_special_tokens_nothing(bert: TextModel) -> None:
    found = kernel_shap(batch_of(bert), n_samples=25).scores[0]
    assert found[0] == found[-1] == 0


def test_one_word_alone_makes_the_whole_difference(bert: TextModel) -> None:
    batch = batch_of(bert, "he")
    assert kernel_shap(batch).scores[0].numpy() == pytest.approx(exact_shapley(batch), abs=1e-6)


def test_a_row_without_tokens_gets_zeros(bert: TextModel) -> None:
    found = explain(bert, as_rows([""], [0]).assign(sentence=[[" "]]), "Kernel SHAP")
    assert found.scores[0] == [0.0]


def record(n_words: int, n_samples: int, seed: int) -> np.ndarray:
    """The masks that LIME draws, taken down from outside."""
    masks = []

    def listen(texts: list[str]) -> np.ndarray:
        masks.extend([[float(str(i) in text.split()) for i in range(n_words)] for text in texts])
        return np.zeros((len(texts), 1))

    explainer = LimeTextExplainer(
        split_expression=str.split, feature_selection="none", random_state=seed
    )
    explainer.explain_instance(
        " ".join(map(str, range(n_words))), listen, labels=(0,), num_samples=n_samples
    )
    return np.array(masks)


def closed_form(masks: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Ridge, penalty 1, free intercept, weights sqrt(exp(-(100 cosine distance)^2 / 25^2))."""
    n_words = masks.shape[1]
    share = (
        masks.sum(1) / n_words
    )  # cosine similarity to the full sentence is the root of the share that is left
    weights = np.array([sqrt(exp(-((100 * (1 - sqrt(s))) ** 2) / 25**2)) for s in share])
    centre = lambda values: values - np.average(values, axis=0, weights=weights)  # noqa: E731
    x, y = centre(masks), centre(scores)
    return np.linalg.solve(x.T @ (weights[:, None] * x) + np.eye(n_words), x.T @ (weights * y))


def test_lime_is_its_ridge_regression_in_closed_form(model: TextModel) -> None:
    row = as_rows(["he sings the old song he ."], [1])
    words, n_samples = row.sentence[0], 60
    masks = record(len(words), n_samples, seed_for("LIME", row.row_id[0], 0))
    scores = []
    with torch.no_grad():
        for mask in masks:
            one = model.encode([[w for w, kept in zip(words, mask, strict=True) if kept]])[0]
            ids = torch.tensor([one.ids or [model.tokenizer.pad_token_id]])
            scores.append(
                class_score(model, [1], "probability")(
                    model.embed(ids), torch.ones_like(ids)
                ).item()
            )
    found = explain(model, row, "LIME", {"n_samples": n_samples}, seed=0)
    np.testing.assert_allclose(found.scores[0], closed_form(masks, np.array(scores)), atol=1e-6)


def test_lime_never_finds_words_by_comparing_strings(linear: LinearText) -> None:
    """Only "he" counts.

    "the", "she" and "other" contain it, and it stands in the sentence twice.
    """
    linear.ids = {"he": 1, "the": 3, "she": 3, "other": 3}  # 3 adds nothing
    found = explain(
        linear,
        as_rows(["the he she other he"], [0]),
        "LIME",
        {"explained": "logit", "n_samples": 3000},
    )
    np.testing.assert_allclose(found.scores[0], [0, 1, 0, 0, 1], atol=0.05)


def test_lime_really_removes_words(linear: LinearText) -> None:
    seen: list[int] = []
    encode = linear.encode
    linear.encode = lambda sentences: seen.extend(map(len, sentences)) or encode(sentences)
    explain(linear, as_rows(["she sings she sings"], [0]), "LIME", {"n_samples": 40})
    assert set(seen) == {0, 1, 2, 3, 4}


def test_too_few_samples_are_refused(bert: TextModel) -> None:
    with pytest.raises(TouchstoneError, match="3 or more"):
        explain(bert, as_rows(["he sings"]), "Kernel SHAP", {"n_samples": 2})
    with pytest.raises(TouchstoneError, match="2 or more"):
        explain(bert, as_rows(["he sings"]), "LIME", {"n_samples": 1})
