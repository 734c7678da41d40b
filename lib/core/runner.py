"""The stage runner: each stage's notebook through papermill, finished whole or not at all.

    python -m lib.core.runner geco --scale small                        all five stages; unchanged ones are skipped
    python -m lib.core.runner geco --scale small --stage 03_attribution --only-method LIME --force
    python -m lib.core.runner plan geco --scale cpu                     what would run, and why

A stage is complete when its folder holds `manifest.json`. The notebook removes it when it opens its stage,
and the runner writes it as its very last act, after the executed notebook has its final name.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml
from filelock import FileLock, Timeout

from lib.core.alias import also_called
from lib.core.arithmetic import in_force, variables
from lib.core.errors import TouchstoneError, did_you_mean
from lib.core.files import save_json, sha256_of, sha256_of_tree, write_atomic
from lib.core.notebooks import find_notebooks, fold_bars, read_notebook
from lib.core.parameters import check_params, notebook_parameters, read_params, study_parameters
from lib.core.paths import IS_INSTALLED, PACKAGE, ROOT, home, outputs_root
from lib.core.stage import MANIFEST, PENDING, locate_external

SOURCE_PART, EXECUTED_PART = ".source.part.ipynb", ".executed.part.ipynb"
FAILED, LOG = "failed.ipynb", "failed.log"
# Notebooks import `lib`. An installed package is called `touchstone`: its kernels are told so.
_ALIAS = f"__import__({also_called.__module__!r}, fromlist=['*']).also_called('lib')"
_AS_LIB = [f"--IPKernelApp.exec_lines={_ALIAS}"] if IS_INSTALLED else []


@dataclass(frozen=True)
class Job:
    """One stage with the parameters that it gets: `given` by the file, `all` with the notebook's defaults."""

    root: Path
    notebook: Path
    folder: Path
    given: dict[str, Any]
    all: dict[str, Any]

    @property
    def stage(self) -> str:
        """The stage's name, `03_attribution`."""
        return self.notebook.stem

    @property
    def executed(self) -> Path:
        """Where the executed notebook ends up."""
        return self.folder / f"{self.stage}.ipynb"


def plan_jobs(
    study: str,
    scale: str,
    root: Path = ROOT,
    methods: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
) -> list[Job]:
    """The stages of a study in order; all parameters, those given in place of the file's too, are checked first."""
    notebooks = find_notebooks(study, root)
    if not notebooks:
        known = [p.name for p in (root / "notebooks").glob("*") if find_notebooks(p.name, root)]
        raise TouchstoneError(f"there is no study {study!r}{did_you_mean(study, known)}")
    file = root / "params" / study / f"{scale}.yaml"
    declared = study_parameters(notebooks)
    values = check_params(read_params(file), declared, file)
    if "scale" in declared and values.setdefault("scale", scale) != scale:
        raise TouchstoneError(
            f"{file}: scale is {values['scale']!r}, not the file's own name; write {scale}"
        )
    values |= check_params(dict(parameters or {}), declared, "-p")
    if methods:
        values |= check_params({"methods": list(methods)}, declared, "--only-method")
    jobs = []
    for notebook in notebooks:
        defaults = {p.name: p.default for p in notebook_parameters(notebook).values()}
        given = {name: values[name] for name in defaults if name in values}
        folder = outputs_root() / study / scale / notebook.stem
        jobs.append(Job(root, notebook, folder, given, _as_json(defaults | given)))
    return jobs


def why_run(job: Job) -> str:
    """Why a stage must run; empty where its inputs, parameters, code and results are all unchanged."""
    if not (job.folder / MANIFEST).is_file():
        return "not complete yet"
    manifest = json.loads((job.folder / MANIFEST).read_text())
    made_by = manifest.get("made_by", {})
    if not made_by or not job.executed.is_file():
        return "last run by hand"
    if changed := [part for part, sha256 in _code(job).items() if made_by.get(part) != sha256]:
        return f"{', '.join(changed)} changed"
    before = manifest["parameters"]
    if changed := sorted(
        name for name in before | job.all if before.get(name) != job.all.get(name)
    ):
        return f"parameters changed: {', '.join(changed)}"
    for title, files in _recorded(job, manifest).items():
        for name, (path, sha256) in files.items():
            if not path.is_file() or sha256_of(path) != sha256:
                return f"{title} changed: {name}"
    return ""


