"""Whether bfloat16 is safe: what becomes of the scores and of mass accuracy with it.

    python tools/benchmarks/bfloat16.py --full --models outputs/geco/cpu    two minutes

The methods whose passes the engine can make in bfloat16, with the settings of the speed lines, on
the same rows and draws in both precisions. Safe means: no word's share moves by more than .01, no
method's mean mass accuracy by more than .002. Writes bfloat16.csv.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from attribution import KERNEL, LIME, PANELS, Asked, disagreement, load_model, low, parse

from lib.attribution import explain_many
from lib.core.files import save_csv
from lib.core.paths import outputs_root
from lib.core.seeds import set_up
from lib.metrics.mass_accuracy import mass_accuracy
from lib.models.text_model import TextModel

ASKED: Asked = {**PANELS, **KERNEL, **LIME}
ROWS = {"quick": 30, "full": 120}
SHARE, MASS = 0.01, 0.002  # the most that a word's share and a mean mass accuracy may move


def compare(model: TextModel, rows: pd.DataFrame) -> pd.DataFrame:
    """One line a method: mean mass accuracy in both precisions, the largest change of a row's and
    of a word's share, and whether it is safe.
    """
    plain, short = (explain_many(model, rows, list(asked.items())) for asked in (ASKED, low(ASKED)))
    lines = []
    for method in ASKED:
        one, two = (found[found["method"] == method] for found in (plain, short))
        mass = [
            np.array(
                [
                    mass_accuracy(scores, truth)
                    for scores, truth in zip(found["scores"], rows["ground_truth"], strict=True)
                ]
            )
            for found in (one, two)
        ]
        shares = np.array(
            [
                disagreement({method: [a]}, pd.DataFrame({"method": [method], "scores": [b]}))[1]
                for a, b in zip(one["scores"], two["scores"], strict=True)
            ]
        )
        moved = abs(np.nanmean(mass[1]) - np.nanmean(mass[0]))
        lines.append(
            {
                "method": method,
                "rows": len(rows),
                "mass_float32": np.nanmean(mass[0]),
                "mass_bfloat16": np.nanmean(mass[1]),
                "moved": moved,
                "largest_of_a_row": np.nanmax(np.abs(mass[1] - mass[0])),
                "share_difference": shares.max(),
                "rows_beyond": int((shares > SHARE).sum()),
                "safe": bool(moved <= MASS and shares.max() <= SHARE),
            }
        )
    return pd.DataFrame(lines)


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Measure, write the table and return it."""
    options = parse(arguments)
    set_up(0, n_threads=1)
    model, rows = load_model(options)
    table = compare(model, rows.iloc[: options.rows or ROWS[options.scale]]).assign(
        scheme=options.scheme, scale=options.scale
    )
    save_csv(table, outputs_root() / "benchmarks" / options.scale / "bfloat16.csv")
    print(table.round(4).to_string(index=False))
    return table


if __name__ == "__main__":
    main()
