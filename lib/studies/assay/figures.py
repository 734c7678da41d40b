"""The figures of stage 05: every explainer under every truth, beside the rules that never look at
the model, and whether truths agree.
"""

import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...core.codes import METHODS
from ...plots import COLOURS, STYLE
from ...plots.style import Plotted
from .standing import best_rules


class Panel(NamedTuple):
    """How a truth is drawn: its title, the name of its score, the lowest score that there is."""

    title: str
    score: str
    lowest: float


PANELS = {
    "mask": Panel("altered\nwords", "ROC AUC", 0.0),
    "planted": Panel("planted\nwords", "overlap", 0.0),
    "cue": Panel("cue: noun\nthat sets\nthe verb", "share right", 0.0),
    "swap": Panel("swap to\nthe other\nform", "rank corr.", -1.0),
    "edit": Panel("edit:\na phrase\nis cut", "rank corr.", -1.0),
    "noun": Panel("noun:\nothers of\nits kind", "rank corr.", -1.0),
    "deletion, pad": Panel("deletion:\nby\npadding", "score", 0.0),
    "deletion, mask": Panel("deletion:\nmask\ntoken", "score", 0.0),
    "deletion, swap": Panel("deletion:\nother\nform", "score", 0.0),
}
SHORT_NAMES = {  # truths and their kinds, where a line has room for two of them
    "mask": "altered words",
    "swap": "swapped words",
    "edit": "edits",
    "noun": "exchanged words",
    "deletion, pad": "deletion (padding)",
    "deletion, mask": "deletion (mask token)",
    "deletion, swap": "deletion (other form)",
    "deletion, mask, reviews": "deletion in reviews (mask token)",
}
MODEL_NAMES = {  # that are no words
    "planted-ola": "planted, one layer",
    "gender-lstm": "gender, LSTM",
    "reviews-lstm": "reviews, LSTM",
}
_HEADINGS = {
    "mask": "WHERE are\nthe words?",
    "swap": "WHAT do they do\nin the model?",
    "deletion, pad": "HOW FAST does\nthe answer fall?",
}
_GROUPS = {
    "explainer": "Explainers",
    "floor": "Rules without the model",
    "cheater": "Cheaters",
}
_NAMES = {
    **METHODS,
    "Cheater: marks": "knows which words",
    "Cheater: sizes": "knows sizes, not signs",
    "Cheater: both texts": "knows both texts' scores",
}
# inches: above, below and left of the panels, a panel with its gap, the gap between two groups of
# panels, and from row to row
_ABOVE, _BELOW, _LEFT, _WIDE, _APART, _ROW = 2.8, 3.6, 2.42, 0.83, 0.13, 0.262
_HOW = "Further right is better. Rank correlations begin at -1, the other scores at 0."
_REFUSAL: dict[str, Any] = {
    "ha": "center",
    "va": "center",
    "fontsize": 10,
    "style": "italic",
    "color": "0.25",
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1},
}
_CLEAR, _OPEN, _BLIND, _CHEAT = COLOURS[0], "0.45", COLOURS[3], COLOURS[4]
_LETTERS = STYLE | {
    "font.size": 12,
    "axes.titlesize": 11.5,
    "axes.labelsize": 11.5,
    "xtick.labelsize": 11,
    "ytick.labelsize": 12,
    "legend.fontsize": 11.5,
    "axes.spines.left": False,
}


