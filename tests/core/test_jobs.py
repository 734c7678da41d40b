"""Units in several processes: one computes each, a dead worker's is made again, roots merge."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lib.core import jobs as module
from lib.core.errors import TouchstoneError
from lib.core.jobs import Job, batches, job_named, merge, run_all
from lib.core.stage import Stage
from lib.core.units import Units

PLACE = ("toy", "small", "02_use")


def make(folder: Path, name: str, values: Mapping[str, Any]) -> pd.DataFrame:
    """One unit: notes that it was made; the first that is told to dies on the way."""
    made = folder / f"{name}.made"
    with made.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if name in values["fatal"] and made.read_text().count("\n") <= values["deaths"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return pd.DataFrame({"name": [name], "x": [len(name) / 3]})


def listing(stage: Stage, values: Mapping[str, Any]) -> list[Job]:
    store = Units(stage.study, stage.scale, stage.stage)
    return [
        Job(
            f"02_use/{name}",
            "02_use",
            ("01_make",),
            float(seconds),
            1.0,
            store,
            partial(store.finished, name, "k", partial(make, stage.folder, name, values)),
        )
        for name, seconds in values["units"].items()
    ]


def values(**more: Any) -> dict[str, Any]:
    return {"units": {"short": 1, "longest": 3, "longer": 2}, "fatal": [], "deaths": 1} | more


def made(root: Path) -> dict[str, int]:
    """How often each unit was begun."""
    folder = root.joinpath(*PLACE)
    return {path.stem: path.read_text().count("\n") for path in sorted(folder.glob("*.made"))}


def kept(root: Path) -> dict[str, bytes]:
    folder = root.joinpath(*PLACE, "units")
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.csv"))}


ONCE = {"longer": 1, "longest": 1, "short": 1}


@pytest.mark.slow
def test_one_process_and_two_keep_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in (1, 2):
        monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / str(n)))
        assert run_all(listing, PLACE, values(), n) == 0 and made(tmp_path / str(n)) == ONCE
    assert kept(tmp_path / "1") == kept(tmp_path / "2") and len(kept(tmp_path / "1")) == 3


@pytest.mark.slow
def test_a_killed_worker_s_unit_is_made_again_and_a_claimed_one_is_left(
    small_outputs: Path,
) -> None:
    with Units(*PLACE).claim("longest"):
        assert run_all(listing, PLACE, values(fatal=["longer"]), 1) == 1
    assert made(small_outputs) == {"longer": 2, "short": 1} and len(kept(small_outputs)) == 2


@pytest.mark.slow
def test_a_unit_that_kills_its_workers_is_named(
    small_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_DEATHS", 1)
    only = values(units={"short": 1}, fatal=["short"], deaths=99)
    with pytest.raises(TouchstoneError, match="made 02_use/short died 1 times.*fewer jobs"):
        run_all(listing, PLACE, only, 1)


def test_the_longest_comes_first(small_outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Pool:
        def __init__(self, *_: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...
        def submit(self, work: object, *arguments: Any) -> str:
            asked.append(arguments[-1])
            return arguments[-1]

    monkeypatch.setattr(module, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(module, "_finished", lambda asked, left: left.clear() or [True])
    run_all(listing, PLACE, values(), 2)
    assert asked == ["02_use/longest", "02_use/longer", "02_use/short"]


def test_jobs_that_another_goes_on_from_are_left_to_it() -> None:
    store = Units(*PLACE)

    def job(name: str, seconds: float, *needs: str) -> Job:
        return Job(name, "02_use", ("01_make", *needs), seconds, 1.0, store, lambda: None, "m")

    jobs = [job("short", 3), job("a1", 2), job("a2", 2, "a1"), job("a", 1, "a2"), job("long", 4)]
    assert module._longest_first(jobs) == ["a", "long", "short"], "five seconds, four, three"
    found = batches(jobs, seconds=4)
    order = [key for batch in found.values() for key in (one.key for one in batch)]
    assert order == ["short", "a1", "a2", "a", "long"], "no batch goes on from a later one"


def test_a_claim_within_a_claim_is_granted(small_outputs: Path) -> None:
    store = Units(*PLACE)
    with store.claim("a"), store.claim("a", seconds=0):
        assert store.finished("a", "k", lambda: pd.DataFrame({"x": [1]}))["x"].tolist() == [1]


def test_an_unknown_unit_is_refused_with_the_nearest(small_outputs: Path) -> None:
    jobs = listing(Stage(*PLACE, small_outputs), values())
    assert job_named(jobs, "02_use/short").key == "02_use/short"
    with pytest.raises(TouchstoneError, match="no unit '02_use/shrt'; did you mean '02_use/short'"):
        job_named(jobs, "02_use/shrt")


def test_roots_merge_by_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"x": [1]})
    for root, names in (("a", "mn"), ("b", "no")):
        monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / root))
        for name in names:
            with Units(*PLACE).claim(name):
                Units(*PLACE).save(f"{name}/unit", "k", frame)
        weights = tmp_path.joinpath(root, *PLACE, "models", f"{root}.safetensors")
        weights.parent.mkdir()
        weights.write_bytes(b"weights")
        (weights.parents[1] / "table.csv").write_text(root)
    copied = ["toy/small/02_use/models/b.safetensors", "toy/small/02_use/units/o/unit.csv"]
    assert merge(tmp_path / "a", tmp_path / "b") == copied
    assert merge(tmp_path / "a", tmp_path / "b") == []
    assert Units(*PLACE).load("o/unit", "k") is not None
    assert tmp_path.joinpath("a", *PLACE, "table.csv").read_text() == "a", "no result is merged"
    Units(*PLACE).save("m/unit", "k", frame + 1)
    Units(*PLACE).save("l/unit", "k", frame)
    with pytest.raises(TouchstoneError, match="a/toy/.*m/unit.csv and .*b/toy/.* differ; remove"):
        merge(tmp_path / "a", tmp_path / "b")
    assert not tmp_path.joinpath("a", *PLACE, "units/l").exists(), "nothing is copied then"


def test_a_folder_that_is_no_output_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "geco").mkdir()
    with pytest.raises(TouchstoneError, match="holds no STUDY/SCALE/STAGE/units; name the output"):
        merge(tmp_path / "into", tmp_path / "geco")
    assert not (tmp_path / "into").exists()


def test_batches_hold_one_model_and_at_most_half_an_hour() -> None:
    store = Units("toy", "small", "02_use")

    def job(name: str, seconds: float, model: str) -> Job:
        return Job(f"02_use/{name}", "02_use", (), seconds, 1.0, store, lambda: None, model)

    jobs = [
        job("a", 1000, "D_A/C"),
        job("b", 700, "D_A/C"),
        job("c", 200, "D_A/C"),
        job("d", 5000, "D_S"),
        job("e", 1, "D_S"),
        job("f", 1, ""),
        job("g", 100, "D_A/C"),
    ]
    found = {name: [one.key[7:] for one in batch] for name, batch in batches(jobs).items()}
    assert found == {
        "D_A-C.1": ["a", "b"],
        "D_A-C.2": ["c", "g"],
        "D_S.1": ["d"],
        "D_S.2": ["e"],
        "f.1": ["f"],
    }
