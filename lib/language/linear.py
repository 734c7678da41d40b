"""Linear scores over named binary features: a sum of weights that decides by its sign.

Two decisions of the annotator are made this way (`possessives`, `subject_reference`). The weights
are fitted by logistic regression with `tools/fit_annotator.py` and stored as JSON: {"weights":
{name: value}}.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ..core.errors import TouchstoneError


@cache
def load_weights(path: Path) -> Mapping[str, float]:
    """The fitted weights by name of feature.

    Raises:
        TouchstoneError: the file is not such a table.
    """
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))["weights"])
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise TouchstoneError(
            f"{path} holds no weights ({error!r}); restore the file of the repository"
        ) from error


def weighted_sum(weights: Mapping[str, float], features: Iterable[str]) -> float:
    """The sum of the weights of the features that hold; a feature without a weight counts nothing.

    >>> weighted_sum({"bias": -1.0, "word dog": 2.5}, ["bias", "word dog", "word cat"])
    1.5
    """
    return sum(weights.get(name, 0.0) for name in features)
