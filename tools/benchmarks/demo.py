"""How much faster `make demo` is than it would be with captum and lime called one row at a time:
measured, not calculated.

    python tools/benchmarks/demo.py                      about a quarter of an hour of one core; a stopped run goes on where it was
    python tools/benchmarks/demo.py --beside FOLDER      also run the stages of another checkout of this repository, in turn
    python tools/benchmarks/demo.py --run FOLDER         of a finished demo (its output root) the explanations only

First the demo (an example, then geco at scale lesson) runs as a whole: processor time of all its
processes, and of each stage's kernel. Then every model explains the rows of stage 03 with the settings of stage
03, by each method that sees a model: once by the engine, through the same `run_units` with nothing
finished yet, once through captum and lime (originals.py) with the same draws. The two take turns,
model by model, in one process. The table goes to outputs/benchmarks/demo.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from arms import Arm, take_turns
from attribution import disagreement
from originals import Scores, original

from lib.attribution import METHODS, Row
from lib.attribution.explain import explain_many
from lib.core.errors import TouchstoneError
from lib.core.files import load_parquet, save_csv
from lib.core.paths import ROOT, outputs_root
from lib.core.seeds import set_up
from lib.core.stage import Stage
from lib.core.units import Units
from lib.studies.geco.grid import Unit, run_units
from lib.studies.geco.plan import numbers_of
from lib.studies.geco.units import StageSources, plan_units, settings_by_method

SIZES = (
    "n_steps",
    "rule",
    "n_samples",
)  # the settings that `originals.original` is told; all others must be the usual ones
COMPARED = 2  # rows of each model on which the arms' scores are held against each other
SCALE = "lesson"  # of make demo
EXPLAINING = "03_attribution"


def demo_seconds(checkout: Path, outputs: Path) -> dict[str, float]:
    """Processor time of the whole demo of a checkout, run anew: of the example, of each stage (as
    its kernel counts it), and of what is left: the runner, and the start of the kernels.
    """
    own = {"TOUCHSTONE_OUTPUTS": str(outputs), "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    shutil.rmtree(outputs / "geco" / SCALE, ignore_errors=True)
    commands = {"example": ["example"], "whole": ["run", "geco", "--scale", SCALE]}
    seconds = {}
    for name, command in commands.items():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "lib.cli", *command],
            cwd=checkout,
            check=True,
            env=os.environ | own,
            stdout=subprocess.DEVNULL,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[name] = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    for path in sorted((outputs / "geco" / SCALE).glob("0*/run.json")):
        seconds[path.parent.name] = float(json.loads(path.read_text()).get("cpu_seconds", "nan"))
    of_stages = sum(s for name, s in seconds.items() if name[0] == "0")
    return seconds | {"runner, start of kernels": seconds.pop("whole") - of_stages}


def run_stages(store: Units, folder: Path, beside: Path | None) -> pd.DataFrame:
    """The parts of the demo, in this checkout and in the other one: part, engine_s, beside_s."""

    def run() -> pd.DataFrame:
        ours = demo_seconds(ROOT, folder / "here")
        other = demo_seconds(beside, folder / "beside") if beside else {}
        return pd.DataFrame(
            [
                {"part": part, "engine_s": seconds, "beside_s": other.get(part, float("nan"))}
                for part, seconds in ours.items()
            ]
        )

    stages = store.finished("demo", store.key(beside=str(beside), code=sys.version), run)
    print(stages.round(1).to_string(index=False), flush=True)
    return stages


def planned(outputs: Path) -> tuple[list[Unit], StageSources]:
    """What the finished run's stage 03 explained with a model, and the models."""
    stage = Stage("geco", SCALE, EXPLAINING, outputs / "geco" / SCALE / EXPLAINING)
    chosen = json.loads((stage.folder / "manifest.json").read_text())["parameters"]
    predictions = load_parquet(stage.input("02_training", "predictions.parquet")).query(
        "split == 'test'"
    )
    asked = predictions[
        predictions["dataset"].isin(chosen["datasets"])
        & predictions["scheme"].isin(chosen["schemes"])
    ]
    settings = settings_by_method(
        chosen["explained"], chosen["aggregation"], chosen["normalise_special"], numbers_of(chosen)
    )
    plan = plan_units(
        asked[["dataset", "scheme", "seed"]].drop_duplicates(),
        chosen["methods"],
        settings,
        chosen["n_base"],
        chosen["n_base_ola"],
        one_pass=chosen["one_pass_schemes"],
    )
    sources = StageSources(stage, predictions, chosen["seed"], torch.device("cpu"))
    return [unit for unit in plan if unit.scheme != "-"], sources


def sizes_of(unit: Unit) -> dict[str, Any]:
    """The settings for captum and lime; the others must be those that `originals` has built in."""
    usual = METHODS[unit.method].settings()
    if changed := [
        name for name, value in unit.settings.items() if name not in SIZES and value != usual[name]
    ]:
        raise TouchstoneError(
            f"{unit.method} has {changed[0]} = {unit.settings[changed[0]]!r}, and the other arm knows "
            f"{usual[changed[0]]!r} only; measure with the usual setting"
        )
    return {name: value for name, value in unit.settings.items() if name in SIZES}


