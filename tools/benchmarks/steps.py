"""What bfloat16 gains a training step of lm_saliency's language models.

    python tools/benchmarks/steps.py            two minutes; no data

The models of scale `cpu` (drawn weights and words, for no time here depends on them), alone and as
students, in steps of as many words as they are trained in. One process, one thread, processor time;
float32 and bfloat16 take turns. Writes outputs/benchmarks/steps.csv.
"""

from __future__ import annotations

import pandas as pd
import torch
from arms import Arm, machine, matrix_rate, paired, take_turns

from lib.core.files import save_csv
from lib.core.jobs import closed_stage
from lib.core.paths import outputs_root
from lib.core.runner import plan_jobs
from lib.core.seeds import set_up
from lib.models.language_model import build_lm, student_of
from lib.studies.lm_saliency.trainings import GRAMMAR_BATCH, Trainings
from lib.training.language_model import Distillation, batch_loss
from lib.training.loop import PRECISIONS, products_in, take_step

LENGTH = 16  # words of a line
ROUNDS = 15


def steps(models: Trainings, architecture: str, size: str, n_words: int) -> dict[str, Arm]:
    """An arm for each precision: one training step of one model, which both take on with."""
    values, n_vocabulary = models.values, models.values["vocabulary_size"]
    model, distil = build_lm(models.configuration(architecture), n_vocabulary, 0), None
    if size == "student":
        distil = Distillation(model, every=values["soft_every"])
        model = student_of(model, tuple(values["student_layers"][architecture]))
    parameters = list(model.train().parameters())
    optimiser = torch.optim.Adam(parameters, lr=values["lm_lr"][architecture])
    # Words as in text: frequent ones have small ids.
    drawn = torch.rand(n_words // LENGTH, LENGTH, generator=torch.Generator().manual_seed(0))
    ids = (drawn**4 * n_vocabulary).long()
    mask = torch.ones_like(ids)

    def step(precision: str) -> None:
        with products_in(precision):
            loss = batch_loss(model, ids, mask, distil)
            take_step(loss, parameters, optimiser, max_norm=0.25)

    return {name: Arm(lambda name=name: step(name)) for name in PRECISIONS}


def main() -> None:
    """Measure, write the table and print it."""
    set_up(0, n_threads=1)
    values = {job.stage: job.all for job in plan_jobs("lm_saliency", "cpu")}["02_training"]
    models = Trainings(closed_stage("lm_saliency", "cpu", "02_training"), values)
    rows = []
    for n_words in (GRAMMAR_BATCH, values["batch_words"]):
        for size in ("full", "student"):
            for architecture in values["architectures"]:
                arms = steps(models, architecture, size, n_words)
                take_turns(arms, 2)  # the first steps are slow
                for arm in arms.values():
                    arm.seconds.clear()
                take_turns(arms, ROUNDS)
                about = {"architecture": architecture, "size": size, "words": n_words}
                ms = {f"ms_{name}": 1000 * arm.median for name, arm in arms.items()}
                gain = paired(*(arms[name].seconds for name in PRECISIONS), "gain", "gain")
                rows.append(about | ms | gain)
    table = pd.DataFrame(rows)
    device = torch.device("cpu")
    product = matrix_rate(torch.bfloat16, device) / matrix_rate(torch.float32, device)
    table = table.assign(gain_of_a_product=product, processor=machine(device)["processor"])
    save_csv(table, outputs_root() / "benchmarks" / "steps.csv")
    print(table.drop(columns="processor").round(2).to_string(index=False))


if __name__ == "__main__":
    main()
