"""Figures about what a model uses: do yardsticks agree, does an explanation look at the model, does
it find a planted word.
"""

import re
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from .panels import BARS, METHOD_ORDER, draw_dots, known_first, method_label, scheme_label
from .style import COLOURS, STYLE, Plotted

_YARDSTICKS = {
    "MA": "mass accuracy",
    "rank_signed": "word swaps",
    "NAOPC": "deletion score",
}
_UNSIGNED = {"Saliency": ("o", COLOURS[0]), "Guided Backprop": ("s", COLOURS[1])}
_KINDS = {"rank_signed": "signs kept", "rank_size": "signs dropped"}


def plot_yardsticks(table: pd.DataFrame) -> Plotted:
    """Rank correlations of pairs of yardsticks with their intervals, a panel per model.

    Args:
        table: scheme, over ("methods", or "rows": within a row), left, right, estimate, low, high,
            n_methods, n_sentences.
    """
    left, right = table["left"].replace(_YARDSTICKS), table["right"].replace(_YARDSTICKS)
    named = table.assign(pair=left + ", " + right)
    schemes, pairs = list(named["scheme"].unique()), list(named["pair"].unique())
    looks = {"methods": ("o", COLOURS[0], -0.14, False), "rows": ("s", "0.45", 0.14, True)}
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            len(schemes),
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(2.8 + 2.2 * len(schemes), 1.7 + 0.27 * len(pairs)),
        )
        for ax, scheme in zip(axes[0], schemes):
            for over, (marker, colour, shift, hollow) in looks.items():
                part = named[(named["scheme"] == scheme) & (named["over"] == over)]
                y = part["pair"].map(pairs.index).to_numpy(float) + shift
                draw_dots(ax, part, "estimate", y, marker, colour, hollow)
            ax.axvline(0, color="0.3", linewidth=1)
            ax.set(title=scheme_label(scheme, 40), xlim=(-1.05, 1.05), xticks=(-1, 0, 1))
            ax.set(yticks=range(len(pairs)), yticklabels=pairs, ylim=(len(pairs) - 0.5, -0.5))
        n_methods, n_sentences = table["n_methods"].max(), table["n_sentences"].max()
        figure.supxlabel(
            f"rank correlation of two yardsticks, {n_methods:.0f} methods, {n_sentences} base "
            f"sentences\nthe line at 0: unrelated; {BARS}",
            fontsize=10,
        )
        names = {"methods": "over methods", "rows": "within a row"}
        handles = [
            plt.Line2D([], [], linestyle="", marker=m, color=c, mfc="white" if h else c, label=n)
            for n, (m, c, _, h) in zip(names.values(), looks.values())
        ]
        first = (named["left"] == "MA") & (named["right"] == "rank_signed")
        clear = named[first & (named["over"] == "methods") & (named["low"] > 0)]
        figure.legend(
            handles=handles,
            loc="outside upper center",
            ncol=2,
            frameon=False,
            title=f"Mass accuracy and word swaps order the methods alike on {len(clear)} of "
            f"{len(schemes)} models (interval above 0)",
            title_fontsize=11,
        )
    return figure, table


def plot_randomisation(table: pd.DataFrame) -> Plotted:
    """Likeness to the explanation of the trained model as more and more of it is made random, a row
    of panels per model.

    Methods without signs have marks of their own; the others are grey lines.

    Args:
        table: model, step, part, method, measure (rank_signed or rank_size), estimate, low, high.
    """
    models = list(table["model"].unique())
    with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
        figure, axes = plt.subplots(
            len(models),
            len(_KINDS),
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(9.4, 2.9 * len(models) + 0.9),
        )
        for row, model in zip(axes, models):
            for ax, (measure, kind) in zip(row, _KINDS.items()):
                part = table[(table["model"] == model) & (table["measure"] == measure)]
                _draw_likeness(ax, part)
                ax.set_title(f"{scheme_label(model, 40)}, {kind}")
            row[0].set_ylabel("rank correlation with the\ntrained model's scores")
        below = f"random so far: this part and all to the left of it; {BARS}"
        figure.supxlabel(below, fontsize=10)
        handles, names = axes[0][0].get_legend_handles_labels()
        shown = dict(zip(names, handles))
        head = table[(table["step"] == 1) & (table["measure"] == "rank_signed")]
        in_all = (head["low"] > 0).groupby(head["method"]).all()
        alike = known_first(in_all.index[in_all], METHOD_ORDER)
        figure.legend(
            shown.values(),
            shown,
            loc="outside upper center",
            ncols=len(shown),
            frameon=False,
            title=_about_head(alike, head["method"].nunique()),
            title_fontsize=11,
        )
    return figure, table


