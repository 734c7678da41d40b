"""The engine beside well-batched peers: every arm runs, equal work gives equal scores, and the
lines of the README are those of the table. Nothing is timed.
"""

from __future__ import annotations

import os
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from small_models import as_rows

from lib.attribution import explain, explain_many
from lib.core.paths import ROOT
from lib.models.text_model import RunsFromEmbeddings


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(ROOT / "tools" / "benchmarks")
    import how_fast
    import peers
    import rivals

    return SimpleNamespace(how_fast=how_fast, peers=peers, rivals=rivals)


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
    table = bench.rivals.measure(work, bert, three, rounds=1)
    assert set(table["work"]) == {work.name} and (table["rows"] == 3).all()
    ours = table[table["side"] == "engine"].set_index("arm")
    assert list(ours.index) == list(work.asked)
    timed = ours[ours["ratio"].notna()] if "ratio" in ours else ours.iloc[:0]
    for row in timed.itertuples():
        assert row.ratio > 0 and row.ratio_low <= row.ratio_high and row.of_limit > 0
        bound = {"work": 2e-4, "answer": 0.2}.get(row.equal)
        assert bound is None or row.share_difference < bound, row
    peers = table[(table["side"] == "peer") & (table["equal"] != "own terms")]
    assert set(peers["equal"]) == {equal for equal, _ in work.asked.values()}
    for row in table[table["ms"].isna()].itertuples():
        assert row.side == "peer" and row.note.startswith("not run: No module named ")
    if work.name != "Partition SHAP":  # its peers need shap, which tests do not install
        assert len(timed) == len(ours) and (peers["ms"] > 0).all() and len(peers) >= 2


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
    found = explain(bert, three, "Integrated Gradients", {"n_steps": n, "rule": "riemann_middle"})
    change = (found["scores"].map(sum) - found["delta"]).abs()
    assert (found["delta"].abs() <= 0.01 * change).all() and n in bench.rivals.POINTS_TRIED


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
        "ratio_low": ratio - 0.1,
        "ratio_high": ratio + 0.1,
        "rows": 6,
        "rounds": 3,
        "ms": 2.0,
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
            line("Integrated Gradients", "engine, 50 points", "work", 1.03),
            line("LIME", "engine", "work", 1.1),
            line("Integrated Gradients", "engine, to 1 %, bfloat16", "answer", 0.4),
        ]
    ).assign(spread=[0.02, 0.04, 0.3], bfloat16_gain=0.1)
    lines = bench.how_fast.aims(table).split("\n")
    assert len(lines) == 9 and lines[2].endswith("| 1 | 1.03 (0.93-1.13) | 110%, 107% | met |")
    assert lines[3].endswith("| missed: 1.8 would be 180% of the limit, for the peer is at 100% |")
    assert "bfloat16 runs at 0.10 of the speed of float32" in lines[4]
    assert lines[5].endswith("| Integrated Gradients | 110% | 110% (108%-110%) | | met |")
    assert "| 110% (106%-110%) | | missed by 45%: the same work leaves out only words" in lines[6]
    assert lines[6].endswith("; the peer reaches 100% |")
    assert "4% longer" in lines[8] and "at most 30%" in lines[8] and "2 arms" in lines[8]
    assert "ran 3 times, on 6 to 6 rows" in lines[8]


def test_a_miss_smaller_than_the_spread_says_so(bench: SimpleNamespace) -> None:
    near = line("Integrated Gradients", "engine, 50 points", "work", 1.2)
    table = pd.DataFrame([near | {"of_limit": 1.095, "spread": 0.1}])
    (said,) = bench.how_fast._shares(table)
    assert "| missed by less than 1%: the rounds of this arm differ by 10%; the same" in said


def test_peers_on_their_own_terms_and_works_without_an_aim_are_told(
    bench: SimpleNamespace,
) -> None:
    ours = line("LIME", "engine, 100 samples", "work", 1.5)
    other = line("several methods", "engine, together", "work", 1.1)
    peer = {"work": "LIME", "arm": "interpreto, 100 samples", "equal": "own terms"}
    table = pd.DataFrame([ours, other, peer | {"side": "peer", "ms": 5.0}])
    assert bench.how_fast._without_aim(table) == [
        "| work | several methods | none | 1.10 (1.00-1.20) | 110%, 100% | |",
        "| nothing | LIME, interpreto on its own terms | none | 2.50 | | |",
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
    assert "faster in 1 of 3 cells" in said and "it is faster in 0 of 1." in said
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
