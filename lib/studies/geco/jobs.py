"""GECO's units as jobs: each trained model; each explained one, by method, long ones in parts."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ...attribution.table import NO_MODEL
from ...core.files import load_parquet
from ...core.jobs import Job
from ...core.seeds import pick_device, set_up
from ...core.stage import Stage
from ...core.units import Units
from ...models.schemes import scheme_named
from ...models.weights import PACKAGED
from ...training.transfer import Trainer
from .corpus import CLASSES, load_dataset
from .grid import explain_group, explain_part, groups_of, parts_of, passes
from .model_units import Job as Model
from .model_units import models_of, run_group, settings_by_scheme, trained_together
from .units import StageSources, numbers_of, plan_units, settings_by_method

# Seconds of a core for one row forward and back, and memory: of bert-base, of the packaged encoder
# (MiniLM, a twelfth), and of OLA, whose batches cost next to nothing a row.
_SECONDS = {"bert-base": 0.09, "packaged": 0.008, "OLA": 0.0002}
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
        model = group[0]
        # a frozen encoder reads each row once, for all seeds and epochs
        n_passes = model.settings.epochs if model.settings and model.scheme != "C" else 1
        n = len(model.train) * n_passes + len(model.test)
        compute = partial(run_group, stage, store, trainer, group, values["need_weights"])
        model_name = f"{model.dataset}-{model.scheme}-seed{model.seed}"
        jobs.append(_job(stage, model_name, model.scheme, n, values, store, compute, model_name))
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
    )
    store = Units(stage.study, stage.scale, stage.stage, values["reuse_units"])
    jobs = []
    for group in groups_of(plan):
        unit = group[0]
        # a shared pass is one pass
        n = max(passes(one) for one in group) if unit.sees_model else 0.0
        size, parts = n * len(sources.rows_of(unit)), parts_of(unit, sources)
        model_name = f"{unit.dataset}-{unit.scheme}-seed{unit.seed}"
        for part in parts:
            name, share = part.units[0].name, size / len(parts)
            make = partial(explain_part, part, store)
            jobs.append(_job(stage, name, unit.scheme, share, values, store, make, model_name))
        if not parts:
            group_made = partial(explain_group, group, sources, store)
            jobs.append(
                _job(stage, unit.name, unit.scheme, size, values, store, group_made, model_name)
            )
    return jobs


def _job(
    stage: Stage,
    name: str,
    scheme: str,
    n_rows: float,
    values: Mapping[str, Any],
    store: Units,
    compute: Callable[[], object],
    model: str,
) -> Job:
    """A job of so many rows, each run forward and back once."""
    is_ola = scheme != NO_MODEL and scheme_named(scheme).is_one_layer
    kind = "OLA" if is_ola else "packaged" if values["encoder"] in PACKAGED else "bert-base"
    needs = ("01_data_generation", "02_training")[: int(stage.stage[:2]) - 1]
    seconds = n_rows * _SECONDS[kind]
    key = f"{stage.stage}/{name}"
    return Job(key, stage.stage, needs, seconds, _GIGABYTES[kind], store, compute, model)
