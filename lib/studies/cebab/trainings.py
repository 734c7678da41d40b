"""What stage 2 keeps: vectors of the frozen encoder, models, encoders without a concept.

Each is a unit: found where this code has made it under the same settings, made and kept otherwise.
Of each training the answers, and of each unlearning how far it came, can be published: whoever has
these and no vectors goes on from there, and trains what is missing.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...core.contents import by_content
from ...core.files import load_parquet, sha256_of
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...models.weights import load_classifier, weights_fit
from ...training.classifier import Settings
from ...training.masked_lm import MaskedSettings
from .encoders import vectors_without
from .questions import Vectors, fit_head
from .reading import Reading, load_reading, load_vectors, save_vectors
from .reviewers import Reviewer, file_of, predict_aspects, sentence_vectors
from .reviews import ASPECTS, VALUES, rating_labels, train_set
from .unlearning import masked_lm_of, probe

FROZEN = "frozen encoder"  # a head alone learns, on vectors that are there
_TEXTS = ("01_data_generation", "texts.parquet")


@dataclass(frozen=True)
class Trainings:
    """The units of stage 2 under the notebook's parameters.

    Args:
        stage: stage 2, opened or not.
        store: keeps answers that may be published, and claims units, so that no two processes make
            one.
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

    def read(self, name: str) -> dict[str, pd.DataFrame]:
        """The texts that models answer, in the order of their answers: train, test, and all of
        dev, with its edits: stage 3 fits scales on pairs of dev.
        """
        is_dev = (self.texts["dataset"] == name) & (self.texts["split"] == "dev")
        parts = self.data[name]
        return {"train": parts["train"], "test": parts["test"], "dev": self.texts[is_dev]}

    def models(self) -> Iterator[tuple[str, str, int]]:
        """Data set, kind and seed of each model; a frozen encoder leaves nothing to chance."""
        for name in self.data:
            for kind in self.values["models"]:
                for number in range(1 if kind == FROZEN else self.values["n_seeds"]):
                    yield name, kind, number

    def unlearnings(self) -> Iterator[tuple[str, int]]:
        """Data set and seed of each unlearning: one for each training of a model."""
        yield from dict.fromkeys((name, number) for name, _, number in self.models())

    def frozen(self, name: str) -> dict[str, Vectors]:
        """The frozen encoder's vectors of a data set's texts: train, dev (its originals), test, and
        dev edits.
        """
        parts = dict(self.data[name])
        dev = self.read(name)["dev"]
        parts["dev edits"] = dev[~dev["is_original"]]
        values, path = self.values, self.stage.path(f"vectors/{name}-frozen.npz")
        key = str((name, values["encoder"], *self._encoder_files, *self._about_texts))
        with self.store.claim(f"{name}-frozen"):
            if load_vectors(path, key) is None:
                reader = load_classifier(values["encoder"], values["encoder_revision"], ["1", "2"])
                reader.module.to(pick_device(values["device"]))
                *first, last = parts.values()
                together = [pd.concat(first), last]  # no vector depends on texts that came later
                vectors = [sentence_vectors(reader, list(rows["text"])) for rows in together]
                ids = [*together[0]["text_id"], *last["text_id"]]
                save_vectors(path, key, ids, np.concatenate(vectors))
            kept = load_vectors(path, key)
        assert kept is not None
        vector_of = dict(zip(*kept[:2], strict=True))
        return {
            split: np.array([vector_of[i] for i in rows["text_id"]])
            for split, rows in parts.items()
        }

    def aspects(self, name: str) -> pd.DataFrame:
        """What aspect classifiers say of the texts that models answer: seed, split, text_id, and
        ASPECTS. With `resample_aspects` each training has classifiers of its own, fitted with
        weights of the train reviews drawn for it (the Bayesian bootstrap, Rubin 1981).
        """
        train, parts, seen = self.data[name]["train"], self.read(name), self._seen(name)
        texts = pd.concat([rows.assign(split=split) for split, rows in parts.items()])
        found = []
        for number in self._draws(name):
            weights = None
            if self.values["resample_aspects"]:
                drawn = np.random.default_rng(seed_for("aspects", name, number))
                group, groups = pd.factorize(train["group"])
                weights = drawn.exponential(size=len(groups))[group]
            said = predict_aspects(train, seen[: len(train)], texts, seen, weights)
            about = {"dataset": name, "seed": number, "split": texts["split"].to_numpy()}
            found.append(said.assign(**about))
        return pd.concat(found, ignore_index=True)

    def answers(self, name: str, kind: str, number: int) -> pd.DataFrame:
        """A model's answers to the texts of `read`: text_id, p_1 ... p_K. Where answers are
        published, those count, and a model is trained for its vectors only if these are needed.
        """
        parts, values, unit = self.read(name), self.values, file_of(name, kind, number)
        ids = pd.concat(parts.values())["text_id"].to_numpy()
        columns = [f"p_{k + 1}" for k in range(values["n_classes"])]
        if not values["reuse_units"]:
            found = self.reading(name, kind, number)[1].probabilities
            return pd.DataFrame(found, columns=columns).assign(text_id=ids)
        self.store.keep_ids(f"{name}-rows", pd.DataFrame({"text_id": ids}))
        key = self.store.key(reading=self._key(name, kind, number))
        with self.store.claim(unit):
            kept = self.store.load(unit, key)
            if kept is None or values["need_vectors"]:
                found = self.reading(name, kind, number)[1].probabilities
            if kept is None:
                table = pd.DataFrame(found.astype(np.float32), columns=columns)
                kept = self.store.save(unit, key, table, exact=True)
        return kept.astype(float).assign(text_id=ids)

    def reading(self, name: str, kind: str, number: int) -> tuple[np.ndarray, Reading]:
        """A model's ids and reading of the texts of `read`; a new one is trained for it."""
        key, path = self._key(name, kind, number), self._path(name, kind, number)
        tensors = self.stage.path("models")
        with self.store.claim(file_of(name, kind, number)):
            is_whole = kind != "encoder" or weights_fit(tensors / f"{path.stem}.json")
            if load_reading(path, key) is None or not is_whole:
                parts = self.read(name)
                if kind == FROZEN:
                    found = self._frozen_reading(name)
                else:
                    device, keep = pick_device(self.values["device"]), self.values["kept_epoch"]
                    found = self._reviewer(name, kind, number).read(
                        **self.data[name],
                        device=device,
                        keep=keep,
                        weights=tensors,
                        more=parts["dev"],
                    )
                found.save(path, key, list(pd.concat(parts.values())["text_id"]))
            kept = load_reading(path, key)
        assert kept is not None
        return kept

    def unlearnt(self, name: str, number: int) -> pd.DataFrame:
        """How far an unlearning came, a row an aspect: accuracy on test of a new linear probe
        `before` and `without`, the `share` of the most frequent value, and of the masked language
        model the perplexity, with that of word frequencies (`unigram`).
        """
        unit, key = f"{name}-without-seed{number}", self._without_key(name, number)
        asked = self.store.key(without=key)
        with self.store.claim(unit):
            kept = self.store.load(unit, asked)
            if kept is None or self.values["need_vectors"]:
                ids, vectors, about = self.without(name, number)
            if kept is None:
                truth = self.data[name]["test"]
                rows = [
                    {
                        "aspect": aspect,
                        "before": probe(self.data[name], aspect, vectors[-1]),
                        "without": probe(self.data[name], aspect, vectors[at]),
                        "share": truth[aspect][truth[aspect].isin(VALUES)]
                        .value_counts(normalize=True)
                        .max(),
                        **about,
                    }
                    for at, aspect in enumerate(ASPECTS)
                ]
                kept = self.store.save(unit, asked, pd.DataFrame(rows))
        return kept.assign(dataset=name, seed=number)

    def without(self, name: str, number: int) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
        """Ids of the texts of `read`, their vectors by encoders without each aspect (and without
        none), and how good the masked language model is from which they come.
        """
        values, unit = self.values, f"{name}-without-seed{number}"
        key, path = self._without_key(name, number), self.stage.path(f"vectors/{unit}.npz")
        with self.store.claim(unit):
            if load_vectors(path, key) is None:
                model, about = masked_lm_of(
                    self.data[name],
                    self._masked,
                    values["masked_lm"],
                    values["lr"]["masked LM"],
                    pick_device(values["device"]),
                    name,
                    self._seed(number),
                )
                train, unlearning = self.data[name]["train"], values["unlearning"]
                parts = list(self.read(name).values())
                found = vectors_without(
                    model,
                    list(train["text"]),
                    train[list(ASPECTS)].to_numpy(object),
                    [list(pd.concat(parts[:2])["text"]), list(parts[2]["text"])],
                    MaskedSettings(
                        unlearning["epochs"], values["lr"]["unlearning"], unlearning["batch_tokens"]
                    ),
                    values["adversary"],
                    self._seed(number),
                )
                save_vectors(path, key, list(pd.concat(parts)["text_id"]), found, about)
            kept = load_vectors(path, key)
        assert kept is not None
        return kept

    def record(self, predictions: pd.DataFrame, unlearnt: pd.DataFrame) -> pd.DataFrame:
        """What stage 3 must know of each model: the encoder, whether its vectors are here, and what
        all that explainers are given depends on: the questions (keys) and the answers (digests).
        """
        answers = [name for name in predictions if name.startswith("p_")]
        rows = []
        for name, kind, number in self.models():
            mine = predictions.query("dataset == @name and model == @kind and seed == @number")
            lost = unlearnt.query("dataset == @name and seed == @number")
            keys = self._key(name, kind, number), self._without_key(name, number)
            about = [
                *map(_digest, keys),
                _digest(mine[answers]),
                _digest(lost[["before", "without"]]),
            ]
            paths = self._path(name, kind, number), self._path(name, "without", number)
            rows.append(
                {
                    "dataset": name,
                    "model": kind,
                    "seed": number,
                    "encoder": self.values["encoder"],
                    "has_vectors": all(path.is_file() for path in paths),
                    "depends_on": " ".join([*about, str(self.values["resample_aspects"])]),
                }
            )
        columns = ["dataset", "model", "seed", "encoder", "has_vectors", "depends_on"]
        return pd.DataFrame(rows, columns=columns)

    def _draws(self, name: str) -> range:
        """The seeds of a data set's aspect classifiers."""
        seeds = [number for other, _, number in self.models() if other == name]
        return range(max(seeds, default=0) + 1 if self.values["resample_aspects"] else 1)

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
        seen, labels = self._seen(name), self.data[name]["train"]["label"].to_numpy()
        head = fit_head(seen[: len(labels)], labels, self.values["n_classes"])
        return Reading(head.probabilities(seen), seen, head)

    def _seen(self, name: str) -> Vectors:
        """The frozen vectors of the texts of `read`."""
        vectors, dev = self.frozen(name), self.read(name)["dev"]
        of_dev, is_edit = np.empty((len(dev), vectors["train"].shape[1])), ~dev["is_original"]
        of_dev[is_edit], of_dev[~is_edit] = vectors["dev edits"], vectors["dev"]
        return np.concatenate([vectors["train"], vectors["test"], of_dev])

    def _seed(self, number: int) -> int:
        """The seed of a masked language model and its unlearnings."""
        seed: int = self.values["seed"]
        return seed if number == 0 else seed_for("unlearning", seed, number)

    def _path(self, name: str, kind: str, number: int) -> Path:
        return self.stage.path(f"vectors/{file_of(name, kind, number)}.npz")

    def _key(self, name: str, kind: str, number: int) -> str:
        """All that a model's reading depends on."""
        values, settings = self.values, self._reviewer(name, kind, number).settings
        return str(
            (
                *(name, kind, number, settings, values["n_frozen"], values["kept_epoch"]),
                *(values["encoder"], *self._encoder_files, *self._about_texts),
            )
        )

    def _without_key(self, name: str, number: int) -> str:
        """All that the vectors without a concept depend on."""
        values, lr = self.values, self.values["lr"]
        return str(
            (
                *(name, values["masked_lm"], values["unlearning"]),
                *(lr["masked LM"], lr["unlearning"], values["adversary"], self._seed(number)),
                *(*self._masked, *by_content(self._masked[0]).values(), *self._about_texts),
            )
        )

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


def _digest(what: str | pd.DataFrame) -> str:
    """A short mark of a text, or of numbers to four decimals."""
    content = what if isinstance(what, str) else what.round(4).to_csv(index=False)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
