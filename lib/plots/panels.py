"""What the figures of attribution studies share: orders, names, looks, the grid of panels, dots
with intervals, legends; and the same grid as a table.
"""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..core.codes import DATASETS, METHODS, SCHEMES
from .style import COLOURS, STYLE

BARS = "bars: 95 % intervals"  # below every figure that has them
NO_MODEL = "-"  # the scheme of what no model was asked for: floors
# the papers' order: more and more of the model is trained
SCHEME_ORDER = ("ZS", "C", "CEf", "CE", "CEfAf", "OLA-CEA")
SCHEME_NAMES = SCHEMES | {NO_MODEL: "no model"}
FORM_NAMES = {"F": "female", "M": "male", "NB": "non-binary"}
DATASET_NAMES = {
    **{code: f"{name} ({code})" for code, name in DATASETS.items()},
    **{f"{code}_binary": f"{name}, two classes" for code, name in DATASETS.items()},
}
METHOD_ORDER = (
    "Integrated Gradients",
    "Gradient SHAP",
    "LIME",
    "InputXGradient",
    "DeepLift",
    "Guided Backprop",
    "Kernel SHAP",
    "Saliency",
)
_FAMILIES = {
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
BELOW = "below the first-pronoun rule"
_DAGGER = "\N{DAGGER}"


def panel_grid(
    table: pd.DataFrame, label: str
) -> tuple[plt.Figure, list[tuple[plt.Axes, str, pd.DataFrame]], list[str]]:
    """A grid of panels, data sets down and schemes across, methods on the shared y axis.

    The panel of a model that does not reach the first-pronoun rule is grey, with a dagger.

    Args:
        table: dataset, scheme, method, below_first_pronoun.
        label: what the shared x axis shows.

    Returns:
        The figure; of each panel its axes, its data set and its rows of the table; the methods from
        top to bottom.
    """
    datasets = list(table["dataset"].unique())
    schemes = known_first(table["scheme"].unique(), SCHEME_ORDER)
    methods = known_first(table["method"].unique(), METHOD_ORDER)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            len(datasets),
            len(schemes),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(1.2 * len(schemes) + 2.2, len(datasets) * (0.27 * len(methods) + 0.4) + 1.6),
        )
        panels = []
        for (row, column), ax in np.ndenumerate(axes):
            dataset, scheme = datasets[row], schemes[column]
            part = table[(table["dataset"] == dataset) & (table["scheme"] == scheme)]
            is_below = bool(part["below_first_pronoun"].any())
            ax.set_title((scheme_label(scheme, 14) + is_below * f" {_DAGGER}") if row == 0 else "")
            if is_below and row:
                ax.set_title(f"{_DAGGER} below the rule", fontsize=8)
            ax.set_facecolor("0.93" if is_below else "white")
            ax.set_yticks(range(len(methods)), [method_label(name) for name in methods])
            ax.set_ylim(len(methods) - 0.4, -0.6)
            if column == len(schemes) - 1:
                ax.yaxis.set_label_position("right")
                ax.set_ylabel(dataset_label(dataset), rotation=270, va="bottom")
            panels.append((ax, dataset, part))
        figure.supxlabel(f"{label}\n{BARS}", fontsize=10)
    return figure, panels, methods


def draw_families(ax: plt.Axes, part: pd.DataFrame, value: str, methods: Sequence[str]) -> None:
    """A dot with its interval for each method of a panel, in the look of the method's family."""
    for family, (marker, colour) in FAMILY_LOOKS.items():
        rows = part[part["method"].map(_family_of) == family]
        draw_dots(ax, rows, value, method_rows(rows, methods), marker, colour)


def draw_dots(
    ax: plt.Axes,
    part: pd.DataFrame,
    value: str,
    y: np.ndarray,
    marker: str,
    colour: object,
    hollow: bool = False,
) -> None:
    """Dots at `value` and `y`, with intervals from the columns low and high."""
    x = part[value].to_numpy(float)
    reach = [x - part["low"].to_numpy(float), part["high"].to_numpy(float) - x]
    ax.errorbar(
        x,
        y,
        xerr=np.nan_to_num(reach).clip(min=0),
        fmt=marker,
        color=colour,
        markersize=5,
        linewidth=1.4,
        capsize=2,
        zorder=3,
        markerfacecolor="white" if hollow else colour,
    )


