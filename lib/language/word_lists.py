"""What the decisions of this room read: word lists (blanks between, `#` comments) and weights.

Two decisions are linear scores over named binary features (`possessives`, `subject_reference`): a
sum of weights that decides by its sign. The weights are fitted by logistic regression with
`tools/fit_annotator.py` and stored as JSON: {"weights": {name: value}}.
"""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..core.contents import noted
from ..core.errors import TouchstoneError
from ..core.files import read_json, read_text
from ..core.paths import material

# The lists lie with the study whose card states their source and licence.
_FOLDERS = ("geco", "implicit_bias")


def resource(name: str) -> Path:
    """The file of this repository that holds a list, the lexicon or fitted weights.

    Raises:
        TouchstoneError: no folder of material holds such a file.
    """
    places = [material(folder) / name for folder in _FOLDERS]
    for place in places:
        if place.is_file():
            return noted(place)
    raise TouchstoneError(f"{places[0]} is missing; restore the file of the repository")


def read_word_list(path: Path) -> frozenset[str]:
    """The words of a list, one or more on a line; what follows a `#` is a comment."""
    lines = read_text(path).splitlines()
    return frozenset(word for line in lines for word in line.split("#")[0].split())


@cache
def word_list(name: str) -> frozenset[str]:
    """A list of this repository by its name.

    >>> "Emma" in word_list("first_names")
    True
    """
    return read_word_list(resource(f"{name}.txt"))


@cache
def load_weights(name: str) -> Mapping[str, float]:
    """Fitted weights of this repository, by name of feature."""
    return read_weights(resource(f"{name}.json"))


def read_weights(path: Path) -> Mapping[str, float]:
    """The fitted weights of a file, by name of feature.

    Raises:
        TouchstoneError: the file is not such a table.
    """
    remedy = "restore the file of the repository"
    content = read_json(path, remedy)
    weights = content.get("weights") if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not all(map(_is_number, weights.values())):
        raise TouchstoneError(f"{path} holds no weights (numbers by name); {remedy}")
    return weights


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def weighted_sum(weights: Mapping[str, float], features: Iterable[str]) -> float:
    """The sum of the weights of the features that hold; a feature without a weight counts nothing.

    >>> weighted_sum({"bias": -1.0, "word dog": 2.5}, ["bias", "word dog", "word cat"])
    1.5
    """
    return sum(weights.get(name, 0.0) for name in features)
