"""What stage 3 keeps: what explainers say of the texts of each model.

A unit is one explainer (or all that take a single pass of the model) and the texts of one training.
Floors never look at the model and cost nothing: they are asked again each time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...attribution import resolve_method
from ...core.contents import by_content
from ...core.errors import TouchstoneError
from ...core.files import load_parquet
from ...core.seeds import pick_device
from ...core.stage import Stage
from ...core.units import Units
from ...metrics.randomisation import randomise
from ...models.probe import load_probe
from ...models.text_model import TextModel
from . import explainers as who
from .models import read_model
from .number_model import CLASSES
from .trainings import NUMBER, Place, digest

REDRAWN = "redrawn"  # the weights of the model are drawn anew
_TRAINED = "02_training"
_CHEAP = "single_pass"  # the unit of those that take one pass
_APART: Place = ("gender", 0)  # whose weights are drawn anew; other budgets begin with it, too


class Asked(NamedTuple):
    """A unit: explainers about a model; `variant` is "", "redrawn", or a number of passes."""

    model: str
    training: int
    variant: str
    explainers: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the unit is called."""
        first = self.explainers[0]
        letters = "".join(letter if letter.isalnum() else "_" for letter in first)
        names = letters if len(self.explainers) == 1 and not _is_cheap(first) else _CHEAP
        return "-".join(filter(None, (self.model, str(self.training), names, self.variant)))