def draw_floors(ax: plt.Axes, floors: Iterable[tuple[str, float]]) -> None:
    """A vertical line for each floor, given by its name and its value."""
    for name, value in floors:
        style, colour = FLOOR_LOOKS[name]
        ax.axvline(value, linestyle=style, color=colour, linewidth=1.4, zorder=1)


def method_label(method: str) -> str:
    """How a method is called in a figure.

    >>> method_label("InputXGradient")
    'Input x Gradient'
    """
    return METHODS.get(method, method)


def method_rows(part: pd.DataFrame, methods: Sequence[str]) -> np.ndarray:
    """The place of each row's method on the y axis."""
    return np.array([list(methods).index(method) for method in part["method"]], dtype=float)


def scheme_label(scheme: str, width: int = 18) -> str:
    r"""How a scheme is called in a figure, its code in brackets, broken into lines.

    >>> scheme_label("CE")
    'head + new\nembeddings (CE)'
    >>> scheme_label("mine")
    'mine'
    """
    name = SCHEME_NAMES.get(scheme, scheme)
    code = f" ({scheme})" if scheme in SCHEME_NAMES and scheme != NO_MODEL else ""
    return fill(name + code, width, break_on_hyphens=False)


def dataset_label(dataset: str) -> str:
    """How a data set is called in a figure."""
    return DATASET_NAMES.get(dataset, dataset)


def family_handles(models: pd.DataFrame) -> dict[str, tuple[object, ...]]:
    """The markers of the families that a table has methods of, for `add_legend`."""
    used = {_family_of(method) for method in models["method"]}
    return {f"{family} method": look for family, look in FAMILY_LOOKS.items() if family in used}


def add_legend(
    figure: plt.Figure,
    markers: Mapping[str, tuple[object, ...]],
    lines: Mapping[str, tuple[object, object]],
    finding: str = "",
) -> None:
    """A legend above the panels, under the finding; it explains the dagger where a title has one.

    Args:
        figure: the figure.
        markers: marker and colour by name, and anything third for a hollow marker.
        lines: line style and colour by name.
        finding: what the figure shows, in a sentence.
    """
    handles = [
        Line2D([], [], linestyle="", marker=m, color=c, mfc="white" if hollow else c, label=name)
        for name, (m, c, *hollow) in markers.items()
    ]
    handles += [Line2D([], [], linestyle=s, color=c, label=name) for name, (s, c) in lines.items()]
    if any(_DAGGER in ax.get_title() for ax in figure.axes):
        handles.append(Patch(facecolor="0.93", edgecolor="0.6", label=f"{_DAGGER} model {BELOW}"))
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(5, len(handles)),
        frameon=False,
        fontsize=9,
        title=finding,
        title_fontsize=11,
    )


def method_grid(table: pd.DataFrame, value: str, dataset: str, digits: int = 2) -> pd.DataFrame:
    """A column of a table for one data set, to be shown: methods down and models across, by their
    names and in the order of the figures.

    Args:
        table: dataset, scheme, method and `value`, one line each; floors carry scheme "-".
        value: the column that is shown.
        dataset: the data set.
        digits: to which numbers are rounded; what is missing stays empty.

    >>> table = pd.DataFrame({"scheme": ["CE", "C"], "dataset": "d", "method": "LIME", "MA": 0.2})
    >>> method_grid(table, "MA", "d").columns.tolist()
    ['head only', 'head + new embeddings']
    """
    part = table[table["dataset"] == dataset]
    grid = part.pivot(index="method", columns="scheme", values=value).reindex(
        index=known_first(part["method"].unique(), METHOD_ORDER),
        columns=known_first(part["scheme"].unique(), SCHEME_ORDER),
    )
    grid = grid.rename(index=method_label, columns=SCHEME_NAMES)
    return grid.round(digits).astype(object).fillna("").rename_axis(index=None, columns="method")


def known_first(names: Sequence[str], order: Sequence[str]) -> list[str]:
    """Names in a known order, and those that it does not know behind, as they come.

    >>> known_first(["mine", "LIME", "Saliency"], ["Saliency", "LIME"])
    ['Saliency', 'LIME', 'mine']
    """
    names = list(dict.fromkeys(names))
    return [name for name in order if name in names] + [n for n in names if n not in order]


def _family_of(method: str) -> str:
    return _FAMILIES.get(method, "gradient" if method in METHOD_ORDER else "own")
