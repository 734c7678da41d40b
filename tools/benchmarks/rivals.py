"""The engine beside peers that are batched as well as their own documentation lets a user do it.

    python tools/benchmarks/rivals.py --quick              15 to 20 minutes of one core
    python tools/benchmarks/rivals.py --full --publish     some hours; also into outputs/reference and the README
    python tools/benchmarks/rivals.py --quick --only LIME  one part, for a trial (with --rows, --rounds)

One process, one thread, processor time; the arms take turns, and a ratio is that of the fastest
rounds. Three questions have a column each: the same work (the same points and draws, so the scores
must agree), the same answer (the same completeness gap, the same error), and the share of the naive
limit (as many plain passes of the model). Writes rivals.csv and scaling_*.csv.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from arms import Arm, machine, take_turns
from attribution import (
    LIMIT_ROWS,
    PASSES,
    Asked,
    add_options,
    disagreement,
    load_model,
    passes,
    plain_passes,
    some_rows,
)
from how_fast import publish
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
POINTS_TRIED = (10, 20, 50, 100, 200, 400)
LENGTHS, COUNTS = (16, 64, 256, 512), (1, 4, 16, 64)
LONG = 2.5  # seconds: runs of the quick scaling that take longer are timed once, see `growth`


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
        ("own terms", "interpreto, 50 points"): _interpreto(IG, 50),
    }


def _kernel(found: pd.DataFrame) -> dict[tuple[str, str], Peer]:
    n = int(found["samples"].max())
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
        ("own terms", "interpreto, 25 samples"): _interpreto(KERNEL, 25),
    }


def _lime(found: pd.DataFrame) -> dict[tuple[str, str], Peer]:
    n = int(found["samples"].max())

    def arm(n_samples: int, together: int, is_sorted: bool) -> Peer:
        return lambda model, rows: {LIME: lime_texts(model, rows, n_samples, together, is_sorted)}

    return {
        ("work", "lime, 100 texts padded together"): arm(100, 100, False),
        ("work", f"lime, {TEXTS} sorted texts padded together"): arm(100, TEXTS, True),
        ("answer", f"lime, {TEXTS} sorted texts, {n} samples"): arm(n, TEXTS, True),
        ("own terms", "interpreto, 100 samples"): _interpreto(LIME, 100),
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
        ("own terms", "shap, max_evals 500"): lambda model, rows: {
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
        (6, 24),
    ),
    Work(
        KERNEL,
        {
            "engine, 25 samples": ("work", ENGINE_KERNEL),
            "engine, to an error of .05": ("answer", {KERNEL: ENOUGH[KERNEL]}),
        },
        _kernel,
        (4, 32),
    ),
    Work(
        LIME,
        {
            "engine, 100 samples": ("work", ENGINE_LIME),
            "engine, to an error of .05": ("answer", {LIME: ENOUGH[LIME]}),
        },
        _lime,
        (6, 24),
    ),
    Work(
        "several methods",
        {
            "engine, together": ("work", {**_OTHERS, **ENGINE_IG}),
            "engine, together, to 1 %": ("answer", {**_OTHERS, **TO_ONE_PERCENT}),
        },
        _several,
        (4, 24),
    ),
    Work(
        "Partition SHAP",
        {"engine, max_evals 500": ("work", {"Partition SHAP": {"max_evals": 500}})},
        _partition,
        (2, 16),
    ),
)


def peer_points(model: TextModel, rows: pd.DataFrame) -> int:
    """The fewest points of `POINTS_TRIED` at which every row's gap is at most 1 %."""
    for n in POINTS_TRIED:
        found = explain_many(model, rows, [(IG, {"n_steps": n, "rule": MIDDLE})])
        change = (found["scores"].map(sum) - found["delta"]).abs()
        if (found["delta"].abs() <= 0.01 * change).all():
            return n
    return POINTS_TRIED[-1]


