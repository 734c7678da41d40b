"""The report card and the board in a real browser: read with the keyboard, sorted, in contrast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from chromium import Browser

from lib.doors.board import save_board
from lib.doors.card import save_card

pytestmark = pytest.mark.more
LOADED = "performance.getEntriesByType('resource').length"


def test_a_card_is_read_with_the_keyboard_alone(
    browser: Browser, tmp_path: Path, card: dict[str, Any]
) -> None:
    browser.go(save_card(card, tmp_path).as_uri())
    browser.wait("document.readyState === 'complete'")
    for _ in ("the table, to scroll", "its first truth"):
        browser.press("Tab")
    browser.press("Enter")
    assert browser.run("document.querySelector('details').open"), "what the truth asks unfolds"
    for _ in range(len(card["truths"])):
        browser.press("Tab")
    assert browser.run("document.activeElement.textContent") == "She"
    assert browser.run("document.activeElement.title") == "2"
    assert browser.run(LOADED) == 0
    assert browser.contrast("h1, h2, h3, p, caption, th, td, summary, .note, .words span") >= 4.5


def test_a_card_fits_a_narrow_screen(
    browser: Browser, tmp_path: Path, card: dict[str, Any]
) -> None:
    browser.go(save_card(card, tmp_path).as_uri(), width=400, height=800)
    browser.wait("document.readyState === 'complete'")
    assert browser.run("document.documentElement.scrollWidth") <= 400


def test_the_board_is_sorted_by_a_heading(
    browser: Browser, tmp_path: Path, board_table: pd.DataFrame
) -> None:
    browser.go(save_board(board_table, tmp_path, "Scale small.").as_uri())
    browser.wait("document.readyState === 'complete'")
    order = "[...document.querySelectorAll('tbody th')].map(head => head.firstChild.data.trim())"
    assert browser.run(order) == ["LIME", "Even", "mine"]
    browser.click("document.querySelectorAll('thead button')[2]")
    assert browser.run(order) == ["mine", "LIME", "Even"]
    assert browser.run("document.querySelectorAll('th')[2].ariaSort") == "descending"
    browser.press("Enter")
    assert browser.run(order) == ["Even", "LIME", "mine"], "a second time: the other way round"
    browser.click("document.querySelectorAll('thead button')[0]")
    assert browser.run(order) == ["Even", "LIME", "mine"], "names from A on"
    assert browser.run(LOADED) == 0
    assert browser.contrast("h1, p, caption, th, td, button, small") >= 4.5
