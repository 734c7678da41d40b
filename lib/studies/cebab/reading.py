"""What explainers read of a classifier, and the files that keep it.

A `Reading` is a classifier's answers, the vectors in front of its last linear layer, and that
layer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...core.files import atomic_path
from .questions import Effects, Head, Vectors


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
    """The ids and the reading that `save` kept; None where there is none, or one of another key."""
    arrays = _load_arrays(path, key)
    if arrays is None:
        return None
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
    """The ids, vectors and numbers that `save_vectors` kept; None without any of this key."""
    arrays = _load_arrays(path, key)
    if arrays is None:
        return None
    ids, vectors = arrays["ids"].astype(object), arrays["vectors"].astype(float)
    return ids, vectors, json.loads(str(arrays["about"]))


def _save_arrays(path: Path, key: str, ids: Sequence[str], **arrays: np.ndarray) -> None:
    with atomic_path(path) as part, part.open("wb") as file:
        np.savez(file, key=np.array(key), ids=np.array(ids, dtype=str), **arrays)


def _load_arrays(path: Path, key: str) -> dict[str, np.ndarray] | None:
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    return arrays if key in ("", str(arrays["key"])) else None
