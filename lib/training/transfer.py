"""Training one model of a study: a data set, a transfer scheme, a seed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import nn

from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.core.stage import Stage
from lib.core.units import Units
from lib.models.first_token import first_token_only
from lib.models.hf import HFClassifier, Reading, stacked_heads, with_own_head
from lib.models.load import build_model, save_trained
from lib.models.ola import Variant
from lib.models.schemes import Scheme, apply_scheme, scheme_named, set_modes
from lib.models.text_model import Encoded, Forward, RunsFromEmbeddings, encode_words
from lib.models.vocabulary import ids_in_use, rows_in_use
from lib.models.weights import load_tokenizer
from lib.training.classifier import (
    CURVE,
    Settings,
    Split,
    fit,
    token_forward,
    validation_split,
)
from lib.training.side_by_side import can_stack, fit_seeds

BATCH = 64  # rows that are predicted together; no result depends on it
OLA_EPS = 1e-5  # Adam's eps for OLA, as released; the others have PyTorch's default


@dataclass
class Trained:
    """A trained model and what a study reports of it; `rows` are the token ids whose embeddings took part."""

    recipe: dict[str, Any]
    model: RunsFromEmbeddings
    trained: dict[str, nn.Parameter]
    rows: list[int]
    curve: pd.DataFrame
    predictions: pd.DataFrame
    train_accuracy: float


@dataclass
class Trainer:
    """Trains models over one encoder; a frozen encoder reads each sentence once, for all epochs, seeds and data sets."""

    encoder: str
    revision: str
    device: torch.device
    validation_share: float = 0.2
    ola: Variant = "corrected"
    _kept: dict[tuple[int, ...], Reading] = field(default_factory=dict, repr=False)

    def recipe(self, scheme: str, classes: Sequence[str], seed: int) -> dict[str, Any]:
        """All that determines the untrained model: `lib.models.load.build_model` makes it again from this."""
        return {
            "encoder": self.encoder,
            "revision": self.revision,
            "classes": list(classes),
            "scheme": scheme_named(scheme).name,
            "seed": seed_for("model", scheme, seed),
            "variant": self.ola,
        }

    def train(
        self,
        scheme: str,
        seed: int,
        train: pd.DataFrame,
        test: pd.DataFrame,
        classes: Sequence[str],
        settings: Settings | None,
    ) -> Trained:
        """Train on one split and predict the other; a zero-shot model only predicts, and needs no settings.

        The train accuracy is that of as many rows as the test split has, none of them from the validation share.
        """
        recipe = self.recipe(scheme, classes, seed)
        model, trained = build_model(
            recipe, self.vocabulary(train, test) if scheme.startswith("OLA") else ()
        )
        model.module.to(self.device)
        ours, theirs = model.encode(train["sentence"]), model.encode(test["sentence"])
        split = validation_split(
            train["sentence_idx"], self.validation_share, seed_for("validation", seed)
        )
        rows, curve = [], pd.DataFrame(columns=CURVE)
        if trained and settings is not None:
            rows, curve = self._fit(
                model, scheme_named(scheme), trained, ours, theirs, train, split, settings, seed
            )
        return self._trained(
            recipe, model, trained, rows, curve, split, (train, test), (ours, theirs)
        )

    def train_seeds(
        self,
        scheme: str,
        seeds: Sequence[int],
        train: pd.DataFrame,
        test: pd.DataFrame,
        classes: Sequence[str],
        settings: Settings | None,
    ) -> Iterator[Trained]:
        """`train` with one seed after the other; heads over a frozen encoder learn side by side (`lib.training.side_by_side`)."""
        splits = [
            validation_split(
                train["sentence_idx"], self.validation_share, seed_for("validation", seed)
            )
            for seed in seeds
        ]
        heads_alone = scheme_named(scheme).trained() == ("head",)
        if settings is None or not (heads_alone and len(seeds) > 1 and can_stack(splits, settings)):
            yield from (self.train(scheme, seed, train, test, classes, settings) for seed in seeds)
            return
        recipes = [self.recipe(scheme, classes, seed) for seed in seeds]
        first, _ = build_model(recipes[0])
        first.module.to(self.device)
        ours, theirs = first.encode(train["sentence"]), first.encode(test["sentence"])
        models = [with_own_head(first) for _ in seeds]
        trained = [
            apply_scheme(model, scheme_named(scheme), recipe["seed"])
            for model, recipe in zip(models, recipes, strict=True)
        ]
        targets = torch.tensor(train["target"].to_numpy(), device=self.device)
        lengths = torch.tensor([len(one.ids) for one in ours])
        curves = fit_seeds(
            stacked_heads(first, self._read(first, ours)),
            trained,
            targets,
            lengths,
            splits,
            settings,
            [seed_for("fit", scheme_named(scheme).name, seed) for seed in seeds],
        )
        for recipe, model, learnt, curve, split in zip(
            recipes, models, trained, curves, splits, strict=True
        ):
            yield self._trained(
                recipe, model, learnt, [], curve, split, (train, test), (ours, theirs)
            )

    def _trained(
        self,
        recipe: dict[str, Any],
        model: RunsFromEmbeddings,
        trained: dict[str, nn.Parameter],
        rows: list[int],
        curve: pd.DataFrame,
        split: Split,
        data: tuple[pd.DataFrame, pd.DataFrame],
        encoded: tuple[list[Encoded], list[Encoded]],
    ) -> Trained:
        """What a study reports of a finished model."""
        (train, test), (ours, theirs), accuracy = data, encoded, float("nan")
        if len(curve):
            some = split.train[: len(test)]
            found = self._probabilities(
                model, recipe["scheme"], [ours[i] for i in some.tolist()]
            ).argmax(1)
            accuracy = float((found == train["target"].to_numpy()[some]).mean())
        found = predictions(
            test, self._probabilities(model, recipe["scheme"], theirs), recipe["classes"]
        )
        return Trained(recipe, model, trained, rows, curve, found, accuracy)

    def predicted_seconds(
        self,
        scheme: str,
        train: pd.DataFrame,
        test: pd.DataFrame,
        classes: Sequence[str],
        settings: Settings,
        n_base: int = 16,
    ) -> float:
        """How long `train` will take here: timed on a few base sentences with one and two epochs, then scaled up."""
        few = train[
            train["sentence_idx"].isin(train["sentence_idx"].unique()[:n_base])
        ].reset_index(drop=True)
        seconds = []
        for epochs in (1, 1, 2):  # the first run warms up
            start = time.perf_counter()
            replace(self, _kept={}).train(
                scheme, 0, few, few, classes, replace(settings, epochs=epochs)
            )
            seconds.append(time.perf_counter() - start)
        once, per_epoch = max(2 * seconds[1] - seconds[2], 0.0), max(seconds[2] - seconds[1], 0.0)
        return once * (len(train) + len(test)) / (2 * len(few)) + per_epoch * settings.epochs * len(
            train
        ) / len(few)

    def vocabulary(self, train: pd.DataFrame, test: pd.DataFrame) -> list[int]:
        """The token ids that occur in the sentences, sorted: OLA's vocabulary."""
        tokenizer = load_tokenizer(self.encoder, self.revision)
        sentences = [list(words) for split in (train, test) for words in split["sentence"]]
        return sorted(
            {
                i
                for one in encode_words(tokenizer, sentences, int(tokenizer.model_max_length))
                for i in one.ids
            }
        )

    def _fit(
        self,
        model: RunsFromEmbeddings,
        scheme: Scheme,
        trained: dict[str, nn.Parameter],
        ours: list[Encoded],
        theirs: list[Encoded],
        train: pd.DataFrame,
        split: Split,
        settings: Settings,
        seed: int,
    ) -> tuple[list[int], pd.DataFrame]:
        targets = torch.tensor(train["target"].to_numpy(), device=self.device)
        lengths = torch.tensor([len(one.ids) for one in ours])
        released = self.ola == "as_released" and scheme.name.startswith("OLA")
        if released:
            settings = replace(settings, gradients="accumulated", grouped=False)
        set_modes(model, scheme, settings.dropout)

        def run(forward: Forward, parameters: dict[str, nn.Parameter]) -> pd.DataFrame:
            with first_token_only(model):
                return fit(
                    forward,
                    parameters,
                    targets,
                    lengths,
                    split,
                    settings,
                    seed_for("fit", scheme.name, seed),
                )

        rows: list[int] = []
        if isinstance(model, HFClassifier) and scheme.trained() == ("head",):
            curve = run(self._head_forward(model, ours), trained)
        elif isinstance(model, HFClassifier) and settings.weight_decay == 0:
            rows = ids_in_use(ours, theirs)
            with rows_in_use(model.module, rows) as row_of:
                curve = run(token_forward(model, ours, row_of), _by_name(model.module, trained))
        else:
            rows = getattr(model, "used_ids", [])
            curve = run(token_forward(model, ours, whole_width=released), trained)
        model.module.eval()
        return rows, curve

    def _head_forward(self, model: HFClassifier, encoded: list[Encoded]) -> Forward:
        reading = self._read(model, encoded)
        return lambda index: model.head({name: kept[index] for name, kept in reading.items()})

    def _read(self, model: HFClassifier, encoded: list[Encoded]) -> Reading:
        new = list(
            {tuple(one.ids): one for one in encoded if tuple(one.ids) not in self._kept}.values()
        )
        if new:
            with first_token_only(model):
                reading = model.read_all(new, BATCH)
            for i, one in enumerate(new):
                self._kept[tuple(one.ids)] = {name: kept[i] for name, kept in reading.items()}
        rows = [self._kept[tuple(one.ids)] for one in encoded]
        return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}

    def _probabilities(
        self, model: RunsFromEmbeddings, scheme: str, encoded: list[Encoded]
    ) -> Float[np.ndarray, "batch class"]:
        if isinstance(model, HFClassifier) and scheme_named(scheme).trained() == ("head",):
            with torch.no_grad():
                return model.head(self._read(model, encoded)).softmax(-1).cpu().numpy()
        with first_token_only(model):
            return model.probabilities(encoded, BATCH)


