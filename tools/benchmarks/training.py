"""How much faster the trainers of lib are than the plain loop, at equal numbers.

    python tools/benchmarks/training.py --quick     some minutes: few rows and epochs; what was scaled up is marked so
    python tools/benchmarks/training.py --full      a quarter of an hour

The plain loop is what the released code does: every batch padded to the longest sentence, the whole
word table in the optimiser, all layers for all tokens, PyTorch's default Adam, and one seed after
the other. It takes the same batches in the same order from the same start, so the losses must be
equal. Clock, rounds and machine as in attribution.py.
"""

from __future__ import annotations

import argparse
import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd
import torch
import torch.nn.functional as F
from arms import Arm, compared, take_turns
from attribution import add_options
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from lib.core.files import save_csv
from lib.core.paths import outputs_root
from lib.core.seeds import pick_device, set_up
from lib.core.stage import Stage
from lib.core.units import Units
from lib.models.hf import stacked_heads, with_own_head
from lib.models.load import build_model
from lib.models.ola import HIDDEN, OneLayerAttention
from lib.models.schemes import SCHEMES, apply_scheme, scheme_named, set_modes
from lib.models.shortcuts import first_token_only, ids_in_use, rows_in_use
from lib.models.text_model import BATCH, Encoded, pad
from lib.studies.geco.corpus import CLASSES, load_dataset
from lib.training.classifier import (
    CURVE,
    Forward,
    Settings,
    Split,
    batches,
    evaluate,
    fit,
    token_forward,
)
from lib.training.side_by_side import fit_seeds
from lib.training.transfer import Trainer

ENCODER = "all-MiniLM-L6-v2"
SETTINGS = {
    "C": Settings(20, 0.01, 32),
    "CEfAf": Settings(1, 5e-5, 32),
    "OLA-CEA": Settings(200, 0.01, 64, 0.001, eps=SCHEMES["OLA-CEA"].adam_eps),
}
N_VALIDATION = 0.2
LOSSES = ["train_loss", "validation_loss"]
Found = tuple[pd.DataFrame, Tensor]  # the learning curve, and class scores after the training


class Data:
    """Rows to train on, encoded, with a split per seed."""

    def __init__(
        self, rows: pd.DataFrame, encoded: Sequence[Encoded], device: torch.device
    ) -> None:
        self.encoded, self.device = list(encoded), device
        self.targets = torch.tensor(rows["target"].to_numpy(), device=device)
        self.lengths = torch.tensor([len(one.ids) for one in encoded])

    def split(self, seed: int) -> Split:
        """Rows in a random order, the last fifth for validation."""
        order = torch.randperm(len(self.lengths), generator=torch.Generator().manual_seed(seed))
        n = round(len(order) * (1 - N_VALIDATION))
        return Split(order[:n], order[n:])

    @property
    def first(self) -> Tensor:
        """The rows whose class scores are compared."""
        return torch.arange(min(32, len(self.lengths)))


def plain_fit(
    forward: Forward,
    trained: Mapping[str, nn.Parameter],
    data: Data,
    split: Split,
    settings: Settings,
    seed: int,
) -> pd.DataFrame:
    """The plain loop: best epoch and curve as `lib.training.classifier.fit` leaves them."""
    optimiser = torch.optim.Adam(
        trained.values(), lr=settings.lr, weight_decay=settings.weight_decay, eps=settings.eps
    )
    n_steps = settings.epochs * math.ceil(len(split.train) / settings.batch_size)
    schedule = get_linear_schedule_with_warmup(
        optimiser, round(settings.warm_up * n_steps), n_steps
    )
    generator, curve, kept = torch.Generator().manual_seed(seed), [], {}
    for epoch in range(1, settings.epochs + 1):
        total = 0.0
        for batch in batches(split.train, data.lengths, settings, generator):
            loss = F.cross_entropy(forward(batch), data.targets[batch])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained.values(), settings.max_norm)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(batch)
        validation = evaluate(
            forward, data.targets, data.lengths, split.validation, settings.batch_size
        )
        if not curve or validation[0] < min(line[2] for line in curve):
            kept = {name: p.detach().clone() for name, p in trained.items()}
        curve.append((epoch, total / len(split.train), *validation))
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(kept[name])
    return pd.DataFrame(curve, columns=CURVE)


