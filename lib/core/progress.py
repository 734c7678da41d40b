"""A progress bar for whoever watches; none stays in a saved notebook."""

import io
import os
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, TypeVar

from tqdm import tqdm

_Item = TypeVar("_Item")


def progress(iterable: Iterable[_Item], what: str) -> Iterator[_Item]:
    """Iterate, with a bar where `TOUCHSTONE_PROGRESS` asks for one.

    The runner sets it to the seconds between two updates of a bar on stderr; what takes less time
    than that shows no bar. `make lab` sets it to `lab`: the bar stands below the cell.

    >>> list(progress(range(3), "rows"))
    [0, 1, 2]
    """
    asked = os.environ.get("TOUCHSTONE_PROGRESS") or "0"
    seconds = 1.0 if asked == "lab" else float(asked)
    kind = _BelowTheCell if asked == "lab" else tqdm
    yield from (
        kind(iterable, what, mininterval=seconds, delay=seconds, leave=False)
        if seconds
        else iterable
    )


class _BelowTheCell(tqdm):
    """A bar as an output of its cell. It is emptied at the end; stderr would leave a red band."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._output: Any = None
        super().__init__(*args, file=io.StringIO(), **kwargs)
        known = "{desc}: {n_fmt} of {total_fmt}, {elapsed} gone, {remaining} to go"
        self.bar_format = known if self.total else "{desc}: {n_fmt}, {elapsed} gone"

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Show the state; an empty message clears it."""
        from IPython.display import display  # here, so that a plan costs nobody the import

        text = str(self) if msg is None else msg
        share = f' value="{self.n}" max="{self.total}"' if self.total else ""
        bar = f'<progress{share} style="vertical-align: middle; margin: 6px"></progress>'
        shown = {"text/html": bar + escape(text) if text else "", "text/plain": text}
        if self._output is not None:
            self._output.update(shown, raw=True)
        elif text:
            self._output = display(shown, raw=True, display_id=True)
