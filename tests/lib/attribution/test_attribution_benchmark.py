"""The benchmark runs, counts what it says it counts, and finds the two arms equal. Nothing here is timed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import as_rows

from lib.attribution import Row
from lib.errors import TouchstoneError
from lib.models.face import RunsFromEmbeddings
from lib.paths import ROOT


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import attribution

    return attribution


def test_every_line_runs_and_the_arms_agree(bench: object, bert: RunsFromEmbeddings) -> None:
    rows = as_rows(["he sings the old song .", "they sing ."], [1, 2])
    for group in bench.GROUPS:
        if "n_samples" in str(group.theirs) and "5000" in str(group.theirs):
            continue
        table = bench.measure(group, bert, rows, rounds=1)
        assert table["line"].tolist() == list(group.ours) and (table["rows"] == 2).all() and (table["ratio"] > 0).all()
        assert table["of_limit"].notna().all() and (table["ratio_low"] <= table["ratio_high"]).all()
        bound = table["equal"].map({"work": 2e-4, "answer": 0.1})
        assert (table["share_difference"] < bound).all(), group.name
        assert (table.loc[table["equal"] == "work", "difference_float64"] < 1e-6).all(), group.name


def test_the_limit_of_many_passes_is_taken_from_a_part(bench: object) -> None:
    assert [bench.run_passes(n) for n in (1, 25, 60, 5000)] == [25, 25, 60, 250]


def test_plain_passes_are_as_many_as_are_said(bench: object, bert: RunsFromEmbeddings) -> None:
    seen: list[int] = []
    inner = bert.logits
    bert.logits = lambda e, m: (seen.append(len(m)), inner(e, m))[1]
    rows, encoded = [Row("1", 1, 0, ["he", "sings"], 0)], bert.encode([["he", "sings"]])
    bench.plain_passes(bert, rows, encoded, "forward", 60)
    bench.plain_passes(bert, rows, encoded, "forward-backward", 1)
    assert seen == [25, 25, 10, 25]
    assert all(p.grad is None for p in bert.module.parameters()) and torch.is_grad_enabled()


def test_disagreement_is_measured_against_the_largest_score(bench: object) -> None:
    ours = pd.DataFrame({"method": ["LIME"], "scores": [[1.0, -0.5]]})
    assert bench.disagreement({"LIME": [np.array([1.0, -1.0])]}, ours) == pytest.approx((0.5, 1 / 6))


def test_a_group_that_does_not_exist_is_refused(bench: object) -> None:
    with pytest.raises(TouchstoneError, match="no group has 'quantum' in its name"):
        bench.main(["--quick", "--only", "quantum"])


def test_few_rows_are_taken_from_short_to_long(bench: object) -> None:
    rows = pd.DataFrame({"sentence": [["a"] * n for n in (9, 1, 5, 3, 7, 2, 4, 6, 8)]})
    assert bench.some_rows(rows, 3)["sentence"].map(len).tolist() == [2, 5, 8]
    assert bench.some_rows(rows, 4)["sentence"].map(len).tolist() == [9, 1, 5, 3]
    assert bench.some_rows(rows, 4, longest=6)["sentence"].map(len).tolist() == [1, 5, 3, 2]
