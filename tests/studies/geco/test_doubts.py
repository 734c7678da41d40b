"""What speaks against a label: each reason on a sentence made for it."""

from __future__ import annotations

import pandas as pd
import pytest
from spacy.language import Language

from lib.core.paths import material
from lib.language.annotator import annotate_sentence
from lib.language.parse import annotate, load_pipeline
from lib.studies.geco.doubts import (
    UNMEASURED,
    Doubts,
    close_calls,
    doubts,
)

MEASURED, RANKS = material("geco") / "doubts.csv", material("geco") / "doubt_ranks.csv"


@pytest.fixture(scope="module")
def pipeline() -> Language:
    from lib.core import paths

    if paths.spacy_pipeline() is None:
        pytest.skip("needs a spaCy pipeline: set TOUCHSTONE_SPACY to its name or path")
    return load_pipeline("environment")


def found(sentence: str, pipeline: Language) -> Doubts:
    doc = annotate([sentence], pipeline)[0]
    return doubts(doc, annotate_sentence(doc))


@pytest.mark.parametrize(
    ("sentence", "doubt"),
    [
        ("He says the actress leaves.", 'a verb that stays beside "they": leaves'),
        ("Mrs. Hill reads a book.", "a title: Mrs."),
        ("The bride and groom wave.", "two people joined: bride, and, groom"),
        ("The women wave to him.", "a gendered plural: women"),
        ("He says they are tired.", '"they" stands in the text already: they'),
        ("He's tired.", "a contraction: 's"),
        ("The woman who sings is tired.", "a relative clause: sings"),
        ('She says: "Go home."', "a quotation"),
        ("“Go home, she said.", "a quotation that does not close: “"),
        ("Dr. Hill meets Sir Walter Scott.", "a title before a first name: Sir, Walter"),
        ("SHE waits.", "all capitals: SHE"),
    ],
)
def test_reasons_of_form(sentence: str, doubt: str, pipeline: Language) -> None:
    assert doubt in found(sentence, pipeline).form


def test_a_plain_sentence_has_no_doubt(pipeline: Language) -> None:
    assert found("She waits.", pipeline) == Doubts([], [])


def test_a_long_sentence_is_named_without_words(pipeline: Language) -> None:
    assert "22 words or more" in found("She waits " + "and waits " * 10 + ".", pipeline).form


@pytest.mark.parametrize(
    ("sentence", "doubt"),
    [
        ("The king and his wife leave the house.", "a subject of several: king"),
        ("The dog sees him.", "nothing to alter for the subject"),
        ("The mother tells her sister that she loves her son.", "four gendered words or more"),
        ("The mother says that the aunt waits.", "another subject of that gender: aunt"),
    ],
)
def test_reasons_of_reference(sentence: str, doubt: str, pipeline: Language) -> None:
    assert doubt in found(sentence, pipeline).reference


def test_close_calls_widen_with_the_margin(pipeline: Language) -> None:
    doc = annotate(["The mother tells her sister that she loves her son."], pipeline)[0]
    label = annotate_sentence(doc)
    sizes = [len(close_calls(doc, label, margin)) for margin in (0.0, 1.0, 100.0)]
    assert sizes[0] == 0 and sizes[0] <= sizes[1] <= sizes[2] == 4, (
        "her, sister, she, her; the mother is the subject itself, her son no woman"
    )


def test_the_rank_of_a_data_set() -> None:
    both = Doubts(["a title: Sir"], ["nearly a toss-up: her", "four gendered words or more"])
    assert (both.rank("all"), both.rank("subj")) == (1, 2.01) and both.of(
        "subj"
    ) == both.reference + both.form


def test_each_reason_that_was_measured_tells() -> None:
    table = pd.read_csv(MEASURED)
    table = table[~table["reason"].isin(UNMEASURED)]
    assert (table["wrong_with"] > table["wrong_without"]).all() and set(table["dataset"]) == {
        "D_A",
        "D_S",
    }


@pytest.mark.parametrize("dataset", ["D_A", "D_S"])
def test_labels_with_more_doubts_were_wrong_more_often(dataset: str) -> None:
    table = pd.read_csv(RANKS).query("dataset == @dataset")
    assert table["wrong"].is_monotonic_increasing and table["AUC"].min() > 0.65
