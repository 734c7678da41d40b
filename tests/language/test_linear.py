"""Fitted weights: read, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.core.errors import TouchstoneError
from lib.language.linear import load_weights


@pytest.mark.parametrize("content", ["[]", '{"about": "x"}', "{", None])
def test_weights_that_are_none_are_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "w.json").write_text(content)
    with pytest.raises(TouchstoneError, match=r"w\.json holds no weights"):
        load_weights(tmp_path / "w.json")
