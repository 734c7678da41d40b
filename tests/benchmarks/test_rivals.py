"""The engine beside well-batched peers: every arm runs, equal work gives equal scores, and the
lines of the README are those of the table. Nothing is timed.
"""

from __future__ import annotations

import gc
import itertools
import os
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from small_models import as_rows

from lib.attribution import explain, explain_many
from lib.core.paths import ROOT
from lib.models.text_model import RunsFromEmbeddings

IG = "Integrated Gradients"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(ROOT / "tools" / "benchmarks")
    import arms
    import how_fast
    import peers
    import products
    import rivals

    return SimpleNamespace(
        arms=arms, how_fast=how_fast, peers=peers, products=products, rivals=rivals
    )


@pytest.fixture
def three() -> pd.DataFrame:
    """Rows of different lengths, the longest first."""
    return as_rows(["he sings the old song .", "they sing .", "she sings it ."], [1, 2, 0])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_every_arm_runs_and_equal_work_gives_equal_scores(
    bench: SimpleNamespace, bert: RunsFromEmbeddings, three: pd.DataFrame, number: int
) -> None:
    work = bench.rivals.WORKS[number]
    table = bench.rivals.measure(work, bert, three, rounds=1, least=0.0, budget=0.0)
    assert set(table["work"]) == {work.name} and (table["rows"] == 3).all()
    ours = table[table["side"] == "engine"].set_index("arm")
    assert list(ours.index) == list(work.asked)
    timed = ours[ours["ratio"].notna()] if "ratio" in ours else ours.iloc[:0]
    for row in timed.itertuples():
        assert 0 < row.ratio_min <= row.ratio <= row.ratio_max and np.isnan(row.ratio_low)
        assert 0 < row.limit_min <= row.of_limit <= row.limit_max
        # Three short rows take too little time for a share of it: its arithmetic has a test below.
        assert np.isfinite(row.products) and row.passes >= 1 and row.rounds == 1
        assert len([float(n) for n in row.seconds.split()]) == 1
        bound = {"work": 2e-4, "answer": 0.2}.get(row.equal)
        assert bound is None or row.share_difference < bound, row
        assert (row.of_texts > 0) is (work.name == "LIME" and row.equal == "work")
        assert np.isnan(row.largest_gap) is not (IG in str(work.asked[row.Index][1]))
    peers = table[(table["side"] == "peer") & (table["equal"] != "own terms")]
    assert set(peers["equal"]) == {equal for equal, _ in work.asked.values()}
    for row in table[table["ms"].isna()].itertuples():
        assert row.side == "peer" and row.note.startswith("not run: No module named ")
    if work.name != "Partition SHAP":  # its peers need shap, which tests do not install
        assert len(timed) == len(ours) and (peers["ms"] > 0).all() and len(peers) >= 2


class Steps:
    """A clock that goes on by what each arm is said to take, and who ran when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, arms: SimpleNamespace) -> None:
        self.time, self.ran, self.arms = 0.0, [], arms
        monkeypatch.setattr(arms, "now", lambda device: self.time)

    def arm(self, name: str, *seconds: float) -> object:
        given = iter(seconds)

        def run() -> str:
            self.time += next(given)
            self.ran.append(name)
            return name

        return self.arms.Arm(run)


def test_arms_take_turns_in_either_order(
    bench: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch, bench.arms)
    ours, theirs = steps.arm("A", 1.0, 2.0, 3.0), steps.arm("B", 4.0, 5.0, 9.0)
    bench.arms.take_turns({"ours": ours, "theirs": theirs}, 3)
    assert "".join(steps.ran) == "ABBAAB" and ours.found == "A"
    assert ours.seconds == [1.0, 2.0, 3.0] and ours.median == 2.0 and ours.spread() == 2.0
    found = bench.arms.paired(theirs.seconds, ours.seconds)
    assert (found["ratio"], found["ratio_min"], found["ratio_max"]) == (3.0, 2.5, 4.0)
    assert np.isnan([found["ratio_low"], found["ratio_high"]]).all()  # three rounds are too few


def test_a_short_run_is_repeated_and_its_seconds_are_those_of_one(
    bench: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run says how often and how many rounds, and does not count."""
    steps = Steps(monkeypatch, bench.arms)
    short, long = steps.arm("s", 0.4, *[0.5] * 99), steps.arm("l", 3.0, *[2.0] * 99)
    arms = {"short": short, "long": long}
    bench.arms.take_turns(arms, 1)
    bench.rivals.race(arms, 7, least=1.0, budget=0.0)
    assert short.repeats == 3 and long.repeats == 1
    assert short.seconds == pytest.approx([0.5] * 7) and long.seconds == [2.0] * 7
    assert "".join(steps.ran[2:10]) == "ssslls" + "ss"
    for arm in arms.values():
        arm.seconds = [1.0]
    bench.rivals.race(arms, 7, least=1.0, budget=20.0)  # a round costs 2 s
    assert len(short.seconds) == len(long.seconds) == 10


