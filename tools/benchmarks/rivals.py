"""The engine beside peers that are batched as well as their own documentation lets a user do it.

    python tools/benchmarks/rivals.py --quick              an hour and a half of one core
    python tools/benchmarks/rivals.py --full --publish     some hours; also into outputs/reference and the README
    python tools/benchmarks/rivals.py --quick --only LIME  one part, for a trial (with --rows, --rounds)

One process, one thread, processor time. After a warm-up the arms take turns in seven to
25 rounds, A B and then B A. A ratio is the median of the rounds' ratios; beside it stand the interval
of this median and the range of the rounds. Three questions have a column each: the same work (the
same points and draws, so the scores must agree), the same answer (the same completeness gap, the
same error), and the share of the naive limit (as many plain passes of the model). Writes rivals.csv
and scaling_*.csv.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from arms import Arm, machine, paired, take_turns
from attribution import (
    LIMIT_BATCH,
    LIMIT_ROWS,
    Asked,
    add_options,
    different_texts,
    disagreement,
    load_model,
    passes,
    plain_passes,
    plain_texts,
    some_rows,
)
from how_fast import OWN_TERMS, publish
from peers import (
    POINTS,
    TEXTS,
    TOGETHER,
    Scores,
    captum_deep_lift,
    captum_integrated,
    captum_kernel,
    captum_single,
    interpreto_on_its_terms,
    lime_texts,
    shap_on_our_terms,
    shap_partition,
    six_lines,
)
from products import share_of_products

from lib.attribution import Row, explain_many
from lib.core.errors import TouchstoneError
from lib.core.files import save_csv
from lib.core.paths import outputs_root
from lib.core.seeds import set_up
from lib.core.units import Units
from lib.models.text_model import TextModel, device_of

Answers = dict[str, Scores]
Peer = Callable[[TextModel, Sequence[Row]], Answers]
MIDDLE = "riemann_middle"
IG, KERNEL, LIME = "Integrated Gradients", "Kernel SHAP", "LIME"
SINGLE: Asked = {"Saliency": {}, "InputXGradient": {}}
ENOUGH: Asked = {  # as many draws as the row needs
    KERNEL: {"n_samples": 4000, "tolerance": 0.05},
    LIME: {"n_samples": 4000, "tolerance": 0.05},
}
TO_ONE_PERCENT: Asked = {IG: {"tolerance": 0.01, "placing": "panels"}}
BF16 = {"precision": "bfloat16"}
MOST_POINTS = 400  # that a peer gets
LENGTHS, COUNTS = (16, 64, 256, 512), (1, 4, 16, 64)
LONG = 2.5  # seconds: runs of the quick scaling that take longer are timed once, see `growth`
LEAST = 1.0  # seconds of a round: shorter runs are repeated
ROUNDS, MORE = 7, 25  # of a race: at least, and at most
BUDGET = 240.0  # seconds into which more than the least must fit
CLOSE = 1.15  # a peer that takes so many times as long as the fastest, or longer, does not race
APART = 2  # rounds of a peer on its own terms, which nobody races against
Key = tuple[str, str, str]  # of an arm: what is equal, side, name


@dataclass(frozen=True)
class Work:
    """What the arms are asked.

    Attributes:
        name: of the work.
        asked: of the engine, by line, with what is equal: work or answer.
        peers: the other arms, by what is equal (or "own terms") and name; made of what the
            engine's answer used.
        rows: how many, in the quick and in the full run.
    """

    name: str
    asked: Mapping[str, tuple[str, Asked]]
    peers: Callable[[pd.DataFrame], Mapping[tuple[str, str], Peer]]
    rows: tuple[int, int]


def _interpreto(method: str, n: int) -> Peer:
    return lambda model, rows: {method: interpreto_on_its_terms(model, rows, method, n)}


def _integrated(found: pd.DataFrame) -> dict[tuple[str, str], Peer]:
    """captum's arms: 50 points, and as many as bring every row's gap to 1 %."""
    n = int(found["peer_points"].max())

    def arm(n_steps: int, size: int, points: int | None) -> Peer:
        return lambda model, rows: {
            IG: captum_integrated(model, rows, n_steps, size, points, MIDDLE)
        }

    return {
        ("work", "captum, row by row"): arm(50, 1, None),
        ("work", f"captum, {TOGETHER // 4} rows, internal_batch_size {POINTS}"): arm(
            50, TOGETHER // 4, POINTS
        ),
        ("answer", f"captum, row by row, {n} points"): arm(n, 1, None),
        ("answer", f"captum, {TOGETHER // 4} rows, {n} points"): arm(n, TOGETHER // 4, POINTS),
        (OWN_TERMS, "interpreto, 50 points"): _interpreto(IG, 50),
    }


def _kernel(found: pd.DataFrame) -> dict[tuple[str, str], Peer]:
    n = int(found["peer_samples"].max())
    return {
        ("work", "captum, one coalition at a time"): lambda model, rows: {
            KERNEL: captum_kernel(model, rows, 25, 1)
        },
        ("work", "captum, perturbations_per_eval 25"): lambda model, rows: {
            KERNEL: captum_kernel(model, rows, 25)
        },
        ("answer", f"captum, perturbations_per_eval {POINTS}, {n} samples"): lambda model, rows: {
            KERNEL: captum_kernel(model, rows, n)
        },
        (OWN_TERMS, "interpreto, 25 samples"): _interpreto(KERNEL, 25),
    }


def _lime(found: pd.DataFrame) -> dict[tuple[str, str], Peer]:
    n = int(found["peer_samples"].max())

    def arm(n_samples: int, together: int, is_sorted: bool) -> Peer:
        return lambda model, rows: {LIME: lime_texts(model, rows, n_samples, together, is_sorted)}

    return {
        ("work", "lime, 100 texts padded together"): arm(100, 100, False),
        ("work", f"lime, {TEXTS} sorted texts padded together"): arm(100, TEXTS, True),
        ("answer", f"lime, {TEXTS} sorted texts, {n} samples"): arm(n, TEXTS, True),
        (OWN_TERMS, "interpreto, 100 samples"): _interpreto(LIME, 100),
    }


def _single(found: pd.DataFrame) -> dict[tuple[str, str], Peer]:
    return {
        ("work", "captum, row by row"): lambda model, rows: captum_single(model, rows, 1),
        ("work", f"captum, {TOGETHER} rows"): lambda model, rows: captum_single(
            model, rows, TOGETHER
        ),
        ("work", f"six lines of PyTorch, {TOGETHER} rows"): six_lines,
    }


def _partition(found: pd.DataFrame) -> dict[tuple[str, str], Peer]:
    return {
        ("work", "shap, max_evals 500, our masker and tree"): lambda model, rows: {
            "Partition SHAP": shap_on_our_terms(model, rows)
        },
        (OWN_TERMS, "shap, max_evals 500"): lambda model, rows: {
            "Partition SHAP": shap_partition(model, rows)
        },
    }


def _several(found: pd.DataFrame) -> dict[tuple[str, str], Peer]:
    """Of each method the arm that batches best, one after the other."""

    def arm(n_steps: int) -> Peer:
        def run(model: TextModel, rows: Sequence[Row]) -> Answers:
            return {
                **six_lines(model, rows),
                "DeepLift": captum_deep_lift(model, rows, TOGETHER),
                IG: captum_integrated(model, rows, n_steps, 1, None, MIDDLE),
                KERNEL: captum_kernel(model, rows, 25),
                LIME: lime_texts(model, rows, 100, TEXTS, True),
            }

        return run

    return {
        ("work", "the best-batched arms, one after the other"): arm(50),
        ("answer", "the same to a gap of 1 %"): arm(int(found["peer_points"].max())),
    }


ENGINE_IG: Asked = {IG: {"n_steps": 50, "rule": MIDDLE}}
ENGINE_KERNEL: Asked = {KERNEL: {"n_samples": 25}}
ENGINE_LIME: Asked = {LIME: {"n_samples": 100}}
_OTHERS: Asked = {**SINGLE, "DeepLift": {}, **ENGINE_KERNEL, **ENGINE_LIME}
WORKS = (
    Work("single pass", {"engine": ("work", SINGLE)}, _single, (128, 128)),
    Work(
        IG,
        {
            "engine, 50 points": ("work", ENGINE_IG),
            "engine, to 1 %": ("answer", TO_ONE_PERCENT),
            "engine, to 1 %, bfloat16": ("answer", {IG: {**TO_ONE_PERCENT[IG], **BF16}}),
        },
        _integrated,
        (16, 24),
    ),
    Work(
        KERNEL,
        {
            "engine, 25 samples": ("work", ENGINE_KERNEL),
            "engine, to an error of .05": ("answer", {KERNEL: ENOUGH[KERNEL]}),
        },
        _kernel,
        (8, 32),
    ),
    Work(
        LIME,
        {
            "engine, 100 samples": ("work", ENGINE_LIME),
            "engine, to an error of .05": ("answer", {LIME: ENOUGH[LIME]}),
        },
        _lime,
        (16, 24),
    ),
    Work(
        "several methods",
        {
            "engine, together": ("work", {**_OTHERS, **ENGINE_IG}),
            "engine, together, to 1 %": ("answer", {**_OTHERS, **TO_ONE_PERCENT}),
        },
        _several,
        (16, 24),
    ),
    Work(
        "Partition SHAP",
        {"engine, max_evals 500": ("work", {"Partition SHAP": {"max_evals": 500}})},
        _partition,
        (4, 16),
    ),
)


def peer_points(model: TextModel, rows: pd.DataFrame) -> int:
    """The fewest points at which every row's gap is at most 1 %, found by halving; at most 400.

    By captum's midpoint rule, which needs fewer here than its Gauss-Legendre and trapezoid rules.
    """

    def is_enough(n: int) -> bool:
        found = explain_many(model, rows, [(IG, {"n_steps": n, "rule": MIDDLE})])
        change = (found["scores"].map(sum) - found["delta"]).abs()
        return bool((found["delta"].abs() <= 0.01 * change).all())

    too_few, enough = 0, 8
    while enough < MOST_POINTS and not is_enough(enough):
        too_few, enough = enough, min(2 * enough, MOST_POINTS)
    while enough - too_few > 1:
        half = (too_few + enough) // 2
        too_few, enough = (too_few, half) if is_enough(half) else (half, enough)
    return enough


def peer_samples(model: TextModel, rows: pd.DataFrame, name: str) -> int:
    """As many draws as bring every row's error to that of `ENOUGH` where they are not paired, as no
    peer here pairs them; looked for by doubling, as the engine does for itself.
    """
    asked = name, {**ENOUGH[name], "paired_sampling": False}
    return int(explain_many(model, rows, [asked])["samples"].max())


def measure(
    work: Work,
    model: TextModel,
    rows: pd.DataFrame,
    rounds: int,
    least: float = LEAST,
    budget: float = BUDGET,
) -> pd.DataFrame:
    """One line an arm; the ratio of an engine's line is that against the fastest peer of as equal
    a task.

    All are warmed up. Then, for equal work and again for an equal answer, the engine, the peers
    that come near the fastest one and the naive limit race: they take turns, at least `rounds`
    times. A peer that is slower has its one run.
    """
    device, as_rows = device_of(model.module), rows_of(rows)
    engines: dict[Key, Arm] = {
        (equal, "engine", name): Arm(
            partial(explain_many, model, rows, list(asked.items())), device
        )
        for name, (equal, asked) in work.asked.items()
    }
    take_turns(engines, 1)  # a warm-up, and what the engine's answers used the peers get
    used = pd.concat([arm.found for arm in engines.values()])
    if IG in set(used["method"]):
        used["peer_points"] = peer_points(model, rows)
    if work.name in ENOUGH:
        used["peer_samples"] = peer_samples(model, rows, work.name)
    peers, lacking = _tried(work, used, model, as_rows, device)
    lines = []
    for equal in dict.fromkeys(equal for equal, _, _ in [*engines, *peers]):
        ours, theirs = (
            {key: arm for key, arm in arms.items() if key[0] == equal} for arms in (engines, peers)
        )
        near = _near(theirs) if ours else {}
        limits = _limits(work, [name for _, _, name in ours], model, as_rows) if near else {}
        if near:
            race({**ours, **near, **limits}, rounds, least, budget)
        elif not ours:
            take_turns(theirs, APART)
        lines += [
            _line(work, key, arm, near, theirs, limits, model, as_rows) for key, arm in ours.items()
        ] + [_timed(work, key, arm, model, as_rows) for key, arm in theirs.items()]
    lines += [
        {"work": work.name, "equal": equal, "side": "peer", "arm": name, "note": note}
        for (equal, name), note in lacking.items()
    ]
    return pd.DataFrame(lines).assign(rows=len(rows))


def _tried(
    work: Work, used: pd.DataFrame, model: TextModel, rows: Sequence[Row], device: torch.device
) -> tuple[dict[Key, Arm], dict[tuple[str, str], str]]:
    """The peers, and why some cannot run. Each has explained one row; where there is a choice,
    each has explained all of them once, which says who is fast.
    """
    peers: dict[Key, Arm] = {}
    lacking = {}
    for (equal, name), peer in work.peers(used).items():
        first = Arm(partial(peer, model, rows[:1]), device)
        try:
            first.round()
        except ImportError as error:
            lacking[equal, name] = f"not run: {error}"
        else:
            guess = [first.best * len(rows)]
            peers[equal, "peer", name] = Arm(partial(peer, model, rows), device, guess)
    among = Counter(equal for equal, _, _ in peers)
    chosen = {key: arm for key, arm in peers.items() if key[0] != OWN_TERMS and among[key[0]] > 1}
    for arm in [*chosen.values(), *(peers[key] for key in peers if key[0] == OWN_TERMS)]:
        arm.seconds.clear()
    take_turns(chosen, 1)
    return peers, lacking


def _near(peers: Mapping[Key, Arm]) -> dict[Key, Arm]:
    """The fastest peer and those that come near it."""
    fastest = min((arm.best for arm in peers.values()), default=math.nan)
    return {key: arm for key, arm in peers.items() if arm.best < CLOSE * fastest}


def race(arms: Mapping[Any, Arm], rounds: int, least: float, budget: float) -> None:
    """Let arms take turns, at least `rounds` times, and as often as `budget` seconds hold, to `MORE`.

    How often depends on the one time that each arm has by now, which does not count.
    """
    cost = 0.0
    for arm in arms.values():
        arm.repeats = max(1, math.ceil(least / arm.best))
        cost += arm.repeats * arm.best
        arm.seconds.clear()
    take_turns(arms, max(rounds, min(MORE, int(budget / cost))))


def _limits(
    work: Work, names: Sequence[str], model: TextModel, rows: Sequence[Row]
) -> dict[str, Arm]:
    """Plain passes of the model, by direction; where LIME is alone and its draws are counted, a
    plain run of its different texts as well. Each has run once.
    """
    device, some = device_of(model.module), rows[:LIMIT_ROWS]
    asked = [work.asked[name][1] for name in names]
    encoded = model.encode([row.words for row in some])
    arms = {
        direction: Arm(partial(plain_passes, model, some, encoded, direction, LIMIT_BATCH), device)
        for direction in sorted({kind[0] for one in asked for kind in passes(one)})
    }
    if asked == [ENGINE_LIME]:
        n = int(ENGINE_LIME[LIME]["n_samples"])
        drawn = sorted({ids for row in rows for ids in different_texts(model, row, n)[0]})
        arms["texts"] = Arm(partial(plain_texts, model, drawn), device)
    take_turns(arms, 1)
    return arms


def rows_of(rows: pd.DataFrame) -> list[Row]:
    """The rows as methods get them, without seeds."""
    return [
        Row(str(r.row_id), int(r.sentence_idx), int(r.target), list(r.sentence), 0)
        for r in rows.itertuples()
    ]


def _timed(work: Work, key: Key, arm: Arm, model: TextModel, rows: Sequence[Row]) -> dict[str, Any]:
    """What every arm has: its median time, and all its rounds in seconds, as they came."""
    equal, side, name = key
    return {
        "work": work.name,
        "equal": equal,
        "side": side,
        "arm": name,
        "tokens": np.mean(_lengths(model, rows)),
        "rounds": len(arm.seconds),
        "ms": arm.median / len(rows) * 1000,
        "spread": arm.spread() if len(arm.seconds) > 1 else np.nan,
        "seconds": " ".join(f"{seconds:.4g}" for seconds in arm.seconds),
    }


def _lengths(model: TextModel, rows: Sequence[Row]) -> list[int]:
    return [len(one.ids) for one in model.encode([row.words for row in rows])]


def _line(
    work: Work,
    key: Key,
    arm: Arm,
    raced: Mapping[Key, Arm],
    peers: Mapping[Key, Arm],
    limits: Mapping[str, Arm],
    model: TextModel,
    rows: Sequence[Row],
) -> dict[str, Any]:
    """The engine's line: beside its time the ratios against the fastest of the peers that raced,
    and how far its answer is from every peer's.
    """
    line = _timed(work, key, arm, model, rows)
    if not raced:
        return line
    best = min(raced.values(), key=lambda peer: peer.median)
    lengths, needed = _lengths(model, rows), passes(work.asked[key[2]][1], arm.found)
    scale = sum(lengths) / sum(lengths[:LIMIT_ROWS]) / LIMIT_BATCH
    limit = scale * sum(np.array(limits[kind[0]].seconds) * n for kind, n in needed.items())
    gaps = [disagreement(peer.found, arm.found) for peer in peers.values()]
    texts = paired(limits["texts"].seconds, arm.seconds)["ratio"] if "texts" in limits else np.nan
    return (
        line
        | paired(best.seconds, arm.seconds)
        | paired(list(limit), arm.seconds, "of_limit", "limit")
        | {
            "of_texts": texts,
            "passes": sum(needed.values()),
            "products": share_of_products(arm.run),
            "difference": max(gap[0] for gap in gaps),
            "share_difference": max(gap[1] for gap in gaps),
            "error": arm.found["error"].max() if "error" in arm.found else np.nan,
            "largest_gap": _largest_gap(arm.found),
        }
    )


def _largest_gap(found: pd.DataFrame) -> float:
    """Of Integrated Gradients: the completeness gap of a row by what is explained, at most."""
    some = found[found["method"] == IG]
    return float((some["delta"] / (some["scores"].map(sum) - some["delta"])).abs().max())


def texts_of(rows: pd.DataFrame, model: TextModel, n_tokens: int) -> pd.DataFrame:
    """Two rows of about so many tokens: sentences one after the other, cut."""
    words = [word for sentence in rows["sentence"] for word in sentence]
    half, made = len(words) // 2, []
    for start in (0, half):
        n = n_tokens
        # By the tokenizer itself, for the model refuses a text that is longer than it reads.
        while len(model.tokenizer(" ".join(words[start : start + n])).input_ids) > n_tokens:
            n -= max(1, n // 50)
        made.append(words[start : start + n])
    return rows.iloc[:2].assign(sentence=made)


# Along the axes: two methods of many passes and one of a single pass, ours and the best peers'.
GROWING: dict[str, tuple[Asked, Peer]] = {
    "single pass": (SINGLE, six_lines),
    "Integrated Gradients, 10 points": (
        {IG: {"n_steps": 10, "rule": MIDDLE}},
        lambda model, rows: {IG: captum_integrated(model, rows, 10, 1, None, MIDDLE)},
    ),
    "Kernel SHAP, 25 samples": (
        ENGINE_KERNEL,
        lambda model, rows: {KERNEL: captum_kernel(model, rows, 25)},
    ),
    "LIME, 50 samples": (
        {LIME: {"n_samples": 50}},
        lambda model, rows: {LIME: lime_texts(model, rows, 50, TEXTS, True)},
    ),
}


def growth(
    model: TextModel,
    rows: pd.DataFrame,
    axis: str,
    value: int,
    rounds: int,
    fresh: Executor,
    longest: float = math.inf,
) -> pd.DataFrame:
    """Milliseconds a row and the memory of an arm: axis, value, work, arm, rows, tokens, rounds,
    ms, mb.

    `fresh` (`fresh_process`) runs each arm once, for its memory. Where an arm takes longer than
    `longest` seconds there, that run is the only one that is timed, of both arms.
    """
    lines = []
    encoded = model.encode(list(rows["sentence"]))
    for name in GROWING:
        arms = _growing(name, model, rows)
        runs = {arm: fresh.submit(_alone, name, arm, rows).result() for arm in arms}
        if all(seconds <= longest for seconds, _ in runs.values()):
            take_turns(arms, rounds)
        else:
            for arm, one in arms.items():
                one.seconds.append(runs[arm][0])
        lines += [
            {
                "axis": axis,
                "value": value,
                "work": name,
                "arm": arm,
                "rows": len(rows),
                "tokens": np.mean([len(one.ids) for one in encoded]),
                "rounds": len(one.seconds),
                "ms": one.best / len(rows) * 1000,
                "mb": runs[arm][1],
            }
            for arm, one in arms.items()
        ]
    return pd.DataFrame(lines)


def _growing(name: str, model: TextModel, rows: pd.DataFrame) -> dict[str, Arm]:
    asked, peer = GROWING[name]
    return {
        "engine": Arm(partial(explain_many, model, rows, list(asked.items()))),
        "best-batched peer": Arm(partial(peer, model, rows_of(rows))),
    }


_loaded: list[TextModel] = []  # of the fresh process: its own copy of the model


def fresh_process(load: Callable[[], tuple[TextModel, pd.DataFrame]]) -> ProcessPoolExecutor:
    """A process that has imported everything, loaded the model and explained one short row.

    It is started with the first question and forks for each, so no run finds memory that another
    one has left. (A new process for each gives the same megabytes and takes 8 s to start.)
    """
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, spawn, initializer=_get_ready, initargs=(load,))


def _get_ready(load: Callable[[], tuple[TextModel, pd.DataFrame]]) -> None:
    set_up(0, n_threads=1)
    model, rows = load()
    _loaded.append(model)
    shortest = rows.iloc[[int(rows["sentence"].map(len).argmin())]]
    for name in GROWING:
        for arm in _growing(name, model, shortest).values():
            arm.run()


def _alone(name: str, arm: str, rows: pd.DataFrame) -> tuple[float, float]:
    return seconds_and_memory(_growing(name, _loaded[0], rows)[arm].run)


def seconds_and_memory(run: Callable[[], Any]) -> tuple[float, float]:
    """Processor seconds of a run, and the most megabytes of its own that it has at a time.

    Measured in a forked child. What the process holds already does not count, nor do files that
    are mapped (the code of libraries); what it had and has freed is given back first, for a run
    that took it again would seem to need nothing. Both are nan where memory runs out.
    """
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)

    def child() -> None:
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak begins anew, below what was given back just now
        before, start = _megabytes(), time.process_time()
        run()
        seconds, after = time.process_time() - start, _megabytes()
        peak = after["VmHWM"] - after["RssFile"] - (before["VmRSS"] - before["RssFile"])
        theirs.send((seconds, max(0.0, peak)))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return math.nan, math.nan
    finally:
        process.join()


def _megabytes() -> dict[str, float]:
    """Of this process: resident now and at most (VmRSS, VmHWM), of them mapped files (RssFile)."""
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return {name: int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM", "RssFile")}


def cases(
    model: TextModel, rows: pd.DataFrame, shape: str, scale: str
) -> list[tuple[str, int, pd.DataFrame]]:
    """What is scaled: rows, tokens, the model. A quick run takes one row of the longest texts, and
    of bert-base's shape two rows only.
    """
    is_quick = scale == "quick"
    if shape == "base":
        return [("bert-base", 12, some_rows(rows, n)) for n in ((2,) if is_quick else (2, 16))]
    texts = {n: texts_of(rows, model, n) for n in LENGTHS}
    if is_quick:
        texts[LENGTHS[-1]] = texts[LENGTHS[-1]].iloc[:1]
    return [
        ("MiniLM", 6, some_rows(rows, 2)),
        *(("rows", n, rows.iloc[:n]) for n in COUNTS),
        *(("tokens", n, some) for n, some in texts.items()),
    ]


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Measure, keep each part as it is finished, write the tables; `--publish` quotes them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--publish", action="store_true", help="into the reference and the README")
    parser.add_argument("--no-scaling", action="store_true", help="the table of works only")
    parser.add_argument("--no-works", action="store_true", help="the table of scaling only")
    options = parser.parse_args(arguments)
    set_up(0, n_threads=1)
    model, rows = load_model(options)
    index, rounds = options.scale == "full", options.rounds or ROUNDS
    chosen = [work for work in WORKS if options.only in work.name and not options.no_works]
    if not chosen and not options.no_works:
        raise TouchstoneError(f"no work has {options.only!r} in its name; leave --only out")
    budget = 0.0 if options.rounds else BUDGET
    store = Units("benchmarks", options.scale, "rivals")
    about = {"models": options.models.name, "shape": options.shape, "rounds": rounds, "races": True}
    keep = partial(_kept, store, about)
    folder = outputs_root() / "benchmarks" / options.scale
    parts = []
    for work in chosen:
        some = some_rows(rows, min(options.rows or len(rows), work.rows[index]))
        name = f"{work.name}-{options.shape}"
        parts.append(
            keep(name, len(some), partial(measure, work, model, some, rounds, budget=budget))
        )
        parts[-1] = parts[-1].assign(shape=options.shape, scale=options.scale)
        shown = ["work", "arm", "equal", "rows", "ms", "ratio", "of_limit", "share_difference"]
        print(parts[-1].reindex(columns=shown).round(4).to_string(index=False), flush=True)
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    here = machine(device_of(model.module))
    gain = float(here["gflops_bfloat16"]) / float(here["gflops_float32"])
    table = table.assign(processor=here["processor"], bfloat16_gain=gain)
    if parts and not options.only:
        save_csv(table, folder / f"rivals{'' if options.shape == 'trained' else '_base'}.csv")
    if not options.no_scaling and not options.only:
        grown, longest = [], LONG if options.scale == "quick" else math.inf
        with fresh_process(partial(load_model, options)) as fresh:
            for axis, value, some in cases(model, rows, options.shape, options.scale):
                run = partial(growth, model, some, axis, value, 3, fresh, longest)
                name = f"grown-{axis}-{value}-rows-{len(some)}"
                grown.append(keep(name, len(some), run))
                print(grown[-1].round(1).to_string(index=False), flush=True)
        save_csv(pd.concat(grown, ignore_index=True), folder / f"scaling_{options.shape}.csv")
    if options.publish:
        publish(folder)
    return table


def _kept(
    store: Units,
    about: Mapping[str, Any],
    name: str,
    n_rows: int,
    run: Callable[[], pd.DataFrame],
) -> pd.DataFrame:
    """A part's table, measured once: a stopped run goes on where it was."""
    return store.finished(name.replace(" ", "-"), store.key(part=name, rows=n_rows, **about), run)


if __name__ == "__main__":
    main()
