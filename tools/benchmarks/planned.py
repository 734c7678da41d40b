"""What a plan predicts beside what was measured, stage by stage.

    python tools/benchmarks/planned.py measure cebab small     run it anew, each unit timed
    python tools/benchmarks/planned.py table                   outputs/benchmarks/planned.csv
    python tools/suite.py --outputs FOLDER                     all studies at small, stage by stage

Seconds of a processor core, for the clock says little on a busy machine. `measure` computes the
units of a stage one after the other, then runs its notebook, which reads them; it leaves
outputs/<study>/<scale>/planned.csv, a line a unit and one for each notebook. `table` puts the plan
of today beside that: `inside` is whether the measured time lies within its bounds. A study that was
not measured so has the seconds of its stages, as each wrote them into run.json (TOUCHSTONE_OUTPUTS
is the folder of the suite, or of a run). geco's plan is that of the last `touchstone plan geco`. Of
longer runs it has what RECORDED says, where their earlier stages are in the output root.
"""

from __future__ import annotations

import lib.same_numbers

import argparse
import time
from collections.abc import Sequence
from importlib import import_module

import pandas as pd

from lib.core.errors import TouchstoneError
from lib.core.files import read_json, save_csv
from lib.core.jobs import closed_stage
from lib.core.paths import outputs_root
from lib.core.planned import UNITS, planned
from lib.core.runner import plan_jobs, run_job
from lib.core.warm import warm_kernels

STUDIES = ("lm_saliency", "cebab", "implicit_bias")
# Seconds of units of longer runs, as docs/scale.md has them: by the beginning of their keys.
RECORDED = {
    ("cebab", "cpu", "02_training/.*-encoder-"): 9.4 * 60,
    ("cebab", "cpu", "02_training/.*-BiLSTM-"): 1.4 * 60,
    ("cebab", "cpu", "02_training/.*-without-"): 7.6 * 60,
    ("cebab", "cpu", "03_attribution/"): 8.8 * 60,
    ("geco", "cpu", "02_training/D_S-CEf-seed[01]$"): 282.0,
    # the first of five base models: its books 28 minutes, its nine trainings and their answers 13
    ("implicit_bias", "cpu", "02_training/(without_|mixture|(.*/)?base0)"): 41 * 60.0,
}
COLUMNS = ["study", "scale", "stage", "low", "predicted", "high", "measured", "inside"]


def listing_of(study: str):
    """The study's list of units, and what its notebooks take beside them."""
    module = import_module(f"lib.studies.{study}.jobs")
    return module.jobs_of, getattr(module, "BESIDE", {})


def measure(study: str, scale: str) -> pd.DataFrame:
    """Run a study anew, where nothing of it is finished yet: stage, unit (none: the notebook),
    measured.
    """
    listing, _ = listing_of(study)
    lines = []
    with warm_kernels(True) as kernels:
        for stage in plan_jobs(study, scale):
            for job in listing(closed_stage(study, scale, stage.stage), stage.all):
                started = time.process_time()
                job.compute()
                took = time.process_time() - started
                lines.append((stage.stage, job.key.partition("/")[2], round(took, 2)))
            run_job(stage, stage.stage, kernels)
            took = read_json(stage.folder / "run.json", "run it again")["cpu_seconds"]
            lines.append((stage.stage, "", took))
            print(stage.stage, flush=True)
    return pd.DataFrame(lines, columns=["stage", "unit", "measured"])


def beside(study: str, scale: str, measured: pd.DataFrame) -> pd.DataFrame:
    """Today's plan of each stage beside what was measured."""
    listing, more = listing_of(study)
    plan, _ = planned(listing, plan_jobs(study, scale), scale, more)
    return _joined(plan, measured, study, scale)


def measured_stages(study: str, scale: str) -> pd.DataFrame:
    """Seconds of each finished stage, units and notebook: those of `measure`, or of run.json."""
    folder = outputs_root() / study / scale
    if (folder / "planned.csv").is_file():
        return pd.read_csv(folder / "planned.csv", keep_default_na=False)
    found = [(path.parent.name, path) for path in sorted(folder.glob("*/run.json"))]
    lines = [(stage, read_json(path, "run it again")["cpu_seconds"]) for stage, path in found]
    return pd.DataFrame(lines, columns=["stage", "measured"])


def geco_beside() -> pd.DataFrame:
    """What `touchstone plan geco` found here from its sample, beside the stages."""
    plan = pd.read_csv(outputs_root() / "geco" / "small" / "plan.csv").query("stage != 'total'")
    plan = plan.groupby("stage", as_index=False)[["seconds", "low", "high"]].sum()
    return _joined(plan, measured_stages("geco", "small"), "geco", "small")


def _joined(plan: pd.DataFrame, measured: pd.DataFrame, study: str, scale: str) -> pd.DataFrame:
    sums = measured.groupby("stage", as_index=False)["measured"].sum()
    return plan.merge(sums, on="stage").assign(study=study, scale=scale)


def recorded() -> pd.DataFrame:
    """The units of RECORDED whose list can be made here, each group a line."""
    lines = []
    for (study, scale, pattern), seconds in RECORDED.items():
        stage = next(s for s in plan_jobs(study, scale) if pattern.startswith(s.stage))
        try:
            jobs = listing_of(study)[0](closed_stage(study, scale, stage.stage), stage.all)
        except TouchstoneError as error:
            print(f"left out, {study} at {scale}, {pattern}: {error}")
            continue
        keys = pd.Series([job.key for job in jobs])
        mid = sum(job.seconds for job, own in zip(jobs, keys.str.match(pattern)) if own)
        lines.append((study, scale, pattern, mid, mid / UNITS, mid * UNITS, seconds))
    names = ["study", "scale", "stage", "seconds", "low", "high", "measured"]
    return pd.DataFrame(lines, columns=names)


def table() -> pd.DataFrame:
    """All that was measured here or recorded, beside today's plan."""
    measured = {study: measured_stages(study, "small") for study in STUDIES}
    found = [beside(study, "small", lines) for study, lines in measured.items() if len(lines)]
    if (outputs_root() / "geco" / "small" / "plan.csv").is_file():
        found.append(geco_beside())
    lines = pd.concat([*found, recorded()], ignore_index=True)
    lines = lines.rename(columns={"seconds": "predicted"})
    numbers = COLUMNS[3:7]
    lines[numbers] = lines[numbers].astype(float).round(1)
    lines["inside"] = lines["measured"].between(lines["low"], lines["high"])
    return lines[COLUMNS]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("study", nargs="?", choices=STUDIES)
    parser.add_argument("scale", nargs="?", default="small")
    chosen = parser.parse_args(arguments)
    if chosen.what == "measure":
        path = outputs_root() / chosen.study / chosen.scale / "planned.csv"
        save_csv(measure(chosen.study, chosen.scale), path)
        return
    lines = table()
    save_csv(lines, outputs_root() / "benchmarks" / "planned.csv")
    print(lines.to_string(index=False))
    print(f"{lines['inside'].sum()} of {len(lines)} measured times lie inside")


if __name__ == "__main__":
    main()
