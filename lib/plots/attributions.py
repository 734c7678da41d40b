"""Figures of attribution studies: how well models do, and how much of an explanation lies where.

Floors, which see no model, carry the scheme "-" and are drawn wherever models are.
"""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Patch

from .panels import (
    BARS,
    FLOOR_LOOKS,
    FORM_NAMES,
    METHOD_ORDER,
    NO_MODEL,
    SCHEME_ORDER,
    add_legend,
    dataset_label,
    draw_dots,
    draw_families,
    draw_floors,
    family_handles,
    known_first,
    method_label,
    method_rows,
    panel_grid,
    scheme_label,
)
from .style import COLOURS, STYLE, Plotted

# attribution per word: less than this between the forms is of no interest (claims.yaml of geco)
SMALLEST = 0.01
_PRONOUNS = ("she", "her", "he", "him", "his", "they", "them", "their")


def plot_mass_accuracy(
    table: pd.DataFrame, value: str = "MA", label: str = "mass accuracy"
) -> Plotted:
    """Mass accuracy of every method, a panel per data set and scheme, floors as lines (GECOBench
    Figure 2b).

    Args:
        table: dataset, scheme, method, `value`, low, high and below_first_pronoun; floors carry
            scheme "-".
        value: the column that is drawn.
        label: its name on the x axis.
    """
    models, floors = (
        table[table["scheme"] != NO_MODEL],
        table[table["scheme"] == NO_MODEL],
    )
    figure, panels, methods = panel_grid(models, label)
    for ax, dataset, part in panels:
        draw_families(ax, part, value, methods)
        ax.set_xlim(min(0.0, np.nanmin(models["low"].fillna(0))), 1.04)
        ax.set_xticks((0, 0.5, 1), ("0", ".5", "1"))
        here = floors[floors["dataset"] == dataset]
        draw_floors(ax, zip(here["method"], here[value]))
    finding = ""
    if not (rule := floors[floors["method"] == "First pronoun"]).empty:
        reached = models["dataset"].map(rule.set_index("dataset")[value])
        n_above = (models[value] > reached).sum()
        finding = (
            f"{n_above or 'None'} of {models[value].notna().sum()} explanations of a model exceed "
            "the rule 'first pronoun', which looks at no model"
        )
    add_legend(
        figure,
        family_handles(models),
        {name: FLOOR_LOOKS[name] for name in floors["method"].unique()},
        finding,
    )
    return figure, table[
        ["dataset", "scheme", "method", value, "low", "high", "below_first_pronoun"]
    ]


def plot_relative_mass_accuracy(table: pd.DataFrame) -> Plotted:
    """Median mass accuracy over that of the zero-shot model, a panel per data set and scheme
    (GECOBench Figure 2a).

    The line at 1 is the zero-shot model itself; the small strokes are what the floors reach over
    the same zero-shot values.

    Args:
        table: dataset, scheme, method, RMA, low, high, RMA_first_pronoun, RMA_uniform_random,
            below_first_pronoun.
    """
    models = table[table["scheme"] != "ZS"]
    strokes = {"First pronoun": "RMA_first_pronoun", "Uniform random": "RMA_uniform_random"}
    label = "mass accuracy over that of the zero-shot model, median"
    figure, panels, methods = panel_grid(models, label)
    for ax, _, part in panels:
        ax.set_xlim(0, max(1.1, 1.04 * models[["high", *strokes.values()]].max(axis=None)))
        ax.axvline(1.0, color="0.3", linewidth=1.2, linestyle="--", zorder=1)
        draw_families(ax, part, "RMA", methods)
        for name, column in strokes.items():
            ax.plot(
                part[column],
                method_rows(part, methods),
                linestyle="",
                marker="|",
                markersize=9,
                markeredgewidth=2,
                color=FLOOR_LOOKS[name][1],
            )
    n_more = (models["low"] > 1).sum()
    add_legend(
        figure,
        family_handles(models) | {name: ("|", FLOOR_LOOKS[name][1]) for name in strokes},
        {"zero-shot model": ("--", (0.3, 0.3, 0.3))},
        f"{n_more} of {models['RMA'].notna().sum()} explanations lie more on changed words than "
        "the zero-shot model's (interval above 1)",
    )
    return figure, models[["dataset", "scheme", "method", "RMA", "low", "high", *strokes.values()]]


