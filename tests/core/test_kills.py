"""A process that only writes a stage, killed at random moments; the next one repairs it.

`make faults` kills real runs, most of which is imports; here every kill falls into the writing.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from faults_files import differing, half_written, left_over, units
from matplotlib.figure import Figure
from safetensors.numpy import save_file

from lib.core.files import atomic_path, save_parquet, write_atomic
from lib.core.stage import open_stage
from lib.core.units import Units

matplotlib.use("Agg")
pytestmark = pytest.mark.slow
N_KILLS = 12


def write_stage() -> None:
    """A stage with files of every kind and units with weights, as the notebooks write them."""
    stage = open_stage("toy", "small", "01_make")
    kept = Units("toy", "small", "01_make")
    for number in range(5):
        frame = pd.DataFrame({"x": np.random.default_rng(number).normal(size=2000)})
        stage.table(f"table{number}", frame)
        save_parquet(frame, stage.path(f"table{number}.parquet"))
        write_atomic(
            stage.path(f"lines{number}.jsonl"), frame.to_json(orient="records", lines=True)
        )
        name, weights = f"model{number}", stage.path(f"models/model{number}.safetensors")
        key = kept.key(number=number)
        if kept.load(name, key, [weights]) is None:
            with atomic_path(weights) as part:
                save_file({"x": frame["x"].to_numpy()}, part)
            kept.save(name, key, frame, [weights])
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([1, 2])
    stage.figure("figure", figure)
    stage.close({"seed": 0})


def in_a_fork(outputs: Path) -> int:
    """Write the stage in a process of its own; its id."""
    child = os.fork()
    if not child:
        status = 1
        try:
            os.environ["TOUCHSTONE_OUTPUTS"] = str(outputs)
            write_stage()
            status = 0
        finally:
            os._exit(status)
    return child


def test_a_killed_writer_leaves_whole_files_and_keeps_its_units(
    small_outputs: Path, tmp_path: Path
) -> None:
    started = time.monotonic()
    assert os.waitpid(in_a_fork(tmp_path / "undisturbed"), 0)[1] == 0
    seconds = time.monotonic() - started
    undisturbed = tmp_path / "undisturbed" / "toy" / "small"
    draw, kills, n_before = random.Random(0), 0, []
    while kills < N_KILLS or not max(n_before):  # at least one falls behind the first unit
        here = tmp_path / f"killed{len(n_before)}" / "toy" / "small"
        child = in_a_fork(here.parents[1])
        time.sleep(draw.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)  # until it is waited for, the id is its own
        kills += os.waitpid(child, 0)[1] == signal.SIGKILL
        before = units(here)
        n_before.append(len(before))
        seconds *= 1 if before else 1.1  # a machine may be busier than when it was undisturbed
        assert len(n_before) < 10 * N_KILLS, "no kill falls where it should"
        assert half_written(here, undisturbed) == []
        assert os.waitpid(in_a_fork(here.parents[1]), 0)[1] == 0
        assert {name: units(here)[name] for name in before} == before, "no unit was made again"
        assert units(here).keys() == units(undisturbed).keys()
        assert left_over(here) == [] and differing(here, undisturbed, "01_make") == []
