"""What a notebook shows of lib is the source itself, short enough to be read."""

from __future__ import annotations

import pytest
from IPython.display import Markdown

from lib.core import show
from lib.core.errors import TouchstoneError


def shown(fn: object, monkeypatch: pytest.MonkeyPatch) -> str:
    seen: list[Markdown] = []
    monkeypatch.setattr(show, "display", seen.append)
    show.show_source(fn)
    return seen[0].data


def test_the_source_is_shown_without_its_indentation(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(x: int) -> int:
        return 2 * x

    assert shown(twice, monkeypatch) == (
        f"```python\n# {__name__}\ndef twice(x: int) -> int:\n    return 2 * x\n```"
    )


def test_a_function_that_nobody_would_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import inspect

    monkeypatch.setattr(inspect, "getsource", lambda fn: "\n".join(["x = 1"] * 41))
    with pytest.raises(TouchstoneError, match="has 41 lines"):
        show.show_source(shown)
