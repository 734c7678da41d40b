"""Stage 02's probes: fitted, or read where they were finished before."""

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from ...core.errors import check_choice
from ...core.files import read_table, sha256_of
from ...core.seeds import seed_for
from ...models.probe import CausalLM, Probe, WordTable, load_probe, save_probe
from ...training.probe import ProbeSettings, fit_probe
from .text import CLASSES, TASKS
from .trainings import Plan, Trainings

CONTROLS = ("untrained", "shuffled classes")


class Probing:
    """The probes that a notebook's parameters ask for.

    Args:
        models: the models that they stand on.
    """

    def __init__(self, models: Trainings) -> None:
        self.models, self.values = models, models.values

    @cached_property
    def examples(self) -> dict[str, pd.DataFrame]:
        """What probes learn from and are tested on, by task."""
        return {
            task: read_table(self.models.stage.input("01_data_generation", f"{task}.parquet"))
            for task in TASKS
        }

    def tasks_of(self, plan: Plan) -> list[str]:
        """What a model is probed for."""
        return list(self.values["sweep_tasks"] if plan.is_swept else TASKS)

    def controls_of(self, plan: Plan) -> list[str]:
        """The controls beside a full model; only the last architecture has them all."""
        if not plan.config or plan.size != "full":
            return []
        is_last = plan.architecture == self.values["architectures"][-1]
        return list(CONTROLS if is_last else CONTROLS[:1])

    def probe(self, plan: Plan, task: str) -> pd.DataFrame:
        """A probe's row (`fit` says which columns); its layer is in `probes/`."""
        model, words = self.models.model(plan)
        ending = "safetensors" if plan.config else "json"
        lm = self.models.stage.folder / f"models/{plan.name}.{ending}"
        path, unit = (
            self.models.stage.path(f"probes/{plan.name}-{task}.safetensors"),
            f"probe-{plan.name}-{task}",
        )
        key = self._probe_key(task, lm=sha256_of(lm))
        with self.models.store.claim(unit):
            row = self.models.store.load(unit, key, [path])
            if row is None:
                probe, about = self.fit(model, words, task, self.examples[task])
                save_probe(probe, path)
                row = pd.DataFrame([{"architecture": plan.architecture, "size": plan.size} | about])
                row = self.models.store.save(unit, key, row, [path])
        load_probe(lm.with_suffix(".safetensors"), path, CLASSES[task])  # it fits its model
        return row

    def control(self, architecture: str, kind: str) -> pd.DataFrame:
        """The row of a number probe that should know less.

        Args:
            architecture: one of those that are trained here.
            kind: "untrained", on the first weights; "shuffled classes", on the full model.

        Raises:
            TouchstoneError: there is no such kind.
        """
        check_choice("the control", kind, CONTROLS)
        plan = self.models.plans[architecture, "full"]
        unit = f"probe-{plan.name}-{kind.replace(' ', '-')}-number"
        full = self.models.stage.folder / f"models/{plan.name}.safetensors"
        about = {"config": str(plan.config), "words": seed_for(*self.models.vocabulary.words)}
        if kind != "untrained":
            self.models.model(plan)
            about = {"lm": sha256_of(full)}
        key = self._probe_key("number", kind=kind, **about)
        with self.models.store.claim(unit):
            row = self.models.store.load(unit, key)
            if row is None:
                row = self.models.store.save(unit, key, self._fit_control(plan, kind), exact=True)
        return row

    def fit(
        self, model: CausalLM, words: WordTable, task: str, table: pd.DataFrame
    ) -> tuple[Probe, dict[str, Any]]:
        """A probe for a task, and its accuracy beside the share of the larger class.

        Args:
            model: the language model, which does not move.
            words: its vocabulary.
            task: one of `CLASSES`.
            table: examples, with split (train, valid), prefix and tag.

        Returns:
            The probe; and task, n, majority, accuracy, low, high (95 %, Wilson), learnt (the
            interval is above the majority).
        """
        values = self.values
        few = table[table["split"] == "train"].head(values["n_probe_examples"])
        valid = table[table["split"] == "valid"]
        rows = pd.concat([few, valid])
        seed = seed_for(task, values["seed"])
        probe, _ = fit_probe(model, words, CLASSES[task], rows, self._probe_settings, seed)
        predicted = probe.predict(valid["prefix"].str.split().tolist()).argmax(1)
        right = int((predicted == valid["tag"]).sum())
        low, high = proportion_confint(right, len(valid), method="wilson")
        majority = max(valid["tag"].mean(), 1 - valid["tag"].mean())
        return probe, {
            "task": task,
            "n": len(valid),
            "majority": majority,
            "accuracy": right / len(valid),
            "low": low,
            "high": high,
            "learnt": bool(low > majority),
        }

    @cached_property
    def _probe_settings(self) -> ProbeSettings:
        values = self.values
        return ProbeSettings(values["probe_epochs"], values["probe_lr"], values["probe_batch"])

    def _probe_key(self, task: str, **model: Any) -> str:
        """The key of a probe's unit."""
        return self.models.store.key(
            **model,
            examples=self.models.sha256(f"{task}.parquet")[0],
            plan=str(self._probe_settings),
            n=self.values["n_probe_examples"],
            seed=self.values["seed"],
        )

    def _fit_control(self, plan: Plan, kind: str) -> pd.DataFrame:
        table = self.examples["number"]
        if kind == "untrained":
            model: CausalLM = self.models.untrained(plan.architecture)
        else:
            model = self.models.model(plan)[0]
            rng = np.random.default_rng(self.values["seed"])
            table = table.assign(tag=rng.permutation(table["tag"]))
        return pd.DataFrame([self.fit(model, self.models.vocabulary, "number", table)[1]])
