"""The measures by hand values, at extremes, under changes that must not matter, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from lib.core.errors import TouchstoneError
from lib.metrics import (
    METRICS,
    add_relative,
    average_precision,
    by_correctness,
    chance_normalised_mass_accuracy,
    form_differences,
    mask_recall,
    mass_accuracy,
    piece_counts,
    precision_at_specificity,
    relative_floors,
    relative_mass_accuracy,
    roc_auc,
    score_explanations,
    select_rows,
    top_k_precision,
    truth_share,
    without_verbs,
)

SCORES, MASK = [0.4, -0.3, 0.2, 0.1, 0.0], [1, 0, 1, 0, 0]


def sentences(n: int = 60, ties: bool = True) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(3)
    made = []
    while len(made) < n:
        width = rng.integers(3, 25)
        mask = (rng.random(width) < 0.3).astype(int)
        scores = rng.integers(-4, 5, width).astype(float) if ties else rng.normal(size=width)
        if 0 < mask.sum() < width and scores.any():
            made.append((scores, mask))
    return made


def test_hand_values():
    assert mass_accuracy(SCORES, MASK) == pytest.approx(0.6)
    assert mask_recall(SCORES, MASK) == 0.5  # the average is .2, and .2 does not exceed it
    assert roc_auc(SCORES, MASK) == pytest.approx(
        5 / 6
    )  # of six pairs only (.2, .3) is the wrong way round
    assert average_precision(SCORES, MASK) == pytest.approx((1 + 2 / 3) / 2)
    assert top_k_precision(SCORES, MASK) == 0.5
    assert precision_at_specificity(SCORES, MASK) == pytest.approx(
        2 / 3
    )  # down to .2: one false alarm of three
    assert precision_at_specificity(SCORES, MASK, specificity=0.9) == 1.0


def test_the_paper_s_worked_example():
    assert mass_accuracy([0.9, 0, 0, 0.1], [1, 1, 0, 0]) == pytest.approx(0.9)


def test_equal_scores_are_not_above_their_average():
    assert all(mask_recall([0.1] * n, [1] * n) == 0.0 for n in range(1, 40))


@pytest.mark.parametrize("name", METRICS)
def test_extremes(name):
    perfect, opposite, mask = [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [1, 1, 0, 0]
    assert METRICS[name](perfect, mask) == 1.0
    assert METRICS[name](opposite, mask) == (0.5 if name == "average_precision" else 0.0)
    assert np.isnan(METRICS[name](perfect, [0, 0, 0, 0]))


def test_undefined_where_there_is_nothing_to_measure():
    assert np.isnan(mass_accuracy([0, 0], [1, 0]))
    assert np.isnan(roc_auc([1, 2], [1, 1])) and np.isnan(precision_at_specificity([1, 2], [1, 1]))
    assert np.isnan(chance_normalised_mass_accuracy(1.0, 1.0))
    assert (
        precision_at_specificity([1, 1, 1], [1, 0, 0]) == 0.0
    )  # all tie: no threshold is specific


@pytest.mark.parametrize("name", METRICS)
def test_order_sign_and_scale_do_not_matter(name):
    rng = np.random.default_rng(0)
    for scores, mask in sentences():
        value, order = METRICS[name](scores, mask), rng.permutation(len(mask))
        assert METRICS[name](scores[order], mask[order]) == pytest.approx(value, nan_ok=True)
        assert METRICS[name](-7.0 * scores, mask) == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize("name", METRICS)
def test_padding_and_stacking_do_not_matter(name):
    rows = sentences()
    width = max(len(m) for _, m in rows) + 3
    scores = np.array([np.pad(s, (0, width - len(s)), constant_values=np.nan) for s, _ in rows])
    mask = np.array([np.pad(m, (0, width - len(m))) for _, m in rows])
    assert METRICS[name](scores, mask) == pytest.approx(
        np.array([METRICS[name](s, m) for s, m in rows]), nan_ok=True
    )


@pytest.mark.parametrize("ties", [True, False])
def test_the_same_as_scikit_learn(ties):
    for scores, mask in sentences(ties=ties):
        size = np.abs(scores)
        assert roc_auc(scores, mask) == pytest.approx(roc_auc_score(mask, size))
        assert average_precision(scores, mask) == pytest.approx(average_precision_score(mask, size))
        precision, _, thresholds = precision_recall_curve(mask, size)
        false_alarms, _, at = roc_curve(mask, size, drop_intermediate=False)
        specific = {t: 1 - f for t, f in zip(at, false_alarms)}
        wanted = [p for p, t in zip(precision, thresholds) if specific[t] > 0.5]
        assert precision_at_specificity(scores, mask) == pytest.approx(wanted[0] if wanted else 0.0)


def test_top_k_with_ties_is_the_mean_over_random_picks():
    rng = np.random.default_rng(1)
    scores, mask = np.array([3.0, 2.0, 2.0, 2.0, 1.0]), np.array([1, 1, 0, 0, 1])
    picks = [mask[np.lexsort((rng.random(5), -scores))[:3]].mean() for _ in range(4000)]
    assert top_k_precision(scores, mask) == pytest.approx(np.mean(picks), abs=0.01)
    assert top_k_precision(scores, mask) == pytest.approx((1 + 2 / 3) / 3)


def test_noise_has_the_share_as_its_mass_accuracy_and_nothing_after_normalisation():
    rng = np.random.default_rng(2)
    mask = np.tile([1, 0, 0, 0, 1, 0], (4000, 1))
    mass = mass_accuracy(rng.random(mask.shape), mask)
    assert mass.mean() == pytest.approx(2 / 6, abs=0.01)
    assert chance_normalised_mass_accuracy(mass, truth_share(mask)).mean() == pytest.approx(
        0, abs=0.01
    )


def test_share_of_words_and_of_tokens():
    assert truth_share([1, 0, 0, 0]) == 0.25
    assert truth_share([1, 0, 0, 0], [3, 1, 1, 1]) == 0.5
    assert truth_share(np.array([1, 0, np.nan])) == 0.5


def test_relative_mass_accuracy_is_a_plain_ratio():
    ratio = relative_mass_accuracy(
        np.array([0.2, 0.4, 0.4, 0.4]), np.array([0.4, 0.4, 0.0, np.nan])
    )
    assert ratio[:2] == pytest.approx([0.5, 1.0]) and np.isnan(ratio[2:]).all()


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


def explanations(scores: list[float], **about: object) -> pd.DataFrame:
    base = {
        "dataset": "D_A",
        "scheme": "C",
        "seed": 0,
        "method": "LIME",
        "row_id": "0-F",
        "sentence_idx": 0,
        "target": 0,
    }
    return pd.DataFrame([{**base, **about, "scores": scores}])


ROWS = pd.DataFrame(
    [
        {"dataset": "D_A", "row_id": f"0-{c}", "ground_truth": [1, 0], "token_counts": [3, 1]}
        for c in ("F", "M")
    ]
)


def test_one_table_with_every_measure():
    scored = score_explanations(explanations([3.0, 1.0]), ROWS)
    assert set(METRICS) < set(scored.columns) and scored["share_of"].item() == "tokens"
    assert scored["MA"].item() == 0.75 and scored["share"].item() == 0.75
    assert scored["MA_chance_normalised"].item() == 0.0
    by_words = score_explanations(explanations([3.0, 1.0]), ROWS.drop(columns="token_counts"))
    assert by_words["share"].item() == 0.5 and by_words["share_of"].item() == "words"


@pytest.mark.parametrize(
    ("scores", "about", "message"),
    [
        ([1.0, 2.0], {"row_id": "9-F"}, "row 9-F .* belongs to no row"),
        ([1.0], {}, "row 0-F .* 1 scores for 2 words"),
        ([1.0, np.nan], {}, "row 0-F .* not finite"),
    ],
)
def test_what_cannot_be_scored_is_named(scores, about, message):
    with pytest.raises(TouchstoneError, match=message):
        score_explanations(explanations(scores, **about), ROWS)


def test_row_sets():
    scored = pd.DataFrame(
        [
            {
                "dataset": "D_A",
                "scheme": s,
                "seed": k,
                "method": m,
                "row_id": f"{i}-{c}",
                "sentence_idx": i,
            }
            for s, k, m in (("C", 0, "LIME"), ("CE", 0, "LIME"), ("-", -1, "First pronoun"))
            for i in (0, 1)
            for c in "FM"
        ]
    )
    predictions = pd.DataFrame(
        [
            {
                "dataset": "D_A",
                "scheme": s,
                "seed": 0,
                "row_id": f"{i}-{c}",
                "sentence_idx": i,
                "target": t,
                "predicted": 0 if (s, i, t) == ("CE", 1, 1) else t,
            }
            for s in ("C", "CE")
            for i in (0, 1)
            for t, c in enumerate("FM")
        ]
    )
    assert len(select_rows(scored, predictions, "all")) == 12
    own = select_rows(scored, predictions, "correct_by_model")
    assert own.groupby("scheme").size().to_dict() == {"-": 4, "C": 4, "CE": 3}
    elsewhere = scored[scored["scheme"] == "C"].assign(scheme="mine")
    assert len(select_rows(elsewhere, predictions, "correct_by_model")) == len(
        elsewhere
    )  # nobody said where that model is right
    everyone = select_rows(scored, predictions, "correct_by_all")
    assert everyone.groupby("scheme").size().to_dict() == {"-": 2, "C": 2, "CE": 2}
    with pytest.raises(TouchstoneError, match="correct_by_all"):
        select_rows(scored, predictions, "right")


def test_relative_to_the_same_row_of_the_untrained_model():
    scored = pd.DataFrame(
        [
            {"dataset": "D_A", "scheme": s, "seed": k, "method": "LIME", "row_id": r, "MA": ma}
            for s, k, r, ma in (
                ("ZS", 0, "a", 0.2),
                ("ZS", 0, "b", 0.0),
                ("C", 0, "a", 0.6),
                ("C", 1, "a", 0.1),
                ("C", 0, "b", 0.3),
            )
        ]
    )
    relative = add_relative(scored)
    assert relative["RMA"].tolist()[2:4] == pytest.approx([3.0, 0.5]) and np.isnan(
        relative["RMA"].iloc[4]
    )
    assert relative["RMA"].iloc[0] == 1.0


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


def test_a_floor_beside_relative_mass_accuracy():
    scored = pd.DataFrame(
        [
            {"dataset": "D_A", "scheme": s, "method": m, "row_id": r, "MA": ma}
            for s, m, r, ma in (
                ("ZS", "LIME", "a", 0.2),
                ("ZS", "LIME", "b", 0.4),
                ("ZS", "LIME", "c", 0.0),
                ("-", "First pronoun", "a", 1.0),
                ("-", "First pronoun", "b", 0.8),
                ("-", "First pronoun", "c", 1.0),
            )
        ]
    )
    assert relative_floors(scored, "First pronoun").to_dict("records") == [
        {"dataset": "D_A", "method": "LIME", "RMA": pytest.approx((5.0 + 2.0) / 2)}
    ]


def test_right_and_wrong_rows_of_a_sentence_are_kept_apart():
    about = {"dataset": "D_A", "scheme": "C", "seed": 0, "method": "LIME", "sentence_idx": 7}
    scored = pd.DataFrame(
        [{**about, "row_id": f"7-{c}", "MA": ma} for c, ma in (("F", 0.2), ("M", 0.4), ("NB", 0.9))]
    )
    predictions = pd.DataFrame(
        [
            {**about, "row_id": f"7-{c}", "target": t, "predicted": p}
            for c, t, p in (("F", 0, 0), ("M", 1, 1), ("NB", 2, 0))
        ]
    )
    found = by_correctness(scored, predictions).set_index("is_correct")["MA"]
    assert found[True] == pytest.approx(0.3) and found[False] == pytest.approx(0.9)


def test_sub_words_are_counted_word_by_word():
    class Pieces:
        """A tokenizer that cuts words into pieces of two letters."""

        def __call__(self, words, is_split_into_words, add_special_tokens):
            assert is_split_into_words and not add_special_tokens
            self.found = [i for i, word in enumerate(words) for _ in range(0, len(word.strip()), 2)]
            return self

        def word_ids(self):
            return self.found

    assert piece_counts([["she", "is", " "], ["benchmark"]], Pieces()) == [[2, 1, 0], [5]]
