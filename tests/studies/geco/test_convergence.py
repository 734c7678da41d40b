"""LIME and Kernel SHAP to convergence: which units, beside what, and in which words."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lib.attribution.table import in_format
from lib.core.errors import TouchstoneError
from lib.studies.geco.convergence import (
    PER_ROW,
    SUMMARY,
    OneForm,
    beside_usual,
    plan_converged,
    summarise_converged,
    to_be_judged,
)
from lib.studies.geco.grid import Unit, parts_of
from lib.studies.geco.units import one_form_each

MODELS = pd.DataFrame(
    [("D_A", "CEf", 0), ("D_A", "CEf", 1), ("D_A", "OLA-CEA", 3), ("D_A", "OLA-CEA", 4)],
    columns=["dataset", "scheme", "seed"],
)
ROWS = pd.DataFrame(
    [
        (f"{i}-{name}", i, target, ["she", "sings", "now"], [1, 0, 0])
        for i in range(3)
        for target, name in enumerate("FM")
    ],
    columns=["row_id", "sentence_idx", "target", "sentence", "ground_truth"],
).assign(dataset="D_A")
PLAN = (0, 0.01, 4096)


def explained(method: str, scores: list[float], **about: list[float]) -> pd.DataFrame:
    rows = ROWS.iloc[[0, 3, 4]].reset_index(drop=True)
    place = {"study": "geco", "dataset": "D_A", "scheme": "CEf", "seed": 0}
    return in_format(rows, [scores] * 3, [None] * 3, method, {}, about, **place)


def test_the_first_trainings_of_the_named_schemes_are_drawn_to_convergence() -> None:
    usual = {"LIME": {"n_samples": 100}, "Kernel SHAP": {"n_samples": 25, "explained": "logit"}}
    units = plan_converged(MODELS, ["LIME", "Kernel SHAP"], usual, {"OLA-CEA": 1}, *PLAN)
    assert [(u.scheme, u.seed, u.method) for u in units] == [
        ("OLA-CEA", 3, "LIME"),
        ("OLA-CEA", 3, "Kernel SHAP"),
    ]
    chosen = {"n_samples": 4096, "tolerance": 0.01, "exact": True}
    assert all(u.settings.items() >= chosen.items() for u in units)
    assert units[1].settings["explained"] == "logit"
    both = plan_converged(MODELS, ["LIME"], usual, {"CEf": 2, "OLA-CEA": 5}, *PLAN)
    assert [(u.scheme, u.seed) for u in both] == [
        ("CEf", 0),
        ("CEf", 1),
        ("OLA-CEA", 3),
        ("OLA-CEA", 4),
    ]


def test_the_released_methods_have_no_tolerance_and_are_left_alone() -> None:
    released = {"LIME": {"variant": "as_released"}}
    assert plan_converged(MODELS, ["LIME"], released, {}, *PLAN) == []
    assert plan_converged(MODELS[:0], ["LIME"], {}, {"CEf": 1}, *PLAN) == []
    with pytest.raises(TouchstoneError, match="tolerance"):
        plan_converged(MODELS, ["LIME"], released, {"CEf": 1}, *PLAN)


def test_one_form_of_each_base_sentence_also_in_parts() -> None:
    whole = SimpleNamespace(
        rows_of=lambda unit: ROWS, model_of=lambda unit: "a model", mark_of=lambda unit: "a mark"
    )
    sources, unit = OneForm(whole), Unit("D_A", "CEf", 0, "LIME", {"n_samples": 60_000}, 0)
    assert sources.rows_of(unit)["row_id"].tolist() == ["0-F", "1-M", "2-F"]
    assert sources.rows_of(unit).equals(one_form_each(ROWS))
    assert one_form_each(ROWS, 2)["row_id"].tolist() == ["0-F", "1-M"]
    assert (sources.model_of(unit), sources.mark_of(unit)) == ("a model", "a mark")
    parts = parts_of(unit, sources)
    rows = [row for part in parts for row in part.rows_of(unit)["row_id"]]
    assert len(parts) == 3 and rows == ["0-F", "1-M", "2-F"]


def test_each_row_stands_beside_the_usual_explanation() -> None:
    settled = explained(
        "LIME", [3.0, 1.0, 0.0], samples=[8.0, 512.0, 4096.0], error=[0.0, 0.009, 0.02]
    )
    usual = pd.concat([explained("LIME", [1.0, 0.0, 3.0]), explained("Saliency", [1.0, 0.0, 0.0])])
    found = beside_usual([settled], usual, ROWS, tolerance=0.01)
    assert list(found) == PER_ROW and found["row_id"].tolist() == ["0-F", "1-M", "2-F"]
    assert found["is_exact"].tolist() == [True, False, False]
    assert found["is_reached"].tolist() == [True, True, False]
    assert found["MA"].tolist() == [0.75] * 3 and found["MA_usual"].tolist() == [0.25] * 3
    assert found["difference"].tolist() == [0.5] * 3 and found["rank"].tolist() == [-0.5] * 3
    assert beside_usual([], usual, ROWS, 0.01).empty


def test_a_line_for_each_model_and_method() -> None:
    per_row = beside_usual(
        [explained("LIME", [3.0, 1.0, 0.0], samples=[8.0, 512.0, 4096.0], error=[0.0, 0.0, 0.1])],
        explained("LIME", [1.0, 0.0, 3.0]),
        ROWS,
        0.01,
    )
    per_row[["difference", "MA_usual", "MA"]] = [[0.4, 0.2, 0.6], [0.5, 0.3, 0.8], [0.6, 0.3, 0.9]]
    table = summarise_converged(per_row, n_bootstrap=200, seed=1)
    assert list(table) == SUMMARY and len(table) == 1
    line = table.iloc[0]
    assert line[["dataset", "scheme", "method"]].tolist() == ["D_A", "CEf", "LIME"]
    assert (line["n_sentences"], line["n_seeds"]) == (3, 1)
    assert (line["samples"], line["most_samples"]) == (512, 4096)
    assert (line["exact"], line["reached"]) == pytest.approx((2 / 3, 2 / 3))
    assert line["half_width"] == pytest.approx((line["high"] - line["low"]) / 2)
    assert line["difference"] == pytest.approx(0.5) and line["low"] < 0.5 < line["high"]
    for name, ending in (("MA_usual", "usual"), ("MA", "MA")):
        assert line[name] == pytest.approx(per_row[name].mean())
        assert line[f"low_{ending}"] < line[name] < line[f"high_{ending}"]
    assert summarise_converged(pd.DataFrame(columns=PER_ROW)).columns.tolist() == SUMMARY


def test_claims_compare_the_same_rows_and_only_those_that_count() -> None:
    per_row = beside_usual(
        [explained("LIME", [3.0, 1.0, 0.0], samples=[8.0] * 3, error=[0.0] * 3)],
        explained("LIME", [1.0, 0.0, 3.0]),
        ROWS,
        0.01,
    )
    scored = pd.concat([explained("LIME", [0.0]), explained("Saliency", [0.0])], ignore_index=True)
    scored = scored.assign(MA=np.arange(6) / 10)
    other = scored.assign(row_id="0-M")
    counting = pd.concat([scored.query("row_id != '1-M'"), other], ignore_index=True)
    found = to_be_judged(per_row, counting)
    assert found.groupby(["sampling", "method"])["row_id"].agg(list).to_dict() == {
        ("converged", "LIME"): ["0-F", "2-F"],
        ("usual", "LIME"): ["0-F", "2-F"],
        ("usual", "Saliency"): ["0-F", "2-F"],
    }
    assert set(found.query("sampling == 'converged'")["MA"]) == {0.75}
    nothing = to_be_judged(pd.DataFrame(columns=PER_ROW), counting)
    assert nothing.empty and {"sampling", "MA", "dataset"} <= set(nothing)


def test_a_wrapper_is_a_source_and_nothing_else() -> None:
    assert [field.name for field in dataclasses.fields(OneForm)] == ["whole"]
