"""As exact as asked for.

Integrated Gradients to a gap, LIME and Kernel SHAP to an error, short rows exactly.
"""

from __future__ import annotations

import json
import math
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge
from small_models import LinearText, as_rows, build

from lib.attribution import METHODS, explain, load_explanations, save_explanations
from lib.attribution.batch import TokenBatch
from lib.attribution.coalitions import exact_shapley, partition_shap, worth_of
from lib.attribution.explain import token_batch
from lib.attribution.panels import integrate_in_panels
from lib.attribution.path_integrals import integrate_until, integrate_where_needed
from lib.attribution.perturbed_texts import TextPool, kernel, lime_masks
from lib.attribution.regression import all_masks, jackknife_error, shapley_values, weighted_ridge
from lib.attribution.seam import Row
from lib.core.errors import TouchstoneError
from lib.models.text_model import RunsFromEmbeddings, TextModel

IG = "Integrated Gradients"


def batch_of(model: TextModel, sentence: str, explained: str = "probability") -> TokenBatch:
    words = sentence.split()
    return token_batch(model, [Row("1-F", 1, 0, words, seed=3)], model.encode([words]), explained)


def quadratic(power: int = 2) -> TokenBatch:
    """f = sum of x^power on two tokens of one component, from 0 to (1, 2)."""
    x = torch.tensor([[[1.0], [2.0]]])
    return TokenBatch(
        lambda e, m: e.pow(power).sum((1, 2)),
        x,
        torch.ones(1, 2),
        torch.zeros_like(x),
        torch.ones(1, 2) > 0,
        (0,),
    )


def test_midpoints_are_tripled_until_the_gap_is_small() -> None:
    """The midpoint rule for 4 x^3 leaves 1 / (2 n^2) of the whole.

    0.6 % at 9 points, 0.07 % at 27.
    """
    change = torch.tensor([17.0])
    for tolerance, steps in ((0.01, 9), (0.002, 27), (0.0005, 81)):
        mean, about = integrate_until(quadratic(4), change, tolerance)
        assert about["steps"].item() == steps
        assert mean[0, :, 0].tolist() == pytest.approx(
            [1 - 0.5 / steps**2, 8 * (1 - 0.5 / steps**2)], rel=1e-5
        )
    assert (
        integrate_until(quadratic(4), change, 0.3, min_steps=1)[1]["steps"].item() == 3
    )  # 1 point leaves half of it


def test_no_point_is_asked_for_twice(bert: TextModel) -> None:
    seen: list[int] = []
    inner = bert.logits
    bert.logits = lambda e, m: (seen.append(len(m)), inner(e, m))[1]
    found = METHODS[IG].function(batch_of(bert, "he sings the old song ."), tolerance=0.01)
    assert sum(seen) == found.about["steps"].item() + 2  # and the input, and the reference


def test_every_row_keeps_the_tolerance_and_stops_by_itself(
    family: RunsFromEmbeddings, rows: pd.DataFrame
) -> None:
    found = explain(family, rows, IG, {"tolerance": 0.01})
    fine = explain(family, rows, IG, {"n_steps": 729})
    for i in range(len(rows)):
        change = sum_of_change = fine.scores[i]
        if found.steps[i] < 729:
            total = tokens_sum(family, rows.iloc[i])
            assert abs(found.delta[i]) <= 0.01 * abs(total) + 1e-6
        size = np.abs(sum_of_change).sum()
        assert np.abs(np.subtract(found.scores[i], change)).max() <= 0.05 * size
    assert set(found.steps) <= {9, 27, 81, 243, 729} and found.error.between(0, 1).all()


def tokens_sum(model: TextModel, row: pd.Series) -> float:
    """By how much the row's probability exceeds that of its reference."""
    one = token_batch(
        model,
        [Row("1", 1, int(row.target), row.sentence, 0)],
        model.encode([row.sentence]),
        "probability",
    )
    with torch.no_grad():
        return (one.score(one.embeddings, one.mask) - one.score(one.baselines, one.mask)).item()


def test_panels_are_exact_for_cubics_and_halved_where_the_score_bends() -> None:
    """Simpson's rule integrates 4 x^3 exactly.

    A kink at 1/3 of the path is closed in on, and nothing else is.
    """
    change = torch.tensor([17.0])
    mean, about = integrate_where_needed(quadratic(4), change, 0.001)
    assert about["steps"].item() == 5 and mean[0, :, 0].tolist() == pytest.approx([1, 8], rel=1e-6)
    x = torch.tensor([[[3.0]]])
    kink = TokenBatch(
        lambda e, m: torch.relu(e - 1).sum((1, 2)),
        x,
        torch.ones(1, 1),
        torch.zeros_like(x),
        torch.ones(1, 1) > 0,
        (0,),
    )
    mean, about = integrate_where_needed(kink, torch.tensor([2.0]), 0.001)
    assert 3 * mean.item() == pytest.approx(2, abs=0.002)
    assert (
        about["steps"].item() <= 5 + 2 * 10
    )  # each halving narrows the kink down: 2^-10 of the path is enough