@pytest.mark.parametrize(("n", "k"), [(6, 1), (7, 1), (9, 2), (12, 3), (15, 4)])
def test_the_interval_of_a_median_holds_it_as_often_as_it_says(
    bench: SimpleNamespace, n: int, k: int
) -> None:
    """By simulation of a skewed variable; with one value less left out at either end, too."""
    assert bench.arms.interval_of_median([5.0, 1.0, 3.0]) != (1.0, 5.0)  # nan: too few
    low, high = bench.arms.interval_of_median(range(1, n + 1))
    assert (low, high) == (k, n + 1 - k)
    drawn = np.sort(np.random.default_rng(0).exponential(size=(20_000, n)), axis=1)
    held = (drawn[:, k - 1] <= np.log(2)) & (np.log(2) <= drawn[:, n - k])
    narrower = (drawn[:, k] <= np.log(2)) & (np.log(2) <= drawn[:, n - k - 1])
    assert held.mean() > 0.945 and narrower.mean() < 0.95


def test_a_machine_that_slows_down_moves_rounds_and_not_their_ratio(
    bench: SimpleNamespace,
) -> None:
    slower = np.linspace(1.0, 1.5, 9)
    found = bench.arms.paired(list(3.0 * slower), list(2.0 * slower))
    assert found == pytest.approx(dict.fromkeys(found, 1.5))
    assert bench.arms.Arm(None, seconds=list(slower)).spread() == pytest.approx(0.5)


def test_garbage_of_before_is_not_walked_within_a_round(bench: SimpleNamespace) -> None:
    before = gc.get_freeze_count()
    with bench.arms.no_old_garbage():
        assert gc.isenabled() and gc.get_freeze_count() > 1000
    assert gc.get_freeze_count() <= before


def test_a_slow_peer_does_not_race(bench: SimpleNamespace) -> None:
    peers = {
        ("work", "peer", name): bench.arms.Arm(None, seconds=[seconds])
        for name, seconds in (("fast", 1.0), ("near", 1.1), ("slow", 2.0))
    }
    assert [name for _, _, name in bench.rivals._near(peers)] == ["fast", "near"]
    assert bench.rivals._near({}) == {}