def plot_whole(cells: pd.DataFrame, note: str) -> Plotted:
    """Explainers, floors and cheaters (rows) by truths (columns), by the primary score.

    Args:
        cells: of `standing.with_leads`; the score of its `rule` ends the grey band of a truth, and
            a dotted line is the best rule, where that is another one.
        note: which run it is, below the title.

    Returns:
        The figure, and what it shows: truth, explainer, role, raw, raw_low, raw_high, floor,
        beats_floor, beats_every_rule, by_identity.
    """
    shown = cells[cells["role"].isin(list(_GROUPS)) & cells["truth"].isin(list(PANELS))]
    truths = [truth for truth in PANELS if truth in set(shown["truth"])]
    rows = _rows(shown)
    explainers = shown.loc[shown["role"] == "explainer", "explainer"].unique()
    starts = [truth for truth in truths if truth in _HEADINGS]
    width = _LEFT + _WIDE * len(truths) + _APART * len(starts)
    height = _ROW * (max(rows.values()) + 2.2) + _ABOVE + _BELOW
    said = textwrap.wrap(f"{note} {_against_best(shown)} {_HOW}", round(11.2 * width))
    with plt.rc_context(_LETTERS):
        figure, axes = plt.subplots(
            1, len(truths), figsize=(width, height), sharey=True, squeeze=False
        )
        size = (_WIDE - 0.14) / width, 1 - (_ABOVE + _BELOW) / height
        for i, (ax, truth) in enumerate(zip(axes[0], truths, strict=True)):
            n_gaps = sum(start in truths[1 : i + 1] for start in starts)
            left = _LEFT + _WIDE * i + _APART * n_gaps
            ax.set_position((left / width, _BELOW / height, *size))
            _draw_panel(ax, shown[shown["truth"] == truth], rows)
            asked = set(shown.loc[shown["truth"] == truth, "explainer"])
            middle = (PANELS[truth].lowest + 1) / 2
            for name in explainers:
                if name not in asked:
                    ax.text(middle, rows[name], "refuses", **_REFUSAL)
        _name_rows(axes[0, 0], shown, rows)
        _head_groups(figure, dict(zip(truths, axes[0], strict=True)), 1 - (_ABOVE - 0.8) / height)
        figure.suptitle(
            _finding(shown),
            x=0.01,
            y=1 - 0.1 / height,
            ha="left",
            va="top",
            fontsize=14,
            weight="bold",
        )
        for i, line in enumerate(said):
            figure.text(0.01, 1 - (0.8 + 0.235 * i) / height, line, va="center")
        figure.legend(handles=_legend(), ncols=2, loc="lower left", bbox_to_anchor=(0.005, 0.0))
    columns = ["truth", "explainer", "role", "raw", "raw_low", "raw_high", "floor"]
    columns += ["beats_floor", "beats_every_rule", "by_identity"]
    return figure, shown[columns].reset_index(drop=True)


def plot_agreement(agreement: pd.DataFrame) -> Plotted:
    """Rank correlations of two truths with intervals, and the ceiling that the lower one sets.

    Args:
        agreement: of `synthesis.rank_agreement`; a truth with itself is its ceiling.

    Returns:
        The figure, and what it shows: truths, tau, low, high, any_low, any_high, ceiling.
    """
    is_own = agreement["left"] == agreement["right"]
    ceilings = agreement[is_own].set_index("left")["tau"]
    columns = ["tau", "low", "high", "any_low", "any_high"]
    shown = agreement.loc[~is_own, ["left", "right", *columns]].reset_index(drop=True)
    lower = [min(ceilings[row.left], ceilings[row.right]) for row in shown.itertuples()]
    shown = shown.assign(ceiling=lower, truths=shown["left"] + " / " + shown["right"])
    is_one = np.array([is_one_truth(row.left, row.right) for row in shown.itertuples()])
    order = np.argsort(is_one, kind="stable")  # two models under one truth come last
    places = np.empty(len(shown))
    places[order] = np.arange(len(shown)) + 1.2 * is_one[order] * (not is_one.all())
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(9.5, 0.3 * places.max() + 1.9), layout="constrained")
        for y, row in zip(places, shown.itertuples()):
            wider = np.clip([row.any_low, row.any_high], -1, 1)
            ax.plot(
                wider,
                [y, y],
                color="0.8",
                linewidth=3,
                label=_only(not y, "explainers drawn\nat random, too"),
            )
            ends = np.clip([row.low, row.high], -1, 1)
            of_these = _only(not y, "these explainers:\n95 % interval")
            ax.plot(ends, [y, y], color=COLOURS[0], linewidth=1.5, label=of_these)
        dots = "agreement of\nthe two"
        ax.plot(shown["tau"], places, "o", color=COLOURS[0], label=dots)
        ax.plot(
            shown["ceiling"],
            places,
            "^",
            color=COLOURS[3],
            label="how well a truth\nagrees with itself",
        )
        ax.axvline(0, color="0.4", linewidth=1)
        names = [name_pair(row.left, row.right) for row in shown.itertuples()]
        headings = {"Two truths or deletions, one model": ~is_one, "One truth, two models": is_one}
        tops = {name: places[of].min() - 1 for name, of in headings.items() if of.any()}
        ax.set_yticks([*places, *tops.values()], [*names, *tops])
        for label in ax.get_yticklabels()[len(names) :]:
            label.set_weight("bold")
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(-1.03, 1.03), ylim=(places.max() + 0.5, -1.5), xticks=(-1, -0.5, 0, 0.5, 1))
        ax.set_xlabel("Kendall's tau-b: the same order of explainers (1), the opposite (-1)")
        figure.legend(loc="outside lower center", ncols=4)
        of_truths = shown[~is_one]
        clear = int((of_truths["high"] < of_truths["ceiling"]).sum())
        figure.suptitle(_agreement_finding(clear, len(of_truths)), fontsize=11, weight="bold")
    return figure, shown[["truths", *columns, "ceiling"]]


