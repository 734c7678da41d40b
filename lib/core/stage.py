"""The hand-over between stages: where one reads and writes, and what says that it is complete.

A stage is complete when its folder holds a manifest: what it read, with checksums, what it wrote,
with what parameters. A later stage reads nothing else.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.parquet
from filelock import AcquireReturnProxy, FileLock, Timeout

from . import paths
from .arithmetic import in_force, processor
from .contents import fingerprint, name_of, named_contents, noted_contents
from .errors import TouchstoneError
from .files import save_csv, save_json, sha256_of, write_atomic
from .made_by import forget_reuse, package_versions, reused
from .notebooks import APPENDIX, listed
from .parameters import check_running_notebook, notebook_parameters
from .pictures import BESIDE, caption, save_png, save_print, save_svg

if TYPE_CHECKING:  # a plan draws nothing
    from matplotlib.figure import Figure

MANIFEST = "manifest.json"
_PREVIOUS = ".manifest.previous"
PENDING = "manifest.json.part"  # what a notebook leaves for the runner to finish
PRACTICE = ("small", "lesson")  # scales that show the steps and decide nothing
_locks: dict[Path, FileLock] = {}  # a lock that nobody refers to is let go, so they are kept here


@dataclass
class Stage:
    """One stage of a study at a scale; `open_stage` begins it, `close` ends it with a manifest.

    Attributes:
        study: the study, a folder of notebooks.
        scale: a file of its parameters, without ending.
        stage: the stage, a notebook.
        folder: where it writes.
        inputs: the SHA-256 of each file read of an earlier stage.
        externals: the same, of files from elsewhere; at the end also of the models, pipelines and
            modules that parameters name, and of other studies' material that was read.
        written: files and folders that the manifest will list.
        started: when it began.
    """

    study: str
    scale: str
    stage: str
    folder: Path
    inputs: dict[str, str] = field(default_factory=dict)
    externals: dict[str, str] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def is_practice(self) -> bool:
        """Whether the scale shows the steps and decides nothing."""
        return self.scale in PRACTICE

    def input(self, earlier_stage: str, name: str) -> Path:
        """The path of a file that an earlier stage left; the read is recorded with its SHA-256.

        Args:
            earlier_stage: the stage, "01_data_generation".
            name: the file, as that stage's manifest lists it.

        Raises:
            TouchstoneError: the stage is not complete, does not list the file, or the file is no
                longer what the manifest says; it names the command that makes the file.
        """
        # An appendix may stand before a stage, whatever its name (core/notebooks.py).
        is_appendix = earlier_stage.startswith(APPENDIX) and earlier_stage != self.stage
        if not (is_appendix or earlier_stage < self.stage):
            raise TouchstoneError(
                f"{self.stage} may read earlier stages only, and {earlier_stage} is none"
            )
        folder = self.folder.parent / earlier_stage
        remedy = f"run `make {self.study} SCALE={self.scale} STAGE={earlier_stage}` first"
        if not (folder / MANIFEST).is_file():
            raise TouchstoneError(
                f"{earlier_stage} has not been completed at scale {self.scale}; {remedy}"
            )
        if (manifest := read_manifest(folder / MANIFEST)) is None:
            raise TouchstoneError(f"{folder / MANIFEST} is damaged; {remedy}")
        listed = manifest["files"]
        if name not in listed or not (folder / name).is_file():
            raise TouchstoneError(
                f"{earlier_stage} left no file {name!r} at scale {self.scale}; {remedy}"
            )
        sha256 = sha256_of(folder / name)  # by content: a copied folder is as good
        if sha256 != listed[name]["sha256"]:
            raise TouchstoneError(
                f"{folder / name} has changed since {earlier_stage} wrote it; {remedy}"
            )
        self.inputs[f"{earlier_stage}/{name}"] = sha256
        return folder / name

    def note(self, earlier_stage: str, name: str) -> None:
        """Record a file that an earlier stage left as read, where it is there.

        A unit that was finished before depends on it, though nothing is read of it now.
        """
        folder = self.folder.parent / earlier_stage
        manifest = read_manifest(folder / MANIFEST) if (folder / MANIFEST).is_file() else None
        if manifest and name in manifest["files"] and (folder / name).is_file():
            self.input(earlier_stage, name)

    def external(self, path: Path | str) -> Path:
        """A file from elsewhere (somebody's explanations, say), recorded with its SHA-256.

        A file in the stage's own folder is found like any other, and not recorded.

        Raises:
            TouchstoneError: there is no such file.
        """
        located = locate_external(str(path))
        if not located.is_file():
            raise TouchstoneError(
                f"there is no file {located}; correct the parameter that names it"
            )
        if not located.is_relative_to(self.folder):
            self.externals[name_of(located)] = sha256_of(located)
        return located

    def path(self, name: str) -> Path:
        """Where to write a file, or a folder of files; the manifest lists what is there."""
        self.written.add(name)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def table(self, name: str, frame: pd.DataFrame, digits: int = 3) -> pd.DataFrame:
        """Save a table as `<name>.csv`, unrounded; returns it rounded to `digits`, for display."""
        save_csv(frame, self.path(f"{name}.csv"))
        return frame.round(digits)

    def figure(self, name: str, figure: "Figure", formats: Sequence[str] = ("png",)) -> None:
        """Save a figure as `<name>.<format>` for each format (png, svg, pdf).

        An svg or pdf that is asked for is a copy for print, at the width of a column or a page.
        Where none is, the svg is the figure as the png shows it, and `make paper_figures` makes the
        copies for print. The caption `<name>.txt` is taken from what the notebook says above the
        figure (`core/pictures.py`).
        """
        write_atomic(self.path(f"{name}.txt"), caption(self.study, self.stage, name, figure))
        for kind in dict.fromkeys(formats):
            save = save_png if kind == "png" else save_print
            save(figure, self.path(f"{name}.{kind}"))
        if not {"svg", "pdf"} & {*formats}:
            save_svg(figure, self.path(f"{name}.svg"))

    def close(self, parameters: Mapping[str, Any]) -> pd.DataFrame:
        """Write `manifest.json`, last and at once; times and hardware, which differ, to `run.json`.

        Args:
            parameters: the notebook's parameters by name; `globals()` will do, for only the names
                of the notebook's `parameters` cell are kept.

        Returns:
            A table of the files (file, rows, columns), for display: at most twelve lines, folders
            in one line each; what lies beside a png is left out.

        Raises:
            TouchstoneError: a parameter of the notebook is missing.
        """
        written = {  # files of folders one by one
            path.relative_to(self.folder).as_posix()
            for name in self.written
            for path in (self.folder / name, *(self.folder / name).rglob("*"))
            if path.is_file()
        }
        files = {name: _describe(self.folder / name) for name in sorted(written)}
        declared = self._declared(parameters)
        for name, path in (named_contents(declared) | noted_contents(self.study)).items():
            if not path.is_relative_to(self.folder):
                self.externals.setdefault(name, fingerprint(path))
        save_json(self._hardware(), self.folder / "run.json")
        by_maker = reused((self.study, self.scale, self.stage))
        manifest = {
            "study": self.study,
            "scale": self.scale,
            "stage": self.stage,
            "parameters": declared,
            "seeds": {k: v for k, v in declared.items() if "seed" in k},
            "versions": package_versions(),
            "inputs": dict(sorted(self.inputs.items())),
            "externals": dict(sorted(self.externals.items())),
            "reused": by_maker,  # published units
            "files": files,
        }
        _remove_obsolete(self.folder, set(files))
        under_runner = os.environ.get("TOUCHSTONE_RUNNER")
        save_json(manifest, self.folder / (PENDING if under_runner else MANIFEST))
        _lock(self.folder).release(force=True)  # a cell that ran twice has opened the stage twice
        if by_maker:
            print(
                f"{sum(by_maker.values())} published units are reused: "
                + "; ".join(f"{n} {by}" for by, n in by_maker.items())
                + " (TOUCHSTONE_STRICT=1 makes them anew)"
            )
        return listed(
            [
                (name, str(f.get("rows", "")), str(f.get("columns", "")))
                for name, f in files.items()
                if not name.endswith(BESIDE)
            ]
        )

    def _declared(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        source = paths.ROOT / "notebooks" / self.study / f"{self.stage}.py"
        names = notebook_parameters(source) if source.is_file() else parameters
        if missing := [name for name in names if name not in parameters]:
            raise TouchstoneError(
                f"{self.stage} closes without its parameters {', '.join(missing)}; "
                "hand every parameter to stage.close, or globals()"
            )
        return {name: parameters[name] for name in names}

    def _hardware(self) -> dict[str, Any]:
        now = datetime.now(UTC)
        torch = sys.modules.get("torch")  # a stage without models has not loaded it
        return {
            "started": self.started.isoformat(timespec="seconds"),
            "ended": now.isoformat(timespec="seconds"),
            "seconds": round((now - self.started).total_seconds(), 1),
            "cpu_seconds": round(time.process_time(), 1),  # of the whole process, imports included
            "system": platform.platform(),
            "processor": processor(),
            "cores": os.cpu_count(),
            "arithmetic": in_force(),
            "gpu": torch.cuda.get_device_name() if torch and torch.cuda.is_available() else None,
        }


def open_stage(study: str, scale: str, stage: str) -> Stage:
    """Begin a stage: its folder counts as incomplete until `close` writes the manifest again.

    Args:
        study: the study, a folder of notebooks.
        scale: a file of its parameters, without ending.
        stage: the stage, a notebook.

    Raises:
        TouchstoneError: a parameter of the notebook that calls this is out of its range, or another
            process has had the stage open for the last half minute, which is longer than a killed
            run needs to let go.
    """
    check_running_notebook(study, stage, paths.ROOT)
    folder = paths.outputs_root() / study / scale / stage
    hold(folder, seconds=30)
    (folder / PENDING).unlink(missing_ok=True)
    forget_reuse((study, scale, stage))
    if (folder / MANIFEST).is_file():
        os.replace(folder / MANIFEST, folder / _PREVIOUS)
    for left_over in folder.rglob(".*.part"):  # see atomic_path
        if not _is_running(left_over.stem.rpartition(".")[2]):  # a process may make a unit just now
            left_over.unlink(missing_ok=True)
    return Stage(study, scale, stage, folder)


def hold(folder: Path, seconds: float) -> AcquireReturnProxy:
    """Make a folder where there is none, and let no other process hold it until it is released.

    Args:
        folder: the folder; the lock is a file in it.
        seconds: how long to wait for another process.

    Returns:
        What releases the folder at the end of a `with`; without one, the process holds it on.

    Raises:
        TouchstoneError: another process still holds it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _lock(folder).acquire(timeout=seconds)
    except Timeout:
        raise TouchstoneError(
            f"another run is writing into {folder}; wait for it, or stop it"
        ) from None
    except OSError as error:
        raise TouchstoneError(
            f"{folder} cannot be written to ({error.strerror}); nothing was changed: allow writing "
            "there, or set TOUCHSTONE_OUTPUTS to another folder"
        ) from None


def read_manifest(path: Path) -> dict[str, Any] | None:
    """A stage's manifest; None where it is damaged (cut, or no manifest at all)."""
    try:
        manifest = json.loads(path.read_bytes())
    except ValueError:
        return None
    is_whole = isinstance(manifest, dict) and all(
        isinstance(manifest.get(part), dict)
        for part in ("parameters", "inputs", "externals", "files")
    )
    return manifest if is_whole else None


def locate_external(name: str) -> Path:
    """The file that a manifest calls `name`: absolute, in `$TOUCHSTONE_DATA` or the repository."""
    return paths.home() / os.path.expandvars(name)


def _remove_obsolete(folder: Path, names: set[str]) -> None:
    """Remove what only the stage's previous run listed, tables no longer made; models stay."""
    if (previous := folder / _PREVIOUS).is_file():
        before = read_manifest(previous) or {"files": {}}  # of a damaged one nothing is known
        for name in set(before["files"]) - names:
            if not name.startswith("models/"):  # somebody may have waited hours for them
                (folder / name).unlink(missing_ok=True)
        previous.unlink()


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)  # signal 0 only asks
    except PermissionError:
        return True  # somebody else's
    except (ValueError, OSError):
        return False
    return True


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
