"""Measure how far the small studies' numbers move with the arithmetic (tests/arithmetic.csv).

    make arithmetic                              # the notebooks under every setting, then this
    python tools/spread.py REFERENCE FOLDER...   # one folder of outputs for each setting

The reference is the run that all processors can repeat (avx2, see lib/core/arithmetic.py); every
other folder holds the same studies, run with other instructions or another thread count. Only
columns that moved are listed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from compare import EXACT, ROWS, by_key, differences, is_number, key_columns, sizes, tables, width

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "arithmetic.csv"


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


def main(reference: Path, folders: list[Path]) -> None:
    """Write the table, and print how many numbers were equal, moved a little, or moved much."""
    names = tables(reference)
    rows = []
    for name, path in names.items():
        runs = [folder for folder in folders if (folder / name).is_file()]
        others = {folder.name: pd.read_csv(folder / name) for folder in runs}
        rows += moved(name, pd.read_csv(path), others)
    table = pd.DataFrame(rows).sort_values(["table", "column"])
    table["spread"] = table["spread"].map("{:.3g}".format)
    table["width"] = table["width"].map("{:.3g}".format)
    table.to_csv(TABLE, index=False)
    print(f"{len(table)} columns of {table['table'].nunique()} tables (of {len(names)}) moved")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]])
