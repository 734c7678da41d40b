"""How much faster the engine is than captum and lime one row at a time, and how near to what the
processor can do.

    python tools/benchmarks/attribution.py --quick     about ten minutes: few rows
    python tools/benchmarks/attribution.py --full      about an hour and a quarter; a stopped run goes on with the group where it was

One process, one thread, processor time of the process (on a GPU, `--device cuda`: wall time); the
arms take turns, and the ratio is that of the fastest rounds. Every line says how far apart the
rounds were, how far the two arms' scores are apart, and how busy the machine was. The models are
those of a finished geco run (`--models outputs/geco/<scale>`), or `--shape base`: bert-base with
random weights, for timing only. The table goes to outputs/benchmarks/<scale>/.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from arms import Arm, compared, take_turns
from originals import Scores, original
from transformers import BertConfig, BertForSequenceClassification

from lib.attribution import Row, explain_many
from lib.attribution.explain import token_batch
from lib.attribution.perturbed_texts import lime_masks
from lib.core.errors import TouchstoneError
from lib.core.files import save_csv
from lib.core.paths import outputs_root
from lib.core.seeds import pick_device, seed_for, set_up
from lib.core.stage import Stage
from lib.core.units import Units
from lib.models.hf import HFClassifier
from lib.models.shortcuts import in_precision, parameters_fixed
from lib.models.text_model import Encoded, TextModel, device_of
from lib.models.weights import load_tokenizer
from lib.studies.geco.corpus import CLASSES, load_dataset
from lib.studies.geco.model_units import load_trained

Asked = Mapping[str, Mapping[str, Any]]  # methods with their settings
BF16 = {"precision": "bfloat16"}
SINGLE: Asked = {"Saliency": {}, "InputXGradient": {}, "Guided Backprop": {}}
IG_200: Asked = {"Integrated Gradients": {"n_steps": 200}}
ENGINE_IG_200: Asked = {"Integrated Gradients": {"n_steps": 200, "rule": "gausslegendre"}}
TRIPLED: Asked = {"Integrated Gradients": {"tolerance": 0.01}}
PANELS: Asked = {"Integrated Gradients": {"tolerance": 0.01, "placing": "panels"}}
KERNEL: Asked = {"Kernel SHAP": {"n_samples": 25}}
KERNEL_MANY: Asked = {"Kernel SHAP": {"n_samples": 200}}
LIME: Asked = {"LIME": {"n_samples": 100}}
LIME_MANY: Asked = {"LIME": {"n_samples": 5000}}
OTHERS: Asked = {**SINGLE, "DeepLift": {}, "Gradient SHAP": {"n_samples": 5}, **KERNEL, **LIME}
LIMIT_BATCH, LIMIT_ROWS = (
    25,
    8,
)  # copies of a row in one plain pass; rows from which the limit is taken, token by token
FORWARD_ONLY = {"Kernel SHAP", "LIME", "Partition SHAP"}  # methods that ask for no gradient
PASSES = {"forward": 100, "forward-backward": 50}  # plain passes a row that the limit is taken from
SOME_TEXTS = (
    500  # of a row's different altered texts, drawn at random: from them LIME's own limit is taken
)
Kind = tuple[str, str]  # of a plain pass: its direction, and the precision of its numbers


def low(asked: Asked, *names: str) -> Asked:
    """The same methods, those named (or all) in bfloat16."""
    return {
        name: {**settings, **(BF16 if not names or name in names else {})}
        for name, settings in asked.items()
    }


@dataclass(frozen=True)
class Group:
    """What the original is asked, and the engine's answers to it: by line, whether the work or the
    answer is equal.

    `rows` are those of the quick and of the full run, `longest` their most words (0: any).
    """

    name: str
    theirs: Asked
    ours: Mapping[str, tuple[str, Asked]]
    rows: tuple[int, int]
    longest: int = 0


GROUPS = [
    Group("single pass", SINGLE, {"three single-pass methods": ("work", SINGLE)}, (200, 400)),
    Group("Kernel SHAP 25", KERNEL, {"Kernel SHAP, 25 samples": ("work", KERNEL)}, (24, 48)),
    Group(
        "Kernel SHAP 200", KERNEL_MANY, {"Kernel SHAP, 200 samples": ("work", KERNEL_MANY)}, (4, 8)
    ),
    Group(
        "Integrated Gradients",
        IG_200,
        {
            "Integrated Gradients, 200 points": ("work", ENGINE_IG_200),
            "Integrated Gradients to 1 %, tripled points": ("answer", TRIPLED),
            "Integrated Gradients to 1 %, panels": ("answer", PANELS),
        },
        (8, 16),
    ),
    Group(
        "LIME 100",
        LIME,
        {"LIME, 100 samples": ("work", LIME), "LIME, 100 samples, bfloat16": ("answer", low(LIME))},
        (24, 48),
    ),
    Group(
        "eight methods",
        {**OTHERS, **IG_200},
        {
            "eight methods": ("work", {**OTHERS, **ENGINE_IG_200}),
            "eight methods, Integrated Gradients to 1 %": ("answer", {**OTHERS, **PANELS}),
            "eight methods, Integrated Gradients to 1 %, bfloat16": (
                "answer",
                low({**OTHERS, **PANELS}, "Integrated Gradients", "Kernel SHAP", "LIME"),
            ),
        },
        (8, 16),
    ),
    Group(
        "LIME 5000",
        LIME_MANY,
        {
            "LIME, 5000 samples": ("work", LIME_MANY),
            "LIME, 5000 samples, bfloat16": ("answer", low(LIME_MANY)),
        },
        (3, 5),
    ),
    Group(
        "LIME of short rows",
        LIME_MANY,
        {
            "LIME, all subsets of at most 12 words": (
                "answer",
                {"LIME": {"n_samples": 5000, "exact": True}},
            ),
            "LIME, all subsets of at most 12 words, bfloat16": (
                "answer",
                {"LIME": {"n_samples": 5000, "exact": True, **BF16}},
            ),
        },
        (2, 4),
        12,
    ),
]


def measure(group: Group, model: TextModel, rows: pd.DataFrame, rounds: int) -> pd.DataFrame:
    """The lines of one group: the arms take turns, `rounds` times each, after a warm-up row."""
    device = device_of(model.module)
    as_rows = [
        Row(r.row_id, r.sentence_idx, r.target, list(r.sentence), 0) for r in rows.itertuples()
    ]
    asked = {name: list(methods.items()) for name, (_, methods) in group.ours.items()}
    if len(rows) > 1:
        _theirs(
            model,
            as_rows[:1],
            {name: {k: min(v, 50) for k, v in s.items()} for name, s in group.theirs.items()},
        )
    arms = {"theirs": Arm(lambda: _theirs(model, as_rows, group.theirs), device)}
    for name, methods in asked.items():
        explain_many(model, rows.iloc[:1], methods)
        arms[name] = Arm(lambda methods=methods: explain_many(model, rows, methods), device)
    encoded = model.encode([row.words for row in as_rows])
    with ExitStack() as stack:
        for kind in limit_kinds(group):
            few = (
                stack.enter_context(in_precision(model, kind[1])),
                as_rows[:LIMIT_ROWS],
                encoded[:LIMIT_ROWS],
                kind[0],
            )
            arms[kind] = Arm(lambda few=few: plain_passes(*few), device)
        texts = (
            [different_texts(model, row, group.theirs["LIME"]["n_samples"]) for row in as_rows]
            if draws_texts(group)
            else []
        )
        for precision in dict.fromkeys(kind[1] for kind in limit_kinds(group) if texts):
            short = stack.enter_context(in_precision(model, precision))
            arms["texts", precision] = Arm(
                lambda short=short: [plain_texts(short, some) for some, _ in texts], device
            )
        take_turns(arms, rounds)
    lines = [
        _line(group, name, arms, encoded)
        | {
            "difference_float64": float("nan")
            if equal == "answer"
            else difference_in_double(model, rows.iloc[:2], group.theirs, methods)
        }
        | of_the_texts(arms, name, methods, texts)
        for name, (equal, methods) in group.ours.items()
    ]
    return pd.DataFrame(lines).assign(rows=len(rows), rounds=rounds)


def _line(
    group: Group, name: str, arms: Mapping[str, Arm], encoded: Sequence[Encoded]
) -> dict[str, Any]:
    theirs, ours, n = arms["theirs"], arms[name], len(encoded)
    gap, share_gap = disagreement(theirs.found, ours.found)
    needed = passes(group.ours[name][1], ours.found)
    limit, in_float32 = (
        sum(arms[kind].best / PASSES[kind[0]] * count for kind, count in some.items())
        * _tokens(encoded)
        / _tokens(encoded[:LIMIT_ROWS])
        for some in (needed, _all_float32(needed))
    )
    steps = ours.found["steps"] if "steps" in ours.found else pd.Series([float("nan")])
    relative = (ours.found["delta"] / (ours.found["scores"].map(sum) - ours.found["delta"])).abs()
    return {
        "line": name,
        "equal": group.ours[name][0],
        "tokens": _tokens(encoded) / n,
        "original_ms": theirs.best / n * 1000,
        "engine_ms": ours.best / n * 1000,
        **compared(theirs, ours),
        "of_limit": limit / ours.best,
        "limit_gain": in_float32 / limit,
        "difference": gap,
        "share_difference": share_gap,
        "steps": float(steps.mean()),
        "most_steps": float(steps.max()),
        "largest_gap": float(relative[ours.found["method"] == "Integrated Gradients"].max()),
    }


def draws_texts(group: Group) -> bool:
    """Whether a group is about LIME alone, with draws."""
    return set(group.theirs) == {"LIME"} and not any(
        asked["LIME"].get("exact") for _, asked in group.ours.values()
    )


def of_the_texts(
    arms: Mapping[Any, Arm], name: str, asked: Asked, texts: Sequence[tuple[Any, float]]
) -> dict[str, float]:
    """LIME's own limit, if there is one: the share of plain passes of its different texts."""
    if not texts:
        return {}
    scale = sum(share * sum(map(len, some)) for some, share in texts) / sum(
        sum(map(len, some)) for some, _ in texts
    )
    return {
        "of_texts": arms["texts", asked["LIME"].get("precision", "float32")].best
        * scale
        / arms[name].best
    }


