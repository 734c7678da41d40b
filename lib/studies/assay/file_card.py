"""The card of a file of explanations: of the items of a run of the assay, or of somebody's own
classifier's items.

Nobody is asked here, so that a file tells neither what its method does on a model with other
weights nor what it costs; that stays unknown.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from ... import __version__
from ...core.errors import TouchstoneError
from ...core.files import load_parquet
from ...doors.card import SCHEMA
from ...doors.submission import Submission, read_scores, remarks
from .board import cells_of, floors_told
from .card import (
    ASKS,
    between_trainings,
    own_and_other,
    row_of,
    scored_of,
    sentences_of,
    summary,
)
from .truths import items_to_answer, telling_items

NOT_BLIND = "not blind: a file on public items; whoever wrote it could know the truth"
_KEYS = ["model", "training", "text"]
_DELETION_ASKS = "mask"  # the truth whose items the deletions take


def card_of_file(run: Path, path: Path, name: str) -> dict[str, Any]:
    """The card of explanations of a run's items; a truth counts where all of its items are
    answered.

    Args:
        run: the folder of a run of the assay whose stages 01 to 04 are complete.
        path: a Parquet file with item_id (`<item>@<training>`, as in the run's `asked.csv`) and
            scores, a number a word.
        name: what the card calls it.

    Raises:
        TouchstoneError: the file does not fit the items, or answers no truth whole.
    """
    truths = load_parquet(run / "02_training" / "truths.parquet")
    asked = items_to_answer(truths)
    said = read_scores(path, asked.assign(sentence=asked["text"].str.split(" ")))
    whole, why = whole_truths(path, said, asked)
    items = telling_items(truths)
    items = items[items["truth"].isin(whole)].reset_index(drop=True)
    mine = said.merge(items[["item_id", *_KEYS]], on="item_id").assign(explainer=name)
    explained = load_parquet(run / "03_attribution" / "explanations.parquet")
    ours = items[["item_id", *_KEYS]].merge(explained, on=_KEYS)
    answers = pd.concat([ours, mine], ignore_index=True)[["item_id", "explainer", "scores"]]
    cells = cells_of(run, items, answers)
    of_deletion = dict.fromkeys(
        [truth for truth in ASKS if truth.startswith("deletion")], why.get(_DELETION_ASKS)
    )
    rows = [row_of(cells, truth, name, (of_deletion | why).get(truth)) for truth in ASKS]
    of_texts = mine.drop_duplicates(_KEYS)[["explainer", *_KEYS, "scores"]]
    shown = next(truth for truth in ("mask", *whole) if truth in whole)
    about = {"tuned": False, "code": "given"}  # what a file is, is said below
    told = remarks(Submission(name, about, mine), items, floors_told(ours))
    found = {
        "schema": SCHEMA,
        "touchstone": __version__,
        "explainer": name,
        "settings": {},
        "notes": [NOT_BLIND, *told],
        "scale": "small",
        "decides": False,
        "truths": rows,
        "gate": None,
        "other_model": own_and_other(truths[truths["truth"].isin(whole)], of_texts, rows),
        "single": {"draws": None, "trainings": between_trainings(of_texts)},
        "cost": {"seconds": None, "quality": []},
        "sentences": sentences_of(truths, of_texts, scored_of(truths, of_texts), shown),
    }
    return found | {"summary": summary(found)}


def check_file(file: Path, items: Path) -> None:
    """Refuse a file that is not there, and say where the items are."""
    if not file.is_file():
        raise TouchstoneError(
            f"there is no file {file}; write item_id and scores (a number a word) there, for the "
            f"items in {items}"
        )


def whole_truths(
    path: Path, said: pd.DataFrame, asked: pd.DataFrame
) -> tuple[list[str], dict[str, str]]:
    """The truths all of whose items a file answers, and what is missing of the others.

    Args:
        path: of the file.
        said: item_id.
        asked: item_id, truth.

    Raises:
        TouchstoneError: there is none.
    """
    there = asked["item_id"].isin(said["item_id"]).groupby(asked["truth"]).agg(["sum", "size"])
    is_whole = there["sum"] == there["size"]
    if not is_whole.any():
        best = (there["sum"] / there["size"]).idxmax()
        raise TouchstoneError(
            f"{path} answers no truth whole; of {best} it has {there.loc[best, 'sum']} of "
            f"{there.loc[best, 'size']} items: answer all items of one truth"
        )
    missing = there[~is_whole]
    why = {of: f"the file has {n} of {size} items" for of, n, size in missing.itertuples()}
    return list(there.index[is_whole]), why
