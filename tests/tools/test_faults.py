"""The kill campaign sees what a kill may break: each fault that it counts is made here by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import faults
import nbformat
import numpy as np
import pandas as pd
import pytest
from faults_files import (
    READERS,
    content,
    differing,
    fault_of,
    half_written,
    left_over,
    phase_of,
    results,
    units,
)
from PIL import Image
from safetensors.numpy import save_file

from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT
from lib.core.runner import plan_jobs

STAGE = "02_training"
FRAME = pd.DataFrame({"x": range(200)})


def notebook(time: str = "now", printed: str = "0.5\n") -> str:
    cell = nbformat.v4.new_code_cell("print(x)", metadata={"execution": {"started": time}})
    cell.outputs = [nbformat.v4.new_output("stream", text=printed)]
    made = nbformat.v4.new_notebook(cells=[cell], metadata={"papermill": {"start_time": time}})
    return nbformat.writes(made)


def write_all(folder: Path) -> None:
    """A small file of each kind that has a reader, and a unit."""
    for stage in ("01_data_generation", STAGE):
        (folder / stage / "units" / ".claims").mkdir(parents=True)
        (folder / stage / "units" / ".claims" / "a.lock").touch()
        (folder / stage / ".lock").touch()
    here = folder / STAGE
    FRAME.to_csv(here / "a.csv", index=False, lineterminator="\n")
    FRAME.to_csv(here / "a.tsv", index=False, sep="\t", lineterminator="\n")
    FRAME.to_parquet(here / "a.parquet")
    (here / "a.json").write_text(json.dumps({"a": [1, 2]}))
    (here / "a.jsonl").write_text('{"a": 1}\n{"a": 200}\n')
    (here / "a.md").write_text("a card \u00e9")
    (here / "a.svg").write_text("<svg><path/></svg>")
    (here / "a.log").write_text("a line \u00e9")
    (here / "a.txt").write_text("a line \u00e9")
    (here / "a.ipynb").write_text(notebook())
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (9, 9), np.uint8)).save(
        here / "a.png"
    )
    np.savez(here / "a.npz", x=np.arange(9.0))
    save_file({"x": np.arange(9.0)}, here / "a.safetensors")
    (here / "units" / "u.csv").write_text('# key=0\n# sha256=1\n# {"a": ["b,c"]}\nx,y\n1,2\n')
    (here / "run.json").write_text(json.dumps({"started": "1", "seconds": 2.0, "cores": 2}))
    (folder / "run.log").write_text("done in 7 s\n")


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    """The study's folder of a resumed and of an undisturbed run, equal."""
    for name in ("resumed", "undisturbed"):
        write_all(tmp_path / name)
    return tmp_path / "resumed", tmp_path / "undisturbed"


def test_the_plan_has_200_kills_over_studies_stages_and_victims() -> None:
    kills = faults.plan()
    assert kills == faults.plan() and [k.kill for k in kills] == list(range(1, 201))
    for scale, n in (("tiny", 40), ("small", 10)):
        of_scale = [kill for kill in kills if kill.scale == scale]
        assert set(Counter(kill.study for kill in of_scale).values()) == {n}
        assert all(
            {k.stage[:2] for k in of_scale if k.study == study} == {"01", "02", "03", "04"}
            for study in {kill.study for kill in of_scale}
        )
        assert {kill.killed for kill in of_scale[:40]} == {"tree", "runner", "kernel"}
    assert len({tuple(kill[1:]) for kill in kills[:16]}) > 8


@pytest.mark.parametrize("study", faults.studies())
def test_each_study_has_tiny_parameters_that_the_runner_takes(
    study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / "outputs"))
    (tmp_path / "encoder").mkdir()  # so that none is made
    place = faults.Place(tmp_path)
    place.make()
    small, tiny = (plan_jobs(study, scale, place.root) for scale in ("small", "tiny"))
    assert [job.stage for job in small] == [job.stage for job in tiny]
    assert tiny[1].all != small[1].all and tiny[1].all["scale"] == "tiny"
    has_encoder = study != "lm_saliency"
    assert ("encoder" in place.parameters(study, "tiny")) == has_encoder
    assert place.parameters(study, "small") == {}


@pytest.mark.parametrize("kind", sorted(READERS))
def test_a_file_that_was_cut_is_refused_and_a_whole_one_is_not(
    both: tuple[Path, Path], kind: str
) -> None:
    path = both[0] / STAGE / f"a{kind}"
    assert fault_of(path) == ""
    whole = path.read_bytes()
    at = whole.index("\u00e9".encode()) + 1 if kind in (".md", ".log", ".txt") else len(whole) // 2
    path.write_bytes(whole[:at])
    assert fault_of(path)
    assert half_written(*both)[0].startswith(f"{STAGE}/a{kind} (")


