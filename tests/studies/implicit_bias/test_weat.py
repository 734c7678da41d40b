"""The association test against a second route, its symmetries, and lists that cannot be tested."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from lib.core.errors import TouchstoneError
from lib.studies.implicit_bias import weat as weat_module
from lib.studies.implicit_bias.weat import association, check_lists, weat


def test_association_and_effect_size_against_another_route() -> None:
    rng = np.random.default_rng(0)
    x, y, a, b = (rng.normal(size=(n, 5)) for n in (4, 4, 3, 2))
    values = [
        np.mean([1 - cosine(w, v) for v in a]) - np.mean([1 - cosine(w, v) for v in b])
        for w in [*x, *y]
    ]
    np.testing.assert_allclose(association(np.concatenate([x, y]), a, b), values)
    found = weat(x, y, a, b, ddof=0)
    assert found.s == pytest.approx(sum(values[:4]) - sum(values[4:]))
    assert (
        found.d == pytest.approx((np.mean(values[:4]) - np.mean(values[4:])) / np.std(values))
        and abs(found.d) <= 2
    )
    larger = [
        2 * sum(values[i] for i in part) - sum(values) > found.s + 1e-12
        for part in combinations(range(8), 4)
    ]
    assert found.n_partitions == len(larger) == 70 and found.p == pytest.approx(np.mean(larger))


def test_symmetries_of_the_test_and_the_number_of_partitions() -> None:
    rng = np.random.default_rng(1)
    x, y, a, b = (rng.normal(size=(8, 6)) for _ in range(4))
    there, swapped = weat(x, y, a, b), weat(x, y, b, a)
    assert there.n_partitions == 12_870 and there.is_exact
    assert swapped.d == pytest.approx(-there.d) and weat(y, x, a, b).d == pytest.approx(-there.d)
    assert there.p + swapped.p == pytest.approx(
        1 - 1 / 12_870, abs=2e-4
    )  # strictly larger, strictly smaller, and the one itself
    many = weat(*(rng.normal(size=(12, 6)) for _ in range(2)), a, b, seed=3)
    assert not many.is_exact and 0 < many.p <= 1


def test_unusable_vectors_are_refused() -> None:
    ones = np.ones((2, 3))
    with pytest.raises(TouchstoneError, match="X has 2 words and Y has 1"):
        weat(ones, ones[:1], ones, ones)
    with pytest.raises(TouchstoneError, match="a word list is empty"):
        association(ones, ones[:0], ones)


def around(*cosines: float) -> np.ndarray:
    return np.array([[c, np.sqrt(1 - c * c)] for c in cosines])


A, B = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]])  # the association is twice the cosine


def test_the_sampled_p_counts_the_observed_split() -> None:
    """Eleven words a side, the best split there is: none of 20,000 is larger, so p = 1 / 20,001."""
    x, y = around(*np.linspace(0.5, 0.9, 11)), around(*np.linspace(-0.9, -0.5, 11))
    found = weat(x, y, A, B)
    assert found.p == 1 / 20_001 and (found.n_partitions, found.is_exact) == (20_000, False)
    assert found.s == pytest.approx(2 * 11 * 1.4)
    worst = weat(y, x, A, B)
    assert worst.p == 1 and worst.s == pytest.approx(-2 * 11 * 1.4)  # every split beats it


def test_up_to_the_limit_splits_are_enumerated_and_beyond_it_drawn(monkeypatch) -> None:
    x, y = around(0.9, 0.1, 0.3, 0.2), around(0.4, -0.5, 0.6, 0.05)
    monkeypatch.setattr(weat_module, "_EXACT", 70)  # 8 over 4
    exact = weat(x, y, A, B)
    assert exact.is_exact and exact.n_partitions == 70 and 0.2 < exact.p < 0.8
    monkeypatch.setattr(weat_module, "_EXACT", 69)
    drawn = weat(x, y, A, B)
    assert not drawn.is_exact and drawn.n_partitions == 20_000
    assert drawn.p == pytest.approx(exact.p, abs=0.02) and drawn.p != exact.p
    assert drawn.p == weat(x, y, A, B, seed=0).p != weat(x, y, A, B, seed=1).p
    assert drawn.p * 20_001 == pytest.approx(round(drawn.p * 20_001))


def test_an_equal_sum_is_not_a_larger_one() -> None:
    """Twice the same three words: of 20 splits 8 are the observed one in other words, 6 larger."""
    x = around(0.1, 0.35, 0.7)
    found = weat(x, x, A, B)
    assert found.s == 0 and found.p == pytest.approx(6 / 20)


def test_the_effect_size_by_hand() -> None:
    """Associations 1, .6 against .2, -.2: (.8 - 0) over the standard deviation of the four."""
    found = weat(around(0.5, 0.3), around(0.1, -0.1), A, B)
    assert found.s == pytest.approx(1.6) and found.p == 0 and found.n_partitions == 6
    assert found.d == pytest.approx(0.8 / np.sqrt(0.8 / 3))
    assert weat(around(0.5, 0.3), around(0.1, -0.1), A, B, ddof=0).d == pytest.approx(
        0.8 / np.sqrt(0.2)
    )


def test_word_lists_are_checked_by_name() -> None:
    check_lists({"X": ["a", "b"], "Y": ["c", "d"], "A": ["e"]})
    check_lists({"X": ["a"], "B": ["c", "d"]}, equal=())
    with pytest.raises(TouchstoneError, match="the word list Y is empty"):
        check_lists({"X": ["a"], "Y": []})
    with pytest.raises(TouchstoneError, match="lists X and Y have 2 and 1 words"):
        check_lists({"X": ["a", "b"], "Y": ["c"]})
    ones = np.ones((1, 2))
    for lists in ((ones[:0], ones, ones), (ones, ones[:0], ones), (ones, ones, ones[:0])):
        with pytest.raises(TouchstoneError, match="a word list is empty"):
            association(*lists)
