"""The runner on a study of two notebooks: skips the unchanged, is never fooled by half a result."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from lib.core import runner
from lib.core.errors import TouchstoneError
from lib.core.files import save_json, sha256_of
from lib.core.paths import ROOT
from lib.core.runner import main, plan_jobs

pytestmark = pytest.mark.slow

HEADER = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---
"""
MAKE = (
    HEADER
    + """
# %%
import sys, time
import pandas as pd
from lib.core.stage import open_stage

# %% tags=["parameters"]
scale = "small"  # which parameters
seed = 0  # seed
rate = 0.5  # a number
wait = "never"  # where to stop and wait to be killed

# %%
def halt(where):
    if wait == where:
        (stage.folder / "waiting").touch()
        time.sleep(120)

stage = open_stage("toy", scale, "01_make")
halt("at the start")
_ = stage.table("numbers", pd.DataFrame({"x": [seed, rate]}))
halt("after a table")

# %%
if wait == "for a module":
    import lib.part
stage.close({"scale": scale, "seed": seed, "rate": rate, "wait": wait})

# %%
halt("after the manifest")
print("progress", file=sys.stderr)
"""
)
USE = (
    HEADER
    + """
# %%
import pandas as pd
from lib.core.stage import open_stage

# %% tags=["parameters"]
scale = "small"  # which parameters
methods = ["A", "B"]  # names
fail = False  # break

# %%
stage = open_stage("toy", scale, "02_use")
numbers = pd.read_csv(stage.input("01_make", "numbers.csv"))
_ = stage.table("sums", pd.DataFrame({"method": methods, "sum": numbers.x.sum()}))
stage.path("units/kept.txt").touch()

# %%
if fail:
    raise ValueError("the file x.csv, row 3, is broken")

# %%
stage.close({"scale": scale, "methods": methods, "fail": fail})
"""
)
SMALL = "scale: small\nseed: 0\nrate: 0.5\nwait: never\nmethods: [A, B]\nfail: false\n"


def toy(arguments: str = "", root: Path | None = None) -> int:
    return main([*arguments.split(), "toy", "--root", str(root or Path.cwd())])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study after one complete run; tests work on copies."""
    root = tmp_path_factory.mktemp("study")
    files = {
        "notebooks/toy/01_make.py": MAKE,
        "notebooks/toy/02_use.py": USE,
        "lib/part.py": "from .deep import b\n\na = b + 1  # one\n",
        "lib/deep.py": '"""Below."""\n\nb = 1\n',
        "lib/other.py": "c = 1\n",
        "params/toy/small.yaml": SMALL,
        "notebooks/toy/material/words.txt": "she\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        enter(patch, root)
        assert toy() == 0
    return root


def enter(patch: pytest.MonkeyPatch, root: Path) -> None:
    patch.chdir(root)
    patch.setenv("TOUCHSTONE_OUTPUTS", str(root / "outputs"))
    patch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def study(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(finished, tmp_path / "study")
    enter(monkeypatch, tmp_path / "study")
    return tmp_path / "study"


def folder(study: Path, stage: str) -> Path:
    return study / "outputs" / "toy" / "small" / stage


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def plan(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What a run would do, one phrase a stage."""
    capsys.readouterr()
    assert toy("plan") == 0
    return [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()]


UNCHANGED = ["unchanged, skip", "unchanged, skip"]


def test_a_complete_run_leaves_results_manifests_and_executed_notebooks(study: Path) -> None:
    for stage, table in (("01_make", "numbers"), ("02_use", "sums")):
        manifest = json.loads((folder(study, stage) / "manifest.json").read_text())
        assert manifest["files"][f"{table}.csv"]["sha256"] == sha256_of(
            folder(study, stage) / f"{table}.csv"
        )
        notebook = nbformat.read(folder(study, stage) / f"{stage}.ipynb", as_version=4)
        assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
        hidden = {p.name for p in folder(study, stage).rglob(".*")} - {".lock"}
        assert not hidden and not list(folder(study, stage).rglob("*.part"))
    assert manifest["inputs"] == {
        "01_make/numbers.csv": sha256_of(folder(study, "01_make") / "numbers.csv")
    }
    assert manifest["parameters"] == {"scale": "small", "methods": ["A", "B"], "fail": False}