@dataclass(frozen=True)
class Asking:
    """The units of stage 3 under the notebook's parameters.

    Args:
        stage: stage 3, opened or not.
        store: where the units are kept.
        values: the notebook's parameters by name; `globals()` will do.
    """

    stage: Stage
    store: Units
    values: Mapping[str, Any] = field(repr=False)
    _loaded: dict[tuple[Place, bool], TextModel] = field(
        default_factory=dict, init=False, repr=False
    )

    @cached_property
    def truths(self) -> pd.DataFrame:
        """The items of stage 2, with their text in one string."""
        truths = load_parquet(self.stage.input(_TRAINED, "truths.parquet"))
        return truths.assign(text=truths["sentence"].map(" ".join))

    @cached_property
    def of_second(self) -> pd.DataFrame:
        """The same for models of the second kind (`Trainings.second_models`)."""
        truths = load_parquet(self.stage.input(_TRAINED, "second_models.parquet"))
        return truths.assign(text=truths["sentence"].map(" ".join))

    @cached_property
    def train(self) -> pd.DataFrame:
        """The training texts of all models."""
        return load_parquet(self.stage.input("01_data_generation", "train.parquet"))

    @cached_property
    def asked(self) -> pd.DataFrame:
        """The texts that are explained, each once a model, training and class."""
        both = pd.concat([self.truths, self.of_second], ignore_index=True)
        return both.drop_duplicates(["model", "training", "text", "target"])

    def models(self) -> list[Place]:
        """The models of stage 2 but for those of the second kind."""
        return [place for place, _ in self.truths.groupby(["model", "training"])]

    def second_models(self) -> list[Place]:
        """Those of the second kind."""
        return [place for place, _ in self.of_second.groupby(["model", "training"])]

    def texts(self, name: str, training: int) -> pd.DataFrame:
        """The texts of one training."""
        is_mine = (self.asked["model"] == name) & (self.asked["training"] == training)
        return self.asked[is_mine].reset_index(drop=True)

    def units(self) -> Iterator[Asked]:
        """All units."""
        for place in (*self.models(), *self.second_models()):
            yield from self._units_of(place, "")
        for place in self.budgeted():
            for n in self.values["budgets"]:
                yield from self._units_of(place, str(n))
        yield from self._units_of(_APART, REDRAWN)

    def budgeted(self) -> list[Place]:
        """The trainings whose explainers are given other numbers of passes: the first ones."""
        of_model = [place for place in self.models() if place[0] == _APART[0]]
        return of_model[: self.values["budget_trainings"]]

    def bought(self) -> pd.DataFrame:
        """What explainers say after so many passes: of `explained`, with passes."""
        parts = [
            self.explained(*place, str(n)).assign(passes=n)
            for place in self.budgeted()
            for n in self.values["budgets"]
        ]
        return pd.concat(parts, ignore_index=True)

    def _units_of(self, place: Place, variant: str) -> list[Asked]:
        if variant not in ("", REDRAWN):
            return [Asked(*place, variant, (name,)) for name in who.PASSES]
        names = list(self.values["explainers"])
        cheap = tuple(name for name in names if _is_cheap(name))
        groups = [(name,) for name in names if name not in cheap]
        return [Asked(*place, variant, group) for group in (cheap, *groups) if group]

    def explained(self, name: str, training: int, variant: str = "") -> pd.DataFrame:
        """What everybody says of the texts of one training: explainer, model, training, text,
        scores, and why ("", or the reason of a refusal).

        Args:
            name, training: the model.
            variant: "redrawn"; or a number of passes, for explainers that take one (no floors).
        """
        place, rows = (name, training), self.texts(name, training)
        self.has_weights(place)
        parts = [self.answers(unit) for unit in self._units_of(place, variant)]
        order = list(who.PASSES)
        if variant in ("", REDRAWN):
            learnt_from = self.train[self.train["model"] == name.partition("-")[0]]
            floors: dict[str, dict[str, Any]] = dict.fromkeys(who.FLOORS, {})
            parts.append(who.ask_each(None, who.fit_floors(learnt_from), rows, floors))
            order = [*self.values["explainers"], *floors]
        found = pd.concat(parts, ignore_index=True)
        at = dict(zip(rows["item_id"], range(len(rows)), strict=True))
        places = found["item_id"].map(at), found["explainer"].map(order.index)
        found = found.iloc[np.lexsort(places[::-1])].reset_index(drop=True)
        texts = found["item_id"].map(rows.set_index("item_id")["text"])
        found = found.assign(model=name, training=training, text=texts)
        return found[["explainer", *who.ABOUT_TEXT, "scores", "why"]]

    def answers(self, unit: Asked) -> pd.DataFrame:
        """The lines of `explainers.ask_each` of one unit, computed where they are missing. What is
        to be published has the digits of a float32.
        """
        rows = self.texts(unit.model, unit.training)
        chosen = self.settings(unit)
        key = self.store.key(
            unit=unit.name,
            settings=list(chosen.items()),
            texts=digest(rows[["item_id", "text", "target", "f"]]),
            seed=self.values["seed"] if unit.variant == REDRAWN else None,
            yours=[by_content(name) for name in unit.explainers],
        )
        with self.store.claim(unit.name):
            kept = self.store.load(unit.name, key)
            if kept is None:
                place = unit.model, unit.training
                model = self.loaded(place, unit.variant == REDRAWN)
                made = who.ask_each(model, {}, rows, chosen)
                if self.values["reuse_units"]:
                    made["scores"] = [list(np.float32(scores)) for scores in made["scores"]]
                kept = self.store.save(unit.name, key, made, exact=True)
        return kept

    def passes(self) -> pd.DataFrame:
        """How many texts a model reads until each explainer has explained its first text: of
        `explainers.count_passes`, a unit of its own.
        """
        name, training = _APART
        rows = self.texts(name, training).head(1)
        chosen = {name: dict(settings) for name, settings in self.values["explainers"].items()}
        unit = f"{name}-{training}-passes"
        key = self.store.key(
            unit=unit,
            settings=list(chosen.items()),
            texts=digest(rows[["text", "target"]]),
            yours=[by_content(one) for one in chosen],
        )
        with self.store.claim(unit):
            kept = self.store.load(unit, key)
            if kept is None:
                made = who.count_passes(self.loaded(_APART), rows, chosen)
                kept = self.store.save(unit, key, made, exact=True)
        return kept

    def loaded(self, place: Place, is_redrawn: bool = False) -> TextModel:
        """A model of stage 2; the last one is kept until another one comes.

        Raises:
            TouchstoneError: stage 2 has published answers of the model, and no weights.
        """
        if (place, is_redrawn) in self._loaded:
            return self._loaded[place, is_redrawn]
        name, training = place
        if not self.has_weights(place):
            raise TouchstoneError(
                f"{name}-{training} has no weights here: what it says is that of "
                "outputs/reference, and this explanation is not among it; train it again: run "
                "02_training with reuse_units false"
            )
        note = self.stage.input(_TRAINED, f"models/{name}-{training}.json")
        weights = note.with_suffix(".safetensors")
        model: TextModel
        device = pick_device(self.values["device"])
        if name == NUMBER:
            model = load_probe(weights, note.with_name(f"{note.stem}-probe.safetensors"), CLASSES)
            model.module.to(device)
        else:
            model = read_model(note, weights, device)
        if is_redrawn:
            module = model.module
            randomise(module, dict(module.named_parameters()), self.values["seed"])
        self._loaded.clear()
        self._loaded[place, is_redrawn] = model
        return model

    def settings(self, unit: Asked) -> dict[str, dict[str, Any]]:
        """The settings of the explainers of a unit."""
        if unit.variant not in ("", REDRAWN):
            return {name: {who.PASSES[name]: int(unit.variant)} for name in unit.explainers}
        return {name: dict(self.values["explainers"][name]) for name in unit.explainers}

    def has_weights(self, place: Place) -> bool:
        """Whether stage 2 has left the weights of a model. They are recorded as read, for what is
        said of the model depends on them, whether it is said now or was before.
        """
        stem = f"models/{place[0]}-{place[1]}"
        for end in (".json", ".safetensors", "-probe.safetensors"):
            if f"{_TRAINED}/{stem}{end}" not in self.stage.inputs:
                self.stage.note(_TRAINED, f"{stem}{end}")
        return f"{_TRAINED}/{stem}.json" in self.stage.inputs


def _is_cheap(name: str) -> bool:
    """Whether an explainer takes one pass of the model, or about that."""
    method = resolve_method(name)
    is_one_pass = not {"n_samples", "n_steps"} & method.defaults.keys()
    return is_one_pass and method.family in ("gradient", "attention")
