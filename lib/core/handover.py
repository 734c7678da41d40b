"""Start a stage at scale small without those before it, from what is committed of them.

Tables stand in outputs/reference. What else a later stage reads of stages 02 and 03 (explanations,
predictions, small models) lies there in `handover/`, packed, where it is small; `PACKED` names the
stages that can be started so. Stage 01 trains nothing and is run in its place. Models of megabytes
are not committed: who needs them is told what has to be trained, and how long it takes. At scale
lesson all that a stage reads is made in its place, in a minute or two.
"""

import lzma
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from .errors import TouchstoneError, did_you_mean
from .expected import expected_minutes
from .files import atomic_path, parse_json, save_json
from .paths import ROOT, reference_dir
from .runner import Job, plan_jobs, run_job, run_jobs
from .stage import MANIFEST, hold, open_stage, read_manifest

SCALE, LESSON = "small", "lesson"
PACKED = {
    "geco": "appendix_what_models_use",  # reads what stage 04 reads, and a model
    "lm_saliency": "04_metrics",
    "implicit_bias": "04_metrics",
}
_PIECE = 450_000  # bytes; what is committed has at most 500 kB a file
_SECONDS = "seconds.json"  # of each stage of the run that was packed


def prepare_stage(study: str, stage: str) -> Iterator[str]:
    """Put what a stage reads where it reads it, saying for each earlier stage what was done.

    Args:
        study: a folder of `notebooks/`.
        stage: the stage to start, `04_metrics` or `04`.

    Yields:
        A line for each earlier stage whose files it needs.

    Raises:
        TouchstoneError: there is no such study or stage, or something has to be trained first; it
            says what, how long it takes, and the command.
    """
    jobs = {job.stage: job for job in plan_jobs(study, SCALE)}
    name = _named(stage, jobs)
    first, plan = next(iter(jobs)), _plan(study, name, jobs)
    if lacking := [earlier for earlier in jobs if plan.get(earlier) and earlier != first]:
        missing = plan[lacking[0]]
        raise TouchstoneError(
            f"{name} reads {len(missing)} files of {lacking[0]} that are not committed "
            f"({missing[0]}, for example), so these stages have to be run first: "
            + ", ".join(f"{earlier} ({_minutes(study, earlier)})" for earlier in lacking)
            + f"; `touchstone run {study} --stage {lacking[0]}`, and so on, or all of them: "
            f"`touchstone run {study}`; cut down for a lesson, `touchstone start {study} "
            f"{stage} --scale {LESSON}` makes all that {name} reads"
        )
    for earlier in (known for known in jobs if known in plan):
        if _has(jobs[earlier], _needed(study, name, earlier)):
            yield f"{earlier}: there already"
        elif plan[earlier]:
            yield f"{earlier}: is run now; it trains nothing"
            with hold(jobs[earlier].folder.parent, seconds=0):
                run_job(jobs[earlier], earlier)
        else:
            _restore(jobs[earlier])
            yield f"{earlier}: from {_short(reference_dir(study, SCALE))}"


def prepare_lesson(study: str, stage: str) -> str:
    """Run the earlier stages that a stage reads at scale lesson, those that are not up to date.

    Args:
        study: a folder of `notebooks/`.
        stage: the stage to start, `04_metrics` or `04`.

    Returns:
        The whole name of the stage.

    Raises:
        TouchstoneError: there is no such study or stage, or an earlier one failed.
    """
    jobs = {job.stage: job for job in plan_jobs(study, LESSON)}
    name = _named(stage, jobs)
    read = [name]
    for earlier in reversed(list(takewhile(name.__ne__, jobs))):
        if any(_needed(study, reader, earlier) for reader in read):
            read.append(earlier)
    if len(read) > 1:
        with hold(jobs[name].folder.parent, seconds=0):
            run_jobs(list(jobs.values()), [stage for stage in jobs if stage in read[1:]])
    return name


