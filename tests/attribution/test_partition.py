"""Partition SHAP from a few coalitions: shap's values, complete at any number."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import SENTENCES, as_rows, build

from lib.attribution import explain, partition
from lib.attribution.batch import TokenBatch
from lib.attribution.partition import n_coalitions, partition_shap
from lib.core.errors import TouchstoneError

# Made by shap's PartitionExplainer for the game below, over the same balanced tree.
SHAP = json.loads((Path(__file__).parent / "shap_partition.json").read_text())
D = 13


def game(embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """A game of 13 players with interactions: who is present is who has a one."""
    z, i = embeddings[..., 0].double(), torch.arange(D).double()
    pairs = (torch.cos(3 * i[:, None] + 5 * i) / 4).triu(1)
    return torch.tanh(z @ torch.sin(i + 1) + torch.einsum("si,ij,sj->s", z, pairs, z))


def players(n: int = D, rows: int = 1) -> TokenBatch:
    ones = torch.ones(rows, n, 1, dtype=torch.float64)
    mask = torch.ones(rows, n, dtype=torch.long)
    return TokenBatch(game, ones, mask, 0 * ones, mask.bool(), tuple(range(rows)))


@pytest.mark.parametrize("max_evals", [int(n) for n in SHAP["values"]])
def test_the_values_are_those_of_shap_at_the_same_number_of_evaluations(max_evals: int) -> None:
    found = partition_shap(players(rows=2), max_evals=max_evals)
    for of_row in found.scores:
        np.testing.assert_allclose(of_row, SHAP["values"][str(max_evals)], atol=1e-12)
    assert found.delta.abs().max() < 1e-12  # complete with two evaluations, too
    assert (found.about["samples"] <= max_evals + 1).all()


def test_enough_evaluations_give_the_exact_values() -> None:
    exact = partition_shap(players())
    np.testing.assert_allclose(partition_shap(players(), max_evals=10**6).scores, exact.scores)
    few = partition_shap(players(), max_evals=20).scores
    assert not torch.allclose(few, exact.scores, atol=0.01)


def test_the_coalitions_are_counted_before_they_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[tuple[bool, ...]] = set()
    plain = partition.worth_of

    def noting(batch: TokenBatch, rows: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        seen.update(map(tuple, present.tolist()))
        return plain(batch, rows, present)

    monkeypatch.setattr(partition, "worth_of", noting)
    partition_shap(players())
    assert len(seen) == n_coalitions(D)


def test_what_would_take_hours_is_refused_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "_LONG", 10)
    ticks = count(step=2.0)  # two seconds for the four coalitions that are timed
    monkeypatch.setattr(partition.time, "perf_counter", lambda: next(ticks))
    with pytest.raises(TouchstoneError, match="of 13 tokens takes .* about 1 minutes here; give"):
        partition_shap(players(), max_minutes=0.5)
    assert partition_shap(players(), max_minutes=2.0).delta.abs().max() < 1e-12
    assert partition_shap(players(), max_evals=9, max_minutes=0.5).delta.abs().max() < 1e-12


def test_the_engine_takes_the_option_and_notes_it() -> None:
    model, rows = build("BERT"), as_rows(SENTENCES)
    few = explain(model, rows, "Partition SHAP", {"max_evals": 6})
    assert (few["samples"] <= 7).all() and few["delta"].abs().max() < 1e-5
    assert "max_evals" not in explain(model, rows.iloc[:1], "Partition SHAP")["settings"][0]
    with pytest.raises(TouchstoneError, match="max_evals = 1, and two are the full and the empty"):
        explain(model, rows, "Partition SHAP", {"max_evals": 1})
