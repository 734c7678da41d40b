"""Gradients along paths: as many points as asked for, where they are needed, none of them twice."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from small_models import as_rows, build

from lib.attribution import METHODS, explain, explain_many
from lib.attribution.batch import TokenBatch
from lib.attribution.explain import token_batch
from lib.attribution.panels import integrate_in_panels
from lib.attribution.path_integrals import integrate_until, integrate_where_needed
from lib.attribution.seam import Row
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def counted(model: TextModel, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each pass of a model from now on."""
    seen: list[int] = []
    inner = model.logits
    monkeypatch.setattr(model, "logits", lambda e, m: (seen.append(len(m)), inner(e, m))[1])
    return seen


def test_no_point_of_a_panel_is_asked_for_twice(bert: TextModel, monkeypatch) -> None:
    """The pass at the input is the one that all methods share; the baseline is scored beside."""
    seen = counted(bert, monkeypatch)
    batch = batch_of(bert, "he sings the old song .")
    found = METHODS[IG].function(batch, tolerance=1e-5, placing="panels")
    assert sum(seen) == found.about["steps"].item() + 1 > 6
    few = METHODS[IG].function(batch, tolerance=1e-5, placing="panels", max_steps=9)
    assert few.about["steps"].item() == 9


@pytest.mark.parametrize(
    "how", [{"n_steps": 7}, {"tolerance": 0.01}, {"tolerance": 0.01, "placing": "panels"}]
)
def test_one_path_serves_all_who_ask_for_it(bert: TextModel, monkeypatch, how: dict) -> None:
    rows = as_rows(["he sings the old song .", "they sing ."], [1, 2])
    asked = [(IG, how), (IG, {**how, "aggregation": "l2"})]
    alone = [explain(bert, rows, *one) for one in asked]
    seen = counted(bert, monkeypatch)
    explain(bert, rows, *asked[0])
    n_alone = sum(seen)
    seen.clear()
    both = explain_many(bert, rows, asked)
    assert sum(seen) == n_alone
    for i, one in enumerate(alone):
        for found, expected in zip(both.scores[2 * i : 2 * i + 2], one.scores, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-7)
    seen.clear()
    explain_many(bert, rows, [(IG, how), (IG, {**how, "explained": "log_probability"})])
    assert sum(seen) > n_alone  # another function has another path


def test_panels_begin_with_the_gradient_that_is_there(bert: TextModel, monkeypatch) -> None:
    rows = as_rows(["he sings the old song ."], [1])
    panels = IG, {"tolerance": 0.01, "placing": "panels", "explained": "logit"}
    seen = counted(bert, monkeypatch)
    explain(bert, rows, *panels)
    n_alone = sum(seen)
    seen.clear()
    explain_many(bert, rows, ["Saliency", panels, "InputXGradient"])
    assert sum(seen) == n_alone