def measure(
    units: Sequence[Unit], sources: StageSources, scratch: Units, folder: Path
) -> pd.DataFrame:
    """One model's explanations by both arms, in turn: part, engine_s, original_s, rows, difference
    (of a word's share, at most).
    """
    model, rows = sources.model_of(units[0]), sources.rows_of(units[0])
    as_rows = [
        Row(r.row_id, r.sentence_idx, r.target, list(r.sentence), 0) for r in rows.itertuples()
    ]

    def engine() -> pd.DataFrame:
        shutil.rmtree(folder, ignore_errors=True)
        return run_units(units, sources, scratch)

    def one_by_one(some: Sequence[Row] = as_rows) -> dict[str, Scores]:
        return {
            unit.method: original(model, some, unit.method, seed=unit.seed, **sizes_of(unit))
            for unit in units
        }

    same = explain_many(
        model,
        rows.iloc[:COMPARED],
        [(unit.method, unit.settings) for unit in units],
        seed=units[0].seed,
    )
    difference = disagreement(one_by_one(as_rows[:COMPARED]), same)[1]  # this also warms up
    arms: Mapping[str, Arm] = {"original": Arm(one_by_one), "engine": Arm(engine)}
    take_turns(arms, 1)
    about = {
        "part": f"explaining, {units[0].dataset} {units[0].scheme} seed {units[0].seed}",
        "rows": len(rows),
    }
    return pd.DataFrame(
        [
            {
                **about,
                "engine_s": arms["engine"].best,
                "original_s": arms["original"].best,
                "difference": difference,
            }
        ]
    )


def explain_models(store: Units, outputs: Path) -> pd.DataFrame:
    """`measure` for every model, each line kept as it is finished."""
    units, sources = planned(outputs)
    scratch, lines = Units("benchmarks", "demo", "scratch"), []
    folder = outputs_root() / "benchmarks" / "demo" / "scratch"
    for name in dict.fromkeys((unit.dataset, unit.scheme, unit.seed) for unit in units):
        own = [unit for unit in units if (unit.dataset, unit.scheme, unit.seed) == name]
        key = store.key(
            units=[unit.name for unit in own], settings=[dict(unit.settings) for unit in own]
        )
        lines.append(
            store.finished(
                "-".join(map(str, name)),
                key,
                lambda own=own: measure(own, sources, scratch, folder),
            )
        )
        print(lines[-1].round(4).to_string(index=False, header=len(lines) == 1), flush=True)
    return pd.concat(lines, ignore_index=True)


def summary(stages: pd.DataFrame | None, models: pd.DataFrame) -> pd.DataFrame:
    """The table: stages, models, explanations together, the demo; `ratio`: original by engine.

    The demo of the other arm is this one with its explanations exchanged: all other work is the
    same.
    """
    ours, theirs = models["engine_s"].sum(), models["original_s"].sum()
    parts = [
        models,
        pd.DataFrame(
            [
                {
                    "part": "explaining, all models",
                    "rows": models["rows"].sum(),
                    "engine_s": ours,
                    "original_s": theirs,
                    "difference": models["difference"].max(),
                }
            ]
        ),
    ]
    if stages is not None:
        demo = stages["engine_s"].sum()
        parts = [
            stages,
            *parts,
            pd.DataFrame(
                [
                    {
                        "part": "make demo",
                        "engine_s": demo,
                        "original_s": demo - ours + theirs,
                        "beside_s": stages["beside_s"].sum(min_count=len(stages)),
                    }
                ]
            ),
        ]
    table = pd.concat(parts, ignore_index=True).reindex(
        columns=["part", "rows", "engine_s", "original_s", "difference", "beside_s"]
    )
    table.insert(4, "ratio", table["original_s"] / table["engine_s"])
    return table.assign(ratio_beside=table["beside_s"] / table["engine_s"]).dropna(
        axis=1, how="all"
    )


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Run the demo, then both arms of its explanations; write the table and return it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--beside", type=Path, help="another checkout of the repository, an earlier commit say"
    )
    parser.add_argument(
        "--run", type=Path, help="the output root of a finished demo: measure its explanations only"
    )
    options = parser.parse_args(arguments)
    set_up(0, n_threads=1)
    folder, store = (
        outputs_root() / "benchmarks" / "demo",
        Units("benchmarks", "demo", "measured", reuse=True, publish=False),
    )
    stages = (
        None
        if options.run
        else run_stages(store, folder, options.beside and options.beside.resolve())
    )
    table = summary(stages, explain_models(store, options.run or folder / "here"))
    save_csv(table, outputs_root() / "benchmarks" / "demo.csv")
    print(table.round(3).to_string(index=False))
    return table


if __name__ == "__main__":
    main()
