"""How long a run will take on this machine: what it took where it was measured, by how fast this
processor multiplies.
"""

import csv
import time
from pathlib import Path

from .paths import ROOT

TIMES = ROOT / "outputs" / "reference" / "benchmarks" / "times.csv"


def expected_minutes(what: str, path: Path = TIMES) -> float | None:
    """Minutes of one core that a run is expected to take here; None for a run that was never timed.

    Args: what: the name of a run in the table of times, `geco small` or `test`. path: the table,
    with columns `what`, `cpu_seconds` and `gflops` (of the processor where it was timed).
    """
    if path.is_file():  # an installed package has no reference
        for row in csv.DictReader(path.read_text().splitlines()):
            if row["what"] == what:
                operations = float(row["cpu_seconds"]) * float(row["gflops"])
                return operations / measured_gflops() / 60
    return None


def measured_gflops(seconds: float = 0.1) -> float:
    """Billions of float32 operations a second that one thread reaches on the matrix product of a
    small transformer.
    """
    import numpy as np  # here: a command that runs nothing should not wait for it

    texts, weights = np.ones((640, 384), np.float32), np.ones((384, 1536), np.float32)
    texts @ weights  # the first product also sets up the library
    started, n = time.process_time(), 0
    while time.process_time() - started < seconds:
        texts @ weights
        n += 1
    return 2 * 640 * 384 * 1536 * n / (time.process_time() - started) / 1e9
