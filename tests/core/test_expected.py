"""What a run is expected to take here, from what it took where it was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.core import expected
from lib.core.expected import TIMES, expected_minutes, measured_gflops


def test_a_slower_processor_takes_longer_and_an_untimed_run_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "times.csv"
    table.write_text("what,cpu_seconds,gflops\ngeco small,600,50\n")
    monkeypatch.setattr(expected, "measured_gflops", lambda: 25.0)
    assert expected_minutes("geco small", table) == pytest.approx(20)
    assert expected_minutes("geco paper", table) is None


def test_the_committed_times_name_the_commands() -> None:
    for what in ("check", "test", "demo"):
        assert 0.1 < expected_minutes(what, TIMES) < 600


def test_the_speed_is_that_of_some_processor() -> None:
    assert 0.1 < measured_gflops(0.01) < 10_000
