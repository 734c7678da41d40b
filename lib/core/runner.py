"""The stage runner: each stage's notebook through papermill, finished whole or not at all.

    python -m lib.core.runner STUDY --scale small       all stages; unchanged ones are skipped
    python -m lib.core.runner STUDY --scale small --stage 03_attribution --only-method LIME --force
    python -m lib.core.runner plan STUDY --scale cpu    what would run, and why

A stage is complete when its folder holds `manifest.json`. The notebook removes it when it opens its
stage; the runner writes it as its very last act, after the executed notebook has its final name.
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .alias import also_called
from .arithmetic import in_force, variables
from .contents import find_again, fingerprint
from .errors import TouchstoneError, did_you_mean
from .expected import expected_minutes
from .files import parse_yaml, save_json, sha256_of, sha256_of_tree, write_atomic
from .jobs import Listing, run_all
from .made_by import MAKERS, imported_code, is_strict, package_versions
from .notebooks import find_notebooks, find_studies, fold_bars, read_notebook
from .parameters import (
    at_least_one,
    check_params,
    check_together,
    notebook_parameters,
    read_params,
    read_ranges,
    study_parameters,
)
from .paths import IS_INSTALLED, PACKAGE, ROOT, home, outputs_root
from .stage import MANIFEST, PENDING, hold, read_manifest
from .warm import WarmKernels, kernel_manager, warm_kernels

_SOURCE_PART, _EXECUTED_PART = ".source.part.ipynb", ".executed.part.ipynb"
_FAILED, _LOG = "failed.ipynb", "failed.log"
_HISTORY = ("runs.csv", "run_verdicts.csv")  # what earlier runs found is no input of the next
_SAFE = "finished stages and units are safe"
_MACHINE = {  # what the machine can do to a run, by what the error says
    "KeyboardInterrupt": "interrupted",
    r"Errno 28|No space left": "the disk is full: make room",
    r"Errno 27|File too large": "a file may not grow so large here: raise the limit (ulimit -f)",
    r"Errno 30|Errno 13|Read-only|PermissionError": "the folder may not be written to: allow it, "
    "or set TOUCHSTONE_OUTPUTS to another",
    r"DeadKernelError|MemoryError|failed to map segment|Errno 12": "the machine most likely ran "
    "out of memory: close other programs, or lower n_threads and the batch sizes",
    r"Kernel didn't respond|Kernel died before": "no kernel could be reached: it is spoken to over "
    "127.0.0.1, so allow connections there, or wait until the machine is less busy",
}
# Notebooks import `lib`. An installed package is called `touchstone`: its kernels are told so.
_ALIAS = f"__import__({also_called.__module__!r}, fromlist=['*']).also_called('lib')"
_AS_LIB = [f"--IPKernelApp.exec_lines={_ALIAS}"] if IS_INSTALLED else []


@dataclass(frozen=True)
class Job:
    """One stage of the repository `root` with its parameters.

    `given` holds those that the file or the command line sets; `all` the notebook's defaults, too.
    """

    root: Path
    notebook: Path
    folder: Path
    given: dict[str, Any]
    all: dict[str, Any]

    @property
    def stage(self) -> str:
        """The stage's name, `03_attribution`."""
        return self.notebook.stem


def plan_jobs(
    study: str,
    scale: str,
    root: Path = ROOT,
    parameters: Mapping[str, Any] | None = None,
) -> list[Job]:
    """The stages of a study in order, with checked parameters; nothing runs.

    Args:
        study: a folder of `notebooks/`.
        scale: a file of `params/<study>/`, without ending.
        root: the repository.
        parameters: values in place of the file's, by name.

    Raises:
        TouchstoneError: the study, the file, a name in it or the type of a value is not right.
    """
    notebooks = find_notebooks(study, root)
    if not notebooks:
        raise TouchstoneError(
            f"there is no study {study!r}{did_you_mean(study, find_studies(root))}"
        )
    file = root / "params" / study / f"{scale}.yaml"
    declared = study_parameters(notebooks)
    ranges = read_ranges(study, root)
    values = check_params(read_params(file), declared, file, ranges)
    if "scale" in declared and values.setdefault("scale", scale) != scale:
        raise TouchstoneError(
            f"{file}: scale is {values['scale']!r}, not the file's own name; write {scale}"
        )
    values |= check_params(parameters or {}, declared, "the command line", ranges)
    source = f"{file} and the command line" if parameters else str(file)
    check_together(declared | values, ranges, source)
    jobs = []
    for notebook in notebooks:
        defaults = notebook_parameters(notebook)
        given = {name: values[name] for name in defaults if name in values}
        folder = outputs_root() / study / scale / notebook.stem
        # Through JSON, for that is how a manifest says them.
        jobs.append(Job(root, notebook, folder, given, json.loads(json.dumps(defaults | given))))
    return jobs


