"""Printed numbers: which are judged, by how much they may differ, and whether they add up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.core.files import read_table
from lib.core.paths import material
from lib.studies.lm_saliency.printed import integrity, judge_printed, ours_in_place

LINES = pd.DataFrame(
    {
        "prefix": [["a", "b", "c", "d"]] * 4,
        "cues": [[(0, 0)]] * 4,
        "attractors": [[(2, 2)]] * 3 + [[(1, 1), (2, 2)]],
        "pattern": ["one", "one", "two", "three"],
    }
)
RESULTS = pd.DataFrame(
    {
        "dataset": ["Syneval"] * 2,
        "scheme": ["LSTM"] * 2,
        "size": ["full", "student"],
        "method": ["V"] * 2,
        "estimate": [0.6, 0.5],
        "exp": [0.7, 0.4],
        "alt": [0.3, 0.9],
        "share_exp": [0.75, 0.8],
    }
)


def number(value: float, scheme: str = "-", method: str = "Nearest", **more: object) -> dict:
    about = {"source": "paper", "quantity": "plausibility", "dataset": "Syneval", "class": "exp"}
    return (
        about | {"scheme": scheme, "method": method, "value": value, "note": "", "id": "x"} | more
    )


def judged(*numbers: dict) -> list[dict]:
    mine, allowed = ours_in_place(RESULTS, {}, {"Syneval": LINES})
    return list(judge_printed(pd.DataFrame(numbers), mine, allowed, "cpu"))


def test_only_counts_and_rules_are_judged() -> None:
    model, rule, count = judged(
        number(0.7, "LSTM", "V"),
        number(0.0),
        number(4, method=None, quantity="n_lines", **{"class": None}),
    )
    assert (model["ours"], model["verdict"]) == (0.7, "not run")
    assert model["why"] == "the number belongs to another model or set"
    assert (rule["ours"], rule["verdict"]) == (0.0, "holds")
    assert (count["ours"], count["quantity"], count["verdict"]) == (4, "n_lines Syneval -", "holds")


@pytest.mark.parametrize(("value", "verdict"), [(0.0004, "holds"), (0.0006, "fails")])
def test_a_rule_holds_up_to_rounding(value: float, verdict: str) -> None:
    assert judged(number(value))[0]["verdict"] == verdict


def test_random_is_one_draw() -> None:
    chance = np.array([1 / 2, 1 / 2, 1 / 2, 1 / 3])
    margin = 1.96 * np.sqrt((chance * (1 - chance)).sum()) / 4
    for value, verdict in ((margin - 0.01, "holds"), (margin + 0.01, "fails")):
        found = judged(number(chance.mean() + value, method="Random"))[0]
        assert (round(found["ours"], 6), found["verdict"]) == (round(chance.mean(), 6), verdict)


def test_students_and_sides_have_places_of_their_own() -> None:
    sides = pd.DataFrame({"side": ["verum", "malum"], "estimate": [0.8, 0.2]})
    sides = sides.assign(dataset="Syneval", scheme="LSTM", size="student", method="V")
    mine, _ = ours_in_place(RESULTS, {"input_consistency": sides}, {"EWT": LINES})
    place = "Syneval", "LSTM", "V"
    assert mine["plausibility_student", *place, "alt"] == 0.9
    assert mine["input_consistency_student", *place, "exp"] == 0.8
    assert mine["scenario_share", "Syneval", "LSTM", "", "alt"] == 0.25
    assert not any(key[0] == "n_lines" for key in mine)  # EWT is no set of the paper


def test_three_printed_cells_are_far_from_their_parts() -> None:
    table = integrity(read_table(material("lm_saliency") / "paper_numbers.csv"))
    off = (table["all"] - table["from_parts"]).abs()
    cells = table.loc[off > 0.005, ["dataset", "scheme", "method"]].values.tolist()
    assert cells == [
        ["CoNLL", "QRNN", "V"],
        ["Winobias", "Transformer", "IG"],
        ["Winobias", "Transformer", "V"],
    ]
    assert (~table["adds_up"]).sum() == 4 and len(table) == 60
