"""Stages hand over through manifests: complete or not there, and every read is known."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure

from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT
from lib.core.stage import Stage, open_stage

matplotlib.use("Agg")
FRAME = pd.DataFrame({"method": ["LIME", "DeepLift"], "mass_accuracy": [1 / 3, 2 / 3]})


def first_stage(close: bool = True) -> Stage:
    stage = open_stage("toy", "small", "01_make")
    stage.table("scores", FRAME)
    if close:
        stage.close({"seed": 3, "scale": "small"})
    return stage


def test_a_table_is_shown_rounded_and_saved_unrounded(small_outputs: Path) -> None:
    stage = open_stage("toy", "small", "01_make")
    assert stage.table("scores", FRAME)["mass_accuracy"].tolist() == [0.333, 0.667]
    assert (
        stage.folder / "scores.csv"
    ).read_text() == "method,mass_accuracy\nLIME,0.333333\nDeepLift,0.666667\n"


def test_the_manifest_holds_the_hashes_rows_parameters_and_seeds(small_outputs: Path) -> None:
    stage = open_stage("toy", "small", "01_make")
    stage.path("sets/train.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    stage.table("scores", FRAME)
    shown = stage.close({"seed": 3, "n_seeds": 1})
    manifest = json.loads((stage.folder / "manifest.json").read_text())
    for name, about in manifest["files"].items():
        assert about["sha256"] == hashlib.sha256((stage.folder / name).read_bytes()).hexdigest()
    assert [(name, about["rows"]) for name, about in manifest["files"].items()] == [
        ("scores.csv", 2),
        ("sets/train.jsonl", 2),
    ]
    assert manifest["parameters"] == {"seed": 3, "n_seeds": 1} and manifest["seeds"]["seed"] == 3
    assert manifest["versions"]["pandas"] == pd.__version__
    assert shown.values.tolist() == [["scores.csv", "2", "2"], ["sets/train.jsonl", "2", ""]]
    assert list(shown) == ["file", "rows", "columns"]
    assert "seconds" in json.loads((stage.folder / "run.json").read_text())


def test_a_folder_that_was_asked_for_is_listed_file_by_file(small_outputs: Path) -> None:
    stage = open_stage("toy", "small", "01_make")
    folder = stage.path("models")
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    (stage.folder / "not announced.txt").write_text("")
    assert stage.close({})["file"].tolist() == ["models/a.json"]


def test_a_later_stage_reads_and_the_read_is_recorded(small_outputs: Path) -> None:
    first_stage()
    later = open_stage("toy", "small", "02_use")
    path = later.input("01_make", "scores.csv")
    later.close({})
    inputs = json.loads((later.folder / "manifest.json").read_text())["inputs"]
    assert inputs == {"01_make/scores.csv": hashlib.sha256(path.read_bytes()).hexdigest()}


def test_an_incomplete_stage_cannot_be_read(small_outputs: Path) -> None:
    first_stage()
    first_stage(close=False)  # begun again, not finished: the table is there, the manifest is not
    with pytest.raises(TouchstoneError, match="make toy SCALE=small STAGE=01_make"):
        open_stage("toy", "small", "02_use").input("01_make", "scores.csv")


def test_a_missing_or_changed_file_names_the_command(small_outputs: Path) -> None:
    first = first_stage()
    later = open_stage("toy", "small", "02_use")
    with pytest.raises(
        TouchstoneError, match="no file 'other.csv'.*make toy SCALE=small STAGE=01_make"
    ):
        later.input("01_make", "other.csv")
    (first.folder / "scores.csv").write_text("method,mass_accuracy\nLIME,1\n")
    with pytest.raises(
        TouchstoneError, match="scores.csv has changed since 01_make wrote it; run `make toy"
    ):
        later.input("01_make", "scores.csv")


def test_a_file_is_noted_where_it_is_there(small_outputs: Path) -> None:
    later = open_stage("toy", "small", "02_use")
    later.note("01_make", "scores.csv")
    assert later.inputs == {}, "no stage yet"
    first = first_stage()
    later.note("01_make", "scores.parquet")
    assert later.inputs == {}, "no such file"
    later.note("01_make", "scores.csv")
    assert list(later.inputs) == ["01_make/scores.csv"]
    (first.folder / "scores.csv").write_text("other\n")
    with pytest.raises(TouchstoneError, match="has changed since 01_make wrote it"):
        later.note("01_make", "scores.csv")
    (first.folder / "scores.csv").unlink()
    later.note("01_make", "scores.csv")


def test_only_earlier_stages_can_be_read(small_outputs: Path) -> None:
    with pytest.raises(TouchstoneError, match="earlier stages only"):
        open_stage("toy", "small", "02_use").input("02_use", "scores.csv")
    with pytest.raises(TouchstoneError, match="earlier stages only"):
        open_stage("toy", "small", "appendix_x").input("appendix_x", "scores.csv")
    stage = open_stage("toy", "small", "02_use")
    with pytest.raises(TouchstoneError, match="appendix_x has not been completed"):
        stage.input("appendix_x", "scores.csv")  # an appendix may stand before a stage


def test_a_file_from_outside_is_recorded_without_the_machine_s_path(
    small_outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path))
    (tmp_path / "mine.parquet").write_bytes(b"abc")
    stage = open_stage("toy", "small", "02_use")
    assert stage.external(tmp_path / "mine.parquet").read_bytes() == b"abc"
    stage.external("pyproject.toml")
    assert set(stage.externals) == {"$TOUCHSTONE_DATA/mine.parquet", "pyproject.toml"}
    with pytest.raises(TouchstoneError, match="no file .*nothing.csv; correct the parameter"):
        stage.external("nothing.csv")


def test_what_is_no_longer_made_disappears_and_models_stay(small_outputs: Path) -> None:
    stage = open_stage("toy", "small", "01_make")
    stage.table("old", FRAME)
    stage.path("models/a.json").write_text("{}")
    stage.close({})
    first_stage(close=False)  # a run that breaks off in between changes nothing about that
    stage = first_stage()
    assert {p.name for p in stage.folder.iterdir()} == {
        "scores.csv",
        "models",
        "manifest.json",
        "run.json",
        ".lock",
    }
    assert (stage.folder / "models" / "a.json").is_file()


def test_half_written_files_of_a_killed_run_are_swept(small_outputs: Path) -> None:
    stage = first_stage()
    (stage.folder / ".scores.csv.99999999.part").write_text("half")
    just_now = stage.folder / f".unit.csv.{os.getpid()}.part"
    just_now.write_text("half")
    open_stage("toy", "small", "01_make")
    assert list(stage.folder.glob(".*.part")) == [just_now], "a process may make a unit beside it"


def test_the_same_figure_is_the_same_file(small_outputs: Path) -> None:
    stage = open_stage("toy", "small", "05_figures")
    seen = []
    for _ in range(2):
        figure = Figure()
        figure.subplots().plot([1, 2])
        stage.figure("line", figure, formats=("png", "pdf", "svg"))
        kinds = ("png", "pdf", "svg")
        seen.append([(stage.folder / f"line.{kind}").read_bytes() for kind in kinds])
    assert seen[0][:2] == seen[1][:2] and b"<svg" in seen[0][2]
    assert seen[0][0].startswith(b"\x89PNG") and seen[0][1].startswith(b"%PDF")


def test_a_stage_is_open_in_one_process_only(small_outputs: Path) -> None:
    first_stage(close=False)
    code = (
        "from filelock import FileLock, Timeout\nimport sys\n"
        "try:\n    FileLock(sys.argv[1], timeout=0).acquire()\nexcept Timeout:\n    print('held')"
    )
    lock = small_outputs / "toy" / "small" / "01_make" / ".lock"
    ask = [sys.executable, "-c", code, str(lock)]
    assert (
        subprocess.run(ask, capture_output=True, text=True, check=True, cwd=ROOT).stdout == "held\n"
    )
    first_stage()
    assert subprocess.run(ask, capture_output=True, text=True, check=True, cwd=ROOT).stdout == ""


def test_a_real_notebook_must_close_with_all_its_parameters(
    small_outputs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    notebook = tmp_path / "notebooks" / "toy" / "01_make.py"
    notebook.parent.mkdir(parents=True)
    notebook.write_text('# %% tags=["parameters"]\nseed = 0  # seed\nscale = "small"  # scale\n')
    monkeypatch.setattr("lib.core.paths.ROOT", tmp_path)
    stage = open_stage("toy", "small", "01_make")
    with pytest.raises(TouchstoneError, match="without its parameters scale"):
        stage.close({"seed": 1})
    stage.close({"seed": 1, "scale": "small", "frame": FRAME})  # as globals() would hand it over
    assert json.loads((stage.folder / "manifest.json").read_text())["parameters"] == {
        "seed": 1,
        "scale": "small",
    }


@pytest.mark.parametrize("scale, practice", [("small", True), ("lesson", True), ("cpu", False)])
def test_small_and_lesson_decide_nothing(scale: str, practice: bool, small_outputs: Path) -> None:
    assert open_stage("toy", scale, "01_make").is_practice is practice
