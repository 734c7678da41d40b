"""The board: everybody of a run of the assay, and what others have handed in, on one scale."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...core.files import load_parquet
from ...core.stage import MANIFEST, read_manifest
from ...doors.board import COLUMNS
from ...doors.submission import Submission, read_submission, remarks
from . import standing, synthesis
from .models import read_model
from .truths import cheaters, oracle, score_deletion, score_items, telling_items

US = "Touchstone"
_KEYS = ["model", "training", "text"]
_ANSWER = ["item_id", "explainer", "scores"]
_DELETED = "gender"  # the model whose texts lose words
_FLOORS_TOLD = ("Word counts", "Even", "Nearest", "First pronoun", "Pronoun list")


def read_submissions(folder: Path, run: Path) -> list[Submission]:
    """All submissions below a folder, checked against the items of a run.

    Raises:
        TouchstoneError: naming the file and the item, for one that does not fit; see
            `lib.doors.submission`.
    """
    items = telling_items(load_parquet(run / "02_training" / "truths.parquet"))
    parts = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [read_submission(part, items) for part in parts]


def board(run: Path, submissions: Sequence[Submission]) -> pd.DataFrame:
    """The table of the board.

    Args:
        run: the folder of a run whose stages 01 to 04 are complete.
        submissions: with explanations of all its items.

    Returns:
        The columns of `lib.doors.board.COLUMNS`.
    """
    items = telling_items(load_parquet(run / "02_training" / "truths.parquet"))
    said = load_parquet(run / "03_attribution" / "explanations.parquet")
    ours = items[["item_id", *_KEYS]].merge(said, on=_KEYS)
    theirs = [
        one.explanations.assign(explainer=f"{one.name}: {one.about['method']}")
        for one in submissions
    ]
    answers = pd.concat([ours[_ANSWER], *theirs], ignore_index=True)
    cells = _cells(run, items, answers)
    cells = cells[cells["role"].isin(["explainer", "floor"])]
    floors = {name: part for name, part in ours.groupby("explainer") if name in _FLOORS_TOLD}
    about = {
        f"{one.name}: {one.about['method']}": {
            "author": one.about["author"],
            "settings": json.dumps(one.about["settings"], ensure_ascii=False),
            "code": one.about["code"],
            "role": "submission",
            "remarks": "; ".join(remarks(one, items, floors)),
        }
        for one in submissions
    }
    asked = _settings_of(run)
    rows = [
        {
            "author": US,
            "settings": json.dumps(asked.get(row.explainer, {})),
            "code": "",
            "remarks": "",
            **{name: getattr(row, name) for name in COLUMNS if hasattr(row, name)},
            **about.get(row.explainer, {}),
        }
        for row in cells.itertuples(index=False)
    ]
    return pd.DataFrame(rows)[list(COLUMNS)]


def _cells(run: Path, items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The cells of stage 04, with more names."""
    chosen = _parameters(run / "04_metrics")
    known = [oracle(items), cheaters(items)]  # among these the floor that knows an edit's goal
    scored = [score_items(items, pd.concat([answers, *known], ignore_index=True))]
    texts = items.query("truth == 'mask'").groupby("training").head(chosen["n_deleted"])
    on_texts = items[["item_id", *_KEYS]].merge(answers, on="item_id")
    on_texts = on_texts.drop_duplicates(["explainer", *_KEYS])[["explainer", *_KEYS, "scores"]]
    for number, part in texts.groupby("training"):
        stem = run / "02_training" / "models" / f"{_DELETED}-{number}"
        model = read_model(stem.with_suffix(".json"), stem.with_suffix(".safetensors"))
        scored += [
            score_deletion(model, part, on_texts, operator, chosen["seed"])
            for operator in ("pad", "mask")
        ]
    scores = synthesis.on_one_scale(pd.concat(scored, ignore_index=True), chosen["floor_of"])
    return standing.cells(
        scores, chosen["pads"], chosen["n_bootstrap"], chosen["alpha"], chosen["seed"]
    )


def _settings_of(run: Path) -> Mapping[str, Any]:
    explainers: Mapping[str, Any] = _parameters(run / "03_attribution")["explainers"]
    return explainers


def _parameters(stage: Path) -> dict[str, Any]:
    manifest = read_manifest(stage / MANIFEST)
    assert manifest is not None
    parameters: dict[str, Any] = manifest["parameters"]
    return parameters
