"""Books: the table, authors in parts, an archive that is read or made, sentences."""

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import data_root
from lib.language import books
from lib.language.books import Book, authors_of, book_archive, book_sentences, list_books

TEXT = """# Title: A Trip

## Author: Ann Example

-------

Mr. Lee _did not_ see her. He went home, I'm sure!

Too short.
"""
WORK = Book("Ann Example/A Trip: one.md", 12, hashlib.sha256(TEXT.encode()).hexdigest())


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """The address of a local server of a folder that holds the work."""
    (tmp_path / "repository" / WORK.path).parent.mkdir(parents=True)
    (tmp_path / "repository" / WORK.path).write_text(TEXT)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    handler = partial(Quiet, directory=str(tmp_path / "repository"))
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "books.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(WORK.path, TEXT)
    return path


def test_the_table_and_its_parts() -> None:
    works = list_books()
    assert (len(works), len({work.author for work in works})) == (341, 99)
    assert 28_800_000 < sum(work.words for work in works) < 29_000_000
    parts = books.split_authors(works, 5)
    assert sorted(sum(parts, [])) == sorted({work.author for work in works})
    sizes = [sum(work.words for work in authors_of(works, part)) for part in parts]
    assert max(sizes) - min(sizes) < 50_000


def test_sentences_are_prose_and_nothing_else(archive: Path) -> None:
    assert list(book_sentences(archive, [WORK])) == [
        "Mr. Lee did not see her .".split(),
        "He went home , I 'm sure !".split(),
    ]
    assert list(book_sentences(archive, [WORK], lengths=(4, 7))) == [
        "Mr. Lee did not see her .".split()
    ]


def test_a_draw_is_the_same_whatever_else_is_read(archive: Path) -> None:
    text = "\n".join(f"This is sentence number {i} ." for i in range(2000))
    many = Book("B/x.md", 12_000, hashlib.sha256(text.encode()).hexdigest())
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(many.path, text)
    alone = list(book_sentences(archive, [many], 6_000, seed=1))
    assert 900 < len(alone) < 1100
    assert alone != list(book_sentences(archive, [many], 6_000, seed=2))
    both = list(book_sentences(archive, [WORK, many], 6_006, seed=1))
    assert both[-len(alone) :] == alone


def test_another_text_is_refused(archive: Path) -> None:
    with pytest.raises(TouchstoneError, match="does not hold B/x.md; delete it"):
        list(book_sentences(archive, [Book("B/x.md", 1, "0" * 64)]))
    with pytest.raises(TouchstoneError, match="is not the work of the table"):
        list(book_sentences(archive, [WORK._replace(sha256="0" * 64)]))


def test_an_archive_is_made_from_the_repository(
    repository: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOUCHSTONE_DATA", raising=False)
    with pytest.raises(TouchstoneError, match="set TOUCHSTONE_DATA"):
        book_archive([WORK], repository)
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path / "data"))
    with pytest.raises(TouchstoneError, match="could not fetch .*C/x.md"):
        book_archive([WORK, Book("C/x.md", 1, "0" * 64)], repository)
    assert not (tmp_path / "data" / books.ARCHIVE).exists()
    made = book_archive([WORK], repository)
    assert len(list(book_sentences(made, [WORK]))) == 2
    before = made.read_bytes()
    made.unlink()
    assert book_archive([WORK], "http://localhost:1").read_bytes() == before


def test_the_archive_of_a_data_folder_holds_the_works_of_the_table() -> None:
    root = data_root()
    if root is None or not (root / books.ARCHIVE).is_file():
        pytest.skip("needs the books: set TOUCHSTONE_DATA to a folder that holds books/")
    works = list_books()[:2]
    assert len(list(book_sentences(root / books.ARCHIVE, works, 20_000))) > 300
