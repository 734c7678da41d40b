"""What stage 3 keeps: the answers of each explainer about each model.

Each is a unit: found where this code has made it under the same settings, made and kept otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from ...core.contents import by_content
from ...core.files import load_parquet
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...models.load import read_trained
from ...training.classifier import Settings
from .encoders import ProxySettings
from .explainer import Explainer
from .outside import NAME
from .own_explainer import ABOUT
from .pairs import rated_pairs
from .questions import AnyHead, Questions, Texts, ask
from .reading import gather_texts, load_reading, load_vectors
from .registry import explainer_named
from .reviewers import file_of

_TRAINED = "02_training"
_ENCODER = "encoder"  # the kind whose tensors stage 2 keeps
_WEIGHTS = ("json", "safetensors")

Given = tuple[Texts, Questions, AnyHead | None, pd.DataFrame]  # train, questions, head, pairs


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
    _given: dict[tuple[str, str, int], Given] = field(default_factory=dict, init=False, repr=False)

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
        """The predicted aspects of train and test texts."""
        return load_parquet(self.stage.input(_TRAINED, "aspects.parquet"))

    @property
    def n_classes(self) -> int:
        """How many classes the models have, K."""
        return sum(name.startswith("p_") for name in self.predictions)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The test pairs; with two classes, those without three stars, which have no class."""
        pairs = load_parquet(self.stage.input("01_data_generation", "pairs.parquet"))
        return rated_pairs(pairs.query("split == 'test'"), self.texts, self.n_classes)

    @property
    def models(self) -> pd.DataFrame:
        """The models of stage 2: dataset, model, seed."""
        return self.predictions[["dataset", "model", "seed"]].drop_duplicates(ignore_index=True)

    def gathered(self, dataset: str, model: str, number: int) -> Given:
        """Train texts, test questions, the last layer of one model, and its pairs."""
        chosen = self.predictions.query(
            "dataset == @dataset and model == @model and seed == @number"
        )
        stage, file = self.stage, file_of(dataset, model, number)
        kept = load_reading(stage.input(_TRAINED, f"vectors/{file}.npz"))
        for kind in _WEIGHTS:  # an encoder's, whom some explainers ask
            stage.note(_TRAINED, f"models/{file}.{kind}")
        without = load_vectors(stage.input(_TRAINED, f"vectors/{dataset}-without.npz"))
        assert kept is not None and without is not None  # the manifest lists them
        ids, reading = kept
        texts, pairs, said = (
            table[table["dataset"] == dataset] for table in (self.texts, self.pairs, self.aspects)
        )
        mine = texts[texts["text_id"].isin(chosen["text_id"])]
        train, test = (
            gather_texts(
                mine[mine["split"] == split], chosen, said, (ids, reading.vectors), without[:2]
            )
            for split in ("train", "test")
        )
        known = set(test.ids)
        asked = pairs[pairs["base_id"].isin(known) & pairs["counterfactual_id"].isin(known)]
        return train, ask(asked, test), reading.head, asked

    def can_be_asked(self, name: str, model: str) -> bool:
        """Whether an explainer can be asked about a kind of model of stage 2."""
        return model == _ENCODER or explainer_named(name).needs != "model"

    def unit(self, name: str, dataset: str, model: str, number: int) -> str:
        """What a unit is called."""
        explainer = "".join(letter if letter.isalnum() else "_" for letter in name)
        return f"{file_of(dataset, model, number)}-{explainer}"

    def answers(
        self, name: str, dataset: str, model: str, number: int, given: Given
    ) -> pd.DataFrame | None:
        """The estimates of one explainer about one model, a row a pair; None where it cannot be
        asked about it.
        """
        if model != NAME and not self.can_be_asked(name, model):
            return None
        train, questions, head, asked = given
        unit = self.unit(name, dataset, model, number)

        def make() -> pd.DataFrame:
            explainer = self._made(name, dataset, model, number)
            found = explainer.fit(train, head, seed_for(name, dataset, model, number))
            effects = found.effects(questions)
            return pd.DataFrame(effects, columns=[f"e_{k + 1}" for k in range(effects.shape[1])])

        kept = self.store.finished(unit, self._key(unit, name, dataset, model, number), make)
        labels = {"explainer": name, "dataset": dataset, "model": model, "seed": number}
        rows = asked[ABOUT].reset_index(drop=True).assign(**labels)
        return rows.assign(**{e: kept[e].to_numpy() for e in kept})

    def compute(self, name: str, dataset: str, model: str, number: int) -> None:
        """Make one unit apart; what is gathered of a model is kept until another one comes."""
        place = dataset, model, number
        if place not in self._given:
            self._given.clear()
            self._given[place] = self.gathered(*place)
        self.answers(name, *place, self._given[place])

    def _key(self, unit: str, name: str, dataset: str, model: str, number: int) -> str:
        """The key of all that an explainer's answers depend on."""
        values, stage, file = self.values, self.stage, file_of(dataset, model, number)
        of_texts = ("texts.parquet", "pairs.parquet", "aspects.parquet")
        needed = (*of_texts, f"{file}.npz", f"{dataset}-without.npz")
        head = values["outside_head"]
        return self.store.key(
            unit=unit,
            seed=values["seed"],
            proxy=[values["proxy"], values["proxy_lr"]],
            inputs={k: v for k, v in stage.inputs.items() if k.endswith(needed)},
            yours=[stage.externals if model == NAME else {}, by_content(name)],
            head=[head, by_content(head)] if model == NAME else [],
        )

    def _made(self, name: str, dataset: str, model: str, number: int) -> Explainer:
        """An explainer, ready to be fitted; some are handed the explained encoder itself."""
        entry = explainer_named(name)
        if model != _ENCODER or (entry.needs != "model" and entry.family != "outside"):
            return entry.make()
        file = file_of(dataset, model, number)
        tensors = (self.stage.input(_TRAINED, f"models/{file}.{kind}") for kind in _WEIGHTS)
        explained = read_trained(*tensors)
        explained.module.to(pick_device(self.values["device"]))
        return entry.make(explained, *([self._imagined()] if entry.needs == "model" else []))

    def _imagined(self) -> ProxySettings:
        proxy = self.values["proxy"]
        settings = Settings(proxy["epochs"], self.values["proxy_lr"], proxy["batch_size"])
        return ProxySettings(settings, proxy["questions"], proxy["layers"])
