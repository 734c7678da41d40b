"""The figures of stages 02 to 04. A title is the finding, worded from what is drawn."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float

from ...core.codes import METHODS
from ...plots import COLOURS, STYLE
from ...plots.panels import BARS
from ...plots.style import Plotted
from .figures import SHORT_NAMES


def plot_likeness(likeness: pd.DataFrame) -> plt.Figure:
    """How alike explainers are: a square of rank correlations, with the numbers in it."""
    names, values = [METHODS.get(name, name) for name in likeness], likeness.to_numpy()
    others = np.where(np.triu(np.ones_like(values), 1) > 0, values, -np.inf)
    left, right = np.unravel_index(np.nanargmax(others), others.shape)
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, ax = plt.subplots(figsize=(7.8, 6.4), layout="constrained")
        drawn = ax.imshow(values, cmap="PuOr_r", vmin=-1, vmax=1)
        for (i, j), value in np.ndenumerate(values):
            colour = "white" if abs(value) > 0.6 else "0.15"
            # what is nearly 1 has two digits, and what is 1 has none
            digits = 0 if abs(value) > 0.9999 else 2 if abs(value) >= 0.95 else 1
            number = f"{round(value, digits) + 0:.{digits}f}"  # no -0.0
            ax.text(j, i, number, ha="center", va="center", fontsize=9, color=colour)
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
        ax.set_yticks(range(len(names)), names)
        figure.colorbar(drawn, label="1: the same order of words, -1: the opposite", shrink=0.8)
        finding = f"{names[left]} and {names[right]} are most alike: {values[left, right]:.2f}"
        figure.suptitle(finding, fontsize=11, weight="bold")
    return figure


def plot_steps(log_odds: Float[np.ndarray, "seed 2"], title: str) -> plt.Figure:
    """What removed words did to models: an arrow from the answer to the short text to that to the
    long one.

    Args:
        log_odds: of the long and of the short text, for each training of a model.
    """
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(8, 2.1), layout="constrained")
        for y, (after, before) in enumerate(log_odds):
            ax.annotate("", (after, y), (before, y), arrowprops={"arrowstyle": "->", "lw": 2})
            ax.text(before - 0.1, y, f"short text: {before:.2f}", ha="right", va="center")
            ax.text(after + 0.1, y, f"long text: {after:.2f}", va="center")
            ax.text((before + after) / 2, y - 0.15, f"{after - before:+.2f}", ha="center")
        names = [f"model {i + 1}" for i in range(len(log_odds))]
        ax.set_yticks(range(len(names)), names)
        ax.set(xlim=(log_odds.min() - 2.2, log_odds.max() + 2.2), ylim=(len(names) - 0.5, -0.7))
        ax.set(xlabel="log-odds of the class", title=title)
    return figure


def plot_two_trainings(pairs: pd.DataFrame) -> Plotted:
    """What each word, or edit, did to two runs of a model, with the rank correlation.

    Args:
        pairs: of `answers.two_trainings`.

    Returns:
        The figure, and its table: truth, n, rank_correlation.
    """
    rows = []
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
        groups = pairs.groupby("truth", sort=False)
        for colour, marker, (truth, part) in zip(COLOURS, "os^D", groups, strict=False):
            rho = part["first"].corr(part["second"], method="spearman")
            rows.append((truth, len(part), rho))
            label = f"{SHORT_NAMES.get(truth, truth)}: {rho:.2f}"
            ax.plot(part["first"], part["second"], marker, color=colour, alpha=0.7, label=label)
        ax.axline((0, 0), slope=1, color="0.5", linewidth=1, label="the same in both runs")
        ax.set_xlabel("change of the first run's answer (log-odds)")
        ax.set_ylabel("change of the second run's answer")
        ax.legend(title="rank correlation")
        table = pd.DataFrame(rows, columns=["truth", "n", "rank_correlation"])
        order = table.sort_values("rank_correlation")["truth"].map(SHORT_NAMES)
        finding = f"Two runs of a model agree most on {order.iloc[-1]},\nleast on {order.iloc[0]}"
        figure.suptitle(finding, fontsize=11, weight="bold")
    return figure, table


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
        bought: explainer, passes, value, low, high (NaN without an interval).
        score: the name of the value.
    """
    parts = bought.groupby("explainer")
    reach = sum(bool((part["value"] >= rule).any()) for _, part in parts)
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
        for i, (colour, marker, (name, part)) in enumerate(
            zip(COLOURS, "os^Dv", parts, strict=False)
        ):
            at = part["passes"] * 1.06 ** (i - 1)  # side by side, so that all bars are seen
            reach_of = (part["value"] - part["low"], part["high"] - part["value"])
            how = {"marker": marker, "color": colour, "label": name}
            ax.errorbar(at, part["value"], np.abs(reach_of), capsize=3, **how)
        ax.axhline(rule, color="0.4", linestyle="--", label="word counts: no run of the model")
        passes = sorted(bought["passes"].unique())
        ax.set(xscale="log", xlabel=f"forward passes for one text; {BARS}", ylabel=score)
        ax.set_xticks(passes, [f"{n}" for n in passes])
        ax.minorticks_off()
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        finding = f"{reach} of {len(parts)} explainers reach word counts within {passes[-1]} passes"
        figure.suptitle(finding, fontsize=11, weight="bold")
    return figure