def plot_form_difference(table: pd.DataFrame) -> Plotted:
    """Attribution in the female minus that in the male form (GECOBench, first version, Figure 7).

    Args:
        table: dataset, scheme, method, words ("truth" for changed words, "other"; further ones
            are left out), difference, low, high, below_first_pronoun.
    """
    looks = {
        "truth": ("changed words", "D", COLOURS[2], -0.15),
        "other": ("other words", "o", "0.55", 0.15),
    }
    table = table[table["words"].isin(list(looks))]
    models = table[table["scheme"] != NO_MODEL]
    figure, panels, methods = panel_grid(models, "attribution per word, female minus male form")
    for ax, _, part in panels:
        ax.axvline(0.0, color="0.3", linewidth=1.0, zorder=1)
        for words, (_, marker, colour, shift) in looks.items():
            rows = part[part["words"] == words]
            draw_dots(ax, rows, "difference", method_rows(rows, methods) + shift, marker, colour)
    truth = models[models["words"] == "truth"]
    more, less = (truth["low"] > 0).sum(), (truth["high"] < 0).sum()
    add_legend(
        figure,
        {name: (marker, colour) for name, marker, colour, _ in looks.values()},
        {},
        f"Of {truth['difference'].notna().sum()} explanations {more} give changed words more in "
        f"the female form, {less} in the male form",
    )
    return figure, table[["dataset", "scheme", "method", "words", "difference", "low", "high"]]


def plot_significance(table: pd.DataFrame, alpha: float = 0.05) -> Plotted:
    """The sizes of these differences, and which are significant (GECOBench, first version,
    Figure 8, which shows p values alone).

    Full diamonds are significant after Holm's correction. The band is what is too small to matter.

    Args:
        table: dataset, scheme, method, difference, low, high, p_holm, below_first_pronoun; the rows
            of changed words.
        alpha: the level from which a p value is not significant.
    """
    models = table[table["scheme"] != NO_MODEL]
    figure, panels, methods = panel_grid(models, "attribution per word, female minus male form")
    looks = {False: ("0.45", True), True: (COLOURS[2], False)}
    for ax, _, part in panels:
        ax.axvspan(-SMALLEST, SMALLEST, color="0.85", zorder=0)
        for is_clear, (colour, hollow) in looks.items():
            rows = part[(part["p_holm"] < alpha) == is_clear]
            draw_dots(ax, rows, "difference", method_rows(rows, methods), "D", colour, hollow)
    marks = {
        "significant (Holm)": ("D", COLOURS[2]),
        "not significant": ("D", "0.45", "hollow"),
        f"less than {SMALLEST:g} a word": ("s", "0.85"),
    }
    is_clear = models["p_holm"] < alpha
    is_large = (models["low"] > SMALLEST) | (models["high"] < -SMALLEST)
    n_models = models["difference"].notna().sum()
    if is_clear.any():
        told = (
            f"{is_clear.sum()} of {n_models} differences are significant, "
            f"{(is_clear & is_large).sum()} of these surely larger than {SMALLEST:g}"
        )
    else:
        told = f"None of {n_models} differences is significant"
        del marks["significant (Holm)"]
    add_legend(
        figure,
        marks,
        {},
        told,
    )
    return figure, table[["dataset", "scheme", "method", "p_holm"]]