def pack(study: str, run: Path) -> list[Path]:
    """Pack what `PACKED[study]` reads of a finished run and is not committed as a table, and note
    how long each stage took.

    Args:
        study: a folder of `notebooks/`.
        run: the run's folder, outputs/<study>/small.

    Returns:
        The packed files.

    Raises:
        TouchstoneError: the run is not complete.
    """
    folder = reference_dir(study, SCALE) / "handover"
    for old in folder.rglob("*.xz.*"):
        old.unlink()
    stages = [job.stage for job in plan_jobs(study, SCALE)]
    if missing := [name for name in stages if not (run / name / MANIFEST).is_file()]:
        raise TouchstoneError(f"{missing[0]} is not complete in {run}; run `make {study}` first")
    logs = {name: run / name / "run.json" for name in stages}
    seconds = {
        name: parse_json(log.read_text(), str(log), "run the stage again")["seconds"]
        for name, log in logs.items()
    }
    save_json(seconds, folder / _SECONDS)
    if study not in PACKED:
        return []
    written = []
    manifest = read_manifest(run / PACKED[study] / MANIFEST) or {"inputs": {}}
    for name in manifest["inputs"]:
        if name.startswith("01_") or (reference_dir(study, SCALE) / name).is_file():
            continue
        packed = lzma.compress((run / name).read_bytes(), preset=9 | lzma.PRESET_EXTREME)
        for i, at in enumerate(range(0, len(packed), _PIECE)):
            written.append(folder / f"{name}.xz.{i}")
            with atomic_path(written[-1]) as part:
                part.write_bytes(packed[at : at + _PIECE])
    return written


def _named(stage: str, jobs: Mapping[str, Job]) -> str:
    """The whole name of a stage that is given by name or number."""
    for known in jobs:
        if stage in (known, known.partition("_")[0]):
            return known
    raise TouchstoneError(f"there is no stage {stage!r}{did_you_mean(stage, jobs)}")


def _plan(study: str, stage: str, jobs: Mapping[str, Job]) -> dict[str, list[str]]:
    """The earlier stages that a stage needs, each with those of its files that are neither there
    nor committed. Where one has to be run, it needs earlier stages itself.
    """
    plan: dict[str, list[str]] = {}
    to_do = [stage]
    while to_do:
        reader = to_do.pop()
        for earlier in takewhile(reader.__ne__, jobs):
            needed = _needed(study, reader, earlier)
            if not needed or earlier in plan:
                continue
            is_there = _has(jobs[earlier], needed)
            committed = set(_committed(study, earlier))
            plan[earlier] = [] if is_there else [n for n in needed if n not in committed]
            if plan[earlier]:
                to_do.append(earlier)
    return plan


def _has(job: Job, names: Sequence[str]) -> bool:
    """Whether a stage is complete here and left these files."""
    manifest = read_manifest(job.folder / MANIFEST) if (job.folder / MANIFEST).is_file() else None
    return manifest is not None and set(names) <= set(manifest["files"])


def _needed(study: str, reader: str, earlier: str) -> list[str]:
    """The files of an earlier stage that a stage reads, as the committed run recorded them."""
    path = reference_dir(study, SCALE) / reader / MANIFEST
    manifest = read_manifest(path) if path.is_file() else None
    if manifest is None:
        raise TouchstoneError(f"{path} is not there; a stage is started alone in a checkout only")
    parts = (name.partition("/") for name in manifest["inputs"])
    return [name for of_stage, _, name in parts if of_stage == earlier]


def _pieces(study: str, stage: str, name: str) -> list[Path]:
    path = reference_dir(study, SCALE) / "handover" / stage / name
    return sorted(path.parent.glob(f"{path.name}.xz.*"), key=lambda piece: int(piece.suffix[1:]))


def _committed(study: str, stage: str) -> list[str]:
    """The files of a stage that are committed, as tables or packed."""
    path = reference_dir(study, SCALE) / stage / MANIFEST
    manifest = read_manifest(path) if path.is_file() else None
    names = manifest["files"] if manifest else {}
    return [n for n in names if (path.parent / n).is_file() or _pieces(study, stage, n)]


def _restore(job: Job) -> None:
    """Write a stage's committed files where it would have written them, and close it."""
    study = job.notebook.parent.name
    stage = open_stage(study, SCALE, job.stage)
    for name in _committed(study, job.stage):
        table = reference_dir(study, SCALE) / job.stage / name
        packed = b"".join(piece.read_bytes() for piece in _pieces(study, job.stage, name))
        with atomic_path(stage.path(name)) as part:
            part.write_bytes(lzma.decompress(packed) if packed else table.read_bytes())
    stage.close(job.all)


def _minutes(study: str, stage: str) -> str:
    """How long a stage takes, as its share of the study's measured time."""
    path = reference_dir(study, SCALE) / "handover" / _SECONDS
    if not path.is_file():
        return "minutes"
    seconds = parse_json(path.read_text(), str(path), "pack the hand-over again")
    whole = expected_minutes(f"{study} {SCALE}") or sum(seconds.values()) / 60
    minutes = max(1, round(whole * seconds[stage] / sum(seconds.values())))
    return f"about {minutes} minute{'s' * (minutes > 1)}"


def _short(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