def test_a_kind_of_file_without_a_reader_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"1")
    assert fault_of(tmp_path / "a.bin") == "no reader for .bin"


def test_a_table_cut_at_the_end_of_a_line_is_known_by_the_undisturbed_one(
    both: tuple[Path, Path],
) -> None:
    for name in ("a.csv", "units/u.csv"):
        path = both[0] / STAGE / name
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
        assert fault_of(path) == ""
    expected = [f"{STAGE}/a.csv (differs)", f"{STAGE}/units/u.csv (differs)"]
    assert half_written(*both) == expected


def test_what_a_kill_may_leave_is_not_half_written(both: tuple[Path, Path]) -> None:
    here = both[0] / STAGE
    (here / "a.csv").unlink()  # not written yet
    for name in (".b.csv.17.part", "manifest.json.part", ".executed.part.ipynb"):
        (here / name).write_text("{")
    (here / "failed.log").write_text("DeadKernelError")
    (here / "run.json").write_text(json.dumps({"started": "3", "seconds": 4.0, "cores": 2}))
    assert half_written(*both) == []
    assert left_over(both[0]) == [
        f"{STAGE}/{name}"
        for name in (".b.csv.17.part", ".executed.part.ipynb", "manifest.json.part")
    ]


def test_equal_runs_differ_in_times_only(both: tuple[Path, Path]) -> None:
    here = both[0] / STAGE
    (here / "a.ipynb").write_text(notebook("later"))
    (here / "run.json").write_text(json.dumps({"started": "3", "seconds": 4.0, "cores": 2}))
    (both[0] / "run.log").write_text("done in 9 s\n")
    assert differing(*both, STAGE) == []
    (here / "a.ipynb").write_text(notebook(printed="0.6\n"))
    assert differing(*both, STAGE) == [f"{STAGE}/a.ipynb"]
    assert content(here / "run.json") == {"cores": 2}


@pytest.mark.parametrize("side", [0, 1], ids=["resumed", "undisturbed"])
def test_a_differing_or_missing_file_is_named(both: tuple[Path, Path], side: int) -> None:
    with (both[side] / STAGE / "a.parquet").open("ab") as file:
        file.write(b"1")
    (both[side] / "01_data_generation" / "more.csv").touch()
    assert differing(*both, STAGE) == ["01_data_generation/more.csv", f"{STAGE}/a.parquet"]
    assert differing(*both, "01_data_generation") == ["01_data_generation/more.csv"]


def test_forecasts_are_not_compared_and_what_stands_beside_them_is(tmp_path: Path) -> None:
    def printed(text: str) -> object:
        (tmp_path / "a.ipynb").write_text(notebook(printed=text))
        return content(tmp_path / "a.ipynb")

    assert printed("3 models\nA C: about 0.3 minutes each, 1 seeds\n") == printed("3 models\n")
    assert printed("A C: about 0.3 minutes each\n2 models\n") != printed("3 models\n")
    table = "method seconds\n  LIME    0.2\n \n1 minutes in all\n"
    assert printed(f"{table}9 explanations\n") == printed("9 explanations\n")
    assert printed(f"{table}9 explanations\n") != printed("8 explanations\n")
    assert printed("it took 3 minutes\n") != printed("it took 4 minutes\n")


def test_a_unit_that_is_written_again_is_noticed(both: tuple[Path, Path]) -> None:
    before = units(both[0])
    path = both[0] / STAGE / "units" / "u.csv"
    assert list(before) == [f"{STAGE}/units/u.csv"]
    same, part = path.read_bytes(), path.with_name(".u.csv.1.part")
    part.write_bytes(same)
    assert units(both[0]) == before, "a part is no unit"
    part.rename(path)
    assert units(both[0]) != before


def test_phases_are_told_by_marks_and_files(tmp_path: Path) -> None:
    assert phase_of(tmp_path, {}) == "starting"
    assert phase_of(tmp_path, {"kernel": 1.0}) == "importing"
    opened = {"kernel": 1.0, "opened": 2.0}
    (tmp_path / ".source.part.ipynb").touch()
    assert phase_of(tmp_path, opened) == "computing"
    (tmp_path / "manifest.json.part").touch()
    assert phase_of(tmp_path, opened) == "closing"
    (tmp_path / "units").mkdir()
    (tmp_path / "units" / ".u.csv.17.part").touch()
    assert phase_of(tmp_path, opened) == "writing"
    assert results(tmp_path) == {"u.csv", "manifest.json"}


