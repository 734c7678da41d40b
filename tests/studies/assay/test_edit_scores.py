"""Skill on edits: exact is one, the best rule is zero, and a scale costs nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.studies.assay.edit_scores import (
    edit_table,
    estimated_changes,
    fitted_scale,
    score_mixed,
    skill,
)

CHANGES = [2.0, -1.0, 0.5, -3.0]
ELSEWHERE = pd.DataFrame({"explainer": ["exact"], "truth": ["edit"], "value": [0.25]})
HOW = {"n_bootstrap": 20, "alpha": 0.05, "seed": 0}


def pairs(part: str) -> pd.DataFrame:
    rows = [
        {
            "item_id": f"{part}{i}@{training}",
            "truth": "edit",
            "model": "reviews",
            "training": training,
            "text": f"{part} text {i}",
            "cluster": f"{part}{i}",
            "key": [0.0, 1.0, 1.0],
            "change": (1 + training) * change,
            "goal": np.sign(change),
            "second": change + 0.1 if i % 2 else np.nan,
        }
        for i, change in enumerate(CHANGES)
        for training in (0, 1)
    ]
    other = rows[0] | {"truth": "noun", "item_id": f"{part}-noun"}
    return pd.DataFrame([*rows, other])


def said(items: pd.DataFrame, name: str, factor: float, offset: float = 0.0) -> pd.DataFrame:
    edits = items[items["truth"] == "edit"]
    scores = [
        [7.0, factor * change / 2, factor * change / 2 + offset] for change in edits["change"]
    ]
    return edits[["model", "training", "text"]].assign(explainer=name, scores=scores)


def skills() -> pd.DataFrame:
    tables = []
    for part in ("test", "dev"):
        items = pairs(part)
        explanations = pd.concat(
            [
                said(items, "exact", 1.0),
                said(items, "in other units", -40.0),
                said(items, "always up", 0.0, 5.0),
            ]
        )
        tables.append(estimated_changes(items, explanations))
    return skill(*tables)


def test_the_scale_is_the_best_one_and_zeros_have_none() -> None:
    assert fitted_scale([1.0, -1.0], [3.0, -5.0]) == 4.0
    assert fitted_scale([0.0, 0.0], [3.0, 1.0]) == 0.0


def test_exact_is_one_in_any_unit_and_the_best_rule_is_zero() -> None:
    means = skills().groupby("explainer")["value"].mean()
    assert means["exact"] == pytest.approx(1.0)
    assert means["in other units"] == pytest.approx(1.0)
    assert means["Goal of the edit"] == pytest.approx(0.0) and means["Zero"] < 0
    assert means["always up"] < 0, "a constant knows no direction"
    assert set(skills()["rule"]) == {"Goal of the edit"}


def test_both_scores_stand_beside_the_other_training_and_the_second_editor() -> None:
    changes, items = mixed()
    of_mixed = score_mixed(changes, items, said(items, "exact", 1.0))
    table = edit_table(skills(), ELSEWHERE, of_mixed, **HOW).set_index("explainer")
    assert table.loc["exact", "rank_correlation"] == pytest.approx(1.0)
    assert table.loc["in other units", "rank_correlation"] == pytest.approx(-1.0)
    assert table.loc["exact", "of_another_model"] == 0.25
    assert table.loc["always up", "rank_correlation"] == 0
    assert table["n"].to_dict()["Second editor"] == 4 and table["n"]["exact"] == 8
    roles = table["role"]
    assert (roles["Zero"], roles["Goal of the edit"]) == ("floor", "floor")
    assert (roles["Second editor"], roles["exact"]) == ("second editor", "explainer")
    assert table["skill"].is_monotonic_decreasing


def mixed() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two mixed edits of each of the pairs' texts: the first word went, then the other two."""
    items = pairs("test").query("truth == 'edit'")
    first, rest = items.assign(at=[[0]] * len(items)), items.assign(at=[[1, 2]] * len(items))
    first["change"] = 7.0 + 0.01 * np.arange(len(first))
    changes = pd.concat([first, rest], ignore_index=True)[["item_id", "at", "change"]]
    return changes, items


def test_a_mixed_edit_is_estimated_by_the_words_that_went() -> None:
    changes, items = mixed()
    said_of = pd.concat([said(items, "exact", 1.0), said(items, "against", -1.0)])
    found = score_mixed(changes, items, said_of)
    assert len(found) == 2 * len(changes)
    means = found.groupby("explainer")["value"].mean()
    assert means["exact"] > 0.8 > means["against"]
    table = edit_table(skills(), ELSEWHERE, found, **HOW).set_index("explainer")
    assert table.loc["exact", "mixed"] == pytest.approx(means["exact"])
    assert np.isnan(table.loc["Zero", "mixed"]) and table.loc["exact", "mixed_n"] == 8


def test_no_mixed_edits_leave_the_column_empty() -> None:
    changes, items = mixed()
    none = score_mixed(changes.iloc[:0], items, said(items, "exact", 1.0))
    assert edit_table(skills(), ELSEWHERE, none, **HOW)["mixed"].isna().all()
