"""Show in a notebook the code that the story speaks of."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from IPython.display import Markdown, display

from lib.core.errors import TouchstoneError


def show_source(fn: Callable[..., Any] | type) -> None:
    """Display a function's source as a Markdown code block; over 40 lines are refused: nobody reads them."""
    source = textwrap.dedent(inspect.getsource(fn)).rstrip()
    if (n := source.count("\n") + 1) > 40:
        raise TouchstoneError(
            f"{fn.__qualname__} has {n} lines; show a part of at most 40 that stands alone"
        )
    display(Markdown(f"```python\n# {fn.__module__}\n{source}\n```"))
