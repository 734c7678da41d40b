"""Compare two runs table by table: rows by what names them, values with measured tolerances.

How far a number moves when only the arithmetic changes (other instructions, another thread count)
was measured, column by column, and stands in `tests/arithmetic.csv` (`tools/spread.py` writes it).
A column that never moved must agree to 1e-6, text to the letter. A column that moved may differ by
`FACTOR` times the largest move that was seen. Where that is as much as the column holds, it is
compared by form and range alone: it says nothing that another processor would confirm.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

EXACT = 1e-6
FACTOR = 4  # times the largest move among the measured settings
REPEATED = "(repetition)"  # tells rows apart that their keys do not
ROWS = "(rows)"  # which rows a table has, as if it were a column
NOTHING = "(nothing)"  # of a table that was measured, and of which no number moved
NAMED_BY_NUMBERS = ("weight_decay", "rate", "bias_from", "false_positive_rate", "threshold")
SHARES = (0.0, 1.0)
RANGES = dict.fromkeys(
    ("accuracy", "MA", "share", "recall", "roc_auc", "average_precision", "p", "p_holm")
    + ("p_effect", "p_absence", "probability", "auc", "true_positive_rate", "right_first")
    + ("right_sign", "agree", "balanced", "exp", "alt", "all", "macro_F1", "p_F", "p_M", "p_NB"),
    SHARES,
) | dict.fromkeys(("r", "rho", "rank_biserial", "cosine_similarity"), (-1.0, 1.0))


@dataclass(frozen=True)
class Move:
    """How a column moved: the largest difference (text: the share of rows that differ), and the
    width of what it holds.
    """

    spread: float
    width: float
    is_text: bool

    @property
    def tolerance(self) -> float:
        """The difference that is allowed; infinite where form and range alone are compared."""
        if self.is_text or FACTOR * self.spread >= self.width:
            return np.inf
        return FACTOR * self.spread


def tables(folder: Path) -> dict[str, Path]:
    """The CSV files of a run by their path below its folder, kept units left out."""
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.csv"))}
    return {name: path for name, path in paths.items() if "units" not in Path(name).parts}


def key_columns(table: pd.DataFrame) -> list[str]:
    """The columns that name a row: text from the left, then whole numbers, until all rows differ.

    A column joins only if it tells more rows apart; `NAMED_BY_NUMBERS` are named by fractions too.
    """
    text = [column for column in table if not is_number(table[column])]
    whole = [column for column in table if pd.api.types.is_integer_dtype(table[column])]
    named = [column for column in NAMED_BY_NUMBERS if column in table]
    keys: list[str] = []
    distinct = 1
    for column in [*text, *named, *whole]:
        more = len(table[[*keys, column]].drop_duplicates())
        if distinct < len(table) and more > distinct:
            keys, distinct = [*keys, column], more
    return keys


def is_number(column: pd.Series) -> bool:
    """Whether a column holds numbers; true and false are words here."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def by_key(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The table indexed by its keys as text, and by the repetition's number where keys repeat."""
    # an empty key is a key: a group without a name would not be counted
    named = table[keys].astype(str).fillna("") if keys else pd.DataFrame({"": [""] * len(table)})
    named[REPEATED] = named.groupby(list(named)).cumcount()
    return table.set_index(pd.MultiIndex.from_frame(named))


def differences(ours: pd.Series, reference: pd.Series) -> np.ndarray:
    """How far two columns are apart, row by row: numbers by their size, text 0 or 1; nothing
    against something is infinite.
    """
    if not (is_number(ours) and is_number(reference)):
        return (ours.fillna("").astype(str) != reference.fillna("").astype(str)).to_numpy(float)
    left, right = ours.to_numpy(float), reference.to_numpy(float)
    apart = np.where(np.isnan(left) & np.isnan(right), 0.0, np.abs(left - right))
    return np.where(np.isnan(apart), np.inf, np.where(left == right, 0.0, apart))


def sizes(column: pd.Series) -> np.ndarray:
    """The absolute values of a column of numbers; 0 where there is none, and of text."""
    if not is_number(column):
        return np.zeros(len(column))
    return np.nan_to_num(column.abs().to_numpy(float))


def width(reference: pd.Series) -> float:
    """How much a column holds: its range, or the size of its only value; text: 1."""
    if not is_number(reference) or not reference.notna().any():
        return 1.0
    numbers = reference.dropna()
    return float(numbers.max() - numbers.min()) or abs(float(numbers.iloc[0])) or 1.0


def read_moves(path: Path) -> dict[tuple[str, str], Move]:
    """The measured moves by table and column."""
    rows = pd.read_csv(path)
    return {
        (row.table, row.column): Move(row.spread, row.width, row.kind == "text")
        for row in rows.itertuples()
    }


def compare(
    name: str, ours: pd.DataFrame, reference: pd.DataFrame, moves: dict[tuple[str, str], Move]
) -> list[str]:
    """What differs between two tables beyond the arithmetic, a line each (five a column)."""
    if list(ours) != list(reference):
        return [f"{name}: columns {list(ours)} against {list(reference)}"]
    keys = key_columns(reference)
    left, right = by_key(ours, keys), by_key(reference, keys)
    if (name, ROWS) not in moves:
        lines = [f"{name}: row {row} is new" for row in left.index.difference(right.index)[:5]]
        lines += [f"{name}: row {row} is gone" for row in right.index.difference(left.index)[:5]]
        if lines:
            return lines
    elif not len(ours):
        return [f"{name}: no rows against {len(reference)}"]
    shared = right.index.intersection(left.index, sort=False)
    lines = []
    for column in reference:
        if (name, column) in moves and np.isinf(moves[name, column].tolerance):
            lines += _form(name, column, ours[column], reference[column])
            continue
        allowed = moves[name, column].tolerance if (name, column) in moves else EXACT
        a, b = left.loc[shared, column], right.loc[shared, column]
        far = differences(a, b) > allowed + EXACT * sizes(b)
        lines += [
            f"{name}, {_said(row)}, {column}: {a[row]!r} against {b[row]!r} (+-{allowed:.2g})"
            for row in shared[far][:5]
        ]
    return lines


def _form(name: str, column: str, ours: pd.Series, reference: pd.Series) -> list[str]:
    """What is wrong with a column that is compared by form: its kind, and values outside of what
    they can be.
    """
    lines = []
    numbers = pd.to_numeric(ours, errors="coerce")
    was_number = pd.to_numeric(reference, errors="coerce").notna().any()
    if was_number and ours.notna().any() and not numbers.notna().any():
        lines.append(f"{name}, {column}: {ours.iloc[0]!r} is no number")
    low, high = RANGES.get(column, (-np.inf, np.inf))
    outside = numbers[(numbers < low) | (numbers > high)]
    lines += [f"{name}, {column}: {value!r} is outside [{low}, {high}]" for value in outside[:5]]
    return lines


def _said(row: tuple) -> str:
    return " ".join(str(part) for part in row[:-1]) + (f" ({row[-1]})" if row[-1] else "")
