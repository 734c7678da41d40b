"""What explainers read of a classifier, from files of our own or of others.

A `Reading` is a classifier's answers, the vectors in front of its last linear layer, and that
layer; it is kept as arrays. Models from elsewhere come as tables and arrays, by `text_id`:
predictions have p_1 ... p_K (probabilities of the classes), aspects have food, service, ambiance,
noise (predicted values); CSV or Parquet. That is all that the explainers need which see no weights.
TCAV, ConceptSHAP, INLP and LEACE also take the embeddings that the model's last, linear layer reads
and that layer (`Head`). CausaLM takes vectors of encoders without a concept, the Causal Proxy Model
the texts themselves.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from jaxtyping import Int

from ...core.errors import TouchstoneError
from ...core.files import atomic_path, csv_rows, read_arrays, read_table
from ...core.made_by import made_by
from .questions import TOLERANCE, Effects, Head, Texts, Vectors
from .reviews import ASPECTS, VALUES, refuse_duplicates

_ARRAYS = ("text_id", "vectors", "weight", "bias")


@dataclass(frozen=True)
class Reading:
    """What a classifier says of texts, and the vectors that its last layer `head` makes it from."""

    probabilities: Effects
    vectors: Vectors
    head: Head

    def save(self, path: Path, key: str, ids: Sequence[str]) -> None:
        """Keep it as one .npz with the texts' ids, and the key of all that it depends on."""
        _save_arrays(
            path,
            key,
            ids,
            probabilities=self.probabilities.astype(np.float32),
            vectors=self.vectors.astype(np.float32),
            weight=self.head.weight,
            bias=self.head.bias,
        )


def load_reading(path: Path, key: str = "") -> tuple[np.ndarray, Reading] | None:
    """The ids and the reading that `save` kept; with a key, None without one that has this key and
    was made by this code and these versions.
    """
    arrays = _load_arrays(path, key)
    if arrays is None:
        return None
    # The answers are made again, so that they fit the rounded vectors exactly.
    head, vectors = Head(arrays["weight"], arrays["bias"]), arrays["vectors"].astype(float)
    return arrays["ids"].astype(object), Reading(head.probabilities(vectors), vectors, head)


def save_vectors(
    path: Path,
    key: str,
    ids: Sequence[str],
    vectors: np.ndarray,
    about: Mapping[str, float] | None = None,
) -> None:
    """Keep vectors of texts as one .npz.

    Args:
        path: the file.
        key: all that the vectors depend on.
        ids: of the texts.
        vectors: kept as float32.
        about: numbers about them.
    """
    notes = json.dumps(about or {})
    _save_arrays(path, key, ids, vectors=vectors.astype(np.float32), about=np.array(notes))


def load_vectors(
    path: Path, key: str = ""
) -> tuple[np.ndarray, np.ndarray, dict[str, float]] | None:
    """The ids, vectors and numbers that `save_vectors` kept; a key asks as in `load_reading`."""
    arrays = _load_arrays(path, key)
    if arrays is None:
        return None
    return (
        arrays["ids"].astype(object),
        arrays["vectors"].astype(float),
        json.loads(str(arrays["about"])),
    )


def _save_arrays(path: Path, key: str, ids: Sequence[str], **arrays: np.ndarray) -> None:
    arrays |= {"key": np.array(key), "made_by": np.array(_maker())}
    with atomic_path(path) as part, part.open("wb") as file:
        # Ids as text of one width: an array of objects could only be read by running code.
        np.savez(file, ids=np.array(ids, dtype=str), **arrays)


def _load_arrays(path: Path, key: str) -> dict[str, np.ndarray] | None:
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:  # each array has a checksum
            arrays = dict(file)
    except (BadZipFile, EOFError, ValueError):
        if not key:
            raise TouchstoneError(f"{path} is damaged; run 02_training again") from None
        print(f"{path} is damaged; it is made anew")
        return None
    asked = [(key, "key"), (_maker(), "made_by")] if key else []
    return arrays if all(said == str(arrays.get(name)) for said, name in asked) else None


def _maker() -> str:
    return json.dumps(made_by("cebab", "02_training"), sort_keys=True)


