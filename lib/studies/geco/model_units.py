"""The models of the study: how each is trained, trained once, and found again."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ...attribution.table import NO_MODEL
from ...core.contents import by_content
from ...core.errors import TouchstoneError
from ...core.made_by import made_by
from ...core.stage import MANIFEST, Stage
from ...core.units import Units
from ...models.load import read_trained, save_trained
from ...models.schemes import scheme_named
from ...models.text_model import TextModel
from ...models.weights import PACKAGED, read_recipe, weights_fit
from ...training.classifier import Settings
from ...training.loop import PartEnded, Parts
from ...training.transfer import Trained, Trainer

# Seconds of a core for one row forward and back: of bert-base, of the packaged encoder (MiniLM),
# and of OLA, whose batches cost next to nothing a row. Where the encoder learns as well it has
# gradients of its own (a quarter more), and a row that is only read has none.
_SECONDS, _LEARNING, _READING = {"bert-base": 0.09, "packaged": 0.016, "OLA": 0.0002}, 1.25, 0.4
MOST_SECONDS = 1800.0  # of one job, predicted

# A unit's name and key, and its predictions and curve where they are kept.
_Earlier = tuple[str, str, pd.DataFrame | None, pd.DataFrame | None]


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

    Without training there is nothing to repeat; of the two-class sets five seeds are enough. Where
    `one_dataset_schemes` names schemes, these are for the last data set alone.
    """
    everywhere = [s for s in values["schemes"] if s not in values.get("one_dataset_schemes", ())]
    last = values["datasets"][-1]
    sets = [
        (name, values["schemes"] if name == last else everywhere) for name in values["datasets"]
    ]
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


def heads_alone(scheme: str) -> bool:
    """Whether only the head learns: over a frozen encoder, which reads each row once."""
    return scheme_named(scheme).trained() == ("head",)


def trained_together(jobs: Sequence[Job]) -> list[list[Job]]:
    """Models in order, those together that are trained together: heads over a frozen encoder, which
    differ in their seed alone, learn side by side.
    """
    found: dict[tuple[str, str, int], list[Job]] = {}
    for job in jobs:
        place = job.dataset, job.scheme, 0 if heads_alone(job.scheme) else job.seed
        found.setdefault(place, []).append(job)
    return list(found.values())


def kind_of(scheme: str, encoder: str) -> str:
    """What a model of a scheme costs: as bert-base, as the packaged encoder, or as OLA."""
    if scheme != NO_MODEL and scheme_named(scheme).is_one_layer:
        return "OLA"
    return "packaged" if encoder in PACKAGED else "bert-base"


def seconds_of_row(scheme: str, encoder: str) -> float:
    """What one row forward and back takes, roughly."""
    return _SECONDS[kind_of(scheme, encoder)]


def seconds_of_training(job: Job, encoder: str, epochs: int, is_last: bool = True) -> float:
    """What so many epochs of a training take, roughly; the last part also predicts the test rows.

    A frozen encoder reads each row once, for all epochs and seeds.
    """
    scheme, n = scheme_named(job.scheme), float(epochs * len(job.train))
    if heads_alone(job.scheme):
        n = _READING * len(job.train)
    elif "encoder" in scheme.trained() and not scheme.is_one_layer:
        n *= _LEARNING
    return (n + is_last * _READING * len(job.test)) * seconds_of_row(job.scheme, encoder)


def epochs_of_part(job: Job, encoder: str) -> int:
    """How many epochs of a training one job takes; 0: the training is short, and one job.

    Rows, scheme and encoder decide, so that every machine has the same parts.
    """
    if job.settings is None or heads_alone(job.scheme):
        return 0
    epochs = job.settings.epochs
    at_most = int(epochs * MOST_SECONDS / seconds_of_training(job, encoder, epochs))
    n = math.ceil(epochs / max(1, at_most))
    return math.ceil(epochs / n) if n > 1 else 0


def run_group(
    stage: Stage,
    units: Units,
    trainer: Trainer,
    jobs: Sequence[Job],
    need_weights: bool = False,
    until: int = 0,
) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Predictions and learning curves of models `trained_together`, made now or found.

    A new model leaves its tensors in `models/<dataset>/<scheme>/seed<k>`. What was finished with
    the same settings and data is read instead; units that a fresh clone finds in the reference come
    without their tensors. `need_weights`: then train them again, and keep the published
    predictions. Tensors that are damaged are trained again, too. Where one of a group is trained
    all are: so a run that was stopped and goes on has the bytes of one that was not.
    """
    with ExitStack() as claims:
        for job in jobs:
            claims.enter_context(units.claim(_name(job)))
        earlier = [_earlier(units, trainer, job) for job in jobs]
        lacking = [
            found is None or curve is None or _lacks_weights(_recipe(stage, job), key, need_weights)
            for job, (_, key, found, curve) in zip(jobs, earlier, strict=True)
        ]
        trained: Iterable[Trained | None] = [None] * len(jobs)
        parts = _parts(stage, trainer, jobs[0], earlier[0][1], until)
        if any(lacking):
            seeds = [job.seed for job in jobs]
            trained = trainer.train_seeds(jobs[0].scheme, seeds, *jobs[0][3:], parts)
        try:
            found = [
                _kept(stage, units, job, before, result if lacks else None)
                for job, before, result, lacks in zip(jobs, earlier, trained, lacking, strict=True)
            ]
        except PartEnded:
            return []
        if parts:
            parts.path.unlink(missing_ok=True)
        return found


def _parts(stage: Stage, trainer: Trainer, job: Job, key: str, until: int) -> Parts | None:
    """Where a long training keeps its checkpoint, which is of this question and this code alone."""
    if not (epochs := epochs_of_part(job, trainer.encoder)):
        return None
    mark = json.dumps([key, made_by(stage.study, stage.stage)])
    return Parts(stage.path(f".checkpoints/{_name(job)}.safetensors"), mark, epochs, until)


def _recipe(stage: Stage, job: Job) -> Path:
    return stage.path("models") / job.dataset / job.scheme / f"seed{job.seed}.json"


def _lacks_weights(recipe: Path, key: str, need_weights: bool) -> bool:
    return (need_weights or recipe.is_file()) and not weights_fit(recipe, key)


def _kept(
    stage: Stage, units: Units, job: Job, earlier: _Earlier, result: Trained | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A model's numbers, those of before if there are any; what was trained leaves its tensors."""
    name, key, found, curve = earlier
    if result is not None:
        recipe, about = _recipe(stage, job), result.recipe | {"unit": key}
        save_trained(recipe.parent, recipe.stem, about, result.model, result.trained, result.rows)
        # the published numbers stay; what is trained again gives its tensors only
        if found is None or curve is None:
            # the train accuracy is one number for the model: it stands on every line of the curve
            curve = result.curve.assign(train_accuracy=result.train_accuracy)
            curve = units.save(f"{name}-curve", key, curve)
            found = units.save(f"{name}-predictions", key, result.predictions)
    assert found is not None and curve is not None
    place = {"dataset": job.dataset, "scheme": job.scheme, "seed": job.seed}
    return found.assign(split="test", **place), curve.assign(**place)


def _name(job: Job) -> str:
    return f"{job.dataset}-{job.scheme}-seed{job.seed}"


def is_finished(units: Units, trainer: Trainer, job: Job) -> bool:
    """Whether `run_group` would find the numbers of this model instead of training it."""
    *_, found, curve = _earlier(units, trainer, job)
    return found is not None and curve is not None


def _earlier(units: Units, trainer: Trainer, job: Job) -> _Earlier:
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
