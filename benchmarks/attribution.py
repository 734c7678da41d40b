"""How much faster the engine is than captum and lime one row at a time, and how near to what the processor can do.

    python benchmarks/attribution.py --quick     a few minutes: sampled rows
    python benchmarks/attribution.py --full      hours; a stopped run goes on with the line where it was

One process, one thread, processor time of the process; the arms take turns, and the ratio is that of the fastest
rounds. Every line says how far apart the rounds were, how far the two arms' scores are apart, and how busy the machine
was. The models are those of a finished geco run (`--models outputs/geco/<scale>`), or `--shape base`: bert-base with
random weights, for timing only. Tables are written to outputs/benchmarks/.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from originals import Scores, original
from transformers import BertConfig, BertForSequenceClassification

from lib.attribution import Row, explain_many
from lib.attribution.explain import token_batch
from lib.corpora import CLASSES, load_dataset
from lib.errors import TouchstoneError
from lib.models.face import TextModel
from lib.models.hf import HFClassifier
from lib.models.load import load_trained
from lib.models.shortcut import parameters_fixed
from lib.models.sources import load_tokenizer
from lib.paths import outputs_root
from lib.seeds import set_up
from lib.stage import Stage
from lib.store import save_csv
from lib.units import Units

Asked = Mapping[str, Mapping[str, Any]]  # methods with their settings
SINGLE: Asked = {"Saliency": {}, "InputXGradient": {}, "Guided Backprop": {}}
IG_200: Asked = {"Integrated Gradients": {"n_steps": 200}}
ENGINE_IG_200: Asked = {"Integrated Gradients": {"n_steps": 200, "rule": "gausslegendre"}}
IG_1: Asked = {"Integrated Gradients": {"tolerance": 0.01}}
IG_PANELS: Asked = {"Integrated Gradients": {"tolerance": 0.01, "placing": "panels"}}
BF16 = {"precision": "bfloat16"}
LIMIT_BATCH = 25  # copies of a row in one plain pass; larger batches of short rows are hardly faster
GRADIENT_SHAP: Asked = {"Gradient SHAP": {"n_samples": 5}}
KERNEL_SHAP: Asked = {"Kernel SHAP": {"n_samples": 25}}
LIME_100: Asked = {"LIME": {"n_samples": 100}}
LIME_5000: Asked = {"LIME": {"n_samples": 5000}}
OTHERS: Asked = {**SINGLE, "DeepLift": {}, **GRADIENT_SHAP, **KERNEL_SHAP, **LIME_100}
SHORT: Asked = {**OTHERS, "Kernel SHAP": {"n_samples": 25, **BF16}, "LIME": {"n_samples": 100, **BF16},
                "Integrated Gradients": {"tolerance": 0.01, "placing": "panels", **BF16}}  # bfloat16 where it is safe


@dataclass(frozen=True)
class Line:
    """A comparison: what is asked of the original and of the engine, on how many rows (quick, full), and the limit.

    `limit` is the part of the work that no engine can leave out, as plain passes of the model: (kind, number per row).
    """

    name: str
    theirs: Asked
    ours: Asked
    rows: tuple[int, int]
    limit: tuple[str, int] | None = None
    equal: str = "work"


LINES = [
    Line("three single-pass methods", SINGLE, SINGLE, (16, 96), ("forward-backward", 1)),
    Line("four single-pass methods", {**SINGLE, "DeepLift": {}}, {**SINGLE, "DeepLift": {}}, (16, 96)),
    Line("Gradient SHAP, 5 points", GRADIENT_SHAP, GRADIENT_SHAP, (16, 96), ("forward-backward", 5)),
    Line("Integrated Gradients, 200 points", IG_200, ENGINE_IG_200, (2, 16), ("forward-backward", 200)),
    Line("Integrated Gradients to 1 %, tripled points", IG_200, IG_1, (8, 48), None, "answer"),
    Line("Integrated Gradients to 1 %, panels", IG_200, IG_PANELS, (8, 48), None, "answer"),
    Line("Kernel SHAP, 25 samples", KERNEL_SHAP, KERNEL_SHAP, (16, 96), ("forward", 25)),
    Line("LIME, 100 samples", LIME_100, LIME_100, (16, 96), ("forward", 100)),
    Line("LIME, 5000 samples", LIME_5000, LIME_5000, (0, 6)),
    Line("eight methods", {**OTHERS, **IG_200}, {**OTHERS, **ENGINE_IG_200}, (2, 16)),
    Line("eight methods, Integrated Gradients to 1 %", {**OTHERS, **IG_200}, {**OTHERS, **IG_PANELS}, (2, 16), None,
         "answer"),
    Line("LIME, 100 samples, bfloat16", LIME_100, {"LIME": SHORT["LIME"]}, (16, 96), None, "answer"),
    Line("LIME, 5000 samples, bfloat16", LIME_5000, {"LIME": {"n_samples": 5000, **BF16}}, (0, 6), None, "answer"),
    Line("eight methods, Integrated Gradients to 1 %, bfloat16", {**OTHERS, **IG_200}, SHORT, (2, 16), None, "answer"),
]


@dataclass
class Arm:
    """One side of a comparison: its rounds in seconds of processor time, and what it found."""

    run: Callable[[], Any]
    seconds: list[float] = field(default_factory=list)
    found: Any = None

    def round(self) -> None:
        """Run once and note the time."""
        start = time.process_time()
        self.found = self.run()
        self.seconds.append(time.process_time() - start)

    def spread(self) -> float:
        """How much slower the slowest round was than the fastest, as a share."""
        return max(self.seconds) / min(self.seconds) - 1


def measure(line: Line, model: TextModel, rows: pd.DataFrame, rounds: int) -> pd.DataFrame:
    """One line of the table: the arms take turns, `rounds` times each, after one row each to warm up."""
    as_rows = [Row(r.row_id, r.sentence_idx, r.target, list(r.sentence), 0) for r in rows.itertuples()]
    asked = list(line.ours.items())
    for once in (lambda: _theirs(model, as_rows[:1], line.theirs), lambda: explain_many(model, rows.iloc[:1], asked)):
        once()
    arms = {"theirs": Arm(lambda: _theirs(model, as_rows, line.theirs)),
            "ours": Arm(lambda: explain_many(model, rows, asked))}
    if line.limit:
        arms["limit"] = Arm(lambda: plain_passes(model, as_rows, *line.limit))
    for _ in range(rounds):
        for arm in arms.values():
            arm.round()
    theirs, ours = arms["theirs"], arms["ours"]
    best = {name: min(arm.seconds) / len(rows) * 1000 for name, arm in arms.items()}
    if line.limit:  # fewer passes than fill a batch were run as a full batch
        best["limit"] *= line.limit[1] / max(line.limit[1], LIMIT_BATCH)
    gap, share_gap = disagreement(theirs.found, ours.found)
    return pd.DataFrame([{
        "line": line.name, "equal": line.equal, "rows": len(rows), "rounds": rounds,
        "tokens": float(np.mean([len(one.ids) for one in model.encode([row.words for row in as_rows])])),
        "original_ms": best["theirs"], "engine_ms": best["ours"], "ratio": best["theirs"] / best["ours"],
        "ratio_low": min(theirs.seconds) / max(ours.seconds), "ratio_high": max(theirs.seconds) / min(ours.seconds),
        "original_spread": theirs.spread(), "engine_spread": ours.spread(),
        "of_limit": best["limit"] / best["ours"] if line.limit else float("nan"),
        "difference": gap, "share_difference": share_gap,
        "steps": float(ours.found["steps"].mean()) if "steps" in ours.found else float("nan"),
        "load": os.getloadavg()[0]}])


def _theirs(model: TextModel, rows: Sequence[Row], asked: Asked) -> dict[str, Scores]:
    return {method: original(model, rows, method, **settings) for method, settings in asked.items()}


def disagreement(theirs: dict[str, Scores], ours: pd.DataFrame) -> tuple[float, float]:
    """The largest difference of a word's score by the row's largest, and of a word's share of the attribution."""
    gaps, shares = [0.0], [0.0]
    for method, rows in theirs.items():
        for one, two in zip(rows, ours.loc[ours["method"] == method, "scores"], strict=True):
            a, b = np.asarray(one), np.asarray(two)
            gaps.append(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-12)))
            shares.append(float(np.abs(a / max(np.abs(a).sum(), 1e-12) - b / max(np.abs(b).sum(), 1e-12)).max()))
    return max(gaps), max(shares)


