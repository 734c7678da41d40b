"""The benchmark runs, counts what it says, and finds the two arms equal; nothing here is timed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from small_models import as_rows

from lib.attribution import Row
from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT
from lib.models.text_model import RunsFromEmbeddings


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "tools" / "benchmarks")
    import attribution

    return attribution


def few(asked: dict) -> dict:
    """The same methods and settings with at most 40 points or samples."""
    return {
        method: {
            name: min(value, 40) if name in ("n_steps", "n_samples") else value
            for name, value in settings.items()
        }
        for method, settings in asked.items()
    }


@pytest.mark.slow
def test_every_line_runs_and_the_arms_agree(bench: object, bert: RunsFromEmbeddings) -> None:
    rows = as_rows(["he sings the old song .", "they sing ."], [1, 2])
    for large in bench.GROUPS:
        if "n_samples" in str(large.theirs) and "5000" in str(large.theirs):
            continue
        ours = {name: (equal, few(asked)) for name, (equal, asked) in large.ours.items()}
        group = replace(large, theirs=few(large.theirs), ours=ours)
        table = bench.measure(group, bert, rows, rounds=1)
        assert (
            table["line"].tolist() == list(group.ours)
            and (table["rows"] == 2).all()
            and (table["ratio"] > 0).all()
        )
        assert (
            table["of_limit"].notna().all()
            and (table["limit_gain"] > 0).all()
            and (table["ratio_low"] <= table["ratio_high"]).all()
        )
        bound = table["equal"].map({"work": 2e-4, "answer": 0.1})
        assert (table["share_difference"] < bound).all(), group.name
        assert (
            (table["of_texts"] > 0).all() if bench.draws_texts(group) else "of_texts" not in table
        )
        assert (table.loc[table["equal"] == "work", "difference_float64"] < 1e-6).all(), group.name


def test_the_limit_counts_what_the_answer_needs_in_its_precision(bench: object) -> None:
    low = {"precision": "bfloat16"}
    asked = {
        "Saliency": {},
        "DeepLift": {},
        "Gradient SHAP": {"n_samples": 5},
        "LIME": {"n_samples": 100, **low},
        "Integrated Gradients": {"tolerance": 0.01, **low},
        "Kernel SHAP": {"n_samples": 25},
    }
    found = pd.DataFrame(
        {
            "method": ["Integrated Gradients"] * 2 + ["LIME"],
            "steps": [9.0, 27.0, np.nan],
            "samples": [np.nan, np.nan, 64.0],
        }
    )
    assert bench.passes(asked, found) == {
        ("forward-backward", "float32"): 6,
        ("forward", "bfloat16"): 64,
        ("forward-backward", "bfloat16"): 19,
        ("forward", "float32"): 25,
    }
    assert bench.passes(
        {"LIME": {"n_samples": 5000}, "Integrated Gradients": {"n_steps": 200}}
    ) == {("forward", "float32"): 5000, ("forward-backward", "float32"): 200}
    spent = pd.DataFrame({"method": ["Partition SHAP"], "samples": [268.0]})
    assert bench.passes({"Partition SHAP": {"max_evals": 500}}, spent) == {
        ("forward", "float32"): 268
    }
    group = next(group for group in bench.GROUPS if group.name == "LIME 100")
    assert bench.limit_kinds(group) == [("forward", "float32"), ("forward", "bfloat16")]


def test_plain_passes_are_as_many_as_are_said(bench: object, bert: RunsFromEmbeddings) -> None:
    seen: list[int] = []
    inner = bert.logits
    bert.logits = lambda e, m: (seen.append(len(m)), inner(e, m))[1]
    rows, encoded = [Row("1", 1, 0, ["he", "sings"], 0)], bert.encode([["he", "sings"]])
    for direction, n in bench.PASSES.items():
        bench.plain_passes(bert, rows, encoded, direction)
        assert sum(seen) == n and set(seen) == {25}
        seen.clear()
    assert all(p.grad is None for p in bert.module.parameters()) and torch.is_grad_enabled()


def test_limes_own_limit_is_made_of_its_different_texts(
    bench: object, bert: RunsFromEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two words leave four texts; a sample of two stands for all by the number of tokens."""
    row = Row("1", 1, 0, ["he", "sings"], 0)
    everything = {tuple(one.ids) for one in bert.encode([[], ["he"], ["sings"], ["he", "sings"]])}
    found, times = bench.different_texts(bert, row, 60)
    assert set(found) == everything and times == 1
    monkeypatch.setattr(bench, "SOME_TEXTS", 2)
    some, times = bench.different_texts(bert, row, 60)
    assert len(some) == 2 and times * sum(map(len, some)) == pytest.approx(
        sum(map(len, everything))
    )
    seen: list[tuple[int, int]] = []
    inner = bert.logits
    bert.logits = lambda e, m: (seen.append(tuple(m.shape)), inner(e, m))[1]
    bench.plain_texts(bert, found)
    assert sorted(seen) == sorted(
        (sum(len(ids) == n for ids in everything), n) for n in {len(ids) for ids in everything}
    )


def test_disagreement_is_measured_against_the_largest_score(bench: object) -> None:
    ours = pd.DataFrame({"method": ["LIME"], "scores": [[1.0, -0.5]]})
    assert bench.disagreement({"LIME": [np.array([1.0, -1.0])]}, ours) == pytest.approx(
        (0.5, 1 / 6)
    )


def test_a_group_that_does_not_exist_is_refused(bench: object) -> None:
    with pytest.raises(TouchstoneError, match="no group has 'quantum' in its name"):
        bench.main(["--quick", "--only", "quantum"])


def test_few_rows_are_taken_from_short_to_long(bench: object) -> None:
    rows = pd.DataFrame({"sentence": [["a"] * n for n in (9, 1, 5, 3, 7, 2, 4, 6, 8)]})
    assert bench.some_rows(rows, 3)["sentence"].map(len).tolist() == [2, 5, 8]
    assert bench.some_rows(rows, 4)["sentence"].map(len).tolist() == [9, 1, 5, 3]
    assert bench.some_rows(rows, 4, longest=6)["sentence"].map(len).tolist() == [1, 5, 3, 2]
