"""The figures of stage 05: every explainer under every truth, beside the rules that never look at
the model, and whether truths agree.
"""

import textwrap
from collections.abc import Mapping
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...core.codes import METHODS
from ...plots import COLOURS, STYLE
from ...plots.style import Plotted


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
    "deletion, pad": Panel("deletion:\npadding\ninstead", "score", 0.0),
    "deletion, mask": Panel("deletion:\nmask token\ninstead", "score", 0.0),
    "deletion, swap": Panel("deletion:\nother form\ninstead", "score", 0.0),
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
_HEADINGS = {
    "mask": "WHERE are the words?",
    "swap": "WHAT do they do in the model?",
    "deletion, pad": "HOW FAST does the answer fall?",
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
# inches: above, below and left of the panels, and from row to row
_ABOVE, _BELOW, _LEFT, _ROW = 2.05, 2.6, 2.15, 0.25
_CLEAR, _OPEN, _BLIND, _CHEAT = COLOURS[0], "0.45", COLOURS[3], COLOURS[4]


def best_rules(cells: pd.DataFrame) -> pd.Series:
    """The score of the best rule that never looks at the model, by truth.

    It is known after the run only; the floor is the score of the rule that was chosen beforehand.
    """
    return cells[cells["role"] == "floor"].groupby("truth")["raw"].max()


def is_clear(cells: pd.DataFrame, rule: pd.Series | None = None) -> pd.Series:
    """Whether an explainer is above a rule with its whole interval, and not by identity.

    An interval without width (a few texts that all say the same) shows nothing.

    Args:
        cells: of `standing.cells`.
        rule: the score of a rule, for each line; without it the floor.
    """
    reached = cells["floor"] if rule is None else rule
    above = (cells["raw_low"] > reached) & (cells["raw_high"] > cells["raw_low"])
    return above & ~cells["by_identity"].astype(bool) & (cells["role"] == "explainer")


def plot_whole(cells: pd.DataFrame, note: str) -> Plotted:
    """Explainers, floors and cheaters (rows) by truths (columns), by the primary score.

    Args:
        cells: of `standing.cells`; the score of its `rule` ends the grey band of a truth, and a
            dotted line is the best rule, where that is another one.
        note: which run it is, below the title.

    Returns:
        The figure, and what it shows: truth, explainer, role, raw, raw_low, raw_high, floor,
        is_clear, by_identity.
    """
    shown = cells[cells["role"].isin(list(_GROUPS)) & cells["truth"].isin(list(PANELS))]
    shown = shown.assign(is_clear=is_clear(shown))
    truths = [truth for truth in PANELS if truth in set(shown["truth"])]
    rows = _rows(shown)
    explainers = shown.loc[shown["role"] == "explainer", "explainer"].unique()

    def middle(truth: str) -> float:
        return (PANELS[truth].lowest + 1) / 2

    how = "Further right is better. The rule in [brackets] was chosen before the run."
    said = textwrap.wrap(f"{note} {how} {_against_best(shown)}", 110)
    with plt.rc_context(STYLE | {"legend.fontsize": 10}):
        height = _ROW * (max(rows.values()) + 2.2) + _ABOVE + _BELOW
        figure, axes = plt.subplots(
            1,
            len(truths),
            figsize=(0.87 * len(truths) + _LEFT, height),
            sharey=True,
            squeeze=False,
        )
        figure.subplots_adjust(
            left=_LEFT / figure.get_figwidth(),
            right=0.985,
            top=1 - _ABOVE / height,
            bottom=_BELOW / height,
            wspace=0.16,
        )
        for ax, truth in zip(axes[0], truths, strict=True):
            _draw_panel(ax, shown[shown["truth"] == truth], rows)
            asked = set(shown.loc[shown["truth"] == truth, "explainer"])
            refused = [rows[name] for name in explainers if name not in asked]
            ax.plot([middle(truth)] * len(refused), refused, "_", color="0.5", markersize=6)
        _name_rows(axes[0, 0], shown, rows)
        for truth, heading in _HEADINGS.items():
            if truth in truths:
                start = axes[0, truths.index(truth)].get_position().x0
                figure.text(start, 1 - (_ABOVE - 0.75) / height, heading, weight="bold")
        figure.suptitle(
            _finding(shown), x=0.01, y=1 - 0.1 / height, ha="left", fontsize=12, weight="bold"
        )
        for i, line in enumerate(said):
            figure.text(0.01, 1 - (0.5 + 0.22 * i) / height, line, va="center")
        figure.legend(handles=_legend(), ncols=2, loc="lower left", bbox_to_anchor=(0.005, 0.0))
    columns = ["truth", "explainer", "role", "raw", "raw_low", "raw_high", "floor"]
    return figure, shown[[*columns, "is_clear", "by_identity"]].reset_index(drop=True)


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
    ends = (panel.lowest, panel.lowest + span / 2, 1)
    ax.set_xticks(ends, [f"{end:g}" for end in ends])
    for label, side in zip(ax.get_xticklabels(), ("left", "center", "right"), strict=True):
        label.set_horizontalalignment(side)  # so that those of two panels do not touch
    n = part.loc[part["role"] == "explainer", "n_clusters"].max()
    below = f"{panel.score}\nn = {n:.0f}\n[{rule.lower()}]".replace("goal of the", "goal of\nthe")
    below = below.replace("word counts", "word\ncounts")
    ax.set_xlabel(below if floor < 1 else f"{below}\ncannot be\nbeaten")
    ax.set_title(panel.title)
    ax.tick_params(axis="y", length=0)


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
    clear = int(ranked["is_clear"].sum())
    return (
        f"In {clear} of {len(ranked)} cases an explainer is clearly better than a rule that never "
        "looks at the model"
    )


def _against_best(shown: pd.DataFrame) -> str:
    best = best_rules(shown)
    ranked = _ranked(shown)
    clear = int(is_clear(ranked, ranked["truth"].map(best)).sum())
    floors = shown.groupby("truth")["floor"].first()
    n_better = int((best > floors.reindex(best.index)).sum())
    return (
        f"In {n_better} of {len(best)} columns another rule is better than that one (dotted). "
        f"Against the best rule, explainers are clearly better in {clear} cases."
    )


def _ranked(shown: pd.DataFrame) -> pd.DataFrame:
    """The explainers' cells that are not known beforehand, where the floor leaves room."""
    is_open = ~shown["by_identity"].astype(bool) & (shown["floor"] < 1)
    return shown[(shown["role"] == "explainer") & is_open]


def _legend() -> list[Line2D | Patch]:
    def mark(marker: str, colour: str, face: str, label: str) -> Line2D:
        line = "-" if marker == "o" else ""
        return Line2D(
            [], [], marker=marker, color=colour, markerfacecolor=face, linestyle=line, label=label
        )

    rule = "what the rule in [brackets] reaches"
    return [
        mark("o", _CLEAR, _CLEAR, "explainer, clearly better: its interval lies above the rule"),
        mark("o", _OPEN, "white", "explainer, not clearly better (line: 95 % interval)"),
        mark("s", _BLIND, "white", "rule that never looks at the model"),
        Patch(facecolor="0.9", edgecolor=_BLIND, linestyle="--", label=rule),
        Line2D(
            [],
            [],
            color=_BLIND,
            linewidth=1.6,
            linestyle=":",
            label="the best rule, if it is another",
        ),
        mark("D", _CHEAT, "white", "cheater: knows a part of the answer"),
        Line2D([], [], color="0.1", linewidth=1.5, label="knows the whole answer"),
        mark("x", "0.1", "0.1", "known beforehand, not ranked"),
        mark("_", "0.5", "0.5", "refuses this model"),
    ]