def why_run(job: Job) -> str:
    """Why a stage must run; empty where inputs, parameters, code, versions, results are as was."""
    if not (job.folder / MANIFEST).is_file():
        return "not complete yet"
    if (manifest := read_manifest(job.folder / MANIFEST)) is None:
        return f"{MANIFEST} is damaged"
    made_by = manifest.get("made_by", {})
    # A notebook that ran without the runner leaves neither.
    if not made_by or not (job.folder / f"{job.stage}.ipynb").is_file():
        return "last run by hand"
    if changed := [part for part, sha256 in _code(job).items() if made_by.get(part) != sha256]:
        return f"{', '.join(changed)} changed"
    before, now = manifest["versions"], package_versions()
    if changed := [name for name in MAKERS if before.get(name) != now.get(name)]:
        return f"versions changed: {', '.join(changed)}"
    before, now = (  # as JSON, for in Python 1 == 1.0 == True
        {name: json.dumps(value, sort_keys=True) for name, value in parameters.items()}
        for parameters in (manifest["parameters"], job.all)
    )
    if changed := sorted(name for name in before | now if before.get(name) != now.get(name)):
        # With values, for what was given with -p and is not given again is lost.
        values = ([str(all_.get(name))[:60] for all_ in (before, now)] for name in changed)
        moves = (f"{name} ({' -> '.join(pair)})" for name, pair in zip(changed, values))
        return f"parameters changed: {', '.join(moves)}"
    recorded = [
        *(("input", n, job.folder.parent / n, sha256) for n, sha256 in manifest["inputs"].items()),
        *(("input", n, find_again(n), sha256) for n, sha256 in manifest["externals"].items()),
        *(("result", n, job.folder / n, f["sha256"]) for n, f in manifest["files"].items()),
    ]
    for kind, name, path, sha256 in recorded:
        if not path.exists() or fingerprint(path) != sha256:
            return f"{kind} changed: {name}"
    if is_strict() and manifest.get("reused"):
        return "it reused published units"
    return ""


def run_job(job: Job, label: str, kernels: WarmKernels | None = None) -> None:
    """Run one stage, under a label for its bar, in a kernel that is new or a fork of `kernels`.

    Raises:
        TouchstoneError: it failed, or did not close; `failed.ipynb` and `failed.log` are kept.
    """
    import nbformat  # here, so that a plan costs nobody the import

    code = _code(job)  # as it is now, whatever somebody edits during the run
    job.folder.mkdir(parents=True, exist_ok=True)
    source, executed = job.folder / _SOURCE_PART, job.folder / _EXECUTED_PART
    nbformat.write(read_notebook(job.notebook), source)
    for left_over in (executed, job.folder / PENDING):  # a killed run may have left them
        left_over.unlink(missing_ok=True)
    try:
        _execute(source, executed, job, label, kernels)
        notebook = nbformat.read(executed, as_version=4)
        fold_bars(notebook)
        manifest = _pending_manifest(job)
    except (Exception, KeyboardInterrupt) as error:
        raise _keep_failure(job, executed, error) from None
    finally:
        source.unlink(missing_ok=True)
    write_atomic(job.folder / f"{job.stage}.ipynb", nbformat.writes(notebook) + "\n")
    for left_over in (executed, job.folder / _FAILED, job.folder / _LOG):
        left_over.unlink(missing_ok=True)
    save_json(manifest | {"made_by": code}, job.folder / PENDING)
    os.replace(job.folder / PENDING, job.folder / MANIFEST)  # now the stage is complete


