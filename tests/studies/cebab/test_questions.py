from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.studies.cebab.questions import TrainMeans, ask, one_hot


def test_a_question_does_not_hold_its_answer(toy) -> None:
    assert (toy.questions.texts.gold == "").all()
    assert (toy.questions.values()[np.arange(60), toy.questions.aspect] == toy.questions.old).all()
    with pytest.raises(TouchstoneError, match="pair nobody ... has no text"):
        ask(
            pd.DataFrame(
                {"base_id": ["nobody"], "aspect": ["food"], "old": ["unknown"], "new": ["Positive"]}
            ),
            toy.texts,
        )


def test_what_is_known_replaces_what_is_predicted(toy) -> None:
    toy.questions.texts.predicted[:] = "unknown"
    assert (toy.questions.values(known_old=False) == "unknown").all()
    known = toy.questions.values()
    assert (known[np.arange(60), toy.questions.aspect] == toy.questions.old).all()
    assert (known != "unknown").sum() == (toy.questions.old != "unknown").sum()


def test_cells_without_a_value_are_three_zeros() -> None:
    assert one_hot(np.array([["", "no majority", "Negative", ""]], dtype=object)).sum() == 1


def test_a_value_that_no_train_text_has_is_named() -> None:
    gold = np.array([["Positive", "unknown", "unknown", "Negative"]], dtype=object)
    means = TrainMeans(gold, [np.array([[1.0, 2.0]])] * 4)
    assert means.of([0, 3], ["Positive", "Negative"]).tolist() == [[1.0, 2.0]] * 2
    with pytest.raises(TouchstoneError, match="no train text has noise 'unknown'; use more"):
        means.of([3], ["unknown"])
