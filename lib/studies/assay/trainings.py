"""What stage 2 keeps: each model, how well it has learnt, and what it says of its items.

Each training is a unit: found where this code has made it under the same settings, made and kept
otherwise. Its weights stay where they were made. What it says can be published, numbers by item;
whoever has these and no weights goes on from there.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ...core.contents import by_content
from ...core.files import load_parquet
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...models.hf_lm import load_hf_lm, save_hf_lm
from ...models.language_model import save_lm
from ...models.probe import load_probe, save_probe
from ...models.text_model import TextModel
from ...training.classifier import Settings
from . import answers, models
from . import number_model as by_number

NUMBER = "number"  # the model that is a probe of a language model
LSTM = "-lstm"  # ends the name of a second model of a task, a bidirectional LSTM
KINDS = {  # by model; else a classifier
    "pronoun": "pronoun",
    "planted-ola": "one layer",
    "gender-lstm": "recurrent",
    "reviews-lstm": "recurrent",
}
CLASSES = {"gender": ["F", "M"], "pronoun": ["female", "male"]}  # by task; else 0 and 1
_FIRST = "01_data_generation"
_READ = ("items", "altered", "forms", "train", "corpus", "planted")
_SAID = ["key", "change", "second", "tells", "f", "other", "padding"]  # of an item
_LM = ("language_model", "language_model_revision", "lm_epochs", "lm_lr", "lm_width", "lm_batch")

Place = tuple[str, int]  # a model's name, and the number of its training


@dataclass(frozen=True)
class Trainings:
    """The units of stage 2 under the notebook's parameters.

    Args:
        stage: stage 2, opened or not.
        store: keeps what may be published, and claims units, so that no two processes make one.
        values: the notebook's parameters by name; `globals()` will do.
    """

    stage: Stage
    store: Units
    values: Mapping[str, Any] = field(repr=False)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """What stage 1 left: items, altered, forms, train, corpus, planted."""
        return {name: load_parquet(self.stage.input(_FIRST, f"{name}.parquet")) for name in _READ}

    @cached_property
    def device(self) -> torch.device:
        """Where models learn and answer."""
        return pick_device(self.values["device"])

    def models(self) -> Iterator[Place]:
        """Each training of each model of the first kind, of which most truths tell."""
        for name in (*self.values["epochs"], NUMBER):
            for training in range(self.values["n_seeds"]):
                yield name, training

    def second_models(self) -> Iterator[Place]:
        """Each training of each model of the second kind, for which the same texts are items."""
        for task in self.values["lstm_epochs"]:
            for training in range(self.values["n_seeds"]):
                yield task + LSTM, training

    def rows(self, name: str) -> pd.DataFrame:
        """The training texts of a model."""
        train = self.tables["train"]
        return train[train["model"] == name.partition("-")[0]]

    def accuracy(self, name: str, training: int) -> float:
        """The accuracy on texts that the model has not learnt from."""
        return float(self.unit(name, training)[0]["right"].iloc[0])

    def rules(self, name: str, training: int) -> pd.DataFrame:
        """How often the model follows each planted rule: of `answers.rules_followed`, and model,
        training.
        """
        found = self.unit(name, training)[0].iloc[1:].reset_index(drop=True)
        found["is_followed"] = found["right"] >= answers.FOLLOWED
        return found.assign(model=name, training=training)

    def answers(self, name: str, training: int) -> pd.DataFrame:
        """The model's items with what it says of them: of `answers.of_two_forms`, and training,
        other, padding (of a *swap*: `answers.other_and_padding`).
        """
        asked, said = self._items(name), self.unit(name, training)[1]
        assert asked["item_id"].tolist() == said["item_id"].tolist()
        told = {column: list(said[column]) for column in _SAID}
        told = asked.assign(**told, training=training)
        return answers.of_two_forms(told, self.tables["forms"])

    def unit(self, name: str, training: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """A training and all that is asked of it, computed where it is missing.

        Returns:
            rule ("" for the accuracy, which comes first), right (a share); and item_id with what
            the model says of the item.
        """
        unit, key = f"{name}-{training}", self._key(name, training)
        needed = () if self.values["reuse_units"] else self.files(name, training)
        with self.store.claim(unit):
            told = self.store.load(f"{unit}-answers", key, needed)
            learnt = self.store.load(unit, key, needed)
            if told is None or learnt is None:
                made = self._asked(name, *self._train(name, training))
                files = self.files(name, training)
                if told is None:  # what is there is not written again
                    told = self.store.save(f"{unit}-answers", key, made[1], files, exact=True)
                if learnt is None:
                    learnt = self.store.save(unit, key, made[0], files, exact=True)
        return learnt, told

    def files(self, name: str, training: int) -> list[Path]:
        """The files of a model: its note, its weights (a published language model has none here),
        and of a language model the probe.
        """
        ends = [".json", ".safetensors"]
        if name == NUMBER:
            ends = [".json", *([] if self.values["language_model"] else ends[1:])]
            ends.append("-probe.safetensors")
        return [self.stage.path("models") / f"{name}-{training}{end}" for end in ends]

    def _asked(
        self, name: str, model: TextModel, accuracy: float
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """What a model that was trained just now says: the two tables of `unit`."""
        tables = self.tables
        learnt, followed = pd.DataFrame({"rule": [""], "right": [accuracy]}), []
        if name.startswith("planted"):
            rules = answers.rules_followed(model, tables["planted"])
            followed = rules.loc[rules["is_followed"], "rule"].tolist()
            learnt = pd.concat([learnt, rules[["rule", "right"]]], ignore_index=True)
        read = self._read_by(name)
        told = answers.true_answers(
            model, read["items"], read["altered"], tables["forms"], followed
        )
        forms = [
            answers.other_and_padding(model, row, tables["forms"])
            if row.truth == "swap"
            else (np.nan, np.nan)
            for row in told.itertuples()
        ]
        told = told.assign(**dict(zip(_SAID[-2:], zip(*forms, strict=True), strict=True)))
        return learnt, told[["item_id", *_SAID]]

    def _items(self, name: str) -> pd.DataFrame:
        items = self.tables["items"]
        mine = items[items["model"] == name.removesuffix(LSTM)].reset_index(drop=True)
        return mine.assign(model=name, item_id=_again(mine["item_id"])) if LSTM in name else mine

    def _train(self, name: str, training: int) -> tuple[TextModel, float]:
        """A model and its accuracy; its weights are written."""
        if name == NUMBER:
            return self._train_probe(training)
        recipe, rows = self._recipe(name, training), self.rows(name)
        recipe["ids"] = models.ids_to_learn(recipe, rows["sentence"])
        model, parameters, accuracy = models.train(recipe, rows, self._settings(name), self.device)
        models.save_model(self.stage.path("models"), f"{name}-{training}", recipe, parameters)
        return model, accuracy

    def _train_probe(self, training: int) -> tuple[TextModel, float]:
        """A probe of a language model: an LSTM that is trained now, or a published one."""
        values, tables = self.values, self.tables
        folder = self.stage.path("models")
        path, layer = (folder / f"{NUMBER}-{training}{end}.safetensors" for end in ("", "-probe"))
        lm: Any
        words: Any
        if values["language_model"]:
            published = values["language_model"], values["language_model_revision"]
            lm, words = load_hf_lm(*published)
            lm = lm.to(self.device)
            save_hf_lm(*published, path.with_suffix(".json"))
        else:
            texts = [list(text) for text in tables["corpus"]["sentence"]]
            cues = self._items(NUMBER)
            asked = pd.concat([cues, tables["altered"].merge(cues[["item_id"]])])["sentence"]
            plan = by_number.LanguagePlan(*(values[name] for name in _LM[2:]))
            start = seed_for("lm", training, values["seed"])
            lm, words = by_number.fit_language_model(texts, asked, plan, start, self.device)
            save_lm(lm, words, path)
        probe, accuracy = by_number.fit_number_probe(
            lm, words, self.rows(NUMBER), values["probe_epochs"], training
        )
        save_probe(probe, layer)
        probe = load_probe(path, layer, by_number.CLASSES)
        probe.module.to(self.device)
        return probe, accuracy

    def _recipe(self, name: str, training: int) -> dict[str, Any]:
        """What a model is built from, without the ids that one layer knows."""
        values = self.values
        return {
            "kind": KINDS.get(name, "classifier"),
            "encoder": values["encoder"],
            "revision": values["encoder_revision"],
            "n_layers": values["n_layers"],
            "classes": CLASSES.get(name.removesuffix(LSTM), ["0", "1"]),
            "seed": seed_for(name, training, values["seed"]),
        }

    def _settings(self, name: str) -> Settings:
        kind, values = KINDS.get(name, "classifier"), self.values
        of_lstm = {task + LSTM: n for task, n in values["lstm_epochs"].items()}
        size = values["batch_size"] * {"one layer": 4, "recurrent": 2}.get(kind, 1)
        return Settings((values["epochs"] | of_lstm)[name], values["lr"][kind], size)

    def _key(self, name: str, training: int) -> str:
        """All that a training and its answers depend on."""
        values = self.values
        about: list[Any] = [self._recipe(name, training), by_content(values["encoder"])]
        if name == NUMBER:
            about = [values[setting] for setting in (*_LM, "probe_epochs", "seed")]
            about.append(by_content(values["language_model"]))
        else:
            about.append(str(self._settings(name)))
        texts = {table: digest(rows) for table, rows in self._read_by(name).items()}
        return self.store.key(unit=[name, training], about=about, texts=texts)

    def _read_by(self, name: str) -> dict[str, pd.DataFrame]:
        """The rows of each table that a model learns from or is asked about."""
        tables, items = self.tables, self._items(name)
        altered = tables["altered"]
        if name.endswith(LSTM):
            altered = altered.assign(item_id=_again(altered["item_id"]))
        found = {
            "items": items,
            "altered": altered[altered["item_id"].isin(items["item_id"])],
            "train": self.rows(name),
        }
        if items["truth"].eq("swap").any():
            found["forms"] = tables["forms"]
        if name.startswith("planted"):
            found["planted"] = tables["planted"]
        if name == NUMBER:
            found["corpus"] = tables["corpus"]
        return found


def digest(rows: pd.DataFrame) -> str:
    """A mark of a table's cells to their last digit; some may be lists.

    >>> digest(pd.DataFrame({"f": [0.1, 0.2]})) == digest(pd.DataFrame({"f": [0.1, 0.3]}))
    False
    """
    cells = {name: list(rows[name]) for name in rows}
    content = json.dumps(cells, default=lambda cell: np.asarray(cell).tolist())
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _again(item_ids: pd.Series) -> pd.Series:
    """The names of items that a second model is asked, too."""
    return f"{LSTM[1:]}-" + item_ids
