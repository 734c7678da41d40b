"""Deletion by the other form: its limits are exact."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from lib.studies.assay.swapped import aopc_of, aopc_of_best


def test_the_limits_are_those_of_all_orders() -> None:
    rng = np.random.default_rng(0)
    worth = {f"{n:04b}": float(rng.normal()) for n in range(16)}
    every = [aopc_of(worth, order) for order in permutations(range(4))]
    assert aopc_of_best(worth, 1) == pytest.approx(max(every))
    assert aopc_of_best(worth, -1) == pytest.approx(min(every))