def run_job(job: Job, label: str) -> None:
    """Run one stage; on failure keep `failed.ipynb` and `failed.log` and raise an error of a few lines."""
    code = _code(job)
    job.folder.mkdir(parents=True, exist_ok=True)
    source, executed = job.folder / SOURCE_PART, job.folder / EXECUTED_PART
    nbformat.write(read_notebook(job.notebook), source)
    for left_over in (executed, job.folder / PENDING):  # a killed run may have left them
        left_over.unlink(missing_ok=True)
    try:
        with _environment(job):
            _papermill(source, executed, job, label)
        notebook = nbformat.read(executed, as_version=4)
        fold_bars(notebook)
        manifest = _pending_manifest(job)
    except (Exception, KeyboardInterrupt) as error:
        raise _keep_failure(job, executed, error) from None
    finally:
        source.unlink(missing_ok=True)
    write_atomic(job.executed, nbformat.writes(notebook) + "\n")
    for left_over in (executed, job.folder / FAILED, job.folder / LOG):
        left_over.unlink(missing_ok=True)
    save_json(manifest | {"made_by": code}, job.folder / MANIFEST)
    (job.folder / PENDING).unlink()


def run_jobs(jobs: Sequence[Job], stages: Sequence[str] = (), force: bool = False) -> None:
    """Run the jobs (or the chosen stages of them) in order, and skip what is unchanged unless forced."""
    started = time.monotonic()
    for i, job in enumerate(jobs, 1):
        if stages and job.stage not in stages:
            if job.stage < max(stages) and (reason := why_run(job)):
                _say(f"note: {job.stage} is not up to date ({reason}); it is used as it is")
            continue
        label = f"[{i}/{len(jobs)}] {job.stage}"
        reason = "forced" if force else why_run(job)
        if not reason:
            _say(f"{label}: unchanged, skipped")
            continue
        _say(f"{label}: running ({reason})")
        before = time.monotonic()
        run_job(job, label)
        _say(f"{label}: done in {time.monotonic() - before:.0f} s")
    _say(f"\n{time.monotonic() - started:.0f} s in all. Where to look:")
    for what, kind in (("figures", "png"), ("tables", "csv"), ("notebooks", "ipynb")):
        _say(f"  {what:<9}  {_found(jobs, kind)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.core.runner", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "study", nargs="+", help="geco, say; `plan geco` only prints what would run"
    )
    parser.add_argument(
        "--scale", default="small", help="a file of params/<study>/ (default: small)"
    )
    parser.add_argument("--stage", help="one stage, 03_attribution or 03")
    parser.add_argument(
        "--only-method", action="append", default=[], help="one method (may be repeated)"
    )
    parser.add_argument(
        "-p",
        dest="parameters",
        nargs=2,
        action="append",
        default=[],
        help="NAME VALUE, instead of the file's",
    )
    parser.add_argument(
        "--force", action="store_true", help="run what is unchanged, too; units are kept"
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="folder with notebooks/, params/, lib/"
    )
    chosen = parser.parse_args(arguments)
    planning = chosen.study[0] == "plan" and len(chosen.study) == 2
    if len(chosen.study) != 1 and not planning:
        parser.error("name one study")
    try:
        own = {name: yaml.safe_load(value) for name, value in chosen.parameters}
        jobs = plan_jobs(
            chosen.study[-1], chosen.scale, chosen.root.resolve(), chosen.only_method, own
        )
        stages = _stages(jobs, chosen.stage)
        if chosen.only_method and not stages:
            raise TouchstoneError(
                "--only-method needs --stage 03_attribution: the later stages compare methods"
            )
        if planning:
            _print_plan([job for job in jobs if not stages or job.stage in stages])
            return 0
        with _alone(jobs[0].folder.parent):
            run_jobs(jobs, stages, chosen.force)
    except TouchstoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _papermill(source: Path, executed: Path, job: Job, label: str) -> None:
    from papermill import execute_notebook  # here, so that a plan and a skip cost nobody the import

    bar = {"desc": label, "leave": False} if sys.stderr.isatty() else False
    execute_notebook(
        str(source),
        str(executed),
        parameters=job.given,
        kernel_name="python3",
        cwd=str(home() if IS_INSTALLED else job.root),
        progress_bar=bar,
        stderr_file=sys.stderr,
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.log_level=CRITICAL", *_AS_LIB],
    )


