"""What a figure's cell needs and no table holds by the name of its variable (tools/redraw.py).

Each entry gets a reader of the tables that the figure's stage saved, and returns the cell's names.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pandas as pd

from lib.core.paths import reference_dir

Read = Callable[[str], pd.DataFrame]


def _bars(read: Read) -> dict[str, Any]:
    figure = read("figure")
    panels = dict(list(figure.groupby("panel")))
    masked = panels["masked words"]
    return {"left": masked.assign(x=masked["x"].astype(int)), "right": panels["bias_C"]}


def _shares(read: Read) -> dict[str, Any]:
    table = read("side_by_side")
    return {
        "words": list(table["word"]),
        "truth": list(table["ground_truth"]),
        "columns": {name: table[name].to_numpy() for name in table.columns[2:]},
    }


def _worlds(read: Read) -> dict[str, Any]:
    effects = read("average_effects")
    manifest = reference_dir("cebab", "cpu") / "01_data_generation" / "manifest.json"
    confounding = pd.read_json(manifest, typ="series")["parameters"]["confounding"]
    return {
        "worlds": {
            "confounded": SimpleNamespace(confounding=confounding),
            "independent": SimpleNamespace(confounding=0.0),
        },
        "opposite": effects[(effects["old"] == "Negative") & (effects["new"] == "Positive")],
        "sample": read("conditional_means").set_index(["world", "aspect"]),
    }


def _accuracies(read: Read) -> dict[str, Any]:
    table = read("figure")
    return {"accuracy": table, "data": list(table["dataset"].unique())}


def _one_text(read: Read) -> dict[str, Any]:
    table = read("figure")
    return {"shown": table, "actual": table["model"].iloc[0]}


def _sets(read: Read) -> dict[str, Any]:
    return {"statistics": read("statistics"), "plotted": read("figure")}


def _learning(read: Read) -> dict[str, Any]:
    """A run of before had one training of each model, and its probes' kinds were called tasks."""
    curves, probes = read("curves"), read("probes")
    if "kind" not in probes:
        probes = probes.rename(columns={"task": "kind"})
    return {
        "curves": curves if "training" in curves else curves.assign(training=0),
        "accuracy": probes if "training" in probes else probes.assign(training=0),
        "of_sweep": ~probes["size"].isin(["full", "student"]),
    }


def _one_line(read: Read) -> dict[str, Any]:
    table = read("side_by_side")
    words = [name.partition(" ")[2] for name in table.columns[1:]]
    return {"side_by_side": table, "line": words}


def _errors(read: Read) -> dict[str, Any]:
    model = read("figure")["model"].iloc[0]
    return {"errors": read("errors"), "ceiling": read("ceiling"), "model": model}


def _plausible(read: Read) -> dict[str, Any]:
    table = read("plausibility").rename(columns={"all": "estimate"})
    return {"full": table[table["size"] == "full"], "floors": read("floors")}


def _rows(read: Read, name: str, scores: bool) -> pd.DataFrame:
    """Sentences as `plot_words` wants them, of a table with a line a word."""
    table = read(name).fillna({"mark": ""})
    rows = []
    for label, part in table.groupby("label", sort=False):
        row = {"label": label, "words": list(part["word"]), "marks": list(part["mark"])}
        rows.append(row | {"scores": list(part["score"]) if scores else None})
    return pd.DataFrame(rows)


def _one_review(read: Read) -> dict[str, Any]:
    picture = _rows(read, "one_review", scores=True)
    return {"picture": picture, "mine": picture}  # a row of either is one explanation


GIVEN: dict[str, Callable[[Read], dict[str, Any]]] = {
    "geco/01_data_generation/data": _bars,
    "geco/03_attribution/side_by_side": _shares,
    "geco/04_metrics/mass_accuracy": lambda read: {"main": read("figure")},
    "lm_saliency/01_data_generation/sets": _sets,
    "lm_saliency/02_training/training": _learning,
    "lm_saliency/03_attribution/side_by_side": _one_line,
    "lm_saliency/04_metrics/plausibility": _plausible,
    "cebab/01_data_generation/confounding": _worlds,
    "cebab/02_training/accuracy": _accuracies,
    "cebab/03_attribution/one_text": _one_text,
    "cebab/04_metrics/errors": _errors,
    "implicit_bias/01_data_generation/steps": lambda read: {"steps": read("steps")},
    "implicit_bias/02_training/perplexity": lambda read: {"costs": read("perplexity")},
    "implicit_bias/03_attribution/drivers": lambda read: {"extremes": read("figure")},
    "assay/01_data_generation/items_shown": lambda read: {
        "shown": _rows(read, "items_shown", scores=False)
    },
    "assay/01_data_generation/tasks": lambda read: {"tasks": read("tasks").set_index("model")},
    "assay/03_attribution/one_review": _one_review,
    "assay/03_attribution/agreement": lambda read: {
        "agreement": read("agreement").set_index("explainer")
    },
    "assay/04_metrics/budgets": lambda read: {
        "bought": read("budgets"),
        "floors": read("floors").set_index("explainer"),
    },
}
