"""The published files of lm_saliency: where they lie, where they come from, and whether they are what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lib.errors import TouchstoneError
from lib.lm_text import read_plain, read_tagged
from lib.paths import data_root, material
from lib.store import sha256_of, sha256_of_tree

Tagged = list[tuple[str, str]]


def read_sources(path: Path | None = None) -> dict[str, dict[str, Any]]:
    """What `material/sources.yaml` says of each file or folder: source, commit, licence and SHA-256."""
    found: dict[str, dict[str, Any]] = yaml.safe_load((path or material("lm_saliency") / "sources.yaml").read_text())
    return found


def source_path(name: str, sources: dict[str, dict[str, Any]]) -> Path:
    """A file (or folder) below TOUCHSTONE_DATA by its name in sources.yaml, checked against its SHA-256.

    Raises TouchstoneError where the variable is not set, the file is missing, or it is another one.
    """
    about, root = sources[name], data_root()
    origin = f"it comes from {about['source']} (commit {about['commit']}, {about['licence']})"
    if root is None:
        raise TouchstoneError(f"data_source published reads {name}; set TOUCHSTONE_DATA to the folder of downloads; {origin}")
    path = root / name
    if not path.exists():
        raise TouchstoneError(f"there is no {path}; {origin}; put it there, as {about['made']}")
    found = sha256_of_tree(path) if path.is_dir() else sha256_of(path)
    if found != about["sha256"]:
        raise TouchstoneError(f"{path} is not the file that this study was made with (SHA-256 {found[:12]}..., expected "
                              f"{about['sha256'][:12]}...); {origin}; fetch it again")
    return path


def published_corpus(sources: dict[str, dict[str, Any]]) -> list[Tagged]:
    """The sentences of every corpus in sources.yaml in order; words of corpora without tags carry the tag ""."""
    sentences: list[Tagged] = []
    for name, about in sources.items():
        if about["use"] == "tagged corpus":
            sentences += read_tagged(source_path(name, sources))
        elif about["use"] == "plain corpus":
            sentences += [[(word, "") for word in words] for words in read_plain(source_path(name, sources))]
    return sentences


def without_prefixes(sentences: list[Tagged], prefixes: list[list[str]]) -> list[Tagged]:
    """The sentences that do not begin with any of the prefixes (in small letters): test lines stay out of training."""
    taken = {tuple(word.lower() for word in prefix) for prefix in prefixes}
    lengths = sorted({len(prefix) for prefix in taken})
    kept = []
    for sentence in sentences:
        words = tuple(word.lower() for word, _ in sentence)
        if not any(words[:n] in taken for n in lengths if n <= len(words)):
            kept.append(sentence)
    return kept
