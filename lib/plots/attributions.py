"""Figures of attribution studies: each function draws a finished table and returns the figure with what it plotted.

Nothing is computed here. Colours are seaborn's colour-blind palette and never the only sign: markers, line styles,
hatches and labels say the same. Floors that see no model are drawn wherever models are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

Plotted = tuple[Figure, pd.DataFrame]

plt.switch_backend(
    plt.get_backend()
)  # loaded here: where a style is the first to load it, a notebook shows its first figure only
COLOURS = sns.color_palette("colorblind")
STYLE = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "figure.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "x",
    "grid.color": "0.9",
    "axes.axisbelow": True,
}
SCHEMES = (
    "ZS",
    "C",
    "CEf",
    "CE",
    "CEfAf",
    "OLA-CEA",
)  # the papers' order: more and more of the model is trained
METHODS = (
    "Integrated Gradients",
    "Gradient SHAP",
    "LIME",
    "InputXGradient",
    "DeepLift",
    "Guided Backprop",
    "Kernel SHAP",
    "Saliency",
)
FAMILIES = {
    "Integrated Gradients": "path",
    "Gradient SHAP": "path",
    "LIME": "sampling",
    "Kernel SHAP": "sampling",
}
FAMILY_LOOKS = {
    "gradient": ("o", COLOURS[0]),
    "path": ("D", COLOURS[3]),
    "sampling": ("s", COLOURS[2]),
    "own": ("^", COLOURS[4]),
}
FLOOR_LOOKS: dict[str, tuple[object, tuple[float, ...]]] = {
    "Uniform random": (":", COLOURS[7]),
    "First pronoun": ("--", COLOURS[1]),
    "Pronoun list": ("-.", (0.15, 0.15, 0.15)),
    "Pattern Variant": ((0, (5, 1, 1, 1, 1, 1)), COLOURS[9]),
    "First pronoun rule": ("--", COLOURS[1]),
    "Bag of words": ("-.", (0.15, 0.15, 0.15)),
    "Chance": (":", COLOURS[7]),
}
P_COLOURS = ListedColormap(
    ["#08306b", "#4a86c5", "#b5d3ea", "#f2f2f2"]
)  # p below .001, .01, alpha; the rest
BELOW = "below the first-pronoun rule"


def plot_mass_accuracy(
    table: pd.DataFrame, value: str = "MA", label: str = "mass accuracy"
) -> Plotted:
    """Mass accuracy of every method, a panel per data set and scheme, with the floors as lines (GECOBench Figure 2b).

    `table`: dataset, scheme, method, `value`, low, high and below_first_pronoun; floors carry scheme "-".
    """
    models, floors = table[table["scheme"] != "-"], table[table["scheme"] == "-"]
    figure, axes, methods = _panels(models, label)
    for (dataset, scheme), ax in axes.items():
        part = models[(models["dataset"] == dataset) & (models["scheme"] == scheme)]
        _dots(ax, part, value, methods)
        ax.set_xlim(min(0.0, np.nanmin(models["low"].fillna(0))), 1.04)
        for floor in floors[floors["dataset"] == dataset].itertuples():
            style, colour = FLOOR_LOOKS[floor.method]
            ax.axvline(
                getattr(floor, value), linestyle=style, color=colour, linewidth=1.4, zorder=1
            )
        _mark_below(ax, part)
    _legend(
        figure,
        _family_handles(models),
        {name: FLOOR_LOOKS[name] for name in floors["method"].unique()},
        bool(models["below_first_pronoun"].any()),
    )
    return figure, table[
        ["dataset", "scheme", "method", value, "low", "high", "below_first_pronoun"]
    ]


def plot_relative_mass_accuracy(table: pd.DataFrame) -> Plotted:
    """Median mass accuracy relative to the zero-shot model, a panel per data set and scheme (GECOBench Figure 2a).

    `table`: dataset, scheme, method, RMA, low, high, RMA_first_pronoun, RMA_uniform_random, below_first_pronoun. The line
    at 1 is the zero-shot model itself; the small strokes are what the floors reach over the same zero-shot values.
    """
    models = table[table["scheme"] != "ZS"]
    strokes = {"First pronoun": "RMA_first_pronoun", "Uniform random": "RMA_uniform_random"}
    figure, axes, methods = _panels(models, "median MA / MA of the zero-shot model")
    for (dataset, scheme), ax in axes.items():
        part = models[(models["dataset"] == dataset) & (models["scheme"] == scheme)]
        ax.axvline(1.0, color="0.3", linewidth=1.2, linestyle="--", zorder=1)
        _dots(ax, part, "RMA", methods)
        for name, column in strokes.items():
            ax.plot(
                part[column],
                _positions(part, methods),
                linestyle="",
                marker="|",
                markersize=9,
                markeredgewidth=2,
                color=FLOOR_LOOKS[name][1],
            )
        _mark_below(ax, part)
    handles = _family_handles(models) | {name: ("|", FLOOR_LOOKS[name][1]) for name in strokes}
    _legend(
        figure,
        handles,
        {"zero-shot model": ("--", (0.3, 0.3, 0.3))},
        bool(models["below_first_pronoun"].any()),
    )
    return figure, models[["dataset", "scheme", "method", "RMA", "low", "high", *strokes.values()]]


def plot_correlation(table: pd.DataFrame, n_words: int = 10) -> Plotted:
    """The words whose tf-idf correlates most with each class (GECOBench Figure 3); `table`: dataset, class, word, r."""
    top = table.sort_values(["dataset", "class", "r"], ascending=[True, True, False], kind="stable")
    top = top.groupby(["dataset", "class"], sort=False).head(n_words).reset_index(drop=True)
    datasets, classes = list(top["dataset"].unique()), list(top["class"].unique())
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            len(datasets),
            len(classes),
            sharex=True,
            squeeze=False,
            layout="constrained",
            figsize=(3.1 * len(classes), 0.25 * n_words * len(datasets) + 1),
        )
        for row, dataset in enumerate(datasets):
            for column, name in enumerate(classes):
                part = top[(top["dataset"] == dataset) & (top["class"] == name)]
                ax = axes[row, column]
                ax.barh(
                    range(len(part)),
                    part["r"],
                    color=COLOURS[column],
                    edgecolor="black",
                    linewidth=0.5,
                )
                ax.set(
                    yticks=range(len(part)),
                    yticklabels=part["word"],
                    title=f"{dataset}, class {name}",
                )
                ax.invert_yaxis()
        figure.supxlabel("Pearson correlation of a word's tf-idf with the class", fontsize=10)
    return figure, top


def plot_performance(table: pd.DataFrame) -> Plotted:
    """Test accuracy of every model with its interval, floors as lines (GECOBench Figure 4).

    `table`: dataset, scheme, accuracy, low, high, and the same for hard rows (accuracy_hard, low_hard, high_hard); floors
    are the rows whose scheme is not a training scheme. Hollow squares are hard rows, where the rule can only guess.
    """
    datasets = list(table["dataset"].unique())
    n_columns = min(2, len(datasets))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            -(-len(datasets) // n_columns),
            n_columns,
            sharex=True,
            squeeze=False,
            layout="constrained",
            figsize=(4.5 * n_columns, 2.6 * -(-len(datasets) // n_columns) + 0.6),
        )
        for ax, dataset in zip(axes.flat, datasets):
            part = table[table["dataset"] == dataset]
            models = _ordered(part[part["scheme"].isin(SCHEMES)], "scheme", SCHEMES)
            hard = models[["accuracy_hard", "low_hard", "high_hard"]].set_axis(
                ["accuracy", "low", "high"], axis=1
            )
            _interval_dots(ax, models, "accuracy", np.arange(len(models)) - 0.12, "o", COLOURS[0])
            _interval_dots(
                ax, hard, "accuracy", np.arange(len(models)) + 0.18, "s", "0.45", hollow=True
            )
            ax.set(
                yticks=range(len(models)),
                yticklabels=models["scheme"],
                title=dataset,
                ylim=(len(models) - 0.5, -0.5),
            )
            for floor in part[~part["scheme"].isin(SCHEMES)].itertuples():
                style, colour = FLOOR_LOOKS[floor.scheme]
                ax.axvline(floor.accuracy, linestyle=style, color=colour, linewidth=1.4)
        figure.supxlabel("test accuracy", fontsize=10)
        used = [name for name in FLOOR_LOOKS if name in set(table["scheme"])]
        _legend(
            figure,
            {"all rows": ("o", COLOURS[0]), "hard rows": ("s", "0.45", "hollow")},
            {name: FLOOR_LOOKS[name] for name in used},
            False,
        )
    return figure, table


def plot_example(table: pd.DataFrame) -> Plotted:
    """Each word's share of the attribution of one sentence, a bar panel per method and scheme (GECOBench Figure 5).

    `table`: scheme, method, position, word, share, is_truth. Ground-truth words are green and hatched, and bold
    below. Floors (scheme "-") stand in the last column.
    """
    models, floors = (
        table[table["scheme"] != "-"],
        list(table.loc[table["scheme"] == "-", "method"].unique()),
    )
    schemes = _known_first(models["scheme"].unique(), SCHEMES) + (["-"] if floors else [])
    methods = _known_first(models["method"].unique(), METHODS)
    words = table.drop_duplicates("position").sort_values("position")
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, axes = plt.subplots(
            len(methods),
            len(schemes),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=((0.135 * len(words) + 0.15) * len(schemes) + 2.4, 0.62 * len(methods) + 1.6),
        )
        for (row, column), ax in np.ndenumerate(axes):
            is_floor = schemes[column] == "-"
            shown = (floors[row] if row < len(floors) else "") if is_floor else methods[row]
            part = table[
                (table["method"] == shown) & (table["scheme"] == schemes[column])
            ].sort_values("position")
            bars = ax.bar(
                part["position"],
                part["share"],
                color=[COLOURS[2] if t else "0.65" for t in part["is_truth"]],
            )
            for bar, is_truth in zip(bars, part["is_truth"]):
                bar.set_hatch("//" if is_truth else "")
            ax.set(ylim=(0, 1), yticks=[0, 1])
            ax.set_xticks(words["position"], words["word"], rotation=90, fontsize=9)
            for tick, is_truth in zip(ax.get_xticklabels(), words["is_truth"]):
                tick.set_fontweight("bold" if is_truth else "normal")
            if row == 0:
                ax.set_title(_scheme_label(schemes[column]))
            if is_floor and not shown:
                ax.set_axis_off()
            elif is_floor:
                ax.text(1.03, 0.5, shown, transform=ax.transAxes, va="center", fontsize=9)
            if column == 0:
                ax.set_ylabel(methods[row], rotation=0, ha="right", va="center")
        handles = [
            Patch(facecolor=COLOURS[2], hatch="//", label="changed with the gender (ground truth)"),
            Patch(facecolor="0.65", label="the same in all forms"),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    plotted = table.pivot_table(
        index=["scheme", "method"], columns="position", values="share", sort=False
    )
    return figure, plotted.rename(
        columns=lambda i: f"{i} {words.set_index('position')['word'][i]}"
    ).reset_index()


def plot_form_difference(table: pd.DataFrame) -> Plotted:
    """Attribution in the female minus that in the male form, ground-truth words and others (first version, Figure 7).

    `table`: dataset, scheme, method, words ("truth" or "other"), difference, low, high, below_first_pronoun.
    """
    table = table[table["words"].isin(["truth", "other"])]
    figure, axes, methods = _panels(table, "attribution per word, female minus male form")
    looks = {"truth": ("D", COLOURS[2], -0.15), "other": ("o", "0.55", 0.15)}
    for (dataset, scheme), ax in axes.items():
        ax.axvline(0.0, color="0.3", linewidth=1.0, zorder=1)
        for words, (marker, colour, shift) in looks.items():
            part = table[
                (table["dataset"] == dataset)
                & (table["scheme"] == scheme)
                & (table["words"] == words)
            ]
            _interval_dots(
                ax, part, "difference", _positions(part, methods) + shift, marker, colour
            )
        _mark_below(ax, table[(table["dataset"] == dataset) & (table["scheme"] == scheme)])
    names = {"truth": "ground-truth words", "other": "other words"}
    _legend(
        figure,
        {names[w]: (m, c) for w, (m, c, _) in looks.items()},
        {},
        bool(table["below_first_pronoun"].any()),
    )
    return figure, table[["dataset", "scheme", "method", "words", "difference", "low", "high"]]


def plot_significance(table: pd.DataFrame, alpha: float = 0.05) -> Plotted:
    """Holm-corrected p values as a heat map, methods by schemes, a panel per data set (first version, Figure 8).

    `table`: dataset, scheme, method, p_holm. Dark is significant; the number in a cell is the p value; floors stand
    in a column of their own.
    """
    datasets = list(table["dataset"].unique())
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, axes = plt.subplots(
            1,
            len(datasets),
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(4.9 * len(datasets) + 1, 3.8),
        )
        for ax, dataset in zip(axes[0], datasets):
            part = table[table["dataset"] == dataset]
            wide = method_grid(part, "p_holm").droplevel("dataset").rename(columns=_scheme_label)
            steps = np.digitize(wide, [0.001, 0.01, alpha]).astype(float)
            texts = wide.map(
                lambda p: (
                    ""
                    if np.isnan(p)
                    else "<.001"
                    if p < 0.001
                    else f"{p:.3f}"[1:]
                    if p < 0.9995
                    else "1"
                )
            )
            sns.heatmap(
                pd.DataFrame(steps, wide.index, wide.columns).where(wide.notna()),
                ax=ax,
                cmap=P_COLOURS,
                vmin=0,
                vmax=3,
                annot=texts,
                fmt="",
                cbar=False,
                linewidths=1,
                annot_kws={"fontsize": 9},
            )
            ax.set(title=dataset, xlabel="", ylabel="")
            ax.tick_params(axis="y", rotation=0, length=0)
            ax.tick_params(axis="x", labelsize=9, length=0)
        handles = [
            Patch(facecolor=P_COLOURS(i), edgecolor="0.6", label=label)
            for i, label in enumerate(("p < .001", "p < .01", f"p < {alpha:g}", "not significant"))
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    return figure, table[["dataset", "scheme", "method", "p_holm"]]


def method_grid(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """A table with methods down and schemes across, in the order of the figures; floors are in the column `-`."""
    grid = table.pivot(index=["dataset", "method"], columns="scheme", values=value)
    rows = [
        (d, m)
        for d in table["dataset"].unique()
        for m in _known_first(table["method"].unique(), METHODS)
    ]
    return grid.reindex(
        index=[row for row in rows if row in grid.index],
        columns=_known_first(table["scheme"].unique(), SCHEMES),
    )


def _panels(
    table: pd.DataFrame, label: str
) -> tuple[Figure, dict[tuple[str, str], Axes], list[str]]:
    """A grid of panels, data sets down and schemes across, methods on the shared y axis."""
    datasets, schemes = (
        list(table["dataset"].unique()),
        _known_first(table["scheme"].unique(), SCHEMES),
    )
    methods = _known_first(table["method"].unique(), METHODS)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            len(datasets),
            len(schemes),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(1.45 * len(schemes) + 2.4, len(datasets) * (0.27 * len(methods) + 0.6) + 1),
        )
        grid = {(d, s): axes[i, j] for i, d in enumerate(datasets) for j, s in enumerate(schemes)}
        for (dataset, scheme), ax in grid.items():
            ax.set_title(f"{dataset}, {_scheme_label(scheme)}")
            ax.set_yticks(range(len(methods)), methods)
            ax.set_ylim(len(methods) - 0.4, -0.6)
        figure.supxlabel(label, fontsize=10)
    return figure, grid, methods


def _dots(ax: Axes, part: pd.DataFrame, value: str, methods: list[str]) -> None:
    for family, (marker, colour) in FAMILY_LOOKS.items():
        own = part[part["method"].map(_family) == family]
        _interval_dots(ax, own, value, _positions(own, methods), marker, colour)


def _interval_dots(
    ax: Axes,
    part: pd.DataFrame,
    value: str,
    y: np.ndarray,
    marker: str,
    colour: object,
    hollow: bool = False,
) -> None:
    x = part[value].to_numpy(float)
    reach = np.nan_to_num([x - part["low"].to_numpy(float), part["high"].to_numpy(float) - x]).clip(
        min=0
    )
    ax.errorbar(
        x,
        y,
        xerr=reach,
        fmt=marker,
        color=colour,
        markersize=5,
        linewidth=1.4,
        capsize=2,
        zorder=3,
        markerfacecolor="white" if hollow else colour,
    )


def _positions(part: pd.DataFrame, methods: list[str]) -> np.ndarray:
    return np.array([methods.index(method) for method in part["method"]], dtype=float)


def _mark_below(ax: Axes, part: pd.DataFrame) -> None:
    if len(part) and part["below_first_pronoun"].any():
        ax.set_facecolor("0.93")
        ax.set_title(ax.get_title() + " \N{DAGGER}", fontsize=10)


def _scheme_label(scheme: str) -> str:
    return "no model" if scheme == "-" else scheme


def _family(method: str) -> str:
    return FAMILIES.get(method, "gradient" if method in METHODS else "own")


def _family_handles(models: pd.DataFrame) -> dict[str, tuple[object, ...]]:
    used = {_family(method) for method in models["method"]}
    return {f"{family} method": look for family, look in FAMILY_LOOKS.items() if family in used}


def _legend(
    figure: Figure,
    markers: Mapping[str, tuple[object, ...]],
    lines: Mapping[str, tuple[object, object]],
    has_below: bool,
) -> None:
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=m,
            color=c,
            markerfacecolor="white" if hollow else c,
            label=name,
        )
        for name, (m, c, *hollow) in markers.items()
    ]
    handles += [Line2D([], [], linestyle=s, color=c, label=name) for name, (s, c) in lines.items()]
    if has_below:
        handles.append(Patch(facecolor="0.93", edgecolor="0.6", label=f"\N{DAGGER} {BELOW}"))
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(5, len(handles)),
        frameon=False,
        fontsize=9,
    )


def _known_first(names: Sequence[str], order: Sequence[str]) -> list[str]:
    return [n for n in order if n in set(names)] + [
        n for n in dict.fromkeys(names) if n not in order
    ]


def _ordered(table: pd.DataFrame, column: str, order: Sequence[str]) -> pd.DataFrame:
    return table.sort_values(column, key=lambda names: names.map(list(order).index), kind="stable")
