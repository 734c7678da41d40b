"""The lines *How fast* of the README beside this file, written from the tables of rivals.

python tools/benchmarks/how_fast.py     from rivals.csv and scaling_*.csv in outputs/reference/benchmarks
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
FEW = 4  # rows
PEER = "best-batched peer"  # in the tables of scaling
SPREAD = 0.1  # from the lower to the upper end of a ratio's interval, as a share
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
# (what is equal, work): the column that says how precise an answer is, its bound, and its name
PRECISE = {
    ("answer", "Integrated Gradients"): ("largest_gap", 0.01, "completeness gap"),
    ("answer", "several methods"): ("largest_gap", 0.01, "completeness gap"),
    ("answer", "Kernel SHAP"): ("error", 0.05, "jackknife error"),
    ("answer", "LIME"): ("error", 0.05, "jackknife error"),
}
# What the same work leaves out, and with it why its share of the limit ends where it does.
LEFT_OUT = {
    "LIME": "the same work leaves out only words that are taken out and texts drawn twice",
    "Kernel SHAP": "the same work leaves out only coalitions drawn twice and two thirds of the last layer",
    "": "the same work leaves out only two thirds of the last of six layers (112% at best)",
}
OWN_TERMS = "own terms"  # other baselines, draws and sums
NOT_YET = "Not measured yet: `make bench PUBLISH=1` fills these lines, on a machine with nothing else to do."


def three_sentences(table: pd.DataFrame) -> str:
    """Equal work, equal answer, share of the limit; a peer that is as fast or faster is named.

    `table` has a line an arm (`rivals.py`); the engine's lines have the ratio against the best peer.
    """
    ours = table[(table["side"] == "engine") & table["ratio"].notna()]
    work, answer = (ours[ours["equal"] == equal] for equal in ("work", "answer"))
    answer = answer[[not _less_precise(row) for row in answer.itertuples()]]
    sentences = [
        f"- For the same work, the engine is {_ratios(work)}. No word's share of an explanation "
        f"differs by more than {work['share_difference'].max():.1g}.",
        f"- For an equally precise answer, it is {_ratios(answer)}.",
        f"- With the same work it reaches {work['of_limit'].min():.0%} to "
        f"{work['of_limit'].max():.0%} of the naive limit, which is the speed of as many plain "
        "passes of the model.",
    ]
    return "\n".join(sentences)


def _ratios(part: pd.DataFrame) -> str:
    """From the lowest to the highest ratio, and in words what a peer does as well or better."""
    level = part[part["ratio"] < AS_WELL]
    clear = part.drop(level.index)["ratio"]
    named: dict[str, list[str]] = {}
    for row in level.itertuples():
        name = f"{row.work} in bfloat16" if "bfloat16" in row.arm else row.work
        is_faster = row.ratio < 1 / AS_WELL
        how = f"is {1 / row.ratio:.1f} times as fast as the engine" if is_faster else "is as fast"
        named.setdefault(how, []).append(name)
    told = [f"{' and '.join(names)}, where the peer {how}" for how, names in named.items()]
    parts = []
    if len(clear):
        parts.append(f"{clear.min():.2f} to {clear.max():.2f} times as fast as the fastest peer")
    if told:
        parts.append(("except " if parts else "not faster in ") + " and ".join(told))
    return ", ".join(parts) or "not measured"


def aims(table: pd.DataFrame) -> str:
    """Each aim beside what was measured and, where it is missed, the measured reason: how near the
    peer is to the limit, and what would be left if all but the matrix products were free.

    The naive limit bounds what batching can gain: beyond it, passes have to be saved.
    """
    ours = table[(table["side"] == "engine") & table["ratio"].notna()]
    is_half = ours["arm"].str.contains("bfloat16")
    lines = [
        "| equal | what | aim | measured [95 % interval] | single rounds | of the limit: engine, peer | is the aim met? |",
        "|---|---|---|---|---|---|---|",
    ]
    for (equal, work, precision), aim in AIMS.items():
        chosen = (ours["equal"] == equal) & (ours["work"] == work)
        for row in ours[chosen & (is_half == bool(precision))].itertuples():
            whole = next(ours[chosen & ~is_half].itertuples(), None)
            name = f"{work}{', ' if precision else ''}{precision}"
            lines.append(
                f"| {equal} | {name} | {aim:g} | {_measured(row)} "
                f"| {_verdict(row, aim, precision, whole)} |"
            )
    lines += [*_without_aim(table), *_shares(ours)]
    return "\n".join([*lines, "", how_many(table)])


def _measured(row: Any) -> str:
    """Three cells: the ratio with its interval, the range of the rounds, both shares of the limit.

    A table of before races has the ratio of the fastest rounds, and only the range.
    """
    shares = f"{row.of_limit:.0%}, {row.of_limit / row.ratio:.0%}"
    if not hasattr(row, "ratio_min"):
        return f"{row.ratio:.2f} | {row.ratio_low:.2f}-{row.ratio_high:.2f} | {shares}"
    interval = f" [{row.ratio_low:.2f}, {row.ratio_high:.2f}]" if pd.notna(row.ratio_low) else ""
    return f"{row.ratio:.2f}{interval} | {row.ratio_min:.2f}-{row.ratio_max:.2f} | {shares}"


def how_many(table: pd.DataFrame) -> str:
    """How many rounds and rows, how wide the intervals are, and how far single rounds differ."""
    ours = table[(table["side"] == "engine") & table["ratio"].notna()]
    spreads, rows = (
        table["spread"].dropna(),
        f"{ours['rows'].min():.0f} to {ours['rows'].max():.0f}",
    )
    rounds = (
        f"Of single rounds, the slowest of an arm took {spreads.median():.0%} longer than its "
        f"fastest (median of {len(spreads)} arms, at most {spreads.max():.0%})"
    )
    if "ratio_min" not in ours:
        few = int((spreads < SPREAD).sum())
        return (
            f"Each arm ran {table['rounds'].max():.0f} times, on {rows} rows. These are ratios of "
            "the fastest rounds; `make bench` measures their intervals now, which this run did "
            f"not. {rounds}; in {few} arms it took less than {SPREAD:.0%} longer."
        )
    widths = (ours["ratio_high"] / ours["ratio_low"] - 1).dropna()
    return (
        f"Each ratio is the median of {ours['rounds'].min():.0f} to {ours['rounds'].max():.0f} "
        f"rounds, on {rows} rows. The upper end of its interval lies {widths.median():.0%} above "
        f"the lower (median of {len(widths)} ratios, at most {widths.max():.0%}); in "
        f"{int((widths < SPREAD).sum())} of them it is less than {SPREAD:.0%}. {rounds}."
    )


def _without_aim(table: pd.DataFrame) -> list[str]:
    """What no aim was set for: the same work, and peers on terms of their own."""
    named = {work for equal, work, _ in AIMS if equal == "work"}
    engine = table[table["side"] == "engine"]
    same = engine[(engine["equal"] == "work") & engine["ratio"].notna()]
    lines = [
        f"| work | {row.work} | none | {_measured(row)} | |"
        for row in same.itertuples()
        if row.work not in named
    ]
    alone = table[(table["equal"] == OWN_TERMS) & (table["side"] == "peer") & table["ms"].notna()]
    for row in alone.itertuples():
        ours = engine[(engine["work"] == row.work) & engine["equal"].isin(["work", OWN_TERMS])]
        name = f"{row.work}, {row.arm.partition(',')[0]}"
        ratio = row.ms / ours["ms"].iloc[0]
        lines.append(f"| nothing | {name} on its own terms | none | {ratio:.2f} | | | |")
    return lines


def _shares(ours: pd.DataFrame) -> list[str]:
    """The share of the limit beside its aim, with its interval and the range of the rounds."""
    lines = []
    for row in ours[(ours["equal"] == "work") & ours["work"].isin(LIMIT_AIMS)].itertuples():
        aim = LIMIT_AIMS[row.work]
        low, high = getattr(row, "limit_low", None), getattr(row, "limit_high", None)
        interval = f" [{low:.0%}, {high:.0%}]" if pd.notna(low) else ""
        # A table of before races has the fastest round beside the slowest.
        least = getattr(row, "limit_min", row.of_limit / (1 + row.spread))
        most = getattr(row, "limit_max", row.of_limit)
        if row.of_limit < aim:
            said = _short_of_the_limit(row, aim)
        else:
            said = "met; the interval reaches below the aim" if interval and low < aim else "met"
        lines.append(
            f"| share of the limit | {row.work} | {aim:.0%} | {row.of_limit:.0%}{interval} "
            f"| {least:.0%}-{most:.0%} | | {said} |"
        )
    return lines


def _short_of_the_limit(row: Any, aim: float) -> str:
    """Why a share of the limit is missed: what there is to leave out, and what a peer reaches."""
    told = [f"missed by {_percent(1 - row.of_limit / aim)}"]
    if getattr(row, "limit_high", 0) >= aim:
        told.append("the interval reaches the aim")
    if pd.notna(of_texts := getattr(row, "of_texts", float("nan"))):
        told.append(
            "a plain run of its different texts, once each at their own lengths, would be at "
            f"{row.of_limit / of_texts:.0%}"
        )
    told.append(LEFT_OUT.get(row.work, LEFT_OUT[""]))
    return f"{told[0]}: {'; '.join(told[1:])}; the peer reaches {row.of_limit / row.ratio:.0%}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "less than 1%"


def cells_of(scaling: pd.DataFrame) -> pd.DataFrame:
    """A line a cell of the tables of scaling: axis, value, work, rows, tokens, and the ratio of the
    peer's time to the engine's.
    """
    named = ["axis", "value", "work", "rows", "tokens"]
    both = scaling.pivot_table(index=named, columns="arm", values="ms", sort=False)
    return (both[PEER] / both["engine"]).dropna().rename("ratio").reset_index()


def as_well(cells: pd.DataFrame) -> str:
    """In how many cells of the tables of scaling a peer is faster or as fast."""
    faster, is_few = cells["ratio"] < 1, cells["rows"] <= FEW
    level = cells["ratio"].between(1, AS_WELL, inclusive="left")
    near = faster & (cells["ratio"] > 1 / AS_WELL)
    return (
        f"- Over rows, tokens and the size of the model, a peer is faster in {faster.sum()} of "
        f"{len(cells)} cells (second table), in {near.sum()} of them by less than "
        f"{AS_WELL - 1:.0%}. With more than {FEW} rows it is faster in "
        f"{(faster & ~is_few).sum()} of {(~is_few).sum()}. In {level.sum()} cells more it takes "
        f"less than {AS_WELL - 1:.0%} longer."
    )


def where_faster(cells: pd.DataFrame) -> str:
    """The cells in which a peer is faster, as a table; nothing if there are none."""
    lines = [
        "| scaling | a peer is faster in | where | the engine takes at most |",
        "|---|---|---|---|",
    ]
    for work, some in cells.groupby("work", sort=False):
        ahead = some[some["ratio"] < 1]
        where = "; ".join(_point(cell) for cell in ahead.itertuples())
        most = f"{1 / ahead['ratio'].min():.2f} times as long" if len(ahead) else "no longer"
        lines.append(f"| {work} | {len(ahead)} of {len(some)} | {where or 'nowhere'} | {most} |")
    return "\n".join(lines) if (cells["ratio"] < 1).any() else ""


def _point(cell: Any) -> str:
    rows = f"{cell.rows} row{'s' * (cell.rows > 1)}"
    if cell.axis == "tokens":
        return f"{rows} of {cell.tokens:.0f} tokens"
    return f"{rows} in bert-base's shape" if cell.axis == "bert-base" else rows


def memory(scaling: pd.DataFrame) -> str:
    """The megabytes of the arms where the texts are longest and where most rows are explained."""
    if "rounds" not in scaling or scaling["rounds"].isna().any():
        return (
            "- Memory is not measured yet: the columns `mb` of these tables were taken in a "
            "process that had run the arms before."
        )
    told = []
    for axis in ("tokens", "rows"):
        some = scaling[scaling["axis"] == axis]
        most = some[some["value"] == some["value"].max()]
        ours, theirs = (most[most["arm"] == arm]["mb"] for arm in ("engine", PEER))
        told.append(
            f"at {most[axis].max():.0f} {axis} the engine takes {_range(ours)} MB and the peer "
            f"{_range(theirs)} MB"
        )
    return f"- Beyond the loaded model, {'; '.join(told)}."


def _range(numbers: pd.Series) -> str:
    return f"{numbers.min():.0f} to {numbers.max():.0f}"


def _less_precise(row: Any) -> str:
    """Why an answer is not as precise as it must be; nothing where it is."""
    if (row.equal, row.work) not in PRECISE:
        return ""
    column, bound, name = PRECISE[row.equal, row.work]
    off = getattr(row, column, float("nan"))
    if not off > bound:
        return ""
    return f"not an equal answer, for a row's {name} is {off:.1%} in place of {bound:.0%}"


def _verdict(row: Any, aim: float, precision: str, whole: Any = None) -> str:
    """Whether an aim is met and, where it is not, the measured reason; `whole` is the same line in
    float32.
    """
    unequal = _less_precise(row)
    is_off = bool(unequal)
    if row.ratio >= aim:
        is_sure = pd.isna(row.ratio_low) or row.ratio_low >= aim or not hasattr(row, "ratio_min")
        met = "met" if is_sure else "met; the interval reaches below the aim"
        return f"{met}, but {unequal}" if is_off else met
    reasons = [unequal] if is_off else []
    if hasattr(row, "ratio_min") and row.ratio_high >= aim:
        reasons.append("the interval reaches the aim")
    if precision and is_off and hasattr(row, "passes") and whole is not None:
        reasons.append(
            f"rounding, which more points do not mend: {row.passes:.0f} passes a row, "
            f"{whole.passes:.0f} in float32"
        )
    if precision and row.bfloat16_gain < 1:
        reasons.append(
            f"a matrix product in bfloat16 runs at {row.bfloat16_gain:.2f} of the speed of "
            "float32 on this processor, which has no instructions for it"
        )
        return f"missed: {'; '.join(reasons)}"
    if not is_off:  # else the limit counts passes that do not help
        peer = row.of_limit / row.ratio
        would_be = f"{aim:g} would be {aim * peer:.0%} of the limit"
        reasons.append(f"{would_be}, for the peer is at {peer:.0%}")
    if pd.notna(products := getattr(row, "products", float("nan"))):
        bound = row.ratio / products
        told = (
            f"at least {products:.0%} of the engine's time is the model's matrix products, and "
            f"were all the rest free, it would be at most {bound:.2f}"
        )
        if row.equal == "answer":
            told += " with as many passes"
        reasons.append(f"{told}, so these do not rule the aim out" if bound >= aim else told)
    if precision:
        reasons.append(
            f"a matrix product in bfloat16 runs at {row.bfloat16_gain:.1f} times the speed of "
            "float32"
        )
    return f"missed: {'; '.join(reasons)}"


def shown() -> str:
    """What stands between the marks: the published tables in words, or that there are none."""
    path = REFERENCE / "rivals.csv"
    if not path.is_file():
        return NOT_YET
    table = pd.read_csv(path)
    lines, tables = [three_sentences(table)], [aims(table)]
    if grown := sorted(REFERENCE.glob("scaling_*.csv"), reverse=True):
        scaling = pd.concat(map(pd.read_csv, grown), ignore_index=True)
        cells = cells_of(scaling)
        lines += [as_well(cells), memory(scaling)]
        tables.append(where_faster(cells))
    return "\n\n".join(["\n".join(lines), *filter(None, tables)])


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