def gather_texts(
    texts: pd.DataFrame,
    predictions: pd.DataFrame,
    aspects: pd.DataFrame,
    embeddings: tuple[np.ndarray, np.ndarray] | None = None,
    without: tuple[np.ndarray, np.ndarray] | None = None,
) -> Texts:
    """Bring texts together with a model's predictions and predicted aspects, all by text_id.

    Args:
        texts: text_id, the gold labels of the four aspects, and perhaps `text`.
        predictions: text_id, p_1 ... p_K.
        aspects: text_id and the predicted values of the four aspects.
        embeddings: the text_ids of the rows, and the array (see `Texts`).
        without: the same for vectors without a concept.

    Raises:
        TouchstoneError: an id twice, a text without predictions, columns of classes that are not
            exactly p_1 ... p_K, probabilities that do not sum to one, a value that no aspect has.
    """
    ids = texts["text_id"].to_numpy(object)
    columns = class_columns(predictions, "the table of predictions")
    probabilities = _looked_up(predictions, ids, columns, "predictions")
    probabilities = _numbers(probabilities, "the table of predictions")
    _check_probabilities(ids, probabilities)
    predicted = _looked_up(aspects, ids, list(ASPECTS), "predicted aspects")
    _check_values(ids, predicted)
    return Texts(
        ids,
        texts[list(ASPECTS)].to_numpy(object),
        predicted,
        probabilities,
        embeddings and embeddings[1][_rows_of(embeddings[0], ids, "embeddings")],
        texts["text"].to_numpy(object) if "text" in texts else None,
        without and without[1][:, _rows_of(without[0], ids, "vectors without a concept")],
    )


def read_outside(path: Path | str) -> pd.DataFrame:
    """A table of predictions or of predicted aspects that was made elsewhere, Parquet or CSV.

    Returns:
        The table; its ids are text as they stand in the file ("000123", "NA"), and columns p_1 ...
        p_K stand in the order of their numbers.

    Raises:
        TouchstoneError: naming the file, where it is no such table.
    """
    path = Path(path)
    if path.suffix not in (".parquet", ".csv") or not path.is_file():
        raise TouchstoneError(
            f"{path} is no Parquet or CSV file that exists; write one with a column text_id"
        )
    table = _csv_table(path) if path.suffix == ".csv" else read_table(path)
    names = list(map(str, table.columns))
    if twice := [name for name in names if names.count(name) > 1]:
        raise TouchstoneError(f"{path} has the column {twice[0]!r} twice; keep one of them")
    if "text_id" not in table:
        raise TouchstoneError(f"{path} has no column text_id; its columns are {', '.join(names)}")
    if not all(isinstance(name, str) for name in table["text_id"]):
        odd = next(name for name in table["text_id"] if not isinstance(name, str))
        raise TouchstoneError(f"{path}: the text_id {odd!r} is no text; write the ids as text")
    if not any(name.startswith("p_") for name in names):
        return table
    columns = class_columns(table, str(path))
    numbers = _numbers(table[columns].to_numpy(), str(path))
    others = [name for name in table if name not in columns]
    return table[others].assign(**dict(zip(columns, numbers.T, strict=True)))


def class_columns(table: pd.DataFrame, source: str) -> list[str]:
    """The columns p_1 ... p_K of a table in the order of their numbers, wherever they stand.

    Raises:
        TouchstoneError: another column begins with p_, or one of them is missing.
    """
    found = [str(name) for name in table if str(name).startswith("p_")]
    columns = [f"p_{k}" for k in range(1, max(len(found), 2) + 1)]
    if missing := [name for name in columns if name not in found]:
        given = f"; it has {', '.join(found)}" if found else ""
        raise TouchstoneError(
            f"{source} has no column {missing[0]!r}{given}: write exactly p_1 ... p_K, a "
            "probability of each class, and begin no other column's name with p_"
        )
    return columns


def _csv_table(path: Path) -> pd.DataFrame:
    """A CSV file as text: to pandas the id NA would be missing, and 000123 a number."""
    (_, names), *rows = csv_rows(path)
    return pd.DataFrame([fields for _, fields in rows], columns=names, dtype=str)


