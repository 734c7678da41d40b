"""What plans predict beside what was measured: the committed table, and what is said of it."""

from __future__ import annotations

import pandas as pd
import pytest

from lib.core.paths import ROOT

TABLE = pd.read_csv(ROOT / "outputs" / "reference" / "benchmarks" / "planned.csv")


def test_inside_is_what_the_bounds_say() -> None:
    assert (TABLE["low"] <= TABLE["predicted"]).all() and (
        TABLE["predicted"] <= TABLE["high"]
    ).all()
    inside = TABLE["measured"].between(TABLE["low"], TABLE["high"])
    assert inside.tolist() == TABLE["inside"].tolist()


def test_the_page_says_how_many_lie_inside() -> None:
    page = (ROOT / "docs" / "scale.md").read_text()
    assert f"{TABLE['inside'].sum()} of {len(TABLE)} measured times lie inside" in page


def test_a_stage_is_found_beside_its_plan(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools" / "benchmarks")
    import planned

    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path))
    folder = tmp_path / "geco" / "small"
    folder.mkdir(parents=True)
    plan = "stage,what,count,seconds,low,high\n02_training,ZS,1,3,2,6\n02_training,C,1,4,2,8\n"
    (folder / "plan.csv").write_text(plan + "total,,0,7,4,14\n")
    (folder / "02_training").mkdir()
    (folder / "02_training" / "run.json").write_text('{"cpu_seconds": 9.5}')
    line = planned.geco_beside().iloc[0]
    assert line[["seconds", "low", "high", "measured"]].tolist() == [7, 4, 14, 9.5]
    assert planned.recorded().empty  # no stage is complete here
    with pytest.raises(SystemExit, match="2"):
        planned.main(["measur"])