class PlainOLA(nn.Module):
    """OLA with the whole vocabulary and all queries; starts where `OneLayerAttention` does."""

    def __init__(self, like: OneLayerAttention, n_vocab: int) -> None:
        super().__init__()
        net = like.module
        self.embeddings = nn.Embedding(n_vocab, HIDDEN)
        with torch.no_grad():
            self.embeddings.weight[torch.tensor(like.used_ids)] = net.embeddings.weight
        self.query, self.key, self.value, self.pooler, self.classifier = (
            copy.deepcopy(part)
            for part in (net.query, net.key, net.value, net.pooler, net.classifier)
        )

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Class scores of padded sentences."""
        e = self.embeddings(ids)
        scores = self.query(e) @ self.key(e).transpose(1, 2) / math.sqrt(HIDDEN)
        weights = scores.masked_fill(mask[:, None] == 0, -math.inf).softmax(-1)
        return self.classifier(torch.tanh(self.pooler((weights @ self.value(e))[:, 0])))


def plain_forward(run: Callable[[Tensor, Tensor], Tensor], data: Data, pad_id: int) -> Forward:
    """A model's class scores of rows by number, every batch padded to the longest sentence."""
    ids, mask = (t.to(data.device) for t in pad(data.encoded, pad_id))
    return lambda index: run(ids[index], mask[index])


def fresh(scheme: str, seed: int, data: Data) -> tuple[Any, dict[str, nn.Parameter]]:
    """An untrained model of a scheme and what it trains."""
    used = ids_in_use(data.encoded) if scheme_named(scheme).is_one_layer else ()
    model, trained = build_model(
        Trainer(ENCODER, "", data.device).recipe(scheme, CLASSES, seed), used
    )
    model.module.to(data.device)
    set_modes(model, scheme_named(scheme), 0.0)
    return model, trained


def plain(scheme: str, data: Data, settings: Settings, seeds: Sequence[int]) -> list[Found]:
    """A scheme by the plain loop, seed after seed: the curve, and the class scores of the first
    rows at the end.
    """
    found = []
    for seed in seeds:
        model, trained = fresh(scheme, seed, data)
        if scheme_named(scheme).is_one_layer:
            net = PlainOLA(model, len(model.tokenizer)).to(data.device)
            trained, run = dict(net.named_parameters()), net
        else:

            def run(ids: Tensor, mask: Tensor, model: Any = model) -> Tensor:
                return model.logits(model.embed(ids), mask)

        forward = plain_forward(run, data, model.tokenizer.pad_token_id)
        curve = plain_fit(forward, trained, data, data.split(seed), settings, seed)
        with torch.no_grad():
            found.append((curve, forward(data.first)))
    return found


def ours_heads(scheme: str, data: Data, settings: Settings, seeds: Sequence[int]) -> list[Found]:
    """C as lib trains it: the frozen encoder reads once, the heads learn side by side."""
    base, _ = fresh(scheme, seeds[0], data)
    models = [with_own_head(base) for _ in seeds]
    recipes = [Trainer(ENCODER, "", data.device).recipe(scheme, CLASSES, seed) for seed in seeds]
    trained = [
        apply_scheme(model, scheme_named(scheme), recipe["seed"])
        for model, recipe in zip(models, recipes, strict=True)
    ]
    with first_token_only(base):
        reading = base.read_all(data.encoded, BATCH)
    curves = fit_seeds(
        stacked_heads(base, reading),
        trained,
        data.targets,
        data.lengths,
        [data.split(seed) for seed in seeds],
        settings,
        list(seeds),
    )
    few = {name: kept[data.first] for name, kept in reading.items()}
    with torch.no_grad():
        return [(curve, model.head(few)) for curve, model in zip(curves, models, strict=True)]


def ours(scheme: str, data: Data, settings: Settings, seeds: Sequence[int]) -> list[Found]:
    """OLA and CEfAf as lib trains them: only rows in use, only the first token's output, no more
    padding than needed.
    """
    found = []
    for seed in seeds:
        model, trained = fresh(scheme, seed, data)
        with ExitStack() as stack:
            stack.enter_context(first_token_only(model))
            row_of = None
            if not scheme_named(scheme).is_one_layer:
                row_of = stack.enter_context(rows_in_use(model.module, ids_in_use(data.encoded)))
                trained = {
                    name: p for name, p in model.module.named_parameters() if name in trained
                }
            forward = token_forward(model, data.encoded, row_of)
            curve = fit(
                forward, trained, data.targets, data.lengths, data.split(seed), settings, seed
            )
            with torch.no_grad():
                found.append((curve, forward(data.first)))
    return found


@dataclass(frozen=True)
class Line:
    """A comparison: rows, epochs, seeds of the timed runs and of the run compared by numbers.

    The plain loop runs `plain_epochs` of one seed and is scaled up to `epochs` and `seeds`: its
    epochs are all alike.
    """

    name: str
    scheme: str
    rows: int
    epochs: int
    seeds: int
    plain_epochs: int
    check_rows: int = 0
    check_epochs: int = 0
    check_seeds: int = 0
    check_double: bool = False


