"""Every run is told: the last one of runs.csv is the one whose tables are committed."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import runs

from lib.core.errors import TouchstoneError
from lib.core.paths import material, reference_dir
from lib.stats import claims as rules
from lib.stats.claims import VERDICTS, Claim

STUDIES = runs.told()


def claims_of(study: str) -> Path:
    return reference_dir(study, "cpu") / "04_metrics" / "claims.csv"


@pytest.mark.parametrize("study", STUDIES)
def test_the_last_run_is_the_one_that_is_committed(study: str) -> None:
    told, verdicts = runs.read_runs(study)
    last = verdicts[verdicts["run"] == told["run"].max()].drop(columns="run")
    committed = runs.registered_verdicts(
        runs.judged(claims_of(study)), material(study) / "claims.yaml"
    )
    pd.testing.assert_frame_equal(
        last.reset_index(drop=True), committed.reset_index(drop=True), check_dtype=False
    )


@pytest.mark.parametrize("study", STUDIES)
def test_the_counts_of_a_run_are_those_of_its_verdicts(study: str) -> None:
    told, verdicts = runs.read_runs(study)
    assert told["run"].tolist() == list(range(1, len(told) + 1))
    assert told["date"].is_monotonic_increasing
    counts = pd.crosstab(verdicts["run"], verdicts["verdict"])
    counts = counts.reindex(columns=list(VERDICTS), fill_value=0)
    assert counts.to_numpy().tolist() == told[list(VERDICTS)].to_numpy().tolist()


def test_a_run_is_added_and_none_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = "implicit_bias"
    for name in (runs.RUNS, runs.VERDICTS_OF_RUNS, "claims.yaml"):
        shutil.copy(material(study) / name, tmp_path)
    monkeypatch.setattr(runs, "material", lambda _: tmp_path)
    before = [(tmp_path / name).read_bytes() for name in (runs.RUNS, runs.VERDICTS_OF_RUNS)]
    with pytest.raises(TouchstoneError, match="what changed"):
        runs.append(study, claims_of(study), " ")
    old, _ = runs.read_runs(study)
    runs.append(study, claims_of(study), 'other seeds, "nothing else"')
    after = [(tmp_path / name).read_bytes() for name in (runs.RUNS, runs.VERDICTS_OF_RUNS)]
    assert all(b.startswith(a) and b != a for a, b in zip(before, after, strict=True))
    told, verdicts = runs.read_runs(study)
    assert told["what"].iloc[-1] == 'other seeds, "nothing else"'
    assert told.iloc[-1][list(VERDICTS)].tolist() == old.iloc[-1][list(VERDICTS)].tolist()
    assert runs.moves(verdicts).loc["augmentation_reduces_bias"].tolist()[:5] == [
        "holds",
        "undecided",
        "undecided",
        "holds",
        "holds",
    ]


@pytest.mark.parametrize("study", STUDIES)
def test_what_is_decided_and_what_is_open_is_told_of_the_last_run(study: str) -> None:
    folder = reference_dir(study, "cpu")
    told = pd.read_csv(folder / "power_of_claims.csv")
    pd.testing.assert_frame_equal(told, runs.power_of_claims(study, claims_of(study)))
    counted, left = (pd.read_csv(folder / f"{name}.csv") for name in ("decided", "open_claims"))
    pd.testing.assert_frame_equal(counted, runs.decided(study))
    now = runs.open_claims(study, claims_of(study))
    pd.testing.assert_frame_equal(left, now, check_dtype=False)
    after = counted[counted["state"] == "after"]
    assert (after[["decided", "undecided", "not run"]].sum(axis=1) == after["n"]).all()
    assert len(left) == after[["undecided", "not run"]].to_numpy().sum()
    assert left["why"].str.len().gt(5).all(), "each open claim says why"


def test_an_open_claim_is_as_wide_as_the_intervals_of_its_open_comparisons() -> None:
    """And not as the range of its estimates, which is what claims.csv has of several."""
    folder = runs.reference_dir("lm_saliency", "cpu") / "04_metrics"
    of_claims = runs.open_claims("lm_saliency", folder / "claims.csv").set_index("claim")
    parts = pd.read_csv(folder / "contrasts.csv").query("verdict == 'undecided'")
    several = {claim: part for claim, part in parts.groupby("id") if len(part) > 1}
    is_open = of_claims.index.intersection(list(several))
    assert len(is_open), "no open claim has several open comparisons: take another study"
    for claim in is_open:
        part = several[claim]
        half = ((part["high"] - part["low"]) / 2).median()
        assert of_claims.loc[claim, "half_width"] == pytest.approx(half)
        assert half > (of_claims.loc[claim, "high"] - of_claims.loc[claim, "low"]) / 2


def part(estimate: float, half: float, verdict: str = "undecided", **more: Any) -> dict[str, Any]:
    low, high = estimate - half, estimate + half
    return {"estimate": estimate, "low": low, "high": high, "n": 40, "why": ""} | {
        "verdict": verdict,
        **more,
    }


def test_an_interval_is_as_much_narrower_as_the_square_root_of_what_it_rests_on() -> None:
    claims = {c.id: c for c in runs.read_claims(runs.material("lm_saliency") / "claims.yaml")}
    ahead, equal = claims["sg_beats_v"], claims["noise_of_text_and_code_alike"]  # .02; within .05
    below = claims["lstm_follows_the_nearest_noun"]  # less, by .05

    def times(claim: Claim, **of: Any) -> float:
        return runs.times_the_data(claim, SimpleNamespace(**part(**of)))

    assert times(ahead, estimate=0.03, half=0.06) == pytest.approx(4)  # must be .03
    assert times(ahead, estimate=-0.01, half=0.06) == pytest.approx(4)  # to fail: .03
    assert times(equal, estimate=0.03, half=0.04) == pytest.approx(4)  # within: .02
    assert times(equal, estimate=-0.07, half=0.04) == pytest.approx(4)  # beyond: .02
    assert times(below, estimate=-0.1, half=0.2) == pytest.approx(4)
    assert times(below, estimate=-0.1, half=0.05, n=8) == pytest.approx(2.5)  # twenty for eight
    assert math.isinf(times(equal, estimate=0.05, half=0.04)), "on the margin itself"
    assert math.isnan(times(ahead, estimate=0.03, half=math.nan))
    assert runs.ENOUGH == rules._MIN_SENTENCES


def test_the_power_of_a_claim_is_how_often_draws_find_its_smallest_effect(tmp_path: Path) -> None:
    """A hundred thousand estimates about the effect, each with its interval, counted."""
    registered = {c.id: c for c in runs.read_claims(runs.material("geco") / "claims.yaml")}
    ahead, equal = registered["three_best"], registered["three_on_par_on_D_S"]
    other = registered["forms_explained_differently"]
    (tmp_path / "04_metrics").mkdir()
    halves, size = (0.01, 0.02, 0.5), {c.id: c.smallest_effect for c in (ahead, equal, other)}
    lines = [
        {"id": name, "comparison": "", "p_effect": 1.0, "p_absence": 1.0}
        | {"estimate": 0.3, "low": 0.3 - half, "high": 0.3 + half, "n": 40, "verdict": "holds"}
        | {"why": ""}
        for name in size
        for half in halves
    ]
    lines.append({**lines[0], "low": math.nan, "high": math.nan})
    lines.append({**lines[2], "verdict": "not run"})
    lines.append({**lines[2], "why": "one seed: the spread between trainings is not known"})
    claims = tmp_path / "04_metrics" / "claims.csv"
    pd.DataFrame(lines).to_csv(claims.with_name("comparisons.csv"), index=False)
    found = runs.power_of_claims("geco", claims).set_index("claim")
    assert set(found.index) == set(size) and set(found["comparisons"]) == {3}
    assert found["half_width"].tolist() == pytest.approx([0.02] * 3)
    assert found["of"].to_dict() == {
        ahead.id: "difference",
        equal.id: "equality",
        other.id: "difference",
    }
    draw = np.random.default_rng(0).normal(scale=0.02 / 1.96, size=100_000)

    def share(true: float, does_find: Callable[[np.ndarray], np.ndarray]) -> float:
        return float(does_find(true + draw).mean())

    def power(claim: Claim) -> float:
        return float(found.loc[claim.id, "power"])

    margin = size[equal.id]
    assert power(ahead) == pytest.approx(share(size[ahead.id], lambda x: x > 0.02), abs=0.01)
    inside = share(0, lambda x: np.abs(x) + 0.02 < margin)
    assert power(equal) == pytest.approx(inside, abs=0.01)
    beyond = share(2 * size[other.id], lambda x: x - 0.02 > size[other.id])
    assert power(other) == pytest.approx(beyond, abs=0.01)
    detectable = found["detectable"].iloc[0]
    assert share(detectable, lambda x: x > 0.02) == pytest.approx(0.8, abs=0.01)
    assert (found["is_enough"] == (found["power"] >= 0.8)).all() and found["is_enough"].any()


def test_the_least_data_that_decide_a_claim_and_how() -> None:
    claims = {c.id: c for c in runs.read_claims(runs.material("lm_saliency") / "claims.yaml")}
    every, most = claims["sg_beats_v"], claims["sg_beats_v_anywhere"]  # .02, all; .05, most
    assert (every.quorum, most.quorum) == ("all", "most")

    def least(claim: Claim, *parts: dict[str, Any]) -> tuple[float, str]:
        return runs.least_data(claim, pd.DataFrame(parts))

    holds, fails, far = part(0.04, 0.08), part(-0.02, 0.12), part(0.01, 1.0)
    assert least(every, holds, fails) == (pytest.approx(4), "partly"), "the first that is reached"
    assert least(every, fails, far) == (pytest.approx(9), "fails")
    unlearnt = part(0.5, 0.1, "not run")
    assert least(every, unlearnt, fails) == (pytest.approx(9), "fails")
    one = part(0.5, 0.1, why="one seed: the spread between trainings is not known")
    assert math.isnan(least(every, one)[0]) and least(every, unlearnt)[1] == "stays open"
    three = [part(0.1, 0.2), part(0.1, 0.3), part(-0.1, 0.9)]
    assert least(most, *three) == (pytest.approx(4), "partly")
    assert least(most, *[part(0.0, 0.1), part(0.0, 0.2), part(0.0, 9)])[1] == "fails"


def test_claims_that_were_added_later_are_counted_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = "cebab"
    for name in (runs.RUNS, runs.VERDICTS_OF_RUNS, "claims.yaml"):
        shutil.copy(material(study) / name, tmp_path)
    path = tmp_path / "claims.yaml"
    id_line = "- id: approx_best_L2\n"
    assert id_line in path.read_text()
    path.write_text(path.read_text().replace(id_line, f"{id_line}  registered: '2026-11-22'\n"))
    whole = runs.decided(study).set_index(["claims", "state"])
    monkeypatch.setattr(runs, "material", lambda _: tmp_path)
    parts = runs.decided(study).set_index(["claims", "state"])
    before, after = (t.loc[("added later", "after"), ["n", "decided"]] for t in (whole, parts))
    assert (after - before).tolist() == [1, 1]
    first = ("registered at first", "after")
    assert parts.loc[first, "n"] == whole.loc[first, "n"] - 1


def test_the_last_run_is_compared_with_the_last_one_before_claims_were_added() -> None:
    counted = runs.decided("lm_saliency")
    _, verdicts = runs.read_runs("lm_saliency")
    n_of_run = verdicts.groupby("run").size()
    before = set(counted.loc[counted["state"] == "before", "run"])
    assert before == {5}, "run 6 judged added claims, too"
    last = n_of_run[counted["run"].max()]
    assert n_of_run[5] < n_of_run[6] < last, "run 8 added claims, too; before is the same run"


def test_claims_of_an_appendix_are_told_beside_those_of_stage_04(tmp_path: Path) -> None:
    for folder, name in (("04_metrics", "one"), ("appendix_b", "two"), ("appendix_c", "")):
        (tmp_path / folder).mkdir()
        if name:
            table = pd.DataFrame({"id": [name], "verdict": ["holds"]})
            table.to_csv(tmp_path / folder / "claims.csv", index=False)
    found = runs.judged(tmp_path / "04_metrics" / "claims.csv")
    assert found["id"].tolist() == ["one", "two"]


def test_correcting_over_more_leaves_fewer() -> None:
    table = runs.across_studies().set_index("study")
    assert (table["comparisons"] >= table["decided"]).all()
    assert (table["decided"] >= table["stay_within"]).all()
    assert (table["stay_within"] >= table["stay_across"]).all()
    assert (table["claims"] >= table["claims_within"]).all()
    assert (table["claims_within"] >= table["claims_across"]).all()
    assert 0 < table.loc["all", "claims_across"] < table.loc["all", "claims"]
    assert table.loc["all"].tolist() == table.drop("all").sum().tolist()
    committed = pd.read_csv(runs.ROOT / "outputs" / "reference" / "across_studies.csv")
    assert committed.set_index("study").astype(int).equals(table.astype(int))


def test_a_decided_comparison_rests_on_a_significant_p_value() -> None:
    """By the verdict and the claim's direction: a claim of equality holds by absence."""
    direction = {c.id: c.direction for c in runs.read_claims(runs.material("geco") / "claims.yaml")}
    table = pd.read_csv(runs.reference_dir("geco", "cpu") / "04_metrics" / "comparisons.csv")
    table = table[table["verdict"].isin(["holds", "fails"])].dropna(subset="p_effect")
    seen = set()
    for row in table.itertuples():
        on = runs.rests_on(row.verdict, direction[row.id])
        assert getattr(row, on) < runs.ALPHA, (row.id, row.comparison)
        seen.add((row.verdict, direction[row.id] == "equal"))
    assert len(seen) == 4


def test_the_decided_claims_of_all_studies_are_counted() -> None:
    table = runs.decided_of_all()
    counts = table.set_index(["claims", "study"])[["n", "decided", "undecided", "not run"]]
    for kind in ("registered at first", "added later"):
        of_kind = counts.loc[kind]
        assert of_kind.loc["all"].tolist() == of_kind.drop("all").sum().tolist()
    assert (counts["n"] == counts.drop(columns="n").sum(axis=1)).all()
    committed = pd.read_csv(runs.ROOT / "outputs" / "reference" / "decided.csv")
    pd.testing.assert_frame_equal(committed, table, check_dtype=False, rtol=1e-5)


def test_a_raw_p_value_is_bounded_from_its_correction() -> None:
    raw = pd.Series([0.001, 0.03, 0.01, 0.02])
    parts = pd.DataFrame({"study": "s", "id": ["a", "a", "a", "b"], "p_effect": raw})
    parts["p_effect"] = [*runs.holm(raw[:3]), *runs.holm(raw[3:])]
    bound = runs._most_of_raw(parts, "p_effect")
    assert (bound >= raw - 1e-12).all() and bound.tolist() == pytest.approx(raw.tolist())
