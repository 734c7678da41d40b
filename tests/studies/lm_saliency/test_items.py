"""Numbers of lines and pairs: what stage 04 gets in place of scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.metrics.plausibility import input_consistency, model_consistency, plausibility
from lib.stats import judge_contrasts, read_claims
from lib.studies.lm_saliency.items import (
    SHUFFLED,
    agreement_items,
    beside_cut,
    beside_unbalanced,
    by_depth,
    check_saliency,
    line_items,
    lines_to_show,
    long_items,
    long_lines,
    pair_items,
    with_lines,
    with_shuffled,
)

ABOUT = {"dataset": "Syneval", "architecture": "LSTM", "size": "full", "training": 0}


@pytest.fixture
def sets() -> dict[str, pd.DataFrame]:
    words = [
        "the key near the cats",
        "the keys near the cat",
        "the cat by the keys",
        "the cats by it",
    ]
    return {
        "Syneval": pd.DataFrame(
            {
                "prefix": [text.split() for text in words],
                "tag": [0, 1, 0, 1],
                "cues": [[(1, 1)]] * 4,
                "attractors": [[(4, 4)], [(4, 4)], [(4, 4)], [(3, 3)]],
                "pattern": ["a", "b", "a", "b"],
                "cluster": list("wxyz"),
            }
        )
    }


def explained(sets: dict[str, pd.DataFrame], size: str = "full", seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    lengths = sets["Syneval"]["prefix"].map(len)
    rows = [
        ABOUT
        | {"size": size, "method": method, "line": line, "probability": [0.2, 0.9, 0.7, 0.4][line]}
        | {side: rng.normal(size=n).tolist() for side in ("class_0", "class_1")}
        for method in ("V", "IG")
        for line, n in lengths.items()
    ]
    return pd.DataFrame(rows)


def test_digits_say_what_passes_under_either_answer(sets: dict[str, pd.DataFrame]) -> None:
    saliency = explained(sets)
    found = long_lines(line_items(saliency, sets), ABOUT)
    for answer, column in ((saliency["probability"], "passed"), (None, "passed_other")):
        table = saliency if answer is not None else turned(saliency)
        expected = plausibility(table, sets)["passed"]
        assert found[column].tolist() == expected.tolist()
    assert found["probability"].tolist() == saliency["probability"].tolist()
    assert {"dataset", "training", "method", "line"} <= set(found)


def turned(saliency: pd.DataFrame) -> pd.DataFrame:
    return saliency.assign(probability=1 - saliency["probability"])


def test_pairs_and_agreement_are_those_of_the_metrics(sets: dict[str, pd.DataFrame]) -> None:
    saliency, student = explained(sets), explained(sets, "student", 1)
    pairs = long_items(pair_items(saliency, sets, "paper"), ABOUT | {"grouping": "paper"})
    direct = input_consistency(saliency, sets)
    for name in ("method", "line", "same_length", "verum", "malum"):
        assert pairs[name].tolist() == direct[name].tolist()
    alike = long_items(agreement_items(saliency, student, sets), ABOUT)
    both = model_consistency(pd.concat([saliency, student]), sets)
    assert alike[["verum", "malum"]].to_numpy() == pytest.approx(
        both[["verum", "malum"]].to_numpy()
    )


def test_shuffled_scores_are_the_same_scores(sets: dict[str, pd.DataFrame]) -> None:
    saliency = explained(sets)
    more = with_shuffled(saliency, seed=0)
    shuffled, plain = (more[more["method"] == name] for name in (SHUFFLED, "IG"))
    for side in ("class_0", "class_1"):
        assert shuffled[side].map(sorted).tolist() == plain[side].map(sorted).tolist()
        assert shuffled[side].tolist() != plain[side].tolist()
    assert with_shuffled(explained(sets, "student"), 0)["method"].nunique() == 2


def test_scores_that_are_no_numbers_are_refused(sets: dict[str, pd.DataFrame]) -> None:
    check_saliency(saliency := explained(sets))
    moved = saliency.assign(probability=saliency["probability"] + (saliency["method"] == "V") / 9)
    broken = saliency.copy()
    broken.at[0, "class_1"] = [float("nan")] * 5
    for wrong in (moved, broken):
        with pytest.raises(TouchstoneError, match="Syneval.*delete this unit"):
            check_saliency(wrong)


def test_lines_are_shown_by_their_words_and_known_by_their_number(
    sets: dict[str, pd.DataFrame],
) -> None:
    assert lines_to_show(sets, ["Syneval"]) == {"Syneval": [0, 1]}
    table = pd.DataFrame({"dataset": "Syneval", "line": [3, 0]})
    assert with_lines(table, sets)[["tag", "cluster"]].to_numpy().tolist() == [[1, "z"], [0, "w"]]


def test_a_line_is_compared_with_what_a_cut_left_of_it() -> None:
    cut = pd.DataFrame([ABOUT | {"method": "IG", "line": line} for line in (0, 1)])
    cut = cut.assign(passed=[True, False])
    whole = pd.concat([cut, cut.tail(1).assign(line=2)], ignore_index=True)  # of the third, nothing
    whole = whole.assign(dataset="Syneval whole", passed=[False, False, True])
    found = beside_cut(whole, cut)
    assert set(found["dataset"]) == {"Syneval"} and found["line"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found["passed_cut"], [1.0, 0.0, np.nan])
    np.testing.assert_array_equal(found["difference"], [-1.0, 0.0, np.nan])


def test_two_probes_are_compared_on_the_same_line_of_the_same_model() -> None:
    one = ABOUT | {"method": "IG", "dataset": "Winobias"}
    rows = [one | {"training": i, "line": line} for i in (6, 7) for line in (0, 1)]
    before = pd.DataFrame(rows).assign(passed=[True, False, True, True])
    before["probability"] = [0.2, 0.6, 0.1, 0.9]
    even = before.assign(dataset="Winobias balanced", passed=[True, True, False, True])
    even["probability"] = [0.7, 0.8, 0.4, 0.3]
    found = beside_unbalanced(pd.concat([before, even], ignore_index=True))
    assert set(found["dataset"]) == {"Winobias"}
    assert found["difference"].tolist() == [0.0, 1.0, -1.0, 0.0]
    assert found["she"].tolist() == [True, True, False, False]
    assert found["she_unbalanced"].tolist() == [False, True, False, True]
    none = beside_unbalanced(before.head(0))
    assert none.empty and list(none) == list(found)


def test_the_settings_of_a_depth_are_its_trainings_and_all_must_have_learnt_the_set() -> None:
    sizes = ["8l_384w_1h", "8l_384w_2h", "2l_384w_2h", "2l_384w_1h"]
    configurations = pd.DataFrame({"size": sizes, "layers": [8, 8, 2, 2]})
    passes = pd.DataFrame(
        {
            "dataset": name,
            "scheme": "Transformer",
            "size": size,
            "method": "IG",
            "row_id": line,
            "sentence_idx": line,
            "seed": 0,
            "passed": float(size.startswith("8l") and line > 0),
        }
        for name in ("Syneval", "EWT")
        for size in [*sizes, "full"]
        for line in range(3)
    )
    is_learnt = {
        (name, "Transformer", size): (name, size) != ("EWT", "2l_384w_1h")
        for name in ("Syneval", "EWT")
        for size in sizes
    }
    found = by_depth(passes, configurations, is_learnt)
    assert set(zip(found["dataset"], found["layers"])) == {
        ("Syneval", 8),
        ("Syneval", 2),
        ("EWT", 8),
    }
    assert found.groupby("size")["seed"].unique().map(list).to_dict() == {
        "8l_384w_1h": [0],
        "8l_384w_2h": [1],
        "2l_384w_2h": [1],
        "2l_384w_1h": [0],
    }
    claims = {claim.id: claim for claim in read_claims(material("lm_saliency") / "claims.yaml")}
    deep = judge_contrasts(claims["ig_better_on_deep_models"], {"sweep": found})
    assert deep["n_seeds"].tolist()[0] == 2 and deep["estimate"][0] == pytest.approx(2 / 3)
    assert deep["verdict"].tolist() == ["undecided", "not run"]  # three base sentences; EWT
    assert by_depth(passes.head(0), configurations, is_learnt).empty
