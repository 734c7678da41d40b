"""Classifiers without a language model: what a trained one has to beat.

A model that does no better has not learnt the task.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ...language.lexicon import PRONOUN_FORMS, as_counted, first_pronoun


def first_pronoun_class(
    rows: pd.DataFrame, classes: Sequence[str] = tuple(PRONOUN_FORMS)
) -> Int[np.ndarray, "batch"]:
    """The rule "class = first pronoun", which is fitted to nothing.

    A sentence without a pronoun gets class 0. The classes are balanced, so the guess for those is
    right one time in as many as there are classes.
    """
    found = [first_pronoun(words, classes) for words in rows["sentence"]]
    return np.array([0 if hit is None else hit[1] for hit in found])


def first_pronoun_is_other(
    rows: pd.DataFrame, classes: Sequence[str] = tuple(PRONOUN_FORMS)
) -> Bool[np.ndarray, "batch"]:
    """Whether the first pronoun is somebody else's, which no variant changes.

    It stands outside the ground truth then, and says nothing about the class. In D_A every gendered
    word is changed, so there are hardly any such rows; in D_S only the subject's words are.
    """
    found = [first_pronoun(words, classes) for words in rows["sentence"]]
    masks = rows["ground_truth"]
    return np.array(
        [hit is not None and not mask[hit[0]] for hit, mask in zip(found, masks, strict=True)]
    )


def bag_of_words(train: pd.DataFrame, test: pd.DataFrame) -> Int[np.ndarray, "batch"]:
    """Logistic regression on word counts: all the words, none of their order.

    Args:
        train: sentence, target.
        test: sentence.

    Returns:
        The classes of the test rows.
    """
    model = make_pipeline(CountVectorizer(analyzer=as_counted), LogisticRegression(max_iter=1000))
    return model.fit(train["sentence"], train["target"]).predict(test["sentence"])
