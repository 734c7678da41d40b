"""The explanations of GECO's stage 03: the units of a run, and the rows and models that they are
made of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ...attribution.registry import METHODS, resolve_method
from ...attribution.table import KEY, NO_MODEL, load_explanations, validated
from ...core.errors import TouchstoneError
from ...core.seeds import seed_for
from ...core.stage import Stage
from ...models.load import build_model
from ...models.schemes import scheme_named
from ...models.weights import read_recipe
from ...training.classifier import Settings
from ...training.transfer import Trainer
from .as_released import method_of
from .corpus import CLASSES, DATASETS, load_dataset
from .grid import Unit, mark
from .model_units import load_trained, note_trained

N_SHOWN = 100  # base sentences that a model in place of stage 02's learns from
_MODEL = ["dataset", "scheme", "seed"]
_SEEDS_IN_FULL = 5  # of OLA; the later ones may explain with a few methods


def settings_by_method(
    explained: Mapping[str, str],
    aggregation: Mapping[str, str],
    normalise_special: bool,
    *more: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """Every method's settings, from parameters that speak of many methods.

    Args:
        explained: the explained function, by method.
        aggregation: how a vector per token becomes a number, by method.
        normalise_special: for all methods that have this setting.
        *more: further settings, by method.

    Raises:
        TouchstoneError: for a misspelt method name, whose setting would otherwise be ignored
        without a word.
    """
    settings: dict[str, dict[str, Any]] = {
        name: {"normalise_special": normalise_special}
        for name, method in METHODS.items()
        if "normalise_special" in method.defaults
    }
    functions = {name: {"explained": what} for name, what in explained.items()}
    folds = {name: {"aggregation": how} for name, how in aggregation.items()}
    for part in (functions, folds, *more):
        for name, values in part.items():
            resolve_method(name)
            settings[name] = settings.get(name, {}) | dict(values)
    return settings


def numbers_of(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each costly method's number of steps or samples, and the points' rule."""
    return {
        "Integrated Gradients": {"n_steps": values["ig_steps"], "rule": values["ig_rule"]},
        "LIME": {"n_samples": values["lime_samples"]},
        "Kernel SHAP": {"n_samples": values["kernel_shap_samples"]},
        "Gradient SHAP": {"n_samples": values["gradient_shap_samples"]},
    }


def plan_units(
    models: pd.DataFrame,
    methods: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    n_base: int,
    n_base_ola: int,
    one_seed: Sequence[str] = (),
    every_seed_ola: Sequence[str] = (),
    one_pass: Sequence[str] = (),
    n_base_of: Mapping[str, int] | None = None,
) -> list[Unit]:
    """The units of a run; floors are once per data set, on every row that any model explains.

    Args:
        models: dataset, scheme and seed of what was trained.
        methods: registered names, or "module:function".
        settings: by method.
        n_base: base sentences that encoders explain (0: all).
        n_base_ola: base sentences that OLA, which is cheap, explains (0: all).
        one_seed: costly methods, which take only the first seed of a scheme, but all seeds of OLA.
        every_seed_ola: where it names methods, OLA's sixth and later seeds explain with these only.
        one_pass: schemes whose models are explained with the methods of a single pass, and with
            your own, only.
        n_base_of: base sentences in the place of n_base and n_base_ola, for some schemes.

    Raises:
        TouchstoneError: for unknown names and settings, before anything runs.
    """
    for name in every_seed_ola:  # a misspelt name would leave later seeds without a method
        resolve_method(name)
    chosen = {
        name: method_of(name, settings.get(name)).settings(settings.get(name)) for name in methods
    }
    floors = [name for name in methods if resolve_method(name).family == "floor"]
    of_methods = {name: resolve_method(name) for name in methods}
    several = {n for n, found in of_methods.items() if not found.shares and found.family != "own"}
    more = dict(n_base_of or {})
    # 0 stands for all, which is more than any number
    asked = n_base, n_base_ola, *more.values()
    n_floor = 0 if 0 in asked else max(asked)
    units = [
        Unit(dataset, NO_MODEL, -1, name, chosen[name], n_floor)
        for dataset in models["dataset"].unique()
        for name in floors
    ]
    first = models.groupby(["dataset", "scheme"])["seed"].transform("min")
    for model, first_seed in zip(models.itertuples(), first, strict=True):
        is_ola = scheme_named(model.scheme).is_one_layer
        # seeds are counted from the scheme's first, whatever its number is
        number = model.seed - first_seed
        n = more.get(model.scheme, n_base_ola if is_ola else n_base)
        left_out = set(floors)
        if is_ola and every_seed_ola and number >= _SEEDS_IN_FULL:
            left_out |= set(methods) - set(every_seed_ola)
        if not is_ola and number > 0:
            left_out |= set(one_seed)
        if model.scheme in one_pass:
            left_out |= several
        units += [
            Unit(model.dataset, model.scheme, int(model.seed), name, chosen[name], n)
            for name in methods
            if name not in left_out
        ]
    return units


