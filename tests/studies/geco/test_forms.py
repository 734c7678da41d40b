"""The forms of a sentence are aligned word by word; what cannot be aligned has no truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_tables import explanations, predictions

from lib.metrics import mass_accuracy
from lib.studies.geco.forms import form_differences, pair_forms, summarise_forms, without_verbs


def forms(words: dict[str, list[str]], mask: list[int], idx: int = 0) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "row_id": f"{idx}-{c}",
                "sentence_idx": idx,
                "target": "F M NB".split().index(c),
                "sentence": s,
                "ground_truth": mask,
            }
            for c, s in words.items()
        ]
    )


ROWS = pd.DataFrame(
    [
        {"dataset": "D_A", "row_id": f"0-{c}", "ground_truth": [1, 0], "token_counts": [3, 1]}
        for c in ("F", "M")
    ]
)


def test_verbs_leave_the_mask_and_case_is_no_difference():
    rows = forms(
        {
            "F": ["She", "sings", "Her", "x"],
            "M": ["He", "sings", "his", "X"],
            "NB": ["They", "sing", "their", "x"],
        },
        [1, 1, 1, 1],
    )
    assert without_verbs(rows) == [[1, 0, 1, 0]] * 3


def test_rows_that_cannot_be_aligned_have_no_truth_left():
    missing = forms({"F": ["She", "sings"], "NB": ["They", "sing"]}, [1, 1])
    assert without_verbs(missing) == [[0, 0]] * 2
    longer = pd.concat(
        [forms({"F": ["She"]}, [1]), forms({"M": ["He", "sings"], "NB": ["They", "sing"]}, [1, 1])]
    )
    assert without_verbs(longer) == [[0], [0, 0], [0, 0]]
    assert np.isnan(mass_accuracy([0.5, 0.5], without_verbs(missing)[0]))


def test_form_differences_by_hand():
    made = pd.concat(
        [
            explanations([3.0, 1.0], row_id="0-F", target=0),
            explanations([-1.0, 1.0], row_id="0-M", target=1),
            explanations([1.0, 1.0], row_id="0-F", target=0, method="Saliency"),
            explanations([1.0, 1.0, 1.0], row_id="0-M", target=1, method="Saliency"),
        ]
    )
    found = form_differences(made, ROWS)
    assert found["method"].tolist() == [
        "LIME"
    ]  # the other pair differs in length and cannot be aligned
    assert found[["truth_words", "other_words", "all_words", "absolute"]].iloc[0].tolist() == [
        0.25,
        -0.25,
        0.0,
        0.25,
    ]


def test_sentences_of_unequal_length_are_compared_together():
    """Four words: shares of 1/4 each against 1/2, 0, 1/4, 1/4; truth is the first word alone."""
    made = pd.concat(
        [
            explanations([1.0, 1.0, 1.0, 1.0], row_id="1-F", sentence_idx=1, target=0),
            explanations([2.0, 0.0, -1.0, 1.0], row_id="1-M", sentence_idx=1, target=1),
            explanations([3.0, 1.0], row_id="0-F", target=0),
            explanations([-1.0, 1.0], row_id="0-M", target=1),
        ]
    )
    rows = pd.concat([ROWS, ROWS.assign(row_id=["1-F", "1-M"], ground_truth=[[1, 0, 0, 0]] * 2)])
    found = form_differences(made, rows)
    columns = ["truth_words", "other_words", "all_words", "absolute"]
    assert found[columns].values.tolist() == [
        [-0.25, pytest.approx(0.25 / 3), 0.0, 0.25],
        [0.25, -0.25, 0.0, 0.25],
    ]
    assert found["row_id"].tolist() == ["1", "0"] and found.index.tolist() == [0, 1]
    assert list(found) == (
        ["dataset", "scheme", "seed", "method", "sentence_idx", *columns, "row_id"]
    )


def test_a_silent_form_beside_another_leaves_the_other_sentence_alone():
    made = pd.concat(
        [
            explanations([0.0, 0.0], row_id="0-F", target=0),
            explanations([1.0, 3.0], row_id="0-M", target=1),
        ]
    )
    assert form_differences(made, ROWS)[["truth_words", "all_words"]].isna().all(axis=None)


def test_form_differences_of_equal_forms_are_zero_and_of_nothing_undefined():
    same = pd.concat(
        [explanations([3.0, 1.0], row_id=f"0-{c}", target=t) for t, c in enumerate("FM")]
    )
    assert form_differences(same, ROWS)["truth_words"].tolist() == [0.0]
    assert form_differences(same[same["target"] == 0], ROWS).empty
    silent = pd.concat(
        [explanations([0.0, 0.0], row_id=f"0-{c}", target=t) for t, c in enumerate("FM")]
    )
    assert (
        form_differences(silent, ROWS)[["truth_words", "all_words", "absolute"]]
        .isna()
        .all(axis=None)
    )


def test_the_two_forms_of_a_sentence_are_paired():
    pairs = pair_forms(predictions())
    assert len(pairs) == 2 * 2 * 30
    one = (
        predictions()
        .query("dataset == 'D_A' and seed == 1 and sentence_idx == 7")
        .set_index("target")
    )
    mine = pairs.query("dataset == 'D_A' and seed == 1 and sentence_idx == 7").iloc[0]
    assert mine["percent"] == pytest.approx(100 * (one.loc[0, "p_F"] - one.loc[1, "p_M"]))
    assert mine["absolute_difference"] == pytest.approx(abs(mine["percent"]) / 100)
    assert (
        mine["male_minus_female"]
        == (one.loc[1, "predicted"] == 1) * 1.0 - (one.loc[0, "predicted"] == 0) * 1.0
    )


def test_the_form_that_is_right_alone_by_hand():
    """Four sentences: both right, the male form alone, the female form alone, neither."""
    rows = predictions().query("dataset == 'D_A' and seed == 0 and sentence_idx < 4 and target < 2")
    rows = rows.assign(predicted=[0, 1, 1, 1, 0, 0, 1, 0])
    assert pair_forms(rows)["male_minus_female"].tolist() == [0, 1, -1, 0]


def test_form_differences_are_summarised_for_all_words_truth_and_others():
    rng = np.random.default_rng(2)
    aligned = pd.DataFrame(
        [
            {
                "dataset": "D_A",
                "scheme": "C",
                "seed": 0,
                "method": "LIME",
                "sentence_idx": i,
                "truth_words": 0.1 + rng.normal(0, 0.01),
                "other_words": -0.02,
                "all_words": 0.0,
                "absolute": 0.1,
            }
            for i in range(30)
        ]
    )
    groups = pd.DataFrame({"dataset": "D_A", "scheme": ["C", "CE"], "method": "LIME"})
    table = summarise_forms(aligned, groups, n_bootstrap=200)
    assert len(table) == 8 and table["words"].tolist() == ["all", "truth", "other", "absolute"] * 2
    assert table["difference"][1] == pytest.approx(0.1, abs=0.01) and table["p_holm"][1] < 1e-6
    assert table["difference"][4:].isna().all() and (table["n"][4:] == 0).all()
