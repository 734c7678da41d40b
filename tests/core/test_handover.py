"""A stage starts alone from what is committed; what cannot is told what has to be trained."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pandas as pd
import pytest

from lib.core import handover
from lib.core.errors import TouchstoneError
from lib.core.files import load_parquet
from lib.core.handover import PACKED, pack, prepare_lesson, prepare_stage
from lib.core.paths import reference_dir
from lib.core.runner import plan_jobs
from lib.core.stage import open_stage


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages that would have been run; none is."""
    stages: list[str] = []
    monkeypatch.setattr(handover, "run_job", lambda job, label: stages.append(job.stage))
    return stages


def test_stage_05_starts_from_committed_tables(small_outputs: Path, ran: list[str]) -> None:
    read = ("04_metrics", "appendix_what_models_use")
    taken = [f"{name}: from outputs/reference/geco/small" for name in read]
    assert list(prepare_stage("geco", "05")) == taken
    stage = open_stage("geco", "small", "05_figures")
    table = stage.input("04_metrics", "figure.csv")
    assert (
        table.read_bytes()
        == (reference_dir("geco", "small") / "04_metrics/figure.csv").read_bytes()
    )
    assert list(prepare_stage("geco", "05_figures")) == [f"{name}: there already" for name in read]
    assert not ran


# At scale small no line is cut, and no model is of the check.
EMPTY = {"03_attribution/whole.parquet", "03_attribution/balanced.parquet"}


@pytest.mark.parametrize("study", PACKED)
def test_stage_04_starts_from_packed_files(study: str, small_outputs: Path, ran: list[str]) -> None:
    lines = list(prepare_stage(study, PACKED[study]))
    assert lines[0] == "01_data_generation: is run now; it trains nothing"
    assert ran == ["01_data_generation"] and all("from outputs/ref" in line for line in lines[1:])
    stage = open_stage(study, "small", PACKED[study])
    inputs = json.loads((reference_dir(study, "small") / stage.stage / "manifest.json").read_text())
    for name in inputs["inputs"]:
        earlier, _, file = name.partition("/")
        if earlier != "01_data_generation":
            path = stage.input(earlier, file)
            if path.suffix == ".parquet":
                assert load_parquet(path).empty == (name in EMPTY)


def test_who_needs_models_is_told_what_to_run(small_outputs: Path, ran: list[str]) -> None:
    with pytest.raises(TouchstoneError) as error:
        list(prepare_stage("geco", "03"))
    said = str(error.value)
    assert "files of 02_training that are not committed (models/" in said
    assert "02_training (about " in said and "`touchstone run geco --stage 02_training`" in said
    assert "`touchstone start geco 03 --scale lesson`" in said
    assert not ran and not (small_outputs / "geco" / "small" / "01_data_generation").exists()
    with pytest.raises(TouchstoneError, match="02_training .*, 03_attribution .*minute"):
        list(prepare_stage("assay", "04"))


def test_a_stage_that_was_filled_in_does_not_pass_for_a_whole_one(
    small_outputs: Path, ran: list[str]
) -> None:
    list(prepare_stage("geco", "04"))
    with pytest.raises(TouchstoneError, match="files of 02_training that are not committed"):
        list(prepare_stage("geco", "03"))


def test_a_lesson_makes_the_stages_that_are_read_and_no_other(
    small_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(handover, "run_jobs", lambda jobs, stages: asked.append(list(stages)))
    assert prepare_lesson("geco", "03") == "03_attribution"
    assert prepare_lesson("geco", "05") == "05_figures"
    before = ["01_data_generation", "02_training", "03_attribution", "04_metrics"]
    assert asked == [before[:2], [*before, "appendix_what_models_use"]]
    prepare_lesson("geco", "01")  # reads nothing
    assert len(asked) == 2
    with pytest.raises(TouchstoneError, match="there is no stage '4'"):
        prepare_lesson("geco", "4")


def test_a_misspelt_study_or_stage_is_named() -> None:
    with pytest.raises(TouchstoneError, match="there is no study 'geko'; did you mean 'geco'"):
        list(prepare_stage("geko", "04"))
    with pytest.raises(TouchstoneError, match="there is no stage '04_metric'; did you mean '04_m"):
        list(prepare_stage("geco", "04_metric"))


def test_what_is_packed_comes_back_byte_by_byte(
    tmp_path: Path, small_outputs: Path, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "reference_dir", lambda study, scale: tmp_path / study / scale)
    monkeypatch.setattr(handover, "_PIECE", 1000)
    content = random.Random(0).randbytes(2500)  # nothing to compress: three pieces
    run, kept = tmp_path / "run", tmp_path / "geco" / "small"
    for job in plan_jobs("geco", "small"):
        stage = {"inputs": {}, "files": {}, "parameters": {}, "externals": {}}
        if job.stage == "03_attribution":
            stage["files"] = {"explanations.bin": {}, "overview.csv": {}}
        if job.stage == PACKED["geco"]:
            stage["inputs"] = {
                f"03_attribution/{n}": "" for n in ("explanations.bin", "overview.csv")
            }
        for folder in (run, kept):
            (folder / job.stage).mkdir(parents=True)
            (folder / job.stage / "manifest.json").write_text(json.dumps(stage))
        (run / job.stage / "run.json").write_text('{"seconds": 60.0}')
    (run / "03_attribution" / "explanations.bin").write_bytes(content)
    pd.DataFrame({"n": [1]}).to_csv(kept / "03_attribution" / "overview.csv", index=False)
    assert len(pack("geco", run)) == 3 == len(pack("geco", run)), "tables are not packed"
    list(prepare_stage("geco", PACKED["geco"]))
    back = small_outputs / "geco" / "small" / "03_attribution"
    assert (back / "explanations.bin").read_bytes() == content
    (run / "05_figures" / "manifest.json").unlink()
    with pytest.raises(TouchstoneError, match="05_figures is not complete in"):
        pack("geco", run)
