"""Measure how far the small studies' numbers move with the arithmetic (tests/arithmetic.csv).

    make arithmetic                              # the notebooks under every setting, then this
    python tools/spread.py REFERENCE FOLDER...   # one folder of outputs for each setting
    python tools/spread.py --add FOLDER          # what make test wrote on another kind of processor

The reference is the run that all processors can repeat (avx2, see lib/core/arithmetic.py); every
other folder holds the same studies, run with other instructions or another thread count. Columns
that moved are listed, and *(nothing)* of a table that was measured and did not move: a table that
is not listed was never measured.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from compare import (
    EXACT,
    NOTHING,
    ROWS,
    by_key,
    differences,
    is_number,
    key_columns,
    sizes,
    tables,
    width,
)

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "arithmetic.csv"
COLUMNS = ["table", "column", "kind", "spread", "width", "settings"]


def moved(name: str, reference: pd.DataFrame, others: dict[str, pd.DataFrame]) -> list[dict]:
    """A row for each column that moved in any setting, with the settings that moved it."""
    keys = key_columns(reference)
    right = by_key(reference, keys)
    lines: dict[str, dict] = {}

    def note(column: str, kind: str, spread: float, setting: str) -> None:
        line = lines.setdefault(
            column,
            {"table": name, "column": column, "kind": kind, "spread": 0.0}
            | {"width": 1.0 if column == ROWS else width(reference[column]), "settings": []},
        )
        line["kind"] = "text" if "text" in (kind, line["kind"]) else kind
        line["spread"] = max(line["spread"], spread)
        line["settings"].append(setting)

    for setting, table in others.items():
        left = by_key(table, keys)
        if apart := len(left.index.symmetric_difference(right.index)):
            note(ROWS, "text", apart / len(right), setting)
        shared = right.index.intersection(left.index, sort=False)
        for column in reference:
            a, b = left.loc[shared, column], right.loc[shared, column]
            far = differences(a, b)
            is_text = not is_number(b) or np.isinf(far).any()
            size = float(np.mean(far > 0)) if is_text else float(far.max(initial=0.0))
            if (far > EXACT * (1 + (0 if is_text else sizes(b)))).any():
                note(column, "text" if is_text else "number", size, setting)
    return [line | {"settings": " ".join(line["settings"])} for line in lines.values()]


def measured(reference: Path, folders: list[Path]) -> list[dict]:
    """What moved in any of these folders, one row a column of a table; one row where none did."""
    rows = []
    for name, path in tables(reference).items():
        if "small" not in name.split("/")[:2] and not name.startswith("start_here/"):
            continue  # a suite only draws from the tables of larger scales
        runs = [folder for folder in folders if (folder / name).is_file()]
        others = {folder.name: pd.read_csv(folder / name) for folder in runs}
        still = {"table": name, "column": NOTHING, "kind": "number", "spread": 0.0, "width": 1.0}
        still["settings"] = " ".join(others)
        rows += moved(name, pd.read_csv(path), others) or ([still] if others else [])
    return rows


def joined(known: pd.DataFrame, rows: list[dict]) -> list[dict]:
    """The known moves with the new ones: of each column the larger, and the settings of both.

    >>> known = pd.DataFrame([["t", "x", "number", 0.1, 1.0, "native"]], columns=COLUMNS)
    >>> new = dict(zip(COLUMNS, ["t", "x", "number", 0.3, 1.0, "AMD"], strict=True))
    >>> joined(known, [new])[0]["spread"], joined(known, [new])[0]["settings"]
    (0.3, 'native AMD')
    >>> still = {**new, "column": NOTHING, "spread": 0.0}
    >>> [row["column"] for row in joined(known, [still])]  # it did move once
    ['x']
    """
    lines = {(row["table"], row["column"]): row for row in known.to_dict("records")}
    for row in rows:
        before = lines.get((row["table"], row["column"]), row)
        is_text = "text" in (before["kind"], row["kind"])
        settings = dict.fromkeys(f"{before['settings']} {row['settings']}".split())
        lines[row["table"], row["column"]] = row | {
            "kind": "text" if is_text else "number",
            "spread": max(before["spread"], row["spread"]),
            "settings": " ".join(settings),
        }
    has_moved = {table for table, column in lines if column != NOTHING}
    return [
        row for row in lines.values() if row["column"] != NOTHING or row["table"] not in has_moved
    ]


def save(rows: list[dict]) -> None:
    """Write the table, sorted."""
    table = pd.DataFrame(rows, columns=COLUMNS).sort_values(["table", "column"])
    for column in ("spread", "width"):
        table[column] = [f"{float(value):.3g}" for value in table[column]]
    table.to_csv(TABLE, index=False)
    n = int((table["column"] != NOTHING).sum())
    print(f"{n} columns moved; {table['table'].nunique()} tables were measured")


if __name__ == "__main__":
    if sys.argv[1] == "--add":
        new = measured(ROOT / "outputs" / "reference", [Path(sys.argv[2])])
        save(joined(pd.read_csv(TABLE), new))
    else:
        save(measured(Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]]))
