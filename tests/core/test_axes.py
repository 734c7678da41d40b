"""The signatures of lib speak of tensor axes in the words of the closed list."""

from __future__ import annotations

import re

from lib.core.axes import AXES
from lib.core.paths import ROOT

ANNOTATION = re.compile(
    r"\b(?:Float|Int|Bool|Integer|Num|Shaped|UInt)\[[\w.]+, *[\"']([^\"']*)[\"']\]"
)


def test_axes_are_from_the_closed_list() -> None:
    unknown = {}
    for path in sorted((ROOT / "lib").rglob("*.py")):
        words = {
            word.lstrip("*#?")
            for axes in ANNOTATION.findall(path.read_text())
            for word in axes.split()
        }
        unknown[path.name] = {
            word for word in words - set(AXES) if not word.isdecimal() and word != "..."
        }
    assert not {name: words for name, words in unknown.items() if words}
    assert ANNOTATION.findall('x: Float[Tensor, "batch words"]') == ["batch words"]
