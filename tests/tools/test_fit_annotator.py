"""What the annotator is fitted on, its weights, and the tables of doubts."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from fit_annotator import (
    as_questions,
    doubt_table,
    fit_possessives,
    fit_reference,
    measure_doubts,
    rank_table,
    store_annotation,
)
from hand_parsed import parsed

from lib.core.paths import material
from lib.language.parse import load_pipeline, stored_pipeline
from lib.language.subject_reference import subject_chain
from lib.studies.geco.doubts import reason_of

MEASURED, RANKS = material("geco") / "doubts.csv", material("geco") / "doubt_ranks.csv"


@pytest.mark.parametrize(
    ("text", "asked", "answers"),
    [
        ("He told them about his dog", "He told her about her dog", {2: False, 4: True}),
        ("My aunt saw me .", "Her aunt saw her .", {0: True, 3: False}),
        ("a friend of his .", "a friend of his .", {}),  # hers
        ("his and their friends", "his and her friends", {2: True}),
        ("She saw her", "She saw her", {}),
    ],
)
def test_unambiguous_words_become_questions(
    text: str, asked: str, answers: dict[int, bool]
) -> None:
    assert as_questions(text.split()) == (asked.split(), answers)


def test_weights_separate_what_can_be_separated() -> None:
    rows = [["bias", "word dog"], ["bias", "word then"]] * 20
    weights = fit_possessives(rows, [True, False] * 20)
    assert (
        weights["word dog"] > 0 > weights["word then"]
        and abs(weights["word dog"] + weights["word then"]) < 0.1
    )


def test_fitted_weights_separate_what_they_saw() -> None:
    himself = parsed("He/PRP/nsubj/1 hurts/VBZ/ROOT/1 himself/PRP/obj/1 ././punct/1")
    him = parsed("He/PRP/nsubj/1 hurts/VBZ/ROOT/1 him/PRP/obj/1 ././punct/1")
    words = {0: "M", 2: "M"}
    weights = fit_reference([himself, him] * 5, [words] * 10, [{0, 2}, {0}] * 5, strength=10.0)
    assert subject_chain(himself, 0, words, (), weights) == {0, 2} and subject_chain(
        him, 0, words, (), weights
    ) == {0}


def test_tables_by_hand() -> None:
    measured = pd.DataFrame(
        [
            ("D_A", True, 2, ["a: x", "b: y"]),
            ("D_A", False, 1, ["a: z"]),
            ("D_A", False, 0, []),
            ("D_A", True, 1, ["b"]),
        ],
        columns=["dataset", "wrong", "rank", "doubts"],
    )
    assert doubt_table(measured).to_numpy().tolist() == [
        ["D_A", "a", 2, 0.5, 0.5],
        ["D_A", "b", 2, 1.0, 0.0],
    ]
    ranks = rank_table(
        measured
    )  # wrong 2 and 1, right 1 and 0: of four pairs three in order and one tie
    assert ranks.drop(columns="AUC").to_numpy().tolist() == [
        ["D_A", "0", 1, 0.0],
        ["D_A", "1", 2, 0.5],
        ["D_A", "2", 1, 1.0],
    ]
    assert ranks["AUC"].tolist() == [0.875] * 3


@pytest.mark.more
def test_doubts_tell_on_geco(geco_data: Path, spacy_pipeline: str) -> None:
    measured = measure_doubts(load_pipeline(spacy_pipeline), geco_data, every=6)
    ranks = rank_table(measured).groupby("dataset")["AUC"].first()
    stored = pd.read_csv(RANKS).groupby("dataset")["AUC"].first()
    assert (ranks > 0.6).all() and (ranks - stored).abs().max() < 0.08
    assert {reason_of(d) for all_of in measured["doubts"] for d in all_of} <= set(
        pd.read_csv(MEASURED)["reason"]
    )


@pytest.mark.slow
def test_parsing_the_text_again_gives_the_stored_annotation(
    spacy_pipeline: str, tmp_path: Path
) -> None:
    stored_files = sorted(material("geco").glob("annotation_*.conllu"))
    pipeline = load_pipeline(spacy_pipeline)
    if not stored_pipeline(stored_files[0]).startswith(f"{pipeline.path.name} "):
        pytest.skip(
            f"the annotation was made by {stored_pipeline(stored_files[0])}, not by "
            f"{pipeline.path.name}"
        )
    (tmp_path / "plots.md").write_bytes((material("geco") / "plots.md").read_bytes())
    made = store_annotation(tmp_path / "plots.md", pipeline, "2026-11-21")
    assert [path.read_text() for path in made] == [path.read_text() for path in stored_files]
