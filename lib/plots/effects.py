"""Figures of concept effects: errors of explainers, errors by direction, and what world, model and
explainers say.

Floors are lines in every panel, and so is the noise ceiling where there is one.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from .style import COLOURS, STYLE, Plotted

# on a screen; `Stage.figure` saves with 150 dots an inch
_SCREEN = {**STYLE, "figure.dpi": 75, "xtick.labelsize": 7}
_FAMILY: dict[str, dict[str, Any]] = {
    "paper": {"marker": "o", "color": COLOURS[0], "linestyle": ""},
    "ours": {"marker": "s", "color": COLOURS[2], "linestyle": ""},
    "released": {"marker": "x", "color": COLOURS[3], "linestyle": ""},
}
_OUTSIDE = {"outside": {"marker": "D", "color": COLOURS[5], "linestyle": ""}}
_FLOORS: dict[str, dict[str, Any]] = {
    "Zero": {"linestyle": "--", "color": COLOURS[1]},
    "No concept": {"linestyle": "-.", "color": (0.15, 0.15, 0.15)},
    "Random": {"linestyle": ":", "color": COLOURS[7]},
}
_CEILING: dict[str, Any] = {"linestyle": (0, (1, 1)), "color": COLOURS[4], "linewidth": 2}
_BOUND: dict[str, Any] = {"color": COLOURS[4], "linewidth": 1.2}
_MARKS = ("o", "s", "D", "^", "v", "P", "X")


def plot_errors(table: pd.DataFrame, ceilings: pd.DataFrame) -> Plotted:
    """The error of every explainer: a column per distance, a row per data set and model (CEBaB
    Figure 2, with intervals).

    Args:
        table: dataset, model, explainer, family (floor, paper, ours, released or outside), metric,
            error, low, high. Distances and explainers are drawn in their order.
        ceilings: dataset, model, metric, error, low, high: how far two editors are apart, drawn
            with its interval, and as metric "bound" the error of L2 that nobody can go below.
    """
    panels = table[["dataset", "model"]].drop_duplicates().to_records(index=False)
    metrics = list(dict.fromkeys(table["metric"]))
    names = list(dict.fromkeys(table.loc[table["family"] != "floor", "explainer"]))
    with plt.rc_context({**_SCREEN, "axes.titlesize": 8}):
        figure, axes = plt.subplots(
            len(panels),
            len(metrics),
            sharex="col",
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(7.4, (0.145 * len(names) + 0.4) * len(panels) + 0.6),
        )
        for (row, column), ax in np.ndenumerate(axes):
            (dataset, model), metric = panels[row], metrics[column]
            measured = table[table["metric"] == metric]
            _draw_errors(ax, _rows_of(measured, dataset, model), names)
            _draw_ceiling(ax, _rows_of(ceilings, dataset, model).set_index("metric"), metric)
            ax.set_title(f"{metric} · {dataset}, {model}")
            ax.set_xlim(0, 1.05 * measured[["error", "high"]].max().max())
        axes[0, 0].invert_yaxis()
        _add_legend(figure, _OUTSIDE if "outside" in set(table["family"]) else {})
    return figure, table[
        ["dataset", "model", "explainer", "family", "metric", "error", "low", "high"]
    ]


def plot_directions(
    table: pd.DataFrame,
    value: str,
    label: str,
    aspects: Sequence[str],
    values: Mapping[str, str],
) -> Plotted:
    """A heat map: explainers down, aspect and direction across, a panel per data set.

    The darker, the larger the value. The scale ends where 96 % of the values do, so that one bad
    explainer does not make all others look alike.

    Args:
        table: dataset, explainer, aspect, old, new and `value`, one row each.
        value: the column that is drawn.
        label: its name beside the scale.
        aspects: the aspects, from left to right.
        values: the values of an aspect in their order, each with a sign that stands for it.
    """
    changes = product(aspects, values, values)
    names = {(aspect, a, b): f"{aspect} {values[a]}→{values[b]}" for aspect, a, b in changes}
    drawn = list(zip(table["aspect"], table["old"], table["new"]))
    table = table.assign(direction=[names[change] for change in drawn])
    across = [name for change, name in names.items() if change in drawn]
    datasets, explainers = (list(dict.fromkeys(table[c])) for c in ("dataset", "explainer"))
    with plt.rc_context({**_SCREEN, "axes.grid": False}):
        figure, axes = plt.subplots(
            len(datasets),
            1,
            squeeze=False,
            layout="constrained",
            figsize=(0.25 * len(across) + 2.2, (0.14 * len(explainers) + 1.2) * len(datasets)),
        )
        for ax, dataset in zip(axes[:, 0], datasets, strict=True):
            wide = table[table["dataset"] == dataset].pivot_table(
                index="explainer", columns="direction", values=value
            )
            image = ax.imshow(
                wide.reindex(index=explainers, columns=across),
                cmap="Blues",
                aspect="auto",
                vmin=0,
                vmax=table[value].quantile(0.96),
            )
            ax.set(title=dataset, yticks=range(len(explainers)), yticklabels=explainers)
            ax.set_xticks(range(len(across)), across, rotation=90)
            ax.tick_params(labelsize=6)
        figure.colorbar(image, ax=axes, label=label, shrink=0.6, extend="max")
    return figure, table[["dataset", "explainer", "aspect", "old", "new", value]]


def plot_three_effects(table: pd.DataFrame, label: str) -> Plotted:
    """What the world, a model and explainers say of one change: a column per data set, a row of
    marks per aspect.

    Args:
        table: dataset, aspect, who, stars; `who` is drawn in its order, at most seven.
        label: the change, and the unit of its effect.
    """
    datasets, who, aspects = (list(dict.fromkeys(table[c])) for c in ("dataset", "who", "aspect"))
    with plt.rc_context(_SCREEN):
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
            here = table[table["dataset"] == dataset]
            for i, name in enumerate(who):
                stars = here[here["who"] == name].set_index("aspect")["stars"].reindex(aspects)
                y = np.arange(len(aspects)) + 0.1 * (i - (len(who) - 1) / 2)
                ax.plot(stars, y, _MARKS[i], color=COLOURS[i], label=name, markersize=5)
            ax.set(yticks=range(len(aspects)), yticklabels=aspects, title=dataset, xlabel=label)
        axes[0, 0].invert_yaxis()
        figure.legend(
            *axes[0, 0].get_legend_handles_labels(),
            loc="outside lower center",
            ncol=4,
            frameon=False,
        )
    return figure, table


def _rows_of(table: pd.DataFrame, dataset: str, model: str) -> pd.DataFrame:
    return table[(table["dataset"] == dataset) & (table["model"] == model)]


def _draw_errors(ax: plt.Axes, part: pd.DataFrame, names: Sequence[str]) -> None:
    for row in part.itertuples():
        if row.family == "floor":
            ax.axvline(row.error, **_FLOORS[row.explainer], linewidth=1.2)
        else:
            y = names.index(row.explainer)
            ax.plot([row.low, row.high], [y, y], color="0.5", linewidth=1)
            ax.plot(row.error, y, **(_FAMILY | _OUTSIDE)[row.family], markersize=3.8)
    ax.set(yticks=range(len(names)), yticklabels=names)
    ax.tick_params(axis="y", labelsize=6.5)


def _draw_ceiling(ax: plt.Axes, ceilings: pd.DataFrame, metric: str) -> None:
    if metric in ceilings.index and np.isfinite(ceilings.loc[metric, "error"]):
        ceiling = ceilings.loc[metric]
        ax.axvline(ceiling["error"], **_CEILING)
        ax.axvspan(
            ceiling["low"], ceiling["high"], color=_CEILING["color"], alpha=0.12, linewidth=0
        )
    if metric == "L2" and "bound" in ceilings.index:
        ax.axvline(ceilings.loc["bound", "error"], **_BOUND)


def _add_legend(figure: plt.Figure, more: Mapping[str, dict[str, Any]]) -> None:
    looks = _FAMILY | {**more} | _FLOORS | {"a second editor": _CEILING, "bound (L2)": _BOUND}
    figure.legend(
        handles=[Line2D([], [], label=name, **look) for name, look in looks.items()],
        loc="outside lower center",
        ncol=8,
        frameon=False,
        fontsize=7,
    )
