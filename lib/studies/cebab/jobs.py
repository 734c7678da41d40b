"""cebab's units as jobs: what stage 2 trains or reads, and what explainers say of each model."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...core.errors import TouchstoneError
from ...core.jobs import Job
from ...core.seeds import set_up
from ...core.stage import MANIFEST, Stage, read_manifest
from ...core.units import Units
from ...models.weights import PACKAGED
from .asking import Asking
from .registry import explainer_named
from .reviewers import file_of
from .reviews import ASPECTS
from .trainings import FROZEN, Trainings

# Seconds of a core for one review: the packaged encoder (MiniLM) reads it, or reads it and learns
# from it; a masked LM of one layer, whose words cost most, does; a BiLSTM does. Bert-base is twelve
# times as large as MiniLM.
_READ, _LEARN, _MASKED, _LSTM, _LARGE = 0.01, 0.03, 0.03, 0.006, 12
# Seconds of a core to be fitted and asked, a thousand questions, by what an explainer needs.
_ASKED = {"": 1.0, "weights": 2.0, "layers": 4.0, "encoders": 4.0}
_GIGABYTES = {True: 1.5, False: 4.0}  # by whether the encoder is the packaged one


def jobs_of(stage: Stage, values: Mapping[str, Any]) -> Sequence[Job]:
    """The units of stages 02 and 03 under a notebook's parameters; other stages have none."""
    listing = {"02_training": _training, "03_attribution": _asking}.get(stage.stage)
    if listing is None:
        return []
    set_up(values["seed"], n_threads=1)
    return listing(stage, Units(stage.study, stage.scale, stage.stage), values)


def _training(stage: Stage, store: Units, values: Mapping[str, Any]) -> list[Job]:
    of = Trainings(stage, store, values)
    job = partial(_job, stage, store, values["encoder"])
    jobs = []
    for name, parts in of.data.items():
        n = sum(map(len, parts.values()))
        jobs.append(job(f"{name}-frozen", n * _READ, partial(of.frozen, name), name))
        if values["models"]:
            epochs = values["masked_lm"]["epochs"] + len(ASPECTS) * values["unlearning"]["epochs"]
            seconds = epochs * len(parts["train"]) * _MASKED * values["masked_lm"]["layers"]
            jobs.append(job(f"{name}-without", seconds, partial(of.without, name), name))
    for name, kind, number in of.models():
        n_steps = values["epochs"].get(kind, 0) * len(of.data[name]["train"])
        once = {FROZEN: 0.001, "BiLSTM": _LSTM}.get(kind, _LEARN)
        seconds = (n_steps + sum(map(len, of.data[name].values()))) * once
        compute = partial(of.reading, name, kind, number)
        jobs.append(job(file_of(name, kind, number), seconds, compute, name))
    return jobs


def _asking(stage: Stage, store: Units, values: Mapping[str, Any]) -> list[Job]:
    of = Asking(stage, store, values)
    jobs: list[Job] = []
    if of.models.empty:  # the models are from outside, and the notebook asks about them
        return jobs
    job = partial(_job, stage, store, _encoder(stage))
    for dataset, model, number in of.models.itertuples(index=False):
        n_train = (of.aspects["dataset"].eq(dataset) & of.aspects["split"].eq("train")).sum()
        n = of.pairs["dataset"].eq(dataset).sum()
        for name in filter(partial(of.can_be_asked, model=model), values["explainers"]):
            needs = explainer_named(name).needs
            seconds = (n / 1000 + 1) * _ASKED.get(needs, 1.0)
            if needs == "model":
                proxy = values["proxy"]
                seconds = (1 + proxy["questions"]) * proxy["epochs"] * n_train * _LEARN + n * _READ
            compute = partial(of.compute, name, dataset, model, number)
            unit = of.unit(name, dataset, model, number)
            jobs.append(job(unit, seconds, compute, file_of(dataset, model, number)))
    return jobs


def _encoder(stage: Stage) -> str:
    """The encoder that stage 2 recorded; stage 3 has no such parameter."""
    manifest = read_manifest(stage.folder.parent / "02_training" / MANIFEST)
    if manifest is None:
        raise TouchstoneError("the manifest of 02_training is damaged; run 02_training again")
    return str(manifest["parameters"]["encoder"])


def _job(
    stage: Stage, store: Units, encoder: str, name: str, seconds: float, compute: Any, model: str
) -> Job:
    is_small = encoder in PACKAGED
    return Job(
        f"{stage.stage}/{name}",
        stage.stage,
        ("01_data_generation", "02_training")[: int(stage.stage[:2]) - 1],
        seconds * (1 if is_small else _LARGE),
        _GIGABYTES[is_small],
        store,
        compute,
        model,
    )
