"""The figures of lm_saliency: finished tables in, figures out. Nothing is computed here.

Titles say what a table shows, so the notebooks make them from the table.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.lines import Line2D

from ...plots import COLOURS, STYLE
from .naming import GRAMMAR, METHODS, MODELS, PROBES, names_of_settings

_LOOKS = dict(zip(METHODS, zip("osD", COLOURS)))
_ARCHITECTURES = dict(zip(("LSTM", "QRNN", "Transformer"), zip("osD", "^vP", COLOURS)))
_SETTINGS = tuple(zip("osD^vPX", COLOURS))  # of the sweep, the most common one first
_SCALES = {"all": "share of lines that pass", "input_consistency": "Pearson's correlation"}
_LARGEST = 110.0  # area of the largest mark of a sweep, in square points
_GREY = "0.55"
_BELOW = {"loc": "outside lower center", "frameon": False}
_HOLLOW = Line2D(
    [], [], marker="o", ls="", color="0.3", mfc="white", label="hollow: not learnt, or not known"
)
_INTERVAL = Line2D([], [], color="0.3", label="line: 95 % interval")


def plot_sets(statistics: pd.DataFrame, distances: pd.DataFrame, title: str) -> plt.Figure:
    """What two rules pass in each set, and how far the marked nouns are from the predicted word.

    Args:
        statistics: set, random, nearest (shares of lines that pass the expected test).
        distances: set, side (cues, attractors), words (between noun and prediction), share.
        title: the first line.
    """
    names, top = list(statistics["set"]), 1.05 * distances["share"].max()
    rules = statistics.rename(columns={"random": "random scores", "nearest": "the nearest noun"})
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(names) + 1, figsize=(11, 3.4), layout="constrained")
        long = rules.melt("set", ["random scores", "the nearest noun"], "rule", "share")
        looks = {"edgecolor": "0.2", "legend": True}
        sns.barplot(long, y="set", x="share", hue="rule", palette=COLOURS[:2], ax=axes[0], **looks)
        axes[0].set(xlabel="lines that the rule passes", ylabel="", xlim=(0, 1))
        for ax, name in zip(axes[1:], names):
            part = distances[distances["set"] == name]
            sns.barplot(
                part,
                x="words",
                y="share",
                hue="side",
                hue_order=["cues", "attractors"],
                palette=COLOURS[2:4],
                ax=ax,
                **looks,
            )
            ax.set(title=name, xlabel="words in between", ylim=(0, top))
            ax.set_ylabel("share of lines" if ax is axes[1] else "")
        handles = []
        for ax, hatches in ((axes[0], ("", "//")), *((ax, ("", "..")) for ax in axes[1:])):
            for bars, hatch in zip(ax.containers, hatches):
                for bar in bars:
                    bar.set_hatch(hatch)
            if ax in axes[:2]:
                handles += ax.containers
            ax.get_legend().remove()
        labels = ["random scores", "the nearest noun", "last cue", "last attractor (9: 9 or more)"]
        figure.legend([bars[0] for bars in handles], labels, ncols=4, **_BELOW)
        figure.suptitle(title)
    return figure


def plot_training(curves: pd.DataFrame, probes: pd.DataFrame, title: str) -> plt.Figure:
    """Perplexity by pass, and each probe's accuracy with its interval.

    Args:
        curves: architecture, size (full, student), epoch, perplexity; one training of each.
        probes: architecture, size, kind, accuracy, low, high, majority, learnt.
        title: the first line.
    """
    with plt.rc_context(STYLE):
        size = 10, 2.7 + 0.2 * len(probes)
        figure, (left, right) = plt.subplots(1, 2, figsize=size, layout="constrained")
        for (name, size_of), curve in curves.groupby(["architecture", "size"], sort=False):
            marker, colour = _look_of(name, size_of)
            left.plot(
                curve["epoch"],
                curve["perplexity"],
                marker=marker,
                color=colour,
                label=f"{name}, {MODELS.get(size_of, size_of)}",
                linestyle="-" if size_of == "full" else "--",
            )
        left.set(xlabel="pass over the corpus", ylabel="perplexity (lower is better)")
        left.locator_params("x", integer=True)
        left.legend(frameon=False)
        for y, r in enumerate(probes.itertuples()):
            _estimate(right, r.accuracy, y, r, *_look_of(r.architecture, r.size))
            right.plot([r.majority] * 2, [y - 0.35, y + 0.35], color="0.2")
        names = [
            f"{r.architecture}, {MODELS.get(r.size, r.size)}: {PROBES.get(r.kind, r.kind)}"
            for r in probes.itertuples()
        ]
        right.set(yticks=range(len(names)), yticklabels=names, xlim=(0.4, 1))
        right.set(xlabel="accuracy of the probe")
        right.invert_yaxis()
        keys = [Line2D([], [], color="0.2", marker="|", ls="", ms=9, label="share of larger class")]
        if "matched" in set(probes["kind"]):
            told = "matched: examples in which the nearest noun is no clue"
            keys.append(Line2D([], [], ls="", label=told))
        figure.legend(handles=[_INTERVAL, _HOLLOW, *keys], ncols=4, **_BELOW)
        figure.suptitle(title)
    return figure


def plot_plausibility(table: pd.DataFrame, floors: pd.DataFrame, title: str) -> plt.Figure:
    """How many lines each method passes in each set and model, beside two rules and the paper.

    Args:
        table: dataset, scheme (the architecture), method, all, low, high, learnt; if wanted paper,
            what the paper prints there.
        floors: dataset, scheme, random, nearest: what the rules pass, for what this model answers.
        title: the first line.
    """
    table = table[table["method"].isin(METHODS)]
    names, schemes = list(table["dataset"].unique()), list(table["scheme"].unique())
    has_paper = "paper" in table and table["paper"].notna().any()  # its marks stand below ours
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            len(names),
            figsize=(11, 1.8 + (1.1 if has_paper else 0.8) * len(schemes)),
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for ax, name in zip(axes[0], names):
            for r in floors[floors["dataset"] == name].itertuples():
                y = schemes.index(r.scheme)
                for value, style in ((r.random, ":"), (r.nearest, "--")):
                    ax.plot([value] * 2, [y - 0.4, y + 0.4], color="0.3", ls=style, lw=1.6)
            for r in table[table["dataset"] == name].itertuples():
                marker, colour = _LOOKS[r.method]
                height = schemes.index(r.scheme) + _aside(r.method)
                _estimate(ax, r.all, height, r, marker, colour)
                if pd.notna(paper := getattr(r, "paper", None)):
                    ax.plot(paper, height + 0.11, marker=marker, color=_GREY, ls="", ms=4)
            ax.set(title=name, xlim=(-0.03, 1.03), xlabel="share of lines that pass")
            ax.set(yticks=range(len(schemes)), yticklabels=schemes)
        axes[0][0].invert_yaxis()
        keys = [
            *_key_of(_LOOKS, METHODS),
            _INTERVAL,
            _HOLLOW,
            Line2D([], [], color="0.3", ls=":", label="random scores"),
            Line2D([], [], color="0.3", ls="--", label="the nearest noun"),
        ]
        if has_paper:
            label = "grey, below: the paper, same method"
            keys.append(Line2D([], [], marker="o", ls="", ms=4, color=_GREY, label=label))
        figure.legend(handles=keys, ncols=4, **_BELOW)
        figure.suptitle(title)
    return figure


def plausibility_title(table: pd.DataFrame, floors: pd.DataFrame) -> str:
    """What `plot_plausibility` shows of the same tables, as a sentence."""
    named = table[table["method"].eq("IG") & table["learnt"].astype(bool)]
    rows = named.merge(floors[["dataset", "scheme", "nearest"]], on=["dataset", "scheme"])
    if rows.empty:
        return "No model has learnt a set, so nothing is said about methods"
    n_above = int((rows["low"] > rows["nearest"]).sum())
    return (
        "Where a model has learnt its set, Integrated Gradients is clearly above the nearest noun "
        f"in {n_above} of {len(rows)} cases"
    )


def plot_consistency(
    panels: Mapping[str, pd.DataFrame], learnt: Mapping[tuple[str, str], bool], title: str
) -> plt.Figure:
    """Correlations of explanations by set, model and method, one panel a kind of consistency.

    Args:
        panels: by what is compared: dataset, scheme, method, estimate, low, high.
        learnt: whether a model has learnt a set, by both names.
        title: the first line.
    """
    every = pd.concat(panels.values())
    left = min(-0.2, every.loc[every["method"].isin(METHODS), "low"].min() - 0.05)
    places = list(dict.fromkeys(zip(every["dataset"], every["scheme"])))
    places.sort(key=lambda place: list(learnt).index(place))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            len(panels),
            figsize=(10, 1.6 + 0.36 * len(places)),
            sharey=True,
            layout="constrained",
        )
        for ax, (heading, part) in zip(axes, panels.items()):
            for r in part[part["method"].isin(METHODS)].itertuples():
                height = places.index((r.dataset, r.scheme)) + _aside(r.method)
                is_learnt = learnt[r.dataset, r.scheme]
                _estimate(ax, r.estimate, height, r, *_LOOKS[r.method], is_learnt=is_learnt)
            here = set(zip(part["dataset"], part["scheme"]))
            for y, place in enumerate(places):
                if place not in here:
                    ax.text(0.5, y, "not compared", color=_GREY, ha="center", va="center")
            ax.axvline(0, color="0.3", linewidth=0.8)
            ax.set(title=heading, xlim=(left, 1.05), xlabel="Pearson's correlation")
            ax.set(yticks=range(len(places)), yticklabels=[f"{a}, {b}" for a, b in places])
        axes[0].invert_yaxis()
        figure.legend(handles=[*_key_of(_LOOKS, METHODS), _INTERVAL, _HOLLOW], ncols=5, **_BELOW)
        figure.suptitle(title)
    return figure


def plot_astray(table: pd.DataFrame, title: str) -> plt.Figure:
    """Right answers for which no method points at a cue, of each model and its student.

    Args:
        table: dataset, scheme, size (full, student), estimate, low, high, learnt.
        title: the first line.
    """
    places = list(dict.fromkeys(zip(table["dataset"], table["scheme"])))
    looks = {"full": ("o", COLOURS[0]), "student": ("s", COLOURS[1])}
    with plt.rc_context(STYLE):
        size = 8, 1.6 + 0.36 * len(places)
        figure, ax = plt.subplots(figsize=size, layout="constrained")
        for r in table.itertuples():
            height = places.index((r.dataset, r.scheme)) + (0.15 if r.size == "student" else -0.15)
            _estimate(ax, r.estimate, height, r, *looks[r.size])
        ax.set(yticks=range(len(places)), yticklabels=[f"{a}, {b}" for a, b in places])
        left = -0.02 * table["high"].max()  # room for the marks at 0
        ax.set(xlabel="share of its right answers", xlim=(left, None))
        ax.invert_yaxis()
        keys = _key_of(looks, {"full": "model", "student": "its student"})
        figure.legend(handles=[*keys, _INTERVAL, _HOLLOW], ncols=4, **_BELOW)
        figure.suptitle(title)
    return figure


def plot_sweep(panels: Sequence[tuple[str, pd.DataFrame, str]], title: str) -> plt.Figure:
    """One mark for each small Transformer: depth, setting, and size.

    Args:
        panels: heading, rows (size such as 8l_384w_192e_4h, layers, parameters, learnt, low, high),
            and the column that is drawn, which low and high belong to. Panels without rows are left
            out.
        title: the first line.
    """
    panels = [panel for panel in panels if len(panel[1])] or panels[:1]
    every = pd.concat([rows for _, rows, _ in panels])
    names = names_of_settings(list(every["size"]))
    settings = sorted(set(names.values()), key=lambda name: ("," not in name, name))
    looks = dict(zip(settings, _SETTINGS))
    depths, shown = sorted(every["layers"].unique()), ""
    bottom = min([1, *every["low"].dropna()]) - 0.05 if len(every) else 0
    top = max([0, *every["high"].dropna()]) + 0.05 if len(every) else 1
    with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
        figure, axes = plt.subplots(
            1, len(panels), figsize=(11, 4.2), sharey=True, squeeze=False, layout="constrained"
        )
        for ax, (heading, rows, column) in zip(axes[0], panels):
            for r in rows.itertuples():
                setting = names[r.size]
                x = depths.index(r.layers) + 0.12 * (
                    settings.index(setting) - (len(settings) - 1) / 2
                )
                marker, colour = looks[setting]
                ax.plot([x, x], [r.low, r.high], color=colour, lw=1.5)
                area = _LARGEST * r.parameters / every["parameters"].max()
                fill = colour if r.learnt else "white"
                edge = "black" if r.learnt else colour  # the few that have learnt stand out
                ax.scatter(
                    x,
                    getattr(r, column),
                    s=area,
                    marker=marker,
                    color=fill,
                    edgecolors=[edge],
                    zorder=4 if r.learnt else 3,
                )
            if rows.empty:
                ax.text(0.5, 0.5, "not probed", transform=ax.transAxes, ha="center")
            ax.set(title=heading, xlabel="layers", ylim=(bottom, top))
            ax.set(
                xticks=range(len(depths)),
                xticklabels=depths,
                xlim=(-0.6, max(len(depths), 1) - 0.4),
            )
            if column != shown:
                ax.set_ylabel(_SCALES[column])
                ax.tick_params(labelleft=True)
                shown = column
        label = "larger: more parameters"
        size = Line2D([], [], marker="o", ls="", color="0.3", ms=11, label=label)
        keys = [*_key_of(looks, {name: name for name in settings}), _INTERVAL, _HOLLOW, size]
        if every["learnt"].any():
            label = "filled, black edge: learnt"
            keys.append(Line2D([], [], marker="o", ls="", color="0.7", mec="black", label=label))
        figure.legend(handles=keys, ncols=4, **_BELOW)
        figure.suptitle(title)
    return figure


def _look_of(architecture: str, size: str) -> tuple[str, object]:
    """Marker and colour of a model; its student has the colour and a marker of its own, and so has
    the family that also reads the grammar.
    """
    plain = architecture.removesuffix(GRAMMAR)
    full, student, colour = _ARCHITECTURES.get(plain, ("p", "*", _GREY))
    if plain != architecture:
        return "X", colour
    return (student if size == "student" else full), colour


def _aside(method: str) -> float:
    """How far a method's mark is from the middle of its row."""
    return 0.25 * (list(METHODS).index(method) - 1)


def _estimate(
    ax: plt.Axes,
    value: float,
    y: float,
    row: object,
    marker: str,
    colour: object,
    is_learnt: bool | None = None,
) -> None:
    """A mark at its height, with the interval of the row; hollow where nothing is learnt."""
    learnt = getattr(row, "learnt", False) if is_learnt is None else is_learnt
    ax.plot([row.low, row.high], [y, y], color=colour)  # type: ignore[attr-defined]
    ax.plot(value, y, marker=marker, color=colour, mfc=colour if learnt else "white", ls="")


def _key_of(looks: Mapping[str, tuple[str, object]], names: Mapping[str, str]) -> list[Line2D]:
    """A legend's handles: marks in their colours, with what they mean."""
    return [
        Line2D([], [], marker=marker, color=colour, ls="", label=names[name])
        for name, (marker, colour) in looks.items()
    ]
