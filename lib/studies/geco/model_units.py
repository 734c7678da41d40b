"""The models of the study: how each is trained, trained once, and found again."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import pandas as pd

from ...core.contents import by_content
from ...core.errors import TouchstoneError
from ...core.stage import MANIFEST, Stage
from ...core.units import Units
from ...models.load import read_trained, save_trained
from ...models.schemes import scheme_named
from ...models.text_model import TextModel
from ...models.weights import read_recipe, weights_fit
from ...training.classifier import Settings
from ...training.transfer import Trainer


def settings_by_scheme(
    schemes: Sequence[str], dropout: float, **by_scheme: Mapping[str, Any]
) -> dict[str, Settings | None]:
    """The training settings of each scheme, from parameters that give one value per scheme.

    >>> tables = {"epochs": {"C": 3}, "lr": {"C": 0.1}, "batch_size": {"C": 8}}
    >>> found = settings_by_scheme(["ZS", "C"], 0.0, **tables)
    >>> found["ZS"], found["C"].epochs
    (None, 3)

    Returns:
        Settings by scheme; None where nothing is trained.

    Raises:
        TouchstoneError: for a parameter that has no value for a scheme.
    """
    settings: dict[str, Settings | None] = dict.fromkeys(schemes)
    for name in settings:
        scheme = scheme_named(name)
        if not scheme.trained():
            continue
        if missing := [parameter for parameter in by_scheme if name not in by_scheme[parameter]]:
            raise TouchstoneError(
                f"parameter {missing[0]} has no value for scheme {name}; add one, or leave it out"
            )
        chosen = {parameter: values[name] for parameter, values in by_scheme.items()}
        settings[name] = Settings(dropout=dropout, eps=scheme.adam_eps, **chosen)
    return settings


class Job(NamedTuple):
    """One model of the study: its place in the grid, its rows, and how it is trained (None where
    nothing is).
    """

    dataset: str
    scheme: str  # from here on as `Trainer.train` takes it
    seed: int
    train: pd.DataFrame
    test: pd.DataFrame
    classes: Sequence[str]
    settings: Settings | None


def models_of(values: Mapping[str, Any]) -> pd.DataFrame:
    """The models that parameters ask for, in order: dataset, scheme, seed.

    Without training there is nothing to repeat; of the two-class sets five seeds are enough.
    """
    sets = [(name, values["schemes"]) for name in values["datasets"]]
    sets += [
        (f"{name}_binary", values["binary_schemes"])
        for name in values["datasets"]
        if values["binary_schemes"]
    ]
    return pd.DataFrame(
        [
            (name, scheme, seed)
            for name, schemes in sets
            for scheme in schemes
            for seed in range(_n_seeds(scheme, values))
            if seed < 5 or name in values["datasets"]
        ],
        columns=["dataset", "scheme", "seed"],
    )


def _n_seeds(name: str, values: Mapping[str, Any]) -> int:
    scheme = scheme_named(name)
    if not scheme.trained():
        return 1
    n: int = values["n_seeds_ola" if scheme.is_one_layer else "n_seeds"]
    return n


def run_unit(
    stage: Stage, units: Units, trainer: Trainer, job: Job, need_weights: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Predictions and learning curve of one model of the study, trained now or finished earlier.

    A new model leaves its tensors in `models/<dataset>/<scheme>/seed<k>`. What was finished with
    the same settings and data is read instead; units that a fresh clone finds in the reference come
    without their tensors. `need_weights`: then train them again, and keep the published
    predictions. Tensors that are damaged are trained again, too.
    """
    with units.claim(_name(job)):
        return _run_claimed(stage, units, trainer, job, need_weights)


def _run_claimed(
    stage: Stage, units: Units, trainer: Trainer, job: Job, need_weights: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    name, key, found, curve = _earlier(units, trainer, job)
    folder, stem = stage.path("models") / job.dataset / job.scheme, f"seed{job.seed}"
    is_new, recipe = found is None or curve is None, folder / f"{stem}.json"
    is_wanted = need_weights or recipe.is_file()
    # the published numbers stay; what is trained again gives its tensors only
    if is_new or (is_wanted and not weights_fit(recipe, key)):
        result = trainer.train(*job[1:])
        about = result.recipe | {"unit": key}
        save_trained(folder, stem, about, result.model, result.trained, result.rows)
    if found is None or curve is None:
        # the train accuracy is one number for the model: it stands on every line of the curve
        curve = result.curve.assign(train_accuracy=result.train_accuracy)
        curve = units.save(f"{name}-curve", key, curve)
        found = units.save(f"{name}-predictions", key, result.predictions)
    about = {"dataset": job.dataset, "scheme": job.scheme, "seed": job.seed}
    return found.assign(split="test", **about), curve.assign(**about)


def _name(job: Job) -> str:
    return f"{job.dataset}-{job.scheme}-seed{job.seed}"


def is_finished(units: Units, trainer: Trainer, job: Job) -> bool:
    """Whether `run_unit` would find the numbers of this model instead of training it."""
    *_, found, curve = _earlier(units, trainer, job)
    return found is not None and curve is not None


def _earlier(
    units: Units, trainer: Trainer, job: Job
) -> tuple[str, str, pd.DataFrame | None, pd.DataFrame | None]:
    """A unit's name and key, and its predictions and curve where they are kept."""
    name = _name(job)
    key = units.key(
        **trainer.recipe(job.scheme, job.classes, job.seed),
        settings=asdict(job.settings) if job.settings else None,
        share=trainer.validation_share,  # it decides which rows are learnt from
        data=[digest(job.train), digest(job.test)],
        **by_content(trainer.encoder),
    )
    return name, key, units.load(f"{name}-predictions", key), units.load(f"{name}-curve", key)


def digest(rows: pd.DataFrame) -> str:
    """A short hash of the rows that a model is trained or tested on: sentences and targets."""
    text = rows[["row_id", "sentence_idx", "target", "sentence"]].to_json(orient="values")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def note_trained(stage: Stage, dataset: str, scheme: str, seed: int) -> None:
    """Record the files of a trained model, those that are there, as read.

    A unit depends on them also where it was finished before and no model is loaded.
    """
    for kind in ("json", "safetensors"):
        name = f"models/{dataset}/{scheme_named(scheme).name}/seed{seed}.{kind}"
        stage.note("02_training", name)


def load_trained(stage: Stage, dataset: str, scheme: str, seed: int) -> TextModel:
    """A model as stage 02 left it: the base model with the trained tensors put in.

    Raises TouchstoneError where the stage, the model or its weight file is missing, or the file is
    not the one whose SHA-256 was recorded.
    """
    name = f"models/{dataset}/{scheme_named(scheme).name}/seed{seed}"
    earlier = stage.folder.parent / "02_training"
    if (earlier / MANIFEST).is_file() and not (earlier / f"{name}.json").is_file():
        raise TouchstoneError(
            f"{earlier / name} has no weights here: its numbers came from outputs/reference, or "
            "the weights were deleted. To train it again: "
            f"python -m lib.core.runner {stage.study} --scale {stage.scale} "
            "--stage 02_training -p need_weights true"
        )
    recipe = stage.input("02_training", f"{name}.json")
    trained = "sha256" in read_recipe(recipe)
    return read_trained(
        recipe, stage.input("02_training", f"{name}.safetensors") if trained else None
    )
