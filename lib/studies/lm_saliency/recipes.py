"""How the text corpora of lm_saliency are made from what was published: archive or treebank in,
lines out; and WikiText, which is read as it is.

The table of sources (`material/sources.yaml`, `lib.language.corpora`) names for each corpus a
`recipe` ("masc", "reviews FIRST LAST", "treebank" or "copy") and where the recipe starts: `files`
below TOUCHSTONE_DATA, or a download with its `url` and `checksum`.
"""

import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ...core.downloads import download, download_folder
from ...core.errors import TouchstoneError, check_choice
from ...core.files import write_atomic
from ...core.paths import data_root
from ...language.conllu import read_conllu
from ...language.corpora import Source, lines_sha256, read_lines

WIKITEXT_URL = "https://s3.amazonaws.com/research.metamind.io/wikitext"
WIKITEXT_SHA256 = {  # of <name>-v1.zip, as public repositories state them; never fetched by us
    "wikitext-2": "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
    "wikitext-103": "242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
}


def masc_lines(archive: Path) -> list[str]:
    """The written part of MASC (Ide et al. 2010) as word_TAG, a sentence a line, files by name.

    Args:
        archive: NLTK's `masc_tagged.zip`.
    """
    texts = _members(archive, r"masc_tagged/written/.+\.txt")
    if not texts:
        raise TouchstoneError(
            f"{archive} holds no masc_tagged/written/*.txt; delete it and try again"
        )
    return [" ".join(line.split()) for text in texts for line in text.split("\n") if line.strip()]


def review_lines(archive: Path, first: int, last: int) -> list[str]:
    """Movie reviews (Pang and Lee 2004, polarity 2.0), those of the negative class first.

    Args:
        archive: NLTK's `movie_reviews.zip`.
        first: number of the first review of each class, 0 for `cv000`.
        last: number of the last one.

    Returns:
        A sentence a line, and an empty line after each review.

    Raises:
        TouchstoneError: a review is missing.
    """
    numbers = "|".join(f"{i:03d}" for i in range(first, last + 1))
    reviews = [
        review
        for sentiment in ("neg", "pos")
        for review in _members(archive, rf"movie_reviews/{sentiment}/cv({numbers})_\d+\.txt")
    ]
    n_expected = 2 * (last - first + 1)
    if len(reviews) != n_expected:
        raise TouchstoneError(
            f"{archive} holds {len(reviews)} of the {n_expected} reviews cv{first:03d} to "
            f"cv{last:03d} of both classes; delete it and try again"
        )
    lines = []
    for review in reviews:
        lines += [" ".join(line.split()) for line in review.split("\n") if line.strip()] + [""]
    return lines


def treebank_lines(files: Iterable[Path]) -> list[str]:
    """The sentences of CoNLL-U files as word_TAG, in order."""
    return [
        " ".join(f"{row.form}_{row.xpos}" for row in tree.rows)
        for file in files
        for tree in read_conllu(file)
    ]


def build_corpus(name: str, sources: Mapping[str, Source]) -> Path:
    """A corpus of the table below TOUCHSTONE_DATA: what lies there, else made by its recipe, once.

    What is made must hold the lines that the study was made with (`lines_sha256`); their order
    may be another one.

    Raises:
        TouchstoneError: TOUCHSTONE_DATA is not set, a source cannot be had, or other lines come
            out.
    """
    about, root = sources[name], data_root()
    if root is None:
        raise TouchstoneError(
            f"{name} is made from {about['source']}; set TOUCHSTONE_DATA to the folder of downloads"
        )
    path = root / name
    if not path.exists():
        recipe, *bounds = about["recipe"].split()
        lines = _RECIPES[recipe](_origins(about, root), *map(int, bounds))
        # A source may have changed since, so what comes out is compared before it is kept.
        sha256, expected = lines_sha256(lines), about["lines_sha256"]
        if sha256 != expected:
            raise TouchstoneError(
                f"{name}, made from {about['source']}, has other lines than this study read "
                f"({len(lines)} lines, SHA-256 when sorted {sha256[:12]}..., expected "
                f"{expected[:12]}...); the source has changed: look for the commit that "
                "sources.yaml names"
            )
        write_atomic(path, "".join(f"{line}\n" for line in lines))
    return path


def fetch_wikitext(name: str, base_url: str = WIKITEXT_URL) -> Path:
    """The training text of WikiText (Merity et al. 2017), downloaded once and checked by SHA-256.

    Args:
        name: "wikitext-2" or "wikitext-103".
        base_url: where `<name>-v1.zip` lies; the archive is kept in the folder of downloads.

    Raises:
        TouchstoneError: another name, a download that fails or is not what it should be, an
            archive without the training text.
    """
    check_choice("wikitext", name, WIKITEXT_SHA256)
    folder = download_folder("wikitext")
    archive, member = folder / f"{name}-v1.zip", f"{name}/wiki.train.tokens"
    download(f"{base_url}/{archive.name}", WIKITEXT_SHA256[name], archive)
    with zipfile.ZipFile(archive) as file:
        if member not in file.namelist():
            raise TouchstoneError(f"{archive} holds no {member}; delete it and try again")
        if not (folder / member).is_file():
            file.extract(member, folder)
    return folder / member


def _origins(about: Source, root: Path) -> list[Path]:
    """The files that a recipe starts from: those of other entries, or one checked download."""
    if "files" in about:
        origins = [root / file for file in about["files"]]
        if missing := [file for file in origins if not file.is_file()]:
            raise TouchstoneError(
                f"there is no {missing[0]}; it comes from {about['source']}; put it there"
            )
        return origins
    target = root / "downloads" / about["url"].rpartition("/")[2]
    if not target.is_file():
        download(about["url"], about["checksum"], target)
    return [target]


def _members(archive: Path, pattern: str) -> list[str]:
    """The texts of the members of an archive whose whole name fits a pattern, by name."""
    with zipfile.ZipFile(archive) as file:
        return [
            file.read(name).decode("utf-8")
            for name in sorted(file.namelist())
            if re.fullmatch(pattern, name)
        ]


_RECIPES: dict[str, Callable[..., list[str]]] = {
    "masc": lambda files: masc_lines(files[0]),
    "reviews": lambda files, first, last: review_lines(files[0], first, last),
    "treebank": treebank_lines,
    "copy": lambda files: read_lines(files[0]),
}
