"""All benchmarks and the table of aims (make bench, make bench FULL=1).

    python tools/benchmarks/bench.py --quick             about a quarter of an hour of one core
    python tools/benchmarks/bench.py --full              an hour and a half; a stopped run goes on where it was
    python tools/benchmarks/bench.py --full --publish    also copy the results to outputs/reference/benchmarks/, and into the README
    python tools/benchmarks/bench.py --full --table --publish    only from what is measured already

Every aim is read as: this ratio against captum and lime one row at a time (or the plain training
loop), or 95 % of the limit measured in the same run. An aim that is missed says why, with the
figures of the run. Of lines that were not measured at this scale yet, the table keeps those
published before, and says at which scale they were measured.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import attribution
import bfloat16
import growth
import pandas as pd
import training
from arms import machine

from lib.core.files import save_csv, write_atomic
from lib.core.paths import ROOT, outputs_root
from lib.core.seeds import pick_device

Lines = Mapping[str, pd.Series]
BEGIN, END = "<!-- table.csv, put here by bench.py --publish -->", "<!-- end of table.csv -->"
REFERENCE = ROOT / "outputs" / "reference" / "benchmarks"
LIMIT = (
    0.95  # of plain passes measured in the same run: then the aim counts as met, whatever the ratio
)
IN_WORDS = {  # what a line of the table is called, and what its readers see
    "but largest_gap": "but the largest completeness gap is",
    "but loss_difference": "but losses differ by",
    "but logit_difference": "but logits differ by",
    "but difference": "but scores differ by",
    "but of_limit": "but the share of the limit is",
    "fp32": "float32",
    "bf16": "bfloat16",
    "IG to 1 % on every row: points a row (and a forward at either end)": "Integrated Gradients to 1 % on every row: points a row (and a forward pass at either end)",
    "IG engine, share": "Integrated Gradients, share",
    "IG to 1 %": "Integrated Gradients to 1 %",
    "LIME 5000 where 2^d <= 5000: all subsets": "LIME on all subsets of a text's words, where they are at most 5000",
    "LIME 5000,": "LIME, 5000 samples,",
    "Kernel SHAP 25,": "Kernel SHAP, 25 samples,",
    "Kernel SHAP 200,": "Kernel SHAP, 200 samples,",
    "BERT-CEfAf epoch, same steps": "training all of BERT (CEfAf), one epoch, same steps",
    "BERT-C, 20 epochs x 5 seeds": "training BERT's head only (C), 20 epochs x 5 seeds",
    "OLA-CEA, 5 seeds x 200 epochs": "training one attention layer (OLA-CEA), 5 seeds x 200 epochs",
}
GPU = "no GPU at hand; `python tools/benchmarks/attribution.py --full --shape base --device cuda` measures it"


@dataclass(frozen=True)
class Aim:
    """A line of the table: what is measured, what is aimed at, and why it may be out of reach.

    `value` reads the measured number; `at_most`: smaller is better; `limited`: also met at `LIMIT`
    of the limit, which `limit` reads; `also`: a column and its bound that must hold beside it;
    `agreement`: the column that says how far the arms' answers are apart.
    """

    name: str
    line: str
    aim: float
    value: str = "ratio"
    at_most: bool = False
    limited: bool = True
    limit: str = "of_limit"
    also: tuple[str, float] | None = None
    agreement: str = "share_difference"
    why: Callable[[pd.Series, pd.Series], str] | None = None


def _of_bfloat16(found: pd.Series, about: pd.Series) -> str:
    times = about["gflops_bfloat16"] / about["gflops_float32"]
    gain = found.get("limit_gain", float("nan"))
    passes = (
        f", the plain passes that it needs {gain:.1f} times (2.6 to 3 there)"
        if pd.notna(gain)
        else ""
    )
    return (
        f"a plain matrix product in bfloat16 runs {times:.1f} times as fast as in float32 on this processor (about 4 "
        f"times where the aim was set){passes}"
    )


def _of_its_gap(found: pd.Series, about: pd.Series) -> str:
    return (
        f"{_of_bfloat16(found, about)}; one row's gap is {found['largest_gap']:.1%}, for it is computed in bfloat16, whose "
        "rounding more points do not mend"
    )


def _of_texts(found: pd.Series, about: pd.Series) -> str:
    return (
        f"the limit counts only the different texts, at their own lengths, once each: a plain run of them would be "
        f"{found['ratio'] / found['of_texts']:.1f} times as fast as one row at a time"
    )


def _of_texts_in_bfloat16(found: pd.Series, about: pd.Series) -> str:
    return f"{_of_texts(found, about)}; {_of_bfloat16(found, about)}"


def _of_rounding(found: pd.Series, about: pd.Series) -> str:
    return (
        f"losses differ by {found['loss_difference']:.1g} in float32 and by {found['loss_difference_float64']:.1g} with "
        "64-bit numbers: the same steps, whose rounding grows over the epochs"
    )


def _of_sums(found: pd.Series, about: pd.Series) -> str:
    return (
        f"rounding: with 64-bit numbers (two rows, at most 20 points and samples) they differ by {found['difference_float64']:.1g}, "
        "and that is captum's Kernel SHAP, which solves in float32 even then"
    )


AIMS = [
    Aim(
        "equal work, eight methods, fp32",
        "eight methods",
        1.35,
        agreement="difference",
        also=("difference", 1e-5),
        why=_of_sums,
    ),
    Aim(
        "equal answer (IG to 1 %), eight methods, fp32",
        "eight methods, Integrated Gradients to 1 %",
        3.5,
    ),
    Aim(
        "the same, bf16 where safe",
        "eight methods, Integrated Gradients to 1 %, bfloat16",
        8.0,
        also=("largest_gap", 0.01),
        why=_of_its_gap,
    ),
    Aim(
        "Saliency + Input x Gradient + Guided Backprop",
        "three single-pass methods",
        6.0,
        limited=False,
        also=("of_limit", 0.75),
        agreement="difference",
    ),
    Aim(
        "IG engine, share of the forward-backward limit",
        "Integrated Gradients, 200 points",
        1.10,
        "of_limit",
        agreement="difference",
    ),
    Aim(
        "IG to 1 % on every row: points a row (and a forward at either end)",
        "Integrated Gradients to 1 %, panels",
        25.0,
        "steps",
        at_most=True,
        limited=False,
        also=("largest_gap", 0.01),
    ),
    Aim(
        "Kernel SHAP 25, share of the forward limit",
        "Kernel SHAP, 25 samples",
        0.95,
        "of_limit",
        agreement="difference",
    ),
    Aim(
        "Kernel SHAP 200, share of the forward limit",
        "Kernel SHAP, 200 samples",
        0.95,
        "of_limit",
        agreement="difference",
    ),
    Aim(
        "LIME 5000, fp32",
        "LIME, 5000 samples",
        4.0,
        limit="of_texts",
        agreement="difference",
        why=_of_texts,
    ),
    Aim(
        "LIME 5000, bf16",
        "LIME, 5000 samples, bfloat16",
        11.0,
        limit="of_texts",
        why=_of_texts_in_bfloat16,
    ),
    Aim(
        "LIME 5000 where 2^d <= 5000: all subsets, fp32",
        "LIME, all subsets of at most 12 words",
        4.0,
    ),
    Aim(
        "LIME 5000 where 2^d <= 5000: all subsets, bf16",
        "LIME, all subsets of at most 12 words, bfloat16",
        11.0,
        why=_of_bfloat16,
    ),
    Aim(
        "BERT-C, 20 epochs x 5 seeds",
        "BERT-C, 20 epochs x 5 seeds",
        150.0,
        also=("logit_difference", 1e-4),
        agreement="logit_difference",
    ),
    Aim(
        "OLA-CEA, 5 seeds x 200 epochs",
        "OLA-CEA, 5 seeds",
        4.0,
        also=("loss_difference", 1e-4),
        agreement="loss_difference",
        why=_of_rounding,
    ),
    Aim("BERT-CEfAf epoch, same steps", "BERT-CEfAf, one epoch", 1.7, agreement="loss_difference"),
]


def verdict(aim: Aim, found: pd.Series) -> str:
    """Whether an aim is met: met, missed at the limit, missed, or what of it is missed."""
    value = found[aim.value]
    if value <= aim.aim if aim.at_most else value >= aim.aim:
        reached = "met"
    elif aim.limited and found.get(aim.limit, 0) >= LIMIT:
        reached = "missed at the limit"
    else:
        return "missed"
    if aim.also is None:
        return reached
    name, bound = aim.also
    kept = found[name] >= bound if name == "of_limit" else found[name] <= bound
    return reached if kept else f"{reached}, but {name} {found[name]:.2g}"


def table_of_aims(lines: Lines, about: pd.Series) -> pd.DataFrame:
    """The table: aim, measured with its range over the rounds, share of the limit, agreement,
    verdict and why.
    """
    rows = []
    for aim in AIMS:
        found, result = lines[aim.line], verdict(aim, lines[aim.line])
        low, high = found["ratio_low"], found["ratio_high"]
        if aim.value == "of_limit":  # the fastest plain passes beside the slowest round
            low, high = found["of_limit"] / (1 + found["engine_spread"]), found["of_limit"]
        is_spread = aim.value in ("ratio", "of_limit")
        rows.append(
            {
                "what": aim.name,
                "aim": f"{'<=' if aim.at_most else '>='} {aim.aim:g}",
                "measured": found[aim.value],
                "low": low if is_spread else float("nan"),
                "high": high if is_spread else float("nan"),
                "of_limit": found.get(aim.limit),
                "difference": found[aim.agreement],
                "difference_float64": found.get(
                    "loss_difference_float64", found.get("difference_float64")
                ),
                "rows": found["rows"],
                "rounds": found["rounds"],
                "scale": found["scale"],
                "extrapolated": bool(
                    found.get("extrapolated") is True or found.get("extrapolated") == 1
                ),
                "verdict": result,
                "why": aim.why(found, about) if aim.why and result != "met" else "",
            }
        )
    rows.append(
        {
            "what": "one GPU, bert-base shape, whole method set",
            "aim": ">= 30",
            "verdict": "not run",
            "why": GPU,
        }
    )
    return pd.DataFrame(rows)


def in_words(text: str) -> str:
    """A cell without codes.

    >>> in_words("missed at the limit, but largest_gap 0.018")
    'missed at the limit, but the largest completeness gap is 0.018'
    >>> in_words("LIME 5000, bf16")
    'LIME, 5000 samples, bfloat16'
    """
    for code, words in IN_WORDS.items():
        text = text.replace(code, words)
    return text


def as_markdown(table: pd.DataFrame) -> str:
    """The table as a README shows it."""
    head = "| what | aim | measured (range over the rounds) | share of the limit | scores, shares or losses differ by (with 64-bit numbers) | rows x rounds | is the aim met? |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for row in table.itertuples():
        spread = f" ({row.low:.3g}-{row.high:.3g})" if pd.notna(row.low) else ""
        measured = (
            ""
            if pd.isna(row.measured)
            else f"{row.measured:.3g}{spread}{' *' if row.extrapolated is True else ''}"
        )
        limit, gap = (
            "" if pd.isna(x) else text
            for x, text in (
                (row.of_limit, f"{row.of_limit:.0%}"),
                (row.difference, f"{row.difference:.1g}"),
            )
        )
        gap += "" if pd.isna(row.difference_float64) else f" ({row.difference_float64:.1g})"
        verdict_ = f"**{in_words(row.verdict)}**" + (
            f": {row.why}" if isinstance(row.why, str) and row.why else ""
        )
        size = (
            ""
            if pd.isna(row.rows)
            else f"{row.rows:.0f} x {row.rounds:.0f}{' (quick)' if row.scale == 'quick' else ''}"
        )
        lines.append(
            f"| {in_words(row.what)} | {row.aim} | {measured} | {limit} | {gap} | {size} | {verdict_} |"
        )
    return "\n".join(lines)


def with_published(folder: Path, name: str) -> pd.DataFrame:
    """The lines that were measured, and those published before of what was not, in their order."""
    parts = [
        pd.read_csv(path)
        for path in (REFERENCE / f"{name}.csv", folder / f"{name}.csv")
        if path.is_file()
    ]
    both = pd.concat(parts, ignore_index=True)
    order = both["line"].drop_duplicates()
    return both.drop_duplicates("line", keep="last").set_index("line").loc[order].reset_index()


def write_table(folder: Path, about: pd.Series) -> pd.DataFrame:
    """Read what was measured, write table.csv beside it, and return the table."""
    parts = [with_published(folder, name) for name in ("attribution", "training")]
    lines = {row["line"]: row for part in parts for _, row in part.iterrows()}
    table = table_of_aims(lines, about)
    save_csv(table, folder / "table.csv")
    return table


def into_readme(table: pd.DataFrame) -> None:
    """Put the table between the marks of the README beside this file."""
    readme = Path(__file__).with_name("README.md")
    before, begin, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    write_atomic(readme, f"{before}{begin}\n{as_markdown(table)}\n{end}{after}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all benchmarks and write the table; `--table` only writes it again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    attribution.add_options(parser)
    parser.add_argument(
        "--publish", action="store_true", help="copy the results to outputs/reference/benchmarks"
    )
    parser.add_argument("--table", action="store_true", help="measure nothing")
    options = parser.parse_args(arguments)
    folder = outputs_root() / "benchmarks" / options.scale
    if not options.table:
        passed = [f"--{options.scale}", "--models", str(options.models), "--device", options.device]
        passed += ["--rounds", str(options.rounds)] if options.rounds else []
        save_csv(
            pd.DataFrame([machine(pick_device(options.device))]).assign(scale=options.scale),
            folder / "machine.csv",
        )
        for module in (attribution, bfloat16, training, growth):
            module.main(passed)
    table = write_table(folder, pd.read_csv(folder / "machine.csv").iloc[0])
    print(table[["what", "aim", "measured", "of_limit", "verdict"]].round(3).to_string(index=False))
    if options.publish:
        merged = {name: with_published(folder, name) for name in ("attribution", "training")}
        REFERENCE.mkdir(parents=True, exist_ok=True)
        for path in (p for kind in ("csv", "png") for p in sorted(folder.glob(f"*.{kind}"))):
            shutil.copyfile(path, REFERENCE / path.name)
        for name, lines in merged.items():
            save_csv(lines, REFERENCE / f"{name}.csv")
        into_readme(pd.read_csv(REFERENCE / "table.csv"))


if __name__ == "__main__":
    main()
