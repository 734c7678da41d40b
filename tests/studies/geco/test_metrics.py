"""The floors on the published data have the values that were measured before this code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.attribution import explain, fit_pattern
from lib.metrics import piece_counts, score_explanations, truth_share
from lib.models.weights import load_tokenizer
from lib.studies.geco.corpus import DATASETS, read_geco
from lib.studies.geco.forms import without_verbs


def rows_of(geco: Path, name: str, split: str) -> pd.DataFrame:
    rows = read_geco(geco / DATASETS[name] / f"{split}.jsonl")
    rows.attrs.clear()
    return rows


@pytest.mark.parametrize(
    ("name", "n_marked", "n_verbs"), [("D_A", 6737, 1772), ("D_S", 4015, 1449)]
)
def test_a_quarter_to_a_third_of_the_ground_truth_reads_the_same_in_both_forms(
    geco_data, name, n_marked, n_verbs
):
    rows = pd.concat(
        [rows_of(geco_data, name, split) for split in ("train", "test")], ignore_index=True
    )
    rows["without"] = without_verbs(rows)
    male = rows[rows["target"] == 1]
    union, left = (sum(map(sum, male[column])) for column in ("ground_truth", "without"))
    assert union == pytest.approx(
        n_marked, abs=10
    )  # two sentences whose masks did not fit were not counted then
    assert union - left == pytest.approx(
        n_verbs, abs=15
    )  # one unaligned sentence, and words that differ in case only


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "share", "floors"),
    [
        ("D_A", 0.228, {"Uniform random": 0.228, "First pronoun": 0.98, "Pattern Variant": 0.964}),
        (
            "D_S",
            0.1415,
            {"Uniform random": 0.1415, "First pronoun": 0.91, "Pattern Variant": 0.776},
        ),
    ],
)
def test_the_floors_reach_what_was_measured(geco_data, name, share, floors):
    train, test = rows_of(geco_data, name, "train"), rows_of(geco_data, name, "test")
    test["token_counts"] = piece_counts(test["sentence"], load_tokenizer("all-MiniLM-L6-v2"))
    pattern = fit_pattern(train)
    made = pd.concat(
        [
            explain(pattern if floor == "Pattern Variant" else None, test, floor, dataset=name)
            for floor in floors
        ]
    )
    scored = score_explanations(made, test)
    assert scored["share"].mean() == pytest.approx(share, abs=0.001)
    for floor, part in scored.groupby("method"):
        assert part["MA"].mean() == pytest.approx(floors[floor], abs=0.012), floor


def test_the_share_is_what_noise_on_the_pieces_reaches(geco_data):
    rows = rows_of(geco_data, "D_A", "test")
    counts = piece_counts(rows["sentence"], load_tokenizer("all-MiniLM-L6-v2"))
    rng = np.random.default_rng(0)
    drawn = [[rng.random(n).sum() for n in row] for row in counts]
    mass = [np.dot(d, m) / np.sum(d) for d, m in zip(drawn, rows["ground_truth"])]
    shares = [truth_share(m, c) for m, c in zip(rows["ground_truth"], counts)]
    assert np.mean(mass) == pytest.approx(np.mean(shares), abs=0.006)
