"""Would the verdicts of another look stand at a stricter level?

    python tools/another_look.py lm_saliency --looks 3     # after tools/reference.py has added it

A run that adds trainings because claims were open looks at them again: at five per cent a look, two
looks err in up to ten of a hundred, three in fifteen. So stage 04 is run once more at this share of
the level (a half, a third), in a folder of its own, on what the last run at scale `cpu` left. So is
an earlier stage that has a level of its own: in lm_saliency 02, what a model has surely learnt.
material/second_looks.csv has a line for each claim that was open in the run before, or has another
verdict now: the verdict then, now, and now at the stricter level.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import runs

from lib.core.errors import TouchstoneError
from lib.core.files import save_csv
from lib.core.paths import material, outputs_root
from lib.core.runner import plan_jobs

TABLE = "second_looks.csv"
BEFORE = ("01_data_generation", "02_training", "03_attribution")


def another_look(verdicts: pd.DataFrame, stricter: pd.DataFrame, looks: int) -> pd.DataFrame:
    """The claims that the last run found open, or judged otherwise than the run before.

    Args:
        verdicts: run, claim, verdict of all runs.
        stricter: id, verdict of the last run, judged at its level divided by `looks`.

    Returns:
        run (the last), claim, before, now, looks, stricter.
    """
    last = verdicts["run"].max()
    by_run = verdicts.pivot(index="claim", columns="run", values="verdict")[[last - 1, last]]
    by_run = by_run.dropna()  # a claim that is new has been looked at once
    is_another = by_run[last - 1].isin(runs.OPEN) | (by_run[last - 1] != by_run[last])
    found = by_run[is_another].reset_index()
    again = found["claim"].map(stricter.set_index("id")["verdict"])
    if again.isna().any():
        missing = found.loc[again.isna(), "claim"].iloc[0]
        raise TouchstoneError(f"claim {missing} was not judged at the stricter level; run it again")
    names = {last - 1: "before", last: "now"}
    table = found.rename(columns=names).assign(run=last, looks=looks, stricter=again)
    return table[["run", "claim", "before", "now", "looks", "stricter"]]


def judged(study: str, alpha: float) -> pd.DataFrame:
    """The claims of the last run at scale `cpu`, judged at the level `alpha`."""
    made = outputs_root() / study / "cpu"
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / study / "cpu"
        here.mkdir(parents=True)
        level = {job.stage for job in plan_jobs(study, "cpu") if "alpha" in job.all}
        again = [*(stage for stage in BEFORE if stage in level), "04_metrics"]
        for stage in BEFORE:
            if not (made / stage).is_dir():
                raise TouchstoneError(
                    f"{made / stage} is not there; run `touchstone run {study} --scale cpu` first"
                )
            if stage in again:  # with its units, so that nothing is trained
                shutil.copytree(made / stage, here / stage)
            else:
                (here / stage).symlink_to(made / stage)
        asked = ["run", study, "--scale", "cpu", "-p", "alpha", str(alpha)]
        asked += [part for stage in again for part in ("--stage", stage)]
        subprocess.run(
            [sys.executable, "-m", "lib.cli", *asked],
            check=True,
            env=os.environ | {"TOUCHSTONE_OUTPUTS": folder},
        )
        return pd.read_csv(here / "04_metrics" / "claims.csv")


def main(arguments: list[str]) -> int:
    """Add the last run of a study to its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study")
    parser.add_argument("--looks", type=int, default=2, help="how often a claim was looked at")
    asked = parser.parse_args(arguments)
    verdicts = runs.read_runs(asked.study)[1]
    found = another_look(verdicts, judged(asked.study, runs.ALPHA / asked.looks), asked.looks)
    path = material(asked.study) / TABLE
    if path.is_file():
        before = pd.read_csv(path)
        found = pd.concat([before[before["run"] != verdicts["run"].max()], found])
    save_csv(found, path)
    print(found.to_string(index=False))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