def _only(first: bool, label: str) -> str:
    return label if first else "_"  # one entry of the legend for all lines of a kind


def name_pair(left: str, right: str) -> str:
    """Two truths in words, or two models under one truth.

    >>> name_pair("mask", "swap"), name_pair("swap, encoder", "swap, LSTM")
    ('altered words / swapped words', 'swapped words: encoder / LSTM')
    >>> name_pair("deletion, mask", "deletion, mask, reviews")
    'deletion (mask token): gender / reviews'
    """
    if right == f"{left}, reviews":
        return f"{SHORT_NAMES.get(left, left)}: gender / reviews"
    truth = left.removesuffix(", encoder")
    if truth != left and right.startswith(f"{truth}, "):
        return f"{SHORT_NAMES.get(truth, truth)}: encoder / {right.removeprefix(f'{truth}, ')}"
    return " / ".join(SHORT_NAMES.get(x, x) for x in (left, right))


def is_one_truth(left: str, right: str) -> bool:
    """Whether a line compares two models under one truth."""
    return ": " in name_pair(left, right)


def _agreement_finding(clear: int, n_pairs: int) -> str:
    if not clear:
        return "No pair of truths differs clearly:\nno line of two truths ends left of its triangle"
    return (
        f"{clear} of {n_pairs} pairs clearly rank explainers of one model differently:\n"
        "their lines end left of their triangles"
    )


def _rows(shown: pd.DataFrame) -> dict[str, float]:
    """The height of each name; a gap between the groups."""
    heights: dict[str, float] = {}
    at = 0.0
    for role in _GROUPS:
        for name in dict.fromkeys(shown.loc[shown["role"] == role, "explainer"]):
            heights[name] = at
            at += 1
        at += 1.2
    return heights


def _draw_panel(ax: Axes, part: pd.DataFrame, rows: dict[str, float]) -> None:
    panel = PANELS[part["truth"].iloc[0]]
    rule, floor = part[["rule", "floor"]].iloc[0]
    ax.axvspan(panel.lowest, floor, color="0.9", zorder=0, linewidth=0)
    ax.axvline(floor, color=_BLIND, linewidth=1.2, linestyle="--")
    best = best_rules(part).max()
    if best > floor:
        ax.axvline(best, color=_BLIND, linewidth=1.6, linestyle=":")
    ax.axvline(1, color="0.1", linewidth=1.5)
    for row in part.itertuples():
        y = rows[str(row.explainer)]
        if row.role == "explainer" and not row.by_identity:
            ends = np.clip([row.raw_low, row.raw_high], panel.lowest, 1)
            ax.plot(ends, [y, y], color=_CLEAR if row.beats_floor else "0.6", linewidth=1.5)
        colour = {"floor": _BLIND, "cheater": _CHEAT}.get(row.role, _OPEN)
        marker = {"floor": "s", "cheater": "D"}.get(row.role, "o")
        look: dict[str, Any] = {"color": colour, "markerfacecolor": "white", "markersize": 6.5}
        if row.by_identity:
            marker, look = "x", {"color": "0.1", "markersize": 6.5}
        elif row.beats_floor:
            look = _clear_look(bool(row.beats_every_rule))
        ax.plot(row.raw, y, marker, clip_on=False, **look)
    span = 1 - panel.lowest
    ax.set(xlim=(panel.lowest, 1 + 0.03 * span), ylim=(max(rows.values()) + 0.7, -1.5))
    ends = (panel.lowest, panel.lowest + span / 2, 1)
    ax.set_xticks(ends, [f"{end:g}".replace("0.", ".") for end in ends])
    for label, side in zip(ax.get_xticklabels(), ("left", "center", "right"), strict=True):
        label.set_horizontalalignment(side)  # so that those of two panels do not touch
    n = part.loc[part["role"] == "explainer", "n_clusters"].max()
    below = f"{panel.score}\nn = {n:.0f}\nrule:\n{rule.lower()}".replace("of the", "of\nthe")
    below = below.replace("word counts", "word\ncounts")
    ax.set_xlabel(below if floor < 1 else f"{below}\ncannot be\nbeaten")
    ax.set_title(panel.title)
    ax.tick_params(axis="y", length=0)


