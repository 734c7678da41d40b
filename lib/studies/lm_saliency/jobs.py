"""The units of lm_saliency as jobs: each trained model with its probes; each set in each model."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import torch

from ...core.files import read_json
from ...core.jobs import Job, closed_stage
from ...core.runner import plan_jobs
from ...core.seeds import set_up
from ...core.stage import Stage
from ...models.language_model import LanguageModel, LMConfig
from .explanations import NAMED, Explained, Explanations
from .plans import Plan, model_name, shown_trainings
from .probing import Probing
from .trainings import Trainings

# Seconds of a core for one word, forward and back: a part for each weight that it meets, and one
# for what surrounds the arithmetic. Of a published model only the file on its source is known here.
_PER_WEIGHT, _PER_WORD = 1e-10, 2e-5
_PUBLISHED = 10_000_000  # its weights, about
_GIGABYTES = 2.0  # at most: the corpus as words and as ids, a model and its gradients
_WORDS_OF_EXAMPLE = 12  # of a probe's prefix, about
# Seconds of the notebooks without units, at small; beside the units of 02 and 03 nothing was timed.
BESIDE = {
    "01_data_generation": 4.1,
    "04_metrics": 9.2,
    "05_figures": 6.2,
}


def jobs_of(stage: Stage, values: Mapping[str, Any]) -> Sequence[Job]:
    """The units of stages 02 and 03 under a notebook's parameters; other stages have none."""
    listing = {"02_training": _training, "03_attribution": _explaining}.get(stage.stage)
    if listing is None:
        return []
    set_up(values["seed"], values["n_threads"])
    return listing(stage, values)


def _training(stage: Stage, values: Mapping[str, Any]) -> list[Job]:
    probing = Probing(models := Trainings(stage, values))
    n_words = sum(len(piece.ids) - 1 for piece in models.data["train"])
    learnt_from = {
        kind: min(values["n_probe_examples"], int((table["split"] == "train").sum()))
        for kind, table in probing.examples.items()
    }
    jobs = []
    for plan in models.plans.values():
        n_read = n_words * plan.share * plan.settings.epochs if plan.settings else 0
        n_examples = sum(learnt_from.get(k, learnt_from["number"]) for k in probing.kinds_of(plan))
        n_lines = 0 if plan.is_swept else sum(map(len, probing.sets.values()))
        n_passes = 2 if plan.layers else 1  # a student's teacher reads as well
        n_all = n_read * n_passes + (n_examples + n_lines) * _WORDS_OF_EXAMPLE / 3  # forward only
        n_weights = _PUBLISHED
        if plan.config:
            output = [*plan.config.cutoffs, len(models.vocabulary)][0] * plan.config.embedding
            n_weights = _weights(plan.config) + output
        seconds = n_all * (_PER_WORD + n_weights * _PER_WEIGHT)
        compute = partial(train_and_ask, probing, plan)
        key = f"{stage.stage}/{plan.name}"
        needs = ("01_data_generation",)
        store, model = models.store, f"{plan.architecture}-{plan.training}"
        jobs.append(Job(key, stage.stage, needs, seconds, _GIGABYTES, store, compute, model))
    return jobs


def train_and_ask(probing: Probing, plan: Plan) -> None:
    """One model and all that is asked of it.

    Where units are published, stage 03's numbers of this model are made at once, for its weights
    are published nowhere: a run that is stopped then goes on with the models that are missing.
    """
    models = probing.models
    rows = [probing.row(plan, kind) for kind in probing.kinds_of(plan)]
    for kind in probing.further_controls(plan):
        probing.row(plan, kind)
    if not plan.is_swept and not plan.is_check:
        probing.thresholds(plan)
        for name in probing.sets_of(plan):
            probing.answers(plan, name)
    if not models.values["reuse_units"]:
        return

    def restore(key: tuple[str, str, int, str]) -> None:
        probing.probe(models.plans[key[:3]], key[3])

    later = closed_stage(models.stage.study, models.stage.scale, "03_attribution")
    values = {stage.stage: stage.all for stage in plan_jobs(later.study, later.scale)}
    if teacher := models.teacher_of(plan):
        rows += [probing.row(teacher, kind) for kind in probing.kinds_of(teacher)]
    table = models.with_checksums(pd.concat(rows, ignore_index=True))
    shown = shown_trainings(models.plans)
    explanations = Explanations(later, values[later.stage], table, restore, shown)
    for unit in explanations.units:
        if unit[1:] == plan.key:
            explanations.numbers(unit)


def _explaining(stage: Stage, values: Mapping[str, Any]) -> list[Job]:
    explanations = Explanations(stage, values)
    jobs = []
    for unit in explanations.units:
        model = model_name(*unit[1:])
        path = stage.folder.parent / "02_training" / f"models/{model}.json"
        note = read_json(path, "run stage 02 again") if path.is_file() else {}
        n_weights = _weights(LMConfig(**note["config"])) if "config" in note else _PUBLISHED
        n_words = int(explanations.lines_of(unit)["prefix"].map(len).sum())
        seconds = n_words * _passes(explanations, unit) * (_PER_WORD + n_weights * _PER_WEIGHT)
        compute = partial(explanations.numbers, unit)
        key = f"{stage.stage}/{unit.name}"
        needs = ("01_data_generation", "02_training")
        jobs.append(
            Job(key, stage.stage, needs, seconds, _GIGABYTES, explanations.store, compute, model)
        )
    return jobs


def _weights(config: LMConfig) -> int:
    """The weights of a model's layers, which every word meets."""
    with torch.device("meta"):  # no memory
        return sum(weight.numel() for weight in LanguageModel(config, 1).stack.parameters())


def _passes(explanations: Explanations, unit: Explained) -> float:
    """How many passes forward and back a line takes with a model's methods, roughly.

    Methods that differ in what they make of the gradients alone share them.
    """
    methods, n_words = explanations.methods_of(unit), 10  # Erasure: one pass a word
    points = {
        (one.method, one.noise_kind): {"V": 1, "SG": one.n_samples, "IG": one.n_steps}[one.method]
        for one in (explanations.settings_of(name, unit.size) for name in methods if name in NAMED)
    }
    others = {"Contrastive": 2, "Erasure": 2 * n_words, "LIME": 2 * explanations.values["n_lime"]}
    return sum(points.values()) + sum(n for name, n in others.items() if name in methods)
