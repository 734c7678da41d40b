"""Rankings of truths: against scipy, on made values whose answer is known, and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.core.errors import TouchstoneError
from lib.studies.assay.synthesis import (
    below_ceiling,
    between,
    budget_against_truth,
    by_kind,
    family_contrasts,
    on_one_scale,
    rank_agreement,
    recommended,
    resample,
    split_half,
    tau_b,
    truths_beyond_kinds,
    truths_beyond_models,
    within_reviews,
)


def made(
    rng: np.random.Generator,
    of_truth: float = 0.0,
    of_model: float = 0.0,
    noise: float = 0.05,
    n_trainings: int = 5,
) -> pd.DataFrame:
    """Values of eight explainers under three truths, each cluster with noise of its own."""
    base = np.linspace(0, 1, 8)
    by_model = of_model * rng.normal(size=(n_trainings, 8))
    rows = []
    for truth in "abc":
        shift = of_truth * rng.normal(size=8)
        for training in range(n_trainings):
            moved = base + shift + by_model[training]
            for cluster in range(12):
                values = moved + noise * rng.normal(size=8)
                rows += [
                    (f"e{i}", truth, f"m{training}", cluster, value)
                    for i, value in enumerate(values)
                ]
    return pd.DataFrame(rows, columns=["explainer", "truth", "training", "cluster", "value"])


def test_tau_is_that_of_scipy_with_ties_and_without_values() -> None:
    rng = np.random.default_rng(0)
    left, right = (
        rng.integers(0, 4, (20, 6)).astype(float),
        rng.integers(0, 4, (20, 6)).astype(float),
    )
    expected = [stats.kendalltau(a, b).statistic for a, b in zip(left, right, strict=True)]
    assert tau_b(left, right) == pytest.approx(np.array(expected), nan_ok=True)
    assert np.isnan(tau_b(np.ones((1, 3)), np.arange(3.0)[None]))[0]


def test_a_score_stands_between_floor_and_oracle() -> None:
    assert between(np.array([0.5, 1.0, 0.25]), 0.5, 1.0).tolist() == [0, 1, -0.5]
    with pytest.raises(TouchstoneError, match="tells nothing apart"):
        between(1.0, 0.5, 0.5)


def test_truths_that_agree_have_a_tau_of_one_and_a_ceiling() -> None:
    agreement = rank_agreement(made(np.random.default_rng(0), noise=0.01), 200)
    pair = agreement.query("left == 'a' and right == 'b'").iloc[0]
    assert (pair["tau"], pair["low"], pair["high"]) == (1, 1, 1)
    assert (agreement.query("left == right")["tau"] > 0.95).all()
    assert len(agreement) == 6


def test_a_reversed_truth_and_noise_are_told_apart() -> None:
    values = made(np.random.default_rng(1))
    values.loc[values["truth"] == "b", "value"] *= -1
    noisy = values["truth"] == "c"
    values.loc[noisy, "value"] = np.random.default_rng(2).normal(size=noisy.sum())
    found = rank_agreement(values, 200).set_index(["left", "right"])
    assert found.loc[("a", "b"), "high"] < -0.9
    assert found.loc[("c", "c"), "tau"] < 0.5 < found.loc[("a", "a"), "tau"]
    assert found.loc[("a", "c"), "low"] < 0.6


def test_shared_clusters_are_drawn_for_both_truths() -> None:
    values = made(np.random.default_rng(3), noise=1.0, n_trainings=1)
    twin = values[values["truth"] == "a"].assign(truth="twin")
    found = resample(pd.concat([values, twin]), 50, seed=0)
    assert np.array_equal(found.means["a"], found.means["twin"], equal_nan=True)
    by_hand = values[values["truth"] == "a"].groupby("explainer")["value"].mean()
    assert found.means["a"][0] == pytest.approx(by_hand[found.explainers["a"]].to_numpy())
    assert found.means["a"][1:].std() > 0


def test_two_truths_rank_the_explainers_that_both_have() -> None:
    values = made(np.random.default_rng(0), noise=0.01)
    wrong = (values["truth"] == "b") & (values["explainer"] == "e0")
    values.loc[wrong, "value"] = 9.0  # the last is first
    names = ["left", "right"]
    with_it = rank_agreement(values, 50).set_index(names)
    without = rank_agreement(values[~wrong], 50).set_index(names)
    assert with_it.loc[("a", "b"), "tau"] < without.loc[("a", "b"), "tau"] == 1
    assert without["n_explainers"].to_dict()[("a", "b")] == 7
    assert without.loc[("a", "c"), ["tau", "n_explainers"]].tolist() == [1, 8]
    few = values[(values["truth"] != "b") | values["explainer"].isin(["e1", "e2"])]
    with pytest.raises(TouchstoneError, match="a and b share 2 explainers"):
        rank_agreement(few, 10)
    with pytest.raises(TouchstoneError, match="cannot be split"):
        split_half(values[values["cluster"] == 0], 3, 0)


def test_other_explainers_could_agree_less_or_more() -> None:
    values = made(np.random.default_rng(5), of_truth=0.4)
    pair = rank_agreement(values, 400).query("left != right")
    assert (pair["any_low"] <= pair["low"]).all() and (pair["any_high"] >= pair["high"]).all()
    assert (pair["n_clusters"] == 12).all()


def test_truths_disagree_only_where_they_do_so_more_than_models() -> None:
    rng = np.random.default_rng(4)
    by_truth = truths_beyond_models(made(rng, of_truth=0.3, of_model=0.02))
    assert by_truth["low"] > 0
    assert by_truth["explainer_x_truth"] > 3 * by_truth["explainer_x_model"]
    stretched = made(np.random.default_rng(4), of_truth=0.3, of_model=0.02)
    stretched.loc[stretched["truth"] == "b", "value"] *= 100
    assert truths_beyond_models(stretched) == by_truth, "places do not know the units of a truth"
    by_model = truths_beyond_models(made(rng, of_truth=0.0, of_model=0.3))
    assert by_model["low"] <= 0 and by_model["explainer_x_model"] > 0.1


def two_kinds(of_truth: float, of_kind: float) -> pd.DataFrame:
    """An encoder and an LSTM that move explainers as far as is said; the LSTM refuses one."""
    rng = np.random.default_rng(6)
    values = made(rng, of_truth, noise=0.02)
    moved = dict(zip(sorted(set(values["explainer"])), of_kind * rng.normal(size=8), strict=True))
    shifted = values.assign(value=values["value"] + values["explainer"].map(moved))
    return by_kind(values, shifted[shifted["explainer"] != "e7"])


def test_truths_are_held_against_kinds_of_models() -> None:
    by_truth = two_kinds(of_truth=0.5, of_kind=0.02)
    assert set(by_truth["truth"]) == {f"{x}, {kind}" for x in "abc" for kind in ("encoder", "LSTM")}
    assert set(by_truth["explainer"]) == {f"e{i}" for i in range(7)}
    found = truths_beyond_kinds(by_truth)
    assert 0 < found["low"] <= found["difference"] <= found["high"]
    assert found["explainer_x_truth"] > 3 * found["explainer_x_model"]
    found = truths_beyond_kinds(two_kinds(of_truth=0.0, of_kind=0.5))
    assert found["high"] < 0 and found["explainer_x_model"] > 0.1


def test_a_family_is_recommended_where_it_is_nowhere_worse_and_somewhere_better() -> None:
    lines = [
        ("paths", "shapley", "mask", 0.001, 0.002),
        ("paths", "rollout", "mask", 0.001, 0.001),
        ("paths", "shapley", "edit", 0.004, 0.9),
        ("paths", "rollout", "edit", 0.001, 0.001),
        ("shapley", "paths", "mask", 0.2, 0.998),
        ("shapley", "rollout", "mask", 0.001, 0.001),
        ("shapley", "paths", "edit", 0.03, 0.1),
        ("shapley", "rollout", "edit", 0.001, 0.001),
        ("rollout", "paths", "mask", 0.9, 0.999),
        ("rollout", "shapley", "mask", 0.9, 0.999),
        ("rollout", "paths", "edit", 0.9999, 0.9999),
        ("rollout", "shapley", "edit", 0.9999, 0.9999),
    ]
    columns = ["family", "other", "truth", "p_inferior", "p_better"]
    contrasts = pd.DataFrame(lines, columns=columns)
    contrasts["p_worse"] = 1 - contrasts["p_inferior"]
    found = recommended(contrasts).set_index("family")
    assert found["recommended"].tolist() == [True, False, False]
    # the largest p of all comparisons; the smallest of two truths, twice
    assert found.loc["paths", "p_nowhere_inferior"] == 0.004
    assert found.loc["paths", "p_somewhere_better"] == pytest.approx(2 * 0.002)
    assert found.loc["paths", "p_holm"] == pytest.approx(3 * 0.004)
    assert found.loc["paths", "better_on"] == "mask" and found.loc["paths", "worse_on"] == ""
    assert found.loc["rollout", "worse_on"] == "edit"
    assert found["nowhere_inferior"].tolist() == [True, False, False]
    assert found["somewhere_better"].tolist() == [True, False, False]
    short = contrasts.assign(p_inferior=0.02)
    assert recommended(short)["nowhere_inferior"].all(), "each alone"
    assert not recommended(short)["recommended"].any(), "and no longer among three"


def test_each_truth_gets_its_own_scale_and_one_without_room_stays_empty() -> None:
    lines = [("a", "floor", 0.5), ("a", "oracle", 1.0), ("a", "x", 0.75), ("a", "x", 0.25)]
    lines += [("b", "floor", 0.99), ("b", "oracle", 1.0), ("b", "x", 0.5)]
    scored = pd.DataFrame(lines, columns=["truth", "explainer", "value"])
    found = on_one_scale(scored, {"a": "floor", "b": "floor"})
    assert found["value"].tolist()[:4] == [0.0, 1.0, 0.5, -0.5]
    assert found["value"][4:].isna().all() and found["raw"].tolist() == scored["value"].tolist()
    assert found.groupby("truth")["floor"].first().tolist() == [0.5, 0.99]


def test_every_family_is_held_against_every_other_one() -> None:
    rng = np.random.default_rng(0)
    values = {"good": 0.8, "also good": 0.9, "bad": 0.2}
    lines = [
        (truth, name, f"i{i}", f"c{i}", training, mean + 0.01 * rng.normal())
        for truth in "ab"
        for name, mean in values.items()
        for i in range(10)
        for training in range(2)
    ]
    names = ["truth", "explainer", "item_id", "cluster", "training", "value"]
    table = pd.DataFrame(lines, columns=[*names[:-1], "raw"])
    table = table.assign(value=9.0, seed=7, sentence_idx="other names")
    families = {"good": "one", "also good": "one", "bad": "two"}
    found = family_contrasts(table, families, margin=0.1, n_bootstrap=200)
    of = found.set_index(["family", "truth"])
    assert of.loc[("one", "a"), "estimate"] == pytest.approx(0.65, abs=0.02)
    assert of.loc[("two", "a"), "high"] == pytest.approx(-of.loc[("one", "a"), "low"])
    assert of["other"].tolist() == ["two", "one"] * 2
    advice = recommended(found).set_index("family")
    assert advice["recommended"].tolist() == [True, False]
    assert advice.loc["two", "worse_on"] == "a; b" and advice.loc["one", "better_on"] == "a; b"
    assert family_contrasts(table, {"good": "one"}, 0.1, 10).empty, "nothing to hold it against"
    same = family_contrasts(table.assign(raw=0.5), families, 0.1, 200)
    assert same.filter(like="p_").eq(1).all().all(), "no spread shows nothing"


def test_two_truths_lie_below_the_lower_ceiling() -> None:
    rows = [("a", "a", 0.9, 0.8, 1.0), ("b", "b", 0.7, 0.6, 0.8), ("b", "a", 0.2, 0.0, 0.5)]
    agreement = pd.DataFrame(rows, columns=["left", "right", "tau", "low", "high"])
    assert below_ceiling(agreement, "a", "b") == pytest.approx((0.5, 0.2, 0.7))
    assert np.isnan(below_ceiling(agreement, "a", "c")).all()


def test_a_place_moves_with_the_budget_and_with_the_truth() -> None:
    raw = {"mask": [0.1, 0.4, 0.6, 0.5], "swap": [0.1, 0.4, 0.6, 0.0]}
    rng = np.random.default_rng(0)
    lines = [
        (truth, name, training, f"c{i}", value + 0.01 * rng.normal() + 5 * training)
        for truth, values in raw.items()
        for name, value in zip(["a", "b", "c", "LIME"], values, strict=True)
        for training in range(2)
        for i in range(30)
    ]
    values = pd.DataFrame(lines, columns=["truth", "explainer", "training", "cluster", "value"])
    by_passes = {10: 0.2, 100: 0.9, 50: 0.0}
    bought = [
        (name, passes, 0, f"c{i}", value + 0.01 * rng.normal())
        for name in ("LIME", "a")
        for passes, value in by_passes.items()
        for i in range(30)
    ]
    of = pd.DataFrame(bought, columns=["explainer", "passes", "training", "cluster", "value"])
    moved, low, high = budget_against_truth(of, values, "LIME", "mask", "swap", 200)
    # 10 passes: above one of three; 100: above all; mask: above two; swap: above none
    assert moved == pytest.approx(2 / 3 - 2 / 3) and low == high == pytest.approx(0)
    of.loc[of["passes"] == 10, "value"] = rng.normal(0.4, 1.0, (of["passes"] == 10).sum())
    _, low, high = budget_against_truth(of, values, "LIME", "mask", "swap", 200)
    assert low < high


def test_two_trainings_give_no_interval() -> None:
    found = truths_beyond_models(made(np.random.default_rng(0), of_truth=0.3, n_trainings=2))
    assert np.isnan([found["low"], found["high"]]).all() and np.isfinite(found["difference"])


def test_deletions_in_reviews_are_named_and_only_explainers_are_ranked() -> None:
    values = pd.DataFrame({"truth": ["edit", "edit", "mask"], "explainer": ["A", "B", "A"]})
    values["value"] = 0.5
    names = [(x, "deletion, mask") for x in ("A", "B", "Even")]
    deletions = pd.DataFrame(names, columns=["explainer", "truth"]).assign(value=0.1)
    found = within_reviews(values, deletions)
    of = found.groupby("truth")["explainer"].agg(sorted).to_dict()
    both = ["A", "B"]
    assert of == {
        "edit": both,
        "deletion, mask, reviews": both,
    }
