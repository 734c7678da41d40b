"""What stage 4 keeps: how fast the answer falls when words are deleted in an explainer's order, and
what mixed edits changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError
from ...core.files import load_parquet
from ...core.seeds import pick_device
from ...core.stage import Stage
from ...core.units import Units
from .models import log_odds, read_model
from .swapped import score_swaps
from .trainings import digest
from .truths import score_deletion, telling_items

_TRAINED = "02_training"
_SWAP = "swap"  # the words of the other form take the place of those that go
MIXED = "mixed"  # no deletion: a person removed words and wrote others
# What is done to the texts of a model: the operators of deletion, and edits.
DONE = {"gender": ("pad", "mask", _SWAP), "reviews": ("mask", MIXED), "gender-lstm": ("mask",)}
_TRUTH = {"gender": "mask", "reviews": "edit", "gender-lstm": "mask"}  # whose items lose words


class Altered(NamedTuple):
    """A unit: a training of a model, and what is done to its texts (of `DONE`)."""

    model: str
    training: int
    how: str

    @property
    def name(self) -> str:
        """What the unit is called."""
        return f"{self.model}-{self.training}-{self.how}"


@dataclass(frozen=True)
class Deletions:
    """The units of stage 4 under the notebook's parameters.

    Args:
        stage: stage 4, opened or not.
        store: where the units are kept.
        values: the notebook's parameters by name; `globals()` will do.
    """

    stage: Stage
    store: Units
    values: Mapping[str, Any] = field(repr=False)

    @cached_property
    def items(self) -> pd.DataFrame:
        """The items that tell of their model, of both kinds of models."""
        return telling_items(self._both(_TRAINED, "truths.parquet"))

    @cached_property
    def said(self) -> pd.DataFrame:
        """What explainers say of all texts, of both kinds of models."""
        return self._both("03_attribution", "explanations.parquet")

    @cached_property
    def forms(self) -> pd.DataFrame:
        """Both forms of each sentence."""
        return load_parquet(self.stage.input("01_data_generation", "forms.parquet"))

    @cached_property
    def mixed(self) -> pd.DataFrame:
        """The mixed edits of texts that are explained: of `items.mixed_edits`."""
        return load_parquet(self.stage.input("01_data_generation", "mixed.parquet"))

    def _both(self, stage: str, name: str) -> pd.DataFrame:
        names = name, "second_models.parquet"
        tables = [load_parquet(self.stage.input(stage, file)) for file in names]
        return pd.concat(tables, ignore_index=True)

    def texts(self, model: str, training: int) -> pd.DataFrame:
        """The texts of a training that lose words: the first of its truth; of reviews the shortest,
        for the search for the best order takes the third power of their length.
        """
        mine = self._asked(model, training)
        if model != "reviews":
            return mine.head(self.values["n_deleted"])
        mine = mine.iloc[np.argsort(mine["sentence"].map(len), kind="stable")]
        return mine.head(self.values["n_deleted_reviews"])

    def _asked(self, model: str, training: int) -> pd.DataFrame:
        """The items of a training whose words go."""
        of_model = self.items[self.items["model"] == model]
        is_asked = (of_model["truth"] == _TRUTH[model]) & (of_model["training"] == training)
        return of_model[is_asked]

    def units(self, *models: str) -> list[Altered]:
        """All units of these models, of all of them by default."""
        trained = self.items.groupby("model")["training"].unique()
        return [
            Altered(model, training, how)
            for model in models or DONE
            for training in sorted(trained.get(model, []))
            for how in DONE[model]
        ]

    def scores(self, *models: str) -> pd.DataFrame:
        """The scores of all explainers under deletion, of these models: of `truths.score_deletion`
        and `swapped.score_swaps`; computed where they are missing.
        """
        units = [unit for unit in self.units(*models) if unit.how != MIXED]
        return pd.concat([self.unit(unit) for unit in units], ignore_index=True)

    def mixed_changes(self) -> pd.DataFrame:
        """What mixed edits did to the model's answer: item_id (`<item>@<training>`), at, change
        (f before minus f after); computed where it is missing.
        """
        units = [unit for unit in self.units() if unit.how == MIXED]
        return pd.concat([self.unit(unit) for unit in units], ignore_index=True)

    def unit(self, unit: Altered) -> pd.DataFrame:
        """What stage 4 keeps of a unit, computed where it is missing."""
        texts = self.texts(unit.model, unit.training)
        if unit.how == MIXED:
            texts = self._edited(unit)
            key = self.store.key(
                unit=unit.name, edits=digest(texts[["item_id", "f", "at", "edited"]])
            )
        else:
            said = self._said(unit, texts)
            key = self.store.key(
                unit=unit.name,
                seed=self.values["seed"],
                texts=digest(texts[["item_id", "cluster", "text", "target", "sentence_idx", "f"]]),
                said=digest(said[["explainer", "text", "scores"]]),
                forms=digest(self.forms[["row_id", "sentence_idx", "target", "sentence"]]),
            )
        self._has_weights(unit)
        with self.store.claim(unit.name):
            kept = self.store.load(unit.name, key)
            if kept is None:
                kept = self.store.save(unit.name, key, self._made(unit, texts), exact=True)
        return kept

    def _said(self, unit: Altered, texts: pd.DataFrame) -> pd.DataFrame:
        of_model = self.said[self.said["model"] == unit.model]
        is_mine = (of_model["training"] == unit.training) & of_model["text"].isin(texts["text"])
        return of_model[is_mine]

    def _edited(self, unit: Altered) -> pd.DataFrame:
        """The mixed edits of a training's items, with what the model says before: item_id, target,
        f, at, edited (the new text).
        """
        edits = self._asked(unit.model, unit.training)
        edits = edits.assign(of=edits["item_id"].str.partition("@")[0])
        mixed = self.mixed.rename(columns={"item_id": "of", "sentence": "edited"})
        return edits[["item_id", "of", "target", "f"]].merge(mixed, on="of")

    def _made(self, unit: Altered, texts: pd.DataFrame) -> pd.DataFrame:
        if not self._has_weights(unit):
            raise TouchstoneError(
                f"{unit.model}-{unit.training} has no weights here: what it says is that of "
                "outputs/reference, and this score is not among it; train it again: run "
                "02_training with reuse_units false"
            )
        note, weights = (self.stage.input(_TRAINED, name) for name in _files(unit))
        model = read_model(note, weights, pick_device(self.values["device"]))
        if unit.how == MIXED:
            after = log_odds(model, texts["edited"], texts["target"]) if len(texts) else []
            return texts[["item_id", "at"]].assign(change=texts["f"] - after)
        said = self._said(unit, texts)
        if unit.how == _SWAP:
            return score_swaps(model, texts, said, self.forms)
        return score_deletion(model, texts, said, unit.how, self.values["seed"])

    def _has_weights(self, unit: Altered) -> bool:
        """Whether stage 2 has left the weights of the model; they are recorded as read."""
        for name in _files(unit):
            if f"{_TRAINED}/{name}" not in self.stage.inputs:
                self.stage.note(_TRAINED, name)
        return all(f"{_TRAINED}/{name}" in self.stage.inputs for name in _files(unit))


def _files(unit: Altered) -> list[str]:
    return [f"models/{unit.model}-{unit.training}.{end}" for end in ("json", "safetensors")]
