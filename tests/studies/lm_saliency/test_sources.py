"""Published files: found, checked, refused."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lib.core.errors import TouchstoneError
from lib.core.files import sha256_of
from lib.core.paths import data_root
from lib.studies.lm_saliency import sources as lm_sources
from lib.studies.lm_saliency.sources import (
    fetch_wikitext,
    published_corpus,
    read_sources,
    source_path,
    without_prefixes,
)
from lib.studies.lm_saliency.text import read_plain


def about(content: str, use: str) -> dict[str, str]:
    return {
        "source": "somewhere",
        "commit": "abc",
        "licence": "CC BY 4.0",
        "made": "it is",
        "use": use,
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
    }


def test_corpora_are_read_in_order_with_and_without_tags(tmp_path, monkeypatch) -> None:
    files = {
        "a.txt": ("The_DT end_NN\n", "tagged corpus"),
        "b.txt": (" = Head = \nA line\n", "plain corpus"),
    }
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
    sentences = [
        [("The", ""), ("Keys", ""), ("are", "")],
        [("the", ""), ("key", "")],
        [("The", "")],
    ]
    assert without_prefixes(sentences, [["the", "keys"]]) == sentences[1:]


def test_every_source_states_where_it_comes_from() -> None:
    for name, entry in read_sources().items():
        recipe = {"recipe", "lines_sha256"} if entry["use"].endswith("corpus") else set()
        origin = set(entry) & {"url", "checksum", "files"}
        assert (
            set(entry) == {"source", "commit", "licence", "use", "made", "sha256"} | recipe | origin
        ), name
        assert origin in (({"files"}, {"url", "checksum"}) if recipe else (set(),)), name
        assert len(entry["sha256"]) == 64


def test_the_data_folder_holds_the_sources() -> None:
    root = data_root()
    if root is None or not (root / "tarsius").is_dir():
        pytest.skip(
            "needs the published files: set TOUCHSTONE_DATA to a folder that holds tarsius/, treebanks/, wikitext2/"
        )
    sources = read_sources()
    assert all(source_path(name, sources).exists() for name in sources)


@pytest.fixture
def wikitext(tmp_path, monkeypatch):
    """A local server with a tiny archive in the place of WikiText-2, and an empty data folder."""
    served = tmp_path / "served"
    served.mkdir()
    with zipfile.ZipFile(served / "wikitext-2-v1.zip", "w") as archive:
        archive.writestr("wikitext-2/wiki.train.tokens", " = Head = \n\n The first line . \n")
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path / "data"))
    monkeypatch.setitem(
        lm_sources.WIKITEXT_SHA256, "wikitext-2", sha256_of(served / "wikitext-2-v1.zip")
    )

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}", served / "wikitext-2-v1.zip"
    http.shutdown()
    http.server_close()


def test_wikitext_is_fetched_checked_and_read(wikitext) -> None:
    path = fetch_wikitext("wikitext-2", wikitext[0])
    assert read_plain(path) == [["The", "first", "line", "."]]
    wikitext[1].unlink()
    assert fetch_wikitext("wikitext-2", wikitext[0]) == path  # once


def test_another_archive_or_name_is_refused(wikitext) -> None:
    with pytest.raises(TouchstoneError, match="did you mean 'wikitext-103'"):
        fetch_wikitext("wikitext-1O3", wikitext[0])
    with pytest.raises(TouchstoneError, match="could not fetch .*wikitext-103-v1.zip"):
        fetch_wikitext("wikitext-103", wikitext[0])
    wikitext[1].write_bytes(b"another file")
    with pytest.raises(TouchstoneError, match="is not what its SHA-256 says"):
        fetch_wikitext("wikitext-2", wikitext[0])


def test_an_archive_without_the_text_is_refused(wikitext, monkeypatch) -> None:
    with zipfile.ZipFile(wikitext[1], "w") as archive:
        archive.writestr("readme", "nothing")
    monkeypatch.setitem(lm_sources.WIKITEXT_SHA256, "wikitext-2", sha256_of(wikitext[1]))
    with pytest.raises(TouchstoneError, match="holds no wikitext-2/wiki.train.tokens"):
        fetch_wikitext("wikitext-2", wikitext[0])
