"""The figures of this study, drawn from finished tables.

Every title is the finding, worded from the table that is drawn: another run has another title.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D

from ...plots import COLOURS, STYLE
from .naming import MODELS, PAIRS, PARTS, READINGS

_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_LOOKS = {name: (_MARKS[i], COLOURS[i]) for i, name in enumerate(MODELS)}
_FEW = 5  # sentences with a word, below which its mark is hollow and no title names it
_HE, _SHE = "#e08214", "#8073ac"  # orange and violet, as words are coloured in sentences
_EVEN: dict[str, Any] = {"color": "0.35", "linestyle": ":", "linewidth": 1.4}
_PEAK: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1.4}
_OUTSIDE: dict[str, Any] = {"loc": "outside lower center", "frameon": False}


def plot_steps(steps: pd.DataFrame) -> plt.Figure:
    """How many sentences each step of the filter leaves, from 0 or on a logarithmic scale.

    Args:
        steps: step, sentences, share.
    """
    first, last = steps["sentences"].iloc[[0, -1]]
    is_log = bool(first >= 10 * last)
    start, end = (last / 2, first * 8) if is_log else (0, first * 1.4)
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
        if not is_log:  # the length of a bar on a logarithmic scale would mean nothing
            ax.hlines(range(len(steps)), start, steps["sentences"], color=COLOURS[0], linewidth=3)
        ax.plot(steps["sentences"], steps["step"], "o", color=COLOURS[0])
        for y, (n, share) in enumerate(zip(steps["sentences"], 100 * steps["share"])):
            at: dict[str, Any] = {"xytext": (9, 0), "textcoords": "offset points"}
            ax.annotate(f"{n:,} ({share:.1f} %)", (n, y), va="center", **at)
        ax.set(
            xscale="log" if is_log else "linear",
            xlabel="sentences that are left" + " (logarithmic scale)" * is_log,
            xlim=(start, end),
            ylim=(len(steps) - 0.5, -0.7),
        )
        ax.set_title(f"{last:,} of {first:,} sentences leave the gender to one pronoun")
    return figure


def plot_costs(costs: pd.DataFrame, gate: float) -> plt.Figure:
    """The perplexity of every model on held-out text, and whether it passed the gate.

    Args:
        costs: model, base, seed, perplexity, unigram, passes.
        gate: the share of right answers that a model must reach.
    """
    names = [name for name in MODELS if name in set(costs["model"])]
    means = costs.groupby("model")["perplexity"].mean()
    tuned = costs[costs["model"] != "base"]
    is_lower = (means.drop("base", errors="ignore") <= means.get("base", np.inf)).all()
    said = "lowers" if is_lower else "does not always lower"
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
        for y, name in enumerate(names):
            part = costs[costs["model"] == name]
            mark, colour = _LOOKS[name]
            spread = 0.6 * ((np.arange(len(part)) + 0.5) / len(part) - 0.5)
            for x, dy, passes in zip(part["perplexity"], spread, part["passes"]):
                face = colour if passes else "white"
                ax.plot(x, y + dy, mark, color=colour, markerfacecolor=face)
        ax.set_yticks(range(len(names)), [MODELS[name] for name in names])
        unigram, failed = costs["unigram"].iloc[0], (~tuned["passes"]).sum()
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlabel(f"perplexity at masked tokens (word frequencies alone: {unigram:.0f})")
        said = f"Fine-tuning {said} the perplexity; {failed} of {len(tuned)} runs fail the gate"
        ax.set_title(said)
        looks = [_LOOKS[name] for name in names]
        handles = [
            tuple(Line2D([], [], marker=m, linestyle="", color=c, mfc=f or c) for m, c in looks)
            for f in ("", "white")
        ]
        figure.legend(
            handles,
            [f"filled: passes the gate ({100 * gate:.0f} % right)", "hollow: fails it"],
            title="A mark is one base model, or one fine-tuning run of the kind named on the left",
            handler_map={tuple: HandlerTuple(ndivide=None, pad=0.6)},
            handlelength=1.3 * len(looks),
            ncols=2,
            **_OUTSIDE,
        )
    return figure


def plot_drivers(drivers: pd.DataFrame) -> plt.Figure:
    """The words with the largest mean scores towards either pronoun, without intervals: most words
    stand in too few sentences for one.

    Args:
        drivers: word, mean, sentences; from the lowest mean to the highest.
    """
    with plt.rc_context(STYLE):
        if drivers.empty:
            return _empty("No base model passes the gate, so no words are shown")
        figure, ax = plt.subplots(
            figsize=(7, 0.21 * max(len(drivers), 4) + 1.4), layout="constrained"
        )
        ax.axvline(0, color="0.35", linewidth=1)
        for y, row in enumerate(drivers.itertuples()):
            mark, colour = (">", _HE) if row.mean > 0 else ("<", _SHE)
            face = colour if row.sentences >= _FEW else "white"
            ax.plot([0, row.mean], [y, y], color=colour, linewidth=1.4)
            ax.plot(row.mean, y, mark, color=colour, markerfacecolor=face, markersize=7)
        ax.set_yticks(
            range(len(drivers)),
            [f"{word} ({n})" for word, n in zip(drivers["word"], drivers["sentences"])],
        )
        reach = max(map(abs, ax.get_xlim()))  # with 0 in the middle, above the label
        ax.set_xlim(-reach, reach)
        ax.set(xlabel="← towards she        mean score in log-probability        towards he →")
        ax.set_title(_strongest(drivers))
        looks = (
            (">", _HE, _HE, "towards he"),
            ("<", _SHE, _SHE, "towards she"),
            (">", "0.4", "white", f"in fewer than {_FEW} sentences"),
        )
        handles = [
            Line2D([], [], marker=m, linestyle="", color=c, markerfacecolor=f, label=label)
            for m, c, f, label in looks
        ]
        told = "(n): explained sentences; no intervals, since most words have too few of them"
        figure.legend(handles=handles, ncols=3, title=told, **_OUTSIDE)
    return figure


def _empty(why: str) -> plt.Figure:
    """A figure that says why it shows nothing."""
    figure, ax = plt.subplots(figsize=(7, 1), layout="constrained")
    ax.set_axis_off()
    ax.text(0.5, 0.5, why, ha="center", va="center")
    return figure


def _strongest(drivers: pd.DataFrame) -> str:
    """The strongest word on either side, among those in `_FEW` sentences or more."""
    often = drivers[drivers["sentences"] >= _FEW]
    he, she = often.loc[often["mean"] > 0, "word"], often.loc[often["mean"] < 0, "word"]
    told = [f'"{word}" towards he' for word in he.tail(1)]
    told += [f'"{word}" towards she' for word in she.head(1)]
    if not told:
        return f"No word stands in {_FEW} sentences, so none is named"
    return f"Strongest words in at least {_FEW} sentences: {', '.join(told)}"


def plot_scores(histogram: pd.DataFrame, peak: float | None = None) -> plt.Figure:
    """How the bias scores are distributed: a panel a model, bars over its base models.

    Args:
        histogram: model, base, bias_from (the lower end of a bin of .05), sentences.
        peak: where the paper's distribution has its peak.
    """
    models = sorted(histogram["model"].unique(), key=lambda name: (name != "base", name))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            max(1, len(models)),
            figsize=(7 if len(models) < 2 else 3.2 * len(models) + 0.8, 3.6),
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for ax, name in zip(axes[0], models):
            _draw_scores(ax, histogram[histogram["model"] == name], peak)
            head = "" if len(models) == 1 else f"{name}: "
            male = 100 * _male_share(histogram[histogram["model"] == name])
            ax.set_title(f"{head}{male:.0f} % of the scores lie on the male side")
        axes[0, 0].set_ylabel("sentences")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=4, **_OUTSIDE)
    return figure


def _male_share(part: pd.DataFrame) -> float:
    above = part.loc[part["bias_from"] > 0.499, "sentences"].sum()
    return float(above / max(1, part["sentences"].sum()))


def _draw_scores(ax: plt.Axes, part: pd.DataFrame, peak: float | None) -> None:
    wide = part.pivot(index="bias_from", columns="base", values="sentences").astype(float)
    middles = wide.index + 0.025
    ax.bar(middles, wide.mean(axis=1), width=0.046, color="0.82", label="mean of base models")
    for i, base in enumerate(wide if wide.shape[1] > 1 else []):
        looks = {"color": COLOURS[i % len(COLOURS)], "marker": _MARKS[i % len(_MARKS)]}
        ax.plot(middles, wide[base], **looks, markersize=4, label=f"base model {base}")
    ax.axvline(0.5, label="even (.5)", **_EVEN)
    if peak is not None:
        ax.axvline(peak, label=f"the paper's peak ({peak:g})".replace("0.", "."), **_PEAK)
    ax.set(xlabel="bias score: 0 female, 1 male", xlim=(0, 1))


def plot_models(arms: pd.DataFrame) -> plt.Figure:
    """Mean score and mean distance from even of the base models and of every arm.

    Args:
        arms: quantity (bias, distance), part, model, estimate, low, high.
    """
    parts = [part for part in PARTS if part in set(arms["part"])] or ["held out"]
    rows = arms.set_index(["quantity", "model", "part"])[["estimate", "low", "high"]]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, 2, figsize=(8, 1.15 * len(parts) + 1.5), sharey=True, layout="constrained"
        )
        for ax, (quantity, label) in zip(
            axes,
            (("bias", "mean bias score (.5 is even)"), ("distance", "mean distance from even")),
        ):
            for j, name in enumerate(MODELS):
                mine = rows.reindex([(quantity, name, part) for part in parts])
                y = np.arange(len(parts)) + 0.18 * (j - 1.5)
                _draw_intervals(ax, mine, y, *_LOOKS[name], label=MODELS[name])
            ax.set(xlabel=label)
        axes[0].axvline(0.5, **_EVEN)
        axes[0].set_yticks(range(len(parts)), [PARTS[part] for part in parts])
        axes[0].set_ylim(len(parts) - 0.4, -0.6)
        near = rows.reindex([("distance", name, "held out") for name in MODELS]).dropna()
        if len(near):
            figure.suptitle(_nearest(near.droplevel(["quantity", "part"])))
        handles, labels = axes[0].get_legend_handles_labels()
        told = "lines: 95 % intervals over nouns and base models"
        figure.legend(handles, labels, ncols=2, title=told, **_OUTSIDE)
    return figure


def _nearest(held_out: pd.DataFrame) -> str:
    """The model with the smallest mean distance, and whether its interval lies below the others."""
    name = held_out["estimate"].idxmin()
    is_below = (held_out.drop(name)["low"] > held_out["high"][name]).all()
    told = "its interval lies below the others" if is_below else "the intervals overlap"
    return f"On held-out nouns {name} has the smallest mean distance; {told}"


def _draw_intervals(
    ax: plt.Axes, part: pd.DataFrame, y: np.ndarray, mark: str, colour: Any, **looks: Any
) -> None:
    """Marks with their intervals from the columns estimate, low and high."""
    reach = [part["estimate"] - part["low"], part["high"] - part["estimate"]]
    ax.errorbar(part["estimate"], y, xerr=reach, fmt=mark, color=colour, **looks)


def plot_changes(power: pd.DataFrame) -> plt.Figure:
    """Differences between two models in the distance from even, with what could be found.

    Args:
        power: quantity, part, left, right, difference, low, high, smallest, largest, detectable.
    """
    drawn = power[power["quantity"] == "distance"].dropna(subset="difference")
    parts = list(dict.fromkeys(drawn["part"])) or ["held out"]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            len(parts),
            figsize=(3.1 * len(parts) + 2.9, 4.3),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for ax, part in zip(axes[0], parts):
            mine = drawn[drawn["part"] == part].set_index(["left", "right"])
            _draw_changes(ax, mine.reindex(list(PAIRS)))
            ax.set_title(f"{PARTS.get(part, part)}:\n{_told(mine)}")
            ax.set_xlabel("change in distance from .5\n← closer to even    further →")
        axes[0, 0].set_yticks(range(len(PAIRS)), list(PAIRS.values()))
        axes[0, 0].set_ylim(len(PAIRS) - 0.5, -0.5)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=2, **_OUTSIDE)
    return figure


def _told(changes: pd.DataFrame) -> str:
    """What the first pair says, in words."""
    pair = next(iter(PAIRS))
    if pair not in changes.index:
        return "no comparison"
    low, high = changes.loc[pair, ["low", "high"]]
    verdict = "closer to even" if high < 0 else "further from even" if low > 0 else "undecided"
    return f"augmented against placebo: {verdict}"


def _draw_changes(ax: plt.Axes, mine: pd.DataFrame) -> None:
    y = np.arange(len(mine))
    found = mine.rename(columns={"difference": "estimate"})
    ax.axvline(0, color="0.35", linewidth=1)
    first = slice(0, 1)
    looks: dict[str, Any] = {"markersize": 9, "linewidth": 2.4}
    label = "the main comparison, 95 % interval"
    _draw_intervals(ax, found[first], y[first], "D", COLOURS[3], label=label, **looks)
    label = "its two parts, and against the base model"
    _draw_intervals(ax, found[1:], y[1:], "o", COLOURS[0], label=label)
    ends = {"smallest": "lowest and highest base model", "largest": ""}  # one in the legend
    for name, told in ends.items():
        ax.plot(mine[name], y + 0.22, "k^", markersize=4, label=told or None)
    for sign, told in ((-1, "smallest difference detectable with 80 % power"), (1, "")):
        ax.plot(sign * mine["detectable"], y, "|", color="0.45", markersize=14, label=told or None)


def plot_correlations(correlations: pd.DataFrame) -> plt.Figure:
    """Rank correlations of association and bias score, with intervals.

    Args:
        correlations: unit, vectors, rho, low, high, n.
    """
    clear = (correlations["low"] > 0) | (correlations["high"] < 0)
    names = [f"{row.unit}: {row.vectors} (n = {row.n})" for row in correlations.itertuples()]
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7, 0.32 * max(len(names), 3) + 1), layout="constrained")
        ax.axvline(0, color="0.35", linewidth=1)
        found = correlations.rename(columns={"rho": "estimate"})
        for rows, mark, colour in ((clear, "o", COLOURS[0]), (~clear, "s", "0.55")):
            _draw_intervals(ax, found[rows], np.flatnonzero(rows), mark, colour)
        ax.set_yticks(range(len(names)), names)
        label = "rank correlation with the bias score, 95 % interval"
        ax.set(ylim=(len(names) - 0.5, -0.5), xlabel=label)
        ax.set_title(f"{clear.sum()} of {len(names)} intervals exclude zero (blue circles)")
    return figure


def plot_sensitivity(sensitivity: pd.DataFrame) -> plt.Figure:
    """The mean bias score under each version of the rules, and how many sentences it keeps.

    Args:
        sensitivity: option, kept, discarded, bias.
    """
    low, high = sensitivity["bias"].min(), sensitivity["bias"].max()
    total = sensitivity["kept"] + sensitivity["discarded"]
    as_set = sensitivity["option"] == "as set"
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(
            figsize=(7, 0.24 * max(len(sensitivity), 4) + 1), layout="constrained"
        )
        for y, (bias, share, is_ours) in enumerate(
            zip(sensitivity["bias"], sensitivity["kept"] / total, as_set)
        ):
            mark, colour = ("D", COLOURS[3]) if is_ours else ("o", COLOURS[0])
            ax.plot(bias, y, mark, color=colour)
            ax.text(bias + 0.008, y, f"{100 * share:.0f} %", va="center")
        ax.axvline(0.5, **_EVEN)
        names = sensitivity["option"].replace(READINGS, regex=True)
        ax.set_yticks(range(len(names)), names)
        ax.set(
            ylim=(len(sensitivity) - 0.5, -0.5),
            xlim=(0.48, high + 0.05),
            xlabel="mean bias score (dotted: even), and share of sentences kept",
        )
        ax.set_title(f"Every version of the rules gives a mean from {low:.2f} to {high:.2f}")
    return figure
