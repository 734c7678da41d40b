"""Published text corpora: files named in a table of sources, checked, and read as tagged sentences.

A table of sources (YAML) maps the name of a file or folder below TOUCHSTONE_DATA to what is known
of it: `source`, `commit`, `licence`, `made` (what was done to the source), `use` ("tagged corpus":
`word_TAG word_TAG`, a sentence a line; "plain corpus": words; anything else is no text), `sha256`,
and for a corpus also `lines_sha256`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import TouchstoneError
from ..core.files import read_text, read_yaml, sha256_of, sha256_of_tree
from ..core.paths import data_root

Source = Mapping[str, Any]
Tagged = list[tuple[str, str]]  # the words of a sentence with their tags


def read_sources(path: Path | str) -> dict[str, Source]:
    """The entries of a table of sources by name, in its order."""
    return dict(read_yaml(path))


def source_path(name: str, sources: Mapping[str, Source]) -> Path:
    """A file (or folder) below TOUCHSTONE_DATA by its name in a table of sources, checked.

    It must have the SHA-256 of its entry, or the same lines in another order (`lines_sha256`): a
    corpus that was made again may have those.

    Raises:
        TouchstoneError: TOUCHSTONE_DATA is not set, the file is missing, or it is another one.
    """
    about, root = sources[name], data_root()
    origin = f"it comes from {about['source']} (commit {about['commit']}, {about['licence']})"
    if root is None:
        raise TouchstoneError(
            f"data_source published reads {name}; set TOUCHSTONE_DATA to the folder of downloads; "
            f"{origin}"
        )
    path = root / name
    if not path.exists():
        raise TouchstoneError(f"there is no {path}; {origin}; put it there, as {about['made']}")
    sha256 = sha256_of_tree(path) if path.is_dir() else sha256_of(path)
    lines = about.get("lines_sha256")
    if sha256 != about["sha256"] and not (lines and lines == lines_sha256(read_lines(path))):
        raise TouchstoneError(
            f"{path} is not the file that this study was made with (SHA-256 {sha256[:12]}..., "
            f"expected {about['sha256'][:12]}...); {origin}; fetch it again"
        )
    return path


def read_lines(path: Path | str) -> list[str]:
    """The lines of a text file, the empty ones too."""
    return read_text(path).removesuffix("\n").split("\n")


def lines_sha256(lines: Sequence[str]) -> str:
    """The SHA-256 of lines in the order of their bytes: the same for the same lines in any order.

    >>> lines_sha256(["b", "a"]) == lines_sha256(["a", "b"])
    True
    """
    ordered = sorted(line.encode() for line in lines)
    return hashlib.sha256(b"".join(line + b"\n" for line in ordered)).hexdigest()


def published_corpus(sources: Mapping[str, Source]) -> list[Tagged]:
    """The sentences of all corpora of a table in its order; without tags a word's tag is ""."""
    sentences: list[Tagged] = []
    for name, about in sources.items():
        if about["use"] == "tagged corpus":
            sentences += read_tagged(source_path(name, sources))
        elif about["use"] == "plain corpus":
            sentences += [
                [(word, "") for word in words] for words in read_plain(source_path(name, sources))
            ]
    return sentences


def read_tagged(path: Path | str) -> list[Tagged]:
    """The sentences of a tagged corpus, one a line; empty lines are left out."""
    lines = read_text(path).splitlines()
    sentences = [
        split_tagged(line, f"{path}, line {i}")
        for i, line in enumerate(lines, start=1)
        if line.strip()
    ]
    return _not_empty(sentences, path)


def split_tagged(line: str, where: str = "the line") -> Tagged:
    """The (word, tag) pairs of a line `word_TAG word_TAG`; a token's last underscore separates.

    Raises TouchstoneError, beginning with `where`, for a token without a tag. A published corpus
    has a tag without a word, which stays an empty word.

    >>> split_tagged("snake_case_NN is_VBZ")
    [('snake_case', 'NN'), ('is', 'VBZ')]
    """
    pairs = [token.rpartition("_") for token in line.split()]
    if untagged := [word + mark or tag for word, mark, tag in pairs if not (mark and tag)]:
        raise TouchstoneError(f"{where}: {untagged[0]!r} has no tag; write word_TAG")
    return [(word, tag) for word, _, tag in pairs]


def read_plain(path: Path | str) -> list[list[str]]:
    """The words of the lines of a corpus without tags; empty lines and WikiText's headings go."""
    sentences = map(str.split, read_text(path).splitlines())
    return _not_empty([words for words in sentences if words and words[0] != "="], path)


def _not_empty(sentences: list[Any], path: Path | str) -> list[Any]:
    if not sentences:
        raise TouchstoneError(f"{path} holds no sentence; write one a line, or leave the file out")
    return sentences
