"""Books in the public domain: 341 works by 99 authors, 28.9 million words, read sentence by
sentence.

They are Markdown files of one public repository, listed with their SHA-256 in a table (`path`,
`bytes`, `words`, `sha256`; a path is `Author/Title.md`). They are read from an archive with these
paths; where there is none, `fetch_books` makes it from the repository.
"""

import csv
import hashlib
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from ..core.contents import noted
from ..core.downloads import download
from ..core.errors import TouchstoneError
from ..core.paths import data_root, material

ARCHIVE = "books/classic_books.zip"  # below TOUCHSTONE_DATA
COMMIT = "944882722e9a96fa6cf2739dc2ea757e101f412f"
URL = f"https://raw.githubusercontent.com/mlschmitt/classic-books-markdown/{COMMIT}"
_DATE = (1980, 1, 1, 0, 0, 0)  # of every member: the same files, the same archive
_NO_PROSE = re.compile(r"#|[-*_\s]*$|\[\^?\d+\]:")  # headings, rules, foot of a note


class Book(NamedTuple):
    """A line of the table: where a work stands, its length in words, and its SHA-256."""

    path: str
    words: int
    sha256: str

    @property
    def author(self) -> str:
        """The folder that the work stands in."""
        return self.path.partition("/")[0]


def list_books(table: Path | None = None) -> list[Book]:
    """The works, in the order of the table (by default the project's own)."""
    path = table or noted(material("lm_saliency") / "books.csv")
    with open(path, encoding="utf-8", newline="") as file:
        return [Book(row["path"], int(row["words"]), row["sha256"]) for row in csv.DictReader(file)]


def split_authors(books: Sequence[Book], n_parts: int) -> list[list[str]]:
    """Authors in parts of about as many words; nobody is in two.

    The longest first, each to the part that has the fewest words so far.

    >>> books = [Book("A/x.md", 5, ""), Book("B/x.md", 3, ""), Book("C/x.md", 2, "")]
    >>> split_authors(books, 2)
    [['A'], ['B', 'C']]
    """
    words: dict[str, int] = {}
    for book in books:
        words[book.author] = words.get(book.author, 0) + book.words
    parts: list[list[str]] = [[] for _ in range(n_parts)]
    for author in sorted(words, key=lambda name: (-words[name], name)):
        min(parts, key=lambda part: sum(words[name] for name in part)).append(author)
    return parts


def book_archive(books: Sequence[Book] | None = None, url: str = URL) -> Path:
    """The archive below TOUCHSTONE_DATA, made from the repository where it is not there.

    Args:
        books: the works that it must hold (by default those of the project's table).
        url: where the repository's files are.

    Raises:
        TouchstoneError: TOUCHSTONE_DATA is not set, or a file cannot be had or is another one.
    """
    root = data_root()
    if root is None:
        raise TouchstoneError(
            f"books are read from {ARCHIVE}; set TOUCHSTONE_DATA to the folder of downloads"
        )
    path = root / ARCHIVE
    if not path.is_file():
        books = list_books() if books is None else books
        folder = path.parent / "files"
        for book in books:  # each is checked, and one that is there is not fetched again
            target = folder / book.path
            target.parent.mkdir(parents=True, exist_ok=True)
            download(f"{url}/{quote(book.path)}", book.sha256, target)
        part = path.with_suffix(".part")
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for book in books:
                archive.writestr(
                    zipfile.ZipInfo(book.path, _DATE),
                    (folder / book.path).read_bytes(),
                    zipfile.ZIP_DEFLATED,
                )
        part.replace(path)
    return path


def book_sentences(
    archive: Path,
    books: Sequence[Book],
    n_words: int = 0,
    seed: int = 0,
    lengths: tuple[int, int] = (4, 64),
) -> Iterator[list[str]]:
    """The sentences of some works, as spaCy's rules for English cut and tokenise them.

    Args:
        archive: of `book_archive`.
        books: the works, each compared with its SHA-256.
        n_words: about how many words are drawn, every sentence with the same chance (0: all).
        seed: of the draw; a work's sentences are drawn alike whatever the others are.
        lengths: the fewest and the most words of a sentence that is kept.

    Raises:
        TouchstoneError: a work is not in the archive, or is another one.
    """
    import spacy  # here, so that only a run that reads books pays for the import

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    share = n_words / sum(book.words for book in books) if n_words else 1.0
    with zipfile.ZipFile(archive) as file:
        for book in books:
            rng = np.random.default_rng([seed, int(book.sha256[:8], 16)])
            for document in nlp.pipe(_paragraphs(file, book, archive)):
                for sentence in document.sents:
                    words = [token.text for token in sentence if not token.is_space]
                    if rng.random() < share and lengths[0] <= len(words) <= lengths[1]:
                        yield words


def _paragraphs(file: zipfile.ZipFile, book: Book, archive: Path) -> list[str]:
    """The prose of a work, a paragraph each, without headings and marks of emphasis."""
    try:
        content = file.read(book.path)
    except KeyError:
        raise TouchstoneError(
            f"{archive} does not hold {book.path}; delete it, so that it is made again"
        ) from None
    if hashlib.sha256(content).hexdigest() != book.sha256:
        raise TouchstoneError(
            f"{archive}: {book.path} is not the work of the table; delete the archive, so that it "
            "is made again"
        )
    lines = content.decode("utf-8").splitlines()
    return [re.sub(r"[*_]+", "", line) for line in lines if not _NO_PROSE.match(line)]


def authors_of(books: Sequence[Book], authors: Sequence[str]) -> list[Book]:
    """The works of some authors."""
    wanted = set(authors)
    return [book for book in books if book.author in wanted]
