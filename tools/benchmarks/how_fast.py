"""The lines *How fast* of the README beside this file, written from the table of rivals.

python tools/benchmarks/how_fast.py     from outputs/reference/benchmarks/rivals.csv
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd

from lib.core.files import write_atomic
from lib.core.paths import ROOT

BEGIN, END = "<!-- How fast, from rivals.csv -->", "<!-- end of How fast -->"
REFERENCE = ROOT / "outputs" / "reference" / "benchmarks"
README = Path(__file__).with_name("README.md")
AS_WELL = 1.1  # below this a peer does as well
SPREAD = 0.1  # of the rounds of an arm, as a share
# (what is equal, work, precision): how many times as fast as the best-batched peer it should be
AIMS = {
    ("work", "single pass", ""): 1.5,
    ("work", "Integrated Gradients", ""): 1.0,
    ("work", "Kernel SHAP", ""): 1.2,
    ("work", "LIME", ""): 1.8,
    ("answer", "Integrated Gradients", ""): 3.0,
    ("answer", "Integrated Gradients", "bfloat16"): 6.0,
    ("answer", "Kernel SHAP", ""): 3.0,
    ("answer", "LIME", ""): 3.0,
    ("answer", "several methods", ""): 3.0,
}
# of the naive limit: as many plain passes of the model as the method needs
LIMIT_AIMS = {"single pass": 0.85, "Integrated Gradients": 1.1, "Kernel SHAP": 1.1, "LIME": 2.0}
NOT_YET = "Not measured yet: `make bench PUBLISH=1` fills these lines, on a machine with nothing else to do."


def three_sentences(table: pd.DataFrame) -> str:
    """Equal work, equal answer, share of the limit; a peer that is as fast or faster is named.

    `table` has a line an arm (`rivals.py`); the engine's lines have the ratio against the best peer.
    """
    ours = table[(table["side"] == "engine") & table["ratio"].notna()]
    work, answer = (ours[ours["equal"] == equal] for equal in ("work", "answer"))
    single = work[work["work"] != "several methods"]
    sentences = [
        f"- For the same work, the engine is {_ratios(work)}. No word's share of an explanation "
        f"differs by more than {work['share_difference'].max():.1g}.",
        f"- For an equally precise answer, it is {_ratios(answer)}.",
        f"- It reaches {single['of_limit'].min():.0%} to {single['of_limit'].max():.0%} of the "
        "naive limit, which is the speed of as many plain passes of the model.",
    ]
    return "\n".join(sentences)


def _ratios(part: pd.DataFrame) -> str:
    """From the lowest to the highest ratio, and in words what a peer does as well or better."""
    level = part[part["ratio"] < AS_WELL]
    clear = part.drop(level.index)["ratio"]
    told = []
    for row in level.itertuples():
        name = f"{row.work} in bfloat16" if "bfloat16" in row.arm else row.work
        is_faster = row.ratio < 1 / AS_WELL
        how = f"is {1 / row.ratio:.1f} times as fast as the engine" if is_faster else "is as fast"
        told.append(f"{name}, where the peer {how}")
    parts = []
    if len(clear):
        parts.append(f"{clear.min():.2f} to {clear.max():.2f} times as fast as the fastest peer")
    if told:
        parts.append(("except " if parts else "not faster in ") + " and ".join(told))
    return ", ".join(parts) or "not measured"


def aims(table: pd.DataFrame) -> str:
    """Each aim beside what was measured and, where it is missed, how near the peer is to the limit.

    The naive limit bounds what batching can gain: beyond it, passes have to be saved.
    """
    ours = table[(table["side"] == "engine") & table["ratio"].notna()]
    is_half = ours["arm"].str.contains("bfloat16")
    lines = [
        "| equal | what | aim | measured (range) | of the limit: engine, peer | |",
        "|---|---|---|---|---|---|",
    ]
    for (equal, work, precision), aim in AIMS.items():
        chosen = (ours["equal"] == equal) & (ours["work"] == work)
        for row in ours[chosen & (is_half == bool(precision))].itertuples():
            peer = row.of_limit / row.ratio
            name = f"{work}{', ' if precision else ''}{precision}"
            lines.append(
                f"| {equal} | {name} | {aim:g} | {row.ratio:.2f} ({row.ratio_low:.2f}-{row.ratio_high:.2f}) "
                f"| {row.of_limit:.0%}, {peer:.0%} | {_reason(row, aim, peer, precision)} |"
            )
    for row in ours[ours["equal"] == "work"].itertuples():
        if row.work in LIMIT_AIMS:
            aim, is_met = LIMIT_AIMS[row.work], row.of_limit >= LIMIT_AIMS[row.work]
            lines.append(
                f"| share of the limit | {row.work} | {aim:.0%} | {row.of_limit:.0%} | "
                f"| {'met' if is_met else 'missed'} |"
            )
    spreads = table["spread"].dropna()
    lines += [
        "",
        f"Each arm ran {table['rounds'].max():.0f} times, on {ours['rows'].min():.0f} to "
        f"{ours['rows'].max():.0f} rows; the fastest round counts, and brackets hold the range. "
        f"The slowest round of an arm took {spreads.median():.0%} longer than its fastest (median of "
        f"{len(spreads)} arms, at most {spreads.max():.0%}); in {int((spreads < SPREAD).sum())} arms "
        f"it took less than {SPREAD * 100:.0f} % longer.",
    ]
    return "\n".join(lines)


def _reason(row: Any, aim: float, peer: float, precision: str) -> str:
    if row.ratio >= aim:
        return "met"
    if precision and row.bfloat16_gain < 1:
        return (
            f"missed: a matrix product in bfloat16 runs at {row.bfloat16_gain:.2f} of the speed of "
            "float32 on this processor, which has no instructions for it"
        )
    return f"missed: {aim:g} would be {aim * peer:.0%} of the limit, for the peer is at {peer:.0%}"


def shown() -> str:
    """What stands between the marks: the published table in words, or that there is none."""
    path = REFERENCE / "rivals.csv"
    if not path.is_file():
        return NOT_YET
    table = pd.read_csv(path)
    return f"{three_sentences(table)}\n\n{aims(table)}"


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
