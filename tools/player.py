"""The page on which a reader marks the words that decided, and plays against eight explainers.

    python tools/player.py           # docs/player -> outputs/player/index.html (make player)

The page is one file that loads nothing, from the template, style and script in docs/player. Its
numbers are in docs/player/data.json, which tools/player_data.py makes from a run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from lib.core.errors import TouchstoneError
from lib.core.files import read_json, write_atomic
from lib.core.paths import ROOT, outputs_root

SOURCE = ROOT / "docs" / "player"


def page() -> str:
    """The whole page, one HTML document.

    Raises:
        TouchstoneError: docs/player/data.json is missing or damaged.
    """
    data = read_json(SOURCE / "data.json", "run `python tools/player_data.py`")
    template = (SOURCE / "page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, keep_trailing_newline=True)
    # No word of a text may end the element that holds the data.
    embedded = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    sources = {
        name: Markup((SOURCE / f"player.{ending}").read_text(encoding="utf-8").strip())
        for name, ending in (("style", "css"), ("script", "js"))
    }
    return environment.from_string(template).render(
        about=data["about"], methods=data["methods"], data=embedded, **sources
    )


def build(path: Path | None = None) -> Path:
    """Write the page; returns where."""
    path = path or outputs_root() / "player" / "index.html"
    write_atomic(path, page())
    return path


if __name__ == "__main__":
    try:
        print(build())
    except TouchstoneError as error:
        sys.exit(str(error))
