"""A progress bar for the terminal that never ends up in a saved notebook."""

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

_Item = TypeVar("_Item")


def progress(iterable: Iterable[_Item], what: str) -> Iterator[_Item]:
    """Iterate, with a bar on stderr where the runner asks for one (`TOUCHSTONE_PROGRESS`).

    The variable holds the seconds between two updates; what takes less time than that shows no bar.

    >>> list(progress(range(3), "rows"))
    [0, 1, 2]
    """
    seconds = float(os.environ.get("TOUCHSTONE_PROGRESS") or 0)
    yield from (
        tqdm(iterable, what, mininterval=seconds, delay=seconds, leave=False)
        if seconds
        else iterable
    )
