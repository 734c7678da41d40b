"""How the cost of an explanation grows with the length of the sentence, the number of rows and the
number of samples.

    python tools/benchmarks/growth.py --quick     two minutes: one round
    python tools/benchmarks/growth.py --full      some more: three rounds, longer series

Engine and original (captum and lime, one row at a time) on the same rows, milliseconds per row, on
logarithmic axes: a cost that is proportional to what grows is a line that rises by one decade in
one decade. Writes growth.csv, growth.png.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from arms import Arm, take_turns
from attribution import KERNEL, LIME, SINGLE, add_options, load_model
from matplotlib.figure import Figure
from originals import original

from lib.attribution import Row, explain_many
from lib.core.files import save_csv
from lib.core.paths import outputs_root
from lib.core.seeds import set_up
from lib.core.units import Units
from lib.models.text_model import TextModel, device_of
from lib.plots import COLOURS, STYLE

Asked = Mapping[str, Mapping[str, Any]]
METHODS: dict[str, Asked] = {
    "three single-pass methods": SINGLE,
    "Kernel SHAP": KERNEL,
    "LIME": LIME,
}
SERIES = {
    "quick": {"tokens": (8, 16, 24, 32), "rows": (1, 4, 16, 64), "samples": (25, 100, 400, 1600)},
    "full": {
        "tokens": (8, 12, 16, 20, 24, 28, 32),
        "rows": (1, 2, 4, 8, 16, 32, 64),
        "samples": (25, 50, 100, 200, 400, 800, 1600),
    },
}
AXIS = {
    "tokens": "tokens of the sentence",
    "rows": "rows explained together",
    "samples": "samples per row",
}
TICKS = [m * 10**k for k in range(5) for m in (1, 2, 5)]
SLOW = 400  # rows times samples from which on the original is not run


def cases(
    rows: pd.DataFrame, lengths: np.ndarray, series: Mapping[str, Sequence[int]]
) -> Iterator[tuple[str, int, str, Asked, pd.DataFrame]]:
    """What is measured: along which axis, at which value, which methods, on which rows."""
    for value in series["tokens"]:
        nearest = rows.iloc[np.abs(lengths - value).argsort(kind="stable")[:2]]
        for name, asked in METHODS.items():
            yield "tokens", value, name, asked, nearest
    for value in series["rows"]:
        for name in ("three single-pass methods", "Kernel SHAP"):
            yield "rows", value, name, METHODS[name], rows.iloc[:value]
    for value in series["samples"]:
        for name, method in (("Kernel SHAP", "Kernel SHAP"), ("LIME", "LIME")):
            yield "samples", value, name, {method: {"n_samples": value}}, rows.iloc[:2]


def measure(
    model: TextModel, case: tuple[str, int, str, Asked, pd.DataFrame], rounds: int
) -> pd.DataFrame:
    """Milliseconds per row of both arms; columns axis, value, method, arm, rows, tokens, ms."""
    axis, value, name, asked, few = case
    device = device_of(model.module)
    as_rows = [
        Row(r.row_id, r.sentence_idx, r.target, list(r.sentence), 0) for r in few.itertuples()
    ]
    arms = {"engine": Arm(lambda: explain_many(model, few, list(asked.items())), device)}
    work = len(few) * max((s.get("n_samples", 1) for s in asked.values()), default=1)
    if work <= SLOW:
        arms["original"] = Arm(
            lambda: [
                original(model, as_rows, method, **settings) for method, settings in asked.items()
            ],
            device,
        )
    explain_many(model, few.iloc[:1], list(asked.items()))
    take_turns(arms, rounds)
    tokens = float(np.mean([len(one.ids) for one in model.encode(few["sentence"])]))
    print(
        f"{axis} {value} {name}: "
        + ", ".join(f"{arm} {one.best / len(few) * 1000:.1f} ms" for arm, one in arms.items()),
        flush=True,
    )
    return pd.DataFrame(
        [
            {
                "axis": axis,
                "value": tokens if axis == "tokens" else value,
                "method": name,
                "arm": arm,
                "rows": len(few),
                "tokens": tokens,
                "ms": one.best / len(few) * 1000,
            }
            for arm, one in arms.items()
        ]
    )


def draw(table: pd.DataFrame) -> Figure:
    """One panel per axis; a colour per method, the engine drawn through and the original dashed."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True, layout="constrained")
        for ax, (axis, label) in zip(axes, AXIS.items(), strict=True):
            part = table[table["axis"] == axis]
            for colour, name in zip(COLOURS, METHODS, strict=False):
                for arm, line in (("engine", "-o"), ("original", "--s")):
                    one = part[(part["method"] == name) & (part["arm"] == arm)]
                    if len(one):
                        ax.plot(
                            one["value"],
                            one["ms"],
                            line,
                            color=colour,
                            markersize=4,
                            label=f"{name}, {arm}",
                        )
            ax.set(xscale="log", yscale="log", xlabel=label)
            ticks = sorted(part["value"].unique())
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
        axes[0].set_ylabel("ms of processor time per row")
        ticks = [tick for tick in TICKS if table["ms"].min() / 2 < tick < table["ms"].max() * 2]
        axes[0].set_yticks(ticks, [f"{tick:,}" for tick in ticks])
        handles = {
            text: handle
            for ax in axes
            for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncol=3)
    return figure


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Measure, draw and return the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    set_up(0, n_threads=1)
    model, rows = load_model(options)
    lengths = np.array([len(one.ids) for one in model.encode(rows["sentence"])])
    rounds, store = (
        options.rounds or (3 if options.scale == "full" else 1),
        Units("benchmarks", options.scale, "growth"),
    )
    table = pd.concat(
        [
            store.finished(
                f"{axis}-{value}-{name}".replace(" ", "-"),
                store.key(
                    axis=axis,
                    value=value,
                    name=name,
                    rounds=rounds,
                    models=options.models.name,
                    device=options.device,
                ),
                lambda: measure(model, (axis, value, name, *rest), rounds),
            )
            for axis, value, name, *rest in cases(rows, lengths, SERIES[options.scale])
        ],
        ignore_index=True,
    )
    folder = outputs_root() / "benchmarks" / options.scale
    save_csv(table, folder / "growth.csv")
    draw(table).savefig(folder / "growth.png", dpi=110, metadata={"Software": None})
    return table


if __name__ == "__main__":
    main()
