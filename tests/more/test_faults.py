"""The kill campaign in short: four kills of a tiny stage, by the tool that does two hundred."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import faults
import pytest

from lib.core.paths import ROOT

pytestmark = pytest.mark.more


def test_four_kills_are_survived_and_the_table_goes_on(tmp_path: Path) -> None:
    table = tmp_path / "kills.csv"
    where = ["--work", str(tmp_path / "work"), "--table", str(table)]
    which = ["--study", "implicit_bias", "--stage", "01", "--scale", "tiny"]
    done: list[int] = []
    for n in (1, 3):
        run = subprocess.run(
            [sys.executable, "tools/faults.py", str(n), *which, *where],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        rows = faults.read_table(table)
        assert len(rows) == len(done) + n and set(done) <= {int(row["kill"]) for row in rows}
        done = [int(row["kill"]) for row in rows]
    assert "4 of 4 survived" in run.stdout
    assert {row["verdict"] for row in rows} == {"survived"}
    assert not list((tmp_path / "work").glob("kill*")), "a survived one leaves nothing"
