"""The hand-over between stages: where a stage reads and writes, and the manifest that says it is complete."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet
from filelock import FileLock, Timeout
from matplotlib.figure import Figure

from lib.core import paths
from lib.core.arithmetic import in_force
from lib.core.errors import TouchstoneError
from lib.core.files import atomic_path, save_csv, save_json, sha256_of
from lib.core.parameters import notebook_parameters

MANIFEST = "manifest.json"
PREVIOUS = ".manifest.previous"
PENDING = "manifest.json.part"  # what a notebook leaves for the runner to finish
PACKAGES = (
    "torch",
    "transformers",
    "captum",
    "lime",
    "spacy",
    "numpy",
    "pandas",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "matplotlib",
    "seaborn",
)
NO_DATES: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_locks: dict[Path, FileLock] = {}  # a lock that nobody refers to is let go, so they are kept here


@dataclass
class Stage:
    """One stage of a study at a scale: reads earlier stages, writes its own folder, ends with a manifest."""

    study: str
    scale: str
    stage: str
    folder: Path
    inputs: dict[str, str] = field(default_factory=dict)
    externals: dict[str, str] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def input(self, earlier_stage: str, name: str) -> Path:
        """The path of a file that an earlier, completed stage left; the read is recorded with its SHA-256.

        Raises TouchstoneError, naming the command that makes the file, where the stage is not complete, does
        not list the file, or the file is no longer what the manifest says.
        """
        if not earlier_stage < self.stage:
            raise TouchstoneError(
                f"{self.stage} may read earlier stages only, and {earlier_stage} is none"
            )
        folder = self.folder.parent / earlier_stage
        remedy = f"run `make {self.study} SCALE={self.scale} STAGE={earlier_stage}` first"
        if not (folder / MANIFEST).is_file():
            raise TouchstoneError(
                f"{earlier_stage} has not been completed at scale {self.scale}; {remedy}"
            )
        listed = json.loads((folder / MANIFEST).read_text())["files"]
        if name not in listed or not (folder / name).is_file():
            raise TouchstoneError(
                f"{earlier_stage} left no file {name!r} at scale {self.scale}; {remedy}"
            )
        sha256 = sha256_of(folder / name)
        if sha256 != listed[name]["sha256"]:
            raise TouchstoneError(
                f"{folder / name} has changed since {earlier_stage} wrote it; {remedy}"
            )
        self.inputs[f"{earlier_stage}/{name}"] = sha256
        return folder / name

    def external(self, path: Path | str) -> Path:
        """A file from outside the study's outputs (explanations made elsewhere, say), recorded as well; of one's own, not."""
        located = locate_external(str(path))
        if not located.is_file():
            raise TouchstoneError(
                f"there is no file {located}; correct the parameter that names it"
            )
        data = paths.data_root()
        inside = data is not None and located.is_relative_to(data)
        name = (
            f"$TOUCHSTONE_DATA/{located.relative_to(data).as_posix()}"
            if inside and data
            else str(path)
        )
        if not located.is_relative_to(self.folder):
            self.externals[name] = sha256_of(located)
        return located

    def path(self, name: str) -> Path:
        """Where to write a file (or a folder of files) of this stage; the manifest lists what is there."""
        self.written.add(name)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def table(self, name: str, frame: pd.DataFrame, digits: int = 3) -> pd.DataFrame:
        """Save a table as `<name>.csv`, unrounded, and return it rounded for display."""
        save_csv(frame, self.path(f"{name}.csv"))
        return frame.round(digits)

    def figure(self, name: str, figure: Figure, formats: Sequence[str] = ("png",)) -> None:
        """Save a figure as `<name>.<format>` at 150 dpi; without dates the same figure is the same file."""
        for kind in formats:
            with atomic_path(self.path(f"{name}.{kind}")) as part:
                figure.savefig(
                    part, format=kind, dpi=150, bbox_inches="tight", metadata=NO_DATES.get(kind)
                )

    def close(self, parameters: Mapping[str, Any]) -> pd.DataFrame:
        """Write `manifest.json`, last and at once; return the files for display (file, rows, columns).

        `parameters`: the notebook's parameters by name; `globals()` will do, for only the names of the
        notebook's own `parameters` cell are kept. Times and hardware go to `run.json`: they always differ.
        """
        files = {name: _describe(self.folder / name) for name in self._files()}
        chosen = self._own(parameters)
        save_json(self._hardware(), self.folder / "run.json")
        manifest = {
            "study": self.study,
            "scale": self.scale,
            "stage": self.stage,
            "parameters": chosen,
            "seeds": {k: v for k, v in chosen.items() if "seed" in k},
            "versions": _versions(),
            "inputs": dict(sorted(self.inputs.items())),
            "externals": dict(sorted(self.externals.items())),
            "files": files,
        }
        _remove_obsolete(self.folder, set(files))
        save_json(
            manifest, self.folder / (PENDING if os.environ.get("TOUCHSTONE_RUNNER") else MANIFEST)
        )
        _lock(self.folder).release(force=True)
        return pd.DataFrame(
            [
                {"file": name, **{k: str(about.get(k, "")) for k in ("rows", "columns")}}
                for name, about in files.items()
            ],
            columns=["file", "rows", "columns"],
        )

    def _files(self) -> list[str]:
        found = {
            p
            for name in self.written
            for p in (self.folder / name, *(self.folder / name).rglob("*"))
        }
        return sorted(p.relative_to(self.folder).as_posix() for p in found if p.is_file())

    def _own(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        source = paths.ROOT / "notebooks" / self.study / f"{self.stage}.py"
        names = list(notebook_parameters(source)) if source.is_file() else list(parameters)
        if missing := [name for name in names if name not in parameters]:
            raise TouchstoneError(
                f"{self.stage} closes without its parameters {', '.join(missing)}; "
                "hand every parameter to stage.close, or globals()"
            )
        return {name: parameters[name] for name in names}

    def _hardware(self) -> dict[str, Any]:
        now = datetime.now(UTC)
        torch = sys.modules.get("torch")
        gpu = (
            torch.cuda.get_device_name()
            if torch is not None and torch.cuda.is_available()
            else None
        )
        return {
            "started": self.started.isoformat(timespec="seconds"),
            "ended": now.isoformat(timespec="seconds"),
            "seconds": round((now - self.started).total_seconds(), 1),
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "arithmetic": in_force(),
            "gpu": gpu,
        }


def open_stage(study: str, scale: str, stage: str) -> Stage:
    """Begin a stage: from here on its folder counts as incomplete, until `close` writes the manifest again.

    Only one process at a time may have a stage open; a second one waits half a minute (a killed run needs
    some seconds to let go) and then stops.
    """
    folder = paths.outputs_root() / study / scale / stage
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _lock(folder).acquire(timeout=30)
    except Timeout:
        raise TouchstoneError(
            f"another process is writing into {folder}; wait for it, or stop it"
        ) from None
    (folder / PENDING).unlink(missing_ok=True)
    if (folder / MANIFEST).is_file():
        os.replace(folder / MANIFEST, folder / PREVIOUS)
    for left_over in folder.rglob(".*.part"):
        left_over.unlink()
    return Stage(study, scale, stage, folder)


def locate_external(name: str) -> Path:
    """The file that a manifest calls `name`: absolute, below `$TOUCHSTONE_DATA` or the repository."""
    return paths.home() / os.path.expandvars(name)


def _remove_obsolete(folder: Path, names: set[str]) -> None:
    """Remove what only the previous run of the stage listed, a table no longer made, say; models stay."""
    if (previous := folder / PREVIOUS).is_file():
        for name in set(json.loads(previous.read_text())["files"]) - names:
            if not name.startswith("models/"):
                (folder / name).unlink(missing_ok=True)
        previous.unlink()


def _lock(folder: Path) -> FileLock:
    return _locks.setdefault(folder, FileLock(folder / ".lock"))


def _describe(path: Path) -> dict[str, Any]:
    about: dict[str, Any] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    if path.suffix == ".parquet":
        metadata = pyarrow.parquet.read_metadata(path)
        about |= {"rows": metadata.num_rows, "columns": metadata.num_columns}
    elif path.suffix == ".csv":
        frame = pd.read_csv(path)
        about |= {"rows": len(frame), "columns": len(frame.columns)}
    elif path.suffix == ".jsonl":
        with path.open("rb") as file:
            about["rows"] = sum(1 for line in file if line.strip())
    return about


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue  # an optional package that this environment does not have took no part in the run
    return found