def test_an_unchanged_study_is_skipped_in_no_time(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert toy() == 0
    said = capsys.readouterr().out
    assert said.count("unchanged, skipped") == 2 and "running" not in said
    assert "outputs/toy/small/{01_make,02_use}/*.ipynb  (2)" in said and "figures    none" in said
    os.utime(study / "notebooks" / "toy" / "01_make.py")
    assert plan(capsys) == UNCHANGED, "contents count, not times"


@pytest.mark.parametrize(
    "path, old, new, expected",
    [
        *(
            (
                f"lib/{path}",
                old,
                new,
                ["run: lib changed", "run: after 01_make, if its results change"],
            )
            for path, old, new in (("part.py", "+", "-"), ("deep.py", "1", "2"))
        ),
        ("lib/part.py", "# one", "# two", UNCHANGED),
        ("lib/deep.py", "Below", "Above", UNCHANGED),
        ("lib/other.py", "1", "2", UNCHANGED),  # nobody imports it
        (
            "notebooks/toy/material/words.txt",
            "she",
            "he",
            ["run: material changed", "run: material changed"],
        ),
        (
            "notebooks/toy/02_use.py",
            "# names",
            "# words",
            ["unchanged, skip", "run: notebook changed"],
        ),
        (
            "params/toy/small.yaml",
            "rate: 0.5",
            "rate: 0.25",
            [
                "run: parameters changed: rate (0.5 -> 0.25)",
                "run: after 01_make, if its results change",
            ],
        ),
        ("params/toy/small.yaml", "rate: 0.5\n", "", UNCHANGED),  # the default is the same
        (
            "outputs/toy/small/02_use/sums.csv",
            "A",
            "Z",
            ["unchanged, skip", "run: result changed: sums.csv"],
        ),
        *(
            (
                "outputs/toy/small/01_make/manifest.json",
                old,
                new,
                [f"run: {reason}", "run: after 01_make, if its results change"],
            )
            for old, new, reason in (
                ('"numpy": "', '"numpy": "0.', "versions changed: numpy"),
                ('"seed": 0', '"seed": false', "parameters changed: seed (false -> 0)"),
                ('"seed": 0', '"seed": 0.0', "parameters changed: seed (0.0 -> 0)"),
            )
        ),
        (
            "outputs/toy/small/01_make/numbers.csv",
            "0.5",
            "0.6",
            ["run: result changed: numbers.csv", "run: input changed: 01_make/numbers.csv"],
        ),
    ],
)
def test_what_changed_decides_what_runs(
    study: Path,
    capsys: pytest.CaptureFixture[str],
    path: str,
    old: str,
    new: str,
    expected: list[str],
) -> None:
    assert plan(capsys) == UNCHANGED
    change(study / path, old, new)
    assert plan(capsys) == expected


def test_a_strict_run_does_not_stand_on_published_units(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_STRICT", "1")
    assert plan(capsys) == UNCHANGED
    change(
        folder(study, "01_make") / "manifest.json",
        '"reused": {}',
        '"reused": {"made before versions were kept": 2}',
    )
    again = ["run: it reused published units", "run: after 01_make, if its results change"]
    assert plan(capsys) == again
    monkeypatch.setenv("TOUCHSTONE_STRICT", "0")
    assert plan(capsys) == UNCHANGED


def test_a_changed_parameter_reruns_its_stage_and_those_that_read_it(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(study / "params/toy/small.yaml", "rate: 0.5", "rate: 0.25")
    assert toy() == 0
    said = capsys.readouterr().out
    assert "01_make: running (parameters changed: rate (0.5 -> 0.25))" in said
    assert "02_use: running (input changed: 01_make/numbers.csv)" in said
    assert pd.read_csv(folder(study, "02_use") / "sums.csv")["sum"].tolist() == [0.25, 0.25]
    assert plan(capsys) == UNCHANGED


def test_a_parameter_of_the_command_line_stands_in_for_the_file(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert toy("-p rate 0.125") == 0
    assert pd.read_csv(folder(study, "02_use") / "sums.csv")["sum"].tolist() == [0.125, 0.125]
    capsys.readouterr()
    assert toy() == 0  # without it, which is said, for the result with it is lost
    assert "01_make: running (parameters changed: rate (0.125 -> 0.5))" in capsys.readouterr().out
    assert toy("-p rat 0.125") == 1 and "did you mean 'rate'?" in capsys.readouterr().err
    assert toy("-p rate 1e-3") == 1 and "write 1.0e-3" in capsys.readouterr().err
    assert toy("--only-method B") == 1 and "--only-method needs --stage" in capsys.readouterr().err


def test_two_stages_are_named(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert toy() == 0
    capsys.readouterr()
    assert toy("--stage 02 --stage 01_make --force") == 0
    said = capsys.readouterr().out
    assert "01_make: running (forced)" in said and "02_use: running (forced)" in said
    assert toy("--stage 02 --stage 03") == 1 and "no stage '03'" in capsys.readouterr().err


def test_one_stage_and_one_method_alone_by_force(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(study / "params/toy/small.yaml", "seed: 0", "seed: 1")
    assert toy("--stage 02 --only-method B --force") == 0
    said = capsys.readouterr().out
    stale = "(parameters changed: seed (0 -> 1)); it is used as it is"
    assert f"note: 01_make is not up to date {stale}" in said
    assert "02_use: running (forced)" in said and "01_make: running" not in said
    assert pd.read_csv(folder(study, "02_use") / "sums.csv").method.tolist() == ["B"]
    assert (folder(study, "02_use") / "units" / "kept.txt").is_file()


def test_the_old_door_forwards_and_names_the_new_one(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, status, said in (("plan toy", 0, UNCHANGED), ("plan tyo", 1, [])):
        monkeypatch.setattr(sys, "argv", ["lib.run", *words.split(), "--root", str(study)])
        with pytest.raises(SystemExit) as end:
            runpy.run_module("lib.run", run_name="__main__")
        seen = capsys.readouterr()
        assert end.value.code == status
        assert [line.split(maxsplit=1)[1] for line in seen.out.splitlines()] == said
        note, *errors = seen.err.splitlines()
        assert note == "note: `python -m lib.run` is now `python -m lib.core.runner`"
        assert len(errors) == status and all("did you mean 'toy'?" in line for line in errors)


@pytest.mark.parametrize(
    "old, new, says",
    [
        (
            "seed: 0",
            "sede: 0",
            "small.yaml: no notebook has a parameter 'sede'; did you mean 'seed'?",
        ),
        ("rate: 0.5", "rate: 1e-3", "rate is '1e-3', which YAML reads as text; write 1.0e-3"),
        ("scale: small", "scale: cpu", "scale is 'cpu', not the file's own name; write small"),
    ],
)
def test_a_wrong_parameter_file_is_refused_before_anything_runs(
    study: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    change(study / "params/toy/small.yaml", old, new)
    assert toy() == 1
    seen = capsys.readouterr()
    assert says in seen.err and seen.err.count("\n") == 1 and "running" not in seen.out


@pytest.mark.parametrize(
    "arguments, says",
    [
        ("plan tyo", "there is no study 'tyo'; did you mean 'toy'?"),
        ("toy --stage 02_sue", "there is no stage '02_sue'; did you mean '02_use'?"),
        ("toy --scale paper", "scales that have one: small"),
    ],
)
def test_a_wrong_command_is_refused_with_the_nearest_name(
    study: Path, capsys: pytest.CaptureFixture[str], arguments: str, says: str
) -> None:
    assert main([*arguments.split(), "--root", str(study)]) == 1
    assert says in capsys.readouterr().err


def test_what_does_not_fit_the_file_is_not_laid_at_its_door_alone() -> None:
    """The file is right: only together with a parameter of the command line it is not."""
    with pytest.raises(
        TouchstoneError, match=r"small\.yaml and the command line: trainings has no"
    ):
        plan_jobs("lm_saliency", "small", parameters={"trainings": {"LSTM": 2}})


def test_a_failing_notebook_is_kept_with_its_log_and_costs_nothing_else(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(study / "params/toy/small.yaml", "fail: false", "fail: true")
    before = {p: p.read_bytes() for p in folder(study, "01_make").rglob("*") if p.is_file()}
    executed = (folder(study, "02_use") / "02_use.ipynb").read_bytes()
    assert toy() == 1
    error = capsys.readouterr().err
    assert "02_use failed in cell 5: ValueError: the file x.csv, row 3, is broken" in error
    assert error.count("\n") <= 5 and "Traceback" not in error
    log = (folder(study, "02_use") / "failed.log").read_text()
    assert "raise ValueError" in log and "\x1b" not in log and "papermill" in log
    assert "failed" in (folder(study, "02_use") / "failed.ipynb").read_text()
    assert (folder(study, "02_use") / "02_use.ipynb").read_bytes() == executed, (
        "the last good one stays"
    )
    assert not (folder(study, "02_use") / "manifest.json").exists(), (
        "and nobody may read the results"
    )
    assert {p: p.read_bytes() for p in before} == before
    change(study / "params/toy/small.yaml", "fail: true", "fail: false")
    assert toy() == 0
    assert not list(folder(study, "02_use").glob("failed*"))


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("stage.close(", "dict(", "02_use.py ended without stage.close"),
        (
            "if fail:",
            "import os\nif os.kill(os.getpid(), 9):",
            "the machine most likely ran out of memory",
        ),
        (
            'methods, "fail"',
            'methods[:1], "fail"',
            "was given methods = ['A', 'B'] and closed with ['A']",
        ),
    ],
)
def test_a_notebook_that_breaks_the_rules_of_the_hand_over_fails(
    study: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    change(study / "notebooks/toy/02_use.py", old, new)
    assert toy() == 1
    assert says in capsys.readouterr().err
    assert not (folder(study, "02_use") / "manifest.json").exists()


@pytest.mark.parametrize("where", ["at the start", "after a table", "after the manifest"])
def test_a_killed_run_leaves_nothing_to_read_and_the_next_one_repairs_it(
    study: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    change(study / "params/toy/small.yaml", "rate: 0.5", "rate: 0.75")
    change(study / "params/toy/small.yaml", "wait: never", f"wait: {where}")
    runner = subprocess.Popen(
        [sys.executable, "-m", "lib.core.runner", "toy", "--root", str(study)],
        cwd=study,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    give_up = time.monotonic() + 120
    while not (folder(study, "01_make") / "waiting").exists():
        assert runner.poll() is None and time.monotonic() < give_up
        time.sleep(0.05)
    assert toy() == 1, "two runs at once would write into one folder"
    assert "another run is writing" in capsys.readouterr().err
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    assert not (folder(study, "01_make") / "manifest.json").exists()
    assert toy("--stage 02_use --force") == 1
    assert "01_make has not been completed at scale small; run `make toy" in capsys.readouterr().err
    change(study / "params/toy/small.yaml", f"wait: {where}", "wait: never")
    (folder(study, "01_make") / "waiting").unlink()
    assert toy() == 0
    assert pd.read_csv(folder(study, "02_use") / "sums.csv")["sum"].tolist() == [0.75, 0.75]
    assert {p.name for p in folder(study, "01_make").iterdir()} == {
        "01_make.ipynb",
        "manifest.json",
        "numbers.csv",
        "run.json",
        ".lock",
    }
    assert plan(capsys) == UNCHANGED


def test_a_kill_between_the_two_last_renames_is_seen(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The executed notebook has its final name, the manifest has not: the stage is not complete."""
    here = folder(study, "01_make")
    os.replace(here / "manifest.json", here / "manifest.json.part")
    assert plan(capsys)[0] == "run: not complete yet"
    assert toy() == 0 and plan(capsys) == UNCHANGED
    assert not (here / "manifest.json.part").exists()


def test_a_kill_at_the_last_write_leaves_no_second_manifest(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage is complete or it is not: with the manifest nothing is left to do."""

    def save_and_die(content: object, path: Path) -> None:
        save_json(content, path)
        raise SystemExit("killed")

    change(study / "params/toy/small.yaml", "rate: 0.5", "rate: 0.75")
    with monkeypatch.context() as killed:
        killed.setattr("lib.core.runner.save_json", save_and_die)
        with pytest.raises(SystemExit):
            toy("--stage 01")
    assert not (folder(study, "01_make") / "manifest.json").exists()
    assert toy() == 0 and plan(capsys) == UNCHANGED
    assert not (folder(study, "01_make") / "manifest.json.part").exists()


@pytest.mark.parametrize("content", [b'{"made_by": {', b"[]", b"{}", b"\xff"])
def test_a_damaged_manifest_is_named_and_repaired_by_a_rerun(
    study: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (folder(study, "01_make") / "manifest.json").write_bytes(content)
    assert plan(capsys)[0] == "run: manifest.json is damaged"
    if content == b"[]":
        assert toy() == 0 and plan(capsys) == UNCHANGED


def test_a_stage_refuses_to_read_behind_a_damaged_manifest(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder(study, "01_make") / "manifest.json").write_text("[")
    assert toy("--stage 02 --force") == 1
    assert "01_make/manifest.json is damaged; run `make toy" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, status, says",
    [
        (KeyboardInterrupt(), 130, "interrupted; finished stages and units are safe: run the same"),
        (OSError(28, "No space left on device"), 1, "the disk is full: make room; finished stages"),
        (OSError(27, "File too large"), 1, "raise the limit"),
        (OSError(30, "Read-only file system"), 1, "or set TOUCHSTONE_OUTPUTS to another"),
    ],
)
def test_what_the_machine_does_to_a_run_has_a_remedy(
    study: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    says: str,
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(runner, "run_jobs", broken)
    assert toy() == status
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_a_folder_that_cannot_be_written_to_is_named(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (study / "file").write_text("")
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(study / "file"))
    assert toy() == 1
    assert "set TOUCHSTONE_OUTPUTS to another folder" in capsys.readouterr().err


def test_the_history_of_runs_is_no_input(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (study / "notebooks/toy/material/runs.csv").write_text("run,what\n1,first\n")
    assert toy("plan") == 0
    assert capsys.readouterr().out.count("unchanged") == 2
    (study / "notebooks/toy/material/more.csv").write_text("x\n")
    assert toy("plan") == 0
    assert "unchanged" not in capsys.readouterr().out.splitlines()[0]