def different_texts(
    model: TextModel, row: Row, n_samples: int
) -> tuple[list[tuple[int, ...]], float]:
    """`SOME_TEXTS` of the different texts that LIME draws for a row, as token ids, and how many
    times as many tokens all have.
    """
    masks = lime_masks(len(row.words), n_samples, seed_for("LIME", row.row_id, -1)).numpy()
    altered = [
        [word for word, left in zip(row.words, mask, strict=True) if left]
        for mask in np.unique(masks, axis=0)
    ]
    ids = sorted({tuple(one.ids) for one in model.encode(altered)})
    some = [ids[i] for i in np.random.default_rng(0).permutation(len(ids))[:SOME_TEXTS]]
    return some, sum(map(len, ids)) / sum(map(len, some))


@torch.inference_mode()
def plain_texts(model: TextModel, texts: Sequence[Sequence[int]]) -> None:
    """Each text once through the plain model, in batches of at most `LIMIT_BATCH` of one length."""
    for length in sorted({len(ids) for ids in texts}):
        alike = torch.tensor(
            [ids for ids in texts if len(ids) == length], device=device_of(model.module)
        )
        for batch in alike.split(LIMIT_BATCH):
            model.logits(model.embed(batch), torch.ones_like(batch))


def _tokens(encoded: Sequence[Encoded]) -> int:
    return sum(len(one.ids) for one in encoded)