LINES = {
    "quick": [
        Line("BERT-C, 20 epochs x 5 seeds", "C", 480, 20, 5, 1, 40, 20, 2),
        Line("OLA-CEA, 5 seeds", "OLA-CEA", 3840, 2, 5, 2, 128, 200, 3, True),
        Line("BERT-CEfAf, one epoch", "CEfAf", 400, 1, 1, 1),
    ],
    "full": [
        Line("BERT-C, 20 epochs x 5 seeds", "C", 960, 20, 5, 1, 80, 20, 3),
        Line("OLA-CEA, 5 seeds", "OLA-CEA", 3840, 5, 5, 5, 256, 200, 5, True),
        Line("BERT-CEfAf, one epoch", "CEfAf", 800, 1, 1, 1),
    ],
}


def measure(line: Line, rows: pd.DataFrame, device: torch.device, rounds: int) -> dict[str, Any]:
    """One line of the table."""
    model, _ = build_model(Trainer(ENCODER, "", device).recipe("C", CLASSES, 0))
    rows = rows.iloc[: line.rows].reset_index(drop=True)
    data = Data(rows, model.encode(rows["sentence"]), device)
    engine = ours_heads if line.scheme == "C" else ours
    settings, seeds = replace(SETTINGS[line.scheme], epochs=line.epochs), range(line.seeds)
    less = replace(settings, epochs=line.plain_epochs)
    arms = {
        "plain": Arm(lambda: plain(line.scheme, data, less, seeds[:1]), device),
        "ours": Arm(lambda: engine(line.scheme, data, settings, seeds), device),
    }
    take_turns(arms, rounds)
    scale = line.seeds * line.epochs / line.plain_epochs
    found = compared(arms["plain"], arms["ours"])
    found |= {name: found[name] * scale for name in ("ratio", "ratio_low", "ratio_high")}
    a, b = arms["plain"].found, arms["ours"].found
    double = float("nan")
    if line.check_rows:
        few = rows.iloc[: line.check_rows]
        data = Data(few, data.encoded[: len(few)], device)
        settings, seeds = replace(settings, epochs=line.check_epochs), range(line.check_seeds)
        a, b = (run(line.scheme, data, settings, seeds) for run in (plain, engine))
        if line.check_double:
            with in_double():
                double = differences(
                    *(run(line.scheme, data, settings, seeds) for run in (plain, engine))
                )[0]
    losses, logits = differences(a, b)
    per_row = 1000 / (len(rows) * line.seeds * line.epochs)
    return {
        "line": line.name,
        "equal": "work",
        "rows": len(rows),
        "rounds": rounds,
        "original_ms": arms["plain"].best * scale * per_row,
        "engine_ms": arms["ours"].best * per_row,
        **found,
        "extrapolated": scale > 1,
        "compared": f"{len(a)} seeds x {len(a[0][0])} epochs x {len(data.lengths)} rows",
        "loss_difference": losses,
        "loss_difference_float64": double,
        "logit_difference": logits,
    }


def differences(one: Sequence[Found], two: Sequence[Found]) -> tuple[float, float]:
    """The largest difference of a loss in any epoch, and of a class score at the end."""
    pairs = list(zip(one, two, strict=True))
    return (
        max(float((a[0][LOSSES] - b[0][LOSSES]).abs().max().max()) for a, b in pairs),
        max(float((a[1] - b[1]).abs().max()) for a, b in pairs),
    )


@contextmanager
def in_double() -> Iterator[None]:
    """Within, new numbers have 64 bits: what still differs is no rounding."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Measure all lines, keep each as it is finished, write the table and return it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    set_up(0, n_threads=1)
    stage = Stage("geco", options.models.name, "03_attribution", options.models / "03_attribution")
    rows = load_dataset(stage, "D_A", "train").sample(frac=1, random_state=0).reset_index(drop=True)
    store = Units("benchmarks", options.scale, "training")
    rounds, tables = options.rounds or (5 if options.scale == "full" else 2), []
    for line in LINES[options.scale]:
        key = store.key(
            **asdict(line), rounds=rounds, models=options.models.name, device=options.device
        )
        found = store.load(name := f"{line.scheme}-{options.device}", key)
        if found is None:
            found = pd.DataFrame([measure(line, rows, pick_device(options.device), rounds)])
            store.save(name, key, found)
        tables.append(found.assign(scale=options.scale))
        save_csv(
            table := pd.concat(tables, ignore_index=True),
            outputs_root() / "benchmarks" / options.scale / "training.csv",
        )
        print(
            found[
                ["line", "rows", "original_ms", "engine_ms", "ratio", "loss_difference"]
            ].to_string(index=False),
            flush=True,
        )
    return table


if __name__ == "__main__":
    main()