def test_time_in_matrix_products_is_counted_there_and_back(
    bench: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product of the forward pass and the two of its gradients, by a clock that ticks when it is
    read; what watching costs is taken off.
    """
    ticks = itertools.count()
    monkeypatch.setattr(bench.products, "time", SimpleNamespace(process_time=lambda: next(ticks)))
    monkeypatch.setattr(bench.products, "seconds_to_watch", lambda: 0.1)
    x, w = (torch.randn(4, 4, requires_grad=True) for _ in range(2))
    share = bench.products.share_of_products
    assert share(lambda: (x + 1).exp().sum()) == 0
    # Read at either end, and at either end of each product; torch.sum is watched, too.
    assert share(lambda: (x @ w).sum()) == pytest.approx(1 / (3 - 2 * 0.1))
    with bench.products._Watch() as watch:
        (x @ w).sum().backward()
    assert watch.seconds == 3 and watch.operations > 3


def test_watching_costs_something(bench: SimpleNamespace) -> None:
    assert 0 < bench.products.seconds_to_watch() < 1


def test_padded_and_sorted_peers_give_each_row_its_own_scores(
    bench: SimpleNamespace, bert: RunsFromEmbeddings, three: pd.DataFrame
) -> None:
    """Rows come back in their order, without what padding got."""
    rows = bench.rivals.rows_of(three)
    expected = explain_many(bert, three, ["Saliency", "InputXGradient"])
    for found in (bench.peers.six_lines(bert, rows), bench.peers.captum_single(bert, rows, 2)):
        for method, scores in found.items():
            ours = expected.loc[expected["method"] == method, "scores"]
            for one, other in zip(scores, ours, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_sorted_texts_leave_lime_its_answer(
    bench: SimpleNamespace, bert: RunsFromEmbeddings, three: pd.DataFrame
) -> None:
    rows = bench.rivals.rows_of(three)
    ours = explain(bert, three, "LIME", {"n_samples": 30})["scores"]
    for is_sorted, together in ((True, 4), (False, 100)):
        found = bench.peers.lime_texts(bert, rows, 30, together, is_sorted)
        for one, other in zip(found, ours, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_peer_gets_as_many_points_as_its_worst_row_needs(
    bench: SimpleNamespace, bert: RunsFromEmbeddings, three: pd.DataFrame
) -> None:
    n = bench.rivals.peer_points(bert, three)
    gaps = {}
    for points in (n, n - 1):
        found = explain(
            bert, three, "Integrated Gradients", {"n_steps": points, "rule": "riemann_middle"}
        )
        gaps[points] = (found["delta"] / (found["scores"].map(sum) - found["delta"])).abs().max()
    assert gaps[n] <= 0.01 < gaps[n - 1]


def test_texts_of_a_length(
    bench: SimpleNamespace, bert: RunsFromEmbeddings, three: pd.DataFrame
) -> None:
    many = pd.concat([three] * 5, ignore_index=True)
    made = bench.rivals.texts_of(many, bert, 12)
    lengths = [len(one.ids) for one in bert.encode(list(made["sentence"]))]
    assert len(made) == 2 and all(9 <= n <= 12 for n in lengths)


def test_memory_is_that_of_the_run_alone(bench: SimpleNamespace) -> None:
    seconds, some = bench.rivals.seconds_and_memory(lambda: np.ones(8 * 2**20).sum())  # 64 MB
    assert 60 < some < 80 and 0 < seconds < 10
    assert bench.rivals.seconds_and_memory(lambda: None)[1] < 10


def test_memory_that_was_freed_before_counts_again(bench: SimpleNamespace) -> None:
    """Small pieces are kept by the allocator; a run that takes them again needs them."""

    def many() -> list[bytearray]:
        return [bytearray(4000) for _ in range(16_000)]  # 64 MB

    many()
    assert 50 < bench.rivals.seconds_and_memory(many)[1] < 90


def test_a_run_that_dies_has_neither_time_nor_memory(bench: SimpleNamespace) -> None:
    assert np.isnan(bench.rivals.seconds_and_memory(lambda: os._exit(1))).all()


def test_the_tree_for_shap_has_every_span_once(bench: SimpleNamespace) -> None:
    tree = bench.peers.halved(5)
    assert tree[:, 3].tolist() == [2, 3, 2, 5] and tree[-1, :2].tolist() == [6, 7]
    assert sorted(tree[:, :2].ravel().tolist()) == list(range(8))


def test_absent_tokens_are_padding(bench: SimpleNamespace) -> None:
    masker = bench.peers._Padding([1, 2, 4], pad_id=0)
    (altered,) = masker(np.array([True, False, False]), np.array([7, 5, 6, 8, 9, 7]))
    assert altered.tolist() == [[7, 5, 0, 8, 0, 7]] and masker.shape == (1, 3)


def line(work: str, arm: str, equal: str, ratio: float) -> dict[str, object]:
    about = {"work": work, "arm": arm, "equal": equal, "side": "engine", "ratio": ratio}
    spread = {
        "ratio_low": ratio - 0.02,
        "ratio_high": ratio + 0.02,
        "ratio_min": ratio - 0.1,
        "ratio_max": ratio + 0.1,
        "limit_low": 1.08,
        "limit_high": 1.12,
        "limit_min": 1.0,
        "limit_max": 1.3,
        "rows": 6,
        "rounds": 9,
        "ms": 2.0,
        "products": 0.8,
        "passes": 20.0,
        "largest_gap": 0.004,
        "error": 0.04,
    }
    return about | spread | {"of_limit": 1.1, "share_difference": 1e-6}


def test_three_sentences_say_what_a_peer_does_as_well(bench: SimpleNamespace) -> None:
    peer = {"work": "LIME", "arm": "lime", "equal": "work", "side": "peer", "rounds": 3, "rows": 6}
    half = line("Integrated Gradients", "engine, to 1 %, bfloat16", "answer", 0.4)
    table = pd.DataFrame(
        [
            line("Integrated Gradients", "engine, 50 points", "work", 1.03),
            line("LIME", "engine", "work", 1.5) | {"of_limit": 2.0},
            line("Integrated Gradients", "engine, to 1 %", "answer", 3.2),
            half,
            line("several methods", "engine, together", "work", 2.2),
            peer,
        ]
    )
    lines = bench.how_fast.three_sentences(table).split("\n")
    assert len(lines) == 3
    assert "1.50 to 2.20 times as fast as the fastest peer, except Integrated Gradients" in lines[0]
    assert "where the peer is as fast." in lines[0] and "1e-06" in lines[0]
    assert "3.20 to 3.20 times" in lines[1]
    assert "in bfloat16, where the peer is 2.5 times as fast as the engine." in lines[1]
    assert "110% to 200%" in lines[2]
    only = bench.how_fast.three_sentences(pd.DataFrame([half, table.loc[0]])).split("\n")
    assert "it is not faster in Integrated Gradients in bfloat16" in only[1]


def test_an_aim_is_met_or_has_its_measured_reason(bench: SimpleNamespace) -> None:
    table = pd.DataFrame(
        [
            line(IG, "engine, 50 points", "work", 1.03),
            line("LIME", "engine", "work", 1.1) | {"of_texts": 0.8, "ratio_high": 1.3},
            line(IG, "engine, to 1 %, bfloat16", "answer", 0.4),
        ]
    ).assign(spread=[0.02, 0.04, 0.3], bfloat16_gain=0.1)
    lines = bench.how_fast.aims(table).split("\n")
    assert len(lines) == 9
    assert lines[2].endswith("| 1 | 1.03 [1.01, 1.05] | 0.93-1.13 | 110%, 107% | met |")
    assert lines[3].endswith(
        "| missed: 1.8 would be 180% of the limit, for the peer is at 100%; at least 80% of the "
        "engine's time is the model's matrix products, and were all the rest free, it would be at "
        "most 1.38 |"
    )
    assert "bfloat16 runs at 0.10 of the speed of float32" in lines[4]
    assert lines[5].endswith(
        "| 110% | 110% [108%, 112%] | 100%-130% | | met; the interval reaches below the aim |"
    )
    assert "| 110% [108%, 112%] | 100%-130% | | missed by 45%: a plain run" in lines[6]
    assert "once each at their own lengths, would be at 138%; the same work leaves" in lines[6]
    assert lines[6].endswith("; the peer reaches 100% |")
    said = lines[8]
    assert "the median of 9 to 9 rounds, on 6 to 6 rows" in said
    assert "lies 11% above the lower (median of 3 ratios, at most 20%); in 1 of them" in said
    assert "4% longer" in said and "(median of 3 arms, at most 30%)" in said


def test_a_bound_above_the_aim_is_said_not_to_rule_it_out(bench: SimpleNamespace) -> None:
    table = pd.DataFrame([line("several methods", "engine, together, to 1 %", "answer", 2.6)])
    said = bench.how_fast.aims(table.assign(spread=0.1)).split("\n")[2]
    assert "at most 3.25 with as many passes, so these do not rule the aim out |" in said


def test_an_answer_that_is_less_precise_is_no_equal_answer(bench: SimpleNamespace) -> None:
    half = line(IG, "engine, to 1 %, bfloat16", "answer", 2.2)
    half |= {"largest_gap": 0.076, "passes": 131.0, "bfloat16_gain": 10.6}
    table = pd.DataFrame([line(IG, "engine, to 1 %", "answer", 3.9), half])
    kept, lost = bench.how_fast.aims(table.assign(spread=0.1)).split("\n")[2:4]
    assert kept.endswith("| met |")
    assert lost.endswith(
        "| missed: not an equal answer, for a row's completeness gap is 7.6% in place of 1%; "
        "rounding, which more points do not mend: 131 passes a row, 20 in float32; at least 80% "
        "of the engine's time is the model's matrix products, and were all the rest free, it would "
        "be at most 2.75 with as many passes; a matrix product in bfloat16 runs at 10.6 times the "
        "speed of float32 |"
    )
    assert "it is 3.90 to 3.90 times" in bench.how_fast.three_sentences(table)
    fast = pd.DataFrame([half | {"ratio": 7.0, "ratio_low": 6.9, "ratio_high": 7.2}])
    (_, _, met, *_) = bench.how_fast.aims(fast.assign(spread=0.1)).split("\n")
    assert "| met, but not an equal answer, for a row's completeness gap is 7.6%" in met


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        (3.1, "met"),
        (3.01, "met; the interval reaches below the aim"),
        (2.99, "missed: the interval reaches the aim; "),
        (2.9, "missed: 3 would be "),
    ],
)
def test_a_ratio_within_its_interval_of_the_aim_says_so(
    bench: SimpleNamespace, ratio: float, says: str
) -> None:
    table = pd.DataFrame([line("LIME", "engine", "answer", ratio)]).assign(spread=0.1)
    (_, _, said, *_) = bench.how_fast.aims(table).split("\n")
    assert f" | {says}{'' if says.endswith(' ') else ' |'}" in said


def test_a_share_within_its_interval_of_the_aim_says_so(bench: SimpleNamespace) -> None:
    near = line(IG, "engine, 50 points", "work", 1.2) | {"spread": 0.1}
    (said,) = bench.how_fast._shares(pd.DataFrame([near | {"of_limit": 1.095}]))
    assert "| missed by less than 1%: the interval reaches the aim; the same" in said
    (said,) = bench.how_fast._shares(pd.DataFrame([near | {"of_limit": 0.9, "limit_high": 1.0}]))
    assert "| missed by 18%: the same work leaves out only" in said


def test_a_table_of_before_races_has_ranges_and_no_interval(bench: SimpleNamespace) -> None:
    """What stays published until the benchmark runs again is not called what it is not."""
    old = {"work": IG, "arm": "engine", "equal": "work", "side": "engine", "ratio": 1.09}
    old |= {"ratio_low": 0.93, "ratio_high": 1.27, "of_limit": 1.15, "spread": 0.25, "ms": 2.0}
    said = bench.how_fast.aims(pd.DataFrame([old]).assign(rows=6, rounds=3)).split("\n")
    assert said[2].endswith("| 1 | 1.09 | 0.93-1.27 | 115%, 106% | met |")
    assert said[3].endswith("| 110% | 115% | 92%-115% | | met |")
    assert "ratios of the fastest rounds" in said[5] and "interval lies" not in said[5]


def test_peers_on_their_own_terms_and_works_without_an_aim_are_told(
    bench: SimpleNamespace,
) -> None:
    ours = line("LIME", "engine, 100 samples", "work", 1.5)
    other = line("several methods", "engine, together", "work", 1.1)
    peer = {"work": "LIME", "arm": "interpreto, 100 samples", "equal": "own terms"}
    table = pd.DataFrame([ours, other, peer | {"side": "peer", "ms": 5.0}])
    assert bench.how_fast._without_aim(table) == [
        "| work | several methods | none | 1.10 [1.08, 1.12] | 1.00-1.20 | 110%, 100% | |",
        "| nothing | LIME, interpreto on its own terms | none | 2.50 | | | |",
    ]


@pytest.fixture
def scaling() -> pd.DataFrame:
    """Three cells; a peer is faster in the first, and nearly as fast in the second."""
    peers = {("rows", 1): 1.5, ("rows", 16): 2.1, ("tokens", 512): 4.0}
    cells = [
        {"axis": axis, "value": value, "rows": 16 if value == 16 else 1, "tokens": value + 20}
        | {"work": "single pass", "arm": arm, "ms": ms, "mb": 100 * ms, "rounds": 3}
        for (axis, value), of_peer in peers.items()
        for arm, ms in (("engine", 2.0), ("best-batched peer", of_peer))
    ]
    return pd.DataFrame(cells)


def test_cells_in_which_a_peer_does_as_well_are_counted(
    bench: SimpleNamespace, scaling: pd.DataFrame
) -> None:
    cells = bench.how_fast.cells_of(scaling)
    assert cells["ratio"].tolist() == [0.75, 1.05, 2.0]
    said = bench.how_fast.as_well(cells)
    assert "faster in 1 of 3 cells (second table), in 0 of them by less than 10%." in said
    assert "it is faster in 0 of 1." in said
    assert "In 1 cells more it takes less than 10% longer" in said
    table = bench.how_fast.where_faster(cells).split("\n")
    assert table[2:] == ["| single pass | 1 of 3 | 1 row | 1.33 times as long |"]
    assert bench.how_fast.where_faster(cells[cells["ratio"] > 1]) == ""


def test_memory_is_told_only_where_it_was_measured_alone(
    bench: SimpleNamespace, scaling: pd.DataFrame
) -> None:
    said = bench.how_fast.memory(scaling)
    assert "at 532 tokens the engine takes 200 to 200 MB and the peer 400 to 400 MB" in said
    assert "at 16 rows the engine takes 200 to 200 MB and the peer 210 to 210 MB" in said
    assert "not measured yet" in bench.how_fast.memory(scaling.drop(columns="rounds"))


def test_the_readme_has_the_lines_of_the_published_table(bench: SimpleNamespace) -> None:
    text = (ROOT / "tools" / "benchmarks" / "README.md").read_text(encoding="utf-8")
    between = text.partition(bench.how_fast.BEGIN)[2].partition(bench.how_fast.END)[0]
    assert between.strip() == bench.how_fast.shown()


@pytest.mark.slow
def test_growth_has_a_line_an_arm_with_time_and_memory(
    bench: SimpleNamespace,
    bert: RunsFromEmbeddings,
    three: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each arm runs alone first; a long one is timed only there."""
    monkeypatch.setattr(bench.rivals, "_loaded", [bert])
    here = SimpleNamespace(submit=lambda run, *given: SimpleNamespace(result=lambda: run(*given)))
    found = bench.rivals.growth(bert, three, "rows", 3, 2, here)
    assert len(found) == 2 * len(bench.rivals.GROWING) and set(found["axis"]) == {"rows"}
    assert set(found["arm"]) == {"engine", "best-batched peer"}
    assert (found["ms"] > 0).all() and (found["mb"] >= 0).all() and (found["rounds"] == 2).all()
    once = bench.rivals.growth(bert, three, "rows", 3, 2, here, longest=0.0)
    assert (once["ms"] > 0).all() and (once["rounds"] == 1).all()


@pytest.mark.more
def test_a_fresh_process_loads_a_model_of_its_own(
    bench: SimpleNamespace, bert: RunsFromEmbeddings, three: pd.DataFrame
) -> None:
    with bench.rivals.fresh_process(partial(tuple, (bert, three))) as fresh:
        asked = fresh.submit(bench.rivals._alone, "single pass", "engine", three)
        seconds, megabytes = asked.result()
    assert seconds > 0 and 0 <= megabytes < 100


def test_the_quick_run_has_the_longest_texts_and_the_most_rows(
    bench: SimpleNamespace, bert: RunsFromEmbeddings, three: pd.DataFrame
) -> None:
    many = pd.concat([three] * 40, ignore_index=True)
    bench.rivals.LENGTHS = (8, 12)  # what the small model reads
    for scale, n_rows in (("quick", 1), ("full", 2)):
        cases = {
            case[:2]: len(case[2]) for case in bench.rivals.cases(bert, many, "trained", scale)
        }
        assert cases["rows", 64] == 64 and cases["tokens", 12] == n_rows
    assert len(bench.rivals.cases(bert, many, "base", "quick")) == 1
