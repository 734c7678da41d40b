"""A bar is for the terminal: without the runner there is none."""

from __future__ import annotations

import pytest

from lib.progress import progress


@pytest.mark.parametrize("setting", ["", "0", "1"])
def test_a_bar_only_where_it_is_asked_for(setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TOUCHSTONE_PROGRESS", setting)
    assert list(progress(range(3), "rows")) == [0, 1, 2]
    seen = capsys.readouterr()
    assert seen.out == "" and ("rows" in seen.err) == (setting == "1")