def test_panels_are_not_halved_for_what_is_rounding() -> None:
    """f = sin 1.3 x on (0, 1), rounded to bfloat16.

    Without the allowance the search runs to its end.
    """

    def exactly(
        rows: list[int], places: list[float]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        x = torch.tensor(places)
        rates = 1.3 * (1.3 * x).cos()
        return (1.3 * x).sin(), rates, rates[:, None, None]

    def evaluate(rows: list[int], places: list[float]) -> tuple[torch.Tensor, ...]:
        return tuple(found.bfloat16().float() for found in exactly(rows, places))

    half_a_bit = torch.finfo(torch.bfloat16).eps / 2
    (blind,) = integrate_in_panels([1e-4], evaluate, max_steps=200)
    (aware,) = integrate_in_panels([1e-4], evaluate, max_steps=200, rounding=half_a_bit)
    assert len(blind.places) > 150 and len(aware.places) < 20
    (exact,) = integrate_in_panels([1e-4], exactly, max_steps=200)
    for path, bound in ((aware, 2 * half_a_bit), (exact, 1e-4)):
        assert path.fine.item() == pytest.approx(math.sin(1.3), abs=bound)


def test_the_device_is_waited_for_once_a_round_and_finished_rows_are_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """f = sin(k x) for rows of k = 1 and 40.

    Numbers leave the device by one `tolist` a round, and never by `float`.
    """
    k, rounds, waits, kept = torch.tensor([1.0, 40.0]), [], [], []
    tolist = torch.Tensor.tolist
    monkeypatch.setattr(
        torch.Tensor, "tolist", lambda self: waits.append(len(self)) or tolist(self)
    )
    monkeypatch.setattr(
        torch.Tensor, "__float__", lambda self: pytest.fail("a point was waited for")
    )
    monkeypatch.setattr(torch.Tensor, "item", lambda self: pytest.fail("a point was waited for"))

    def evaluate(rows: list[int], places: list[float]) -> tuple[torch.Tensor, ...]:
        kept.append(set(rows))
        rounds.append(len(rows))
        at, each = torch.tensor(places), k[torch.tensor(rows)]
        rates = each * (each * at).cos()
        return (each * at).sin(), rates, rates[:, None, None]

    paths = integrate_in_panels([1e-3, 1e-3], evaluate, max_steps=300)
    monkeypatch.undo()
    assert len(waits) == len(rounds) > 2 and kept[0] == {0, 1} and kept[-1] == {1}
    assert all(not path.gradients for path in paths)
    assert [path.fine.item() for path in paths] == pytest.approx(
        [math.sin(1), math.sin(40)], abs=1e-3
    )


def test_bfloat16_does_not_search_for_its_own_rounding(bert: TextModel) -> None:
    rows = as_rows(["he sings the old song .", "they sing ."], [1, 2])
    asked = {"tolerance": 0.01, "placing": "panels"}
    assert (
        explain(bert, rows, IG, {**asked, "precision": "bfloat16"})["steps"].max() < 100
    )  # of 729 that are allowed


def test_panels_and_tripling_tend_to_the_same(
    family: RunsFromEmbeddings, rows: pd.DataFrame
) -> None:
    """A row of the tripling rule can meet the gap by luck (misses cancel over the path).

    Then `error` tells.
    """
    fine = explain(family, rows, IG, {"n_steps": 729})
    for placing in ("tripling", "panels"):
        found = explain(family, rows, IG, {"tolerance": 1e-3, "placing": placing})
        for i, row in rows.iterrows():
            if found.steps[i] < 700:
                assert abs(found.delta[i]) <= 1e-3 * abs(tokens_sum(family, row)) + 2e-6
                share, best = (
                    np.divide(t.scores[i], np.abs(t.scores[i]).sum()) for t in (found, fine)
                )
                assert np.abs(share - best).max() <= (
                    0.01 if placing == "panels" else 0.01 + 2 * found.error[i]
                )


@pytest.mark.parametrize("kind", ["Llama", "Qwen", "Gemma"])
def test_a_reference_of_zeros_before_an_rms_norm_is_a_jump_that_only_panels_find(kind: str) -> None:
    """RMSNorm does not see the length of a vector.

    So from zero on the model answers at once as for the whole word. All change happens in the first
    thousandth of the path. Even midpoints by the hundred miss it, and say so by their gap; panels
    close in on it.
    """
    model = build(kind)
    with torch.no_grad():
        model.module.get_input_embeddings().weight[model.tokenizer.pad_token_id] = 0.0
    row = as_rows(["they sing"], [1])
    total = tokens_sum(model, row.iloc[0])
    even = explain(model, row, IG, {"tolerance": 0.01})
    assert even.steps[0] == 729 and abs(even.delta[0]) > 0.1 * abs(total)
    found = explain(model, row, IG, {"tolerance": 0.01, "placing": "panels"})
    assert found.steps[0] < 729 and abs(found.delta[0]) <= 0.01 * abs(total)


def test_no_point_of_a_panel_is_asked_for_twice(bert: TextModel) -> None:
    seen: list[int] = []
    inner = bert.logits
    bert.logits = lambda e, m: (seen.append(len(m)), inner(e, m))[1]
    batch = batch_of(bert, "he sings the old song .")
    found = METHODS[IG].function(batch, tolerance=1e-5, placing="panels")
    assert sum(seen) == found.about["steps"].item() + 2 > 7
    few = METHODS[IG].function(batch, tolerance=1e-5, placing="panels", max_steps=9)
    assert few.about["steps"].item() == 9


def test_options_are_recorded_only_where_they_are_chosen(bert: TextModel, tmp_path: object) -> None:
    rows = as_rows(["he sings .", "she"])
    plain, chosen = explain(bert, rows, IG), explain(bert, rows, IG, {"tolerance": 0.01})
    assert json.loads(plain.settings[0]) == METHODS[IG].defaults and "steps" not in plain
    assert json.loads(chosen.settings[0]) == METHODS[IG].defaults | {"tolerance": 0.01}
    assert explain(bert, rows, IG, {"tolerance": None}).settings[0] == plain.settings[0]
    save_explanations(tmp_path / "found.parquet", chosen)
    pd.testing.assert_frame_equal(load_explanations(tmp_path / "found.parquet"), chosen)


def test_shorter_numbers_change_little_and_are_recorded(bert: TextModel) -> None:
    rows = as_rows(["he sings the old song .", "they sing"])
    for method in (IG, "LIME", "Kernel SHAP", "Saliency"):
        exact, low = (
            explain(bert, rows, method),
            explain(bert, rows, method, {"precision": "bfloat16"}),
        )
        assert json.loads(low.settings[0])[
            "precision"
        ] == "bfloat16" and "precision" not in json.loads(exact.settings[0])
        for one, other in zip(exact.scores, low.scores, strict=True):
            assert 0 < np.abs(np.subtract(one, other)).max() < 0.1 * np.abs(one).max() + 0.01, (
                method
            )
    assert next(bert.module.parameters()).dtype == torch.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 2.0}, "tolerance = 2.0.*between 0 and 1"),
        ({"tolerance": 0.1, "min_steps": 0}, "1 <= min_steps"),
    ],
)
def test_a_tolerance_that_means_nothing_is_refused(
    bert: TextModel, options: dict[str, float], message: str
) -> None:
    with pytest.raises(TouchstoneError, match=message):
        explain(bert, as_rows(["he sings"]), IG, options)
    with pytest.raises(TouchstoneError, match="did you mean 'panels'"):
        explain(bert, as_rows(["he sings"]), IG, {"tolerance": 0.1, "placing": "panel"})
    with pytest.raises(TouchstoneError, match="largest error of a share"):
        explain(bert, as_rows(["he sings"]), "LIME", {"tolerance": 3.0})


