"""Stage 03's saliency: each set explained in each model, or read where it was finished before.

The notebook and the jobs of `jobs.py` call the same functions, so it does not matter who explains.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...core.files import read_table
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...models.probe import Probe, load_probe
from .lines import load_sets
from .probe_saliency import (
    BASELINES,
    Saliency,
    SaliencySettings,
    baseline_saliency,
    probe_saliencies,
)
from .text import CLASSES, task_of_set

NAMED: dict[str, dict[str, str]] = {  # the names of the study's tables, as settings
    "V": {},
    "SG": {},
    "IG": {},
    "V+VN": {"composition": "vector_norm"},
    "SG+VN": {"composition": "vector_norm"},
    "IG released": {"path": "released"},
    "SG norm": {"noise_kind": "norm"},
}
_NOT_SWEPT = "Winobias"  # the paper's sweep leaves it out, and so does ours


class Explained(NamedTuple):
    """A set in a model: one unit."""

    dataset: str
    architecture: str
    size: str

    @property
    def name(self) -> str:
        """The name of its unit."""
        return f"{self.dataset}-{self.architecture}-{self.size}".replace(" ", "_")


def choose(rows: pd.DataFrame, n_words: int, seed: int) -> pd.DataFrame:
    """The lines of a set that are explained, in file order: about `n_words` words, 0 for all.

    The same share of every template, but at least two lines of each; where that is too much, fewer
    templates.
    """
    budget = round(n_words / rows["prefix"].map(len).mean())
    if not n_words or budget >= len(rows):
        return rows
    drawn = pd.Series(np.random.default_rng(seed).permutation(len(rows)), index=rows.index)
    size = rows.groupby("pattern")["pattern"].transform("size")
    first = drawn[size > 1].groupby(rows["pattern"]).min().sort_values()
    templates = first.index[: max(1, budget // 2)]
    share = budget / rows["pattern"].isin(templates).sum()
    places = drawn.groupby(rows["pattern"]).rank(method="first")
    few = places <= (size * share).round().clip(lower=2)
    return rows[rows["pattern"].isin(templates) & few]


class Explanations:
    """The explanations that a notebook's parameters ask for.

    Args:
        stage: stage 03.
        values: its parameters by name; what else is in there is not read.
    """

    def __init__(self, stage: Stage, values: Mapping[str, Any]) -> None:
        self.stage, self.values = stage, values
        self.device = pick_device(values["device"])
        self.store = Units(
            stage.study, stage.scale, stage.stage, values["reuse_units"], publish=False
        )
        self.sets = load_sets(stage.input("01_data_generation", "sets.parquet"))
        self.probes = read_table(stage.input("02_training", "probes.csv"))

    @cached_property
    def lines(self) -> dict[str, pd.DataFrame]:
        """The lines that are explained, by set."""
        n_words, seed = self.values["n_words"], self.values["seed"]
        return {name: choose(rows, n_words, seed) for name, rows in self.sets.items()}

    @cached_property
    def units(self) -> list[Explained]:
        """What is explained: sets in their order, within a set models in that of the probes."""
        models = self.probes[["architecture", "size"]].drop_duplicates()
        found = [
            Explained(name, *model)
            for name in self.lines
            for model in models.itertuples(index=False, name=None)
        ]
        return [unit for unit in found if self._is_asked(unit)]

    def probe(self, architecture: str, size: str, task: str) -> Probe:
        """A probe of stage 2.

        A published model, of which there is no file of weights here, is found by its note.
        """
        model = f"models/{architecture}-{size}"
        note = self.stage.input("02_training", f"{model}.json")
        if note.with_suffix(".safetensors").is_file():
            self.stage.input("02_training", f"{model}.safetensors")
        layer = f"probes/{architecture}-{size}-{task}.safetensors"
        probe = load_probe(
            note.with_suffix(".safetensors"),
            self.stage.input("02_training", layer),
            CLASSES[task],
        )
        probe.module.to(self.device)
        return probe

    def methods_of(self, unit: Explained) -> list[str]:
        """The methods that a model is explained by."""
        return list(self.values["methods" if unit.size == "full" else "student_methods"])

    def settings_of(self, method: str, size: str = "full") -> SaliencySettings:
        """The settings that a method's name stands for.

        Args:
            method: one of `NAMED`.
            size: of the model; those of the sweep have their own numbers of samples and steps.
        """
        part = "n" if size in ("full", "student") else "sweep"
        return SaliencySettings(
            method.replace("+", " ").split()[0],
            n_samples=self.values[f"{part}_samples"],
            noise=self.values["noise"],
            n_steps=self.values[f"{part}_steps"],
            seed=self.values["seed"],
            **NAMED[method],
        )

    def explained(self, unit: Explained) -> pd.DataFrame:
        """The explanations of a set in a model, from disk where they were finished before.

        Returns:
            One row a method and line: set, task, architecture, size, method, line, probability (of
            class 1), class_0, class_1 (scores, one a word).
        """
        task, methods = task_of_set(unit.dataset), self.methods_of(unit)
        prefixes = self.lines[unit.dataset]["prefix"].tolist()
        probe = self.probe(unit.architecture, unit.size, task)
        model = f"/{unit.architecture}-{unit.size}"
        weights = [
            sha256
            for name, sha256 in self.stage.inputs.items()
            if f"{model}." in name or f"{model}-{task}." in name
        ]
        key = self.store.key(
            lines=seed_for(*map(" ".join, prefixes)),
            weights=weights,
            n_lime=self.values["n_lime"],
            settings=[str(self.settings_of(m, unit.size)) if m in NAMED else m for m in methods],
            seed=self.values["seed"],
        )
        return self.store.finished(
            unit.name, key, lambda: self._explain(unit, probe, prefixes, methods)
        )

    def _is_asked(self, unit: Explained) -> bool:
        is_swept = unit.size not in ("full", "student")
        return not is_swept or (
            unit.dataset != _NOT_SWEPT and task_of_set(unit.dataset) in self.values["sweep_tasks"]
        )

    def _explain(
        self,
        unit: Explained,
        probe: Probe,
        prefixes: Sequence[Sequence[str]],
        methods: Sequence[str],
    ) -> pd.DataFrame:
        gradients = [method for method in methods if method in NAMED]
        settings = [self.settings_of(method, unit.size) for method in gradients]
        found: dict[str, list[Saliency]] = dict(
            zip(gradients, probe_saliencies(probe, prefixes, settings), strict=True)
        )
        n_lime, seed = self.values["n_lime"], self.values["seed"]
        found |= {
            method: baseline_saliency(probe, prefixes, method, n_lime, seed)
            for method in methods
            if method in BASELINES
        }
        tables = [
            pd.DataFrame(
                {
                    "set": unit.dataset,
                    "task": task_of_set(unit.dataset),
                    "architecture": unit.architecture,
                    "size": unit.size,
                    "method": method,
                    "line": self.lines[unit.dataset].index,
                    "probability": [line.probability for line in found[method]],
                    "class_0": [line.scores[0].tolist() for line in found[method]],
                    "class_1": [line.scores[1].tolist() for line in found[method]],
                }
            )
            for method in methods
        ]
        return pd.concat(tables, ignore_index=True)