def settings_by_scheme(
    schemes: Sequence[str], dropout: float, **by_scheme: Mapping[str, Any]
) -> dict[str, Settings | None]:
    """The training settings of each scheme from parameters that give one value per scheme; zero-shot has none.

    >>> settings_by_scheme(["ZS", "C"], 0.0, epochs={"C": 3}, lr={"C": 0.1}, batch_size={"C": 8})["C"].epochs
    3
    """
    found: dict[str, Settings | None] = {}
    for scheme in dict.fromkeys(schemes):
        if not scheme_named(scheme).trained():
            found[scheme] = None
            continue
        for name, values in by_scheme.items():
            if scheme not in values:
                raise TouchstoneError(
                    f"parameter {name} has no value for scheme {scheme}; add one, or leave it out"
                )
        eps = OLA_EPS if scheme.startswith("OLA") else 1e-8
        chosen = {name: values[scheme] for name, values in by_scheme.items()}
        found[scheme] = Settings(dropout=dropout, eps=eps, **chosen)
    return found


def run_unit(
    stage: Stage,
    units: Units,
    trainer: Trainer,
    dataset: str,
    scheme: str,
    seed: int,
    train: pd.DataFrame,
    test: pd.DataFrame,
    classes: Sequence[str],
    settings: Settings | None,
    need_weights: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One model of the study, trained now or finished earlier: its predictions and its learning curve.

    A new model leaves its tensors in `models/<dataset>/<scheme>/seed<k>`. What was finished with the same settings and
    data is read instead; units that a fresh clone finds in the reference come without their tensors. `need_weights`:
    then train them again, and keep the published predictions.
    """
    name, key, found, curve = _earlier(
        units, trainer, dataset, scheme, seed, train, test, classes, settings
    )
    folder = stage.path("models") / dataset / scheme
    is_new = found is None or curve is None
    if is_new or (need_weights and not (folder / f"seed{seed}.json").is_file()):
        result = trainer.train(scheme, seed, train, test, classes, settings)
        save_trained(
            folder, f"seed{seed}", result.recipe, result.model, result.trained, result.rows
        )
    if is_new:
        found, curve = result.predictions, result.curve.assign(train_accuracy=result.train_accuracy)
        units.save(f"{name}-curve", key, curve)
        units.save(f"{name}-predictions", key, found)
    about = {"dataset": dataset, "scheme": scheme, "seed": seed}
    return found.assign(split="test", **about), curve.assign(**about)


def is_finished(
    units: Units,
    trainer: Trainer,
    dataset: str,
    scheme: str,
    seed: int,
    train: pd.DataFrame,
    test: pd.DataFrame,
    classes: Sequence[str],
    settings: Settings | None,
) -> bool:
    """Whether `run_unit` would find the numbers of this model instead of training it."""
    *_, found, curve = _earlier(
        units, trainer, dataset, scheme, seed, train, test, classes, settings
    )
    return found is not None and curve is not None


def _earlier(
    units: Units,
    trainer: Trainer,
    dataset: str,
    scheme: str,
    seed: int,
    train: pd.DataFrame,
    test: pd.DataFrame,
    classes: Sequence[str],
    settings: Settings | None,
) -> tuple[str, str, pd.DataFrame | None, pd.DataFrame | None]:
    """A unit's name and key, and its predictions and curve where they are kept."""
    name = f"{dataset}-{scheme}-seed{seed}"
    key = units.key(
        **trainer.recipe(scheme, classes, seed),
        settings=asdict(settings) if settings else None,
        share=trainer.validation_share,
        data=[digest(train), digest(test)],
    )
    return name, key, units.load(f"{name}-predictions", key), units.load(f"{name}-curve", key)


def digest(rows: pd.DataFrame) -> str:
    """A short hash of the sentences, targets and base sentences that a model is trained or tested on."""
    text = rows[["row_id", "sentence_idx", "target", "sentence"]].to_json(orient="values")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def predictions(
    rows: pd.DataFrame, probabilities: Float[np.ndarray, "batch class"], classes: Sequence[str]
) -> pd.DataFrame:
    """One line a row: row_id, sentence_idx, target, predicted class, and p_<class> for each class."""
    frame = rows[["row_id", "sentence_idx", "target"]].reset_index(drop=True)
    frame["predicted"] = probabilities.argmax(1)
    return frame.assign(**{f"p_{name}": probabilities[:, k] for k, name in enumerate(classes)})


def _by_name(module: nn.Module, names: dict[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    found = dict(module.named_parameters())
    return {name: found[name] for name in names}
