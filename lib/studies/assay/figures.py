"""The figure of the whole repository: every explainer under every truth, beside the rules that
never look at the model.
"""

from collections.abc import Mapping
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...plots import COLOURS, STYLE
from ...plots.style import Plotted


class Panel(NamedTuple):
    """How a truth is drawn: its title, the name of its score, the lowest score that there is."""

    title: str
    score: str
    lowest: float


PANELS = {
    "mask": Panel("words that\nwere altered", "ROC AUC", 0.0),
    "planted": Panel("words that\nwere planted", "overlap", 0.0),
    "cue": Panel("the noun that\nsets the verb", "share right", 0.0),
    "swap": Panel("a word against\nits other form", "rank corr.", -1.0),
    "edit": Panel("a phrase that\na person cut", "rank corr.", -1.0),
    "noun": Panel("a word against\nothers of its kind", "rank corr.", -1.0),
    "deletion, pad": Panel("words deleted:\npadding", "NAOPC", 0.0),
    "deletion, mask": Panel("words deleted:\nmask token", "NAOPC", 0.0),
    "deletion, swap": Panel("words deleted:\nthe other form", "NAOPC", 0.0),
}
_HEADINGS = {
    "mask": "WHERE in the data are the words?",
    "swap": "WHAT do the words do in this model?",
    "deletion, pad": "HOW FAST does the answer fall?",
}
_GROUPS = {
    "explainer": "Explainers",
    "floor": "Rules that never look at the model",
    "cheater": "Cheaters",
}
_NAMES = {
    "InputXGradient": "Input x gradient",
    "Cheater: marks": "knows which words, not what they do",
    "Cheater: sizes": "knows how much, not in which direction",
    "Cheater: both texts": "holds both texts of an edit",
}
_CLEAR, _OPEN, _BLIND, _CHEAT = COLOURS[0], "0.45", COLOURS[3], COLOURS[4]


def is_clear(cells: pd.DataFrame) -> pd.Series:
    """Whether an explainer is above the floor with its whole interval, and not by identity.

    An interval without width (a few texts that all say the same) shows nothing.
    """
    above = (cells["raw_low"] > cells["floor"]) & (cells["raw_high"] > cells["raw_low"])
    return above & ~cells["by_identity"].astype(bool) & (cells["role"] == "explainer")


def plot_whole(cells: pd.DataFrame, note: str) -> Plotted:
    """Explainers, floors and cheaters (rows) by truths (columns), by the primary score.

    Args:
        cells: of `standing.cells`; the score of its `rule` ends the grey band of a truth.
        note: which run it is, below the title.

    Returns:
        The figure, and what it shows: truth, explainer, role, raw, raw_low, raw_high, floor,
        is_clear, by_identity.
    """
    shown = cells[cells["role"].isin(list(_GROUPS)) & cells["truth"].isin(list(PANELS))]
    shown = shown.assign(is_clear=is_clear(shown))
    truths = [truth for truth in PANELS if truth in set(shown["truth"])]
    rows = _rows(shown)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            len(truths),
            figsize=(1.36 * len(truths) + 3.1, 0.26 * max(rows.values()) + 2.6),
            sharey=True,
            squeeze=False,
        )
        figure.subplots_adjust(left=0.215, right=0.99, top=0.835, bottom=0.175, wspace=0.14)
        for ax, truth in zip(axes[0], truths, strict=True):
            _draw_panel(ax, shown[shown["truth"] == truth], rows)
        _name_rows(axes[0, 0], shown, rows)
        for truth, heading in _HEADINGS.items():
            if truth in truths:
                left = axes[0, truths.index(truth)].get_position().x0
                figure.text(left, 0.902, heading, weight="bold", fontsize=10)
        figure.suptitle(_finding(shown), x=0.01, y=0.985, ha="left", fontsize=12, weight="bold")
        how = "Further right is better. The rule in [brackets] was fixed before the run."
        figure.text(0.01, 0.942, f"{note} {how}", fontsize=10, va="center")
        figure.legend(handles=_legend(), ncols=4, loc="lower left", bbox_to_anchor=(0.005, 0.0))
    columns = ["truth", "explainer", "role", "raw", "raw_low", "raw_high", "floor"]
    return figure, shown[[*columns, "is_clear", "by_identity"]].reset_index(drop=True)


