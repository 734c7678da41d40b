"""Winogender: which of its sentences are asked, and that every occupation is counted."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lib.core.files import save_parquet
from lib.core.jobs import closed_stage
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT
from lib.core.stage import open_stage
from lib.studies.implicit_bias.answers import Answers
from lib.studies.implicit_bias.asked import ASKED, winogender

ROWS = """sentid\tsentence
nurse.patient.0.male.txt\tThe nurse told the patient that he could help.
nurse.patient.1.male.txt\tThe nurse told the patient that he could pay.
nurse.patient.0.female.txt\tThe nurse told the patient that she could help.
painter.buyer.0.male.txt\tThe painter showed the buyer his picture.
"""


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / "outputs"))
    file = tmp_path / "data" / "swag" / "winogender_all_sentences.tsv"
    file.parent.mkdir(parents=True)
    file.write_text(ROWS, encoding="utf-8")


def test_an_occupation_that_an_arm_was_trained_on_is_not_asked_and_yet_counted() -> None:
    stage = closed_stage("implicit_bias", "small", "03_attribution")
    every, fewer = winogender(stage, set()), winogender(stage, {"painter"})
    assert every["antecedent"].tolist() == ["nurse", "painter"], "male, about the occupation"
    assert fewer["antecedent"].tolist() == ["nurse"]

    before = open_stage("implicit_bias", "small", "01_data_generation")
    words = [["A", "painter", "met", "nurses"], ["The", "painter"], ["A", "nurse"]]
    text = pd.DataFrame({"part": ["train", "train", "valid"], "source": "corpora", "words": words})
    save_parquet(text, before.path("text.parquet"))
    notebook = ROOT / "notebooks" / "implicit_bias" / "01_data_generation.py"
    before.close(notebook_parameters(notebook))
    learnt = fewer.assign(antecedent="painter", part="trained on")
    values = {"transfer": "winogender", "reuse_units": False}
    counted = Answers(stage, values, learnt[ASKED]).occupations()
    assert counted.values.tolist() == [["nurse", 1], ["painter", 2]]
