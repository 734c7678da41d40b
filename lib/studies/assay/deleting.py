"""What stage 4 keeps: how fast the answer falls when words are deleted in an explainer's order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from ...core.errors import TouchstoneError
from ...core.files import load_parquet
from ...core.seeds import pick_device
from ...core.stage import Stage
from ...core.units import Units
from .asking import digest
from .models import read_model
from .swapped import score_swaps
from .truths import score_deletion, telling_items

_TRAINED = "02_training"
_MODEL = "gender"  # whose texts lose words
_SWAP = "swap"  # the words of the other form take the place of those that go
OPERATORS = ("pad", "mask", _SWAP)


@dataclass(frozen=True)
class Deletions:
    """The units of stage 4 under the notebook's parameters: a training and an operator each.

    Args:
        stage: stage 4, opened or not.
        store: where the units are kept.
        values: the notebook's parameters by name; `globals()` will do.
    """

    stage: Stage
    store: Units
    values: Mapping[str, Any] = field(repr=False)

    @cached_property
    def texts(self) -> pd.DataFrame:
        """The texts that lose words: the first of *mask* of each training."""
        truths = load_parquet(self.stage.input(_TRAINED, "truths.parquet"))
        masks = telling_items(truths).query("truth == 'mask'")
        return masks.groupby("training").head(self.values["n_deleted"])

    @cached_property
    def said(self) -> pd.DataFrame:
        """What explainers say of them."""
        said = load_parquet(self.stage.input("03_attribution", "explanations.parquet"))
        return said[(said["model"] == _MODEL) & said["text"].isin(self.texts["text"])]

    @cached_property
    def forms(self) -> pd.DataFrame:
        """Both forms of each sentence."""
        return load_parquet(self.stage.input("01_data_generation", "forms.parquet"))

    def units(self) -> Iterator[tuple[int, str]]:
        """Training and operator of each unit."""
        for training in sorted(set(self.texts["training"])):
            for operator in OPERATORS:
                yield training, operator

    def name(self, training: int, operator: str) -> str:
        """What a unit is called."""
        return f"{_MODEL}-{training}-{operator}"

    def scores(self, training: int, operator: str) -> pd.DataFrame:
        """The scores of all explainers: of `truths.score_deletion`, or `swapped.score_swaps`;
        computed where they are missing.
        """
        unit = self.name(training, operator)
        texts = self.texts[self.texts["training"] == training]
        said = self.said[self.said["training"] == training]
        self._has_weights(training)
        key = self.store.key(
            unit=unit,
            seed=self.values["seed"],
            texts=digest(texts[["item_id", "cluster", "text", "target", "sentence_idx", "f"]]),
            said=digest(said[["explainer", "text", "scores"]]),
            forms=digest(self.forms[["row_id", "sentence_idx", "target", "sentence"]]),
        )
        with self.store.claim(unit):
            kept = self.store.load(unit, key)
            if kept is None:
                made = self._scored_now(training, operator, texts, said)
                kept = self.store.save(unit, key, made, exact=True)
        return kept

    def _scored_now(
        self, training: int, operator: str, texts: pd.DataFrame, said: pd.DataFrame
    ) -> pd.DataFrame:
        if not self._has_weights(training):
            raise TouchstoneError(
                f"{_MODEL}-{training} has no weights here: what it says is that of "
                "outputs/reference, and this score is not among it; train it again: run "
                "02_training with reuse_units false"
            )
        note, weights = (self.stage.input(_TRAINED, name) for name in _files(training))
        model = read_model(note, weights, pick_device(self.values["device"]))
        if operator == _SWAP:
            return score_swaps(model, texts, said, self.forms)
        return score_deletion(model, texts, said, operator, self.values["seed"])

    def _has_weights(self, training: int) -> bool:
        """Whether stage 2 has left the weights of the model; they are recorded as read."""
        for name in _files(training):
            if f"{_TRAINED}/{name}" not in self.stage.inputs:
                self.stage.note(_TRAINED, name)
        return all(f"{_TRAINED}/{name}" in self.stage.inputs for name in _files(training))


def _files(training: int) -> list[str]:
    return [f"models/{_MODEL}-{training}.{end}" for end in ("json", "safetensors")]