def read_vectors(path: Path | str) -> tuple[tuple[np.ndarray, np.ndarray], Head]:
    """Embeddings and a linear head that were made elsewhere.

    Args:
        path: an .npz with text_id (n strings), vectors (n x hidden), weight (K x hidden), bias (K).

    Returns:
        ((ids, vectors), head), as `gather_texts` takes them.
    """
    path = Path(path)
    if path.suffix != ".npz" or not path.is_file():
        raise TouchstoneError(
            f"{path} is no .npz file that exists; write one with numpy.savez and the arrays "
            f"{', '.join(_ARRAYS)}"
        )
    arrays = read_arrays(path)
    if missing := [name for name in _ARRAYS if name not in arrays]:
        raise TouchstoneError(f"{path} has no array {missing[0]!r}; write {', '.join(_ARRAYS)}")
    ids, vectors, weight, bias = (arrays[name] for name in _ARRAYS)
    if (
        (ids.ndim, vectors.ndim, bias.ndim) != (1, 2, 1)
        or len(vectors) != len(ids)
        or weight.shape != (len(bias), vectors.shape[1])
    ):
        raise TouchstoneError(
            f"{path}: text_id has shape {ids.shape}, vectors {vectors.shape}, weight "
            f"{weight.shape}, bias {bias.shape}; write n ids, n x hidden, K x hidden, K"
        )
    if ids.dtype.kind != "U":
        raise TouchstoneError(f"{path}: text_id holds no text; write an array of strings")
    vectors, weight, bias = (
        _numbers(arrays[name], f"{path}: {name}") for name in ("vectors", "weight", "bias")
    )
    if not all(np.isfinite(array).all() for array in (vectors, weight, bias)):
        raise TouchstoneError(f"{path} holds a number that is not finite; leave the text out")
    return (ids.astype(object), vectors), Head(weight, bias)


def _numbers(values: np.ndarray, what: str) -> np.ndarray:
    """An array as real numbers; text that writes them is read, anything else refused."""
    try:
        # neither would raise: a complex number loses a part, and yes is 1
        objects = values.flat if values.dtype == object else ()
        odd = [v for v in objects if isinstance(v, bool | np.bool_ | complex)]
        if odd or values.dtype.kind not in "iufOU":
            raise ValueError(f"{(odd or [values.dtype])[0]}")
        return values.astype(float)
    except (ValueError, TypeError) as error:
        raise TouchstoneError(
            f"{what} holds something that is no real number ({error}); write numbers"
        ) from None


def _rows_of(names: np.ndarray, ids: np.ndarray, what: str) -> Int[np.ndarray, "batch"]:
    table = pd.DataFrame({"text_id": names, "row": np.arange(len(names))})
    return _looked_up(table, ids, ["row"], what)[:, 0].astype(int)


def _looked_up(table: pd.DataFrame, ids: np.ndarray, columns: list[str], what: str) -> np.ndarray:
    missing = [name for name in ("text_id", *(columns or ["p_1"])) if name not in table]
    if missing:
        raise TouchstoneError(
            f"the table of {what} has no column {missing[0]!r}; write text_id and one column each"
        )
    refuse_duplicates(table, f"the table of {what}")
    rows = pd.Index(table["text_id"]).get_indexer(ids)
    if (rows < 0).any():
        raise TouchstoneError(
            f"text {ids[int(np.argmax(rows < 0))]!r} and {(rows < 0).sum() - 1} others have no "
            f"{what}; hand in a row for every text"
        )
    return table[columns].to_numpy()[rows]


def _check_probabilities(ids: np.ndarray, probabilities: Effects) -> None:
    wrong = ~(np.abs(probabilities.sum(1) - 1) <= TOLERANCE) | (probabilities < 0).any(1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TouchstoneError(
            f"the probabilities of text {ids[row]!r} are {probabilities[row].round(4).tolist()}; "
            "they must be at least 0 and sum to one (logits need a softmax)"
        )


def _check_values(ids: np.ndarray, values: np.ndarray) -> None:
    wrong = ~np.isin(values.astype(str), VALUES)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise TouchstoneError(
            f"text {ids[row]!r}: {ASPECTS[column]} is {values[row, column]!r}; write one of "
            f"{', '.join(VALUES)}"
        )
