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
from .swapped import score_swaps
from .truths import (
    cheaters,
    items_to_answer,
    oracle,
    score_deletion,
    score_items,
    telling_items,
)

US = "Touchstone"
_KEYS = ["model", "training", "text"]
_ANSWER = ["item_id", "explainer", "scores"]
_DELETED = "gender"  # the model whose texts lose words
_FLOORS_TOLD = (
    "Word counts",
    "Log count ratio",
    "Rare words",
    "Even",
    "Nearest",
    "First pronoun",
    "Pronoun list",
)


def read_submissions(folder: Path, run: Path) -> list[Submission]:
    """All submissions below a folder, checked against the items of a run.

    Raises:
        TouchstoneError: naming the file and the item, for one that does not fit; see
            `lib.doors.submission`.
    """
    items = items_to_answer(load_parquet(run / "02_training" / "truths.parquet"))
    return read_folder(folder, items)


def read_folder(folder: Path, items: pd.DataFrame) -> list[Submission]:
    """All submissions below a folder; none where there is no such folder.

    Args:
        items: of `truths.items_to_answer`, or the table `asked.csv` that stage 02 leaves.
    """
    asked = items.assign(sentence=items["text"].str.split(" "))
    parts = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [read_submission(part, asked) for part in parts]


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
    theirs = [one.explanations.assign(explainer=name_of(one)) for one in submissions]
    answers = pd.concat([ours[_ANSWER], *theirs], ignore_index=True)
    cells = cells_of(run, items, answers[answers["item_id"].isin(items["item_id"])])
    cells = cells[cells["role"].isin(["explainer", "floor"])]
    floors = floors_told(ours)
    about = {
        name_of(one): {
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


def cells_of(run: Path, items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The cells of stage 04, with more names.

    Args:
        run: the folder of a run.
        items: its items that tell.
        answers: item_id, explainer, scores: of everybody who gets cells.
    """
    chosen = _parameters(run / "04_metrics")
    known = [oracle(items), cheaters(items)]  # among these the floor that knows an edit's goal
    scored = [score_items(items, pd.concat([answers, *known], ignore_index=True))]
    texts = items.query("truth == 'mask'").groupby("training").head(chosen["n_deleted"])
    on_texts = items[["item_id", *_KEYS]].merge(answers, on="item_id")
    on_texts = on_texts.drop_duplicates(["explainer", *_KEYS])[["explainer", *_KEYS, "scores"]]
    forms = load_parquet(run / "01_data_generation" / "forms.parquet")
    for number, part in texts.groupby("training"):
        stem = run / "02_training" / "models" / f"{_DELETED}-{number}"
        model = read_model(stem.with_suffix(".json"), stem.with_suffix(".safetensors"))
        scored += [
            score_deletion(model, part, on_texts, operator, chosen["seed"])
            for operator in ("pad", "mask")
        ]
        scored.append(score_swaps(model, part, on_texts, forms))
    scores = synthesis.on_one_scale(pd.concat(scored, ignore_index=True), chosen["floor_of"])
    return standing.cells(
        scores, chosen["pads"], chosen["n_bootstrap"], chosen["alpha"], chosen["seed"]
    )


def name_of(submission: Submission) -> str:
    """What a submission is called on the board."""
    return f"{submission.name}: {submission.about['method']}"


def floors_told(ours: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The floors that a submission is compared with, by name.

    Args:
        ours: item_id, explainer, scores.
    """
    return {name: part for name, part in ours.groupby("explainer") if name in _FLOORS_TOLD}


def _settings_of(run: Path) -> Mapping[str, Any]:
    explainers: Mapping[str, Any] = _parameters(run / "03_attribution")["explainers"]
    return explainers


def _parameters(stage: Path) -> dict[str, Any]:
    manifest = read_manifest(stage / MANIFEST)
    assert manifest is not None
    parameters: dict[str, Any] = manifest["parameters"]
    return parameters