def measure(work: Work, model: TextModel, rows: pd.DataFrame, rounds: int) -> pd.DataFrame:
    """One line an arm; the ratio of an engine's line is that against the fastest peer of as equal
    a task.
    """
    device, as_rows = device_of(model.module), rows_of(rows)
    found = {
        name: explain_many(model, rows, list(asked.items()))
        for name, (_, asked) in work.asked.items()
    }
    used = pd.concat(list(found.values()))
    if IG in set(used["method"]):
        used["peer_points"] = peer_points(model, rows)
    arms: dict[tuple[str, str, str], Arm] = {
        (equal, "engine", name): Arm(
            partial(explain_many, model, rows, list(asked.items())), device
        )
        for name, (equal, asked) in work.asked.items()
    }
    lacking = {}
    for (equal, name), peer in work.peers(used).items():
        try:
            peer(model, as_rows[:1])
        except ImportError as error:
            lacking[equal, name] = f"not run: {error}"
        else:
            arms[equal, "peer", name] = Arm(partial(peer, model, as_rows), device)
    limits = {
        direction: Arm(partial(_plain, model, as_rows, direction), device)
        for direction in sorted({kind[0] for _, a in work.asked.values() for kind in passes(a)})
    }
    take_turns({**arms, **limits}, rounds)
    lines = [_line(work, key, arms, limits, model, as_rows) for key in arms]
    lines += [
        {"work": work.name, "equal": equal, "side": "peer", "arm": name, "note": note}
        for (equal, name), note in lacking.items()
    ]
    return pd.DataFrame(lines).assign(rows=len(rows), rounds=rounds)


def rows_of(rows: pd.DataFrame) -> list[Row]:
    """The rows as methods get them, without seeds."""
    return [
        Row(str(r.row_id), int(r.sentence_idx), int(r.target), list(r.sentence), 0)
        for r in rows.itertuples()
    ]


def _plain(model: TextModel, rows: Sequence[Row], direction: str) -> None:
    some = rows[:LIMIT_ROWS]
    plain_passes(model, some, model.encode([row.words for row in some]), direction)


def _line(
    work: Work,
    key: tuple[str, str, str],
    arms: Mapping[tuple[str, str, str], Arm],
    limits: Mapping[str, Arm],
    model: TextModel,
    rows: Sequence[Row],
) -> dict[str, Any]:
    equal, side, name = key
    arm, lengths = arms[key], [len(one.ids) for one in model.encode([row.words for row in rows])]
    line: dict[str, Any] = {
        "work": work.name,
        "equal": equal,
        "side": side,
        "arm": name,
        "tokens": np.mean(lengths),
        "ms": arm.best / len(rows) * 1000,
        "spread": arm.spread(),
    }
    others = {k: a for k, a in arms.items() if k[0] == equal and k[1] == "peer"}
    if side == "peer" or not others:
        return line
    best = min(others.values(), key=lambda other: other.best)
    scale = sum(lengths) / sum(lengths[:LIMIT_ROWS])
    limit = scale * sum(
        limits[kind[0]].best / PASSES[kind[0]] * n
        for kind, n in passes(work.asked[name][1], arm.found).items()
    )
    gaps = [disagreement(other.found, arm.found) for other in others.values()]
    return line | {
        "ratio": best.best / arm.best,
        "ratio_low": min(best.seconds) / max(arm.seconds),
        "ratio_high": max(best.seconds) / min(arm.seconds),
        "of_limit": limit / arm.best,
        "difference": max(gap[0] for gap in gaps),
        "share_difference": max(gap[1] for gap in gaps),
        "error": arm.found["error"].max() if "error" in arm.found else np.nan,
    }


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
    index, rounds = options.scale == "full", options.rounds or (7 if options.scale == "full" else 3)
    chosen = [work for work in WORKS if options.only in work.name and not options.no_works]
    if not chosen and not options.no_works:
        raise TouchstoneError(f"no work has {options.only!r} in its name; leave --only out")
    store = Units("benchmarks", options.scale, "rivals")
    about = {"models": options.models.name, "shape": options.shape, "rounds": rounds}
    keep = partial(_kept, store, about)
    folder = outputs_root() / "benchmarks" / options.scale
    parts = []
    for work in chosen:
        some = some_rows(rows, min(options.rows or len(rows), work.rows[index]))
        name = f"{work.name}-{options.shape}"
        parts.append(keep(name, len(some), partial(measure, work, model, some, rounds)))
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