def _theirs(model: TextModel, rows: Sequence[Row], asked: Asked) -> dict[str, Scores]:
    return {method: original(model, rows, method, **settings) for method, settings in asked.items()}


def disagreement(theirs: dict[str, Scores], ours: pd.DataFrame) -> tuple[float, float]:
    """The largest difference of a word's score by the row's largest, and of a word's share."""
    gaps, shares = [0.0], [0.0]
    for method, rows in theirs.items():
        for one, two in zip(rows, ours.loc[ours["method"] == method, "scores"], strict=True):
            a, b = np.asarray(one), np.asarray(two)
            gaps.append(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-12)))
            shares.append(
                float(
                    np.abs(a / max(np.abs(a).sum(), 1e-12) - b / max(np.abs(b).sum(), 1e-12)).max()
                )
            )
    return max(gaps), max(shares)


def difference_in_double(model: TextModel, rows: pd.DataFrame, theirs: Asked, ours: Asked) -> float:
    """The difference of scores with 64-bit numbers, from few steps and samples: what is left of it
    is no rounding.
    """
    double = copy.copy(model)
    double.module = copy.deepcopy(model.module).double()
    few = {
        name: {k: min(v, 20) if isinstance(v, int) else v for k, v in s.items()}
        for name, s in theirs.items()
    }
    same = {
        name: {k: min(v, 20) if isinstance(v, int) else v for k, v in s.items()}
        for name, s in ours.items()
    }
    as_rows = [
        Row(r.row_id, r.sentence_idx, r.target, list(r.sentence), 0) for r in rows.itertuples()
    ]
    return disagreement(
        _theirs(double, as_rows, few), explain_many(double, rows, list(same.items()))
    )[0]


