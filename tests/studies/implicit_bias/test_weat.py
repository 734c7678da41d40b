"""The association test against a second route, its symmetries, and lists that cannot be tested."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from lib.core.errors import TouchstoneError
from lib.studies.implicit_bias.weat import association, weat


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