def choose_rows(rows: pd.DataFrame, n_base: int, seed: int) -> pd.DataFrame:
    """All variants of `n_base` base sentences (0: of all), drawn by `seed`.

    A smaller choice is part of a larger one, and data sets over the same base sentences get the
    same choice.

    Raises:
        TouchstoneError: for more base sentences than there are.
    """
    # sorted, so that the draw does not depend on the order of the file
    known = np.sort(rows["sentence_idx"].unique())
    if n_base > len(known):
        raise TouchstoneError(
            f"n_base asks for {n_base} base sentences and the test split has {len(known)}; "
            "ask for fewer, or write 0 for all"
        )
    drawn = np.random.default_rng(seed_for("explained rows", seed)).permutation(known)[
        : n_base or None
    ]
    return rows[rows["sentence_idx"].isin(drawn)].reset_index(drop=True)


def one_form_each(rows: pd.DataFrame, n_base: int = 0) -> pd.DataFrame:
    """One row of each of the first `n_base` base sentences (0: of all), the forms taking turns."""
    forms = [part for _, part in rows.groupby("sentence_idx", sort=False)][: n_base or None]
    taken = [part.iloc[[i % len(part)]] for i, part in enumerate(forms)]
    return pd.concat(taken, ignore_index=True)


def read_foreign(stage: Stage, files: Sequence[str], plan: Sequence[Unit]) -> list[pd.DataFrame]:
    """Explanations that were made elsewhere, each compared with the test row that it explains.

    Args:
        files: Parquet, in the format of `lib.attribution.SCHEMA`.
        plan: what this run explains itself.

    Raises:
        TouchstoneError: a file is not in the format, explains other rows than stage 01's or another
            study's, or goes by the names of a part of the plan.
    """
    if not files:
        return []
    rows = pd.concat(
        [load_dataset(stage, name, "test").assign(dataset=name) for name in DATASETS],
        ignore_index=True,
    )
    planned = {(u.dataset, u.scheme, u.seed, resolve_method(u.method).name) for u in plan}
    found = []
    for file in files:
        explanations = load_explanations(stage.external(file), rows)
        for row in explanations[[*KEY, "study"]].to_dict("records"):
            if row["study"] not in ("geco", "own", "-"):
                raise TouchstoneError(
                    f"{file}: row {row['row_id']} is of the study {row['study']!r}; write geco, or "
                    "leave the column out"
                )
            if tuple(row[name] for name in KEY[:4]) in planned:
                raise TouchstoneError(
                    f"{file}: this run makes {row['method']} of {row['scheme']}, seed "
                    f"{row['seed']}, on {row['dataset']} itself; give yours another scheme or "
                    "method name"
                )
        found.append(explanations)
    validated(pd.concat(found, ignore_index=True), " and ".join(Path(f).name for f in files))
    return found


