"""Training classifiers over one encoder: one model for a data set, a transfer scheme and a seed."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..core.seeds import seed_for
from ..models.hf import HFClassifier, Reading, stacked_heads, with_own_head
from ..models.load import build_model
from ..models.ola import Variant
from ..models.schemes import Scheme, apply_scheme, scheme_named, set_modes
from ..models.shortcuts import first_token_only, ids_in_use, rows_in_use
from ..models.text_model import (
    BATCH,
    Encoded,
    Forward,
    RunsFromEmbeddings,
    check_known,
    encode_words,
    lengths_of,
)
from ..models.weights import load_tokenizer
from .classifier import (
    CURVE,
    Settings,
    Split,
    fit,
    token_forward,
    validation_split,
)
from .loop import Parts
from .side_by_side import can_stack, fit_seeds

Kept = dict[tuple[int, ...], Reading]  # by token ids: what a frozen encoder says of a sentence


@dataclass
class Trained:
    """A trained model and what a study reports of it.

    `rows` are the token ids whose embeddings took part.
    """

    recipe: dict[str, Any]
    model: RunsFromEmbeddings
    trained: dict[str, nn.Parameter]
    rows: list[int]
    curve: pd.DataFrame
    predictions: pd.DataFrame
    train_accuracy: float


@dataclass(frozen=True)
class _Data:
    """The two splits as a model reads them; `targets` and `lengths` are those of training."""

    test: pd.DataFrame
    train_ids: list[Encoded]
    test_ids: list[Encoded]
    targets: Int[Tensor, "batch"]
    lengths: Int[Tensor, "batch"]
    kept: Kept


@dataclass
class Trainer:
    """Trains models over one encoder.

    A frozen encoder reads each sentence of a data set once, for all epochs and seeds.
    """

    encoder: str
    revision: str
    device: torch.device
    validation_share: float = 0.2
    ola: Variant = "corrected"
    _kept: dict[int, Kept] = field(default_factory=dict, repr=False)  # by data set
    _told: set[str] = field(default_factory=set, repr=False)

    def recipe(self, scheme: str, classes: Sequence[str], seed: int) -> dict[str, Any]:
        """All that determines the untrained model.

        `lib.models.load.build_model` makes it again from this.
        """
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
        parts: Parts | None = None,
    ) -> Trained:
        """Train on one split and predict the other; a zero-shot model only predicts.

        The train accuracy is that of as many rows as the test split has, none of them from the
        validation share. `settings` may be left out for a zero-shot model. With `parts` a long
        training goes on from its checkpoint (`loop.descend`).

        Raises:
            PartEnded: the part has ended before the training.
        """
        recipe = self.recipe(scheme, classes, seed)
        used_ids = self.vocabulary(train, test) if scheme_named(scheme).is_one_layer else ()
        model, trained = build_model(recipe, used_ids)
        model.module.to(self.device)
        data = self._data(model, train, test)
        split = self._split(train, seed)
        rows: list[int] = []
        curve = pd.DataFrame(columns=CURVE)
        if trained and settings is not None:
            rows, curve = self._fit(
                model, scheme_named(scheme), trained, data, split, settings, seed, parts
            )
        return self._trained(recipe, model, trained, rows, curve, split, data)

    def train_seeds(
        self,
        scheme: str,
        seeds: Sequence[int],
        train: pd.DataFrame,
        test: pd.DataFrame,
        classes: Sequence[str],
        settings: Settings | None,
        parts: Parts | None = None,
    ) -> Iterator[Trained]:
        """`train` with one seed after the other.

        Heads over a frozen encoder learn side by side (`lib.training.side_by_side`), never in
        `parts`: these are of one seed.
        """
        splits = [self._split(train, seed) for seed in seeds]
        heads_alone = scheme_named(scheme).trained() == ("head",)
        if settings is None or not (heads_alone and len(seeds) > 1 and can_stack(splits, settings)):
            for seed in seeds:
                yield self.train(scheme, seed, train, test, classes, settings, parts)
            return
        recipes = [self.recipe(scheme, classes, seed) for seed in seeds]
        base = cast(HFClassifier, build_model(recipes[0])[0])  # no other kind has heads alone
        base.module.to(self.device)
        data = self._data(base, train, test)
        models = [with_own_head(base) for _ in seeds]
        trained = [
            apply_scheme(model, scheme_named(scheme), recipe["seed"])
            for model, recipe in zip(models, recipes, strict=True)
        ]
        curves = fit_seeds(
            stacked_heads(base, _read(base, data.train_ids, data.kept)),
            trained,
            data.targets,
            data.lengths,
            splits,
            settings,
            [seed_for("fit", scheme_named(scheme).name, seed) for seed in seeds],
        )
        for recipe, model, parameters, curve, split in zip(
            recipes, models, trained, curves, splits, strict=True
        ):
            yield self._trained(recipe, model, parameters, [], curve, split, data)

    def _data(self, model: RunsFromEmbeddings, train: pd.DataFrame, test: pd.DataFrame) -> _Data:
        train_ids, test_ids = model.encode(train["sentence"]), model.encode(test["sentence"])
        sentences = [*train["sentence"], *test["sentence"]]
        told = check_known(model.tokenizer, sentences, [*train_ids, *test_ids], self.encoder)
        if told and told not in self._told:  # once, and not for every model
            print(told)
        self._told.add(told)
        targets = torch.tensor(train["target"].to_numpy(), device=self.device)
        # Not shared between data sets: what is read depends, in its last bits, on what is read with
        # it, and a run that goes on where another was killed reads fewer of them.
        of_data_set = hash(tuple(tuple(row.ids) for row in (*train_ids, *test_ids)))
        kept = self._kept.setdefault(of_data_set, {})
        lengths = torch.tensor(lengths_of(train_ids))
        return _Data(test, train_ids, test_ids, targets, lengths, kept)

    def _split(self, train: pd.DataFrame, seed: int) -> Split:
        return validation_split(
            train["sentence_idx"], self.validation_share, seed_for("validation", seed)
        )

    def _trained(
        self,
        recipe: dict[str, Any],
        model: RunsFromEmbeddings,
        trained: dict[str, nn.Parameter],
        rows: list[int],
        curve: pd.DataFrame,
        split: Split,
        data: _Data,
    ) -> Trained:
        """What a study reports of a finished model."""
        accuracy = float("nan")
        if len(curve):
            some = split.train[: len(data.test)].tolist()
            probabilities = _probabilities(
                model, recipe["scheme"], [data.train_ids[i] for i in some], data.kept
            )
            accuracy = float((probabilities.argmax(1) == data.targets[some].cpu().numpy()).mean())
        probabilities = _probabilities(model, recipe["scheme"], data.test_ids, data.kept)
        predicted = predictions(data.test, probabilities, recipe["classes"])
        return Trained(recipe, model, trained, rows, curve, predicted, accuracy)

    def predicted_seconds(
        self,
        scheme: str,
        train: pd.DataFrame,
        test: pd.DataFrame,
        classes: Sequence[str],
        settings: Settings,
        n_base: int = 16,
    ) -> float:
        """How long `train` will take here.

        Timed on a few base sentences with one and two epochs, then scaled up.
        """
        is_few = train["sentence_idx"].isin(train["sentence_idx"].unique()[:n_base])
        few = train[is_few].reset_index(drop=True)
        seconds = []
        for epochs in (1, 1, 2):  # the first run warms up
            start = time.perf_counter()
            replace(self, _kept={}).train(
                scheme, 0, few, few, classes, replace(settings, epochs=epochs)
            )
            seconds.append(time.perf_counter() - start)
        once, per_epoch = max(2 * seconds[1] - seconds[2], 0.0), max(seconds[2] - seconds[1], 0.0)
        reading = once * (len(train) + len(test)) / (2 * len(few))
        return reading + per_epoch * settings.epochs * len(train) / len(few)

    def vocabulary(self, train: pd.DataFrame, test: pd.DataFrame) -> list[int]:
        """The token ids that occur in the sentences, sorted: OLA's vocabulary."""
        tokenizer = load_tokenizer(self.encoder, self.revision)
        sentences = [list(words) for split in (train, test) for words in split["sentence"]]
        return ids_in_use(encode_words(tokenizer, sentences, int(tokenizer.model_max_length)))

    def _fit(
        self,
        model: RunsFromEmbeddings,
        scheme: Scheme,
        trained: dict[str, nn.Parameter],
        data: _Data,
        split: Split,
        settings: Settings,
        seed: int,
        parts: Parts | None,
    ) -> tuple[list[int], pd.DataFrame]:
        as_released = self.ola == "as_released" and scheme.is_one_layer
        if as_released:
            settings = replace(settings, gradients="accumulated", grouped=False)
        set_modes(cast(Any, model), scheme, settings.dropout)  # what learns has parts

        def run(forward: Forward, parameters: dict[str, nn.Parameter]) -> pd.DataFrame:
            fit_seed = seed_for("fit", scheme.name, seed)
            with first_token_only(model):
                return fit(
                    forward,
                    parameters,
                    data.targets,
                    data.lengths,
                    split,
                    settings,
                    fit_seed,
                    parts=parts,
                )

        rows: list[int] = []
        # what a frozen encoder says of a sentence never changes, so it is computed once
        if isinstance(model, HFClassifier) and scheme.trained() == ("head",):
            reading = _read(model, data.train_ids, data.kept)
            curve = run(
                lambda index: model.head({name: rows[index] for name, rows in reading.items()}),
                trained,
            )
        elif isinstance(model, HFClassifier) and settings.weight_decay == 0:
            # without weight decay the other rows of the word table would never move
            rows = ids_in_use(data.train_ids, data.test_ids)
            with rows_in_use(model.module, rows) as row_of:
                now = dict(model.module.named_parameters())  # the word table is another one
                forward = token_forward(model, data.train_ids, row_of)
                curve = run(forward, {name: now[name] for name in trained})
        else:
            rows = getattr(model, "used_ids", [])
            curve = run(token_forward(model, data.train_ids, whole_width=as_released), trained)
        model.module.eval()
        return rows, curve


