"""The annotator against GECO's labels: by hand, on the training part, and as stored."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from annotator_scores import (
    Base,
    Tally,
    compare_sentence,
    pipeline_label,
    score_annotator,
    sentence_errors,
)
from hand_parsed import UD

from lib.core.paths import material
from lib.language.annotator import annotate_sentence
from lib.language.labels import gender_variants
from lib.language.parse import load_pipeline


def test_the_tally_is_precision_and_recall() -> None:
    tally = Tally()
    tally.add([0, 1, 2], [1, 2, 3, 4])
    row = tally.row()
    assert (row["precision"], row["recall"], row["F1"]) == (
        pytest.approx(2 / 3),
        0.5,
        pytest.approx(4 / 7),
    )
    assert row["sentences_right"] == 0


def test_a_perfect_label_scores_one() -> None:
    forms = [
        text.split()
        for text in ("She is a nun and loves her aunt .", "He is a monk and loves his uncle .")
    ]
    neutral = gender_variants(annotate_sentence(UD), "all")["NB"]
    tally = {
        name: Tally()
        for name in (
            "mask without verbs",
            "mask, adjacent verbs",
            "mask, full agreement",
            "to the other gender",
            "mask, full agreement, corrected gold",
            "to neutral, strict",
            "to neutral, lenient",
            "to neutral, corrected gold",
        )
    }
    compare_sentence(
        UD,
        Base([*forms, neutral], [0, 1, 3, 5, 6, 7], neutral, [0, 1, 3, 5, 6, 7]),
        0,
        "all",
        tally,
    )
    assert {name: made.right for name, made in tally.items()} == dict.fromkeys(tally, 1) | {
        "mask, adjacent verbs": 0
    }


@pytest.mark.more
def test_the_training_part_of_geco_is_reproduced(geco_data: Path, spacy_pipeline: str) -> None:
    """Every 16th base sentence of the training part; the bounds leave room for a pipeline."""
    table = score_annotator(
        "train", load_pipeline(spacy_pipeline), geco_data, keep=lambda idx: idx % 16 == 0
    )
    table = table.set_index(["dataset", "input", "quantity"])
    assert table.loc[("D_A", "male", "mask without verbs"), "F1"] > 0.98
    assert table.loc[("D_A", "female", "to neutral, corrected gold"), "sentences_right"] > 0.8
    assert table.loc[("D_S", "female", "mask without verbs"), "F1"] > 0.8


@pytest.mark.more
def test_the_stored_scores_are_those_of_the_code(geco_data: Path, spacy_pipeline: str) -> None:
    """The committed table and the sentences that were read, made anew."""
    nlp = load_pipeline(spacy_pipeline)
    stored = pd.read_csv(material("geco") / "annotator_scores.csv")
    stored = stored[stored["pipeline"] == pipeline_label(nlp)]
    if stored.empty:
        pytest.skip(
            f"annotator_scores.csv has no figures of {pipeline_label(nlp)}: set TOUCHSTONE_SPACY "
            f"to a pipeline that it names"
        )
    keys, figures = (
        ["dataset", "input", "quantity"],
        ["precision", "recall", "F1", "sentences_right", "n"],
    )
    anew = score_annotator("test", nlp, geco_data)
    pd.testing.assert_frame_equal(
        stored.set_index(keys)[figures],
        anew.set_index(keys)[figures],
        atol=0.007,
        rtol=0,
        check_dtype=False,
    )
    if pipeline_label(nlp) == "en_ud_sm":  # whose errors on D_A were read
        read = pd.read_csv(material("geco") / "annotator_errors.csv")
        found = sentence_errors("D_A", "test", nlp, geco_data)
        for key, mine in read.groupby(["input", "quantity"]):
            wrong = found[(found["input"] == key[0]) & (found["quantity"] == key[1])]
            assert len(set(mine["sentence_idx"]) ^ set(wrong["sentence_idx"])) <= 2, key
