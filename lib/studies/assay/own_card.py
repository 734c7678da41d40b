"""What `own_model` found, as a card."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ... import __version__
from ...core.files import save_parquet
from ...doors.card import SCHEMA
from ...doors.submission import read_scores
from ...metrics.randomisation import randomise
from .card import ASKS, asked_twice, row_of, scored_of, sentences_of, summary
from .checks import likeness_when_redrawn
from .explainers import ABOUT_TEXT
from .file_card import NOT_BLIND, check_file, whole_truths
from .own_model import (
    COPY,
    YOURS,
    Asked,
    ask_classifier,
    explain_own,
    own_cells,
    with_text,
)

ITEMS = "items.parquet"  # what a file about a classifier answers: item_id, target, sentence
_BESIDE: dict[str, dict[str, Any]] = {"Integrated Gradients": {"n_steps": 20}, "Occlusion": {}}
_SHOWN = "swap"
_OURS = "asks about a task that only models of ours have learnt"
_OF_COPY = (
    "planted: asked about a copy of the classifier, fine-tuned on planted texts; this judges the "
    "architecture and not the weights that are in use"
)


def own_card(
    folder: Path,
    made: Path,
    chosen: Mapping[str, Any],
    explainer: str,
    settings: Mapping[str, Any],
    out: Path,
    file: Path | None = None,
) -> dict[str, Any]:
    """The card of an explainer, or of a file of explanations, on somebody's own classifier.

    Args:
        folder: of the classifier.
        made: the folder of the stage 01 of a run of the assay.
        chosen: the parameters of its stage 04.
        explainer: a registered method or "module:function"; what a file is called.
        settings: of the explainer.
        out: the folder of the card; the items are written into it first.
        file: item_id and scores of these items, in place of asking the explainer.

    Raises:
        TouchstoneError: the folder holds no classifier of two classes or more; the file is not
            there, does not fit the items, or answers no truth whole.
    """
    asked = ask_classifier(folder, made)
    mine = asked.truths["model"] == YOURS
    items = asked.truths.loc[mine, ["item_id", "truth", "target", "sentence"]]
    save_parquet(items.reset_index(drop=True), out / ITEMS)
    if file is not None:
        check_file(file, out / ITEMS)
    why = {"mask": _OURS, "cue": _OURS}
    beside = {name: given for name, given in _BESIDE.items() if name != explainer}
    if file is None:
        asking = {explainer: dict(settings), **beside}
        explanations, refused = explain_own(asked, asking)
        why |= _reasons(asked, refused, explainer)
    else:
        explanations, _ = explain_own(asked, beside)
        said, missing = _from_file(file, asked, items, explainer)
        explanations = pd.concat([explanations, said], ignore_index=True)
        why |= missing | {"planted": "a file cannot explain the copy that is made here"}
    cells, unknown = own_cells(asked, explanations, chosen)
    rows = [row_of(cells, truth, explainer, (why | unknown).get(truth)) for truth in ASKS]
    own = explanations[explanations["explainer"] == explainer].reset_index(drop=True)
    shown = asked.truths.query("truth == @_SHOWN and model == @YOURS")
    gate, draws, seconds = None, None, None
    if file is None and not own[own["model"] == YOURS].empty:
        draws, seconds = asked_twice(asked.models[YOURS], shown, explainer, settings)
        gate = _gate(asked, shown, own, {explainer: dict(settings)}, chosen["gate"])
    found = {
        "schema": SCHEMA,
        "touchstone": __version__,
        "explainer": explainer,
        "settings": dict(settings),
        "model": str(folder),
        "notes": [_OF_COPY] if file is None else [NOT_BLIND],
        "scale": "small",
        "decides": False,
        "truths": rows,
        "gate": gate,
        "other_model": [],
        "single": {"draws": draws, "trainings": None},
        "cost": {"seconds": seconds, "quality": []},
        "sentences": sentences_of(asked.truths, own, scored_of(asked.truths, own), _SHOWN),
    }
    return found | {"summary": summary(found)}


def _reasons(
    asked: Asked, refused: Mapping[tuple[str, str], str], explainer: str
) -> dict[str, str]:
    """Why a truth has no number: the explainer refuses the model, or the copy follows no rule."""
    why = {
        truth: refused[explainer, YOURS]
        for truth in ASKS
        if (explainer, YOURS) in refused and truth not in ("mask", "cue", "planted")
    }
    if (explainer, COPY) in refused:
        why["planted"] = refused[explainer, COPY]
    if not asked.rules["is_followed"].any():
        best = asked.rules.loc[asked.rules["right"].idxmax()]
        why["planted"] = (
            f"the copy has learnt no planted rule ({best['rule']} best, {best['right']:.2f} right)"
        )
    return why


def _from_file(
    file: Path, asked: Asked, items: pd.DataFrame, name: str
) -> tuple[pd.DataFrame, dict[str, str]]:
    """A file's explanations of the truths that it answers whole, and what is missing of others."""
    said = read_scores(file, items)
    whole, why = whole_truths(file, said, items)
    known = with_text(asked.truths[asked.truths["truth"].isin(whole)])
    found = known[["item_id", *ABOUT_TEXT]].merge(said, on="item_id").assign(explainer=name)
    if "swap" in why:  # the texts of the deletions are those of the swaps
        why |= {truth: why["swap"] for truth in ASKS if truth.startswith("deletion")}
    return found[["explainer", *ABOUT_TEXT, "scores"]], why


def _gate(
    asked: Asked,
    rows: pd.DataFrame,
    own: pd.DataFrame,
    explainer: Mapping[str, Mapping[str, Any]],
    least: float,
) -> dict[str, Any]:
    """Whether the explanations change when all weights are drawn anew; the weights are gone then,
    so this is asked last.
    """
    module = asked.models[YOURS].module
    randomise(module, dict(module.named_parameters()), 0)
    redrawn, _ = explain_own(asked._replace(truths=rows), explainer)
    likeness = likeness_when_redrawn(own, redrawn).set_index("explainer")["likeness"]
    value = float(likeness[next(iter(explainer))])
    return {"likeness": value, "passes": value < least}
