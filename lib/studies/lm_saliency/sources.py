"""The published files of lm_saliency: where they lie, where they come from, and whether they are what they should be."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import yaml

from lib.core.errors import TouchstoneError, did_you_mean
from lib.core.files import sha256_of, sha256_of_tree
from lib.core.paths import data_root, material
from lib.studies.geco.corpus import download
from lib.studies.lm_saliency.corpora import lines_sha256
from lib.studies.lm_saliency.text import read_plain, read_tagged

Tagged = list[tuple[str, str]]
WIKITEXT_URL = "https://s3.amazonaws.com/research.metamind.io/wikitext"
WIKITEXT_SHA256 = {  # of <name>-v1.zip; as several public repositories state them. We have never fetched the files.
    "wikitext-2": "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
    "wikitext-103": "242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
}


def read_sources(path: Path | None = None) -> dict[str, dict[str, Any]]:
    """What `material/sources.yaml` says of each file or folder: source, commit, licence and SHA-256."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(
        (path or material("lm_saliency") / "sources.yaml").read_text()
    )
    return found


def source_path(name: str, sources: dict[str, dict[str, Any]]) -> Path:
    """A file (or folder) below TOUCHSTONE_DATA by its name in sources.yaml, checked against its SHA-256.

    A corpus may hold its lines in another order (`lines_sha256`): one that was made again may. Raises TouchstoneError where
    the variable is not set, the file is missing, or it is another one.
    """
    about, root = sources[name], data_root()
    origin = f"it comes from {about['source']} (commit {about['commit']}, {about['licence']})"
    if root is None:
        raise TouchstoneError(
            f"data_source published reads {name}; set TOUCHSTONE_DATA to the folder of downloads; {origin}"
        )
    path = root / name
    if not path.exists():
        raise TouchstoneError(f"there is no {path}; {origin}; put it there, as {about['made']}")
    found = sha256_of_tree(path) if path.is_dir() else sha256_of(path)
    if found != about["sha256"] and not _has_the_lines(path, about):
        raise TouchstoneError(
            f"{path} is not the file that this study was made with (SHA-256 {found[:12]}..., expected "
            f"{about['sha256'][:12]}...); {origin}; fetch it again"
        )
    return path


def _has_the_lines(path: Path, about: dict[str, Any]) -> bool:
    return (
        path.is_file()
        and "lines_sha256" in about
        and about["lines_sha256"]
        == lines_sha256(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
    )


def published_corpus(sources: dict[str, dict[str, Any]]) -> list[Tagged]:
    """The sentences of every corpus in sources.yaml in order; words of corpora without tags carry the tag ""."""
    sentences: list[Tagged] = []
    for name, about in sources.items():
        if about["use"] == "tagged corpus":
            sentences += read_tagged(source_path(name, sources))
        elif about["use"] == "plain corpus":
            sentences += [
                [(word, "") for word in words] for words in read_plain(source_path(name, sources))
            ]
    return sentences


def fetch_wikitext(name: str, base_url: str = WIKITEXT_URL) -> Path:
    """The training text of wikitext-2 or wikitext-103 (Merity et al. 2017), downloaded once and checked by SHA-256.

    The archive is kept in `$TOUCHSTONE_DATA/wikitext` (else in the user's cache). Raises TouchstoneError for another
    name, a download that fails or is not what it should be, and an archive without the training text.
    """
    import pooch  # here, so that only a run with this corpus pays for the import

    if name not in WIKITEXT_SHA256:
        raise TouchstoneError(
            f"wikitext is {name!r}{did_you_mean(name, WIKITEXT_SHA256)}; write one of "
            f"{', '.join(WIKITEXT_SHA256)}, or nothing"
        )
    folder = (data_root() or Path(pooch.os_cache("touchstone"))) / "wikitext"
    archive, inside = folder / f"{name}-v1.zip", f"{name}/wiki.train.tokens"
    download(f"{base_url}/{archive.name}", WIKITEXT_SHA256[name], archive)
    with zipfile.ZipFile(archive) as file:
        if inside not in file.namelist():
            raise TouchstoneError(f"{archive} holds no {inside}; delete it and try again")
        if not (folder / inside).is_file():
            file.extract(inside, folder)
    return folder / inside


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
