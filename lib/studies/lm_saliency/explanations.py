"""Stage 03's saliency: each set explained in each model, or read where it was finished before.

The notebook and the jobs of `jobs.py` call the same functions, so it does not matter who explains.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError
from ...core.files import read_table, sha256_of
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...models.language_model import ARCHITECTURES
from ...models.probe import Probe, load_probe
from .items import (
    SHUFFLED,
    agreement_items,
    check_saliency,
    line_items,
    lines_to_show,
    long_items,
    long_lines,
    narrow,
    pair_items,
    with_shuffled,
)
from .lines import load_sets
from .naming import BALANCED, GRAMMAR, WHOLE
from .plans import model_name, shown_trainings
from .probe_saliency import (
    BASELINES,
    Saliency,
    SaliencySettings,
    baseline_saliency,
    probe_saliencies,
)
from .released import GROUPINGS
from .text import BALANCED_KIND, CLASSES, DRAWN, task_of_set

NAMED: dict[str, dict[str, str]] = {  # the names of the study's tables, as settings
    "V": {},
    "SG": {},
    "IG": {},
    "V+VN": {"composition": "vector_norm"},
    "SG+VN": {"composition": "vector_norm"},
    "IG released": {"path": "released"},
    "SG norm": {"noise_kind": "norm"},
}
PAIRED = ("Syneval", "Winobias")  # sets made of templates
SHOWN = ("V", "SG", "IG")
_Make = Callable[..., pd.DataFrame]
_DIGITS = 4  # of published numbers
_MODEL = ["architecture", "size", "training"]
_NOT_SWEPT = "Winobias"  # the paper's sweep leaves it out, and so does ours


class Explained(NamedTuple):
    """A set in a model: one unit."""

    dataset: str
    architecture: str
    size: str
    training: int = 0

    @property
    def name(self) -> str:
        """The name of its unit."""
        return f"{self.dataset}-{model_name(*self[1:])}".replace(" ", "_")

    @property
    def is_swept(self) -> bool:
        """Whether the model belongs to the sweep."""
        return self.size not in ("full", "student")

    @property
    def is_of_hugging_face(self) -> bool:
        """Whether it is one of `hf_models`, which has one training, and weights that are kept."""
        return self.architecture.removesuffix(GRAMMAR) not in ARCHITECTURES

    @property
    def is_whole(self) -> bool:
        """Whether the set is one of uncut lines, which stand beside those that were cut."""
        return self.dataset.removesuffix(BALANCED).endswith(WHOLE)

    @property
    def probe(self) -> str:
        """The kind of the probe that is asked: that of the set's task, or the balanced one."""
        return BALANCED_KIND if self.dataset.endswith(BALANCED) else task_of_set(self.dataset)

    @property
    def about(self) -> dict[str, object]:
        """The columns that name it in tables."""
        return {"dataset": self.dataset, "task": task_of_set(self.dataset)} | dict(
            zip(("architecture", "size", "training"), self[1:], strict=True)
        )


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
        models: rows of `Probing.row` with the column lm (the SHA-256 of the model); by default what
            stage 02 left.
        restore: puts the files of a probe (architecture, size, training, task) where they are read.
        shown: the training of each architecture whose scores are shown; by default
            `shown_trainings` of `models`, so those must be all that there are.
    """

    def __init__(
        self,
        stage: Stage,
        values: Mapping[str, Any],
        models: pd.DataFrame | None = None,
        restore: Callable[[tuple[str, str, int, str]], None] = lambda key: None,
        shown: Mapping[str, int] | None = None,
    ) -> None:
        self.stage, self.values = stage, values
        self.device = pick_device(values["device"])
        place = stage.study, stage.scale, stage.stage, values["reuse_units"]
        self.store = Units(*place, publish=False)
        self.published = Units(*place, digits=_DIGITS if values["reuse_units"] else None)
        files = ("sets.parquet", "whole.parquet")
        sets, whole = (load_sets(stage.input("01_data_generation", name)) for name in files)
        self.sets = sets | whole
        if models is None:
            models = read_table(stage.input("02_training", "models.parquet"))
        self.models, self._restore = models, restore
        keys = models[_MODEL].itertuples(index=False, name=None)
        self._shown = shown_trainings(keys) if shown is None else shown
        self._probes: dict[tuple[str, str, int, str], Probe] = {}
        self.examples: dict[str, Probe] = {}  # of `examples.probe_to_show`

    @cached_property
    def lines(self) -> dict[str, pd.DataFrame]:
        """The lines that are explained, by set."""
        n_words, seed = self.values["n_words"], self.values["seed"]
        return {name: choose(rows, n_words, seed) for name, rows in self.sets.items()}

    @cached_property
    def _asked(self) -> set[tuple[str, str, int, str]]:
        """The probes that there are: architecture, size, training, kind."""
        names = self.models[["architecture", "size", "training", "kind"]]
        return set(names.itertuples(index=False, name=None))

    @cached_property
    def units(self) -> list[Explained]:
        """What is explained: sets in their order, within a set models in that of the probes."""
        models = self.models[_MODEL].drop_duplicates()
        found = [
            Explained(name, *model)
            for name in self._named
            for model in models.itertuples(index=False, name=None)
        ]
        return [unit for unit in found if self._is_asked(unit)]

    def lines_of(self, unit: Explained) -> pd.DataFrame:
        """The lines of a unit's set that are explained."""
        return self.lines[unit.dataset.removesuffix(BALANCED)]

    @cached_property
    def _named(self) -> dict[str, pd.DataFrame]:
        """The sets, and those of gender once more under the name of the balanced probe."""
        of_gender = [name for name in self.sets if task_of_set(name) == "gender"]
        return self.sets | {name + BALANCED: self.sets[name] for name in of_gender}

    def is_check(self, unit: Explained) -> bool:
        """Whether a model is one of those that two probes of gender are compared on."""
        return (*unit[1:], BALANCED_KIND) in self._asked

    def has_weights(self, architecture: str, size: str, task: str, training: int = 0) -> bool:
        """Whether the files of a probe and of its model are here."""
        _, known, layer = self._files((architecture, size, training, task))
        return known.is_file() and layer.is_file()

    def probe(self, architecture: str, size: str, task: str, training: int = 0) -> Probe:
        """A probe of stage 2, by its task or its kind; a published model, of which there are no
        weights, by its note.

        Raises:
            TouchstoneError: the files are not those that stage 2 made.
        """
        key = architecture, size, training, task
        if key not in self._probes:
            self._restore(key)
            weights, known, layer = self._files(key)
            for path, sha256 in zip((known, layer), self._sha256(key), strict=True):
                if not path.is_file() or sha256_of(path) != sha256:
                    raise TouchstoneError(
                        f"{path} is not what its unit was made with; delete that unit of stage 02, "
                        f"also a published one, and run `make {self.stage.study} "
                        f"SCALE={self.stage.scale} STAGE=02_training` again"
                    )
            self._probes[key] = load_probe(weights, layer, CLASSES[DRAWN.get(task, task)])
            self._probes[key].module.to(self.device)
        return self._probes[key]

    def _files(self, key: tuple[str, str, int, str]) -> tuple[Path, Path, Path]:
        """The weights of a model, the file that it is known by (of a published one its note), and
        the layer of a probe.
        """
        model, folder = model_name(*key[:3]), self.stage.folder.parent / "02_training"
        weights = folder / f"models/{model}.safetensors"
        known = weights if weights.is_file() else weights.with_suffix(".json")
        return weights, known, folder / f"probes/{model}-{key[3]}.safetensors"

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
            One row a method and line: dataset, task, architecture, size, training, method, line,
            probability (of class 1), class_0, class_1 (scores, one a word).
        """
        make = partial(self._explain, unit)
        table = self.store.finished(unit.name, self._key(unit), make)
        for place, (name, value) in enumerate(unit.about.items()):
            table.insert(place, name, value)
        return table

    def numbers(self, unit: Explained) -> dict[str, pd.DataFrame]:
        """What stage 04 needs of a set in a model, without its scores.

        Each table is a unit that can be published, so weights and scores need not be there.

        Returns:
            lines (`long_lines`), pairs (`long_items`, of the two synthetic sets; of full models by
            both groupings, of others by the paper's), agreement (with the student, beside a
            student), shown (scores of a few lines). Of uncut lines: whole, and of models of the
            check balanced (both `long_lines`).
        """
        lines = self._number(unit, "lines", line_items)
        if self.is_check(unit):
            return {"balanced": lines}
        if unit.is_whole:
            return {"whole": lines}
        parts: dict[str, pd.DataFrame] = {"lines": lines}
        if unit.dataset in PAIRED:
            # How the authors' scripts group lines is compared for full models alone.
            for grouping in GROUPINGS if unit.size == "full" else GROUPINGS[:1]:
                make = partial(pair_items, grouping=grouping)
                parts[f"pairs {grouping}"] = self._number(unit, f"pairs-{grouping}", make)
        if unit.size == "student":
            parts["agreement"] = self._number(unit, "agreement", self._agreement(unit))
        if not unit.is_swept and unit.training == self._shown[unit.architecture]:
            parts["shown"] = self._number(unit, "shown", self._few)
        return parts

    def collected(self) -> dict[str, pd.DataFrame]:
        """The tables of `numbers` of all units, long: lines, whole, balanced, pairs, agreement,
        shown.
        """
        found: dict[str, list[pd.DataFrame]] = {}
        for unit in self.units:
            for name, table in self.numbers(unit).items():
                kind, _, grouping = name.partition(" ")
                about = unit.about | ({"grouping": grouping} if grouping else {})
                if kind == "shown":
                    table = table.assign(**about)
                else:
                    is_pair = kind in ("pairs", "agreement")
                    table = (long_items if is_pair else long_lines)(table, about)
                found.setdefault(kind, []).append(table)
        for name in ("whole", "balanced"):  # where no line was cut, or no model is of the check
            found.setdefault(name, [found["lines"][0].head(0)])
        return {kind: pd.concat(tables, ignore_index=True) for kind, tables in found.items()}

    def _number(self, unit: Explained, kind: str, make: _Make) -> pd.DataFrame:
        """One table of numbers: read, or made of the explanations."""
        key = self.published.key(
            explained=self._key(unit),
            beside=self._key(unit._replace(size="full")) if kind == "agreement" else "",
            methods=self.values["consistency_methods"],
        )

        def compute() -> pd.DataFrame:
            saliency = with_shuffled(self.explained(unit), self.values["seed"])
            check_saliency(saliency)
            if kind.startswith("pairs"):
                asked = [*self.values["consistency_methods"], SHUFFLED]
                saliency = saliency[saliency["method"].isin(asked)]
            table = make(saliency, self._named)
            return narrow(table, 3 if kind.startswith("pairs") else 4) if is_large else table

        # As text, the numbers of thousands of lines and pairs would be too large to be published.
        is_large = self.values["reuse_units"] and kind != "shown"
        return self.published.finished(f"{unit.name}-{kind}", key, compute, exact=is_large)

    def _agreement(self, unit: Explained) -> _Make:
        def make(saliency: pd.DataFrame, sets: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
            return agreement_items(self.explained(unit._replace(size="full")), saliency, sets)

        return make

    def _few(self, saliency: pd.DataFrame, sets: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        name = saliency["dataset"].iloc[0]
        chosen = lines_to_show(self.lines, [name])[name]
        few = saliency["line"].isin(chosen) & saliency["method"].isin(SHOWN)
        return saliency.loc[few, ["method", "line", "probability", "class_0", "class_1"]]

    def _key(self, unit: Explained) -> str:
        methods = self.methods_of(unit)
        return self.store.key(
            lines=seed_for(*map(" ".join, self.lines_of(unit)["prefix"])),
            weights=self._sha256((*unit[1:], unit.probe)),
            n_lime=self.values["n_lime"],
            settings=[str(self.settings_of(m, unit.size)) if m in NAMED else m for m in methods],
            seed=self.values["seed"],
        )

    def _sha256(self, key: tuple[str, str, int, str]) -> list[str]:
        """The checksums of a model and of its probe for a task."""
        columns = ["architecture", "size", "training", "kind"]
        row = self.models.set_index(columns).sort_index().loc[key]
        return [row["lm"], row["sha256"]]

    def _is_asked(self, unit: Explained) -> bool:
        """Whether the model has a probe for the set's task; the sweep leaves one set out, only some
        trainings of our own models are asked for uncut lines, and those of the check about gender
        (their students not for uncut lines).
        """
        if unit.is_swept and unit.dataset == _NOT_SWEPT:
            return False
        if self.is_check(unit):
            is_cut = unit.is_whole and unit.size == "student"
            return task_of_set(unit.dataset) == "gender" and not is_cut
        is_asked_whole = unit.is_of_hugging_face or unit.training in self.values["whole_trainings"]
        if unit.is_whole and (unit.is_swept or not is_asked_whole):
            return False
        return (*unit[1:], unit.probe) in self._asked

    def _explain(self, unit: Explained) -> pd.DataFrame:
        probe = self.probe(unit.architecture, unit.size, unit.probe, unit.training)
        lines, methods = self.lines_of(unit), self.methods_of(unit)
        prefixes = lines["prefix"].tolist()
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
                    "method": method,
                    "line": lines.index,
                    "probability": [line.probability for line in found[method]],
                    "class_0": [line.scores[0].tolist() for line in found[method]],
                    "class_1": [line.scores[1].tolist() for line in found[method]],
                }
            )
            for method in methods
        ]
        return pd.concat(tables, ignore_index=True)