def run_jobs(
    jobs: Sequence[Job],
    stages: Sequence[str] = (),
    force: bool = False,
    prepare: Callable[[Job], None] | None = None,
) -> None:
    """Run jobs in order, and say where the results are.

    Args:
        jobs: all stages of a study at a scale.
        stages: the names of those to run, or none for all.
        force: run what is unchanged, too.
        prepare: called before a stage that runs.

    Raises:
        TouchstoneError: a stage failed; later ones have not been begun.
    """
    log = jobs[0].folder.parent / "run.log"
    log.parent.mkdir(parents=True, exist_ok=True)

    def say(line: str) -> None:
        print(line, flush=True)
        with log.open("a") as file:
            file.write(f"{line}\n")

    study, scale = jobs[0].notebook.parent.name, jobs[0].folder.parent.name
    minutes = expected_minutes(f"{study} {scale}")
    about = f", about {max(1, round(minutes))} minutes on this machine" if minutes else ""
    say(f"{study} at scale {scale}, {len(jobs)} stages{about}; log: {_short(log)}")
    started = time.monotonic()
    is_ours = jobs[0].root == ROOT or (jobs[0].root / PACKAGE.name).resolve() == PACKAGE
    with warm_kernels(is_ours and len(stages or jobs) > 1) as kernels:
        last = max((i for i, job in enumerate(jobs, 1) if job.stage in stages), default=0)
        for i, job in enumerate(jobs, 1):
            if stages and job.stage not in stages:
                if i < last and (reason := why_run(job)):
                    say(f"note: {job.stage} is not up to date ({reason}); it is used as it is")
                continue
            label = f"[{i}/{len(jobs)}] {job.stage}"
            reason = "forced" if force else why_run(job)
            if not reason:
                say(f"{label}: unchanged, skipped")
                continue
            say(f"{label}: running ({reason})")
            before = time.monotonic()
            if prepare:
                prepare(job)
            run_job(job, label, kernels)
            say(f"{label}: done in {time.monotonic() - before:.0f} s")
    say(f"\n{time.monotonic() - started:.0f} s in all. Where to look:")
    for what, kind in (("figures", "png"), ("tables", "csv"), ("notebooks", "ipynb")):
        say(f"  {what:<9}  {_where(jobs, kind)}")


def main(
    arguments: Sequence[str] | None = None,
    listing_of: Callable[[str], Listing | None] = lambda study: None,
) -> int:
    """The command line, `sys.argv` by default; returns the exit status.

    `listing_of` gives the list of a study's units, which `--jobs` spreads over processes.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    planning = options.study[0] == "plan" and len(options.study) == 2
    if len(options.study) != 1 and not planning:
        parser.error("name one study")
    try:
        values = {name: parse_yaml(value, f"-p {name}") for name, value in options.parameters}
        if values.get("scale", options.scale) != options.scale:
            raise TouchstoneError(f"-p scale is not for choosing; write --scale {values['scale']}")
        if options.only_method:
            values["methods"] = options.only_method
        jobs = plan_jobs(options.study[-1], options.scale, options.root.resolve(), values)
        known = [job.stage for job in jobs]
        stages = []
        for asked in options.stage:
            named = [name for name in known if asked in (name, name.partition("_")[0])]
            if not named:
                raise TouchstoneError(f"there is no stage {asked!r}{did_you_mean(asked, known)}")
            stages += named
        if options.only_method and not stages:
            raise TouchstoneError(
                "--only-method needs --stage 03_attribution: the later stages compare methods"
            )
        if planning:
            _print_plan([job for job in jobs if not stages or job.stage in stages])
            return 0
        prepare = (
            _in_processes(listing_of(options.study[-1]), options) if options.jobs > 1 else None
        )
        with hold(jobs[0].folder.parent, seconds=0):
            run_jobs(jobs, stages, options.force, prepare)
    except TouchstoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; {_SAFE}: run the same command again to go on", file=sys.stderr)
        return 130
    except OSError as error:
        if not (remedy := _what_to_do(type(error).__name__, str(error))):
            raise
        print(f"error: {error}; {remedy}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="touchstone run", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    add("study", nargs="+", help="a folder of notebooks/; `plan STUDY` only prints what would run")
    add("--scale", default="small", help="a file of params/<study>/ (default: small)")
    add("--stage", action="append", default=[], help="03_attribution or 03 (may be repeated)")
    add("--only-method", action="append", default=[], help="one method (may be repeated)")
    add("-p", dest="parameters", nargs=2, action="append", default=[], help="NAME VALUE, set here")
    add("--force", action="store_true", help="run what is unchanged, too; units are kept")
    add("--jobs", type=at_least_one, default=1, help="compute units in so many processes first")
    add("--root", type=Path, default=ROOT, help="folder with notebooks/, params/, lib/")
    return parser


def _in_processes(listing: Listing | None, options: argparse.Namespace) -> Callable[[Job], None]:
    """What computes a stage's units in several processes, before its notebook reads them."""
    study = options.study[-1]
    if listing is None:
        raise TouchstoneError(f"{study} does not list its units; run it without --jobs")

    def prepare(job: Job) -> None:
        os.environ.setdefault("TOUCHSTONE_PROGRESS", _seconds_between_updates())
        if busy := run_all(listing, (study, options.scale, job.stage), job.all, options.jobs):
            print(f"{busy} units are being computed by another run; the notebook waits for them")

    return prepare


