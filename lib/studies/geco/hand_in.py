"""What `touchstone score --study geco` knows: the test rows with their masks."""

from pathlib import Path

import pandas as pd

from ...core.errors import TouchstoneError
from ...doors.score import HandIn, score_words
from .corpus import DATASETS, read_geco

_FLOORS = ("Uniform random", "First pronoun", "Pronoun list")


def read_items(folder: Path) -> pd.DataFrame:
    """The test rows of all data sets in a folder of stage 01, of the published files, or of
    `touchstone dataset`: the columns of `read_geco`, and dataset.
    """
    paths = {name: folder / part / "test.jsonl" for name, part in DATASETS.items()}
    parts = [read_geco(path).assign(dataset=name) for name, path in paths.items() if path.is_file()]
    if not parts:
        raise TouchstoneError(
            f"{folder} holds no {DATASETS['D_A']}/test.jsonl; run `touchstone run geco --stage 01` "
            "or `touchstone dataset`, or name the published folder"
        )
    return pd.concat(parts, ignore_index=True)


def _score(path: Path, items: pd.DataFrame) -> pd.DataFrame:
    return score_words(path, items, _FLOORS)


def _ask(items: pd.DataFrame) -> pd.DataFrame:
    question = {
        0: "Which words of this sentence tell that it speaks of a woman?",
        1: "Which words of this sentence tell that it speaks of a man?",
        2: "Which words of this sentence tell that it speaks of a non-binary person?",
    }
    return items.assign(question=items["target"].map(question))


HAND_IN = HandIn(
    read_items,
    _score,
    ("MA", "MA_chance_normalised", "roc_auc", "share"),
    "All rows count, right or wrong; which of them the model classifies rightly only its "
    "predictions tell (stages 02 to 04).",
    _ask,
)
