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
from matplotlib.artist import Artist
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .style import COLOURS, STYLE, Plotted

# on a screen; `Stage.figure` saves with 150 dots an inch
_SCREEN = {**STYLE, "figure.dpi": 95}
_TITLES = {"L2": "whole effect (L2)", "cosine": "direction (cosine)", "normdiff": "size (normdiff)"}
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
_SAID = {  # a look and its words in the legend
    "paper": "in the paper",
    "ours": "ours, or later",
    "released": "as released",
    "outside": "outside",
    "Zero": "Zero: nothing changes",
    "No concept": "No concept",
    "Random": "Random",
    "a second editor": "a second editor",
    "bound (L2)": "half of it: a bound (L2)",
}
_SILENCE, _WINNER = "Zero", "Approx"
_ENDS = 6  # directions at either end of the heat map that its title counts
_MARKS = ("o", "s", "D", "^", "v", "P", "X")


def plot_errors(table: pd.DataFrame, ceilings: pd.DataFrame) -> Plotted:
    """The error of every explainer: a column per distance, a row per data set and model (CEBaB
    Figure 2, with intervals). A row is named by what differs between rows. The best of the first
    row by its first distance stands on top.

    Args:
        table: dataset, model, explainer, family (floor, paper, ours, released or outside), metric,
            error, low, high. Distances are drawn in their order.
        ceilings: dataset, model, metric, error, low, high: how far two editors are apart, drawn
            with its interval, and as metric "bound" the error of L2 that nobody can go below.
    """
    panels = table[["dataset", "model"]].drop_duplicates().to_records(index=False)
    metrics = list(dict.fromkeys(table["metric"]))
    differ = [name for name in ("dataset", "model") if table[name].nunique() > 1] or ["model"]
    colon = ":\n" if "dataset" in differ else ": "  # a data set's name needs a line of its own
    first = _rows_of(table[table["metric"] == metrics[0]], *panels[0]).sort_values("error")
    asked = table.loc[table["family"] != "floor", "explainer"]
    names = list(dict.fromkeys([*first["explainer"][first["family"] != "floor"], *asked]))
    with plt.rc_context({**_SCREEN, "axes.titlesize": 9}):
        figure, axes = plt.subplots(
            len(panels),
            len(metrics),
            sharex="col",
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(7.4, (0.165 * len(names) + 0.5) * len(panels) + 1.3),
        )
        for (row, column), ax in np.ndenumerate(axes):
            (dataset, model), metric = panels[row], metrics[column]
            head = ", ".join(panels[row][name] for name in differ)
            measured = table[table["metric"] == metric]
            rows = _rows_of(measured, dataset, model)
            _draw_errors(ax, rows, names)
            _draw_ceiling(ax, _rows_of(ceilings, dataset, model).set_index("metric"), metric)
            ax.set_title(f"{head}{colon}{_TITLES.get(metric, metric)}")
            ax.set_xlim(0, 1.05 * measured[["error", "high"]].max().max())
            missing = [y for y, name in enumerate(names) if name not in set(rows["explainer"])]
            _say_not_run(ax, missing)
        axes[0, 0].set_ylim(len(names) - 0.4, -0.6)  # the best on top, no mark on the frame
        axes[-1, len(metrics) // 2].set_xlabel("mean error: further left is better", fontsize=9)
        figure.suptitle(_about_silence(table), fontsize=10)
        _add_legend(figure, set(table["family"]))
    return figure, table[
        ["dataset", "model", "explainer", "family", "metric", "error", "low", "high"]
    ]


def plot_directions(
    table: pd.DataFrame, value: str, aspects: Sequence[str], values: Mapping[str, str]
) -> Plotted:
    """A heat map of how much every explainer errs beyond the answer that nothing changes:
    explainers down, the best on top; aspect and direction across, the largest effect first; a panel
    per data set. A dot marks a cell that is worse than that answer.

    Args:
        table: dataset, explainer, aspect, old, new and `value`, one row each; with the explainer
            Zero, whose error is the size of the effect.
        value: the error that is drawn.
        aspects: the aspects.
        values: the values of an aspect, each with a sign that stands for it.
    """
    changes = product(aspects, values, values)
    names = {(aspect, a, b): f"{aspect} {values[a]} → {values[b]}" for aspect, a, b in changes}
    drawn = list(zip(table["aspect"], table["old"], table["new"]))
    table = table.assign(direction=[names[change] for change in drawn])
    datasets = list(dict.fromkeys(table["dataset"]))
    sizes = table.drop_duplicates(["explainer", "direction"])
    across, down = sizes["direction"].nunique(), sizes["explainer"].nunique()
    with plt.rc_context({**_SCREEN, "axes.grid": False}):
        figure, axes = plt.subplots(
            len(datasets),
            1,
            squeeze=False,
            layout="constrained",
            figsize=(0.2 * across + 2.8, (0.165 * down + 1.7) * len(datasets)),
        )
        for ax, dataset in zip(axes[:, 0], datasets, strict=True):
            wide = table[table["dataset"] == dataset].pivot_table(
                index="explainer", columns="direction", values=value
            )
            image = _draw_directions(ax, wide)
            ax.set_title(_about_sizes(wide), fontsize=10, loc="right")
        signs = ", ".join(f"{sign} {name}" for name, sign in values.items())
        axes[-1, 0].set_xlabel(f"aspect and change: {signs}")
        label = f"{value} error minus that of Zero; dots: worse than Zero"
        figure.colorbar(image, ax=axes, label=label, shrink=0.8, extend="both")
    return figure, table[["dataset", "explainer", "aspect", "old", "new", value]]


def plot_three_effects(table: pd.DataFrame, label: str, title: str = "") -> Plotted:
    """What the world, a model and explainers say of one change: a column per data set, a row of
    marks per aspect.

    Args:
        table: dataset, aspect, who, stars; `who` is drawn in its order, at most seven.
        label: the change, and the unit of its effect.
        title: what the figure shows.
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
        figure.suptitle(title, fontsize=10)
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
    ax.set_yticks(range(len(names)), names, fontsize=8)
    for tick in ax.get_yticklabels():
        tick.set_fontweight("bold" if tick.get_text() == _WINNER else "normal")


def _draw_ceiling(ax: plt.Axes, ceilings: pd.DataFrame, metric: str) -> None:
    if metric in ceilings.index and np.isfinite(ceilings.loc[metric, "error"]):
        ceiling = ceilings.loc[metric]
        ax.axvline(ceiling["error"], **_CEILING)
        ax.axvspan(
            ceiling["low"], ceiling["high"], color=_CEILING["color"], alpha=0.12, linewidth=0
        )
    if metric == "L2" and "bound" in ceilings.index:
        ax.axvline(ceilings.loc["bound", "error"], **_BOUND)


def _say_not_run(ax: plt.Axes, rows: Sequence[int]) -> None:
    """The words "not run" in rows without a mark, in the widest gap between lines and bands."""
    upright = [np.ravel(line.get_xdata()) for line in ax.lines]
    edges = [float(x[0]) for x in upright if len(x) == 2 and x[0] == x[1]]
    for band in ax.patches:
        edges += band.get_patch_transform().transform(band.get_path().vertices)[:, 0].tolist()
    at = np.unique(np.clip([*ax.get_xlim(), *edges], *ax.get_xlim()))
    widest = int(np.argmax(np.diff(at)))
    middle = at[widest : widest + 2].mean()
    box: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}  # hides the grid
    for y in rows:
        told = ax.text(middle, y, "not run", fontsize=7, ha="center", va="center", color="0.35")
        told.set_bbox(box)


def _draw_directions(ax: plt.Axes, wide: pd.DataFrame) -> AxesImage:
    """Errors (explainer x direction) beyond those of silence, as colours and dots."""
    silence = wide.loc[_SILENCE] if _SILENCE in wide.index else wide.median()
    across = silence.sort_values(ascending=False, kind="stable").index
    down = wide.mean(axis=1).sort_values(kind="stable").index
    beyond = (wide - silence).loc[down, across]
    image = ax.imshow(beyond, cmap="RdBu_r", aspect="auto", vmin=-0.5, vmax=0.5)
    y, x = np.nonzero(beyond.to_numpy() > 0)
    ax.plot(x, y, ".", color="0.15", markersize=2.5)
    ax.set_yticks(range(len(down)), down, fontsize=8)
    ax.set_xticks(range(len(across)), across, rotation=90, fontsize=8)
    return image


def _about_silence(table: pd.DataFrame) -> str:
    """The title of the errors: is the paper's best explainer better than silence by L2?"""
    errors = table[table["metric"] == "L2"].set_index(["dataset", "model", "explainer"])["error"]
    wide = errors.unstack("explainer")
    if not {_WINNER, _SILENCE} <= set(wide):
        return "Errors of the explainers"
    n_worse = int((wide[_WINNER] > wide[_SILENCE]).sum())
    if len(wide) == 1:
        size = "larger" if n_worse else "smaller"
        return f'Approx, best in the paper, has a {size} L2 error than "nothing changes"'
    one_model = wide.index.get_level_values("model").nunique() == 1
    kind = "data set" if one_model else "model"
    said = {0: f"no {kind}", len(wide): f"every {kind}"}.get(
        n_worse, f"{n_worse} of {len(wide)} {kind}s"
    )
    return f'Approx, best in the paper, has a larger L2 error than "nothing changes" on {said}'


def _about_sizes(wide: pd.DataFrame) -> str:
    """The title of the heat map: who beats silence at large and at small effects?"""
    if _SILENCE not in wide.index:
        return "Errors by direction, beyond their median"
    across = wide.loc[_SILENCE].sort_values(ascending=False).index
    others = wide.drop(index=_SILENCE)
    large, small = (
        int((others[ends].mean(axis=1) < wide.loc[_SILENCE, ends].mean()).sum())
        for ends in (across[:_ENDS], across[-_ENDS:])
    )
    return (
        f"{large} of {len(others)} explainers err less than Zero at the {_ENDS} largest "
        f"effects, {small} at the {_ENDS} smallest"
    )


def _add_legend(figure: plt.Figure, families: set[str]) -> None:
    known = {name: look for name, look in (_FAMILY | _OUTSIDE).items() if name in families}
    looks = known | _FLOORS | {"a second editor": _CEILING, "bound (L2)": _BOUND}
    handles: list[Artist] = [
        Line2D([], [], label=_SAID[name], **look) for name, look in looks.items()
    ]
    handles += [
        Line2D([], [], color="0.5", linewidth=1, label="95 % interval of an explainer"),
        Patch(color=_CEILING["color"], alpha=0.12, label="95 % interval of the second editor"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncol=4, frameon=False, fontsize=8)
