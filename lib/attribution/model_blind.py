"""Explanations that see no model: what every real explanation has to beat."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..core.errors import TouchstoneError
from ..language.lexicon import PRONOUN_FORMS, as_counted
from ..models.text_model import TextModel
from .seam import Row, word_scores

_PRONOUNS = frozenset().union(*PRONOUN_FORMS.values())
_Scores = list[Float[np.ndarray, "token"]]


def uniform_random(model: TextModel | None, rows: Sequence[Row]) -> _Scores:
    """Noise (GECOBench, section 3.3.2): a uniform number in [0, 1) per sub-word, summed into words.

    Only the model's tokenizer is used; without a model every word is one piece. On average its mass
    accuracy is the share of sub-words that are ground truth.
    """
    scores = []
    for row in rows:
        n_words = len(row.words)
        word_ids = list(range(n_words)) if model is None else model.encode([row.words])[0].word_ids
        scores.append(
            word_scores(np.random.default_rng(row.seed).random(len(word_ids)), word_ids, n_words)
        )
    return scores


def first_pronoun(model: None, rows: Sequence[Row]) -> _Scores:
    """All mass on the first third-person pronoun; equal mass on all words where there is none."""
    pronouns = [_pronouns(row) for row in rows]
    return [_or_equal(np.where(np.cumsum(is_one) == 1, is_one, 0.0)) for is_one in pronouns]


def pronoun_list(model: None, rows: Sequence[Row]) -> _Scores:
    """Equal mass on every third-person pronoun; equal mass on all words where there is none."""
    return [_or_equal(_pronouns(row)) for row in rows]


@dataclass(frozen=True)
class Pattern:
    """What the Pattern Variant knows: Cov(tf-idf of a word, "the row is of class k") by word."""

    covariance: dict[str, Float[np.ndarray, "class"]]
    n_classes: int


def fit_pattern(train: pd.DataFrame) -> Pattern:
    """Fit the Pattern Variant (GECOBench, section 3.3.2; Haufe et al. 2014) on training rows.

    Cov(tf-idf of word j, target = k) for every class k against the rest: with the class numbers
    themselves as the target, the class in the middle would have no covariance with its own words.

    >>> train = pd.DataFrame({"sentence": [["she", "sings"], ["he", "runs"]], "target": [0, 1]})
    >>> fit_pattern(train).covariance["she"].round(3).tolist()
    [0.354, -0.354]

    Args:
        train: rows with sentence (a list of words) and target (a class number).
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # a second of import

    vectoriser = TfidfVectorizer(analyzer=as_counted)
    features = vectoriser.fit_transform(train["sentence"])
    target = train["target"].to_numpy()
    is_class = (target[:, None] == np.arange(target.max() + 1)).astype(float)
    # The features' own means then cancel: sum((x - mean) c) = sum(x c).
    centred = is_class - is_class.mean(0)
    covariance = np.asarray(features.T @ centred) / (len(train) - 1)
    return Pattern(
        {word: covariance[column] for word, column in vectoriser.vocabulary_.items()},
        is_class.shape[1],
    )


def pattern_variant(model: Pattern, rows: Sequence[Row]) -> _Scores:
    """Pattern Variant: each word's covariance with the row's class; 0 for unseen words.

    Raises:
        TouchstoneError: for anything but what `fit_pattern` returns.
    """
    if not isinstance(model, Pattern):
        raise TouchstoneError(
            "Pattern Variant explains data, not a model; hand it fit_pattern(train) instead"
        )
    unseen = np.zeros(model.n_classes)
    return [
        np.array([model.covariance.get(word, unseen)[row.target] for word in as_counted(row.words)])
        for row in rows
    ]


def _pronouns(row: Row) -> Float[np.ndarray, "token"]:
    return np.array([float(word in _PRONOUNS) for word in as_counted(row.words)])


def _or_equal(scores: Float[np.ndarray, "token"]) -> Float[np.ndarray, "token"]:
    return scores if scores.any() else np.ones_like(scores)
