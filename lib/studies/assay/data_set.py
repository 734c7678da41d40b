"""All explanations of a run, with words and truth, as a data set with a card and Croissant."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...core.cards import dataset_card, read_card
from ...core.croissant import Field, file_object, metadata, record_set
from ...core.errors import TouchstoneError
from ...core.files import load_parquet, save_json, write_atomic
from ...core.paths import material
from ...core.stage import MANIFEST, read_manifest
from .explainers import ABOUT_TEXT
from .standing import role_of
from .truths import telling_items

FILE = "explanations.jsonl"
TAKEN = {"geco": ("mask", "swap"), "cebab": ("edit",)}  # truths with the texts of another row
FIELDS: dict[str, Field] = {
    "item_id": ("sc:Text", "The item: a text that one trained model was asked about.", False),
    "truth": ("sc:Text", "The truth that the item belongs to.", False),
    "model": ("sc:Text", "What the model has learnt.", False),
    "training": ("sc:Integer", "Which training of it.", False),
    "target": ("sc:Integer", "The class whose log-odds were explained.", False),
    "explainer": ("sc:Text", "Who explained it.", False),
    "role": ("sc:Text", "explainer, or floor: a rule that never looks at the model.", False),
    "words": ("sc:Text", "The words of the text.", True),
    "scores": ("sc:Float", "A score for each word.", True),
    "key": ("sc:Float", "What the truth knows of each word; null where nothing.", True),
    "change": ("sc:Float", "For edits: what the edit did to the answer; else null.", False),
}


def export(run: Path, out: Path) -> dict[str, int]:
    """Write `explanations.jsonl`, `README.md` (the card) and `croissant.json`.

    Truths whose texts are not ours to give away (`texts_of` of stage 01) are left out.

    Args:
        run: the folder of a run of the assay whose stages 01 to 03 are complete.
        out: the folder of the data set.

    Returns:
        How many explanations, items, explainers and truths it holds.

    Raises:
        TouchstoneError: a stage is missing.
    """
    parameters = _parameters(run / "01_data_generation")
    _parameters(run / "03_attribution")
    theirs = [truth for row in parameters.get("texts_of", {}) for truth in TAKEN[row]]
    truths = load_parquet(run / "02_training" / "truths.parquet")
    table = explained_items(
        truths[~truths["truth"].isin(theirs)],
        load_parquet(run / "03_attribution" / "explanations.parquet"),
    )
    numbers = {
        "explanations": len(table),
        "items": table["item_id"].nunique(),
        "explainers": table.loc[table["role"] == "explainer", "explainer"].nunique(),
        "truths": table["truth"].nunique(),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / FILE, table.to_json(orient="records", lines=True, double_precision=10))
    left_out = " and ".join(theirs) or "none"
    filled = {**numbers, "scale": parameters["scale"], "left_out": left_out}
    card = read_card(material("assay") / "card.yaml", "explanations", filled)
    write_atomic(out / "README.md", dataset_card(card))
    save_json(croissant(card, out), out / "croissant.json")
    return numbers


def explained_items(truths: pd.DataFrame, explanations: pd.DataFrame) -> pd.DataFrame:
    """A line for each explanation of an item that tells, in the columns of `FIELDS`.

    Args:
        truths: of stage 02.
        explanations: of stage 03: explainer, model, training, text, scores.
    """
    items = telling_items(truths)
    table = items.merge(explanations, on=ABOUT_TEXT).rename(columns={"sentence": "words"})
    table["key"] = [[None if np.isnan(x) else float(x) for x in key] for key in table["key"]]
    table["role"] = table["explainer"].map(role_of)
    return table[list(FIELDS)].sort_values(["item_id", "explainer"], ignore_index=True)


def croissant(card: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The Croissant metadata of a data set that lies in a folder."""
    files = [file_object(folder, "explanations", FILE, "application/jsonlines")]
    about = "An explanation in each record."
    key = ("item_id", "explainer")
    return metadata(card, files, [record_set("records", "explanations", about, FIELDS, key)])


def _parameters(stage: Path) -> dict[str, Any]:
    manifest = read_manifest(stage / MANIFEST) if (stage / MANIFEST).is_file() else None
    if manifest is None:
        raise TouchstoneError(
            f"there is no finished stage in {stage}; `touchstone run assay`, or name another run"
        )
    parameters: dict[str, Any] = manifest["parameters"]
    return parameters
