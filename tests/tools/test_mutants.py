"""Mutants by hand; every survivor of the committed table says why it computes the same."""

from __future__ import annotations

from pathlib import Path

import mutants
import pytest

from lib.core.paths import ROOT


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("return x < 2", ["return x <= 2", "return x < 3"]),
        ("return x not in y", ["return x in y"]),
        ("return not x", ["return x"]),
        ("return -x ** y", ["return x ** y", "return -x * y"]),
        ("return x and y or z", ["return x or y or z", "return x and y and z"]),
        ("return max(x, y.argmin())", ["return min(x, y.argmin())", "return max(x, y.argmax())"]),
        ("return f(x, flag=True)", ["return f(x, flag=False)"]),
        ("return 1e-12, 0.25", ["return 1.000000000001, 0.25", "return 1e-12, 0.5"]),
        ('return f(x, "less")', ['return f(x, "greater")']),
        ("return y if x else z", ["return y if (not (x)) else z"]),
        ("return zip(x, y, strict=True)", []),
        ('raise ValueError(f"{x[0]}")', []),
        ("x: list[3] = y", []),
    ],
)
def test_changes_of_a_line_by_hand(line: str, changed: list[str]) -> None:
    source = f"def f(x: 1, y, z):\n    {line}\n"
    assert [mutant.after for mutant in mutants.mutants(source)] == changed


def test_a_mutant_is_one_change_and_is_found_again_when_the_line_moves() -> None:
    source = "def f(x):\n    # more than one \u00e9\n    return (x +  # sum\n            1)\n"
    plus, one = mutants.mutants(source)
    assert plus.of(source.encode()).decode() == source.replace("x +", "x -") and plus.line == 3
    assert one.of(source.encode()).decode() == source.replace("1)", "2)") and one.where == "f"
    moved = mutants.mutants(f"import os\n{source}")
    assert [m.key for m in moved] == [plus.key, one.key] and moved[0].line == 4
    twice = mutants.mutants("x = 1\nx = 1\n")
    assert [m.nth for m in twice] == [0, 1] and twice[0].key != twice[1].key


def test_the_table_comes_back_as_it_was(tmp_path: Path) -> None:
    line = dict.fromkeys(mutants.COLUMNS, 'a, "b"') | {"line": "10"}
    mutants.write_table([line, line | {"line": "9"}], tmp_path / "table.csv")
    assert mutants.read_table(tmp_path / "table.csv") == [line | {"line": "9"}, line]
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_reason_that_is_written_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    lived = dict.fromkeys(mutants.COLUMNS, "x") | {"line": "1", "verdict": "survived", "why": ""}
    mutants.write_table([lived | {"why": "by hand"}, lived | {"module": "y"}], path)
    mutants.keep(lived | {"line": "2"}, path)
    found = {line["module"]: (line["line"], line["why"]) for line in mutants.read_table(path)}
    assert found == {"x": ("2", "by hand"), "y": ("1", "")}
    mutants.keep(lived | {"verdict": "killed", "why": "test_x.py::test_it"}, path)
    assert mutants.read_table(path)[0]["why"] == "test_x.py::test_it"


def test_every_survivor_has_a_reason_and_every_module_its_tests() -> None:
    table = mutants.read_table()
    lived = [line for line in table if line["verdict"] == "survived"]
    assert table and [line for line in lived if not line["why"]] == []
    assert {line["module"] for line in table} == set(mutants.chosen_modules())
    for module in mutants.chosen_modules():
        assert (ROOT / module).is_file() and mutants.tests_of(module)


@pytest.mark.slow
def test_every_mutant_was_run() -> None:
    """A line that is new or changed was not asked about: its module's mutants take a minute."""
    run = {(line["module"], *mutants.key_of(line)) for line in mutants.read_table()}
    here = {
        (module, *mutant.key)
        for module in mutants.chosen_modules()
        for mutant in mutants.mutants((ROOT / module).read_text(encoding="utf-8"))
    }
    changed = sorted({module for module, *_ in here ^ run})
    assert not changed, f"run make mutants MODULES='{' '.join(changed)}', and look at what survives"
