"""The sweep's configurations are those of the paper's Table 9, and ours follow the same design."""

from __future__ import annotations

import pandas as pd

from lib.core.paths import material
from lib.models.language_model import LMConfig

SWEEP = pd.read_csv(material("lm_saliency") / "sweep.csv")
NUMBERS = pd.read_csv(material("lm_saliency") / "paper_numbers.csv")


def test_the_papers_21_configurations_are_those_of_table_9() -> None:
    paper = SWEEP[SWEEP["scale"] == "paper"]
    table = NUMBERS[NUMBERS["source"].str.endswith("Table 9")].set_index(["quantity", "scheme"])[
        "value"
    ]
    assert len(paper) == 21
    for row in paper.itertuples():
        name = f"Transformer {row.layers} layers {row.width}w_{row.embedding}e_{row.heads}h"
        assert (
            table["perplexity", name] == row.dev_perplexity
            and table["parameters", name] == row.parameters_million
        )


def test_ours_are_three_depths_by_seven_settings_around_192_and_can_be_built() -> None:
    ours = SWEEP[SWEEP["scale"] == "cpu"]
    designs = {
        scale: [
            (r.layers, r.width * base["width"], r.embedding * base["embedding"])
            for r in part.itertuples()
        ]
        for scale, part, base in (
            (
                "paper",
                SWEEP[SWEEP["scale"] == "paper"],
                {"width": 384 / 1024, "embedding": 192 / 512},
            ),
            ("cpu", ours, {"width": 1, "embedding": 1}),
        )
    }
    assert sorted(designs["paper"]) == sorted(designs["cpu"])
    assert len({(r.layers, r.width, r.embedding, r.heads) for r in ours.itertuples()}) == 21
    for r in SWEEP.itertuples():
        LMConfig("Transformer", r.layers, r.embedding, r.width, r.heads)


def test_every_number_of_the_tables_is_a_row_and_has_an_id_of_its_own() -> None:
    counts = NUMBERS["source"].str.split(", ").str[1].value_counts().to_dict()
    assert counts == {
        "Table 3": 148,
        "Table 4a": 36,
        "Table 4b": 72,
        "Table 6": 30,
        "Table 8": 72,
        "Table 9": 56,
        "Section 4": 6,
    }
    assert NUMBERS["id"].is_unique and (NUMBERS["note"].fillna("").str.len() > 0).sum() >= 3