def played(
    at_kill: Callable[[Path], object], at_end: Callable[[Path], object], status: int = 0
) -> type:
    """A run that does with the study's folder what it is told, in place of processes."""

    class Played:
        def __init__(self, place, study: str, scale: str, stage: str, outputs: Path) -> None:
            self.folder, self.log = outputs / study / scale / stage, outputs / "log"
            self.marks = {"kernel": 1.0, "opened": 2.0, "killed": 3.0}

        def kill(self, victim: str, is_time: object) -> bool:
            if not self.folder.exists():
                write_all(self.folder.parent)
            at_kill(self.folder)
            return True

        def orphans(self, victim: str) -> list[str]:
            return ["kernel"] if victim == "runner" else []

        def wait(self) -> int:
            at_end(self.folder)
            return status

        def is_without_kernel(self) -> bool:
            return False

    return Played


def nothing(folder: Path) -> None:
    """No fault."""


def write_unit_again(folder: Path) -> None:
    part = folder / "units" / ".u.csv.1.part"
    part.write_bytes((folder / "units" / "u.csv").read_bytes())
    part.rename(folder / "units" / "u.csv")


@pytest.mark.parametrize(
    "at_kill, at_end, status, victim, why",
    [
        (nothing, nothing, 0, "tree", ""),
        (lambda f: (f / "a.json").write_text("{"), nothing, 0, "tree", "half_written: "),
        (nothing, write_unit_again, 0, "tree", f"lost: {STAGE}/units/u.csv"),
        (nothing, lambda f: (f / "units" / "v.csv").write_text("x\n1\n"), 0, "tree", "twice: "),
        (nothing, lambda f: (f / ".b.csv.1.part").touch(), 0, "tree", "left_over: "),
        (nothing, nothing, 0, "runner", "orphans: kernel"),
        (nothing, lambda f: (f / "a.csv").write_text("x\n1\n"), 0, "kernel", "differing: "),
        (nothing, nothing, 3, "tree", "the resumed run ended with 3"),
    ],
)
def test_each_fault_makes_the_verdict_bad_and_keeps_the_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_kill: Callable[[Path], object],
    at_end: Callable[[Path], object],
    status: int,
    victim: str,
    why: str,
) -> None:
    kill = faults.Kill(7, "geco", "tiny", STAGE, victim, "open")
    place = faults.Place(tmp_path)
    write_all(place.undisturbed / "geco" / "tiny")
    monkeypatch.setattr(faults, "Run", played(at_kill, at_end, status))
    monkeypatch.setattr(faults, "measure", lambda place, kill: faults.Marks(2.0, 4.0, 12))
    monkeypatch.setattr(faults, "strike", stand_in)
    row = faults.perform(place, kill)
    assert row.why.startswith(why) and row.verdict == ("bad" if why else "survived")
    assert (tmp_path / "kill007").exists() == bool(why)
    assert row.units == 1 and (row.second, row.phase) == (3.0, "computing")
    named = why.partition(":")[0]
    if named in faults.VERDICTS:
        assert getattr(row, named) >= 1


def test_a_run_whose_kernel_did_not_come_up_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    class Busy(played(nothing, nothing)):
        def wait(self) -> int:
            begun.append(self)
            return int(len(begun) < 3)

        def is_without_kernel(self) -> bool:
            return True

    monkeypatch.setattr(faults, "Run", Busy)
    kill = faults.Kill(7, "geco", "tiny", STAGE, "tree", "open")
    assert faults.finish(faults.Place(tmp_path), kill, tmp_path) == (begun[2], 0)


def test_a_stage_that_fails_undisturbed_leaves_out_its_kills_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def perform(place: faults.Place, kill: faults.Kill) -> faults.Row:
        if kill.study == "geco":
            raise TouchstoneError("geco fails undisturbed")
        seen = dict.fromkeys(faults.VERDICTS, 0) | {"second": 1.0, "phase": "", "units": 0}
        return faults.Row(*kill, **seen, verdict="survived", why="", code="")

    monkeypatch.setattr(faults, "perform", perform)
    monkeypatch.setattr(faults.Place, "make", lambda place: None)
    table = tmp_path / "kills.csv"
    for arguments, status, n_rows in (
        (["4"], 1, 3),
        (["1"], 1, 3),
        (["1", "--study", "cebab"], 0, 4),
        (["--summary"], 0, 4),
    ):
        monkeypatch.setattr("sys.argv", ["faults.py", *arguments, "--table", str(table)])
        assert faults.main() == status and len(faults.read_table(table)) == n_rows
    assert "geco fails undisturbed" in capsys.readouterr().out