def plot_steps(log_odds: Float[np.ndarray, "seed 2"], title: str) -> plt.Figure:
    """What removed words did to models: an arrow from the answer to the short text to that to the
    long one.

    Args:
        log_odds: of the long and of the short text, for each training of a model.
    """
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(6, 1.8), layout="constrained")
        for y, (after, before) in enumerate(log_odds):
            ax.annotate("", (after, y), (before, y), arrowprops={"arrowstyle": "->", "lw": 2})
        names = [f"model {i + 1}" for i in range(len(log_odds))]
        ax.set_yticks(range(len(names)), names)
        ax.set(xlim=(log_odds.min() - 0.5, log_odds.max() + 0.7), ylim=(-0.5, len(names) - 0.5))
        ax.set(xlabel="log-odds of the class", title=title)
    return figure


def plot_two_trainings(pairs: pd.DataFrame, title: str) -> Plotted:
    """What each word, or edit, did to two trainings of a model, with the rank correlation.

    Args:
        pairs: of `answers.two_trainings`.

    Returns:
        The figure, and its table: truth, n, rank_correlation.
    """
    rows = []
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(4.8, 4), layout="constrained")
        groups = pairs.groupby("truth", sort=False)
        for colour, marker, (truth, part) in zip(COLOURS, "os^D", groups, strict=False):
            rho = part["first"].corr(part["second"], method="spearman")
            rows.append((truth, len(part), rho))
            label = f"{truth}: {rho:.2f}"
            ax.plot(part["first"], part["second"], marker, color=colour, alpha=0.7, label=label)
        ax.axline((0, 0), slope=1, color="0.5", linewidth=1)
        ax.set(xlabel="change in the first training", ylabel="change in the second", title=title)
        ax.legend(title="rank correlation")
    return figure, pd.DataFrame(rows, columns=["truth", "n", "rank_correlation"])


def plot_scale(floor: float, oracle: float, scores: Mapping[str, float]) -> plt.Figure:
    """Scores of one truth, and below them the scale from its floor (0) to its oracle (1)."""
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, ax = plt.subplots(figsize=(7, 1.7), layout="constrained")
        ax.axvspan(0, floor, color="0.9", linewidth=0)
        for at, name in ((floor, "floor: 0"), (oracle, "oracle: 1")):
            ax.axvline(at, color="0.2", linewidth=1.5)
            ax.text(at, 1.05, name, ha="center", transform=ax.get_xaxis_transform())
        for name, score in scores.items():
            value = (score - floor) / (oracle - floor)
            ax.plot(score, 0, "o", color=COLOURS[0], markersize=8)
            ax.text(score, 0.25, f"{name}: {value:g}", ha="center")
        ax.set(xlim=(0, oracle + 0.05), ylim=(-0.5, 0.7), yticks=[], xlabel="primary score")
    return figure


