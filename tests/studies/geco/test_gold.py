"""What is behind the errors that were read."""

from __future__ import annotations

import pandas as pd
import pytest

from lib.studies.geco.gold import bound_table


def test_the_bounds_by_hand() -> None:
    """Ten sentences, four wrong: one is ours, so the best that is left to reach is seven of ten."""
    scores = pd.DataFrame(
        {
            "input": ["male"],
            "quantity": ["to the other gender"],
            "F1": [None],
            "sentences_right": [0.6],
        }
    )
    verdicts = [
        "annotator wrong",
        "gold has another right form",
        "gold lost or swapped words",
        "text does not tell who is meant",
    ]
    errors = pd.DataFrame(
        {
            "input": "male",
            "quantity": "to the other gender",
            "sentence_idx": range(4),
            "words": 2,
            "verdict": verdicts,
            "second": [verdicts[0], verdicts[1], "not read twice", verdicts[3]],
        }
    )
    row = bound_table(scores, errors).iloc[0]
    assert (row["errors"], row["gold_at_fault"], row["text_does_not_tell"], row["ours"]) == (
        4,
        2,
        1,
        1,
    )
    assert row["highest"] == pytest.approx(0.7)
    assert row["agreed"] == 1 and row["mended"] == pytest.approx(
        0.7
    )  # one of the two faults of the gold was found by both readings
