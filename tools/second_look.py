"""Would the verdicts of a second look stand at half the error?

    python tools/second_look.py implicit_bias     # after tools/reference.py has added the run

A run that adds trainings because claims were open looks at them twice: at five per cent a look, the
two err in up to ten of a hundred. So stage 04 is run once more at half the level, in a folder of
its own, on what the last run at scale `cpu` left. material/second_looks.csv has a line for each
claim that was open in the run before: its verdict then, now, and now at half the level.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import runs

from lib.core.errors import TouchstoneError
from lib.core.files import save_csv
from lib.core.paths import material, outputs_root

TABLE = "second_looks.csv"
OPEN = ("undecided", "not run")


def second_look(verdicts: pd.DataFrame, at_half: pd.DataFrame) -> pd.DataFrame:
    """The claims that the last run found open.

    Args:
        verdicts: run, claim, verdict of all runs.
        at_half: id, verdict of the last run, judged at half the level.

    Returns:
        run (the last), claim, before, now, at_half.
    """
    last = verdicts["run"].max()
    by_run = verdicts.pivot(index="claim", columns="run", values="verdict")
    found = by_run[by_run[last - 1].isin(OPEN)].reset_index()
    half = found["claim"].map(at_half.set_index("id")["verdict"])
    if half.isna().any():
        missing = found.loc[half.isna(), "claim"].iloc[0]
        raise TouchstoneError(f"claim {missing} was not judged at half the level; run it again")
    names = {last - 1: "before", last: "now"}
    table = found.rename(columns=names).assign(run=last, at_half=half)
    return table[["run", "claim", "before", "now", "at_half"]]


def judged_at_half(study: str) -> pd.DataFrame:
    """The claims of the last run at scale `cpu`, judged at half the level."""
    made = outputs_root() / study / "cpu"
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / study / "cpu"
        here.mkdir(parents=True)
        for stage in ("01_data_generation", "02_training", "03_attribution"):
            if not (made / stage).is_dir():
                raise TouchstoneError(
                    f"{made / stage} is not there; run `touchstone run {study} --scale cpu` first"
                )
            (here / stage).symlink_to(made / stage)
        asked = ["run", study, "--scale", "cpu", "--stage", "04_metrics"]
        asked += ["-p", "alpha", str(runs.ALPHA / 2)]
        subprocess.run(
            [sys.executable, "-m", "lib.cli", *asked],
            check=True,
            env=os.environ | {"TOUCHSTONE_OUTPUTS": folder},
        )
        return pd.read_csv(here / "04_metrics" / "claims.csv")


def main(studies: list[str]) -> int:
    """Add the last run of each study to its table."""
    for study in studies:
        found = second_look(runs.read_runs(study)[1], judged_at_half(study))
        path = material(study) / TABLE
        if path.is_file():
            before = pd.read_csv(path)
            found = pd.concat([before[before["run"] != found["run"].iloc[0]], found])
        save_csv(found, path)
        print(found.to_string(index=False))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
