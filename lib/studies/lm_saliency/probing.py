"""Stage 02's probes, and what models and probes answer: made, or read where they were finished."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor

from ...core.errors import check_choice
from ...core.files import read_table, sha256_of
from ...core.seeds import seed_for
from ...models.probe import CausalLM, Probe, WordTable, features, load_layer, save_probe
from ...training.probe import ProbeSettings, fit_probe
from .items import narrow
from .knowledge import SCORES, fit_threshold, number_preference
from .lines import load_sets
from .plans import Plan
from .text import BALANCED_KIND, CLASSES, DRAWN, TASKS, balanced, task_of_set
from .trainings import Trainings

# What a probe is fitted on: examples of a task; number examples whose nearest noun says nothing;
# the first weights of a model; and examples whose classes were shuffled.
CONTROLS = ("untrained", "shuffled classes")
KINDS = (*TASKS, "matched", *CONTROLS)
# The same controls beside the probes of gender, the matched ones and the balanced ones.
FURTHER = tuple(f"{control} {name}" for name in ("gender", *DRAWN) for control in CONTROLS)
_DIGITS = 4  # of what is answered, in nats: for hundreds of thousands of lines


class Probing:
    """The probes that a notebook's parameters ask for.

    Args:
        models: the models that they stand on.
    """

    def __init__(self, models: Trainings) -> None:
        self.models, self.values = models, models.values

    @cached_property
    def examples(self) -> dict[str, pd.DataFrame]:
        """What probes learn from and are tested on: by task, matched by the nearest noun, and those
        of gender with classes balanced.
        """
        stage = self.models.stage
        files = {name: f"{name}.parquet" for name in TASKS} | {"matched": "number_matched.parquet"}
        found = {
            name: read_table(stage.input("01_data_generation", file))
            for name, file in files.items()
        }
        even = balanced(found["gender"], ["tag"], self.values["seed"])
        return found | {BALANCED_KIND: even}

    @cached_property
    def sets(self) -> dict[str, pd.DataFrame]:
        """The lines that are asked about."""
        return load_sets(self.models.stage.input("01_data_generation", "sets.parquet"))

    def kinds_of(self, plan: Plan) -> list[str]:
        """The probes of a model: those of the sweep have their tasks, the others matched ones too.
        Full models of ours have controls as well, and so have students that read the grammar's
        sentences, which teach number alone. Models of the check have all of these, and the
        balanced one.
        """
        if plan.is_swept:
            return list(self.values["sweep_tasks"])
        if plan.reads_grammar:
            return [kind for kind in KINDS if _task_of(kind) == "number"]
        if plan.is_check:
            return [*KINDS, BALANCED_KIND]
        has_controls = plan.config and plan.size == "full"
        return [kind for kind in KINDS if has_controls or kind not in CONTROLS]

    def further_controls(self, plan: Plan) -> list[str]:
        """Those in `FURTHER` that a run of published units has: of a model with `CONTROLS`, beside
        its own probes, those that are published, and all where its weights are here.

        Nothing else depends on them, so a model whose weights are gone can do without.
        """
        own = self.kinds_of(plan)
        if not self.values["reuse_units"] or not set(CONTROLS) <= set(own):
            return []
        is_here, store = self.models.file_of(plan).is_file(), self.models.store
        return [
            kind
            for kind in FURTHER
            if _examples_of(kind) in own
            and (is_here or store.load(_unit(plan, kind), self._key(plan, kind)) is not None)
        ]

    def sets_of(self, plan: Plan) -> list[str]:
        """The sets whose task a model has a probe for."""
        kinds = self.kinds_of(plan)
        return [name for name in self.sets if task_of_set(name) in kinds]

    def row(self, plan: Plan, kind: str) -> pd.DataFrame:
        """What is known of a probe, in one row, fitted if it must be.

        Returns:
            architecture, size, training, kind, task, n, majority, accuracy, low, high, learnt (see
            `fit`), sha256 (of its layer, in `probes/`).

        Raises:
            TouchstoneError: there is no such kind.
        """
        check_choice("the probe", kind, (*KINDS, BALANCED_KIND, *FURTHER))
        self._path(plan, kind)  # where it is, it is this stage's file
        unit = _unit(plan, kind)
        with self.models.store.claim(unit):
            row = self.models.store.load(unit, self._key(plan, kind))
            return self._fit(plan, kind, unit)[1] if row is None else row

    def probe(self, plan: Plan, kind: str) -> Probe:
        """A probe, from disk where it was finished before."""
        unit, path = _unit(plan, kind), self._path(plan, kind)
        with self.models.store.claim(unit):
            if self.models.store.load(unit, self._key(plan, kind), [path]) is None:
                return self._fit(plan, kind, unit)[0]
        lm, words = self._base(plan, kind)
        return Probe(
            lm,
            words,
            load_layer(path, lm, CLASSES[_task_of(kind)], plan.name),
            CLASSES[_task_of(kind)],
        )

    def thresholds(self, plan: Plan) -> pd.DataFrame:
        """Where each score splits the classes best, on the examples that probes learn from.

        Returns:
            task, architecture, size, training, score, threshold.
        """
        key = self.models.store.key(model=self._asked(plan), what="thresholds")
        name = f"thresholds-{plan.name}"
        return self.models.store.finished(name, key, lambda: self._thresholds(plan))

    def answers(self, plan: Plan, dataset: str) -> pd.DataFrame:
        """What a model and its probes say of every line of a set.

        Returns:
            dataset, line, architecture, size, training, and `SCORES`: the direct preference for the
            plural, and the margin (log-odds of class 1) of each probe; NaN where there is none.
        """
        lines = self.sets[dataset]
        about = {"model": self._asked(plan), "lines": seed_for(*map(" ".join, lines["prefix"]))}
        name = f"answers-{plan.name}-{dataset}".replace(" ", "_")

        def make() -> pd.DataFrame:
            found = self._scores(plan, task_of_set(dataset), lines["prefix"].tolist())
            table = pd.DataFrame({"line": lines.index} | found).round(_DIGITS)
            return narrow(table, _DIGITS) if self.values["reuse_units"] else table

        key, exact = self.models.store.key(**about), self.values["reuse_units"]
        table = self.models.store.finished(name, key, make, exact=exact)
        table.insert(0, "dataset", dataset)
        return _with_model(table, plan, 2)

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
        plan = ProbeSettings(values["probe_epochs"], values["probe_lr"], values["probe_batch"])
        probe, _ = fit_probe(
            model, words, CLASSES[task], rows, plan, seed_for(task, values["seed"])
        )
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

    def _fit(self, plan: Plan, kind: str, unit: str) -> tuple[Probe, pd.DataFrame]:
        task, table = _task_of(kind), self.examples[_examples_of(kind)]
        if kind.startswith("shuffled"):
            rng = np.random.default_rng(self.values["seed"])
            table = table.assign(tag=rng.permutation(table["tag"]))
        probe, about = self.fit(*self._base(plan, kind), task, table)
        path = self._path(plan, kind)
        save_probe(probe, path)
        row = _with_model(
            pd.DataFrame([{"kind": kind} | about | {"sha256": sha256_of(path)}]), plan
        )
        exact = kind.startswith(CONTROLS) and not self.values["reuse_units"]
        store = self.models.store
        return probe, store.save(unit, self._key(plan, kind), row, [path], exact=exact)

    def _base(self, plan: Plan, kind: str) -> tuple[CausalLM, WordTable]:
        """What a probe stands on: a model and its words."""
        if kind.startswith("untrained"):
            return self.models.untrained(plan), self.models.vocabulary
        return self.models.trained(plan)

    def _path(self, plan: Plan, kind: str) -> Path:
        name = f"probes/{plan.name}-{kind.replace(' ', '-')}.safetensors"
        return self.models.stage.path(name)

    def _key(self, plan: Plan, kind: str) -> str:
        """The key of a probe's unit."""
        values = self.values
        lm = {"lm": self.models.about(plan)["sha256"].item()}
        if kind.startswith("untrained"):
            words = seed_for(*self.models.vocabulary.words)
            lm = {"config": str(plan.config), "words": words, "training": plan.training}
        name = _examples_of(kind)
        file = {"matched": "number_matched", BALANCED_KIND: "gender"}.get(name, name)
        return self.models.store.key(
            **lm,
            kind=kind,
            examples=self.models.sha256(f"{file}.parquet")[0],
            plan=[values[name] for name in ("probe_epochs", "probe_lr", "probe_batch")],
            n=values["n_probe_examples"],
            seed=values["seed"],
        )

    def _asked(self, plan: Plan) -> dict[str, str]:
        """What answers depend on: each probe's layer, and with it its model."""
        rows = pd.concat([self.row(plan, kind) for kind in self.kinds_of(plan)])
        return dict(zip(rows["kind"], rows["sha256"])) | {
            "lm": self.models.about(plan)["sha256"].item()
        }

    def _scores(
        self, plan: Plan, task: str, prefixes: list[list[str]]
    ) -> dict[str, Float[np.ndarray, "batch"]]:
        """The scores of prefixes by name."""
        lm, words = self.models.trained(plan)
        states = features(lm.eval(), words, prefixes)
        found = {name: np.full(len(prefixes), np.nan) for name in SCORES}
        kinds = self.kinds_of(plan)
        if task in kinds:
            found["probe"] = _margins(self.probe(plan, task), states)
        if task == "number" and not plan.is_swept:
            found["preference"] = number_preference(lm, words, states)
            found["matched"] = _margins(self.probe(plan, "matched"), states)
            if "untrained" in kinds:
                probe = self.probe(plan, "untrained")
                there = features(probe.lm, probe.vocabulary, prefixes)
                found["untrained"] = _margins(probe, there)
        return found

    def _thresholds(self, plan: Plan) -> pd.DataFrame:
        rows = []
        for task in TASKS:
            if task not in self.kinds_of(plan):
                continue
            table = self.examples[task].query("split == 'train'")
            table = table.head(self.values["n_probe_examples"])
            prefixes = table["prefix"].str.split().tolist()
            for score, values in self._scores(plan, task, prefixes).items():
                cut = fit_threshold(values.tolist(), table["tag"].tolist())
                rows.append({"task": task, "score": score, "threshold": cut})
        return _with_model(pd.DataFrame(rows).dropna(), plan, 1)


@torch.no_grad()
def _margins(probe: Probe, states: Float[Tensor, "batch hidden"]) -> Float[np.ndarray, "batch"]:
    """The log-odds of class 1 after each prefix."""
    logits = probe.layer(states)  # (batch, class)
    return (logits[:, 1] - logits[:, 0]).cpu().numpy().astype(float)


def _unit(plan: Plan, kind: str) -> str:
    return f"probe-{plan.name}-{kind.replace(' ', '-')}"


def _examples_of(kind: str) -> str:
    last = kind.split()[-1]
    return last if last in (*TASKS, *DRAWN) else "number"


def _task_of(kind: str) -> str:
    name = _examples_of(kind)
    return DRAWN.get(name, name)


def _with_model(table: pd.DataFrame, plan: Plan, at: int = 0) -> pd.DataFrame:
    """The table with the model's columns at a place."""
    for name, value in zip(("training", "size", "architecture"), plan.key[::-1], strict=True):
        table.insert(at, name, value)
    return table
