"""Classifiers that need no language model: what a trained one has to beat before it counts as having
learnt the task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

PRONOUNS = {
    "F": "she her hers herself",
    "M": "he him his himself",
    "NB": "they them their theirs themself themselves",
}


def as_counted(words: Sequence[str]) -> list[str]:
    """Words as an uncased model reads them: in lower case, without spaces at the edges; nothing is split or dropped.

    >>> as_counted(["Mx. ", "She"])
    ['mx.', 'she']
    """
    return [word.strip().lower() for word in words]


def first_pronoun(
    words: Sequence[str], classes: Sequence[str] = tuple(PRONOUNS)
) -> tuple[int, int] | None:
    """Position and class index of the first third-person pronoun of these classes, or None.

    >>> first_pronoun("Here she meets him".split())
    (1, 0)
    """
    class_of = {form: k for k, name in enumerate(classes) for form in PRONOUNS[name].split()}
    return next(
        ((i, class_of[word]) for i, word in enumerate(as_counted(words)) if word in class_of), None
    )


def first_pronoun_class(
    rows: pd.DataFrame, classes: Sequence[str] = tuple(PRONOUNS)
) -> Int[np.ndarray, "batch"]:
    """The rule "class = first pronoun", which is fitted to nothing. A sentence without a pronoun gets class 0.

    The classes are balanced, so the guess for those is right one time in as many as there are classes.
    """
    found = [first_pronoun(words, classes) for words in rows["sentence"]]
    return np.array([0 if hit is None else hit[1] for hit in found])


def first_pronoun_is_other(
    rows: pd.DataFrame, classes: Sequence[str] = tuple(PRONOUNS)
) -> Bool[np.ndarray, "batch"]:
    """Whether the first pronoun is somebody else's: it stands outside the ground truth, so no variant changes it.

    On these rows the first pronoun says nothing about the class. In D_A every gendered word is changed, so there are
    hardly any; in D_S only the subject's words are.
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
