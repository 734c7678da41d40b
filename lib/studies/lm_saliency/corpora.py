"""The text corpora of lm_saliency from their named sources: an archive, a treebank or a plain file in, lines out."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lib.core.errors import TouchstoneError
from lib.core.files import write_atomic
from lib.core.paths import data_root
from lib.studies.geco.corpus import download
from lib.studies.lm_saliency.extraction import read_conllu, tagged_line

CLASSES = ("neg", "pos")
DOWNLOADS = "downloads"  # below TOUCHSTONE_DATA: the archives as they came


def masc_lines(archive: Path) -> list[str]:
    """The written part of MASC (Ide et al. 2010) in NLTK's packing: word_TAG, a sentence a line, files by name."""
    texts = _members(archive, re.compile(r"masc_tagged/written/.+\.txt"))
    if not texts:
        raise TouchstoneError(
            f"{archive} holds no masc_tagged/written/*.txt; delete it and try again"
        )
    return [" ".join(line.split()) for text in texts for line in text.split("\n") if line.strip()]


def review_lines(archive: Path, first: int, last: int) -> list[str]:
    """Movie reviews cv<first> to cv<last> (Pang and Lee 2004, polarity 2.0), those of the negative class first.

    A sentence a line, an empty line after each review. Raises TouchstoneError where a review is missing.
    """
    numbers, wanted = (
        "|".join(f"{i:03d}" for i in range(first, last + 1)),
        len(CLASSES) * (last - first + 1),
    )
    texts = [
        text
        for name in CLASSES
        for text in _members(archive, re.compile(rf"movie_reviews/{name}/cv({numbers})_\d+\.txt"))
    ]
    if len(texts) != wanted:
        raise TouchstoneError(
            f"{archive} holds {len(texts)} of the {wanted} reviews cv{first:03d} to cv{last:03d} of both "
            "classes; delete it and try again"
        )
    return [
        line
        for text in texts
        for line in [*(" ".join(one.split()) for one in text.split("\n") if one.strip()), ""]
    ]


def treebank_lines(files: Iterable[Path]) -> list[str]:
    """The sentences of CoNLL-U files as word_TAG, in order."""
    return [tagged_line(sentence) for file in files for sentence in read_conllu(file)]


def lines_sha256(lines: Sequence[str]) -> str:
    """The SHA-256 of lines in the order of their bytes: the same for the same lines in any order.

    >>> lines_sha256(["b", "a"]) == lines_sha256(["a", "b"])
    True
    """
    return hashlib.sha256(
        b"".join(line + b"\n" for line in sorted(line.encode() for line in lines))
    ).hexdigest()


def build_corpus(name: str, sources: dict[str, dict[str, Any]]) -> Path:
    """A corpus of sources.yaml below TOUCHSTONE_DATA: what lies there, else made from its source, once.

    What is made must hold the lines that the study was made with (`lines_sha256`); their order may be another one. Raises
    TouchstoneError where TOUCHSTONE_DATA is not set, a source cannot be had, or other lines come out.
    """
    about, root = sources[name], data_root()
    if root is None:
        raise TouchstoneError(
            f"{name} is made from {about['source']}; set TOUCHSTONE_DATA to the folder of downloads"
        )
    path = root / name
    if not path.exists():
        kind, *bounds = about["recipe"].split()
        lines = _RECIPES[kind](_origins(about, root), *map(int, bounds))
        if lines_sha256(lines) != about["lines_sha256"]:
            raise TouchstoneError(
                f"{name}, made from {about['source']}, has other lines than this study read ({len(lines)} lines, "
                f"SHA-256 when sorted {lines_sha256(lines)[:12]}..., expected {about['lines_sha256'][:12]}...); "
                "the source has changed: look for the commit that sources.yaml names"
            )
        write_atomic(path, "".join(f"{line}\n" for line in lines))
    return path


def _origins(about: dict[str, Any], root: Path) -> list[Path]:
    """The files that a corpus is made from: those of other entries, or one download (checked by its checksum)."""
    if "files" in about:
        if missing := [file for file in about["files"] if not (root / file).is_file()]:
            raise TouchstoneError(
                f"there is no {root / missing[0]}; it comes from {about['source']}; put it there"
            )
        return [root / file for file in about["files"]]
    target = root / DOWNLOADS / about["url"].rpartition("/")[2]
    if not target.is_file():
        download(about["url"], about["checksum"], target)
    return [target]


def _members(archive: Path, pattern: re.Pattern[str]) -> list[str]:
    with zipfile.ZipFile(archive) as file:
        return [
            file.read(name).decode("utf-8")
            for name in sorted(file.namelist())
            if pattern.fullmatch(name)
        ]


_RECIPES: dict[str, Callable[..., list[str]]] = {
    "masc": lambda files: masc_lines(files[0]),
    "reviews": lambda files, first, last: review_lines(files[0], first, last),
    "treebank": treebank_lines,
    "copy": lambda files: files[0].read_text(encoding="utf-8").removesuffix("\n").split("\n"),
}