def _about_head(alike: Sequence[str], n_methods: int) -> str:
    """The title of the random models: which methods are still similar behind a random head?"""
    if not alike:
        return "Random head, signs kept: no method stays similar"
    few = len(alike) <= 3
    who = " and ".join(map(method_label, alike)) if few else f"{len(alike)} of {n_methods} methods"
    verb = "stays" if len(alike) == 1 else "stay"
    return f"Random head, signs kept: {'only ' * few}{who} {verb} similar"


def _draw_likeness(ax: plt.Axes, part: pd.DataFrame) -> None:
    """Lines over the steps with their intervals, the methods without signs on top."""
    methods = known_first(part["method"].unique(), METHOD_ORDER)
    others = [name for name in methods if name not in _UNSIGNED]
    for i, method in enumerate([*others, *(name for name in _UNSIGNED if name in methods)]):
        line = part[part["method"] == method].sort_values("step")
        is_own = method in _UNSIGNED
        marker, colour = _UNSIGNED.get(method, (".", "0.65"))
        shift = (i - len(methods) / 2) * 0.05
        reach = [line["estimate"] - line["low"], line["high"] - line["estimate"]]
        ax.errorbar(
            line["step"] + shift,
            line["estimate"],
            yerr=[gap.clip(lower=0) for gap in reach],
            marker=marker,
            color=colour,
            linewidth=1.8 if is_own else 0.9,
            elinewidth=1.4 if is_own else 0.5,
            markersize=6 if is_own else 4,
            zorder=3 if is_own else 2,
            label=method if is_own else f"each of the {len(others)} other methods",
        )
    steps = part.drop_duplicates("step").sort_values("step")
    ax.axhline(0, color="0.3", linewidth=1)
    ax.set(ylim=(-1.05, 1.05), yticks=(-1, -0.5, 0, 0.5, 1))
    ax.set_xticks(steps["step"], steps["part"], rotation=35, ha="right", fontsize=9)


def plot_planted(table: pd.DataFrame) -> Plotted:
    """How much of the attribution lies on a planted word that alone decides, by method.

    Args:
        table: method, estimate, low, high, even (what equal scores on all words would give).
    """
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7.2, 0.3 * len(table) + 1.3), layout="constrained")
        # "LIME, n_samples 1000" is how a method with settings is called
        names = [
            re.sub(r"n_samples (\d+)", r"\1 samples", method_label(m)) for m in table["method"]
        ]
        draw_dots(ax, table, "estimate", np.arange(len(table), dtype=float), "o", COLOURS[0])
        ax.axvline(table["even"].mean(), color="0.45", linestyle=":")
        ax.text(
            table["even"].mean() + 0.01,
            len(table) - 0.6,
            "equal scores on all words",
            fontsize=9,
            va="bottom",
        )
        ax.set(yticks=range(len(table)), yticklabels=names, ylim=(len(table) - 0.5, -0.5))
        ax.set(xlim=(0, 1.03), xlabel=f"share of the attribution on the planted word; {BARS}")
        methods = table[table["method"] != "Uniform random"]
        kinds = methods["method"].str.partition(",")[0].map(method_label)
        is_off = methods["high"] < 0.9
        ax.set_title(_about_planted(kinds, 1 - methods.loc[is_off, "estimate"]), loc="left")
    return figure, table


def _about_planted(kinds: pd.Series, elsewhere: pd.Series) -> str:
    """The title of the planted word: who misses it by more than a tenth, and by how much?

    Args:
        kinds: the method of each line.
        elsewhere: of the lines that miss it, the share on other words.
    """
    off = list(dict.fromkeys(kinds[elsewhere.index]))
    if not off:
        return "No method puts more than a tenth of the attribution on other words"
    who = " and ".join(off) if len(off) < 3 else f"{len(off)} of {kinds.nunique()} methods"
    shares = dict.fromkeys(f"{100 * share:.0f}" for share in (elsewhere.min(), elsewhere.max()))
    verb = "puts" if len(off) == 1 else "put"
    return f"{who} {verb} {' to '.join(shares)} % of the attribution on other words"
