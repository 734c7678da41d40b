"""Somebody's own code by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.core.errors import TouchstoneError
from lib.core.named import function_named, object_named


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "good_module.py").write_text("ONE = 1\ndef f():\n    return 2\n")
    (tmp_path / "half_module.py").write_text("def f(:\n")
    (tmp_path / "odd_module.py").write_text("from good_module import nothing_there\n")
    (tmp_path / "needy_module.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("good", "half", "odd", "needy"):
        sys.modules.pop(f"{name}_module", None)


def test_what_a_name_stands_for() -> None:
    assert object_named("good_module:ONE", "head") == 1
    assert function_named("good_module:f", "head")() == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("good_module", "is no name of a function; write module:function"),
        (":f", "is no name of a function"),
        ("good_module:", "is no name of a function"),
        ("good_module:g", "good_module has no 'g'; correct the name"),
        ("good_module:ONE", "is int, not a function"),
        ("no_such_module:f", "No module named 'no_such_module'; put the module's folder"),
        ("needy_module:f", "No module named 'no_such_module'"),
        ("half_module:f", "importing half_module failed"),
        ("odd_module:f", "importing odd_module failed .*nothing_there.*correct the module"),
    ],
)
def test_names_that_lead_nowhere(name: str, said: str) -> None:
    with pytest.raises(TouchstoneError, match=f"head '{name}'.*{said}"):
        function_named(name, "head")