def plot_correlation(table: pd.DataFrame, n_words: int = 10) -> Plotted:
    """The words whose tf-idf correlates most with each class (GECOBench Figure 3).

    Args:
        table: dataset, class, word, r (Pearson's correlation).
        n_words: so many words a class are drawn.
    """
    keys = ["dataset", "class"]
    top = table.sort_values([*keys, "r"], ascending=[True, True, False], kind="stable")
    top = top.groupby(keys, sort=False).head(n_words).reset_index(drop=True)
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
        for (row, column), ax in np.ndenumerate(axes):
            dataset, name = datasets[row], classes[column]
            part = top[(top["dataset"] == dataset) & (top["class"] == name)]
            ax.barh(
                range(len(part)), part["r"], color=COLOURS[column], edgecolor="black", linewidth=0.5
            )
            ax.set(
                yticks=range(len(part)),
                yticklabels=part["word"],
                title=f"{dataset_label(dataset)}: {FORM_NAMES.get(name, name)}",
            )
            ax.invert_yaxis()
        figure.supxlabel("Pearson correlation of a word's tf-idf with the class", fontsize=10)
        first = top.groupby(keys, sort=False)["word"].first()
        n_pronouns = first.isin(_PRONOUNS).sum()
        figure.suptitle(
            f"A pronoun is the word that goes most with its class in {n_pronouns} of {len(first)} "
            "panels"
        )
    return figure, top


