"""Captions judged blind: agreement, precision, recall; a reading that lacks a line is refused."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.studies.implicit_bias.relabelling import agreement, judge_filter, read_readings


def write(folder: Path, **readings: list[str]) -> None:
    draw = {"id": list("abcdefgh"), "passes": ["yes"] * 4 + ["no"] * 4, "of": [10] * 4 + [100] * 4}
    pd.DataFrame(draw).to_csv(folder / "captions_draw.csv", index=False)
    for name, labels in readings.items():
        reading = pd.DataFrame({"id": list("abcdefgh"), "label": labels}).iloc[::-1]
        reading.to_csv(folder / f"captions_{name}.csv", index=False)


P, N = "passes", "no antecedent"


def test_both_readings_and_what_the_filter_is_worth(tmp_path: Path) -> None:
    write(tmp_path, first=[P, P, P, N, N, N, N, P])
    readings = read_readings(tmp_path)
    assert agreement(readings).empty
    (alone,) = judge_filter(readings).to_dict("records")
    assert (alone["right"], alone["missed"], alone["precision"]) == (3, 1, 0.75)
    assert alone["recall"] == pytest.approx(0.75 * 10 / (0.75 * 10 + 0.25 * 100))
    assert 0 < alone["recall_low"] < alone["recall"] < alone["recall_high"] < 1
    write(tmp_path, second=[P, P, N, N, N, N, N, "name"])
    readings = read_readings(tmp_path)
    (both,) = agreement(readings).to_dict("records")
    assert (both["captions"], both["same_label"], both["same_verdict"]) == (8, 0.75, 0.75)
    assert 0 < both["kappa"] < 1
    table = judge_filter(readings).set_index("reading")
    assert table.loc["both", ["right", "missed", "recall"]].tolist() == [2, 0, 1.0]


def test_a_reading_must_label_each_caption_once_by_the_guide(tmp_path: Path) -> None:
    write(tmp_path, first=[P] * 8)
    lines = (tmp_path / "captions_first.csv").read_text().splitlines()
    (tmp_path / "captions_first.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(TouchstoneError, match="captions_first.csv: a has no line of its own"):
        read_readings(tmp_path)
    write(tmp_path, first=[P] * 7 + ["yes"])
    with pytest.raises(TouchstoneError, match="there is no label 'yes'; write one of no pronoun"):
        read_readings(tmp_path)


def test_the_committed_draw_is_fresh_and_holds_no_caption() -> None:
    own = material("implicit_bias")
    readings = read_readings(own)
    earlier = pd.read_csv(own / "filter_verdicts.csv", comment="#")["sentence_id"]
    assert not set(readings["id"]) & set(earlier) and readings["passes"].sum() == 50
    for path in own.glob("captions_*.csv"):
        assert set(pd.read_csv(path)) <= {"id", "passes", "of", "label"}
