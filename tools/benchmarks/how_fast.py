"""The five lines *How fast* of the README beside this file, written from the table of rivals.

python tools/benchmarks/how_fast.py     from outputs/reference/benchmarks/rivals.csv
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd

from lib.core.files import write_atomic
from lib.core.paths import ROOT

BEGIN, END = "<!-- How fast, from rivals.csv -->", "<!-- end of How fast -->"
REFERENCE = ROOT / "outputs" / "reference" / "benchmarks"
README = Path(__file__).with_name("README.md")
AS_WELL = 1.1  # below this a peer does as well
NOT_YET = "Not measured yet: `make bench PUBLISH=1` fills these lines, on a machine with nothing else to do."


def five_lines(table: pd.DataFrame) -> str:
    """Equal work, equal answer, several methods, share of the limit, what a peer does as well.

    `table` has a line an arm (`rivals.py`); the engine's lines have the ratio against the best peer.
    """
    ours = table[(table["side"] == "engine") & table["ratio"].notna()]
    one = ours[ours["work"] != "several methods"]
    several = ours[ours["work"] == "several methods"]
    work, answer = (one[one["equal"] == equal] for equal in ("work", "answer"))
    rounds, rows = table["rounds"].max(), (ours["rows"].min(), ours["rows"].max())
    gap = work["share_difference"].max()
    level = [row.work for row in work.itertuples() if row.ratio < AS_WELL]
    lines = [
        f"- **The same work** beside the best-batched peer: {_ratios(work)}. No word's share differs by "
        f"more than {gap:.1g}.",
        f"- **The same answer** (a gap of 1 %, an error of .05): {_ratios(answer, by_arm=True)}.",
        f"- **Several methods on the same rows**, beside the best-batched peer of each, one after the "
        f"other: {_ratios(several, by_arm=True)}.",
        "- **Share of the naive limit** (as many plain passes): "
        + ", ".join(f"{row.work} {row.of_limit:.0%}" for row in work.itertuples())
        + ".",
        f"- **A peer does as well** (within a tenth) in {' and '.join(level) or 'nothing measured here'}. "
        f"Fastest of {rounds:.0f} rounds, {rows[0]:.0f} to {rows[1]:.0f} rows; "
        "in brackets the range over the rounds.",
    ]
    return "\n".join(lines)


def _ratios(part: pd.DataFrame, by_arm: bool = False) -> str:
    return ", ".join(
        f"{row.work}{f' ({row.arm})' if by_arm else ''} {row.ratio:.2f} times as fast "
        f"({row.ratio_low:.2f}-{row.ratio_high:.2f})"
        for row in part.itertuples()
    )


def shown() -> str:
    """What stands between the marks: the lines of the published table, or that there is none."""
    path = REFERENCE / "rivals.csv"
    return five_lines(pd.read_csv(path)) if path.is_file() else NOT_YET


def publish(folder: Path) -> None:
    """Copy the tables of a folder to the reference, and write the lines."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for pattern in ("rivals*.csv", "scaling*.csv"):
        for path in sorted(folder.glob(pattern)):
            shutil.copyfile(path, REFERENCE / path.name)
    write()


def write() -> None:
    """Put the lines between the marks of the README."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    write_atomic(README, f"{before}{begin}\n{shown()}\n{end}{after}")


if __name__ == "__main__":
    write()
