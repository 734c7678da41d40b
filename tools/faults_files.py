"""What a kill left: are the files whole, and do they equal those of an undisturbed run?

For tools/faults.py, whose docstring says what is counted.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pandas as pd
from PIL import Image
from safetensors.numpy import load_file

from lib.core.files import read_arrays, strict_json
from lib.core.notebooks import strip_volatile
from lib.core.stage import MANIFEST, PENDING

_PART = re.compile(r"\.(.+)\.\d+\.part")  # the temporary name of `atomic_path`
# What a stage prints of how long it will take, by a timed sample of what is left to do.
_FORECAST = re.compile(r"\A.*?minutes in all\n|^[^\n]*: about [\d.]+ minutes[^\n]*\n", re.S | re.M)
_CLAIMS = ".claims"  # a folder of locks, one a unit
_OF_THE_RUNNER = re.compile(r"run\.log|\.lock|failed\.(ipynb|log)")  # no results


def _read_csv(path: Path) -> None:
    text = path.read_text("utf-8")
    if not text.endswith("\n"):
        raise ValueError("its last line has no end")
    table = re.sub(r"\A(# .*\n)+", "", text)  # above a unit's table: its key and its record
    pd.read_csv(io.StringIO(table), sep="\t" if path.suffix == ".tsv" else ",")


def _read_text(path: Path) -> None:
    path.read_text("utf-8")


def _read_lines(path: Path) -> None:
    for line in path.read_text("utf-8").splitlines():
        strict_json(line)


def _read_picture(path: Path) -> None:
    with Image.open(path) as picture:
        picture.load()


READERS: dict[str, Callable[[Path], object]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".json": lambda path: strict_json(path.read_bytes()),
    ".jsonl": _read_lines,
    ".parquet": pd.read_parquet,
    ".png": _read_picture,
    ".svg": ElementTree.parse,
    ".npz": read_arrays,
    ".safetensors": load_file,
    ".ipynb": lambda path: nbformat.validate(nbformat.read(path, as_version=4)),
    ".md": _read_text,
    ".txt": _read_text,
    ".log": _read_text,
}


def fault_of(path: Path) -> str:
    """Why the reader of its kind refuses a file; empty where it is whole."""
    if path.suffix not in READERS:
        return f"no reader for {path.suffix}"
    try:
        READERS[path.suffix](path)
    except Exception as error:  # each reader has errors of its own for a file that was cut
        return type(error).__name__
    return ""


def content(path: Path) -> object:
    """What is compared of a file: its bytes, without what tells the time."""
    if path.name == "run.json":
        about = json.loads(path.read_text())
        of_the_clock = ("started", "ended", "seconds", "cpu_seconds")
        return {k: v for k, v in about.items() if k not in of_the_clock}
    if path.suffix == ".ipynb":
        notebook = nbformat.read(path, as_version=4)
        strip_volatile(notebook)
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                if output.output_type == "stream":
                    output["text"] = _FORECAST.sub("", output.text)
            if "outputs" in cell:
                cell["outputs"] = [o for o in cell.outputs if o.get("text") != ""]
        return nbformat.writes(notebook)
    return path.read_bytes()


def is_temporary(path: Path) -> bool:
    """Whether a file bears a name that no reader looks for.

    >>> [is_temporary(Path(n)) for n in (".a.csv.17.part", "manifest.json.part", "a.csv", ".lock")]
    [True, True, False, False]
    """
    name = path.name
    return name != ".lock" and (name[0] == "." or name.endswith(".part") or name[:3] == "tmp")


def results(folder: Path) -> set[str]:
    """The results below a folder that were begun or finished, by their final names."""
    names = (_PART.sub(r"\1", path.name).removesuffix(".part") for path in _files(folder))
    return {name for name in names if name[0] != "." and not _OF_THE_RUNNER.fullmatch(name)}


def phase_of(folder: Path, marks: Mapping[str, float]) -> str:
    """In which phase a stage was killed, by how far it was and what lies in its folder."""
    if "kernel" not in marks:
        return "starting"
    if "opened" not in marks:
        return "importing"
    if any(_PART.fullmatch(path.name) for path in _files(folder)):
        return "writing"
    is_closing = any((folder / name).exists() for name in (MANIFEST, PENDING))
    return "closing" if is_closing else "computing"


def half_written(here: Path, undisturbed: Path) -> list[str]:
    """Files under a final name that are not whole, or not as in the undisturbed run."""
    found = []
    for path in _files(here):
        name = path.relative_to(here)
        if path.name in (".lock", "run.log") or is_temporary(path):
            continue
        if fault := fault_of(path):
            found.append(f"{name} ({fault})")
        elif not _OF_THE_RUNNER.fullmatch(path.name) and not _are_equal(path, undisturbed / name):
            found.append(f"{name} (differs)")
    return sorted(found)


def units(folder: Path) -> dict[str, tuple[int, int]]:
    """The finished units below a folder by name, with what changes when one is written again."""
    paths = (p for p in _files(folder) if "units" in p.parts and not is_temporary(p))
    return {str(p.relative_to(folder)): (p.stat().st_ino, p.stat().st_mtime_ns) for p in paths}


def left_over(folder: Path) -> list[str]:
    """The temporary files below a folder."""
    return sorted(str(p.relative_to(folder)) for p in _files(folder) if is_temporary(p))


def differing(here: Path, undisturbed: Path, last: str) -> list[str]:
    """Files of a study, up to a stage, that differ or that only one side has."""
    names = {
        path.relative_to(folder)
        for folder in (here, undisturbed)
        for path in _files(folder)
        if path.name not in (".lock", "run.log")
    }
    names = {name for name in names if name.parts[0] <= last}
    return sorted(str(n) for n in names if not _are_equal(here / n, undisturbed / n))


def _are_equal(mine: Path, theirs: Path) -> bool:
    return mine.is_file() and theirs.is_file() and content(mine) == content(theirs)


def _files(folder: Path) -> Iterator[Path]:
    """The files below a folder that a run may be writing into."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != _CLAIMS]
        for name in names:
            yield Path(path, name)
