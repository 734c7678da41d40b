"""A bar is for the terminal: without the runner there is none."""

from __future__ import annotations

import time

import pytest

from lib.core.progress import progress


@pytest.mark.parametrize("setting, bar", [("", False), ("0", False), ("60", False), ("0.01", True)])
def test_a_bar_only_where_it_is_asked_for(
    setting: str, bar: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOUCHSTONE_PROGRESS", setting)
    seen = []
    for item in progress(range(3), "rows"):
        time.sleep(0.02)
        seen.append(item)
    written = capsys.readouterr()
    assert seen == [0, 1, 2] and written.out == "" and ("rows" in written.err) == bar
