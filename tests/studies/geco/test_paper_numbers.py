"""Printed numbers beside ours: judged where data and model are the paper's, shown otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.stats import Claim
from lib.studies.geco.paper_numbers import _printed_error, compare_numbers

CLAIM = Claim(
    id="c",
    source="paper",
    statement="s",
    quantity="accuracy",
    computed="x",
    direction="equal",
    smallest_effect=1.0,
    test="t",
    numbers=True,
)


def test_paper_numbers_beside_ours():
    numbers = pd.DataFrame(
        [
            {
                "id": f"n{i}",
                "source": "paper, Table 3",
                "quantity": "accuracy",
                "dataset": "D_A",
                "scheme": s,
                "class": "",
                "value": v,
                "spread": sd,
                "n_seeds": 5,
                "spread_factor": 1,
                "note": "a note",
            }
            for i, (s, v, sd) in enumerate(
                (
                    ("OLA-CEA", 99.5, 0.2),
                    ("OLA-CEA", 85.0, 14.6),
                    ("C", 98.9, 0.1),
                    ("CE", 99.8, 0.1),
                )
            )
        ]
    )
    ours = pd.DataFrame(
        [
            {
                "quantity": "accuracy",
                "dataset": "D_A",
                "scheme": s,
                "class": "",
                "estimate": 99.4,
                "low": 99.2,
                "high": 99.6,
                "n": 322,
            }
            for s in ("OLA-CEA", "C")
        ]
    )
    rows = compare_numbers(CLAIM, numbers, ours, "cpu", True, False)
    assert [r["verdict"] for r in rows] == ["holds", "undecided", "not run", "not run"]
    assert [r["paper"] for r in rows] == [99.5, 85.0, 98.9, 99.8] and rows[0]["why"].endswith(
        "a note"
    )
    assert compare_numbers(CLAIM, numbers, ours, "paper", True, True)[2]["verdict"] == "holds"
    assert {r["verdict"] for r in compare_numbers(CLAIM, numbers, ours, "small", False, False)} == {
        "not run"
    }


def number(value: float, **about: object) -> dict[str, object]:
    base = {"id": "n", "source": "paper, Table 3", "quantity": "accuracy", "dataset": "D_A"}
    base |= {"scheme": "OLA-CEA", "class": "", "value": value, "spread": np.nan, "note": ""}
    return base | {"n_seeds": 5, "spread_factor": 1} | about


def found(high: float = 99.6) -> pd.DataFrame:
    about = {"quantity": "accuracy", "dataset": "D_A", "scheme": "OLA-CEA", "class": ""}
    return pd.DataFrame([about | {"estimate": 99.4, "low": 99.2, "high": high, "n": 322}])


def test_numbers_of_the_claim_s_own_source_and_quantity_are_compared() -> None:
    numbers = [
        number(99.0),
        number(99.0, source="poster"),
        number(99.0, quantity="area"),
        number(99.0, dataset="D_S"),
    ]
    rows = compare_numbers(CLAIM, pd.DataFrame(numbers), found(), "cpu", True, True)
    assert [row["quantity"] for row in rows] == ["accuracy D_A OLA-CEA", "accuracy D_S OLA-CEA"]
    assert [row["n"] for row in rows] == [322, 0] and np.isnan(rows[1]["ours"])
    assert rows[1]["why"] == "this run has no such model or data"


def test_a_number_without_a_spread_has_no_error_of_its_own() -> None:
    """Ours lies 1.2 to 1.6 above 98, which is outside of the margin of 1."""
    (row,) = compare_numbers(CLAIM, pd.DataFrame([number(98.0)]), found(), "cpu", True, True)
    assert row["verdict"] == "fails" and (row["low"], row["high"]) == (99.2, 99.6)
    more = replace(CLAIM, direction="greater")  # .4 more, and 1 is asked for; .2 to 2 is open
    (row,) = compare_numbers(more, pd.DataFrame([number(99.0)]), found(101.0), "cpu", True, True)
    assert row["verdict"] == "undecided"


def test_the_printed_error_by_hand() -> None:
    """Of five seeds: 2.776445 standard errors of the mean, each spread / sqrt 5."""
    assert _printed_error(number(1.0, spread="")) == 0
    assert _printed_error(number(1.0, spread=2.0)) == pytest.approx(2.776445 * 2 / 5**0.5)
    doubled = _printed_error(number(1.0, spread=2.0, spread_factor=2))
    assert doubled == pytest.approx(2.776445 * 4 / 5**0.5)
