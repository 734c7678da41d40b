"""The assay's units as jobs: trainings, what explainers say of each, and deletions."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...attribution import resolve_method
from ...core.jobs import Job
from ...core.seeds import set_up
from ...core.stage import MANIFEST, Stage, read_manifest
from ...core.units import Units
from ...models.weights import PACKAGED
from .asking import Asking
from .deleting import MIXED, Deletions
from .trainings import KINDS, LSTM, NUMBER, Trainings

_STAGES = ("01_data_generation", "02_training", "03_attribution", "04_metrics")
_GIGABYTES = {True: 1.5, False: 4.0}  # by whether the encoder is the packaged one
# Seconds of a core (AVX-512, native arithmetic) for one word of a text in one layer of the packaged
# encoder: learnt from, passed forward, forward and back. Bert-base takes eight times as many.
_LEARN, _FORWARD, _BACK, _WIDE = 1.3e-4, 2.5e-5, 7e-5, 8
_TRAINING, _ITEM = 4.0, 0.1  # beside the words: a training, and an item that its model answers
_EXPLANATION = 0.02  # beside the passes
_ORDERS = 6  # passes for each word and explainer that a search for the best deletion comes to
# For one word in a model of one layer, in an LSTM that learns, in a probe of it.
_LEARN_OLA, _LEARN_LM, _LEARN_PROBE = 1.7e-6, 3.1e-5, 3e-6


def jobs_of(stage: Stage, values: Mapping[str, Any]) -> Sequence[Job]:
    """The units of stages 02 to 04 under a notebook's parameters; other stages have none."""
    listings = dict(zip(_STAGES[1:], (_training, _asking, _deleting), strict=True))
    listing = listings.get(stage.stage)
    if listing is None:
        return []
    set_up(values["seed"], values["n_threads"])
    store = Units(stage.study, stage.scale, stage.stage, values["reuse_units"])
    return listing(stage, store, values)


def _training(stage: Stage, store: Units, values: Mapping[str, Any]) -> list[Job]:
    of = Trainings(stage, store, values)
    n_heard = of.tables["corpus"]["sentence"].map(len).sum() * values["lm_epochs"]
    jobs = []
    for name, training in (*of.models(), *of.second_models()):
        task = name.removesuffix(LSTM)
        epochs = values["epochs" if task == name else "lstm_epochs"].get(task, 1)
        n_words = of.rows(name)["sentence"].map(len).sum() * epochs
        if name == NUMBER:
            seconds = n_heard * _LEARN_LM + n_words * values["probe_epochs"] * _LEARN_PROBE
        elif KINDS.get(name) == "one layer":
            seconds = n_words * _LEARN_OLA
        elif KINDS.get(name) == "recurrent":
            seconds = n_words * _LEARN_LM
        else:
            seconds = n_words * values["n_layers"] * _LEARN * _width(values["encoder"])
        seconds += _TRAINING + _ITEM * of.tables["items"]["model"].eq(task).sum()
        unit, compute = f"{name}-{training}", partial(of.unit, name, training)
        jobs.append(_job(stage, store, values["encoder"], unit, seconds, compute, unit))
    return jobs


def _asking(stage: Stage, store: Units, values: Mapping[str, Any]) -> list[Job]:
    of = Asking(stage, store, values)
    units, made, jobs = list(of.units()), _made_with(stage), []
    for unit in units:
        n_words = of.texts(unit.model, unit.training)["sentence"].map(len)
        is_small = unit.model == NUMBER or KINDS.get(unit.model) in ("one layer", "recurrent")
        layers = 1 if is_small else made["n_layers"]
        once = layers * _width(made["encoder"])
        seconds = 0.0
        for name in unit.explainers:
            n = n_words.map(partial(_word_passes, name, of.settings(unit)[name]))
            seconds += float(n.sum()) * once + len(n_words) * _EXPLANATION
        model = f"{unit.model}-{unit.training}"
        compute = partial(of.answers, unit)
        jobs.append(_job(stage, store, made["encoder"], unit.name, seconds, compute, model))
    return jobs


def _deleting(stage: Stage, store: Units, values: Mapping[str, Any]) -> list[Job]:
    of = Deletions(stage, store, values)
    units, made, jobs = list(of.units()), _made_with(stage), []
    once = made["n_layers"] * _width(made["encoder"]) * _FORWARD
    for unit in units:
        n_words = of.texts(unit.model, unit.training)["sentence"].map(len)
        n_orders = of.said["explainer"].nunique() * _ORDERS
        n_passes = n_orders * n_words**2 if unit.how != MIXED else n_words
        seconds = 1 + float(n_passes.sum()) * once
        model = f"{unit.model}-{unit.training}"
        compute = partial(of.unit, unit)
        jobs.append(_job(stage, store, made["encoder"], unit.name, seconds, compute, model))
    return jobs


def _word_passes(name: str, settings: Mapping[str, Any], n_words: int) -> float:
    """Seconds in a layer of an explainer's passes of a text: by its samples or steps, for those
    that remove words by how many there are.
    """
    known = {**resolve_method(name).defaults, **settings}
    n = known.get("n_samples", known.get("n_steps", 1))
    most = known.get("max_evals") or np.inf
    removing = {
        "Occlusion": n_words,
        "Partition SHAP": min(most, 4 / 3 * n_words**2),  # of word pieces, which are more
        "Shapley sampling": n * n_words,
        "LIME": n,
        "Kernel SHAP": n,
    }
    return n_words * (removing[name] * _FORWARD if name in removing else n * _BACK)


def _made_with(stage: Stage) -> Mapping[str, Any]:
    """The encoder and the number of its layers that stage 2 was run with."""
    manifest = read_manifest(stage.folder.parent / _STAGES[1] / MANIFEST)
    assert manifest is not None  # its tables were read just now
    return manifest["parameters"]


def _width(encoder: str) -> float:
    return 1 if encoder in PACKAGED else _WIDE


def _job(
    stage: Stage, store: Units, encoder: str, name: str, seconds: float, compute: Any, model: str
) -> Job:
    return Job(
        f"{stage.stage}/{name}",
        stage.stage,
        _STAGES[: int(stage.stage[:2]) - 1],
        float(seconds),
        _GIGABYTES[encoder in PACKAGED],
        store,
        compute,
        model,
    )
