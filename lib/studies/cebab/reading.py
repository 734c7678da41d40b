"""What explainers read of a classifier, from files of our own or of others.

A `Reading` is a classifier's answers, the vectors in front of its last linear layer, and that
layer; it is kept as arrays. Models from elsewhere come as tables and arrays, by `text_id`:
predictions have p_1 ... p_K (probabilities of the classes), aspects have food, service, ambiance,
noise (predicted values); CSV or Parquet. That is all that the explainers need which see no weights.
TCAV, ConceptSHAP, INLP and LEACE also take embeddings and the head that makes the answers from them
(`read_vectors`). CausaLM takes vectors of encoders without a concept, the Causal Proxy Model
the texts themselves.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from jaxtyping import Int

from ...core.arrays import real_numbers
from ...core.errors import TouchstoneError
from ...core.files import atomic_path, csv_rows, read_arrays, read_table
from ...core.made_by import made_by
from ...core.named import function_named
from .heads import FunctionHead, TwoLayerHead
from .questions import TOLERANCE, AnyHead, Effects, Head, Texts, Vectors
from .reviews import ASPECTS, VALUES, refuse_duplicates

_FILE = "file"  # in a table's attrs: where it was read
_EMBEDDINGS = ("text_id", "vectors")
_LAYER, _DENSE = ("weight", "bias"), ("dense_weight", "dense_bias", "activation")


@dataclass(frozen=True)
class Reading:
    """What a classifier says of texts, and the vectors that its last layer `head` makes it from."""

    probabilities: Effects
    vectors: Vectors
    head: Head

    def followed_by(self, other: "Reading") -> "Reading":
        """The same model's reading of these texts and then of others."""
        return Reading(
            np.concatenate([self.probabilities, other.probabilities]),
            np.concatenate([self.vectors, other.vectors]),
            self.head,
        )

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
        texts: text_id, the gold labels of the four aspects, and perhaps `text`, `is_original`.
        predictions: text_id, p_1 ... p_K.
        aspects: text_id and the predicted values of the four aspects.
        embeddings: the text_ids of the rows, and the array (see `Texts`).
        without: the same for vectors without a concept.

    Raises:
        TouchstoneError: an id twice, a text without predictions, columns of classes that are not
            exactly p_1 ... p_K, probabilities that do not sum to one, a value that no aspect has.
    """
    ids = texts["text_id"].to_numpy(object)
    with _naming(predictions):
        columns = class_columns(predictions, "the table of predictions")
        probabilities = _looked_up(predictions, ids, columns, "predictions")
        probabilities = real_numbers(probabilities, "the table of predictions")
        _check_probabilities(ids, probabilities)
    with _naming(aspects):
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
        texts["is_original"].to_numpy(bool) if "is_original" in texts else None,
    )


def check_answers(predictions: pd.DataFrame, ids: Sequence[str]) -> list[str]:
    """The columns p_1 ... p_K of a model's answers, one row for each of these texts.

    Raises:
        TouchstoneError: as `gather_texts`.
    """
    texts = np.array(ids, dtype=object)
    with _naming(predictions):
        columns = class_columns(predictions, "the table of predictions")
        found = _looked_up(predictions, texts, columns, "predictions")
        _check_probabilities(texts, real_numbers(found, "the table of predictions"))
    return columns


@contextmanager
def _naming(table: pd.DataFrame) -> Iterator[None]:
    """An error names the file that the table was read from, if it was."""
    try:
        yield
    except TouchstoneError as error:
        file = table.attrs.get(_FILE, "")
        raise TouchstoneError(f"{file}: {error}" if file else str(error)) from None


def read_outside(path: Path | str) -> pd.DataFrame:
    """A table of predictions or of predicted aspects that was made elsewhere, Parquet or CSV.

    Returns:
        The table; its ids are text as they stand in the file ("000123", "NA"), and columns p_1 ...
        p_K stand in the order of their numbers.

    Raises:
        TouchstoneError: naming the file, where it is no such table.
    """
    path = Path(path)
    table = read_rows(path, "text_id")
    names = list(map(str, table.columns))
    if not any(name.startswith("p_") for name in names):
        return table
    columns = class_columns(table, str(path))
    numbers = real_numbers(table[columns].to_numpy(), str(path))
    others = [name for name in table if name not in columns]
    return table[others].assign(**dict(zip(columns, numbers.T, strict=True)))


def read_rows(path: Path, key: str) -> pd.DataFrame:
    """A table that was made elsewhere, Parquet or CSV; of CSV every cell is text.

    Args:
        path: the file.
        key: a column that it must have, of texts.

    Raises:
        TouchstoneError: naming the file, where it is no such table.
    """
    if path.suffix not in (".parquet", ".csv") or not path.is_file():
        raise TouchstoneError(
            f"{path} is no Parquet or CSV file that exists; write one with a column {key}"
        )
    table = _csv_table(path) if path.suffix == ".csv" else read_table(path)
    table.attrs[_FILE] = str(path)
    names = list(map(str, table.columns))
    if twice := [name for name in names if names.count(name) > 1]:
        raise TouchstoneError(f"{path} has the column {twice[0]!r} twice; keep one of them")
    if key not in table:
        raise TouchstoneError(f"{path} has no column {key}; its columns are {', '.join(names)}")
    if odd := [name for name in table[key] if not isinstance(name, str)][:1]:
        raise TouchstoneError(f"{path}: the {key} {odd[0]!r} is no text; write the ids as text")
    return table


def class_columns(
    table: pd.DataFrame, source: str, start: str = "p_", about: str = "a probability of each class"
) -> list[str]:
    """The columns p_1 ... p_K of a table in the order of their numbers, wherever they stand.

    Args:
        table: with perhaps other columns.
        source: where it is from, for the error.
        start: of the columns' names.
        about: what they hold, for the error.

    Raises:
        TouchstoneError: another column begins with p_, or one of them is missing.
    """
    found = [str(name) for name in table if str(name).startswith(start)]
    columns = [f"{start}{k}" for k in range(1, max(len(found), 2) + 1)]
    if missing := [name for name in columns if name not in found]:
        given = f"; it has {', '.join(found)}" if found else ""
        raise TouchstoneError(
            f"{source} has no column {missing[0]!r}{given}: write exactly {start}1 ... {start}K, "
            f"{about}, and begin no other column's name with {start}"
        )
    return columns


def _csv_table(path: Path) -> pd.DataFrame:
    """A CSV file as text: to pandas the id NA would be missing, and 000123 a number."""
    (_, names), *rows = csv_rows(path)
    return pd.DataFrame([fields for _, fields in rows], columns=names, dtype=str)


def read_vectors(
    path: Path | str, function: str = ""
) -> tuple[tuple[np.ndarray, np.ndarray], AnyHead]:
    """Embeddings that were made elsewhere, and the head that reads them.

    Args:
        path: an .npz with text_id (n strings) and vectors (n x hidden). The head stands there, too,
            unless it is a function. One linear layer: weight (K x hidden), bias (K). Two layers:
            dense_weight (width x hidden), dense_bias (width), activation (tanh, relu or gelu),
            weight (K x width), bias (K).
        function: the head as "module:function", from vectors (n x hidden) to probabilities (n x K).

    Returns:
        ((ids, vectors), head), as `gather_texts` takes them.
    """
    path = Path(path)
    needed: tuple[str, ...] = _EMBEDDINGS if function else (*_EMBEDDINGS, *_LAYER)
    if path.suffix != ".npz" or not path.is_file():
        raise TouchstoneError(
            f"{path} is no .npz file that exists; write one with numpy.savez and the arrays "
            f"{', '.join(needed)}"
        )
    arrays = read_arrays(path)
    is_dense = any(name in arrays for name in _DENSE)
    if function and (layers := [name for name in (*_LAYER, *_DENSE) if name in arrays]):
        raise TouchstoneError(
            f"{path} holds {layers[0]!r}, and {function} is to be the head; hand in one of them"
        )
    needed += _DENSE if is_dense else ()
    if missing := [name for name in needed if name not in arrays]:
        raise TouchstoneError(f"{path} has no array {missing[0]!r}; write {', '.join(needed)}")
    _check_shapes(path, {name: arrays[name].shape for name in needed if name != "activation"})
    if arrays["text_id"].dtype.kind != "U":
        raise TouchstoneError(f"{path}: text_id holds no text; write an array of strings")
    refuse_duplicates(pd.DataFrame({"text_id": arrays["text_id"]}), str(path))
    numbers = {
        name: real_numbers(arrays[name], f"{path}: {name}")
        for name in needed
        if name not in ("text_id", "activation")
    }
    if not all(np.isfinite(array).all() for array in numbers.values()):
        raise TouchstoneError(f"{path} holds a number that is not finite; leave the text out")
    vectors = (arrays["text_id"].astype(object), numbers.pop("vectors"))
    if function:
        return vectors, FunctionHead(function, function_named(function, "outside_head"))
    if is_dense:
        return vectors, TwoLayerHead(**numbers, activation=str(arrays["activation"]))
    return vectors, Head(**numbers)


def _check_shapes(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays whose axes do not fit together."""
    axes = {
        "text_id": ["n"],
        "vectors": ["n", "hidden"],
        "dense_weight": ["width", "hidden"],
        "dense_bias": ["width"],
        "weight": ["K", "width" if "dense_weight" in shapes else "hidden"],
        "bias": ["K"],
    }
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        fits = len(shape) == len(axes[name])
        if not fits or any(sizes.setdefault(a, n) != n for a, n in zip(axes[name], shape)):
            have = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            write = ", ".join(" x ".join(axes[name]) for name in shapes).replace("n", "n ids", 1)
            raise TouchstoneError(f"{path}: {have.replace(' (', ' has shape (', 1)}; write {write}")


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
