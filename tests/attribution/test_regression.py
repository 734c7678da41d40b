"""The regressions in closed form: scikit-learn's numbers, row by row, with an honest error."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge

from lib.attribution.regression import (
    all_masks,
    fit_all,
    in_pairs,
    jackknife_error,
    shapley_values,
    weighted_ridge,
)
from lib.core.errors import TouchstoneError


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


@pytest.mark.parametrize("anchors", [0, 1, 2])
def test_the_jackknife_error_is_the_one_of_its_definition(anchors: int) -> None:
    """Eighths left out one by one, pairs together; the first draws are never left out.

    The fits are scikit-learn's.
    """
    draw = np.random.default_rng(3)
    n, penalty = 48, 0.5
    masks, values, weights = draw.random((n, 3)) < 0.5, draw.normal(size=n), draw.uniform(1, 2, n)
    shares = []
    for left_out in range(8):
        rest = [i for i in range(n) if (i - anchors) // 2 % 8 != left_out or i < anchors]
        ridge = Ridge(alpha=penalty * len(rest) / n)
        ridge.fit(masks[rest].astype(float), values[rest], sample_weight=weights[rest])
        shares.append(ridge.coef_ / np.abs(ridge.coef_).sum())
    spread = ((shares - np.mean(shares, axis=0)) ** 2).sum(axis=0)
    as_batch = [torch.tensor(array)[None] for array in (masks, values, weights)]
    found = jackknife_error(*as_batch, penalty, anchors).item()
    assert found == pytest.approx(np.sqrt(7 / 8 * spread).max(), rel=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 12), st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_every_second_draw_is_the_opposite_of_the_one_before(
    seed: int, d: int, n: int, anchors: int
) -> None:
    """Anchors, first draws and who is no player stay; nobody's opposite is nobody again."""
    draw = np.random.default_rng(seed)
    players = torch.tensor(draw.random(d + 1) < 0.8)
    masks = torch.tensor(draw.random((n, d + 1)) < 0.4) | ~players
    found = in_pairs(masks, players, anchors)
    for i in range(n):
        is_second = i > anchors and (i - anchors) % 2 == 1
        one, other = masks[i - 1] & players, masks[i]
        if is_second:
            other = ~masks[i - 1] | ~players if one.any() else masks[i - 1]
        assert found[i].tolist() == other.tolist()


def test_pairs_cancel_what_two_opposites_have_in_common() -> None:
    """Of six players an even number is present in both of a pair, or in neither."""
    draw = torch.Generator().manual_seed(4)
    plain = torch.rand(500, 6, generator=draw) < 0.5
    plain = plain[plain.any(1)][:400]
    players, weights = torch.ones(6).bool(), torch.ones(1, 400)
    truth = torch.tensor([3.0, -1.0, 2.0, 1.0, 0.0, 1.0]).double()

    def error(masks: torch.Tensor) -> float:
        values = masks.double() @ truth + 2 * (masks.sum(1) % 2 == 0).double()
        return jackknife_error(masks[None], values[None], weights, 0.0).item()

    assert error(in_pairs(plain, players, 0)) < 1e-9 < 0.01 < error(plain)


def test_no_effect_has_no_error() -> None:
    masks = torch.rand(1, 32, 3, generator=torch.Generator().manual_seed(1)) < 0.5
    assert jackknife_error(masks, torch.zeros(1, 32), torch.ones(1, 32), 1.0).item() == 0


def test_draws_double_until_each_row_is_sure() -> None:
    """Row 0 has no noise and is done after 128 draws; row 1 is nothing but noise and takes all."""
    draw = torch.Generator().manual_seed(5)
    masks = torch.rand(2, 600, 4, generator=draw) < 0.5
    values = torch.randn(2, 600, generator=draw).double()
    values[0] = masks[0].double() @ torch.tensor([3.0, -1.0, 2.0, 1.0]).double()
    asked = []

    def worth(rows: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        asked.append((rows.tolist(), start, stop))
        return values[rows, start:stop]

    weights = torch.ones(2, 600)
    scores, samples, error = fit_all(masks, weights, worth, 0.0, tolerance=0.02)
    assert asked == [([0, 1], 0, 128), ([1], 128, 256), ([1], 256, 512), ([1], 512, 600)]
    assert samples.tolist() == [128, 600] and error[0] < 1e-6 and error[1] > 0.02
    assert scores[0].tolist() == pytest.approx([3, -1, 2, 1])
    torch.testing.assert_close(scores[1:], weighted_ridge(masks[1:], values[1:], weights[1:], 0.0))
    everything, samples, error = fit_all(masks, weights, worth, 0.0, tolerance=None)
    assert asked[4:] == [([0, 1], 0, 600)] and samples.tolist() == [600, 600]
    assert error.tolist() == [1, 1]
    torch.testing.assert_close(everything[1], scores[1])


def test_a_row_has_four_draws_a_player_before_it_is_done() -> None:
    """With fewer its groups may agree on a wrong fit; who is always present is no player."""
    draw = torch.Generator().manual_seed(9)
    masks = torch.rand(2, 600, 60, generator=draw) < 0.5
    masks[0, :, 32:] = True  # four times 32 is the first look
    values = masks.double().sum(-1)

    def worth(rows: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        return values[rows, start:stop]

    _, samples, error = fit_all(masks, torch.ones(2, 600), worth, 0.0, tolerance=0.5)
    assert samples.tolist() == [128, 256] and (error <= 0.5).all()


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -0.1])
def test_a_tolerance_is_a_share(tolerance: float) -> None:
    with pytest.raises(TouchstoneError, match="between 0 and 1"):
        fit_all(torch.ones(1, 2, 1) > 0, torch.ones(1, 2), lambda *_: None, 0.0, tolerance)