def _clear_look(is_best: bool) -> dict[str, Any]:
    """A whole dot above every rule, half of one above the rule that was chosen beforehand."""
    look = {"color": _CLEAR, "markerfacecolor": _CLEAR, "markersize": 6.5}
    return look if is_best else look | {"markerfacecoloralt": "white", "fillstyle": "left"}


def _head_groups(figure: Figure, axes: Mapping[str, Axes], at: float) -> None:
    """The question that a group of truths asks, above a line over its columns."""
    groups: dict[str, list[Axes]] = {}
    for truth, ax in axes.items():
        first = truth if truth in _HEADINGS or not groups else list(groups)[-1]
        groups.setdefault(first, []).append(ax)
    for first, of_group in groups.items():
        left, right = of_group[0].get_position().x0, of_group[-1].get_position().x1
        figure.add_artist(Line2D([left, right], [at, at], color="0.3", linewidth=1.2))
        heading = _HEADINGS.get(first, "")
        figure.text(left, at + 0.005, heading, va="bottom", weight="bold", fontsize=12)


def _name_rows(ax: Axes, shown: pd.DataFrame, rows: Mapping[str, float]) -> None:
    ax.set_yticks(list(rows.values()), [_NAMES.get(name, name) for name in rows])
    at = ax.get_yaxis_transform()
    for role, words in _GROUPS.items():
        first = min(
            (rows[name] for name in shown.loc[shown["role"] == role, "explainer"]), default=0
        )
        ax.text(-0.05, first - 0.95, words, ha="right", va="center", weight="bold", transform=at)


def _finding(shown: pd.DataFrame) -> str:
    ranked = _ranked(shown)
    clear = int(ranked["beats_floor"].sum())
    return (
        f"In {clear} of {len(ranked)} cases an explainer is clearly better\nthan a rule that "
        "never looks at the model"
    )


def _against_best(shown: pd.DataFrame) -> str:
    best = best_rules(shown)
    clear = int(_ranked(shown)["beats_every_rule"].sum())
    floors = shown.groupby("truth")["floor"].first()
    n_better = int((best > floors.reindex(best.index)).sum())
    return (
        f"In {n_better} of {len(best)} columns another rule is better than the one chosen "
        "before the run (dotted). "
        f"Explainers are clearly better than every rule in {clear} cases."
    )


def _ranked(shown: pd.DataFrame) -> pd.DataFrame:
    """The explainers' cells that are not known beforehand, where the floor leaves room."""
    is_open = ~shown["by_identity"].astype(bool) & (shown["floor"] < 1)
    return shown[(shown["role"] == "explainer") & is_open]


def _legend() -> list[Line2D | Patch]:
    def mark(marker: str, label: str, line: str = "", **look: Any) -> Line2D:
        return Line2D([], [], marker=marker, linestyle=line, label=label, **look)

    best, chosen = _clear_look(True), _clear_look(False)
    white: dict[str, Any] = {"markerfacecolor": "white", "markersize": 6.5}
    dotted = {"color": _BLIND, "linewidth": 1.8, "linestyle": ":"}
    before = "rule chosen before the run"
    return [
        mark("o", "explainer, clearly better than every rule", "-", **best),
        mark("o", f"explainer, clearly better only than\nthe {before}", "-", **chosen),
        mark(
            "o", "explainer, not clearly better\n(line: 95 % interval)", "-", color=_OPEN, **white
        ),
        mark("s", "rule that never looks at the model", color=_BLIND, **white),
        mark("D", "cheater: knows a part of the right answer", color=_CHEAT, **white),
        Patch(
            facecolor="0.9",
            edgecolor=_BLIND,
            linestyle="--",
            label=f"no better than the {before},\nwhich is named below the column",
        ),
        Line2D([], [], **dotted, label="the best rule, where it is another"),
        Line2D([], [], color="0.1", linewidth=1.5, label="best possible score: the right answer"),
        mark(
            "x",
            "not compared: pads as this deletion\ndoes, or knows all that is asked for",
            color="0.1",
        ),
    ]