def passes(asked: Asked, found: pd.DataFrame | None = None) -> dict[Kind, float]:
    """How many plain passes of the model a row's answers need, by direction and precision; `found`
    says what they used.

    The single-pass methods and DeepLift share one pass. Integrated Gradients with a tolerance needs
    the points that it used and, for the forward at either end, one more; LIME the texts that it
    drew, or all subsets of the words.
    """
    needed: dict[Kind, float] = {}
    for method, settings in asked.items():
        direction = "forward" if method in FORWARD_ONLY else "forward-backward"
        used = {
            name: found.loc[found["method"] == method, name].mean()
            for name in ("steps", "samples")
            if found is not None and name in found
        }
        n = (
            settings.get("n_steps", used.get("steps", LIMIT_BATCH) + 1)
            if method == "Integrated Gradients"
            else (
                used["samples"] if pd.notna(used.get("samples")) else settings.get("n_samples", 0)
            )
        )
        kind = (direction, settings.get("precision", "float32"))
        needed[kind] = needed.get(kind, 0) + n
    if set(asked) & set(SINGLE):
        needed["forward-backward", "float32"] = needed.get(("forward-backward", "float32"), 0) + 1
    return needed


def limit_kinds(group: Group) -> list[Kind]:
    """Directions and precisions of the plain passes behind a group's lines, float32 always."""
    kinds = [kind for _, methods in group.ours.values() for kind in passes(methods)]
    return list(dict.fromkeys([*_all_float32(dict.fromkeys(kinds, 0.0)), *kinds]))


def _all_float32(needed: Mapping[Kind, float]) -> dict[Kind, float]:
    return {
        (direction, "float32"): sum(n for (other, _), n in needed.items() if other == direction)
        for direction, _ in needed
    }


