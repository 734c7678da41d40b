"""What a parameter file will cost before it runs: time with an interval, and memory, from a
timed sample.

    touchstone plan geco --scale paper --rows-from cpu

Seconds are those of a processor core (of a GPU: of the clock). The sample takes the encoder's
shape; where its weights are not at hand they are drawn, since no cost depends on them.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from scipy import stats
from transformers import AutoConfig, BertConfig, BertForSequenceClassification

from ...attribution.budget import TokenBudget
from ...attribution.explain import explain_many
from ...attribution.registry import resolve_method
from ...core.errors import TouchstoneError
from ...core.files import save_csv
from ...core.paths import outputs_root
from ...core.planned import UNITS
from ...core.progress import progress
from ...core.runner import Job
from ...core.seeds import pick_device, set_up
from ...core.stage import Stage
from ...models.load import build_model
from ...models.schemes import scheme_named
from ...models.text_model import TextModel
from ...models.weights import PACKAGED, load_tokenizer, quiet
from ...training.transfer import Trainer
from .corpus import CLASSES, load_dataset
from .grid import groups_of
from .model_units import models_of, settings_by_scheme
from .units import numbers_of, plan_units, settings_by_method

# Base sentences trained on, and how many times as many at most; base sentences explained, and what
# a timing of one row may take; steps or samples of a short one.
_N_BASE, _N_BATCHES, _N_EXPLAINED, _SECONDS, _TIMED = 4, 8, 4, 1.0, 25
_ALL = 10**9

# Seconds, and the half width of their 95 % interval. Costs are added and multiplied as they are: a
# busy machine is busy for every part, and whatever is off is off each time.
Cost = Float[np.ndarray, "2"]


def predicted_cost(samples: Sequence[float]) -> Cost:
    """The mean of samples of seconds with the half width of Student's interval.

    One sample alone may be off by as much as it says.

    >>> predicted_cost([3.0]).tolist()
    [3.0, 3.0]
    """
    mean, n = np.mean(samples), len(samples)
    # one timing has no spread to tell its error from
    half = mean if n == 1 else stats.t.ppf(0.975, n - 1) * stats.sem(samples)
    return np.array([mean, half])


def rows_by_method(values: Mapping[str, Any], n_test: int, n_forms: int) -> pd.DataFrame:
    """How many rows are explained: kind (encoder or OLA), methods (those that share one pass of the
    model are together), rows. Floors cost nothing and are left out.
    """
    settings = settings_by_method(
        values["explained"], values["aggregation"], values["normalise_special"]
    )
    models = models_of(values).query("dataset in @values['datasets']")
    methods = [name for name in values["methods"] if resolve_method(name).family != "floor"]
    names = "n_base", "n_base_ola", "one_seed_methods", "every_seed_methods", "one_pass_schemes"
    how_many = [values[name] for name in (*names, "n_base_of")]
    lines = []
    for units in groups_of(plan_units(models, methods, settings, *how_many)):
        first = units[0]
        kind = "OLA" if scheme_named(first.scheme).is_one_layer else "encoder"
        n_rows = first.n_base * n_forms if first.n_base else n_test
        lines.append((kind, tuple(unit.method for unit in units), n_rows))
    table = pd.DataFrame(lines, columns=["kind", "methods", "rows"])
    return table.groupby(["kind", "methods"], sort=False, as_index=False)["rows"].sum()


def shortened(settings: Mapping[str, Any], most: int = _TIMED) -> tuple[dict[str, Any], float]:
    """Settings with at most so many steps or samples, and by how much the full number is more.

    >>> shortened({"n_steps": 200, "rule": "riemann_middle"}, 25)
    ({'n_steps': 25, 'rule': 'riemann_middle'}, 8.0)
    """
    sizes = {name: settings[name] for name in ("n_steps", "n_samples") if name in settings}
    short = {name: min(size, most) for name, size in sizes.items()}
    return {**settings, **short}, max([1.0, *(size / most for size in sizes.values())])


def costs_of_a_row(
    timed: Float[np.ndarray, "draw 3"], few: int, many: int
) -> tuple[Float[np.ndarray, "draw"], ...]:
    """What a training costs at all, each row of train and test once, and a row of train an epoch.

    Args:
        timed: seconds of a training on `few` rows (and tested on them) with one epoch, on `many`
            with one, on `many` with three.
        few: a number of rows.
        many: a larger one.

    >>> costs_of_a_row(np.array([[5.0, 9.0, 13.0]]), few=5, many=10)
    (array([1.]), array([0.3]), array([0.2]))
    """
    short, one, three = timed.T
    epoch = np.maximum(three - one, 0.0) / (2 * many)
    once = np.maximum((one - short) / (many - few) - epoch, 0.0) / 2
    return np.maximum(short - few * (2 * once + epoch), 0.0), once, epoch


def memory(
    n_weights: int, n_trained: int, saved_per_token: float, tokens: int, base: float = 0.0
) -> float:
    """Bytes at the peak: weights, for what is trained gradient and two moments, and what one
    batch keeps for its way back.

    >>> memory(n_weights=10, n_trained=2, saved_per_token=100.0, tokens=3)
    364.0
    """
    return base + 4.0 * n_weights + 12.0 * n_trained + saved_per_token * tokens


def saved_bytes(model: TextModel, words: Sequence[str]) -> float:
    """Bytes that a forward pass keeps for the backward pass, per token."""
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    ids = torch.tensor(
        [model.encode([words])[0].ids], device=next(model.module.parameters()).device
    )
    # they are kept anyway, and counted by themselves
    weights = {p.untyped_storage().data_ptr() for p in model.module.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model.logits(model.embed(ids).detach().requires_grad_(), torch.ones_like(ids))
    return sum(size for place, size in kept.items() if place not in weights) / ids.shape[1]


class Sample:
    """A timed sample on this machine: an encoder of the right shape, some rows, a clock."""

    def __init__(
        self, values: Mapping[str, Any], encoder: str, data: Mapping[str, pd.DataFrame], rounds: int
    ) -> None:
        self.values, self.data, self.rounds = values, data, rounds
        self.device = pick_device(values["device"])
        self.trainer = Trainer(encoder, "", self.device, values["validation_share"], values["ola"])
        settings = {name: values[name] for name in ("epochs", "lr", "batch_size", "weight_decay")}
        self.settings = settings_by_scheme(
            [*values["schemes"], *values["binary_schemes"]], values["dropout"], **settings
        )
        # a GPU has finished when the numbers are back, so its work is on the clock
        self._clock = time.perf_counter if self.device.type == "cuda" else time.process_time
        self._models: dict[str, Any] = {}

    def seconds(self, work: Callable[[], Any]) -> float:
        """How long a piece of work takes: of the processor's time, or with a GPU of the clock's."""
        start = self._clock()
        work()
        return self._clock() - start

    def training(self, scheme: str) -> Cost:
        """One model of a scheme: what it costs at all, each row once, and each row an epoch; from
        few base sentences and from more of them, and from more epochs.
        """
        train, settings = self.data["train"], self.settings[scheme]
        bases = train["sentence_idx"].unique()

        def rows_of(n_base: int) -> pd.DataFrame:
            return train[train["sentence_idx"].isin(bases[:n_base])].reset_index(drop=True)

        def run(rows: pd.DataFrame, epochs: int) -> float:
            chosen = replace(settings, epochs=epochs) if settings else None
            trainer = replace(self.trainer, _kept={})  # or a later run would read nothing
            return self.seconds(lambda: trainer.train(scheme, 0, rows, rows, CLASSES, chosen))

        few = rows_of(_N_BASE)
        run(few, 1)  # the first call loads what it needs
        more = int(_SECONDS / run(few, 1))
        many = rows_of(_N_BASE * min(max(more, 2), _N_BATCHES))
        timed = [(run(few, 1), run(many, 1), run(many, 3)) for _ in range(self.rounds)]
        at_least, once, epoch = costs_of_a_row(np.array(timed), len(few), len(many))
        n, n_test = len(train), len(self.data["test"])
        n_epochs = settings.epochs if settings else 0
        return predicted_cost(at_least + once * (n + n_test) + epoch * n * n_epochs)

    def model(self, kind: str) -> TextModel:
        """An untrained model of a kind: encoder or OLA."""
        if kind not in self._models:
            scheme = "OLA-CEA" if kind == "OLA" else "CEfAf"
            rows = self.data["train"], self.data["test"]
            used = self.trainer.vocabulary(*rows) if kind == "OLA" else ()
            self._models[kind], _ = build_model(self.trainer.recipe(scheme, CLASSES, 0), used)
            self._models[kind].module.to(self.device)
        return self._models[kind]

    def explaining(self, kind: str, methods: Sequence[str]) -> Cost:
        """One row of mean length, with methods that share their pass of the model: from whole base
        sentences, as a study explains them, for LIME runs texts that their forms share once (one
        form alone costs twice as much); with all steps and samples where that takes seconds.
        """
        test, model = self.data["test"], self.model(kind)
        lengths = np.array([len(one.ids) for one in model.encode(test["sentence"])])
        bases = test["sentence_idx"].unique()
        bases = bases[np.linspace(0, len(bases) - 1, _N_EXPLAINED).astype(int)]
        settings = [numbers_of(self.values).get(method, {}) for method in methods]

        def run(n_base: int, most: int) -> float:
            asked = [(m, shortened(one, most)[0]) for m, one in zip(methods, settings, strict=True)]
            chosen = np.flatnonzero(test["sentence_idx"].isin(bases[-n_base:]))
            took = self.seconds(partial(explain_many, model, test.iloc[chosen], methods=asked))
            return took / lengths[chosen].sum()  # a token

        factor = max(shortened(one, _TIMED)[1] for one in settings)
        run(1, _TIMED)  # the first call loads what it needs
        row = run(1, _TIMED) * factor * lengths.mean()
        if row <= _SECONDS or factor <= 4:
            n_base = int(np.clip(_SECONDS / row, 1, _N_EXPLAINED))
            timed = np.array([run(n_base, _ALL) for _ in range(self.rounds)])
        else:  # the further steps cost what those between 25 and 100 do
            pairs = [(run(1, _TIMED), run(1, 4 * _TIMED)) for _ in range(self.rounds)]
            short, long = np.array(pairs).T
            timed = short + (long - short) / 3 * (factor - 1)
        return predicted_cost(timed) * lengths.mean()

    def memory(self) -> dict[str, float]:
        """Bytes at the peak of training the largest scheme and of explaining, beside what the
        process holds already.
        """
        model, test = self.model("encoder"), self.data["test"]
        per_token = saved_bytes(model, test["sentence"].iloc[0])
        longest = max(len(one.ids) for one in model.encode(test["sentence"]))
        n = sum(p.numel() for p in model.module.parameters())
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
        batch = max(self.values["batch_size"].values()) * longest
        budget = TokenBudget.for_module(model.module).tokens
        return {
            "training": memory(n, n, per_token, batch, base),
            "explaining": memory(n, 0, per_token, budget, base),
        }


def predict(values: Mapping[str, Any], sample: Sample) -> pd.DataFrame:
    """The costs of a parameter file, a line per scheme (trained models) and per kind and method
    (explained rows).

    Columns: stage, what, count, seconds (in all), low, high (the 95 % interval of the timings, made
    wider by what a sample misses of a whole run); the last line is their sum.
    """
    counts = models_of(values).groupby("scheme", sort=False).size()
    lines = [
        ("02_training", scheme, count, *sample.training(scheme) * count)
        for scheme, count in progress(list(counts.items()), "schemes timed")
    ]
    test = sample.data["test"]
    n_forms = len(test) // test["sentence_idx"].nunique()
    explained = list(rows_by_method(values, len(test), n_forms).itertuples())
    for row in progress(explained, "methods timed"):
        cost = sample.explaining(row.kind, row.methods) * row.rows
        lines.append(("03_attribution", f"{', '.join(row.methods)}, {row.kind}", row.rows, *cost))
    lines.append(("total", "", 0, *np.sum([line[3:] for line in lines], axis=0)))
    table = pd.DataFrame(lines, columns=["stage", "what", "count", "seconds", "half"])
    half = table.pop("half")
    low = (table["seconds"] - half).clip(lower=0.0) / UNITS
    return table.assign(low=low, high=(table["seconds"] + half) * UNITS)


def encoder_of_shape(encoder: str, folder: Path) -> str:
    """The encoder itself where its files are at hand; otherwise one of its shape (or
    bert-base's) with drawn weights.
    """
    if encoder in PACKAGED or Path(encoder).is_dir():
        return encoder
    try:
        config = AutoConfig.from_pretrained(encoder, local_files_only=True, trust_remote_code=False)
    except OSError:
        config = BertConfig()
    if not isinstance(config, BertConfig):
        raise TouchstoneError(
            f"encoder {encoder!r} is not at hand; download it, or give the folder that it lies in"
        )
    tokenizer = load_tokenizer(next(iter(PACKAGED)))
    config.vocab_size = len(tokenizer)  # the one at hand; a table's length costs no time
    with quiet():
        BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return str(folder)


def main(chosen: argparse.Namespace, stages: Sequence[Job]) -> int:
    """Print the prediction for what was asked, and keep it in the run's folder; the exit status.

    Args:
        chosen: study, scale, rows_from, rounds.
        stages: the study's, with their parameters.
    """
    values = {name: value for stage in stages for name, value in stage.all.items()}
    scale = chosen.rows_from or chosen.scale
    stage = Stage(
        "geco", scale, "03_attribution", outputs_root() / "geco" / scale / "03_attribution"
    )
    data = {split: load_dataset(stage, values["datasets"][0], split) for split in ("train", "test")}
    set_up(0, values["n_threads"])
    with tempfile.TemporaryDirectory() as folder:
        sample = Sample(
            values, encoder_of_shape(values["encoder"], Path(folder)), data, chosen.rounds
        )
        table, peaks = predict(values, sample), sample.memory()
    save_csv(table, outputs_root() / "geco" / chosen.scale / "plan.csv")
    print(table.round({"seconds": 0, "low": 0, "high": 0}).to_string(index=False))
    hours, low, high = table.iloc[-1][["seconds", "low", "high"]].astype(float) / 3600
    print(f"in all about {hours:.3g} hours of one core ({low:.3g} to {high:.3g})")
    print(", ".join(f"{stage} needs about {size / 2**30:.1f} GiB" for stage, size in peaks.items()))
    return 0
