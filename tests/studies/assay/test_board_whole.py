"""A submission with code from its folder to the board: rescored on the items, and run again on new
ones. The notebooks' work is done here by the same functions, on a few short texts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from lib import cli
from lib.attribution import Row
from lib.core.files import load_parquet, read_table, save_csv, save_parquet
from lib.core.runner import Job
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.doors.submission import ABOUT, NUMBERS
from lib.studies.assay import board as boards
from lib.studies.assay import card as cards
from lib.studies.assay import fresh
from lib.studies.assay.asking import Asking
from lib.studies.assay.explainers import merge_identical
from lib.studies.assay.trainings import Trainings
from lib.studies.assay.truths import items_to_answer, telling_items

pytestmark = [pytest.mark.more, pytest.mark.slow]

COMMIT = "e93533a0c2"
CODE = """
def by_place(model, rows, power=1):
    assert model is not None, "whoever is asked holds the model"
    return [[float(i + 1) ** power for i in range(len(row.words))] for row in rows]
"""
TOLD = {"author": "A", "method": "by place", "settings": {"power": 2}, "tuned": False}


@pytest.fixture
def no_notebooks(
    small_outputs: Path, first_stage: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Stages 01 to 04 without notebooks; the list of the scales that were run."""
    ran: list[str] = []

    def run_jobs(jobs: Sequence[Job], stages: Sequence[str] = ()) -> None:
        values = {name: value for job in jobs for name, value in job.all.items()}
        is_done = values["scale"] in ran
        ran.append(values["scale"])
        if is_done:  # what is unchanged is skipped
            return
        first_stage(values, n=2)
        close_training(values)
        close_asking(values)
        open_stage("assay", values["scale"], "04_metrics").close(values)
        run = small_outputs / "assay" / values["scale"]
        items = telling_items(load_parquet(run / "02_training" / "truths.parquet"))
        said = load_parquet(run / "03_attribution" / "explanations.parquet")
        answers = items[["item_id", "model", "training", "text"]].merge(said)
        cells = boards.cells_of(run, items, answers[["item_id", "explainer", "scores"]])
        save_csv(cells, run / "04_metrics" / "cells.csv")

    for place in (cards, fresh):
        monkeypatch.setattr(place, "run_jobs", run_jobs)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return ran


def close_training(values: dict[str, Any]) -> None:
    stage = open_stage("assay", values["scale"], "02_training")
    study = Trainings(stage, Units("assay", values["scale"], "02_training", False), values)
    truths = pd.concat([study.answers(*place) for place in study.models()], ignore_index=True)
    truths = truths.drop(columns=["other", "padding"])
    save_parquet(truths, stage.path("truths.parquet"))
    save_parquet(truths.head(0), stage.path("second_models.parquet"))
    stage.path("models")
    stage.close(values)


def close_asking(values: dict[str, Any]) -> None:
    stage = open_stage("assay", values["scale"], "03_attribution")
    study = Asking(stage, Units("assay", values["scale"], "03_attribution", False), values)
    said = pd.concat([study.explained(*place) for place in study.models()], ignore_index=True)
    kept, copies = merge_identical(said[said["why"] == ""].drop(columns="why"))
    save_parquet(kept, stage.path("explanations.parquet"))
    copied = pd.DataFrame(copies.items(), columns=["explainer", "is the same as"])
    stage.table("copies", copied)
    stage.close(values)


def hand_in(folder: Path, items: pd.DataFrame) -> None:
    """The function, and what it says of every item, as its author would write it."""
    folder.mkdir(parents=True)
    (folder / "places.py").write_text(CODE)
    (folder / ABOUT).write_text(yaml.safe_dump(TOLD | {"code": "places:by_place"}))
    known: dict[str, Any] = {}
    exec(CODE, known)
    rows = [Row("text", 0, 1, text.split(" "), 0) for text in items["text"]]
    scores = known["by_place"](object(), rows, **TOLD["settings"])
    save_parquet(pd.DataFrame({"item_id": items["item_id"], "scores": scores}), folder / NUMBERS)


def test_a_submission_is_scored_and_run_again_and_a_malformed_one_is_refused(
    no_notebooks: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = items_to_answer(load_parquet(cards.run_small() / "02_training" / "truths.parquet"))
    handed, out = tmp_path / "handed", tmp_path / "out"
    hand_in(handed / "mine", items)
    words = ["board", "--submissions", str(handed), "--out", str(out), "--fresh", COMMIT]
    assert cli.main(words) == 0, capsys.readouterr().err
    assert no_notebooks == ["small", "small", f"fresh-{COMMIT[:7]}"]

    table = read_table(out / "board.csv")
    theirs = table[table["explainer"] == "mine: by place"].set_index("truth")
    assert {"mask", "edit", "noun", "deletion, pad", "edit, fresh"} <= set(theirs.index)
    known = set(table["truth"])
    assert {f"{truth}, fresh" for truth in fresh.FRESH if truth in known} <= set(theirs.index)
    assert set(theirs["author"]) == {"A"} and set(theirs["settings"]) == {'{"power": 2}'}
    rule = table[table["explainer"] == "Nearest"].set_index("truth")["value"]
    asks_for_order = ["mask", "noun", "deletion, mask"]
    for truth in asks_for_order:
        assert theirs.loc[truth, "value"] == pytest.approx(rule[truth], nan_ok=True), truth
    assert "same answers as Nearest" in theirs["remarks"].iloc[0]
    assert "model-blind" in theirs["remarks"].iloc[0]
    assert "mine: by place" in (out / "board.html").read_text()

    path = handed / "mine" / NUMBERS
    load_parquet(path).iloc[1:].to_parquet(path)
    (out / "board.csv").unlink()
    assert cli.main(words) == 1
    told = capsys.readouterr().err
    assert "leaves out 1 of" in told and items["item_id"].iloc[0] in told
    assert not (out / "board.csv").exists()
    assert no_notebooks[3:] == ["small"], "and its code did not run again"