def plain_passes(
    model: TextModel,
    rows: Sequence[Row],
    encoded: Sequence[Encoded],
    direction: str,
    n: int | None = None,
) -> None:
    """`n` (or `PASSES`) passes of the plain model a row, in batches of `LIMIT_BATCH` copies: no
    tricks.
    """
    with parameters_fixed(model.module):
        for row, one in zip(rows, encoded, strict=True):
            batch = token_batch(model, [row] * LIMIT_BATCH, [one] * LIMIT_BATCH, "logit")
            for _ in range((n or PASSES[direction]) // LIMIT_BATCH):
                with torch.inference_mode(direction == "forward"):
                    inputs = batch.embeddings.clone().requires_grad_(direction != "forward")
                    values = batch.score(inputs, batch.mask)
                if direction != "forward":
                    torch.autograd.grad(values.sum(), inputs)


def load_model(options: argparse.Namespace) -> tuple[TextModel, pd.DataFrame]:
    """The model to explain and the test rows of D_A, in a random order without a favoured class."""
    stage = Stage("geco", options.models.name, "03_attribution", options.models / "03_attribution")
    rows = load_dataset(stage, "D_A", "test").sample(frac=1, random_state=0).reset_index(drop=True)
    if options.shape == "trained":
        model = load_trained(stage, "D_A", options.scheme, 0)
    else:
        torch.manual_seed(0)
        tokenizer = load_tokenizer("all-MiniLM-L6-v2")
        config = BertConfig(vocab_size=len(tokenizer), num_labels=len(CLASSES))
        model = HFClassifier(BertForSequenceClassification(config), tokenizer, CLASSES)
    model.module.to(pick_device(options.device))
    return model, rows


def some_rows(rows: pd.DataFrame, n: int, longest: int = 0) -> pd.DataFrame:
    """The first n rows (with at most `longest` words); fewer than four are taken evenly from short
    to long instead.
    """
    rows = rows[rows["sentence"].map(len) <= longest].reset_index(drop=True) if longest else rows
    if n >= 4:
        return rows.iloc[:n]
    by_length = rows.iloc[rows["sentence"].map(len).argsort(kind="stable")]
    return by_length.iloc[[int((i + 0.5) / n * len(rows)) for i in range(n)]].reset_index(drop=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that all benchmarks have."""
    scale = parser.add_mutually_exclusive_group(required=True)
    scale.add_argument("--quick", action="store_const", dest="scale", const="quick")
    scale.add_argument("--full", action="store_const", dest="scale", const="full")
    parser.add_argument(
        "--models", type=Path, default=outputs_root() / "geco" / "small", help="a finished geco run"
    )
    parser.add_argument("--scheme", default="CEfAf", help="which of its models")
    parser.add_argument("--shape", choices=("trained", "base"), default="trained")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="", help="groups whose name contains this")
    parser.add_argument(
        "--rows", type=int, default=0, help="fewer rows than a group's own number, for a trial"
    )
    parser.add_argument("--rounds", type=int, default=0, help="turns of each arm (2 quick, 5 full)")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Measure the chosen groups, keep each as it is finished, write the table and return it."""
    options = parse(arguments)
    chosen = [group for group in GROUPS if options.only in group.name]
    if not chosen:
        raise TouchstoneError(f"no group has {options.only!r} in its name; leave --only out")
    set_up(0, n_threads=1)
    model, rows = load_model(options)
    store = Units("benchmarks", options.scale, "attribution")
    rounds, lines = options.rounds or (5 if options.scale == "full" else 2), []
    for number, group in enumerate(chosen):
        n = min(options.rows or len(rows), group.rows[options.scale == "full"])
        about = {"scheme": options.scheme, "shape": options.shape, "device": options.device}
        key = store.key(
            group=group.name, rows=n, rounds=rounds, models=options.models.name, **about
        )
        found = store.load(
            name := f"{group.name}-{options.shape}-{options.device}".replace(" ", "-"), key
        )
        if found is None:
            found = measure(group, model, some_rows(rows, n, group.longest), rounds).assign(
                **about, scale=options.scale
            )
            store.save(name, key, found)
        lines.append(found)
        shown = found[
            ["line", "rows", "original_ms", "engine_ms", "ratio", "of_limit", "share_difference"]
        ]
        print(shown.round(4).to_string(index=False, header=number == 0), flush=True)
        table = pd.concat(lines, ignore_index=True)
        if not options.only:
            save_csv(table, outputs_root() / "benchmarks" / options.scale / f"{_file(options)}.csv")
    return table


def _file(options: argparse.Namespace) -> str:
    plain = options.shape == "trained" and options.device == "cpu"
    return "attribution" if plain else f"{options.shape}_{options.device}"


if __name__ == "__main__":
    main()