def test_a_run_that_ends_before_its_moment_is_begun_anew_by_its_own_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    class Faster(played(nothing, nothing)):
        def kill(self, victim: str, is_time: object) -> bool:
            self.marks = {"opened": 1.0, "ended": 3.0}
            return len(asked) == 2

    kill = faults.Kill(7, "geco", "tiny", STAGE, "tree", "open")
    place = faults.Place(tmp_path)
    write_all(place.undisturbed / "geco" / "tiny")
    for appendix in sorted((ROOT / "notebooks" / "geco").glob("appendix_*.py")):
        (place.undisturbed / "geco" / "tiny" / appendix.stem).mkdir()
    monkeypatch.setattr(faults, "Run", Faster)
    monkeypatch.setattr(faults, "moment", lambda kill, marks, attempt: asked.append(marks))
    faults.strike(place, kill, faults.Marks(20.0, 60.0, 9), tmp_path / "kill007")
    assert asked == [faults.Marks(20.0, 60.0, 9), faults.Marks(1.0, 3.0, 9)]
    copied = {path.name for path in (tmp_path / "kill007" / "geco" / "tiny").iterdir()}
    before = {"01_data_generation", "appendix_annotator", "appendix_released_ola"}
    assert copied == before, "the stage begins in an empty folder"
    monkeypatch.setattr(Faster, "kill", lambda run, victim, is_time: run.marks.clear())
    with pytest.raises(TouchstoneError, match="before its moment"):
        faults.strike(place, kill, faults.Marks(20.0, 60.0, 9), tmp_path / "kill007")


def test_a_kernel_that_did_not_come_up_is_known_by_the_log(tmp_path: Path) -> None:
    run = object.__new__(faults.Run)
    run.folder = tmp_path
    assert not run.is_without_kernel()
    for error, expected in (
        ("RuntimeError: Kernel died before replying", True),
        ("KeyError", False),
    ):
        (tmp_path / "failed.log").write_text(f"01_data_generation failed: {error}")
        assert run.is_without_kernel() == expected


def stand_in(place: faults.Place, kill: faults.Kill, marks: faults.Marks, outputs: Path):
    """`strike` without the copies of earlier stages, for `write_all` writes both."""
    run = faults.Run(place, kill.study, kill.scale, kill.stage, outputs)
    run.kill(kill.killed, None)
    return run


def test_moments_lie_in_the_run_and_differ_between_attempts() -> None:
    class Seen:
        def __init__(self, second: float, marks: dict[str, float], n: int = 0) -> None:
            self.second, self.marks, self.n = second, marks, n

        def results(self) -> set[str]:
            return set(map(str, range(self.n)))

    marks, kill = faults.Marks(6.0, 10.0, 5), faults.plan()[0]
    for aim in ("any", "open"):
        for attempt in range(20):
            is_time = faults.moment(kill._replace(aim=aim), marks, attempt)
            assert is_time(Seen(10.1, {"opened": 6.0}))
            assert not is_time(Seen(-0.1, {"opened": 0.0}))
            assert aim == "any" or not is_time(Seen(1e9, {}))
    starts = [
        next(n for n in range(7) if is_time(Seen(9.0, {"opened": 6.0, "written": 8.0}, n)))
        for is_time in (
            faults.moment(kill._replace(aim="writing"), marks, attempt) for attempt in range(40)
        )
    ]
    assert set(starts) == {1, 2, 3, 4, 5}


def test_the_table_grows_whole_and_in_order_and_says_what_is_missing(tmp_path: Path) -> None:
    path, kills = tmp_path / "kills.csv", faults.plan()
    for kill in (kills[1], kills[0]):
        zeros = dict.fromkeys(faults.VERDICTS, 0)
        about = {"second": 1.5, "phase": "writing", "units": 2, "code": "0a"}
        bad = kill == kills[0]
        row = faults.Row(
            *kill,
            **about,
            **zeros,
            verdict="bad" if bad else "survived",
            why="orphans: kernel" * bad,
        )
        faults.append(row, path)
    rows = faults.read_table(path)
    assert [row["kill"] for row in rows] == ["1", "2"]
    assert [p.name for p in tmp_path.iterdir()] == ["kills.csv"]
    said = faults.summary(rows)
    assert "tiny: 2 of 160 kills" in said and "small: 0 of 40 kills" in said
    assert "1 of 2 survived" in said and "kill 1, " in said and "orphans: kernel" in said


def test_the_committed_table_is_of_the_plan_and_all_was_survived() -> None:
    rows, kills = faults.read_table(faults.TABLE), {str(k.kill): k for k in faults.plan()}
    for row in rows:
        of_plan = tuple(map(str, kills[row["kill"]]))
        assert tuple(row[name] for name in faults.Kill._fields) == of_plan
        assert row["verdict"] == "survived" and {row[what] for what in faults.VERDICTS} == {"0"}
    assert rows and (ROOT / "tests" / "faults" / "kills.csv").is_file()
