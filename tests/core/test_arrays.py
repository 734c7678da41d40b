"""Arrays from elsewhere are real numbers, or are named."""

from __future__ import annotations

import numpy as np
import pytest

from lib.core.arrays import real_numbers
from lib.core.errors import TouchstoneError


def test_numbers_come_through_whatever_holds_them() -> None:
    assert real_numbers(np.array([1, 2], dtype=np.int8), "x").dtype == float
    assert real_numbers(np.array([[".5", "1e-3"]]), "x").tolist() == [[0.5, 0.001]]
    assert real_numbers(np.array(["1", 2, 0.5], dtype=object), "x").tolist() == [1.0, 2.0, 0.5]
    assert np.isnan(real_numbers(np.array([None, 1.0], dtype=object), "x")[0]), "an empty cell"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array([True, False]), "x holds something that is no real number .* row 1"),
        (np.array([0.5 + 1j]), "row 1"),
        (np.array([[0.5, 1.0], [0.5, True]], dtype=object), r"\(True in row 2\)"),
        (np.array(["0.5", "", "half"]), r"\('' in row 2\)"),
        (np.array([b"0.5"]), "x holds something"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "x holds something"),
        (np.array(True), "x holds something that is no real number"),
    ],
)
def test_what_numpy_would_let_pass_is_named(values: np.ndarray, said: str) -> None:
    with pytest.raises(TouchstoneError, match=said):
        real_numbers(values, "x")
