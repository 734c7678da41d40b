"""What stage 2 keeps: vectors of the frozen encoder, models, encoders without a concept.

Each is a unit: found where this code has made it under the same settings, made and kept otherwise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ...core.contents import by_content
from ...core.files import load_parquet, sha256_of
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...models.masked_lm import MaskedLM, new_masked_lm
from ...models.weights import load_classifier, weights_fit
from ...training.classifier import Settings
from ...training.masked_lm import MaskedSettings, fit_masked_lm, unigram_perplexity
from .encoders import shorten, vectors_without
from .questions import Vectors, fit_head
from .reading import Reading, load_reading, load_vectors, save_vectors
from .reviewers import Reviewer, sentence_vectors, words_of
from .reviews import ASPECTS, rating_labels, train_set

FROZEN = "frozen encoder"  # a head alone learns, on vectors that are there
_TEXTS = ("01_data_generation", "texts.parquet")


@dataclass(frozen=True)
class Trainings:
    """The units of stage 2 under the notebook's parameters.

    Args:
        stage: stage 2, opened or not.
        store: claims units, so that no two processes make one.
        values: the notebook's parameters by name; `globals()` will do.
    """

    stage: Stage
    store: Units
    values: Mapping[str, Any] = field(repr=False)

    @cached_property
    def texts(self) -> pd.DataFrame:
        """The texts of stage 1 whose stars have a class, with this class as `label`."""
        texts = load_parquet(self.stage.input(*_TEXTS))
        texts = texts.assign(label=rating_labels(texts["rating"], self.values["n_classes"]))
        return texts.query("label >= 0")

    @cached_property
    def data(self) -> dict[str, dict[str, pd.DataFrame]]:
        """By data set: the train set that was chosen, originals of dev, all texts of test."""
        return {
            str(name): {
                "train": train_set(part, self.values["train_on"]),
                "dev": part[(part["split"] == "dev") & part["is_original"]],
                "test": part[part["split"] == "test"],
            }
            for name, part in self.texts.groupby("dataset", sort=False)
        }

    def models(self) -> Iterator[tuple[str, str, int]]:
        """Data set, kind and seed of each model; a frozen encoder leaves nothing to chance."""
        for name in self.data:
            for kind in self.values["models"]:
                for number in range(1 if kind == FROZEN else self.values["n_seeds"]):
                    yield name, kind, number

    def frozen(self, name: str) -> dict[tuple[str, str], Vectors]:
        """The frozen encoder's vectors of a data set's texts, by data set and split."""
        values, path = self.values, self.stage.path(f"vectors/{name}-frozen.npz")
        key = str((name, values["encoder"], *self._encoder_files, *self._about_texts))
        with self.store.claim(f"{name}-frozen"):
            if load_vectors(path, key) is None:
                reader = load_classifier(values["encoder"], values["encoder_revision"], ["1", "2"])
                reader.module.to(pick_device(values["device"]))
                rows = pd.concat(self.data[name].values())
                vectors = sentence_vectors(reader, list(rows["text"]))
                save_vectors(path, key, list(rows["text_id"]), vectors)
            kept = load_vectors(path, key)
        assert kept is not None
        vector_of = dict(zip(*kept[:2], strict=True))
        return {
            (name, split): np.array([vector_of[i] for i in rows["text_id"]])
            for split, rows in self.data[name].items()
        }

    def reading(self, name: str, kind: str, number: int) -> tuple[np.ndarray, Reading]:
        """A model's ids and reading of train and test texts; a new one is trained for it."""
        values, reviewer = self.values, self._reviewer(name, kind, number)
        key = str(
            (
                *(name, kind, number, reviewer.settings, values["n_frozen"], values["kept_epoch"]),
                *(values["encoder"], *self._encoder_files, *self._about_texts),
            )
        )
        path, tensors = self.stage.path(f"vectors/{reviewer.name}.npz"), self.stage.path("models")
        with self.store.claim(reviewer.name):
            is_whole = kind != "encoder" or weights_fit(tensors / f"{reviewer.name}.json")
            if load_reading(path, key) is None or not is_whole:
                parts = self.data[name]
                if kind == FROZEN:
                    found = self._frozen_reading(name)
                else:
                    device, keep = pick_device(values["device"]), values["kept_epoch"]
                    found = reviewer.read(**parts, device=device, keep=keep, weights=tensors)
                ids = [*parts["train"]["text_id"], *parts["test"]["text_id"]]
                found.save(path, key, ids)
            kept = load_reading(path, key)
        assert kept is not None
        return kept

    def without(self, name: str) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
        """Ids of train and test texts, their vectors by encoders without each aspect (and without
        none), and how good the masked language model is from which they come.
        """
        values, path = self.values, self.stage.path(f"vectors/{name}-without.npz")
        lr, unlearning = values["lr"], values["unlearning"]
        key = str(
            (
                *(name, values["masked_lm"], unlearning, lr["masked LM"], lr["unlearning"]),
                *(values["adversary"], values["seed"], *self._masked),
                *(*by_content(self._masked[0]).values(), *self._about_texts),
            )
        )
        with self.store.claim(f"{name}-without"):
            if load_vectors(path, key) is None:
                model, about = self._masked_lm(name)
                train, test = self.data[name]["train"], self.data[name]["test"]
                told = pd.concat([train, test])
                found = vectors_without(
                    model,
                    list(train["text"]),
                    train[list(ASPECTS)].to_numpy(object),
                    list(told["text"]),
                    MaskedSettings(
                        unlearning["epochs"], lr["unlearning"], unlearning["batch_tokens"]
                    ),
                    values["adversary"],
                    values["seed"],
                )
                save_vectors(path, key, list(told["text_id"]), found, about)
            kept = load_vectors(path, key)
        assert kept is not None
        return kept

    def _reviewer(self, name: str, kind: str, number: int) -> Reviewer:
        values = self.values
        settings = None
        if kind in values["epochs"]:
            settings = Settings(
                values["epochs"][kind], values["lr"][kind], values["batch_size"][kind]
            )
        return Reviewer(
            *(name, kind, number, values["encoder"], values["encoder_revision"]),
            *(values["n_classes"], settings, values["n_frozen"]),
        )

    def _frozen_reading(self, name: str) -> Reading:
        """The head alone learns, on the frozen vectors."""
        vectors, n_classes = self.frozen(name), self.values["n_classes"]
        seen = np.concatenate([vectors[name, "train"], vectors[name, "test"]])
        labels = self.data[name]["train"]["label"].to_numpy()
        head = fit_head(vectors[name, "train"], labels, n_classes)
        return Reading(head.probabilities(seen), seen, head)

    def _masked_lm(self, name: str) -> tuple[MaskedLM, dict[str, float]]:
        """The masked language model of a data set, and how good it is."""
        values, seed, encoder = self.values, self.values["seed"], self._masked[0]
        model = new_masked_lm(encoder, seed_for("masked LM", seed), self._masked[1])
        about = values["masked_lm"]
        model = shorten(model, about["layers"])
        model.module.to(pick_device(values["device"]))
        train, dev = (
            model.encode(words_of(list(self.data[name][split]["text"])))
            for split in ("train", "dev")
        )
        settings = MaskedSettings(about["epochs"], values["lr"]["masked LM"], about["batch_tokens"])
        curve = fit_masked_lm(model, train, dev, settings, seed_for("masked LM", name, seed))
        return model, {
            "unigram": unigram_perplexity(model, train, dev),
            "perplexity": curve["perplexity"].iloc[-1],
        }

    @cached_property
    def _encoder_files(self) -> tuple[str, ...]:
        encoder = self.values["encoder"]
        return self.values["encoder_revision"], *by_content(encoder).values()

    @cached_property
    def _about_texts(self) -> tuple[int, str, str]:
        inputs = sha256_of(self.stage.input(*_TEXTS))
        return self.values["n_classes"], self.values["train_on"], inputs

    @property
    def _masked(self) -> tuple[str, str]:
        """The masked language model's name and revision: the encoder's, where none is named."""
        start = "masked_encoder" if self.values["masked_encoder"] else "encoder"
        return self.values[start], self.values[f"{start}_revision"]
