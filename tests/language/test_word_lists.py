"""Word lists: read, and named where they are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.core.errors import TouchstoneError
from lib.language.word_lists import read_weights, read_word_list, resource


def test_word_lists_may_hold_comments(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("# people\nnun monk # church\nqueen\n")
    assert read_word_list(tmp_path / "words.txt") == {"nun", "monk", "queen"}


def test_a_missing_list_is_named() -> None:
    with pytest.raises(TouchstoneError, match="nobody.txt is missing; restore"):
        resource("nobody.txt")


@pytest.mark.parametrize("content", ["[]", '{"about": "x"}', "{", None])
def test_weights_that_are_none_are_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "w.json").write_text(content)
    with pytest.raises(
        TouchstoneError, match=r"w\.json .*(holds no weights|not valid JSON|cannot be read)"
    ):
        read_weights(tmp_path / "w.json")