def plot_performance(table: pd.DataFrame) -> Plotted:
    """Test accuracy of every model with its interval, floors as lines (GECOBench Figure 4).

    Hollow squares are hard rows, where the rule can only guess.

    Args:
        table: dataset, scheme, accuracy, low, high, and the same for hard rows (accuracy_hard,
            low_hard, high_hard), below_first_pronoun; floors are the rows whose scheme is not a
            training scheme.
    """
    datasets = list(table["dataset"].unique())
    n_columns = min(2, len(datasets))
    n_rows = -(-len(datasets) // n_columns)
    with plt.rc_context(STYLE):
        n_lines = table[table["scheme"].isin(SCHEME_ORDER)].groupby("dataset")["scheme"].nunique()
        n_lines = n_lines.reindex(datasets, fill_value=1).to_list()
        heights = [max(n_lines[i : i + n_columns]) for i in range(0, len(datasets), n_columns)]
        figure, axes = plt.subplots(
            n_rows,
            n_columns,
            sharex=True,
            squeeze=False,
            layout="constrained",
            figsize=(5.4 * n_columns, 0.4 * sum(heights) + 0.4 * n_rows + 1),
            height_ratios=heights,
        )
        for ax, dataset in zip(axes.flat, datasets):
            part = table[table["dataset"] == dataset]
            is_model = part["scheme"].isin(SCHEME_ORDER)
            models = part[is_model].sort_values(
                "scheme", key=lambda names: names.map(SCHEME_ORDER.index), kind="stable"
            )
            hard = models[["accuracy_hard", "low_hard", "high_hard"]].set_axis(
                ["accuracy", "low", "high"], axis=1
            )
            y = np.arange(len(models))
            draw_dots(ax, models, "accuracy", y - 0.12, "o", COLOURS[0])
            draw_dots(ax, hard, "accuracy", y + 0.18, "s", "0.45", hollow=True)
            ax.set(
                yticks=y,
                yticklabels=[scheme_label(name, 20) for name in models["scheme"]],
                title=dataset_label(dataset),
                ylim=(len(models) - 0.5, -0.5),
            )
            draw_floors(ax, zip(part.loc[~is_model, "scheme"], part.loc[~is_model, "accuracy"]))
        figure.supxlabel(f"test accuracy; {BARS}", fontsize=10)
        learnt = table[table["scheme"].isin(SCHEME_ORDER)]
        add_legend(
            figure,
            {"all rows": ("o", COLOURS[0]), "hard rows": ("s", "0.45", "hollow")},
            {name: look for name, look in FLOOR_LOOKS.items() if name in set(table["scheme"])},
            f"{learnt['below_first_pronoun'].sum()} of {len(learnt)} models classify worse than "
            "the first-pronoun rule",
        )
    return figure, table


def plot_example(table: pd.DataFrame) -> Plotted:
    """Each word's share of the attribution of one sentence, a panel per method and scheme
    (GECOBench Figure 5).

    Ground-truth words are green and hatched, and bold below. Floors stand in the last column. The
    title says which word is most often the first of an explanation of a model, and how often.

    Args:
        table: scheme, method, position, word, share, is_truth; floors carry scheme "-".
    """
    is_floor = table["scheme"] == NO_MODEL
    floors = list(table.loc[is_floor, "method"].unique())
    methods = known_first(table.loc[~is_floor, "method"].unique(), METHOD_ORDER)
    schemes = known_first(table.loc[~is_floor, "scheme"].unique(), SCHEME_ORDER)
    columns = [(scheme, methods) for scheme in schemes] + ([(NO_MODEL, floors)] if floors else [])
    words = table.drop_duplicates("position").sort_values("position")
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, axes = plt.subplots(
            len(methods),
            len(columns),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=((0.135 * len(words) + 0.15) * len(columns) + 2.4, 0.62 * len(methods) + 1.6),
        )
        for (row, column), ax in np.ndenumerate(axes):
            scheme, shown = columns[column]
            ax.set_title(scheme_label(scheme, 14) if row == 0 else "", fontsize=9)
            if row < len(shown):
                is_here = (table["method"] == shown[row]) & (table["scheme"] == scheme)
                _draw_shares(ax, table[is_here].sort_values("position"), words)
            else:
                ax.set_axis_off()
            if scheme == NO_MODEL and row < len(shown):
                ax.text(1.03, 0.5, shown[row], transform=ax.transAxes, va="center", fontsize=9)
            if column == 0:
                ax.set_ylabel(method_label(methods[row]), rotation=0, ha="right", va="center")
        handles = [
            Patch(facecolor=COLOURS[2], hatch="//", label="changed words (ground truth)"),
            Patch(facecolor="0.65", label="the same in all forms"),
        ]
        figure.legend(
            handles=handles,
            loc="outside upper center",
            ncols=2,
            frameon=False,
            title=_first_word(table[~is_floor], words),
            title_fontsize=11,
        )
        figure.supxlabel("bars: each word's share of the attribution", fontsize=10)
    plotted = table.pivot_table(
        index=["scheme", "method"], columns="position", values="share", sort=False
    )
    names = {position: f"{position} {w}" for position, w in zip(words["position"], words["word"])}
    return figure, plotted.rename(columns=names).reset_index()


def _first_word(models: pd.DataFrame, words: pd.DataFrame) -> str:
    """Which word has the largest share in most explanations of a model, and in how many."""
    largest = models.loc[models.groupby(["scheme", "method"])["share"].idxmax(), "position"]
    counts = largest.value_counts().sort_index()
    word = words.set_index("position").loc[counts.idxmax(), "word"]
    return (
        f"{counts.max()} of {len(largest)} explanations of {_quoted(words['word'])} give the "
        f"largest share to {_quoted([word])}"
    )


def _quoted(words: Iterable[str]) -> str:
    """Words in quotation marks, without the blank before a full stop."""
    said = " ".join(words).replace(" .", ".")
    return f"\N{LEFT DOUBLE QUOTATION MARK}{said}\N{RIGHT DOUBLE QUOTATION MARK}"


def _draw_shares(ax: plt.Axes, part: pd.DataFrame, words: pd.DataFrame) -> None:
    ax.bar(
        part["position"],
        part["share"],
        color=[COLOURS[2] if is_truth else "0.65" for is_truth in part["is_truth"]],
        hatch=["//" if is_truth else "" for is_truth in part["is_truth"]],
    )
    ax.set(ylim=(0, 1), yticks=[0, 1])
    ax.set_xticks(words["position"], words["word"], rotation=90, fontsize=9)
    for tick, is_truth in zip(ax.get_xticklabels(), words["is_truth"]):
        tick.set_fontweight("bold" if is_truth else "normal")
