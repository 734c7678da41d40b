"""Printed numbers beside ours: judged where data and model are the paper's, shown otherwise."""

from __future__ import annotations

import pandas as pd

from lib.stats import Claim
from lib.studies.geco.paper_numbers import compare_numbers


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
    claim = Claim(
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
    rows = compare_numbers(claim, numbers, ours, "cpu", True, False)
    assert [r["verdict"] for r in rows] == ["holds", "undecided", "not run", "not run"]
    assert [r["paper"] for r in rows] == [99.5, 85.0, 98.9, 99.8] and rows[0]["why"].endswith(
        "a note"
    )
    assert compare_numbers(claim, numbers, ours, "paper", True, True)[2]["verdict"] == "holds"
    assert {r["verdict"] for r in compare_numbers(claim, numbers, ours, "small", False, False)} == {
        "not run"
    }
