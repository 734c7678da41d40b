"""What explainers are given: texts with labels and a model's answers, and questions that show one side of each pair.

A model from outside joins by two tables, CSV or Parquet, keyed by `text_id`:
predictions, with p_1 ... p_K (probabilities of the classes), and aspects, with food, service, ambiance, noise (predicted values).
That is all that the explainers need which see no weights. TCAV, ConceptSHAP, INLP and LEACE also take the embeddings that
the model's last, linear layer reads (an array, one row a text, with the text_ids of its rows) and that layer (`Head`). CausaLM
takes arrays of the same kind from encoders without a concept, the Causal Proxy Model the texts themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import softmax

from lib.core.errors import TouchstoneError
from lib.studies.cebab.reviews import ASPECTS, VALUES

Effects = Float[np.ndarray, "batch class"]
ARRAYS = ("text_id", "vectors", "weight", "bias")
TOLERANCE = (
    1e-3  # how far from 1 probabilities may sum: published ones are rounded to four decimals
)


@dataclass(frozen=True)
class Texts:
    """Texts as an explainer sees them, row by row: labels of the four aspects, the model's answer, perhaps its embedding.

    `gold`, `predicted`: values per aspect, in the order of ASPECTS; what people said and what an aspect classifier says.
    `words`: the texts themselves. `without`: vectors of encoders that have unlearnt a concept, one layer for each of ASPECTS,
    and last those of an encoder that has unlearnt none (`lib.studies.cebab.causalm`).
    """

    ids: np.ndarray
    gold: np.ndarray
    predicted: np.ndarray
    probabilities: Effects
    embeddings: Float[np.ndarray, "batch hidden"] | None = None
    words: np.ndarray | None = None
    without: Float[np.ndarray, "concept batch hidden"] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Int[np.ndarray, "batch"]) -> Texts:
        """The texts of some rows; a row may be taken more than once."""
        parts = (
            self.ids,
            self.gold,
            self.predicted,
            self.probabilities,
            self.embeddings,
            self.words,
        )
        return Texts(
            *(None if part is None else part[rows] for part in parts),
            None if self.without is None else self.without[:, rows],
        )


@dataclass(frozen=True)
class Questions:
    """What would change if aspect `aspect` of these texts had the value `new` instead of `old`? Nothing of the answer is here.

    `texts` are the base sides: their own predictions and predicted aspects, never their gold labels. `old` is part of the question.
    """

    texts: Texts
    aspect: Int[np.ndarray, "batch"]
    old: np.ndarray
    new: np.ndarray

    def __len__(self) -> int:
        return len(self.aspect)

    def values(self, known_old: bool = True) -> np.ndarray:
        """The predicted values of the base texts, by default with the value of the asked aspect, which is known."""
        values = self.texts.predicted.copy()
        if known_old:
            values[np.arange(len(self)), self.aspect] = self.old
        return values


@dataclass(frozen=True)
class Head:
    """A model's last layer: probabilities = softmax(embedding @ weight.T + bias)."""

    weight: Float[np.ndarray, "class hidden"]
    bias: Float[np.ndarray, "class"]

    def probabilities(self, embeddings: Float[np.ndarray, "batch hidden"]) -> Effects:
        """The model's answers for embeddings."""
        return softmax(embeddings @ self.weight.T + self.bias, axis=1)


def gather_texts(
    texts: pd.DataFrame,
    predictions: pd.DataFrame,
    aspects: pd.DataFrame,
    embeddings: tuple[np.ndarray, np.ndarray] | None = None,
    without: tuple[np.ndarray, np.ndarray] | None = None,
) -> Texts:
    """Bring texts together with a model's predictions and predicted aspects, all by text_id.

    `embeddings`, `without`: the text_ids of the rows, and the array (see Texts). A column `text` becomes `words`.

    Raises TouchstoneError for duplicate ids, texts without predictions, probabilities that do not sum to one, and values
    that no aspect has.
    """
    ids = texts["text_id"].to_numpy(object)
    columns = [name for name in predictions if str(name).startswith("p_")]
    probabilities = _looked_up(predictions, ids, columns, "predictions").astype(float)
    _check_probabilities(ids, probabilities)
    predicted = _looked_up(aspects, ids, list(ASPECTS), "predicted aspects")
    _check_values(ids, predicted)
    gold = texts[list(ASPECTS)].to_numpy(object)
    words = texts["text"].to_numpy(object) if "text" in texts else None
    found = Texts(ids, gold, predicted, probabilities, words=words)
    if embeddings is not None:
        found = replace(found, embeddings=embeddings[1][_rows_of(embeddings[0], ids, "embeddings")])
    if without is not None:
        found = replace(
            found, without=without[1][:, _rows_of(without[0], ids, "vectors without a concept")]
        )
    return found


def ask(pairs: pd.DataFrame, texts: Texts) -> Questions:
    """The questions of edit pairs: base text, aspect, old and new value. The counterfactual is not looked at."""
    rows = pd.Index(texts.ids).get_indexer(pairs["base_id"])
    if (rows < 0).any():
        raise TouchstoneError(
            f"pair {pairs['base_id'].iloc[int(np.argmax(rows < 0))]} ... has no text; hand in all base texts"
        )
    blind = texts.take(rows)
    aspect = pd.Index(ASPECTS).get_indexer(pairs["aspect"])
    hidden = np.full_like(blind.gold, "")
    return Questions(
        replace(blind, gold=hidden),
        aspect,
        pairs["old"].to_numpy(object),
        pairs["new"].to_numpy(object),
    )


