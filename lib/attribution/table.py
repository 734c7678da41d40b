"""The one format of explanations: a line per (dataset, scheme, seed, method, row), as Parquet.

Explanations that were made elsewhere can be handed in as such a file; everything downstream reads
nothing else.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.errors import TouchstoneError, did_you_mean
from ..core.files import read_handed_in, save_parquet

NO_MODEL = "-"  # the scheme of explanations that see no model
SCHEMA: dict[str, tuple[type, str]] = {
    "study": (str, "the study that the rows belong to"),
    "dataset": (str, "the data set: D_A, D_S"),
    "scheme": (str, "how the explained model was trained: C, CE, ..., or - where no model is seen"),
    "seed": (int, "the seed of the explained model's training, or -1 where no model is seen"),
    "method": (str, "the explanation method by its registered name"),
    "row_id": (str, "the explained row: 12-F"),
    "sentence_idx": (int, "the base sentence that the row is a form of"),
    "target": (int, "the class whose score is explained"),
    "words": (list, "the words of the sentence, as the model was given them"),
    "scores": (list, "one signed number per word, neither made absolute nor normalised"),
    "explained": (
        str,
        "the function that is explained: logit, probability, or - where no model is seen",
    ),
    "settings": (str, "the method's settings as JSON"),
    "delta": (
        float,
        "sum of all token scores minus the change of the score (completeness gap), or null",
    ),
}
ABOUT: dict[str, str] = {  # columns that a table may have beside those of SCHEMA: numbers or null
    "steps": "points of the path that were used",
    "samples": "coalitions or altered texts that were used, counted as drawn",
    "unassigned": (
        "what of the score no word has: AttnLRP leaves it with biases, positions and special tokens"
    ),
    "deviation": "the largest difference of a class score from float32's, in another precision",
    "error": (
        "how far a word piece's share of the attribution may be off: an estimate, see the method"
    ),
}
_ALLOWED: dict[type, tuple[type, ...]] = {
    str: (str,),
    int: (int, np.integer),
    list: (list, np.ndarray),
    float: (float, np.floating, type(None)),
}
KEY = ["dataset", "scheme", "seed", "method", "row_id"]
LARGEST = 1e150  # sizes of scores are below it, so that squares and sums over a text stay finite
DEFAULTS: dict[str, Any] = {  # what a file made elsewhere has where it lacks the column
    "study": "own",
    "scheme": "own",
    "seed": -1,
    "explained": "-",
    "settings": "{}",
    "delta": None,
}
_OF_ROWS = ("sentence_idx", "target")  # what it may leave to the data


def in_format(
    rows: pd.DataFrame,
    scores: Sequence[Sequence[float]],
    deltas: Sequence[float | None],
    method: str,
    settings: Mapping[str, Any],
    about: Mapping[str, Sequence[float]] | None = None,
    **labels: Any,
) -> pd.DataFrame:
    """A method's scores in the explanation format; `labels` are study, dataset, scheme and seed."""
    frame = pd.DataFrame(
        {
            **{name: [labels[name]] * len(rows) for name in ("study", "dataset", "scheme", "seed")},
            "method": method,
            "row_id": rows["row_id"].astype(str).tolist(),
            "sentence_idx": rows["sentence_idx"].tolist(),
            "target": rows["target"].tolist(),
            "words": [list(words) for words in rows["sentence"]],
            "scores": [[float(x) for x in of_row] for of_row in scores],
            "explained": settings.get("explained", "-"),
            "settings": json.dumps(dict(settings), sort_keys=True),
            "delta": pd.Series(list(deltas), dtype=float),
        },
        columns=list(SCHEMA),
    )
    return frame.assign(
        **{name: np.asarray(numbers, dtype=float) for name, numbers in (about or {}).items()}
    )


def save_explanations(path: Path | str, frame: pd.DataFrame) -> None:
    """Explanations validated, and written as Parquet.

    Raises:
        TouchstoneError: naming the file and the first row that does not keep to `SCHEMA`.
    """
    save_parquet(validated(frame, Path(path).name), path)


