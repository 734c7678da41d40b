"""The units of this study as jobs: each training, and what is asked of each model."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from ...core.jobs import Job, closed_stage
from ...core.runner import plan_jobs
from ...core.seeds import set_up
from ...core.stage import Stage
from ...core.units import Units
from ...models.masked_lm import MaskedLM
from .answers import Answers
from .arms import ARMS
from .asked import Model, explained_base, filled_sentences, models_of
from .kept_models import Training
from .trainings import PILOT, Trainings

# Seconds of a core, of the packaged encoder: a sentence read once in training, a sentence asked
# about once, and one explained by all methods. A model of the hub takes twelve times as long.
_LEARN, _ASK, _EXPLAIN, _OF_HUB = 0.02, 0.002, 0.6, 12
_PRETRAIN, _BOOKS = 1150, 90  # seconds: a model of `touchstone pretrain`; its books read once
_GIGABYTES = {"training": 1.5, "asking": 1.2}
# Seconds of a stage's notebook beside its units, at small.
BESIDE = {
    "01_data_generation": 3.2,
    "02_training": 6.0,
    "03_attribution": 3.6,
    "04_metrics": 7.2,
    "05_figures": 1.6,
}


def jobs_of(stage: Stage, values: Mapping[str, Any]) -> Sequence[Job]:
    """The units of stages 02 and 03 under a notebook's parameters; other stages have none."""
    listing = {"02_training": _training, "03_attribution": _asking}.get(stage.stage)
    if listing is None:
        return []
    set_up(values["seed"], n_threads=1)
    return listing(stage, values)


def _training(stage: Stage, values: Mapping[str, Any]) -> list[Job]:
    trainings = Trainings(stage, values)
    if values["reuse_units"]:  # the weights stay where they are, so it is asked at once
        trainings.after = partial(_ask_at_once, stage, trainings)
    store = Units(stage.study, stage.scale, stage.stage)

    def job(name: str, n: float, compute: Callable[[], object], b: int = 0) -> Job:
        key, needs = f"{stage.stage}/{name}", ("01_data_generation",)
        seconds, memory = n * _LEARN, _GIGABYTES["training"]
        return Job(key, stage.stage, needs, seconds, memory, store, compute, f"base{b}")

    n = len(trainings.train) * values["epochs"]
    before = _PRETRAIN / _LEARN if values["pretrained"] else 0
    jobs = [
        job(f"base{b}", n + before, partial(trainings.base, b), b) for b in range(values["n_bases"])
    ]
    jobs.append(job("without_frames", n / 2, trainings.without_frames))
    of_arm = [len(trainings.arm_text("placebo", 0, r)) for _, r in values["mixtures"]]
    of_arm = [n * values["arm_epochs"] for n in of_arm]
    if len(of_arm) > 1:  # two trainings for each mixture but the last, until one is safe
        jobs.append(job("mixture", 2 * of_arm[0], trainings.chosen_mixture))
    for arm, b, number in trainings.arms():
        name = f"{arm.replace(' ', '_')}/base{b}_seed{number}"
        jobs.append(job(name, of_arm[0], partial(_arm, trainings, arm, b, number), b))
    return jobs


def _ask_at_once(stage: Stage, trainings: Trainings, made: Training, lm: MaskedLM) -> None:
    """Publish what stage 03 asks of a model that was trained just now."""
    if made.name == "without_frames" or made.seed == PILOT:
        return
    values = next(
        job.all for job in plan_jobs(stage.study, stage.scale) if job.stage == "03_attribution"
    )
    later = closed_stage(stage.study, stage.scale, "03_attribution")
    answers = Answers(later, values, trainings.sentences)
    model = Model(made.name, made.model, made.base, made.seed, made.sha256, lambda: lm)
    answers.probabilities(model)
    if trainings.is_explained(made):
        answers.explanations(model)
        _associations(answers, model)


def _arm(trainings: Trainings, arm: str, b: int, number: int) -> object:
    return trainings.arm(arm, b, number, trainings.chosen_mixture())


def _asking(stage: Stage, values: Mapping[str, Any]) -> list[Job]:
    answers = Answers(stage, values, filled_sentences(stage))
    models = models_of(stage, values)
    store = Units(stage.study, stage.scale, stage.stage)
    gates = pd.read_csv(stage.input("02_training", "gate.csv"))
    needs = ("01_data_generation", "02_training")

    def job(name: str, seconds: float, compute: Callable[[], object], model: str) -> Job:
        key = f"{stage.stage}/{name}"
        return Job(key, stage.stage, needs, seconds, _GIGABYTES["asking"], store, compute, model)

    jobs = []
    for model in models:
        seconds = len(answers.asked) * _ASK * (1 if model.model in ("base", *ARMS) else _OF_HUB)
        ask = partial(answers.probabilities, model)
        jobs.append(job(f"{model.name}/probabilities", 1 + seconds, ask, model.name))
    base = models[explained_base(gates)]
    explain = partial(answers.explanations, base)
    n = len(answers.explained())
    jobs.append(job(f"{base.name}/explanations", n * _EXPLAIN, explain, base.name))
    n = len(answers.sentences) + 6 * len(answers.texts())
    seconds = 1 + n * _ASK
    more = partial(_associations, answers, base)
    jobs.append(job(f"{base.name}/vectors", seconds, more, base.name))
    if values["transfer"] and values["pretrained"]:
        for name in values["pretrained"]:
            count = partial(answers.occupations, [name])
            jobs.append(job(f"occupations-{name}", _BOOKS, count, name))
    return jobs


def _associations(answers: Answers, base: Model) -> None:
    answers.vectors(base)
    answers.phrases(base)
    answers.example(base)