def test_a_player_without_whom_nothing_was_drawn_gets_nothing() -> None:
    masks = torch.tensor([[[1, 1], [1, 0], [1, 1], [1, 0]]]).bool()
    values, weights = torch.tensor([[3.0, 1.0, 3.0, 1.0]]), torch.ones(1, 4)
    for penalty in (0.0, 1.0):
        found = weighted_ridge(masks, values, weights, penalty)[0]
        assert found.tolist() == pytest.approx([0, 2 / (1 + penalty)])


def test_the_defaults_are_said() -> None:
    """No draw is an anchor unless one says so."""
    draw = torch.Generator().manual_seed(6)
    masks = torch.rand(1, 128, 3, generator=draw) < 0.5
    values = torch.randn(1, 128, generator=draw).double()
    fit = masks, values, torch.ones(1, 128)
    error = jackknife_error(*fit, 1.0)
    assert error == jackknife_error(*fit, 1.0, anchors=0) != jackknife_error(*fit, 1.0, anchors=1)
    found = fit_all(masks, fit[2], lambda rows, i, k: values[rows, i:k], 1.0, tolerance=0.01)
    assert found[2].item() == error.float().item()


def test_an_error_of_the_tolerance_is_small_enough() -> None:
    draw = torch.Generator().manual_seed(7)
    masks = torch.rand(1, 256, 3, generator=draw) < 0.5
    values, weights = torch.randn(1, 256, generator=draw).double(), torch.ones(1, 256)
    error = jackknife_error(masks[:, :128], values[:, :128], weights[:, :128], 1.0).float().item()

    def n_draws(tolerance: float) -> float:
        def worth(rows: torch.Tensor, start: int, stop: int) -> torch.Tensor:
            return values[rows, start:stop]

        return fit_all(masks, weights, worth, 1.0, tolerance)[1].item()

    assert (n_draws(error), n_draws(0.999 * error)) == (128, 256)


def test_players_who_always_come_in_pairs_share_alike_whatever_the_weights() -> None:
    """Of pairs of equal columns the solution of least norm gives each half of their effect."""
    effects = torch.tensor([4.0, -1.0, 2.0, 0.0, 1.0, 3.0]).double()
    half = torch.rand(1, 60, 6, generator=torch.Generator().manual_seed(8)) < 0.5
    masks, values = torch.cat([half, half], -1), half.double() @ effects
    for weight in (1e-3, 1.0, 1e7):
        found = weighted_ridge(masks, values, torch.full((1, 60), weight), 0.0)[0]
        assert found.tolist() == pytest.approx((effects / 2).tolist() * 2, abs=1e-6)


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_shapley_values_are_the_mean_over_orders_of_arrival(d: int) -> None:
    masks = all_masks(d)
    worth = torch.randn(2**d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    of_set = {tuple(mask): w for mask, w in zip(masks.int().tolist(), worth.tolist())}
    orders = list(permutations(range(d)))
    gains = np.zeros(d)
    for order in orders:
        here = [0] * d
        for player in order:
            before = of_set[tuple(here)]
            here[player] = 1
            gains[player] += (of_set[tuple(here)] - before) / len(orders)
    assert shapley_values(worth, masks).tolist() == pytest.approx(gains.tolist())


def test_shapley_values_of_nobody_and_of_one() -> None:
    assert shapley_values(torch.tensor([3.0]), all_masks(0)).tolist() == []
    assert shapley_values(torch.tensor([1.0, 4.0]), all_masks(1)).tolist() == [3.0]
