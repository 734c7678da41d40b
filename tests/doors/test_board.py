"""The board: what its page shows, and that it sorts in a browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.doors.board import render_board, save_board

ABOUT = "Scale small, seed 0."


def test_the_csv_holds_the_table_and_the_page_every_cell(
    board_table: pd.DataFrame, tmp_path: Path
) -> None:
    page = save_board(board_table, tmp_path, ABOUT).read_text(encoding="utf-8")
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "board.csv", keep_default_na=False), board_table
    )
    assert ABOUT in page and "A &amp; B" in page and "mine:f" in page
    assert "(0.50)" in page and "0.60 to 0.80" in page
    assert page.count("&ndash;") == 2, "Even and mine have no value under edit"
    assert page.count('class="floor"') == 1


def test_what_has_no_value_is_empty_and_not_a_number(board_table: pd.DataFrame) -> None:
    board_table.loc[0, ["value", "low", "high"]] = np.nan
    page = render_board(board_table, ABOUT)
    assert "nan" not in page.lower() and page.count("&ndash;") == 3


def test_a_rule_above_the_chosen_one_is_named_with_its_value(board_table: pd.DataFrame) -> None:
    assert "turned out stronger" not in render_board(board_table, ABOUT)
    rule = board_table.query("role == 'floor'")
    more = [
        rule.assign(explainer=name, value=v) for name, v in (("Rare words", 0.2), ("Last", 0.3))
    ]
    page = render_board(pd.concat([board_table, *more]), ABOUT)
    assert "turned out stronger under mask (Last, 0.30)." in page


def test_two_cells_of_one_explainer_are_refused(board_table: pd.DataFrame) -> None:
    table = pd.concat([board_table, board_table.tail(1)])
    with pytest.raises(TouchstoneError, match="A & B's mine has two cells under mask"):
        render_board(table, ABOUT)


def test_a_missing_column_is_named(board_table: pd.DataFrame) -> None:
    with pytest.raises(TouchstoneError, match="no column 'low'"):
        render_board(board_table.drop(columns="low"), ABOUT)
