"""A card and a board that tests of this room read and show."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from lib.doors.board import COLUMNS


@pytest.fixture
def card() -> dict[str, Any]:
    row = {"asks": "Do altered words come first?", "n_clusters": 6, "floor": "Word counts"}
    known = {"raw": 0.8, "floor_raw": 0.6, "value": 0.5, "low": 0.1, "high": 0.9}
    other = {"best": "LIME", "best_value": 0.7, "by_identity": False, "why": None}
    unknown = dict.fromkeys((*known, "best", "best_value"))
    sentence = {"truth": "mask", "words": ["She", "</script>"], "scores": [2.0, -1.0]}
    return {
        "schema": 1,
        "touchstone": "0.2.0",
        "explainer": "mine:<b>by_length</b>",
        "settings": {},
        "scale": "small",
        "decides": False,
        "summary": "Six texts a truth decide nothing.",
        "truths": [
            {"truth": "mask", **row, **known, **other},
            {"truth": "cue", **row, **other, **unknown, "why": "it refuses this model"},
        ],
        "gate": {"likeness": 0.2, "passes": True},
        "other_model": [{"truth": "swap", "own": 0.4, "other": None}],
        "single": {"draws": 1.0, "trainings": None},
        "cost": {"seconds": None, "quality": [{"passes": 10, "score": 0.6}]},
        "sentences": [{"which": "good", "score": 1.0, "key": [1.0, None], **sentence}],
    }


@pytest.fixture
def board_table() -> pd.DataFrame:
    entries = [
        ("LIME", "Touchstone", "{}", "", "explainer", [("mask", 0.5), ("edit", -0.1)], ""),
        ("Even", "Touchstone", "{}", "", "floor", [("mask", -0.2)], ""),
        ("mine", "A & B", '{"n": 3}', "mine:f", "submission", [("mask", 0.7)], "tuned"),
    ]
    rows = [
        (*who, truth, value, value - 0.1, value + 0.1, who[0] == "LIME", remarks)
        for *who, cells, remarks in entries
        for truth, value in cells
    ]
    return pd.DataFrame(rows, columns=COLUMNS)
