"""Claims are read strictly, and known effects get the verdict that they deserve."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.stats.claims import (
    Claim,
    Verdict,
    claim_row,
    combine,
    judge,
    read_claims,
    summarise,
)
from lib.stats.contrasts import _after_tests, _p_values, judge_contrasts

METHODS = {"strong": 0.6, "middle": 0.4, "twin": 0.4}


def claim(**about: object) -> Claim:
    base = {
        "id": "c",
        "source": "paper",
        "statement": "s",
        "quantity": "MA",
        "computed": "x",
        "direction": "greater",
        "smallest_effect": 0.02,
        "test": "t",
        "table": "explanations",
        "value": "MA",
    }
    return Claim(**(base | about))


def scored(
    n_sentences: int = 80, n_seeds: int = 3, schemes: tuple[str, ...] = ("C",)
) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sentence = rng.normal(0, 0.05, n_sentences)
    return pd.DataFrame(
        [
            {
                "dataset": "D_A",
                "scheme": s,
                "seed": k,
                "method": m,
                "row_id": f"{i}-{form}",
                "sentence_idx": i,
                "MA": mass + sentence[i] + rng.normal(0, 0.02),
            }
            for s in schemes
            for k in range(n_seeds)
            for m, mass in METHODS.items()
            for i in range(n_sentences)
            for form in "FM"
        ]
    )


def verdicts(c: Claim, frame: pd.DataFrame, **more: object) -> list[str]:
    return judge_contrasts(c, {"explanations": frame}, n_bootstrap=300, **more)["verdict"].tolist()


def test_the_registered_claims_are_well_formed():
    claims = read_claims(material("geco") / "claims.yaml")
    assert len(claims) > 30 and all(c.statement and c.test and c.computed for c in claims)
    assert not any("GECOBench" not in c.source and "this study" not in c.source for c in claims)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sesoi": 1}, "claim c: unknown field 'sesoi'"),
        ({"direction": "up"}, "claim c: direction 'up'"),
        ({"quorum": "some"}, "claim c: quorum 'some'"),
        ({"id": None}, "without id"),
    ],
)
def test_a_claim_that_is_not_well_formed_is_named(tmp_path, change, message):
    entry = {k: v for k, v in (vars(claim()) | change).items() if v is not None}
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump([entry], sort_keys=False))
    with pytest.raises(TouchstoneError, match=message):
        read_claims(path)
    path.write_text(yaml.safe_dump([vars(claim()), vars(claim())]))
    with pytest.raises(TouchstoneError, match="twice"):
        read_claims(path)


@pytest.mark.parametrize(
    ("direction", "estimate", "low", "high", "wanted"),
    [
        ("greater", 0.10, 0.05, 0.15, "holds"),
        ("greater", 0.01, 0.005, 0.015, "fails"),  # there, but smaller than what is of interest
        ("greater", 0.015, 0.005, 0.025, "undecided"),
        ("greater", 0.10, -0.05, 0.25, "undecided"),
        ("greater", -0.10, -0.15, -0.05, "fails"),
        ("less", -0.10, -0.15, -0.05, "holds"),
        ("less", 0.10, 0.05, 0.15, "fails"),
        ("equal", 0.00, -0.01, 0.01, "holds"),
        ("equal", 0.00, -0.03, 0.03, "undecided"),
        ("equal", 0.10, 0.05, 0.15, "fails"),
        ("different", -0.10, -0.15, -0.05, "holds"),
        ("different", 0.00, -0.01, 0.01, "fails"),
        ("greater", np.nan, np.nan, np.nan, "not run"),
    ],
)
def test_judgements(direction, estimate, low, high, wanted):
    assert judge(claim(direction=direction), estimate, low, high, 322).verdict == wanted


def test_small_and_few_decide_nothing():
    assert judge(claim(), 0.5, 0.4, 0.6, 322, decides=False) == Verdict(
        "undecided", "scale small runs a small data set to show the steps; it claims nothing"
    )
    assert judge(claim(), 0.5, 0.4, 0.6, 8).verdict == "undecided"
    assert (
        judge(claim(direction="equal", smallest_effect=0.0, exact=True), 0.0, 0.0, 0.0, 8).verdict
        == "holds"
    )


@pytest.mark.parametrize(
    ("found", "quorum", "wanted"),
    [
        (["holds", "holds"], "all", "holds"),
        (["holds", "undecided"], "all", "partly"),
        (["holds", "fails"], "all", "partly"),
        (["fails", "undecided"], "all", "fails"),
        (["undecided"], "all", "undecided"),
        (["not run"], "all", "not run"),
        (["holds", "not run"], "all", "partly"),
        (["holds", "holds", "not run"], "all", "holds"),
        (["holds", "holds", "fails"], "most", "holds"),
        (["holds", "fails", "fails"], "most", "fails"),
        (["holds", "fails", "undecided"], "most", "partly"),
        (["fails", "undecided"], "most", "undecided"),
        ([], "all", "not run"),
    ],
)
def test_many_comparisons_make_one_verdict(found, quorum, wanted):
    assert combine([Verdict(v, "") for v in found], quorum).verdict == wanted


def test_a_claim_about_medians_is_tested_on_medians():
    """A few rows with a huge value move a sentence's mean and not its median: the effect is there,
    the mean test blind.
    """
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [
            {
                "dataset": "D_A",
                "scheme": "C",
                "seed": k,
                "method": "LIME",
                "row_id": f"{i}-{form}",
                "sentence_idx": i,
                "RMA": -500.0 if form == 0 else 2 + rng.normal(0, 0.1),
            }
            for i in range(40)
            for form in range(3)
            for k in range(2)
        ]
    )
    about = {
        "table": "t",
        "value": "RMA",
        "left": [{"method": "LIME"}],
        "target": 1.0,
        "smallest_effect": 0.1,
    }

    def verdict(statistic):
        return judge_contrasts(claim(statistic=statistic, **about), {"t": rows}, n_bootstrap=200)[
            "verdict"
        ].tolist()

    assert verdict("median") == ["holds"] and verdict("mean") == ["fails"]


def test_known_effects_get_their_verdicts():
    left, right = [{"method": "strong"}], [{"method": "middle"}]
    assert verdicts(claim(left=left, right=right), scored()) == ["holds"]
    assert verdicts(claim(left=right, right=left), scored()) == ["fails"]
    assert verdicts(claim(left=left, right=right, direction="equal"), scored()) == ["fails"]
    twins = claim(left=right, right=[{"method": "twin"}], direction="equal")
    assert verdicts(twins, scored()) == ["holds"]
    assert verdicts(twins, scored(n_sentences=8)) == ["undecided"]
    assert verdicts(claim(left=left, target=0.55), scored()) == ["holds"]
    assert verdicts(claim(left=left, target=0.65), scored()) == ["fails"]


def test_a_star_stands_for_all_that_the_table_has():
    frame = scored(30, 2)
    about = {"left": [{"method": "strong"}], "right": [{"method": "middle"}]}
    anywhere = claim(over={"scheme": ["*"], "dataset": ["D_A"]}, **about)
    named = claim(over={"scheme": list(frame["scheme"].unique()), "dataset": ["D_A"]}, **about)
    tables = {"explanations": frame}
    found, expected = (judge_contrasts(c, tables, n_bootstrap=50) for c in (anywhere, named))
    assert len(found) > 0 and found.equals(expected)


def test_one_seed_decides_nothing_about_a_trained_model():
    c = claim(left=[{"method": "strong"}], right=[{"method": "middle"}], over={"scheme": ["C"]})
    assert verdicts(c, scored()) == ["holds"] and verdicts(c, scored(n_seeds=1)) == ["undecided"]
    untrained = claim(
        left=[{"method": "strong"}], right=[{"method": "middle"}], over={"scheme": ["ZS"]}
    )
    assert verdicts(untrained, scored(n_seeds=1, schemes=("ZS",)), untrained=["ZS"]) == ["holds"]


def test_no_claim_rests_on_a_model_below_the_first_pronoun_rule():
    c = claim(
        left=[{"method": "strong"}],
        right=[{"method": "middle"}],
        over={"dataset": ["D_A"], "scheme": ["C", "CE"]},
    )
    parts = judge_contrasts(
        c,
        {"explanations": scored(schemes=("C", "CE"))},
        below=[("D_A", "C")],
        below_what="a model below the first-pronoun rule",
        n_bootstrap=200,
    )
    assert parts["verdict"].tolist() == ["not run", "holds"] and "first-pronoun" in parts["why"][0]
    about_models = claim(left=c.left, right=c.right, over=c.over, classifies=True)
    assert verdicts(about_models, scored(schemes=("C", "CE")), below=[("D_A", "C")]) == [
        "holds",
        "holds",
    ]
    row = summarise(c, parts, "paper")
    assert (
        row["verdict"] == "partly"
        and "1 not run" in row["why"]
        and tuple(row)
        == tuple("source quantity paper ours low high n scale verdict why id".split())
    )
    assert row["low"] < row["ours"] < row["high"] and row["n"] == 80


def test_many_comparisons_are_corrected_and_noise_is_not_claimed():
    rng, frame = np.random.default_rng(1), scored(n_sentences=30)
    wild = frame.assign(MA=frame["MA"].mean() + rng.normal(0, 0.05, len(frame)))
    c = claim(
        left=[{"method": "strong"}],
        right=[{"method": "middle"}, {"method": "twin"}],
        smallest_effect=0.0,
    )
    assert "holds" not in verdicts(c, wild)


def per_sentence(*values: float) -> pd.DataFrame:
    return pd.DataFrame({"sentence_idx": range(len(values)), "seed": 0, "difference": values})


@pytest.mark.parametrize(
    ("direction", "differences", "effect", "absence"),
    [
        # t = (2 - 1) sqrt 3 = 1.7321, 2 degrees of freedom: P = 1/2 + t / (2 sqrt 5) = .8873
        ("greater", (1.0, 2.0, 3.0), 0.25, 0.8872983),
        ("less", (-1.0, -2.0, -3.0), 0.25, 0.8872983),
        # t = (-2 - 1) sqrt 3 = -5.1962: P = 1/2 - 5.1962 / (2 sqrt 29) = .0175
        ("greater", (-1.0, -2.0, -3.0), 0.25, 0.0175494),
        ("less", (1.0, 2.0, 3.0), 0.25, 0.0175494),
        # outside of the margin of 1: twice .1127; within: the larger of two one-sided tests
        ("equal", (1.0, 2.0, 3.0), 0.2254033, 0.8872983),
        ("different", (-1.0, -2.0, -3.0), 0.2254033, 0.8872983),
        ("equal", (-1.0, 0.0, 1.0), 1.0, 0.1127017),
        ("less", (2.0, 2.0), 0.0, 0.0),
        ("less", (2.0,), np.nan, np.nan),
    ],
)
def test_p_values_by_hand(direction, differences, effect, absence):
    found = _p_values(claim(direction=direction, smallest_effect=1.0), per_sentence(*differences))
    assert found == pytest.approx((effect, absence), abs=1e-6, nan_ok=True)


def test_a_claim_of_less_is_tested_in_its_own_direction():
    low, high = [{"method": "middle"}], [{"method": "strong"}]
    assert verdicts(claim(left=low, right=high, direction="less"), scored()) == ["holds"]
    assert verdicts(claim(left=high, right=low, direction="less"), scored()) == ["fails"]


@pytest.mark.parametrize(
    ("direction", "estimate", "low", "high", "n", "wanted"),
    [
        ("greater", 0.02, 0.01, 0.03, 20, "holds"),  # the size is reached, 20 sentences are enough
        ("greater", 0.02, 0.01, 0.03, 19, "undecided"),
        ("greater", 0.05, 0.0, 0.1, 322, "undecided"),
        ("greater", 0.01, -0.01, 0.02, 322, "undecided"),
        ("less", -0.02, -0.03, -0.01, 322, "holds"),
        ("less", -0.05, -0.1, 0.0, 322, "undecided"),
        ("less", -0.01, -0.02, 0.01, 322, "undecided"),
        ("less", -0.015, -0.025, -0.005, 322, "undecided"),  # 15 of 20 thousandths are too few
        ("less", -0.005, -0.015, 0.005, 322, "fails"),
        ("equal", 0.0, -0.02, 0.02, 322, "holds"),
        ("equal", 0.03, 0.02, 0.04, 322, "undecided"),
        ("equal", -0.03, -0.04, -0.02, 322, "undecided"),
        ("different", 0.03, 0.02, 0.04, 322, "undecided"),
        ("different", 0.0, -0.02, 0.02, 322, "fails"),
        ("different", 0.1, 0.05, 0.15, 322, "holds"),
        ("greater", 0.1, np.nan, np.nan, 322, "undecided"),
    ],
)
def test_a_bound_that_is_touched(direction, estimate, low, high, n, wanted):
    assert judge(claim(direction=direction), estimate, low, high, n).verdict == wanted


def test_an_identity_without_an_interval_is_not_decided():
    exact = claim(direction="equal", exact=True)
    assert judge(exact, 0.0, np.nan, np.nan, 322).verdict == "undecided"
    assert judge(exact, 0.0, 0.0, 0.0, 1).verdict == "holds"


def test_a_majority_is_more_than_half():
    def verdict(*found: str) -> str:
        return combine([Verdict(v, "") for v in found], "most").verdict

    assert verdict("holds", "holds", "fails", "fails") == "partly"
    assert verdict("holds", "holds", "holds", "fails") == "holds"
    assert verdict("fails", "fails", "undecided", "undecided") == "undecided"
    assert verdict("fails", "fails", "fails", "undecided") == "fails"
    assert verdict("holds", "fails", "fails", "fails") == "fails"
    assert verdict("holds", "holds", "not run", "not run") == "partly"


def test_the_counts_and_reasons_of_many_comparisons():
    found = [Verdict("holds", "x"), Verdict("undecided", "b"), Verdict("undecided", "b")]
    assert combine([*found, Verdict("not run", "a")]) == Verdict(
        "partly", "of 4 comparisons 1 holds, 2 undecided, 1 not run (b; a)"
    )


def test_a_line_of_claims_csv_by_hand():
    found = claim_row(
        claim(direction="less", target=0.25, caveat="so"), Verdict("holds", ""), "cpu"
    )
    assert found["paper"] == "< 0.25" and found["why"] == "so" and found["n"] == 0
    assert np.isnan([found[x] for x in ("ours", "low", "high")]).all()
    assert claim_row(claim(), Verdict("holds", "a"), "cpu", paper=0.0)["paper"] == 0.0
    assert claim_row(claim(), Verdict("holds", "a"), "cpu", quantity="q")["quantity"] == "q"
    parts = pd.DataFrame(
        {"verdict": ["holds", "holds", "holds", "not run"], "why": ""}
        | {"estimate": [1.0, 2.0, 9.0, np.nan], "low": [0.0, 1.0, 8.0, np.nan]}
        | {"high": [2.0, 3.0, 10.0, np.nan], "n": [30, 40, 20, 0]}
    )
    many, one = summarise(claim(), parts, "cpu"), summarise(claim(), parts[:1], "cpu")
    assert (many["ours"], many["low"], many["high"], many["n"]) == (2.0, 1.0, 9.0, 40)
    assert (one["ours"], one["low"], one["high"], one["n"]) == (1.0, 0.0, 2.0, 30)
    nothing = summarise(claim(), parts[3:], "cpu")
    assert nothing["verdict"] == "not run" and np.isnan(nothing["ours"])


def test_the_line_of_a_comparison():
    c = claim(left=[{"method": "strong"}], right=[{"method": "middle"}], over={"scheme": ["C"]})
    part = judge_contrasts(c, {"explanations": scored(30, 2)}, n_bootstrap=50).iloc[0]
    assert part["comparison"] == "C: strong - middle"
    assert (part["id"], part["n"], part["n_seeds"]) == ("c", 30, 2)
    assert part["estimate"] == pytest.approx(0.2, abs=0.02) and part["p_effect"] < 1e-6
    alone = claim(left=[{"method": "strong"}], target=0.5, over={"scheme": ["C"]})
    part = judge_contrasts(alone, {"explanations": scored(30, 2)}, n_bootstrap=50).iloc[0]
    assert part["comparison"] == "C strong" and part["estimate"] == pytest.approx(0.1, abs=0.05)


@pytest.mark.parametrize(
    ("change", "about", "wanted"),
    [
        ({}, {}, "holds"),
        ({"p_effect": 0.05}, {}, "undecided"),  # not below the level
        ({"n_seeds": 1}, {}, "undecided"),
        ({"n_seeds": 1}, {"exact": True}, "holds"),
        ({"n_seeds": 1, "models": [("D_A", "-")]}, {}, "holds"),
        ({"n_seeds": 1, "models": [("D_A", "-"), ("D_A", "C")]}, {}, "undecided"),
        ({"p_effect": 0.9}, {"direction": "equal"}, "holds"),  # there the other p decides
        ({"p_absence": 0.9}, {"direction": "equal"}, "undecided"),
    ],
)
def test_a_verdict_stands_after_the_tests(change, about, wanted):
    part = {"models": [("D_A", "C")], "n_seeds": 2, "p_effect": 0.01, "p_absence": 0.01} | change
    found = _after_tests(claim(**about), part, Verdict("holds", ""), 0.05, ["-"])
    assert found.verdict == wanted


def test_failing_needs_the_test_of_absence():
    part = {"models": [("D_A", "C")], "n_seeds": 2, "p_effect": 0.01, "p_absence": 0.9}
    fails = Verdict("fails", "")
    assert _after_tests(claim(), part, fails, 0.05, ["-"]).verdict == "undecided"
    assert _after_tests(claim(direction="equal"), part, fails, 0.05, ["-"]) == fails


def test_one_model_that_no_claim_may_rest_on_is_enough():
    """C against CE, where C is below the rule, and twice CE."""
    c = claim(
        left=[{"scheme": "C", "method": "strong"}, {"scheme": "CE", "method": "strong"}],
        right=[{"scheme": "CE", "method": "middle"}],
        over={"dataset": ["D_A"]},
    )
    frame = scored(30, 2, schemes=("C", "CE"))
    assert verdicts(c, frame, below=[("D_A", "C")]) == ["not run", "holds"]


def test_true_and_one_select_the_same_rows():
    frame = scored(30, 2)
    frame = frame.assign(is_correct=frame["sentence_idx"] < 25)
    for value in (True, 1):
        c = claim(left=[{"method": "strong", "is_correct": value}], target=0.5)
        part = judge_contrasts(c, {"explanations": frame}, n_bootstrap=50).iloc[0]
        assert (part["n"], part["n_seeds"]) == (25, 2)


def test_the_defaults_are_said():
    """A claim is of means, against 0, of all comparisons, unless it says otherwise."""
    silent = claim()
    assert (silent.statistic, silent.target, silent.quorum) == ("mean", 0, "all")
    assert (silent.exact, silent.numbers, silent.classifies) == (False, False, False)
    c = claim(left=[{"method": "strong"}], right=[{"method": "middle"}])
    said = {"n_bootstrap": 1000, "alpha": 0.05, "seed": 0}
    pd.testing.assert_frame_equal(
        judge_contrasts(c, {"explanations": scored(30, 2)}),
        judge_contrasts(c, {"explanations": scored(30, 2)}, **said),
        check_exact=True,
    )


@pytest.mark.parametrize(
    "about, says",
    [
        ({"smallest_effect": "a bit"}, "smallest_effect is 'a bit'; write a number"),
        ({"smallest_effect": float("nan")}, "smallest_effect is nan; write a number"),
        ({"smallest_effect": -0.1}, "smallest_effect is -0.1; write its size"),
        ({"smallest_effect": True}, "write a number"),
        ({"statistic": "meen"}, "statistic 'meen' is not one of mean, median"),
        ({"exact": "no"}, "exact is 'no'; write true or false"),
        ({"left": "LIME"}, "left is 'LIME'; write a list"),
        ({"left": ["LIME"]}, "write a list of {column: value}"),
        ({"over": {"method": "LIME"}}, r"write \{column: \[value, value\]\}"),
        ({"target": None}, "target is None; write a number"),
        ({"table": 3}, "table is 3; write text"),
    ],
)
def test_a_field_of_another_type_is_refused(about: dict[str, object], says: str) -> None:
    with pytest.raises(TouchstoneError, match=says):
        claim(**about)


@pytest.mark.parametrize(
    "text, says",
    [
        ("", r"claims.yaml must hold a list of `- ...` items"),
        ("id: x\n", "must hold a list"),
        ("- nonsense\n", "entry 1 is 'nonsense'; write a claim's"),
        ("- [1", "not readable as YAML"),
        ("- {id: a, id: b}\n", "'id' is set twice"),
        ("- {id: a, 3: b}\n", "claim a: unknown field '3'"),
        ("- !!python/object:os.system {}\n", "not readable as YAML"),
    ],
)
def test_a_file_that_holds_no_claims_is_named(tmp_path, text: str, says: str) -> None:
    (tmp_path / "claims.yaml").write_text(text)
    with pytest.raises(TouchstoneError, match=says):
        read_claims(tmp_path / "claims.yaml")
