"""What a run will cost, counted: sums by stage, honest bounds, and what cannot be counted yet."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from lib.core.errors import TouchstoneError
from lib.core.planned import NOTEBOOK, UNITS, planned, print_planned


def listing(stage, values):
    """Two units of the second stage; the third cannot be listed."""
    if stage.stage == "03_attribution":
        raise TouchstoneError("02_training has not been completed")
    assert stage.scale == "cpu" and values == {"seed": 0}
    return [SimpleNamespace(seconds=s) for s in (30.0, 50.0)] if "02" in stage.stage else []


@pytest.fixture
def stages() -> list:
    names = "01_data_generation", "02_training", "03_attribution"
    place = Path("notebooks/own/x.py")
    return [SimpleNamespace(stage=name, all={"seed": 0}, notebook=place) for name in names]


def test_a_stage_costs_its_units_and_its_notebook(stages, capsys) -> None:
    beside = {"01_data_generation": 8.0, "02_training": 4.0}
    table, errors = planned(listing, stages, "cpu", beside)
    assert table[["stage", "units", "seconds"]].values.tolist() == [
        ["01_data_generation", 0, 8.0],
        ["02_training", 2, 84.0],
    ]
    assert table["low"].tolist() == [8 / NOTEBOOK, 80 / UNITS + 4 / NOTEBOOK]
    assert table["high"].tolist() == [8 * NOTEBOOK, 80 * UNITS + 4 * NOTEBOOK]
    print_planned(table, errors)
    said = capsys.readouterr().out
    assert "03_attribution cannot be counted yet: 02_training has not been" in said
    assert "of what was counted about 1.53 minutes of one core" in said


def test_where_all_is_counted_the_sum_says_so(stages, capsys) -> None:
    print_planned(*planned(listing, stages[:2], "cpu", {}))
    assert "in all about 1.33 minutes of one core" in capsys.readouterr().out
