"""The suite runs every test once, and says what it took."""

from __future__ import annotations

from pathlib import Path

import pytest
import suite

from lib.core.paths import ROOT


def test_every_test_file_and_notebook_is_in_one_part() -> None:
    given = [ROOT / a for part in suite.parts(light=False) for a in part.arguments]
    for file in (ROOT / "tests").rglob("test_*.py"):
        if "more" not in file.parts and file != ROOT / suite.TABLES:
            assert sum(file.is_relative_to(one) for one in given) == 1, file
    for file in (*(ROOT / "notebooks").rglob("*.ipynb"), *(ROOT / suite.PAGES).rglob("*.ipynb")):
        assert sum(file.is_relative_to(one) for one in given) == 1, file
    assert given.count(ROOT / "lib") == 1


def test_what_takes_more_is_in_one_part() -> None:
    given = [Path(a) for part in suite.parts_more() for a in part.arguments]
    assert all(path.exists() for path in given)
    for file in (ROOT / "tests").rglob("test_*.py"):
        assert sum(file.is_relative_to(one) for one in given) == 1, file


def test_light_parts_hold_the_unit_tests_of_the_full_ones() -> None:
    light = {a for part in suite.parts(light=True) for a in part.arguments}
    full = {a for part in suite.parts(light=False) for a in part.arguments}
    assert light == {a for a in full if not a.startswith(("notebooks", suite.PAGES))}


@pytest.mark.slow
def test_a_part_says_what_it_and_its_children_took(tmp_path: Path) -> None:
    (tmp_path / "test_busy.py").write_text(
        "import subprocess, sys\n\n\ndef test_busy():\n"
        "    busy = 'import time\\nwhile time.process_time() < 1: pass'\n"
        "    subprocess.run([sys.executable, '-c', busy], check=True)\n"
    )
    plain = ["-q", "-p", "conftest", "-p", "no:nbval", "-o", "addopts=", "--rootdir", str(tmp_path)]
    part = suite.Part("busy", [*plain, str(tmp_path)]).run(str(tmp_path / "outputs"))
    assert part.status == 0 and part.count("passed") == 1, part.output
    assert 1 <= part.cpu_seconds < 60 and part.seconds > 0


def test_the_critical_path_ends_with_the_tables() -> None:
    parts = [suite.Part(name, [name], seconds=s) for name, s in (("a", 3.0), ("b", 5.0))]
    tables = suite.Part("tables", [suite.TABLES], seconds=1.0)
    assert [part.name for part in suite.critical_path([*parts, tables])] == ["b", "tables"]
