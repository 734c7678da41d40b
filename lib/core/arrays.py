"""Arrays that were made elsewhere, checked for what numpy would let pass without a word."""

from collections.abc import Iterable

import numpy as np

from .errors import TouchstoneError


def real_numbers(values: np.ndarray, what: str) -> np.ndarray:
    """An array as real numbers; text that writes them is read, anything else refused.

    Args:
        values: of any type.
        what: what they are, for the error.

    >>> real_numbers(np.array(["0.5", "1e-3"]), "a column").tolist()
    [0.5, 0.001]
    """
    try:
        # neither would raise: a complex number loses a part, and yes is 1
        if values.dtype.kind not in "iufOU" or any(map(_is_no_number, _objects(values))):
            raise TypeError
        return values.astype(float)
    except (ValueError, TypeError):
        odd = ((at, v) for at, v in np.ndenumerate(values) if _is_no_number(v))
        at, first = next(odd, ((), values.dtype))
        first = first.item() if isinstance(first, np.generic) else first
        row = f" in row {at[0] + 1}" if at else ""
        raise TouchstoneError(
            f"{what} holds something that is no real number ({first!r}{row}); write numbers"
        ) from None


def _objects(values: np.ndarray) -> Iterable[object]:
    return values.flat if values.dtype == object else ()


def _is_no_number(value: object) -> bool:
    if isinstance(value, bool | np.bool_ | complex | np.complexfloating):
        return True
    try:
        float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return value is not None  # an empty cell is NaN
    return False
