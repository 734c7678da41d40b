"""Figures of concept effects: each function draws a finished table and returns the figure with what it plotted.

Nothing is computed here. Floors are lines in every panel, and so is the noise ceiling where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from lib.metrics.concept_effects import DISTANCES
from lib.plots.attributions import COLOURS, STYLE, Plotted
from lib.studies.cebab.reviews import ASPECTS, VALUES

SCREEN = {
    **STYLE,
    "figure.dpi": 75,
    "xtick.labelsize": 7,
}  # in a notebook; `Stage.figure` saves with 150
FAMILY = {"paper": ("o", COLOURS[0]), "ours": ("s", COLOURS[2]), "released": ("x", COLOURS[3])}
FLOORS = {
    "Zero": ("--", COLOURS[1]),
    "No concept": ("-.", (0.15, 0.15, 0.15)),
    "Random": (":", COLOURS[7]),
}
CEILING = ((0, (1, 1)), COLOURS[4])


def plot_errors(table: pd.DataFrame, ceilings: pd.DataFrame) -> Plotted:
    """ICaCE-Error of every explainer, a column per distance and a row per data set and model (CEBaB, Figure 2, with intervals).

    `table`: dataset, model, explainer, family, metric, error, low, high. `ceilings`: dataset, model, metric, error, low, high: two editors'
    distance, drawn with its interval, and as metric "bound" the error of L2 that nobody can go below.
    """
    panels = table[["dataset", "model"]].drop_duplicates().to_records(index=False)
    names = list(dict.fromkeys(table.loc[table["family"] != "floor", "explainer"]))
    with plt.rc_context(SCREEN):
        figure, axes = plt.subplots(
            len(panels),
            3,
            sharex="col",
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(7.4, (0.145 * len(names) + 0.4) * len(panels) + 0.6),
        )
        for row, (dataset, model) in enumerate(panels):
            for ax, metric in zip(axes[row], DISTANCES, strict=True):
                here = (
                    (table["dataset"] == dataset)
                    & (table["model"] == model)
                    & (table["metric"] == metric)
                )
                _dots(ax, table[here], names)
                _ceiling(
                    ax,
                    ceilings[
                        (ceilings["dataset"] == dataset) & (ceilings["model"] == model)
                    ].set_index("metric"),
                    metric,
                )
                reach = table.loc[table["metric"] == metric, ["error", "high"]].max().max()
                ax.set(title=f"{metric} · {dataset}, {model}", xlim=(0, 1.05 * reach))
                ax.title.set_fontsize(8)
        axes[0, 0].invert_yaxis()
        _legend(figure)
    return figure, table[
        ["dataset", "model", "explainer", "family", "metric", "error", "low", "high"]
    ]


def plot_directions(table: pd.DataFrame, value: str, label: str) -> Plotted:
    """A heat map: explainers down, aspect and direction across, a panel per data set (the darker, the larger the value).

    The scale ends where 96 % of the values do, so that one bad explainer does not make all others look alike.

    `table`: dataset, explainer, aspect, old, new and the value, one row each.
    """
    short = {"Negative": "−", "unknown": "?", "Positive": "+"}
    table = table.assign(
        direction=[
            f"{a} {short[o]}→{short[n]}"
            for a, o, n in zip(table["aspect"], table["old"], table["new"])
        ]
    )
    datasets = list(dict.fromkeys(table["dataset"]))
    names = list(dict.fromkeys(table["explainer"]))
    across = [
        name
        for a in ASPECTS
        for o in VALUES
        for n in VALUES
        if (name := f"{a} {short[o]}→{short[n]}") in set(table["direction"])
    ]
    with plt.rc_context({**SCREEN, "axes.grid": False}):
        figure, axes = plt.subplots(
            len(datasets),
            1,
            squeeze=False,
            layout="constrained",
            figsize=(0.25 * len(across) + 2.2, (0.14 * len(names) + 1.2) * len(datasets)),
        )
        for ax, dataset in zip(axes[:, 0], datasets, strict=True):
            part = table[table["dataset"] == dataset].pivot_table(
                index="explainer", columns="direction", values=value
            )
            image = ax.imshow(
                part.reindex(index=names, columns=across),
                cmap="Blues",
                aspect="auto",
                vmin=0,
                vmax=table[value].quantile(0.96),
            )
            ax.set(
                yticks=range(len(names)),
                yticklabels=names,
                xticks=range(len(across)),
                title=dataset,
            )
            ax.set_xticklabels(across, rotation=90)
            ax.tick_params(labelsize=6)
        figure.colorbar(image, ax=axes, label=label, shrink=0.6, extend="max")
    return figure, table[["dataset", "explainer", "aspect", "old", "new", value]]


def plot_three_effects(table: pd.DataFrame) -> Plotted:
    """What the world, a model and explainers say of one change, in stars: a column per data set, a row of marks per aspect.

    `table`: dataset, aspect, who, stars; `who` is drawn in its order, at most seven.
    """
    datasets, who, aspects = (list(dict.fromkeys(table[c])) for c in ("dataset", "who", "aspect"))
    marks: Sequence[str] = ("o", "s", "D", "^", "v", "P", "X")
    with plt.rc_context(SCREEN):
        figure, axes = plt.subplots(
            1,
            len(datasets),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(3.9 * len(datasets), 2.8),
        )
        for ax, dataset in zip(axes[0], datasets, strict=True):
            for i, name in enumerate(who):
                part = (
                    table[(table["dataset"] == dataset) & (table["who"] == name)]
                    .set_index("aspect")["stars"]
                    .reindex(aspects)
                )
                ax.plot(
                    part,
                    np.arange(len(aspects)) + 0.1 * (i - (len(who) - 1) / 2),
                    marks[i],
                    color=COLOURS[i],
                    label=name,
                    markersize=5,
                )
            ax.set(
                yticks=range(len(aspects)),
                yticklabels=aspects,
                title=dataset,
                xlabel="Negative to Positive, in stars",
            )
        axes[0, 0].invert_yaxis()
        figure.legend(
            *axes[0, 0].get_legend_handles_labels(),
            loc="outside lower center",
            ncol=4,
            frameon=False,
        )
    return figure, table


def _dots(ax: plt.Axes, part: pd.DataFrame, names: Sequence[str]) -> None:
    for floor in part[part["family"] == "floor"].itertuples():
        style, colour = FLOORS[floor.explainer]
        ax.axvline(floor.error, linestyle=style, color=colour, linewidth=1.2)
    for row in part[part["family"] != "floor"].itertuples():
        mark, colour = FAMILY[row.family]
        at = names.index(row.explainer)
        ax.plot([row.low, row.high], [at, at], color="0.5", linewidth=1)
        ax.plot(row.error, at, mark, color=colour, markersize=3.8)
    ax.set(yticks=range(len(names)), yticklabels=names)
    ax.tick_params(axis="y", labelsize=6.5)


def _ceiling(ax: plt.Axes, top: pd.DataFrame, metric: str) -> None:
    if metric in top.index and np.isfinite(top.loc[metric, "error"]):
        ax.axvline(top.loc[metric, "error"], linestyle=CEILING[0], color=CEILING[1], linewidth=2)
        ax.axvspan(
            top.loc[metric, "low"],
            top.loc[metric, "high"],
            color=CEILING[1],
            alpha=0.12,
            linewidth=0,
        )
    if metric == "L2" and "bound" in top.index:
        ax.axvline(top.loc["bound", "error"], color=CEILING[1], linewidth=1.2)


def _legend(figure: plt.Figure) -> None:
    marks = [
        Line2D([], [], marker=mark, color=colour, linestyle="", label=name)
        for name, (mark, colour) in FAMILY.items()
    ]
    lines = [
        Line2D([], [], linestyle=style, color=colour, label=name)
        for name, (style, colour) in FLOORS.items()
    ]
    ceiling = Line2D(
        [], [], linestyle=CEILING[0], color=CEILING[1], linewidth=2, label="a second editor"
    )
    bound = Line2D([], [], color=CEILING[1], linewidth=1.2, label="bound (L2)")
    figure.legend(
        handles=[*marks, *lines, ceiling, bound],
        loc="outside lower center",
        ncol=8,
        frameon=False,
        fontsize=7,
    )
