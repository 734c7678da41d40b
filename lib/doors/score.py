"""Score a file of explanations against a study's truth, without training anything.

A study registers a `HandIn`, and the `touchstone score` command hands it over: this room knows no
study. Beside the explanations stand rules that see no model (the floors), on the same rows.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ..attribution.registry import METHODS
from ..attribution.seam import Row
from ..attribution.table import NO_MODEL, load_explanations
from ..core.errors import TouchstoneError
from ..core.seeds import seed_for
from ..metrics.scoring import score_explanations
from ..stats.estimates import estimates_of
from .readers import from_words
from .self_explanations import read_answers

BY = ["dataset", "scheme", "method"]


class HandIn(NamedTuple):
    """What a study knows of files that are handed in.

    Attributes:
        read: the items of a folder: what the study's stage 01 left, or the published files.
        score: the file and the items in; a line an item out, with the columns of `BY`, seed,
            sentence_idx (what is drawn as a whole) and the measures. A study may take more
            arguments by name.
        measures: the columns that are averaged.
        needs_model: what cannot be said without the explained model, in one sentence.
        ask: the items as rows with words (row_id, sentence, sentence_idx, target, perhaps dataset
            and question), or None where the file holds no scores of words.
    """

    read: Callable[[Path], pd.DataFrame]
    score: Callable[..., pd.DataFrame]
    measures: tuple[str, ...]
    needs_model: str
    ask: Callable[[pd.DataFrame], pd.DataFrame] | None = None


def score_file(path: Path, folder: Path, hand_in: HandIn, **more: Any) -> pd.DataFrame:
    """The measures of each method of a file, with intervals, and of the floors on the same items.

    Args:
        path: the file.
        folder: where the items are.
        hand_in: of the study.
        **more: what the study's `score` takes besides.

    Returns:
        dataset, scheme, method, measure, and what `lib.stats.estimates` gives (estimate, low, high,
        n and more).

    Raises:
        TouchstoneError: naming file, row and remedy, where the file does not fit the items.
    """
    if not path.exists():
        raise TouchstoneError(f"there is no file {path}; correct the path")
    if not folder.is_dir():
        raise TouchstoneError(
            f"there are no items in {folder}; run the study's stage 01, or name a folder (--data)"
        )
    scored = hand_in.score(path, hand_in.read(folder), **more)
    measures = [name for name in hand_in.measures if name in scored]
    return estimates_of(scored, BY, measures)


def score_words(
    path: Path, rows: pd.DataFrame, floors: Sequence[str] = ("Uniform random",)
) -> pd.DataFrame:
    """Scores of words against a 0/1 truth, by every measure of `METRICS`, and the floors' scores.

    Args:
        path: explanations of these rows, see `read_explanations`.
        rows: as `from_words` takes them, with ground_truth.
        floors: methods of the registry that see no model.
    """
    explanations = read_explanations(path, rows)
    of_no_model = explanations.loc[explanations["scheme"] == NO_MODEL, "method"]
    if taken := sorted(set(of_no_model) & set(floors)):
        raise TouchstoneError(
            f"{path}: {taken[0]} is the name of a floor, and floors are added here; leave it out, "
            "or give yours another name"
        )
    keys = ["dataset", "row_id"] if "dataset" in rows else ["row_id"]
    known = pd.MultiIndex.from_frame(explanations[keys])
    asked = rows[pd.MultiIndex.from_frame(rows[keys]).isin(known)]
    beside = [floor_explanations(name, asked) for name in floors]
    return score_explanations(pd.concat([explanations, *beside], ignore_index=True), rows)


def read_explanations(path: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """Scores of words from a file: the one format as Parquet, or answers as JSON lines.

    Of answers (`read_answers`) it is printed how many say nothing.

    Raises:
        TouchstoneError: naming file and row, for another format, other words or another class.
    """
    if path.suffix == ".jsonl":
        answers, counts = read_answers(path, rows)
        print(f"{path.name}: {', '.join(f'{n} {what}' for what, n in counts.items())}")
        return answers
    if path.suffix != ".parquet":
        raise TouchstoneError(
            f"{path} is no .parquet file (save_explanations of lib.attribution writes one), and no "
            ".jsonl file of answers"
        )
    return load_explanations(path, rows)


def floor_explanations(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """What a method that sees no model says of rows."""
    asked = [
        Row(row.row_id, row.sentence_idx, row.target, row.sentence, seed_for(name, row.row_id))
        for row in rows.itertuples()
    ]
    scores = METHODS[name].function(None, asked)
    return from_words(rows, scores, name, scheme=NO_MODEL)
