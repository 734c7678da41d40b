"""Print the README's table of mass accuracies from outputs/reference (a test compares the two).

python tools/readme_table.py geco small
"""

from __future__ import annotations

import sys

import pandas as pd

from lib.core.paths import reference_dir

FLOORS = ["Uniform random", "Pattern Variant", "First pronoun", "Pronoun list"]


def readme_table(study: str, scale: str) -> str:
    """Mass accuracy by method and scheme as a Markdown table, D_A / D_S; floors see no model and
    have their own column.
    """
    figure = pd.read_csv(reference_dir(study, scale) / "05_figures" / "figure_2b.csv")
    schemes = [name for name in figure["scheme"].unique() if name != "-"]
    mass = figure.set_index(["method", "scheme", "dataset"])["MA"]
    lines = [["method", "no model", *schemes], ["---"] * (len(schemes) + 2)]
    for method in figure["method"].unique():
        is_floor = method in FLOORS
        values = [
            " / ".join(f"{mass[method, scheme, data]:.2f}".lstrip("0") for data in ("D_A", "D_S"))
            for scheme in (["-"] if is_floor else schemes)
        ]
        lines.append(
            [f"*{method}*", *values, *[""] * len(schemes)] if is_floor else [method, "", *values]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    print(readme_table(*sys.argv[1:3]))
