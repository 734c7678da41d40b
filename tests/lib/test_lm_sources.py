"""Published files: found, checked, refused."""

from __future__ import annotations

import hashlib

import pytest

from lib.errors import TouchstoneError
from lib.lm_sources import published_corpus, read_sources, source_path, without_prefixes
from lib.paths import data_root


def about(content: str, use: str) -> dict[str, str]:
    return {"source": "somewhere", "commit": "abc", "licence": "CC BY 4.0", "made": "it is", "use": use,
            "sha256": hashlib.sha256(content.encode()).hexdigest()}


def test_corpora_are_read_in_order_with_and_without_tags(tmp_path, monkeypatch) -> None:
    files = {"a.txt": ("The_DT end_NN\n", "tagged corpus"), "b.txt": (" = Head = \nA line\n", "plain corpus")}
    for name, (text, _) in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path))
    found = published_corpus({name: about(text, use) for name, (text, use) in files.items()})
    assert found == [[("The", "DT"), ("end", "NN")], [("A", ""), ("line", "")]]


def test_what_is_missing_or_other_is_refused_with_its_origin(tmp_path, monkeypatch) -> None:
    sources = {"a.txt": about("right", "plain corpus")}
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path))
    with pytest.raises(TouchstoneError, match="there is no .*a.txt; it comes from somewhere"):
        source_path("a.txt", sources)
    (tmp_path / "a.txt").write_text("wrong")
    with pytest.raises(TouchstoneError, match="is not the file that this study was made with"):
        source_path("a.txt", sources)
    monkeypatch.delenv("TOUCHSTONE_DATA")
    with pytest.raises(TouchstoneError, match="set TOUCHSTONE_DATA"):
        source_path("a.txt", sources)


def test_test_lines_stay_out_of_training() -> None:
    sentences = [[("The", ""), ("Keys", ""), ("are", "")], [("the", ""), ("key", "")], [("The", "")]]
    assert without_prefixes(sentences, [["the", "keys"]]) == sentences[1:]


def test_every_source_states_where_it_comes_from() -> None:
    for name, entry in read_sources().items():
        assert set(entry) == {"source", "commit", "licence", "use", "made", "sha256"}, name
        assert len(entry["sha256"]) == 64


def test_the_data_folder_holds_the_sources() -> None:
    root = data_root()
    if root is None or not (root / "tarsius").is_dir():
        pytest.skip("needs the published files: set TOUCHSTONE_DATA to a folder that holds tarsius/, treebanks/, wikitext2/")
    sources = read_sources()
    assert all(source_path(name, sources).exists() for name in sources)
