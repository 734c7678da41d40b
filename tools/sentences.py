"""What a user sees of each malformed input of tests/faults/inputs.yaml.

    python tools/sentences.py            write tests/faults/sentences.csv anew (and read the diff)

A line for each input: its format, what is wrong with it, the verdict, and the sentence; FOLDER
stands for where the file lies. A test compares the file with what is said today.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pandas as pd

from lib.core.files import write_atomic
from lib.core.paths import ROOT

HERE = ROOT / "tests" / "faults"
SENTENCES = HERE / "sentences.csv"


def sentences() -> pd.DataFrame:
    """Format, case, verdict and sentence of every input, made and read in a folder of its own."""
    from formats import FORMATS, TABLE
    from malformed import outcome, told

    rows = []
    for name, cases in TABLE.items():
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                found = outcome(FORMATS[name], case, Path(folder) / "x")
                said = told(found.sentence, Path(folder) / "x")
                rows.append((name, case["case"], "refused" if said else "accepted", said))
    return pd.DataFrame(rows, columns=["format", "case", "verdict", "sentence"])


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.path[:0] = [str(HERE), str(HERE.parent / "models_for_tests")]
    table = sentences()
    write_atomic(SENTENCES, table.to_csv(index=False, lineterminator="\n"))
    print(table["verdict"].value_counts().to_string(), f"\n{SENTENCES.relative_to(ROOT)}")
