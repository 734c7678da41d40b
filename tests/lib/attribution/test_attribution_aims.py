"""The table of aims says what was met, by what, and from which run each line is."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lib.paths import ROOT


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import bench

    return bench


@pytest.mark.parametrize(("ratio", "of_limit", "says"), [
    (8.5, 0.5, "met"), (7.0, 0.96, "met by the limit"), (7.0, 0.94, "missed")])
def test_an_aim_is_met_by_its_ratio_or_by_the_limit(bench: object, ratio: float, of_limit: float, says: str) -> None:
    aim = bench.Aim("the same in bfloat16", "line", 8.0)
    assert bench.verdict(aim, pd.Series({"ratio": ratio, "of_limit": of_limit})) == says


def test_a_share_of_the_limit_that_is_asked_for_beside_the_ratio_counts(bench: object) -> None:
    aim = bench.Aim("single pass", "line", 6.0, limited=False, also=("of_limit", 0.75))
    assert bench.verdict(aim, pd.Series({"ratio": 7.0, "of_limit": 0.8})) == "met"
    assert bench.verdict(aim, pd.Series({"ratio": 7.0, "of_limit": 0.6})) == "met, but of_limit 0.6"
    assert bench.verdict(aim, pd.Series({"ratio": 5.0, "of_limit": 0.99})) == "missed"


def test_lines_not_measured_yet_are_those_published_before(bench: object, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    for folder in (before, now):
        folder.mkdir()
    pd.DataFrame({"line": ["a", "b"], "ratio": [1.0, 2.0], "scale": "quick"}).to_csv(before / "attribution.csv", index=False)
    pd.DataFrame({"line": ["b"], "ratio": [3.0], "scale": "full"}).to_csv(now / "attribution.csv", index=False)
    monkeypatch.setattr(bench, "REFERENCE", before)
    table = bench.with_published(now, "attribution")
    assert table.values.tolist() == [["a", 1.0, "quick"], ["b", 3.0, "full"]]


def test_the_published_table_is_what_its_lines_say(bench: object) -> None:
    folder = ROOT / "outputs" / "reference" / "benchmarks"
    lines = {row["line"]: row for name in ("attribution", "training")
             for _, row in pd.read_csv(folder / f"{name}.csv").iterrows()}
    again = bench.table_of_aims(lines, pd.read_csv(folder / "machine.csv").iloc[0])
    kept = pd.read_csv(folder / "table.csv")
    assert again["verdict"].tolist() == kept["verdict"].tolist()
    assert bench.as_markdown(kept) in (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
