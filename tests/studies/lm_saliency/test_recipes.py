"""Corpora from their sources: archives written by hand, and the copies of a data folder."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lib.core.errors import TouchstoneError
from lib.core.files import sha256_of
from lib.core.paths import data_root, material
from lib.language.corpora import (
    lines_sha256,
    published_corpus,
    read_plain,
    read_sources,
    source_path,
)
from lib.studies.lm_saliency import recipes
from lib.studies.lm_saliency.recipes import (
    build_corpus,
    fetch_wikitext,
    masc_lines,
    review_lines,
    treebank_lines,
)

SOURCES = material("lm_saliency") / "sources.yaml"
TREE = "1\tKeys\tkey\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\trust\trust\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"


def packed(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def masc(tmp_path) -> Path:
    return packed(
        tmp_path / "masc_tagged.zip",
        {
            "masc_tagged/written/b.txt": "\n The_DT  end_NN ._. \n",
            "masc_tagged/written/a.txt": "Keys_NNS rust_VBP ._.\n\nsnake_case_NN\n",
            "masc_tagged/spoken/c.txt": "Uh_UH\n",
            "masc_tagged/categories.txt": "written/a.txt fiction\n",
        },
    )


@pytest.fixture
def reviews(tmp_path) -> Path:
    return packed(
        tmp_path / "movie_reviews.zip",
        {
            f"movie_reviews/{kind}/cv{i:03d}_{100 - i}.txt": f"{kind} film {i} . \n\nthe end . \n"
            for kind in ("pos", "neg")
            for i in range(3)
        },
    )


def test_masc_gives_the_written_files_by_name(masc) -> None:
    assert masc_lines(masc) == ["Keys_NNS rust_VBP ._.", "snake_case_NN", "The_DT end_NN ._."]


def test_reviews_come_negative_first_with_an_empty_line_after_each(reviews) -> None:
    assert review_lines(reviews, 1, 2) == [
        "neg film 1 .",
        "the end .",
        "",
        "neg film 2 .",
        "the end .",
        "",
        "pos film 1 .",
        "the end .",
        "",
        "pos film 2 .",
        "the end .",
        "",
    ]


def test_archives_without_the_text_are_refused(masc, reviews) -> None:
    with pytest.raises(TouchstoneError, match="movie_reviews.zip holds no masc_tagged/written"):
        masc_lines(reviews)
    with pytest.raises(TouchstoneError, match="holds 4 of the 6 reviews cv001 to cv003"):
        review_lines(reviews, 1, 3)


def entry(lines: list[str], recipe: str, **more: object) -> dict[str, object]:
    return {
        "source": "somewhere",
        "commit": "abc",
        "licence": "CC BY 4.0",
        "made": "it is",
        "use": "tagged corpus",
        "recipe": recipe,
        "lines_sha256": lines_sha256(lines),
        "sha256": "0" * 64,
    } | more


def test_a_corpus_is_made_from_the_treebank_once_and_read_in_its_own_order(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path))
    for name in ("x", "y"):
        (tmp_path / f"{name}.conllu").write_text(
            TREE if name == "x" else TREE.replace("Keys", "Locks")
        )
    sources = {
        "made.txt": entry(
            ["Locks_NNS rust_VBP", "Keys_NNS rust_VBP"], "treebank", files=["x.conllu", "y.conllu"]
        )
    }
    assert (
        build_corpus("made.txt", sources).read_text() == "Keys_NNS rust_VBP\nLocks_NNS rust_VBP\n"
    )
    assert source_path("made.txt", sources) == tmp_path / "made.txt"
    assert published_corpus(sources)[0] == [("Keys", "NNS"), ("rust", "VBP")]
    (tmp_path / "x.conllu").unlink()
    assert build_corpus("made.txt", sources).is_file()


def test_other_lines_and_missing_files_are_refused(tmp_path, monkeypatch) -> None:
    sources = {"made.txt": entry(["Keys_NNS rust_VBP"], "treebank", files=["x.conllu"])}
    monkeypatch.delenv("TOUCHSTONE_DATA", raising=False)
    with pytest.raises(TouchstoneError, match="set TOUCHSTONE_DATA"):
        build_corpus("made.txt", sources)
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path))
    with pytest.raises(TouchstoneError, match="there is no .*x.conllu; it comes from somewhere"):
        build_corpus("made.txt", sources)
    (tmp_path / "x.conllu").write_text(TREE.replace("rust", "rusted"))
    with pytest.raises(TouchstoneError, match="made.txt, made from somewhere, has other lines"):
        build_corpus("made.txt", sources)
    assert not (tmp_path / "made.txt").exists()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a local server of the test's folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


def test_archives_are_fetched_once_and_checked(masc, served, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path / "data"))
    md5, url = hashlib.md5(masc.read_bytes()).hexdigest(), f"{served}/{masc.name}"
    sources = {
        "w/masc.txt": entry(masc_lines(masc), "masc", url=url, checksum=f"md5:{md5}"),
        "w/other.txt": entry(
            [], "masc", url=url.replace("masc_tagged", "other"), checksum=f"md5:{'0' * 32}"
        ),
    }
    assert build_corpus("w/masc.txt", sources).read_text().count("\n") == 3
    packed(tmp_path / "other.zip", {"a": "b"})
    with pytest.raises(TouchstoneError, match="is not what its MD5 says"):
        build_corpus("w/other.txt", sources)


@pytest.fixture
def wikitext(tmp_path, monkeypatch) -> Path:
    """A tiny archive in the place of WikiText-2, and an empty data folder."""
    archive = packed(
        tmp_path / "wikitext-2-v1.zip",
        {"wikitext-2/wiki.train.tokens": " = Head = \n\n The first line . \n"},
    )
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path / "data"))
    monkeypatch.setitem(recipes.WIKITEXT_SHA256, "wikitext-2", sha256_of(archive))
    return archive


def test_wikitext_is_fetched_checked_and_read(wikitext, served) -> None:
    path = fetch_wikitext("wikitext-2", served)
    assert read_plain(path) == [["The", "first", "line", "."]]
    wikitext.unlink()
    assert fetch_wikitext("wikitext-2", served) == path  # once


def test_another_archive_or_name_is_refused(wikitext, served) -> None:
    with pytest.raises(TouchstoneError, match="did you mean 'wikitext-103'"):
        fetch_wikitext("wikitext-1O3", served)
    with pytest.raises(TouchstoneError, match=r"could not fetch .*wikitext-103-v1.zip"):
        fetch_wikitext("wikitext-103", served)
    wikitext.write_bytes(b"another file")
    with pytest.raises(TouchstoneError, match="is not what its SHA-256 says"):
        fetch_wikitext("wikitext-2", served)


def test_an_archive_without_the_text_is_refused(wikitext, served, monkeypatch) -> None:
    packed(wikitext, {"readme": "nothing"})
    monkeypatch.setitem(recipes.WIKITEXT_SHA256, "wikitext-2", sha256_of(wikitext))
    with pytest.raises(TouchstoneError, match=r"holds no wikitext-2/wiki.train.tokens"):
        fetch_wikitext("wikitext-2", served)


@pytest.fixture
def data() -> Path:
    root = data_root()
    if root is None or not (root / "wikitext2").is_dir():
        pytest.skip(
            "needs the text corpora: set TOUCHSTONE_DATA to a folder that holds treebanks/ and "
            "wikitext2/"
        )
    return root


@pytest.mark.slow
def test_the_users_tagged_treebank_has_the_lines_that_the_treebank_gives(data) -> None:
    lines = treebank_lines(
        data / f"treebanks/en_ewt-ud-{part}.conllu" for part in ("train", "dev", "test")
    )
    assert (
        lines_sha256(lines) == read_sources(SOURCES)["wikitext2/ud_ewt.tagged.txt"]["lines_sha256"]
    )


@pytest.mark.parametrize(("part", "first", "last"), [(0, 0, 349), (1, 350, 659)])
def test_the_users_reviews_are_what_the_conversion_writes(
    data, tmp_path, part, first, last
) -> None:
    """The user's copy, unpacked into the archive's form and converted again: the same bytes."""
    text = (data / f"wikitext2/movie_reviews.{part}.txt").read_text()
    found = text.removesuffix("\n\n").split("\n\n")
    assert len(found) == 2 * (last - first + 1)
    names = [
        f"movie_reviews/{kind}/cv{i:03d}_{i}.txt"
        for kind in ("neg", "pos")
        for i in range(first, last + 1)
    ]
    archive = packed(
        tmp_path / "again.zip",
        {n: one.replace("\n", " \n") for n, one in zip(names, found, strict=True)},
    )
    assert "".join(f"{line}\n" for line in review_lines(archive, first, last)) == text


def test_the_users_masc_is_in_the_form_that_the_conversion_writes(data, tmp_path) -> None:
    text = (data / "wikitext2/masc_written.tagged.txt").read_text(encoding="utf-8")
    assert (text.count("\n"), len(text.split())) == (
        27_265,
        486_396,
    )  # the figures of the data folder's README
    archive = packed(tmp_path / "again.zip", {"masc_tagged/written/all.txt": text})
    assert "".join(f"{line}\n" for line in masc_lines(archive)) == text


def test_every_corpus_has_a_recipe_and_the_users_copy_its_lines(data) -> None:
    for name, about in read_sources(SOURCES).items():
        if about["use"].endswith("corpus"):
            lines = (data / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")
            assert lines_sha256(lines) == about["lines_sha256"], name


def test_every_source_states_where_it_comes_from() -> None:
    for name, entry in read_sources(SOURCES).items():
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
            "needs the published files: set TOUCHSTONE_DATA to a folder that holds tarsius/, "
            "treebanks/ and wikitext2/"
        )
    sources = read_sources(SOURCES)
    assert all(source_path(name, sources).exists() for name in sources)