def load_explanations(path: Path | str, rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Explanations from a file, ours or made elsewhere, validated.

    A file may leave out the columns of `DEFAULTS`.

    Args:
        path: the Parquet file.
        rows: the data that it explains, as in `rows_explained`. The explanations are compared with
            it, and where they have no sentence_idx or target, they take the row's.

    Raises:
        TouchstoneError: naming file, row and remedy, where the file does not keep to `SCHEMA` or
            does not explain these rows.
    """
    if not Path(path).is_file():
        raise TouchstoneError(
            f"there is no file of explanations {path}; correct the path in explanation_files"
        )
    name = Path(path).name
    frame = read_handed_in(path, name)
    if frame.empty:
        raise TouchstoneError(f"{name} holds no explanations; leave the file out")
    left = [] if rows is None else [column for column in _OF_ROWS if column not in frame]
    filled = DEFAULTS | dict.fromkeys(left, -1)
    frame = frame.assign(**{column: v for column, v in filled.items() if column not in frame})
    frame = validated(frame, name)
    if rows is None:
        return frame
    return frame.assign(**rows_explained(frame.drop(columns=left), rows, f"{name}: ")[left])


def rows_explained(
    explanations: pd.DataFrame, rows: pd.DataFrame, source: str = ""
) -> pd.DataFrame:
    """The row of the data that each explanation is of, in the order of the explanations.

    Args:
        explanations: dataset, method, row_id; with words, sentence_idx or target they are compared.
        rows: row_id, with a column dataset where there are several; sentence, sentence_idx and
            target are compared where they are there.
        source: what a message begins with.

    Raises:
        TouchstoneError: an explanation is of none of the rows, or of other words, another base
            sentence or another class than its row.
    """
    keys = ["dataset", "row_id"] if "dataset" in rows else ["row_id"]
    known, asked = (pd.MultiIndex.from_frame(frame[keys]) for frame in (rows, explanations))
    if known.has_duplicates:
        twice = known[known.duplicated()][0]
        raise TouchstoneError(
            f"{source}the data have two rows {' '.join(map(str, twice))}; keep one of them"
        )
    at = known.get_indexer(asked)
    mine = explanations.reset_index(drop=True)
    _refuse(
        mine,
        at < 0,
        source,
        lambda i: _row_fault(mine["row_id"][i], rows),
    )
    theirs = rows.iloc[at].reset_index(drop=True)
    if "words" in mine and "sentence" in theirs:
        pairs = list(zip(mine["words"], theirs["sentence"], strict=True))
        differ = np.array([list(words) != list(sentence) for words, sentence in pairs], dtype=bool)
        _refuse(mine, differ, source, lambda i: _words_fault(*pairs[i]))
    for name in _OF_ROWS:
        if name in mine and name in theirs:
            values = mine[name].tolist(), theirs[name].tolist()
            differ = np.array([a != b for a, b in zip(*values, strict=True)], dtype=bool)
            _refuse(mine, differ, source, partial(_value_fault, name, *values))
    return theirs.set_index(explanations.index)


def _refuse(
    explanations: pd.DataFrame, wrong: np.ndarray, source: str, fault: Callable[[int], str]
) -> None:
    if wrong.any():
        i = int(np.argmax(wrong))
        row = explanations.iloc[i]
        raise TouchstoneError(
            f"{source}the explanation of row {row['row_id']} ({row['dataset']}, {row['method']}) "
            + fault(i)
        )


def _row_fault(row_id: str, rows: pd.DataFrame) -> str:
    there = sorted(set(rows.loc[rows["row_id"] == row_id, "dataset"])) if "dataset" in rows else []
    remedy = (
        f"{' and '.join(there)} have one of that name: write its data set in the column dataset"
        if there
        else "score it against the data that it explains"
    )
    return f"belongs to no row of the data; {remedy}"


def _words_fault(words: Sequence[str], sentence: Sequence[str]) -> str:
    remedy = "explain the words of the data as stage 01 left them, in their order"
    if len(words) != len(sentence):
        return f"is of {len(words)} words, and the row has {len(sentence)}; {remedy}"
    i, word, expected = next(
        (i, a, b) for i, (a, b) in enumerate(zip(words, sentence, strict=True)) if a != b
    )
    return f"has the word {word!r} at place {i}, and the row has {expected!r}; {remedy}"


def _value_fault(name: str, mine: Sequence[int], theirs: Sequence[int], i: int) -> str:
    return (
        f"has {name} {mine[i]}, and the row has {theirs[i]}; take it from the row, or leave the "
        "column out"
    )


def are_finite(scores: Sequence[float]) -> bool:
    """Whether scores are a plain list of real numbers, each of a size below `LARGEST`."""
    try:
        values = np.asarray(list(scores))
    except (ValueError, TypeError, RuntimeError):  # uneven lists inside, no list, a graph
        return False
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        return False
    return bool((np.abs(values.astype(float)) < LARGEST).all())  # NaN is not smaller


def validated(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """The same explanations with the columns in order; an error names the first line at fault."""
    if missing := [name for name in SCHEMA if name not in frame]:
        raise TouchstoneError(
            f"{source} has no column {missing[0]!r}; it holds {SCHEMA[missing[0]][1]}"
        )
    if unknown := [name for name in frame if name not in SCHEMA and name not in ABOUT]:
        known = [*SCHEMA, *ABOUT]
        raise TouchstoneError(
            f"{source} has an unknown column {unknown[0]!r}{did_you_mean(str(unknown[0]), known)}"
        )
    about = [name for name in ABOUT if name in frame]
    frame = frame[[*SCHEMA, *about]].reset_index(drop=True)
    for line, row in enumerate(frame.to_dict("records")):
        if fault := _fault(row):
            raise TouchstoneError(
                f"{source}, line {line} (row {row['row_id']}, method {row['method']}): {fault}"
            )
    if (twice := frame.duplicated(KEY)).any():
        row = frame[twice].iloc[0]
        raise TouchstoneError(
            f"{source} explains row {row.row_id} twice with {row.method} ({row.dataset}, "
            f"{row.scheme}, seed {row.seed}); keep one of the two"
        )
    return frame.astype(
        {"delta": float, "seed": int, "sentence_idx": int, "target": int}
        | dict.fromkeys(about, float)
    )


def _fault(row: dict[str, Any]) -> str:
    """What is wrong with a line, in words; empty where nothing is."""
    for name, (kind, meaning) in SCHEMA.items():
        if isinstance(row[name], bool) or not isinstance(row[name], _ALLOWED[kind]):
            return f"{name} is {row[name]!r}, not {kind.__name__}; it holds {meaning}"
    for name in set(ABOUT) & set(row):
        if isinstance(row[name], bool) or not isinstance(row[name], (*_ALLOWED[float], int)):
            return f"{name} is {row[name]!r}, not a number; it holds {ABOUT[name]}"
    if not row["method"].strip():
        return "method is empty; write the name under which it is to be shown"
    if not all(isinstance(word, str) for word in row["words"]):
        return "words must be text"
    if len(row["scores"]) != len(row["words"]):
        n_scores, n_words = len(row["scores"]), len(row["words"])
        return f"there are {n_scores} scores for {n_words} words; give one score per word"
    if not are_finite(row["scores"]):
        return (
            f"a score is not a finite number of a size below {LARGEST}; leave the row out or "
            "repair the method"
        )
    return _settings_fault(row["settings"])


def _settings_fault(text: str) -> str:
    try:
        return (
            ""
            if isinstance(json.loads(text), dict)
            else "settings must be a JSON object, {} if there are none"
        )
    except json.JSONDecodeError:
        return f"settings is not JSON: {text[:40]!r}; write {{}} if there are none"