@dataclass
class StageSources:
    """Rows from stage 01 (the test split) and models from stage 02, whose `predictions` tell
    what was trained.

    A model is marked by its predictions: a unit that was published is found where the weights
    are not.
    """

    stage: Stage
    predictions: pd.DataFrame
    seed: int
    device: torch.device
    _rows: dict[tuple[str, int], pd.DataFrame] = field(default_factory=dict, repr=False)
    _model: tuple[tuple[str, str, int], Any] | None = field(default=None, repr=False)
    _noted: set[tuple[str, str, int]] = field(default_factory=set, repr=False)

    def rows_of(self, unit: Unit) -> pd.DataFrame:
        """The chosen rows of the unit's test split."""
        place = (unit.dataset, unit.n_base)
        if place not in self._rows:
            test = load_dataset(self.stage, unit.dataset, "test")
            self._rows[place] = choose_rows(test, unit.n_base, self.seed)
        return self._rows[place]

    def model_of(self, unit: Unit) -> Any:
        """The trained model; for a floor what it is fitted to, or any model for its tokenizer."""
        place = (unit.dataset, unit.scheme, unit.seed)
        if not unit.sees_model:
            floor = unit.explainer
            if floor.fit is not None:
                return floor.fit(load_dataset(self.stage, unit.dataset, floor.fit_on))
            if not floor.reads_tokenizer:
                return None
            place = self._first_model(unit.dataset)
        if self._model is None or self._model[0] != place:  # one model at a time: they are large
            model = load_trained(self.stage, *place)
            model.module.to(self.device)
            self._model = (place, model)
        return self._model[1]

    def mark_of(self, unit: Unit) -> str:
        """What the unit's model predicts on the test split, as a mark.

        For floors it is the mark of what they are fitted to.
        """
        if not unit.sees_model:
            if (floor := unit.explainer).fit is not None:
                rows = load_dataset(self.stage, unit.dataset, floor.fit_on)
                return mark(rows[["sentence", "target"]])
            # a floor that is not fitted depends on a model by its tokenizer only
            return mark(pd.DataFrame([self._first_model(unit.dataset)]))
        if (place := (unit.dataset, unit.scheme, unit.seed)) not in self._noted:
            note_trained(self.stage, *place)
            self._noted.add(place)
        found = self.predictions
        same = (
            (found["dataset"] == unit.dataset)
            & (found["scheme"] == unit.scheme)
            & (found["seed"] == unit.seed)
        )
        return mark(found[same].drop(columns=_MODEL).sort_values("row_id"))

    def model_to_show(self, unit: Unit, encoder: str, revision: str) -> tuple[Any, Any, str]:
        """A unit's model, the same before training, and in words what it is.

        A run that found stage 02's numbers in the reference has no weights to show. Then a head
        is trained on a few base sentences, which takes seconds, and the words say so.
        """
        recipe_file = f"models/{unit.dataset}/{unit.scheme}/seed{unit.seed}.json"
        if (self.stage.folder.parent / "02_training" / recipe_file).is_file():
            model = self.model_of(unit)
            recipe = read_recipe(self.stage.input("02_training", recipe_file))
            what = f"{unit.scheme} on {unit.dataset}, training seed {unit.seed}"
        else:
            train, test = (
                choose_rows(load_dataset(self.stage, unit.dataset, split), n, self.seed)
                for split, n in (("train", N_SHOWN), ("test", 1))
            )
            trainer = Trainer(encoder, revision, self.device)
            # the head alone, over an encoder that reads each sentence once: cheap
            settings = Settings(epochs=40, lr=0.01, batch_size=32)
            trained = trainer.train("C", unit.seed, train, test, CLASSES, settings)
            model, recipe = trained.model, trained.recipe
            what = (
                f"C on {N_SHOWN} base sentences of {unit.dataset}, trained here, since the weights "
                "of stage 02 are not at hand"
            )
        before = build_model(recipe, getattr(model, "used_ids", ()))[0]
        before.module.to(self.device)
        return model, before, what

    def _first_model(self, dataset: str) -> tuple[str, str, int]:
        """The first model of a data set; OLA's come last, since they are built from the rows."""
        found = self.predictions
        models = found.loc[found["dataset"] == dataset, _MODEL].drop_duplicates()
        return min(
            models.itertuples(index=False, name=None),
            key=lambda model: (scheme_named(model[1]).is_one_layer, *model),
        )