@given(st.integers(0, 10**6), st.integers(2, 6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_closed_form_is_scikit_learns(seed: int, d: int, few: bool) -> None:
    """Ridge with penalty 1, and least squares of least norm where there are fewer draws than
    players."""
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


def test_lime_stops_when_its_error_is_small(bert: TextModel) -> None:
    rows = as_rows(["he sings the old song .", "she", "they sing a song . they sing a song ."])
    found = explain(bert, rows, "LIME", {"tolerance": 0.02, "n_samples": 4000})
    long = explain(bert, rows, "LIME", {"n_samples": 20_000})
    assert (found.error[found.samples < 4000] <= 0.02).all() and (found.samples < 4000).any()
    for one, better in zip(found.scores, long.scores, strict=True):
        share, best = np.divide(one, np.abs(one).sum()), np.divide(better, np.abs(better).sum())
        assert np.abs(share - best).max() < 0.08  # four standard errors


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
    assert pool.n_texts == 6
    # the empty text is one padding, (1, 0): left 1, right .5
    assert found.tolist() == [[1, 1, -3, -2], [0.5, 2.5, 6, 8.5]]
    pool.scores([1], all_masks(2)[None])
    assert pool.n_texts == 6


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


def test_shapley_values_of_a_glove_game() -> None:
    """Two left gloves, one right: a pair is worth 1. The textbook answer is 1/6, 1/6, 2/3."""
    masks = all_masks(3)
    worth = ((masks[:, 0] | masks[:, 1]) & masks[:, 2]).double()
    assert shapley_values(worth, masks).tolist() == pytest.approx([1 / 6, 1 / 6, 2 / 3])


def test_too_long_for_exact_shapley_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="a row has 17 tokens.*Shapley sampling"):
        explain(build("BERT"), as_rows(["he " * 17]), "Exact Shapley")
