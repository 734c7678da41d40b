"""Explanations that were made elsewhere, brought into the one format.

>>> rows = pd.DataFrame({"row_id": ["1-F"], "sentence_idx": [1], "target": [0],
...                      "sentence": [["she", "sings"]]})
>>> mine = from_words(rows, [[0.9, 0.1]], "mine", dataset="D_A")
>>> mine[["dataset", "method", "row_id", "scores"]].iloc[0].tolist()
['D_A', 'mine', '1-F', [0.9, 0.1]]

`save_explanations("mine.parquet", mine)` of `lib.attribution` writes the file that
`explanation_files` names; `score_explanations(mine, rows)` of `lib.metrics` needs none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ..attribution.table import DEFAULTS, LARGEST, are_finite, in_format, rows_explained, validated
from ..core.errors import TouchstoneError, did_you_mean

_NEEDED = ("row_id", "sentence", "sentence_idx", "target")
Lists = Sequence[Any] | Mapping[str, Any]  # in the order of rows, or by row_id


def from_words(
    rows: pd.DataFrame,
    scores: Lists,
    method: str,
    *,
    words: Lists | None = None,
    targets: Sequence[int] | None = None,
    dataset: str | None = None,
    scheme: str = DEFAULTS["scheme"],
    seed: int = DEFAULTS["seed"],
    settings: Mapping[str, Any] | None = None,
    delta: Sequence[float | None] | None = None,
) -> pd.DataFrame:
    """Word scores in plain lists or arrays, as explanations of rows.

    Args:
        rows: the rows explained, as `read_geco` or stage 01 gives them: row_id, sentence (a list of
            words, which a repair may have made others than the file's), sentence_idx and target,
            perhaps dataset.
        scores: a signed number for each word of each row, a list for each row in their order; or
            by row_id, which may leave rows out.
        method: what your method is called.
        words: the words that were scored, like `scores`; given, they are compared with the rows'.
        targets: the class that was asked about of each explained row; given, compared likewise.
        dataset: the data set, where `rows` have no such column: D_A, D_S.
        scheme: how the explained model was trained.
        seed: the seed of its training.
        settings: of the method; "explained" may name the function that is explained.
        delta: the completeness gap of each explained row, where the method has one.

    Returns:
        A line for each explained row in the format of `lib.attribution.SCHEMA`.

    Raises:
        TouchstoneError: naming the row, for scores that are not a finite number for each word, for
            other words or another class than the row's, and for rows that are missing or unknown.
    """
    _check_rows(rows)
    explained, lists = paired_with_rows(rows, scores)
    for row_id, of_row in zip(explained["row_id"], lists, strict=True):
        if not are_finite(of_row):
            raise TouchstoneError(
                f"{method}: the scores of row {row_id} are no list of finite numbers (of "
                f"sizes below {LARGEST}); give one number a word, without padding"
            )
    explained = explained.assign(dataset=_datasets(explained, dataset))
    gaps = [None] * len(explained) if delta is None else list(delta)
    if len(gaps) != len(explained):
        raise TouchstoneError(
            f"delta has {len(gaps)} numbers for {len(explained)} explained rows; give one each"
        )
    labels = {"study": DEFAULTS["study"], "dataset": "", "scheme": scheme, "seed": seed}
    try:
        made = in_format(explained, lists, gaps, method, settings or {}, **labels)
    except TypeError as error:
        raise TouchstoneError(
            f"the settings of {method} cannot be written as JSON ({error}); give text and numbers"
        ) from None
    made = made.assign(dataset=explained["dataset"].to_numpy())
    if words is not None:
        of_words, theirs = paired_with_rows(explained, words)
        rows_explained(made[made["row_id"].isin(of_words["row_id"])].assign(words=theirs), of_words)
    if targets is not None:
        _, classes = paired_with_rows(explained, [int(target) for target in targets])
        rows_explained(made.assign(target=classes), explained)
    return validated(made, f"{method}: the scores")


def _check_rows(rows: pd.DataFrame) -> None:
    if missing := [name for name in _NEEDED if name not in rows]:
        raise TouchstoneError(
            f"the rows have no column {missing[0]!r}; hand in those of read_geco or of stage 01"
        )
    if whole := [i for i, text in zip(rows["row_id"], rows["sentence"]) if isinstance(text, str)]:
        raise TouchstoneError(f"the sentence of row {whole[0]} is one text; split it into words")


def _datasets(rows: pd.DataFrame, dataset: str | None) -> list[str]:
    """The data set of each row, by the rows' own column or by the argument."""
    named = rows["dataset"].tolist() if "dataset" in rows else [dataset or "own"] * len(rows)
    if dataset and (other := sorted(set(named) - {dataset})):
        raise TouchstoneError(f"rows are of {other[0]}, and dataset is {dataset!r}; leave it out")
    return named


def paired_with_rows(rows: pd.DataFrame, lists: Lists) -> tuple[pd.DataFrame, list[Any]]:
    """The rows that have a list, and the list of each; by row_id some rows may have none.

    Raises:
        TouchstoneError: another number of lists than of rows, or a row_id that is unknown or twice.
    """
    if not isinstance(lists, Mapping):
        if len(lists) != len(rows) or rows.empty:
            raise TouchstoneError(
                f"{len(lists)} lists are given for {len(rows)} rows; give one a row, or a "
                "dictionary by row_id"
            )
        return rows, list(lists)
    ids = rows["row_id"]
    if (twice := ids[ids.duplicated()]).size:
        raise TouchstoneError(f"there are two rows {twice.iloc[0]}; give a list for each row")
    if unknown := [row_id for row_id in lists if row_id not in set(ids)]:
        near = did_you_mean(str(unknown[0]), ids)
        raise TouchstoneError(f"there is no row {unknown[0]!r} to be explained{near}")
    some = rows[ids.isin(list(lists))]
    if some.empty:
        raise TouchstoneError("no row has a list; give one for each row, or a dictionary by row_id")
    return some, [lists[row_id] for row_id in some["row_id"]]
