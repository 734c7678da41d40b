"""Verdicts as a notebook shows them: decided ones first, single numbers in one line of counts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from lib.core.stage import PRACTICE
from lib.stats.verdicts import show_verdicts, tell_verdicts

CLAIMS = pd.DataFrame(
    [
        (
            "a",
            "q",
            "> 0",
            0.12345,
            0.1,
            0.2,
            "undecided",
            "of 1 comparisons 1 undecided (open (a)); b",
        ),
        ("b", "q", "> 0", 0.5, np.nan, np.nan, "fails", "of 1 comparisons 1 fails"),
        ("n1", "a number", 0.7, 0.71, 0.6, 0.8, "holds", ""),
        ("c", "q", "> 0", 0.25, 0.2, 0.3, "holds", ""),
        ("n2", "a number", 0.7, 0.1, 0.0, 0.2, "fails", ""),
    ],
    columns="id quantity paper ours low high verdict why".split(),
)


@pytest.fixture
def registered(tmp_path: Path) -> Path:
    about = ("source", "quantity", "computed", "direction", "smallest_effect", "test")
    text = dict(zip(about, ("paper", "q", "x", "greater", 0.1, "t")))
    entries = [text | {"id": name, "statement": f"claim {name}"} for name in "abc"]
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump(entries))
    return tmp_path / "claims.yaml"


def stage(scale: str) -> SimpleNamespace:
    saved: dict[str, pd.DataFrame] = {}
    practice = scale in PRACTICE
    return SimpleNamespace(scale=scale, is_practice=practice, table=saved.__setitem__, saved=saved)


def test_decided_claims_come_first_and_numbers_are_counted(
    registered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cpu = stage("cpu")
    shown = show_verdicts(cpu, CLAIMS, registered, "all")  # type: ignore[arg-type]
    assert shown is not None and shown["claim"].tolist() == ["claim c", "claim b", "claim a"]
    assert list(shown) == ["claim", "verdict", "it says", "found here", "why"]
    assert shown["found here"].tolist() == [
        "0.250 (0.200 to 0.300)",
        "0.500",
        "0.123 (0.100 to 0.200)",
    ]
    assert shown["it says"].tolist() == ["q > 0"] * 3
    assert shown["why"].tolist() == ["", "", "open (a); b"] and shown.index.tolist() == [0, 1, 2]
    assert capsys.readouterr().out == (
        "2 printed numbers are in verdict_all.csv: 1 holds, 1 fails\n"
    )
    assert cpu.saved["verdict_all"]["id"].tolist() == ["n1", "c", "b", "n2", "a"]


def test_named_claims_alone_are_shown(registered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cpu = stage("cpu")
    shown = show_verdicts(cpu, CLAIMS, registered, "two", "a", "n1")  # type: ignore[arg-type]
    assert shown is not None and shown["claim"].tolist() == ["a number", "claim a"]
    assert capsys.readouterr().out == "" and list(cpu.saved) == ["verdict_two"]


def test_without_numbers_there_is_no_line_about_them(
    registered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = show_verdicts(stage("cpu"), CLAIMS[:2], registered, "few")  # type: ignore[arg-type]
    assert shown is not None and len(shown) == 2 and capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("ids", "counted"),
    [
        ((), "3 claims and 2 printed numbers are"),
        (("a", "c"), "2 claims are"),
        (("b",), "1 claim is"),
        (("b", "n1"), "1 claim and 1 printed number are"),
        (("n1",), "1 printed number is"),
    ],
)
def test_scale_small_decides_nothing(
    registered: Path, capsys: pytest.CaptureFixture[str], ids: tuple[str, ...], counted: str
) -> None:
    small = stage("small")
    assert show_verdicts(small, CLAIMS, registered, "x", *ids) is None  # type: ignore[arg-type]
    line = f"{counted} judged at scale cpu; scale small shows the steps.\n"
    assert not small.saved and capsys.readouterr().out == line


def test_a_value_is_shown_in_the_units_of_its_claim(tmp_path: Path) -> None:
    about = {"source": "paper", "computed": "x", "direction": "less", "smallest_effect": 0.1}
    entries = [
        about | {"id": "bar", "quantity": "MA", "target": 0.25},
        about | {"id": "gap", "quantity": "MA", "right": [{"method": "IG"}]},
        about | {"id": "named", "quantity": "TPR - TNR", "right": [{"method": "IG"}]},
        about | {"id": "count", "quantity": "rows", "target": 3.0},
    ]
    entries = [entry | {"statement": entry["id"], "test": "t"} for entry in entries]
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump(entries))
    many = "of 3 comparisons 2 holds, 1 fails"
    rows = [
        ("bar", "MA", "< 0.25", 0.27, 0.06, 0.55, "partly", many),
        ("gap", "MA", "< 0", -0.1, -0.2, 0.0, "holds", "of 2 comparisons 2 holds"),
        ("named", "TPR - TNR", "< 0", 1.5, 1.0, 2.0, "fails", ""),
        ("count", "rows", "< 3", 663.0, np.nan, np.nan, "fails", ""),
    ]
    claims = pd.DataFrame(rows, columns=CLAIMS.columns)
    registered, cpu = tmp_path / "claims.yaml", stage("cpu")
    shown = show_verdicts(cpu, claims, registered, "all")  # type: ignore[arg-type]
    assert shown is not None
    assert shown.set_index("claim")["it says"].to_dict() == {
        "gap": "difference in mass accuracy < 0",
        "bar": "mass accuracy < 0.25",
        "named": "TPR - TNR < 0",
        "count": "rows < 3",
    }
    assert shown.set_index("claim")["found here"].to_dict() == {
        "gap": "-0.100 (range -0.200 to 0.000)",
        "bar": "0.520 (range 0.310 to 0.800)",
        "named": "1.500 (1.000 to 2.000)",
        "count": "663",
    }
    assert shown["why"].tolist()[-1] == "of 3 comparisons 2 hold, 1 fails"
    as_written = show_verdicts(cpu, claims, registered, "all", less_target=False)  # type: ignore[arg-type]
    assert as_written is not None
    assert as_written["found here"].tolist()[-1] == "0.270 (range 0.060 to 0.550)"


def test_counts_are_whole_and_nothing_is_minus_zero(
    registered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {1.0: "1.000", 2.0: "2", -0.0004: "0.000", 2.5: "2.500"}
    rows = [("c", "q", "> 0", value, np.nan, np.nan, "holds", "") for value in values]
    claims = pd.DataFrame(rows, columns=CLAIMS.columns)
    shown = show_verdicts(stage("cpu"), claims, registered, "all")  # type: ignore[arg-type]
    assert shown is not None and shown["found here"].tolist() == list(values.values())
    entries = yaml.safe_load(registered.read_text())
    registered.write_text(yaml.safe_dump([entry | {"target": 0.5} for entry in entries]))
    displayed: list[str] = []
    monkeypatch.setattr("IPython.display.display", lambda page: displayed.append(page.data))
    many = claims.assign(why="of 2 comparisons 2 holds")
    tell_verdicts(stage("cpu"), many, registered, "all")  # type: ignore[arg-type]
    assert "<td>1.500</td>" in displayed[0], "less the target, which is added again"


def test_verdicts_are_told_in_twelve_rows_and_a_line(
    registered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    displayed: list[str] = []
    monkeypatch.setattr("IPython.display.display", lambda page: displayed.append(page.data))
    many = pd.concat([CLAIMS[CLAIMS["id"].isin(list("abc"))]] * 5, ignore_index=True)
    tell_verdicts(stage("cpu"), many, registered, "all")  # type: ignore[arg-type]
    assert displayed[0].count("<td>claim ") == 12
    assert displayed[0].endswith("<p>3 more rows are in the saved table.</p>")
    tell_verdicts(stage("small"), many, registered, "all")  # type: ignore[arg-type]
    assert len(displayed) == 1