def _execute(
    source: Path, executed: Path, job: Job, label: str, kernels: WarmKernels | None
) -> None:
    """Execute a notebook in a kernel that inherits output root, progress, who ends the manifest."""
    from papermill import execute_notebook  # here, so that a plan and a skip cost nobody the import

    in_terminal, before = sys.stderr.isatty(), dict(os.environ)
    os.environ |= variables(in_force()) | {
        "TOUCHSTONE_OUTPUTS": str(outputs_root()),
        "TOUCHSTONE_RUNNER": "1",
        "TOUCHSTONE_PROGRESS": _seconds_between_updates(),
    }
    try:
        execute_notebook(
            str(source),
            str(executed),
            parameters=job.given,
            kernel_name="python3",
            cwd=str(home() if IS_INSTALLED else job.root),
            progress_bar={"desc": label, "leave": False} if in_terminal else False,
            stderr_file=sys.stderr,
            coalesce_streams=True,
            extra_arguments=["--IPKernelApp.log_level=CRITICAL", *_AS_LIB],
            **({"kernel_manager_class": kernel_manager(kernels)} if kernels else {}),
        )
    finally:
        os.environ.clear()  # whoever called may go on
        os.environ.update(before)


def _seconds_between_updates() -> str:
    return "1" if sys.stderr.isatty() else "60"  # in a log, a line a minute


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
    """Keep the notebook and a log; returns a brief error, with the cell if papermill knows it."""
    cell = f" in cell {error.exec_count}" if hasattr(error, "exec_count") else ""
    name, text = getattr(error, "ename", type(error).__name__), str(getattr(error, "evalue", error))
    trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(getattr(error, "traceback", [])))  # no colours
    lines = [
        f"{job.stage} failed{cell}: {name}: {text}",
        f"parameters: {json.dumps(job.all)}",
        f"by hand: papermill {_short(job.notebook.with_suffix('.ipynb'))} out.ipynb "
        f"-f params/{job.notebook.parent.name}/{job.folder.parent.name}.yaml "
        "--cwd . --log-level ERROR",
        "",
        str(getattr(error, "source", "")),
        "",
        trace,
    ]
    if executed.is_file():
        import nbformat

        notebook = nbformat.read(executed, as_version=4)
        fold_bars(notebook)
        outputs = [output for c in notebook.cells for output in c.get("outputs", [])]
        lines += ["", *(output.text for output in outputs if output.get("name") == "stderr")]
        os.replace(executed, job.folder / _FAILED)
    write_atomic(job.folder / _LOG, "\n".join(lines) + "\n")
    (job.folder / PENDING).unlink(missing_ok=True)
    brief = "\n  ".join(text.strip().splitlines()[:4])
    remedy = _what_to_do(name, text)
    return TouchstoneError(
        f"{job.stage} failed{cell}: {name}: {brief}\n"
        + (f"  {remedy}\n" if remedy else "")
        + f"  kept: {_short(job.folder / _FAILED)} and {_LOG}"
    )


def _what_to_do(name: str, text: str) -> str:
    """How to go on after what the machine did to a run, and what is safe; empty for other errors.

    Args:
        name: of the error's type.
        text: what it says.

    >>> _what_to_do("ValueError", "x is wrong")
    ''
    """
    again = "run the same command again to go on"
    for pattern, remedy in _MACHINE.items():
        if re.search(pattern, f"{name}: {text}"):
            return f"{remedy}; {_SAFE}: {again}"
    return ""


def _code(job: Job) -> dict[str, str]:
    return {
        "notebook": sha256_of(job.notebook),
        "lib": imported_code(job.notebook, PACKAGE if IS_INSTALLED else job.root / "lib"),
        "material": sha256_of_tree(job.notebook.parent / "material", without=_HISTORY),
    }


def _print_plan(jobs: Sequence[Job]) -> None:
    earlier = ""
    for job in jobs:
        reason = why_run(job) or (f"after {earlier}, if its results change" if earlier else "")
        print(f"{job.stage:<20} {f'run: {reason}' if reason else 'unchanged, skip'}")
        earlier = earlier or (job.stage if reason else "")


def _where(jobs: Sequence[Job], kind: str) -> str:
    """The files of a kind in all stage folders, as one pattern for a shell, and their number."""
    files = [p for job in jobs for p in job.folder.glob(f"[!.]*.{kind}") if p.name != _FAILED]
    folders = sorted({path.parent.name for path in files})
    where = folders[0] if len(folders) == 1 else f"{{{','.join(folders)}}}"
    return f"{_short(jobs[0].folder.parent)}/{where}/*.{kind}  ({len(files)})" if files else "none"


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    sys.exit(main())
