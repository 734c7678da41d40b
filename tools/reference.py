"""Copy what we vouch for from a run to outputs/reference, and print what changed.

    python tools/reference.py geco small
    python tools/reference.py geco cpu "what changed"   # the run is added to material/runs.csv

At scale small what `touchstone start` needs is packed, too.
CSV, JSON and PNG of every stage are taken, no PNG of a variant of cpu (cpu_2way), whose figures no
page shows; rows of a corpus, downloaded texts, weights, Parquet and anything volatile stay where
they are.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd
import runs

from lib.core import handover
from lib.core.notebooks import find_notebooks
from lib.core.paths import ROOT, outputs_root

KINDS = {".csv", ".json"}
PICTURES = {".png"}
VOLATILE = {"run.json"}
TEXTS = {"asked.csv"}  # whole texts: ours at scale small, downloaded ones at others
MOST_BYTES = 500_000


def wanted(folder: Path) -> dict[str, Path]:
    """Files to vouch for, by their path below the folder."""
    kinds = KINDS if folder.name.startswith("cpu_") else KINDS | PICTURES
    files = [
        path for path in folder.rglob("*") if path.suffix in kinds and path.name not in VOLATILE
    ]
    if folder.name != handover.SCALE:
        files = [path for path in files if path.name not in TEXTS]
    names = {str(path.relative_to(folder)): path for path in sorted(files)}
    return {
        name: path
        for name, path in names.items()
        if not {"units", "models", "handover"} & set(Path(name).parts)
    }


def change(old: Path, new: Path) -> str:
    """One phrase on how a file differs from its reference; empty if it does not."""
    if not old.is_file():
        return "new"
    if old.read_bytes() == new.read_bytes():
        return ""
    if new.suffix != ".csv":
        return "changed"
    before, after = pd.read_csv(old), pd.read_csv(new)
    if before.shape != after.shape or list(before) != list(after):
        return f"changed from {before.shape} to {after.shape}"
    numbers = (after.select_dtypes("number") - before.select_dtypes("number")).abs().max()
    moved = ", ".join(
        f"{column} by up to {size:.2g}" for column, size in numbers.items() if size > 0
    )
    return f"changed: {moved or 'text'}"


def renew(run: Path, reference: Path) -> None:
    """Make the reference folder equal to the run's files, saying what changes; units stay."""
    files = wanted(run)
    if not files:
        raise SystemExit(f"{run} holds no tables: run the study first (make geco SCALE={run.name})")
    too_big = [name for name, path in files.items() if path.stat().st_size > MOST_BYTES]
    if too_big:
        raise SystemExit(f"over {MOST_BYTES} bytes, not copied: {', '.join(too_big)}")
    of_runs = {"decided.csv", "open_claims.csv", "power_of_claims.csv"}
    old = set(wanted(reference)) - of_runs if reference.is_dir() else set()
    for name in sorted(old - set(files)):
        (reference / name).unlink()
        print(f"  {name}: removed")
    for name, path in files.items():
        note = change(reference / name, path)
        if note:
            (reference / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, reference / name)
            print(f"  {name}: {note}")


def main(study: str, scale: str = "small", what: str = "") -> None:
    reference = ROOT / "outputs" / "reference"
    if study == "start_here":
        renew(outputs_root() / "start_here", reference / "start_here")
        return
    run = outputs_root() / study / scale
    stages = [notebook.stem for notebook in find_notebooks(study)]
    missing = [stage for stage in stages if not (run / stage / "manifest.json").is_file()]
    if missing:
        raise SystemExit(
            f"{study} at scale {scale} is not complete ({', '.join(missing)}): "
            f"make {study} SCALE={scale}"
        )
    renew(run, reference / study / scale)
    if scale == handover.SCALE:
        handover.pack(study, run)
    if scale == "cpu":
        runs.append(study, run / "04_metrics" / "claims.csv", what)
        runs.tell(study)


if __name__ == "__main__":
    main(*sys.argv[1:4])
