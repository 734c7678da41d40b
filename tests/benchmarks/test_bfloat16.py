"""The check that bfloat16 is safe counts what it says, and can say no."""

from __future__ import annotations

import pandas as pd
import pytest
from small_models import as_rows

from lib.core.paths import ROOT
from lib.models.text_model import RunsFromEmbeddings


@pytest.fixture
def bfloat16(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "tools" / "benchmarks")
    import bfloat16

    return bfloat16


def test_a_method_that_moves_is_not_called_safe(
    bfloat16: object, bert: RunsFromEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = as_rows(["he sings the old song .", "they sing ."], [1, 2]).assign(
        ground_truth=[[1, 0, 0, 0, 0, 0], [1, 0, 0]]
    )
    both = {
        "plain": [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0]],
        "short": [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 3.0]],
    }
    answers = iter(both.values())
    monkeypatch.setattr(bfloat16, "ASKED", {"LIME": {}})
    monkeypatch.setattr(
        bfloat16,
        "explain_many",
        lambda *_: pd.DataFrame({"method": "LIME", "scores": next(answers)}),
    )
    found = bfloat16.compare(bert, rows).iloc[0]
    assert (found["mass_float32"], found["mass_bfloat16"]) == (
        0.5,
        0.375,
    )  # the second row falls from 1/2 to 1/4
    assert (
        found["moved"],
        found["largest_of_a_row"],
        found["share_difference"],
        found["rows_beyond"],
        found["safe"],
    ) == (0.125, 0.25, 0.25, 1, False)


def test_both_precisions_are_asked_on_the_same_draws(
    bfloat16: object, bert: RunsFromEmbeddings
) -> None:
    rows = as_rows(["he sings the old song .", "they sing ."], [1, 2]).assign(
        ground_truth=[[1, 0, 0, 0, 0, 0], [1, 0, 0]]
    )
    found = bfloat16.compare(bert, rows)
    assert found["method"].tolist() == ["Integrated Gradients", "Kernel SHAP", "LIME"]
    assert (found["share_difference"] < 0.1).all() and (found["share_difference"] > 0).all()
