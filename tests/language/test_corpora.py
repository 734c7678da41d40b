"""Published corpora: found, checked, refused, and read with and without tags."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lib.core.errors import TouchstoneError
from lib.language.corpora import (
    lines_sha256,
    published_corpus,
    read_plain,
    read_sources,
    read_tagged,
    source_path,
)


def about(content: str, use: str) -> dict[str, str]:
    return {
        "source": "somewhere",
        "commit": "abc",
        "licence": "CC BY 4.0",
        "made": "it is",
        "use": use,
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
    }


def test_corpora_are_read_in_order_with_and_without_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "a.txt": ("The_DT end_NN\n", "tagged corpus"),
        "trees.conllu": ("no text\n", "treebank"),
        "b.txt": (" = Head = \nA line\n", "plain corpus"),
    }
    for name, (text, _) in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path))
    sentences = published_corpus({name: about(text, use) for name, (text, use) in files.items()})
    assert sentences == [[("The", "DT"), ("end", "NN")], [("A", ""), ("line", "")]]


def test_what_is_missing_or_other_is_refused_with_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {"a.txt": about("right", "plain corpus")}
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path))
    with pytest.raises(TouchstoneError, match=r"there is no .*a.txt; it comes from somewhere"):
        source_path("a.txt", sources)
    (tmp_path / "a.txt").write_text("wrong")
    with pytest.raises(TouchstoneError, match="is not the file that this study was made with"):
        source_path("a.txt", sources)
    monkeypatch.delenv("TOUCHSTONE_DATA")
    with pytest.raises(TouchstoneError, match="set TOUCHSTONE_DATA"):
        source_path("a.txt", sources)


def test_the_same_lines_in_another_order_will_do_for_a_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand = hashlib.sha256(b"a\nb\nb\n").hexdigest()
    assert lines_sha256(["b", "a", "b"]) == by_hand != lines_sha256(["a", "b"])
    (tmp_path / "sources.yaml").write_text(
        "a.txt: {source: x, commit: y, licence: z, use: plain corpus, "
        f"sha256: {'0' * 64}, lines_sha256: {by_hand}}}\n"
    )
    (tmp_path / "a.txt").write_text("b\na\nb\n")
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path))
    assert source_path("a.txt", read_sources(tmp_path / "sources.yaml")) == tmp_path / "a.txt"


def test_tagged_lines_and_a_word_without_a_tag(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("The_DT end_NN\n\nof_IN it\n")
    with pytest.raises(TouchstoneError, match="t.txt, line 3: 'it' has no tag"):
        read_tagged(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_text("The_DT end_NN\n\nof_IN it_PRP\n")
    assert [len(line) for line in read_tagged(tmp_path / "t.txt")] == [2, 2]


def test_plain_lines_without_headings(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(" = Title = \n\nA line .\n")
    assert read_plain(tmp_path / "p.txt") == [["A", "line", "."]]
