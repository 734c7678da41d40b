"""cebab's units as jobs: what stage 2 trains or reads, and what explainers say of each model."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...core.jobs import Job
from ...core.seeds import set_up
from ...core.stage import Stage
from ...core.units import Units
from ...models.weights import PACKAGED
from .asking import Asking
from .registry import explainer_named
from .reviewers import file_of
from .reviews import ASPECTS
from .trainings import FROZEN, Trainings

# Seconds of a core, measured at small and cpu (outputs/reference/benchmarks/planned.csv). For one
# review: the packaged encoder (MiniLM) reads it, or all its layers read it and learn from it; a
# masked LM of one layer, whose words cost most, does. A BiLSTM's step costs the same for 16 and for
# 32 reviews. Bert-base is twelve times as large as MiniLM, and has twice as many layers.
_READ, _LEARN, _MASKED, _STEP, _LARGE = 0.01, 0.03, 0.014, 0.028, 12
_LAYERS = {True: 6, False: 12}  # by whether the encoder is the packaged one
# Seconds of a core to be fitted and asked, a thousand questions, by what an explainer needs.
_ASKED = {"": 0.13, "weights": 0.27, "layers": 0.55, "encoders": 0.6}
_GIGABYTES = {True: 1.5, False: 4.0}
# Seconds of a stage's notebook beside its units, at small.
BESIDE = {
    "01_data_generation": 2.9,
    "02_training": 5.5,
    "03_attribution": 9.8,
    "04_metrics": 12.3,
    "05_figures": 6.1,
}


def jobs_of(stage: Stage, values: Mapping[str, Any]) -> Sequence[Job]:
    """The units of stages 02 and 03 under a notebook's parameters; other stages have none."""
    listing = {"02_training": _training, "03_attribution": _asking}.get(stage.stage)
    if listing is None:
        return []
    set_up(values["seed"], n_threads=1)
    return listing(
        stage, Units(stage.study, stage.scale, stage.stage, values["reuse_units"]), values
    )


def _training(stage: Stage, store: Units, values: Mapping[str, Any]) -> list[Job]:
    of = Trainings(stage, store, values)
    job = partial(_job, stage, store, values["encoder"])
    jobs = []
    for name, parts in of.data.items():
        n = sum(map(len, parts.values()))
        jobs.append(job(f"{name}-frozen", n * _READ, partial(of.frozen, name), name))
    epochs = values["masked_lm"]["epochs"] + len(ASPECTS) * values["unlearning"]["epochs"]
    for name, number in of.unlearnings():
        seconds = epochs * len(of.data[name]["train"]) * _MASKED * values["masked_lm"]["layers"]
        unlearnt = partial(of.unlearnt, name, number)
        jobs.append(job(f"{name}-without-seed{number}", seconds, unlearnt, name))
    for name, kind, number in of.models():
        n_read = values["epochs"].get(kind, 0) * len(of.data[name]["train"])
        learnt = max(1 - values["n_frozen"] / _LAYERS[values["encoder"] in PACKAGED], 0.0)
        once = {FROZEN: 0.001, "BiLSTM": _STEP / values["batch_size"].get(kind, 1)}
        seconds = n_read + sum(map(len, of.data[name].values()))
        seconds *= once.get(kind, _LEARN * learnt)
        compute = partial(of.answers, name, kind, number)
        jobs.append(job(file_of(name, kind, number), seconds, compute, name))
    return jobs


def _asking(stage: Stage, store: Units, values: Mapping[str, Any]) -> list[Job]:
    of = Asking(stage, store, values)
    jobs: list[Job] = []
    if of.models.empty:  # the models are from outside, and the notebook asks about them
        return jobs
    job = partial(_job, stage, store, of.models["encoder"].iloc[0])
    for dataset, model, number, *_ in of.models.itertuples(index=False):
        n_train = (of.aspects["dataset"].eq(dataset) & of.aspects["split"].eq("train")).sum()
        n = of.pairs["dataset"].eq(dataset).sum()
        for name in filter(partial(of.can_be_asked, model=model), values["explainers"]):
            needs = explainer_named(name).needs
            seconds = (n / 1000 + 1) * _ASKED.get(needs, 1.0)
            if needs == "model":
                proxy = values["proxy"]
                n_texts = (1 + proxy["questions"]) * n_train  # read once; upper layers learn
                learnt = min(proxy["layers"] / _LAYERS[of.models["encoder"].iloc[0] in PACKAGED], 1)
                seconds = proxy["epochs"] * n_texts * _LEARN * learnt + (n_texts + n) * _READ
            compute = partial(of.answers, name, dataset, model, number)
            unit = of.unit(name, dataset, model, number)
            jobs.append(job(unit, seconds, compute, file_of(dataset, model, number)))
    return jobs


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
