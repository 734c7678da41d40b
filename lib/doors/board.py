"""The board: all explainers under all truths, as a CSV and as a page that sorts itself."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment

from ..core.errors import TouchstoneError
from ..core.files import save_csv, write_atomic

COLUMNS = (
    "explainer",
    "author",
    "settings",
    "code",
    "role",
    "truth",
    "value",
    "low",
    "high",
    "by_identity",
    "remarks",
)
_ROUNDING = 1e-9  # by which two scores are one
_ENVIRONMENT = Environment(autoescape=True, trim_blocks=True, keep_trailing_newline=True)


def save_board(table: pd.DataFrame, folder: Path, about: str) -> Path:
    """Write `board.csv` and `board.html`; returns the page's path.

    Args:
        table: a line for each explainer and truth, the columns of `COLUMNS`; role is "explainer",
            "floor" or "submission".
        folder: where they go.
        about: which run this is, in one sentence.
    """
    page = render_board(table, about)
    save_csv(table[list(COLUMNS)], folder / "board.csv")
    write_atomic(folder / "board.html", page)
    return folder / "board.html"


def render_board(table: pd.DataFrame, about: str) -> str:
    """The page of a board: one self-contained HTML document whose columns sort.

    Raises:
        TouchstoneError: a column is missing, or an explainer has two cells under a truth.
    """
    if missing := [name for name in COLUMNS if name not in table]:
        raise TouchstoneError(f"the board's table has no column {missing[0]!r}; add it")
    twice = table[table.duplicated(["explainer", "author", "truth"])]
    if not twice.empty:
        row = twice.iloc[0]
        raise TouchstoneError(
            f"{row['author']}'s {row['explainer']} has two cells under {row['truth']}; hand it in "
            "under another name"
        )
    truths = list(dict.fromkeys(table["truth"]))
    by_entry = table.groupby(["role", "explainer", "author"], sort=False)
    rows = [_row(part, truths) for _, part in by_entry]
    page = (files(__package__) / "board_page.html").read_text(encoding="utf-8")
    told = {"rows": rows, "truths": truths, "about": about, "stronger": _stronger(table)}
    return _ENVIRONMENT.from_string(page).render(told)


def _stronger(table: pd.DataFrame) -> list[str]:
    """The truths under which a rule is above the one that is 0, each with the strongest."""
    rules = table[(table["role"] == "floor") & (table["value"] > _ROUNDING)]
    best = rules.sort_values("value", ascending=False).drop_duplicates("truth").sort_index()
    return [f"{row.truth} ({row.explainer}, {row.value:.2f})" for row in best.itertuples()]


def _row(part: pd.DataFrame, truths: Sequence[str]) -> dict[str, Any]:
    about = part.iloc[0][["explainer", "author", "settings", "code", "role", "remarks"]].to_dict()
    cells = part.set_index("truth")[["value", "low", "high", "by_identity"]].reindex(truths)
    numbers = cells.astype(object).where(cells.notna(), None).to_dict("index")
    return about | {"cells": numbers}
