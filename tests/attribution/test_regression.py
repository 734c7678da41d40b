"""The regressions in closed form: scikit-learn's numbers, row by row, with an honest error."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge

from lib.attribution.regression import all_masks, jackknife_error, shapley_values, weighted_ridge


@given(st.integers(0, 10**6), st.integers(2, 6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_closed_form_is_scikit_learns(seed: int, d: int, few: bool) -> None:
    """Ridge with penalty 1, and least squares of least norm with fewer draws than players."""
    draw = np.random.default_rng(seed)
    n = d if few else 4 * d
    masks, values, weights = draw.random((n, d)) < 0.5, draw.normal(size=n), draw.uniform(0.5, 2, n)
    as_batch = [torch.tensor(array)[None] for array in (masks, values, weights)]
    ridge = Ridge(alpha=1).fit(masks.astype(float), values, sample_weight=weights)
    np.testing.assert_allclose(weighted_ridge(*as_batch, 1.0)[0], ridge.coef_, atol=1e-9)
    plain = LinearRegression().fit(masks.astype(float), values, sample_weight=weights)
    np.testing.assert_allclose(weighted_ridge(*as_batch, 0.0)[0], plain.coef_, atol=1e-7)


def test_rows_fitted_together_are_the_rows_fitted_alone() -> None:
    draw = torch.Generator().manual_seed(0)
    masks = torch.rand(3, 20, 5, generator=draw) < 0.5
    values, weights = torch.rand(3, 20, generator=draw), torch.rand(3, 20, generator=draw)
    together = weighted_ridge(masks, values, weights, 1.0)
    for i in range(3):
        alone = weighted_ridge(masks[i : i + 1], values[i : i + 1], weights[i : i + 1], 1.0)[0]
        torch.testing.assert_close(together[i], alone, rtol=1e-12, atol=1e-12)


def test_the_jackknife_error_is_the_spread_between_runs() -> None:
    """Noise on a known linear function.

    The estimate is of the size of the errors that repeated draws show.
    """
    errors, shares = [], []
    truth = torch.tensor([3.0, -1.0, 0.5, 0.0])
    for seed in range(60):
        draw = torch.Generator().manual_seed(seed)
        masks = torch.rand(1, 400, 4, generator=draw) < 0.5
        values = masks[0].float() @ truth + torch.randn(400, generator=draw)
        fit = masks, values[None], torch.ones(1, 400)
        errors.append(jackknife_error(*fit, 1.0).item())
        found = weighted_ridge(*fit, 1.0)[0]
        shares.append(found / found.abs().sum())
    spread = torch.stack(shares).std(0).max().item()
    assert 0.6 * spread < np.mean(errors) < 1.6 * spread


def test_shapley_values_of_a_glove_game() -> None:
    """Two left gloves, one right: a pair is worth 1. The textbook answer is 1/6, 1/6, 2/3."""
    masks = all_masks(3)
    worth = ((masks[:, 0] | masks[:, 1]) & masks[:, 2]).double()
    assert shapley_values(worth, masks).tolist() == pytest.approx([1 / 6, 1 / 6, 2 / 3])
