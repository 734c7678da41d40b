"""What stage 3 keeps: the answers of each explainer about each model.

Each is a unit: found where this code has made it under the same settings, made and kept otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ...core.contents import by_content
from ...core.errors import TouchstoneError
from ...core.files import load_parquet
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...metrics.concept_effects import fitted_scale, icace
from ...models.load import read_trained
from ...training.classifier import Settings
from .encoders import ProxySettings
from .explainer import Explainer
from .own_explainer import ABOUT
from .pairs import rated_pairs
from .questions import AnyHead, Questions, Texts, ask
from .reading import gather_texts, load_reading, load_vectors
from .registry import explainer_named
from .reviewers import file_of

_TRAINED = "02_training"
_ENCODER = "encoder"  # the kind whose tensors stage 2 keeps
_WEIGHTS = ("json", "safetensors")

_STEPS = 10_000  # of a published estimate

Given = tuple[Texts, Questions, AnyHead | None, pd.DataFrame]  # train, questions, head, pairs
Place = tuple[str, str, int]  # of a model: data set, kind, seed


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
    _given: dict[Place, tuple[Texts, Texts, Texts, AnyHead]] = field(
        default_factory=dict, init=False, repr=False
    )

    @cached_property
    def texts(self) -> pd.DataFrame:
        """All texts of stage 1."""
        return load_parquet(self.stage.input("01_data_generation", "texts.parquet"))

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The answers of all models of stage 2."""
        return load_parquet(self.stage.input(_TRAINED, "predictions.parquet"))

    @cached_property
    def aspects(self) -> pd.DataFrame:
        """The predicted aspects of train, test and dev texts, by the seed of their classifiers."""
        return load_parquet(self.stage.input(_TRAINED, "aspects.parquet"))

    @property
    def n_classes(self) -> int:
        """How many classes the models have, K."""
        return sum(name.startswith("p_") for name in self.predictions)

    @cached_property
    def all_pairs(self) -> pd.DataFrame:
        """The pairs of stage 1; with two classes, those without three stars have no class."""
        pairs = load_parquet(self.stage.input("01_data_generation", "pairs.parquet"))
        return rated_pairs(pairs, self.texts, self.n_classes)

    @property
    def pairs(self) -> pd.DataFrame:
        """The test pairs."""
        return self.all_pairs.query("split == 'test'")

    @cached_property
    def models(self) -> pd.DataFrame:
        """The models of stage 2: dataset, model, seed, and what stage 2 recorded of them."""
        return load_parquet(self.stage.input(_TRAINED, "trainings.parquet"))

    def aspects_of(self, dataset: str, number: int = 0) -> pd.DataFrame:
        """What the aspect classifiers of a training say; of all, where there is one fit for all."""
        said = self.aspects[self.aspects["dataset"] == dataset]
        return said[said["seed"] == (number if number in set(said["seed"]) else 0)]

    def gathered(self, dataset: str, model: str, number: int) -> Given:
        """Train texts, test questions, the last layer of one model, and its pairs.

        Raises:
            TouchstoneError: stage 2 has the model's published answers alone.
        """
        train, test, _, head = self._texts_of(dataset, model, number)
        asked = self.asked(dataset, model, number)
        return train, ask(asked, test), head, asked

    def asked(self, dataset: str, model: str, number: int, split: str = "test") -> pd.DataFrame:
        """The pairs of a split both sides of which a model has answered."""
        told = self._told(dataset, model, number)
        known = told.loc[told["split"] == split, "text_id"]
        pairs = self.all_pairs.query("dataset == @dataset and split == @split")
        return pairs[pairs["base_id"].isin(known) & pairs["counterfactual_id"].isin(known)]

    def can_be_asked(self, name: str, model: str) -> bool:
        """Whether an explainer can be asked about a kind of model of stage 2."""
        return model == _ENCODER or explainer_named(name).needs != "model"

    def unit(self, name: str, dataset: str, model: str, number: int) -> str:
        """What a unit is called."""
        explainer = "".join(letter if letter.isalnum() else "_" for letter in name)
        return f"{file_of(dataset, model, number)}-{explainer}"

    def answers(
        self, name: str, dataset: str, model: str, number: int, given: Given | None = None
    ) -> pd.DataFrame | None:
        """The estimates of one explainer about one model, a row a pair; None where it cannot be
        asked about it. What is to be published has four decimals.

        Args:
            name: the explainer.
            dataset, model, number: the model.
            given: of a model from outside; of ours it is gathered where a unit is missing.
        """
        place, reuse = (dataset, model, number), self.values["reuse_units"]
        if given is None and not self.can_be_asked(name, model):
            return None
        unit = self.unit(name, *place)
        self._note(place)
        if reuse and given is None:
            pairs = self.asked(*place)[["base_id", "counterfactual_id"]]
            self.store.keep_ids(f"{dataset}-rows", pairs)
        key = self._key(unit, name, place, given is not None)
        with self.store.claim(unit):
            kept = self.store.load(unit, key)
            if kept is None:
                made = self._asked_now(name, place, given)
                if reuse:
                    made = made.assign(**(made[_effects(made)] * _STEPS).round().astype("int32"))
                kept = self.store.save(unit, key, made, exact=reuse)
        if reuse:
            kept = kept.assign(**kept[_effects(kept)] / _STEPS)
        labels = {"explainer": name, "dataset": dataset, "model": model, "seed": number}
        asked = self.asked(*place) if given is None else given[3]
        rows = asked[ABOUT].reset_index(drop=True).assign(**labels)
        return rows.assign(**{column: kept[column].to_numpy() for column in kept})

    def _asked_now(self, name: str, place: Place, given: Given | None) -> pd.DataFrame:
        """An explainer's effects on the pairs of test; and the number (`scale`) by which they are
        nearest to the model's effects on pairs of dev, where the model answered these.
        """
        train, questions, head, _ = given or self.gathered(*place)
        explainer = self._made(name, place).fit(train, head, seed_for(name, *place))
        effects = explainer.effects(questions)
        table = pd.DataFrame(effects, columns=[f"e_{k + 1}" for k in range(effects.shape[1])])
        scale = np.nan
        if given is None and len(some := self._some_of_dev(place)):
            said = explainer.effects(ask(some, self._texts_of(*place)[2]))
            scale = fitted_scale(icace(some, self._told(*place)), said)
        return table.assign(scale=scale)

    def _some_of_dev(self, place: Place) -> pd.DataFrame:
        """Pairs of dev at equal distances, at most `n_dev_pairs`."""
        pairs = self.asked(*place, split="dev")
        n = min(len(pairs), self.values["n_dev_pairs"])
        return pairs.iloc[np.linspace(0, len(pairs) - 1, n).astype(int)]

    def _told(self, dataset: str, model: str, number: int) -> pd.DataFrame:
        """A model's answers."""
        return self.predictions.query("dataset == @dataset and model == @model and seed == @number")

    def _texts_of(
        self, dataset: str, model: str, number: int
    ) -> tuple[Texts, Texts, Texts, AnyHead]:
        """Train, test and dev texts with what is known of them, and the last layer; those of one
        model are kept until another one comes.
        """
        place = dataset, model, number
        if place in self._given:
            return self._given[place]
        if not self.models.query("has_vectors").merge(_one(place)).shape[0]:
            raise TouchstoneError(
                f"stage 02 has published answers of {file_of(*place)} and no vectors, which an "
                "explainer now needs; set need_vectors: true for stage 02, and run it again"
            )
        read, lost = (self.stage.input(_TRAINED, file) for file in _vectors(place))
        kept, without = load_reading(read), load_vectors(lost)
        assert kept is not None and without is not None  # the manifest lists them
        ids, reading = kept
        chosen, said = self._told(*place), self.aspects_of(dataset, number)
        texts = self.texts[self.texts["dataset"] == dataset]
        mine = texts[texts["text_id"].isin(chosen["text_id"])]
        train, test, dev = (
            gather_texts(
                mine[mine["split"] == split], chosen, said, (ids, reading.vectors), without[:2]
            )
            for split in ("train", "test", "dev")
        )
        self._given.clear()
        self._given[place] = train, test, dev, reading.head
        return self._given[place]

    def _note(self, place: Place) -> None:
        """Record what a unit of ours depends on as read, whether it is read now or was before."""
        for file in (*(f"models/{file_of(*place)}.{kind}" for kind in _WEIGHTS), *_vectors(place)):
            if f"{_TRAINED}/{file}" not in self.stage.inputs:
                self.stage.note(_TRAINED, file)

    def _key(self, unit: str, name: str, place: Place, is_outside: bool) -> str:
        """The key of all that an explainer's answers depend on."""
        values, stage, head = self.values, self.stage, self.values["outside_head"]
        assert len(self.all_pairs) and len(self.aspects)  # read by now, and so among the inputs
        of_texts = ("texts.parquet", "pairs.parquet")
        needed = (*of_texts, "aspects.parquet") if is_outside else of_texts
        return self.store.key(
            unit=unit,
            seed=values["seed"],
            proxy=[values["proxy"], values["proxy_lr"]],
            n_dev_pairs=values["n_dev_pairs"],
            model="" if is_outside else self.models.merge(_one(place))["depends_on"].item(),
            inputs={k: v for k, v in stage.inputs.items() if k.endswith(needed)},
            yours=[stage.externals if is_outside else {}, by_content(name)],
            head=[head, by_content(head)] if is_outside else [],
        )

    def _made(self, name: str, place: Place) -> Explainer:
        """An explainer, ready to be fitted; some are handed the explained encoder itself."""
        entry = explainer_named(name)
        if place[1] != _ENCODER or (entry.needs != "model" and entry.family != "outside"):
            return entry.make()
        files = (f"models/{file_of(*place)}.{kind}" for kind in _WEIGHTS)
        explained = read_trained(*(self.stage.input(_TRAINED, file) for file in files))
        explained.module.to(pick_device(self.values["device"]))
        return entry.make(explained, *([self._imagined()] if entry.needs == "model" else []))

    def _imagined(self) -> ProxySettings:
        proxy = self.values["proxy"]
        settings = Settings(proxy["epochs"], self.values["proxy_lr"], proxy["batch_size"])
        return ProxySettings(settings, proxy["questions"], proxy["layers"])


def _effects(table: pd.DataFrame) -> list[str]:
    return [name for name in table if name.startswith("e_")]


def _vectors(place: Place) -> list[str]:
    """The files of a model's vectors, and of those without a concept."""
    dataset, _, number = place
    return [f"vectors/{file_of(*p)}.npz" for p in (place, (dataset, "without", number))]


def _one(place: Place) -> pd.DataFrame:
    return pd.DataFrame([place], columns=["dataset", "model", "seed"])
