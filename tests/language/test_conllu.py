"""Rows, comments and heads of CoNLL-U by hand, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.core.errors import TouchstoneError
from lib.language.conllu import read_conllu


def row(*columns: str) -> str:
    """A row from ID, FORM and HEAD; the other seven columns are `x`."""
    name, form, head = columns
    return "\t".join([name, form, *"xxxx", head, *"xxx"]) + "\n"


def test_rows_comments_and_heads_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(
        "# about the file\n# sent_id = s-1\n# text = a = b\n"
        + row("1-2", "don't", "_")
        + row("1", "do", "0")
        + row("2", "n't", "1")
        + row("2.1", "empty", "_")
        + "\n\n"
        + row("1", "End", "0").replace("\n", "\r\n"),
        newline="",
    )
    first, second = read_conllu(path)
    assert first.comments == {"about the file": "", "sent_id": "s-1", "text": "a = b"}
    assert [(r.form, r.head, r.line) for r in first.rows] == [("do", -1, 5), ("n't", 0, 6)]
    assert (first.rows[0].id, first.rows[0].deprel, first.rows[0].misc) == ("1", "x", "x")
    assert second.comments == {} and [r.form for r in second.rows] == ["End"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tword\n", "a.conllu, line 1: 2 columns; .*correct the line"),
        ("# sent_id = 1\n" + row("1", "word", "7"), "line 2: the head '7' is no word"),
        (row("1", "word", "_"), "line 1: the head '_' is no word of the sentence; correct"),
        ("# caf\xe9\n".encode("latin-1"), "line 1: the bytes are not UTF-8"),
    ],
)
def test_what_is_no_tree_is_named_by_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    content = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "a.conllu").write_bytes(content)
    with pytest.raises(TouchstoneError, match=message):
        read_conllu(tmp_path / "a.conllu")