def read_outside(path: Path | str) -> pd.DataFrame:
    """A table of predictions or of predicted aspects that was made elsewhere, Parquet or CSV; it needs a text_id."""
    path = Path(path)
    if path.suffix not in (".parquet", ".csv") or not path.is_file():
        raise TouchstoneError(
            f"{path} is no Parquet or CSV file that exists; write one with a column text_id"
        )
    table = (
        pd.read_parquet(path)
        if path.suffix == ".parquet"
        else pd.read_csv(path, dtype={"text_id": str})
    )
    if "text_id" not in table:
        raise TouchstoneError(
            f"{path} has no column text_id; its columns are {', '.join(map(str, table.columns))}"
        )
    return table


def read_vectors(path: Path | str) -> tuple[tuple[np.ndarray, np.ndarray], Head]:
    """Embeddings and a linear head that were made elsewhere: an .npz with text_id, vectors, weight and bias.

    text_id: n strings; vectors: n x hidden; weight: K x hidden; bias: K. Returns ((ids, vectors), head), as `gather_texts` takes them.
    """
    path = Path(path)
    if path.suffix != ".npz" or not path.is_file():
        raise TouchstoneError(
            f"{path} is no .npz file that exists; write one with numpy.savez and the arrays {', '.join(ARRAYS)}"
        )
    with np.load(path, allow_pickle=False) as kept:
        if missing := [name for name in ARRAYS if name not in kept]:
            raise TouchstoneError(f"{path} has no array {missing[0]!r}; write {', '.join(ARRAYS)}")
        ids, vectors, weight, bias = (kept[name] for name in ARRAYS)
    if (
        vectors.ndim != 2
        or len(vectors) != len(ids)
        or weight.shape != (len(bias), vectors.shape[1])
    ):
        raise TouchstoneError(
            f"{path}: text_id has shape {ids.shape}, vectors {vectors.shape}, weight {weight.shape}, bias {bias.shape}; "
            "write n ids, n x hidden, K x hidden, K"
        )
    return (ids.astype(object), vectors.astype(float)), Head(
        weight.astype(float), bias.astype(float)
    )


def check_head(texts: Texts, head: Head) -> None:
    """Refuse a head that does not make the predictions from the embeddings: explainers would explain another model."""
    assert texts.embeddings is not None
    far = np.abs(head.probabilities(texts.embeddings) - texts.probabilities).max(1)
    if far.max() > 10 * TOLERANCE:
        raise TouchstoneError(
            f"text {texts.ids[int(far.argmax())]!r}: softmax(weight @ vector + bias) is off its prediction by {far.max():.3f}; "
            "hand in the vectors that the last layer reads, that layer, and probabilities"
        )


def one_hot(values: np.ndarray) -> Float[np.ndarray, "batch concept"]:
    """Twelve columns, three per aspect in the order of VALUES; a cell that is none of these is 000.

    >>> one_hot(np.array([["Positive", "unknown", "", "Negative"]], dtype=object)).astype(int).tolist()
    [[0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0]]
    """
    return np.concatenate(
        [values[:, [i]] == np.array(VALUES, dtype=object) for i in range(len(ASPECTS))], axis=1
    ).astype(float)


def _rows_of(names: np.ndarray, ids: np.ndarray, what: str) -> Int[np.ndarray, "batch"]:
    table = pd.DataFrame({"text_id": names, "row": np.arange(len(names))})
    return _looked_up(table, ids, ["row"], what)[:, 0].astype(int)


def _looked_up(table: pd.DataFrame, ids: np.ndarray, columns: list[str], what: str) -> np.ndarray:
    if missing := [name for name in ["text_id", *columns] if name not in table] or (
        [] if columns else ["p_1"]
    ):
        raise TouchstoneError(
            f"the table of {what} has no column {missing[0]!r}; write text_id and one column each"
        )
    twice = table["text_id"][table["text_id"].duplicated()]
    if len(twice):
        raise TouchstoneError(
            f"the table of {what} has text {twice.iloc[0]!r} twice; remove one of the two"
        )
    rows = pd.Index(table["text_id"]).get_indexer(ids)
    if (rows < 0).any():
        raise TouchstoneError(
            f"text {ids[int(np.argmax(rows < 0))]!r} and {(rows < 0).sum() - 1} others have no {what}; "
            "hand in a row for every text"
        )
    return table[columns].to_numpy()[rows]


def _check_probabilities(ids: np.ndarray, probabilities: Effects) -> None:
    wrong = ~(np.abs(probabilities.sum(1) - 1) <= TOLERANCE) | (probabilities < 0).any(1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TouchstoneError(
            f"the probabilities of text {ids[row]!r} are {probabilities[row].round(4).tolist()}; they must be "
            "at least 0 and sum to one (logits need a softmax)"
        )


def _check_values(ids: np.ndarray, values: np.ndarray) -> None:
    wrong = ~np.isin(values.astype(str), VALUES)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise TouchstoneError(
            f"text {ids[row]!r}: {ASPECTS[column]} is {values[row, column]!r}; write one of {', '.join(VALUES)}"
        )