@contextmanager
def _environment(job: Job) -> Iterator[None]:
    """What the kernel inherits: output root, progress (once a minute in a log), who finishes the manifest."""
    before = dict(os.environ)
    os.environ |= variables(in_force()) | {
        "TOUCHSTONE_OUTPUTS": str(outputs_root()),
        "TOUCHSTONE_RUNNER": "1",
        "TOUCHSTONE_PROGRESS": "1" if sys.stderr.isatty() else "60",
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise TouchstoneError(
            f"another run is writing into {folder}; wait for it, or stop it"
        ) from None


def _pending_manifest(job: Job) -> dict[str, Any]:
    if not (job.folder / PENDING).is_file():
        raise TouchstoneError(
            f"{job.notebook.name} ended without stage.close(...); make that its last cell"
        )
    manifest: dict[str, Any] = json.loads((job.folder / PENDING).read_text())
    for name, value in manifest["parameters"].items():
        if job.all.get(name, value) != value:
            raise TouchstoneError(
                f"{job.notebook.name} was given {name} = {job.all[name]!r} and closed with "
                f"{value!r}; a notebook must not overwrite its parameters"
            )
    return manifest


def _keep_failure(job: Job, executed: Path, error: BaseException) -> TouchstoneError:
    """Keep the notebook and a log of what went wrong, and say it in a few lines."""
    cell = f" in cell {error.exec_count}" if hasattr(error, "exec_count") else ""
    name, text = getattr(error, "ename", type(error).__name__), str(getattr(error, "evalue", error))
    trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(getattr(error, "traceback", [])))
    lines = [
        f"{job.stage} failed{cell}: {name}: {text}",
        f"parameters: {json.dumps(job.all)}",
        f"by hand: papermill {_short(job.notebook.with_suffix('.ipynb'))} out.ipynb "
        f"-f params/{job.notebook.parent.name}/{job.folder.parent.name}.yaml --cwd .",
        "",
        str(getattr(error, "source", "")),
        "",
        trace,
    ]
    if executed.is_file():
        lines += ["", *_stderr_of(executed)]
        os.replace(executed, job.folder / FAILED)
    write_atomic(job.folder / LOG, "\n".join(lines) + "\n")
    (job.folder / PENDING).unlink(missing_ok=True)
    brief = "\n  ".join(text.strip().splitlines()[:4])
    kept = _short(job.folder / FAILED)
    return TouchstoneError(f"{job.stage} failed{cell}: {name}: {brief}\n  kept: {kept} and {LOG}")


def _stderr_of(executed: Path) -> list[str]:
    notebook = nbformat.read(executed, as_version=4)
    fold_bars(notebook)
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    return [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"]


def _code(job: Job) -> dict[str, str]:
    return {
        "notebook": sha256_of(job.notebook),
        "lib": sha256_of_tree(PACKAGE if IS_INSTALLED else job.root / "lib", "**/*.py"),
        "material": sha256_of_tree(job.notebook.parent / "material"),
    }


def _recorded(job: Job, manifest: dict[str, Any]) -> dict[str, dict[str, tuple[Path, str]]]:
    inputs = {
        name: (job.folder.parent / name, sha256) for name, sha256 in manifest["inputs"].items()
    }
    externals = {
        name: (locate_external(name), sha256) for name, sha256 in manifest["externals"].items()
    }
    files = {
        name: (job.folder / name, about["sha256"]) for name, about in manifest["files"].items()
    }
    return {"input": inputs | externals, "result": files}


def _stages(jobs: Sequence[Job], wanted: str | None) -> list[str]:
    known = [job.stage for job in jobs]
    found = [stage for stage in known if wanted in (stage, stage.partition("_")[0])]
    if wanted and not found:
        raise TouchstoneError(f"there is no stage {wanted!r}{did_you_mean(wanted, known)}")
    return found


def _print_plan(jobs: Sequence[Job]) -> None:
    earlier = ""
    for job in jobs:
        reason = why_run(job) or (f"after {earlier}, if its results change" if earlier else "")
        _say(f"{job.stage:<20} {f'run: {reason}' if reason else 'unchanged, skip'}")
        earlier = earlier or (job.stage if reason else "")


def _found(jobs: Sequence[Job], kind: str) -> str:
    """The files of a kind in all stage folders, as one pattern that a shell understands, and their number."""
    files = [
        p
        for job in jobs
        for p in job.folder.glob(f"*.{kind}")
        if p.name != FAILED and p.name[0] != "."
    ]
    folders = sorted({p.parent.name for p in files})
    where = folders[0] if len(folders) == 1 else f"{{{','.join(folders)}}}"
    return f"{_short(jobs[0].folder.parent)}/{where}/*.{kind}  ({len(files)})" if files else "none"


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(values)))


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