def plot_budgets(bought: pd.DataFrame, rule: float, score: str) -> plt.Figure:
    """Quality after so many passes of the model, beside a rule that needs none.

    Args:
        bought: explainer, passes, value.
        score: the name of the value.
    """
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(5.6, 3), layout="constrained")
        for marker, (name, part) in zip("os^Dv", bought.groupby("explainer"), strict=False):
            ax.plot(part["passes"], part["value"], marker=marker, label=name)
        ax.axhline(rule, color="0.4", linestyle="--", label="word counts, no pass")
        ax.set(xscale="log", xlabel="passes of the model", ylabel=score)
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def plot_agreement(agreement: pd.DataFrame) -> Plotted:
    """Rank correlations of two truths with intervals, and the ceiling that the lower one sets.

    Args:
        agreement: of `synthesis.rank_agreement`; a truth with itself is its ceiling.

    Returns:
        The figure, and what it shows: truths, tau, low, high, ceiling.
    """
    is_own = agreement["left"] == agreement["right"]
    ceilings = agreement[is_own].set_index("left")["tau"]
    shown = agreement.loc[~is_own, ["left", "right", "tau", "low", "high"]].reset_index(drop=True)
    lower = [min(ceilings[row.left], ceilings[row.right]) for row in shown.itertuples()]
    shown = shown.assign(ceiling=lower, truths=shown["left"] + " / " + shown["right"])
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(8, 0.34 * len(shown) + 1.3), layout="constrained")
        for y, row in enumerate(shown.itertuples()):
            ends = np.clip([row.low, row.high], -1, 1)
            ax.plot(ends, [y, y], color=COLOURS[0], linewidth=1.3)
        places = range(len(shown))
        ax.plot(shown["tau"], places, "o", color=COLOURS[0], label="two truths, 95 % interval")
        ax.plot(shown["ceiling"], places, "^", color=COLOURS[3], label="ceiling")
        ax.axvline(0, color="0.4", linewidth=1)
        ax.set_yticks(places, shown["truths"])
        ax.set(xlim=(-1.03, 1.03), ylim=(len(shown) - 0.5, -0.5))
        ax.set_xlabel("Kendall's tau-b: the same order of explainers (1), the opposite (-1)")
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        clear = int((shown["high"] < shown["ceiling"]).sum())
        figure.suptitle(
            f"{clear} of {len(shown)} pairs of truths clearly disagree: "
            "their interval ends left of the ceiling",
            fontsize=11,
            weight="bold",
        )
    return figure, shown[["truths", "tau", "low", "high", "ceiling"]]


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
    ax.axvline(1, color="0.1", linewidth=1.5)
    for row in part.itertuples():
        y = rows[str(row.explainer)]
        if row.role == "explainer" and not row.by_identity:
            ends = np.clip([row.raw_low, row.raw_high], panel.lowest, 1)
            ax.plot(ends, [y, y], color=_CLEAR if row.is_clear else "0.6", linewidth=1.3)
        colour = {"floor": _BLIND, "cheater": _CHEAT}.get(row.role, _OPEN)
        marker = {"floor": "s", "cheater": "D"}.get(row.role, "o")
        face = _CLEAR if row.is_clear else "white"
        if row.by_identity:
            marker, colour, face = "x", "0.1", "0.1"
        elif row.is_clear:
            colour = _CLEAR
        ax.plot(
            row.raw, y, marker, color=colour, markerfacecolor=face, markersize=5.5, clip_on=False
        )
    span = 1 - panel.lowest
    ax.set(xlim=(panel.lowest, 1 + 0.03 * span), ylim=(max(rows.values()) + 0.7, -1.5))
    ax.set_xticks([panel.lowest, panel.lowest + span / 2, 1])
    ax.set_xticklabels([f"{x:g}" for x in (panel.lowest, panel.lowest + span / 2, 1)], fontsize=9)
    n = part.loc[part["role"] == "explainer", "n_clusters"].max()
    below = f"{panel.score}, n = {n:.0f}\n[{rule.lower()}]"
    ax.set_xlabel(below if floor < 1 else f"{below}\ncannot be beaten", fontsize=9)
    ax.set_title(panel.title, fontsize=9)
    ax.tick_params(axis="y", length=0)


def _name_rows(ax: Axes, shown: pd.DataFrame, rows: Mapping[str, float]) -> None:
    ax.set_yticks(list(rows.values()), [_NAMES.get(name, name) for name in rows], fontsize=9)
    at = ax.get_yaxis_transform()
    for role, words in _GROUPS.items():
        first = min(
            (rows[name] for name in shown.loc[shown["role"] == role, "explainer"]), default=0
        )
        ax.text(-0.05, first - 0.95, words, ha="right", va="center", weight="bold", transform=at)


def _finding(shown: pd.DataFrame) -> str:
    is_open = ~shown["by_identity"].astype(bool) & (shown["floor"] < 1)
    ranked = shown[(shown["role"] == "explainer") & is_open]
    clear = int(ranked["is_clear"].sum())
    return (
        f"In {clear} of {len(ranked)} cases an explainer is clearly better than a rule that never "
        "looks at the model"
    )


def _legend() -> list[Line2D | Patch]:
    def mark(marker: str, colour: str, face: str, label: str) -> Line2D:
        line = "-" if marker == "o" else ""
        return Line2D(
            [], [], marker=marker, color=colour, markerfacecolor=face, linestyle=line, label=label
        )

    rule = "what the rule in [brackets] reaches"
    return [
        mark("o", _CLEAR, _CLEAR, "explainer, clearly better than the rule in [brackets]"),
        mark("o", _OPEN, "white", "explainer, not clearly better (line: 95 % interval)"),
        mark("s", _BLIND, "white", "rule that never looks at the model"),
        Patch(facecolor="0.9", edgecolor=_BLIND, linestyle="--", label=rule),
        mark("D", _CHEAT, "white", "cheater: knows a part of the answer"),
        Line2D([], [], color="0.1", linewidth=1.5, label="knows the whole answer"),
        mark("x", "0.1", "0.1", "known beforehand, not ranked"),
    ]
