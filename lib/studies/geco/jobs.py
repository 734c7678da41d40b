"""GECO's units as jobs: each trained model; each explained one, by method. Long ones in parts."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ...core.files import load_parquet
from ...core.jobs import Job
from ...core.seeds import pick_device, set_up
from ...core.stage import Stage
from ...core.units import Units
from ...training.transfer import Trainer
from .corpus import CLASSES, load_dataset
from .grid import explain_group, explain_part, groups_of, parts_of, passes
from .model_units import Job as Model
from .model_units import (
    epochs_of_part,
    kind_of,
    models_of,
    run_group,
    seconds_of_row,
    seconds_of_training,
    settings_by_scheme,
    trained_together,
)
from .units import StageSources, numbers_of, plan_units, settings_by_method

_GIGABYTES = {"bert-base": 3.5, "packaged": 1.2, "OLA": 0.8}


def jobs_of(stage: Stage, values: Mapping[str, Any]) -> Sequence[Job]:
    """The units of stages 02 and 03 under a notebook's parameters; other stages have none."""
    listing = {"02_training": _training, "03_attribution": _explaining}.get(stage.stage)
    if listing is None:
        return []
    set_up(values["seed"], n_threads=1)
    return listing(stage, values)


def _training(stage: Stage, values: Mapping[str, Any]) -> list[Job]:
    device = pick_device(values["device"])
    trainer = Trainer(
        values["encoder"],
        values["encoder_revision"],
        device,
        values["validation_share"],
        values["ola"],
    )
    tables = {name: values[name] for name in ("epochs", "lr", "batch_size", "weight_decay")}
    settings = settings_by_scheme(
        [*values["schemes"], *values["binary_schemes"]], values["dropout"], **tables
    )
    reuse = values["reuse_units"]
    store = Units(stage.study, stage.scale, stage.stage, reuse, digits=4 if reuse else None)
    listed, rows = models_of(values), {}
    for name in listed["dataset"].unique():
        rows[name] = load_dataset(stage, name, "train"), load_dataset(stage, name, "test")
    models = [
        Model(
            name,
            scheme,
            seed,
            *rows[name],
            CLASSES if name in values["datasets"] else CLASSES[:2],
            settings[scheme],
        )
        for name, scheme, seed in listed.itertuples(index=False)
    ]
    jobs = []
    for group in trained_together(models):
        make = partial(run_group, stage, store, trainer, group, values["need_weights"])
        jobs += _of_group(stage, group, values["encoder"], store, make)
    return jobs


def _of_group(
    stage: Stage, group: Sequence[Model], encoder: str, store: Units, make: Callable[..., object]
) -> list[Job]:
    """The job of models that are trained together. Before it come those of the parts of a long
    training, each of which goes on from the one before; the last has the model's own name.
    """
    jobs: list[Job] = []
    model, begun = group[0], 0
    name, kind = f"{model.dataset}-{model.scheme}-seed{model.seed}", kind_of(model.scheme, encoder)
    n_epochs = model.settings.epochs if model.settings else 0
    step = epochs_of_part(model, encoder) or max(1, n_epochs)
    ends = [*range(step, n_epochs, step), n_epochs]
    for number, end in enumerate(ends, 1):
        is_last = end == n_epochs
        seconds = seconds_of_training(model, encoder, end - begun, is_last)
        part = name if is_last else f"{name}_part{number}of{len(ends)}"
        compute = make if is_last else partial(make, until=end)
        needs = tuple(job.key for job in jobs[-1:])
        jobs.append(_job(stage, part, seconds, kind, store, compute, name, needs))
        begun = end
    return jobs


def _explaining(stage: Stage, values: Mapping[str, Any]) -> list[Job]:
    predictions = load_parquet(stage.input("02_training", "predictions.parquet")).query(
        "split == 'test'"
    )
    wanted = predictions.query("dataset in @values['datasets'] and scheme in @values['schemes']")
    sources = StageSources(stage, predictions, values["seed"], pick_device(values["device"]))
    settings = settings_by_method(
        values["explained"],
        values["aggregation"],
        values["normalise_special"],
        numbers_of(values),
        values["method_settings"],
    )
    plan = plan_units(
        wanted[["dataset", "scheme", "seed"]].drop_duplicates(),
        values["methods"],
        settings,
        values["n_base"],
        values["n_base_ola"],
        values["one_seed_methods"],
        values["every_seed_methods"],
        values["one_pass_schemes"],
        values["n_base_of"],
    )
    store = Units(stage.study, stage.scale, stage.stage, values["reuse_units"])
    jobs = []
    for group in groups_of(plan):
        unit = group[0]
        # a shared pass is one pass
        n = max(passes(one) for one in group) if unit.sees_model else 0.0
        kind = kind_of(unit.scheme, values["encoder"])
        seconds = n * len(sources.rows_of(unit)) * seconds_of_row(unit.scheme, values["encoder"])
        model = f"{unit.dataset}-{unit.scheme}-seed{unit.seed}"
        parts = parts_of(unit, sources)
        makes: list[tuple[str, Callable[[], object]]] = [
            (part.units[0].name, partial(explain_part, part, store)) for part in parts
        ]
        for name, make in makes or [(unit.name, partial(explain_group, group, sources, store))]:
            share = seconds / max(1, len(parts))
            jobs.append(_job(stage, name, share, kind, store, make, model))
    return jobs


def _job(
    stage: Stage,
    name: str,
    seconds: float,
    kind: str,
    store: Units,
    compute: Callable[[], object],
    model: str,
    before: tuple[str, ...] = (),
) -> Job:
    needs = ("01_data_generation", "02_training")[: int(stage.stage[:2]) - 1] + before
    key = f"{stage.stage}/{name}"
    return Job(key, stage.stage, needs, seconds, _GIGABYTES[kind], store, compute, model)
