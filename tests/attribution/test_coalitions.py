"""Coalitions: Shapley and Owen values by their definitions, Kernel SHAP as exact as asked for."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
import torch
from small_models import as_rows, build

from lib.attribution import explain
from lib.attribution.batch import TokenBatch
from lib.attribution.coalitions import _drawn, exact_shapley, worth_of
from lib.attribution.explain import token_batch
from lib.attribution.partition import partition_shap
from lib.attribution.seam import Row
from lib.core.errors import TouchstoneError
from lib.models.text_model import RunsFromEmbeddings, TextModel


def batch_of(model: TextModel, sentence: str, explained: str = "probability") -> TokenBatch:
    words = sentence.split()
    return token_batch(model, [Row("1-F", 1, 0, words, seed=3)], model.encode([words]), explained)


def test_kernel_shap_stops_when_its_error_is_small(bert: TextModel) -> None:
    found = explain(
        bert,
        as_rows(["he sings the old song ."]),
        "Kernel SHAP",
        {"tolerance": 0.02, "n_samples": 4000},
    )
    exact = explain(bert, as_rows(["he sings the old song ."]), "Exact Shapley")
    assert found.error[0] <= 0.02 and found.samples[0] < 4000
    gap = (
        np.abs(np.subtract(found.scores[0], exact.scores[0])).max() / np.abs(exact.scores[0]).sum()
    )
    assert gap < 0.08


@pytest.mark.parametrize("method", ["Kernel SHAP", "LIME"])
def test_only_draws_to_a_tolerance_come_in_pairs(bert: TextModel, method: str) -> None:
    rows, all_of_them = as_rows(["he sings the old song ."]), {"tolerance": 1e-9, "n_samples": 40}
    usual, paired, alone = (
        explain(bert, rows, method, settings)["scores"][0]
        for settings in (
            {"n_samples": 40},
            all_of_them,
            {**all_of_them, "paired_sampling": False},
        )
    )
    np.testing.assert_allclose(alone, usual, atol=1e-7)
    assert np.abs(np.subtract(paired, usual)).max() > 1e-4


def test_short_rows_are_exact_where_all_coalitions_are_fewer_than_the_samples(
    family: RunsFromEmbeddings,
) -> None:
    rows = as_rows(["he sings .", "he sings the old song . they sing the old song ."])
    found = explain(family, rows, "Kernel SHAP", {"exact": True, "n_samples": 40})
    assert found.samples[0] == 16 and found.samples[1] == 40  # sing ##s: four tokens
    np.testing.assert_allclose(
        found.scores[0], explain(family, rows.iloc[:1], "Exact Shapley").scores[0], atol=1e-7
    )
    plain = explain(family, rows, "Kernel SHAP", {"n_samples": 40})
    np.testing.assert_allclose(found.scores[1], plain.scores[1], atol=1e-6)


def by_orders(batch: TokenBatch, orders: list[tuple[int, ...]]) -> np.ndarray:
    """Mean contributions over orders of arrival, straight from the definition."""
    players, values = batch.is_word[0].nonzero()[:, 0], np.zeros(batch.mask.shape[1])
    for order in orders:
        present = torch.zeros_like(batch.is_word)
        before = worth_of(batch, torch.tensor([0]), present).item()
        for player in order:
            present[0, players[player]] = True
            after = worth_of(batch, torch.tensor([0]), present).item()
            values[players[player]] += (after - before) / len(orders)
            before = after
    return values


def test_exact_shapley_is_the_mean_over_all_orders(family: RunsFromEmbeddings) -> None:
    batch = batch_of(family, "he sing the song")
    found = exact_shapley(batch)
    np.testing.assert_allclose(
        found.scores[0], by_orders(batch, list(permutations(range(4)))), atol=1e-6
    )
    assert abs(found.delta.item()) < 1e-6 and found.about["samples"].item() == 16


def flips(span: list[int]) -> list[tuple[int, ...]]:
    """All orders in which both halves of every span arrive one after the other."""
    if len(span) == 1:
        return [tuple(span)]
    cut = (len(span) + 1) // 2
    return [
        order
        for first, second in product(flips(span[:cut]), flips(span[cut:]))
        for order in (first + second, second + first)
    ]


def test_partition_shap_is_the_mean_over_the_orders_of_its_tree(family: RunsFromEmbeddings) -> None:
    batch = batch_of(family, "he sing the old song")
    orders = flips(list(range(5)))
    assert len(orders) == 16
    found = partition_shap(batch)
    np.testing.assert_allclose(found.scores[0], by_orders(batch, orders), atol=1e-6)
    assert abs(found.delta.item()) < 1e-6


def test_too_long_for_exact_shapley_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="a row has 17 tokens.*Shapley sampling"):
        explain(build("BERT"), as_rows(["he " * 17]), "Exact Shapley")


@pytest.mark.parametrize("n_players", [2, 3, 15, 16, 40])
def test_draws_made_together_are_captums_one_by_one(n_players: int) -> None:
    """captum draws a size by `multinomial`, then an order, for one coalition after the other."""
    is_word = torch.tensor([False, *[True] * n_players, False])
    generator = torch.Generator().manual_seed(11)
    sizes = torch.arange(n_players, dtype=torch.float)
    odds = (n_players - 1) / (sizes * (n_players - sizes))
    odds[0] = 0.0
    expected = [torch.ones(n_players) > 0, torch.ones(n_players) < 0]
    for _ in range(200):
        size = int(torch.multinomial(odds / odds.sum(), 1, True, generator=generator))
        order = torch.randn(1, n_players, generator=generator)[0]
        expected.append(order > torch.kthvalue(order, n_players - size).values)
    found = _drawn(is_word, 202, 11)
    assert found[:, is_word].tolist() == torch.stack(expected).tolist()
    assert found[:, ~is_word].all()
