"""A bar is for whoever watches: without the runner or Lab there is none."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import count

import IPython.display
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


@pytest.mark.parametrize("rows, told", [(range(3), "rows: 1 of 3"), (iter(range(3)), "rows: 1,")])
def test_in_lab_a_bar_stands_below_the_cell_and_goes(
    rows: Iterable[int],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown: list[str] = []

    class Output:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/html"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Output:
        assert not shown, "one output a bar, however often it moves"
        shown.append(data["text/html"])
        return Output()

    ticks = count()  # whoever looks at the clock finds it two seconds later
    monkeypatch.setattr("tqdm.std.time", lambda: 2.0 * next(ticks))
    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setenv("TOUCHSTONE_PROGRESS", "lab")
    assert list(progress(rows, "rows")) == [0, 1, 2]
    assert shown[0].startswith("<progress") and told in shown[0]
    assert shown[-1] == "" and capsys.readouterr().err == ""