def plain_passes(model: TextModel, rows: Sequence[Row], kind: str, n: int) -> None:
    """At least `n` passes of the plain model for each row, in batches of `LIMIT_BATCH` copies of it: no tricks."""
    with parameters_fixed(model.module):
        for row, one in zip(rows, model.encode([row.words for row in rows]), strict=True):
            for start in range(0, max(n, LIMIT_BATCH), LIMIT_BATCH):
                here = min(LIMIT_BATCH, max(n, LIMIT_BATCH) - start)
                batch = token_batch(model, [row] * here, [one] * here, "logit")
                with torch.inference_mode(kind == "forward"):
                    inputs = batch.embeddings.clone().requires_grad_(kind != "forward")
                    values = batch.score(inputs, batch.mask)
                if kind != "forward":
                    torch.autograd.grad(values.sum(), inputs)


def load_model(options: argparse.Namespace) -> tuple[TextModel, pd.DataFrame]:
    """The model to explain and the test rows of D_A, in a random order that does not favour a class."""
    stage = Stage("geco", options.models.name, "03_attribution", options.models / "03_attribution")
    rows = load_dataset(stage, "D_A", "test").sample(frac=1, random_state=0).reset_index(drop=True)
    if options.shape == "trained":
        return load_trained(stage, "D_A", options.scheme, 0), rows
    torch.manual_seed(0)
    tokenizer = load_tokenizer("all-MiniLM-L6-v2")
    config = BertConfig(vocab_size=len(tokenizer), num_labels=len(CLASSES))
    return HFClassifier(BertForSequenceClassification(config), tokenizer, CLASSES), rows


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scale = parser.add_mutually_exclusive_group(required=True)
    scale.add_argument("--quick", action="store_const", dest="scale", const="quick")
    scale.add_argument("--full", action="store_const", dest="scale", const="full")
    parser.add_argument("--models", type=Path, default=outputs_root() / "geco" / "small", help="a finished geco run")
    parser.add_argument("--scheme", default="CEfAf", help="which of its models")
    parser.add_argument("--shape", choices=("trained", "base"), default="trained")
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--rows", type=int, default=0, help="fewer rows than a line's own number, for a trial")
    parser.add_argument("--rounds", type=int, default=0, help="turns of each arm (2 quick, 4 full)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Measure the chosen lines, keep each as it is finished, write the table and return it."""
    options = parse(arguments)
    chosen = [line for line in LINES if options.only in line.name and line.rows[options.scale == "full"]]
    if not chosen:
        raise TouchstoneError(f"no line of scale {options.scale} has {options.only!r} in its name; leave --only out")
    set_up(0, n_threads=1)
    model, rows = load_model(options)
    store = Units("benchmarks", options.scale, "attribution")
    rounds = options.rounds or (4 if options.scale == "full" else 2)
    lines = []
    for number, line in enumerate(chosen):
        n = min(options.rows or len(rows), line.rows[options.scale == "full"])
        key = store.key(line=line.name, rows=n, rounds=rounds, models=str(options.models), scheme=options.scheme,
                        shape=options.shape)
        found = store.load(name := f"{line.name}-{options.shape}".replace(" ", "-").replace("%", "percent"), key)
        if found is None:
            found = measure(line, model, rows.iloc[:n], rounds)
            store.save(name, key, found)
        lines.append(found)
        shown = found[["line", "rows", "original_ms", "engine_ms", "ratio", "of_limit", "share_difference"]]
        print(shown.round(4).to_string(index=False, header=number == 0), flush=True)
    table = pd.concat(lines, ignore_index=True).assign(scale=options.scale, shape=options.shape, scheme=options.scheme)
    save_csv(table, outputs_root() / "benchmarks" / f"attribution_{options.scale}_{options.shape}.csv")
    return table


if __name__ == "__main__":
    main()