def _read(model: HFClassifier, encoded: list[Encoded], kept: Kept) -> Reading:
    """What a frozen encoder says of texts; each is read once, since all seeds ask for it."""
    new = {tuple(row.ids): row for row in encoded if tuple(row.ids) not in kept}
    if new:
        with first_token_only(model):
            reading = model.read_all(list(new.values()), BATCH)
        # by token ids, not by row: the neutral form of a sentence may stand there several times
        for i, ids in enumerate(new):
            kept[ids] = {name: values[i] for name, values in reading.items()}
    rows = [kept[tuple(row.ids)] for row in encoded]
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def _probabilities(
    model: RunsFromEmbeddings, scheme: str, encoded: list[Encoded], kept: Kept
) -> Float[np.ndarray, "batch class"]:
    if isinstance(model, HFClassifier) and scheme_named(scheme).trained() == ("head",):
        with torch.no_grad():
            return model.head(_read(model, encoded, kept)).softmax(-1).cpu().numpy()
    with first_token_only(model):
        return model.probabilities(encoded, BATCH)


def predictions(
    rows: pd.DataFrame, probabilities: Float[np.ndarray, "batch class"], classes: Sequence[str]
) -> pd.DataFrame:
    """One line a row: row_id, sentence_idx, target, predicted, and p_<class> for each class."""
    frame = rows[["row_id", "sentence_idx", "target"]].reset_index(drop=True)
    frame["predicted"] = probabilities.argmax(1)
    return frame.assign(**{f"p_{name}": probabilities[:, k] for k, name in enumerate(classes)})
