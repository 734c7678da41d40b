"""An aim that is missed is not called met."""

from __future__ import annotations

import pytest
from form import is_met


@pytest.mark.parametrize(
    ("aim", "here", "met"),
    [
        ("<= 14 / 50", "11 / 50", True),
        ("<= 14 / 50", "11 / 58", False),
        ("<= 1800", "900 / 1801", False),
        ("<= 15", "14.9 (34.8 of processor time)", True),
        (">= 2", "1 / 3", False),
        ("3 to 6", "2.9", False),
        ("3 to 6", "3.0", True),
        ("100 % / 100 %", "99.6 % / 100.0 %", False),
        ("<= 2", "not measured", False),
    ],
)
def test_an_aim_is_met_where_every_value_keeps_it(aim: str, here: str, met: bool) -> None:
    assert is_met(aim, here) is met
