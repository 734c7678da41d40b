"""The measures by hand, at extremes, under changes that must not matter, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from lib.metrics import (
    METRICS,
    average_precision,
    chance_normalised_mass_accuracy,
    mask_recall,
    mass_accuracy,
    precision_at_specificity,
    relative_mass_accuracy,
    roc_auc,
    top_k_precision,
    truth_share,
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
    assert mask_recall([0.0, 0.0], [1, 0]) == 0


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


@pytest.mark.parametrize("name", METRICS)
def test_sentences_may_lie_along_several_axes(name):
    draw = np.random.default_rng(5)
    scores, mask = draw.integers(-2, 3, (3, 2, 4)).astype(float), draw.random((3, 2, 4)) < 0.5
    one_by_one = [[METRICS[name](s, m) for s, m in zip(*pair)] for pair in zip(scores, mask)]
    np.testing.assert_allclose(METRICS[name](scores, mask), one_by_one)


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
