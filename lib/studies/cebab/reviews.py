"""Reviews with aspect labels, and their edits: reading and checking CEBaB (arXiv 2205.14140).

`python -m lib.studies.cebab.reviews` downloads what is missing of the published files.
"""

import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from ...core.downloads import check_files, download_folder
from ...core.errors import TouchstoneError, check_choice
from ...core.files import read_json, write_atomic
from ...language.visible import HALF, is_visible

ASPECTS = ("food", "service", "ambiance", "noise")
VALUES = ("Negative", "unknown", "Positive")
NO_MAJORITY = "no majority"
NOT_ANNOTATED = ""  # nobody was asked; not the same as "unknown", where the text does not say
CELLS = (*VALUES, NO_MAJORITY, NOT_ANNOTATED)
RATINGS = ("1", "2", "3", "4", "5")
SPLITS = ("train", "dev", "test")
TRAIN_SETS = ("inclusive", "exclusive", "observational")
RATING_MAPS = {
    5: {1: 0, 2: 1, 3: 2, 4: 3, 5: 4},
    3: {1: 0, 2: 0, 3: 1, 4: 2, 5: 2},
    2: {1: 0, 2: 0, 4: 1, 5: 1},
}
_QUORUM = 3  # votes that make a majority

CEBAB_COMMIT = "40e6851"
CEBAB_URL = f"https://github.com/CEBaBing/CEBaB/raw/{CEBAB_COMMIT}/CEBaB-v1.1.zip"
CEBAB_SHA256 = {
    "dev.json": "cfd78bb3d2b7790275eba2f867a91b03b90a23aabdfd2e8970bfa93fbf23a70e",
    "test.json": "15ccbc4ff9682a026839d9a6d7f3d39a965b9da2433fc22b607fe9fb6d037679",
    "train_exclusive.json": "801da8e1d76fb03ec73e426106c8417f6b18afd089e283c09104acab3c7083dd",
    "train_inclusive.json": "7289f4f496dcc8394fb37747c1f383932037be030c6545925f7429e75d991c0b",
    "train_observational.json": "387e5a86509a7baa9d422fd10b118f5e3ad7f96e1afaeb30b92cb05e802eaff2",
}
_FIELDS = (
    "id",
    "original_id",
    "edit_id",
    "is_original",
    "edit_goal",
    "edit_type",
    "edit_worker",
    "description",
    "review_majority",
    "review_label_distribution",
    "review_workers",
    "opentable_metadata",
    *(
        f"{aspect}_aspect_{part}"
        for aspect in ASPECTS
        for part in ("majority", "label_distribution", "validation_workers")
    ),
)


def majority(votes: Mapping[str, int]) -> str:
    """The label with at least three votes and no rival; otherwise "no majority".

    >>> majority({"4": 3, "5": 2}), majority({"4": 2, "5": 2, "1": 1}), majority({"unknown": 7})
    ('4', 'no majority', 'unknown')
    """
    most = max(votes.values(), default=0)
    leading = [label for label, n in votes.items() if n == most]
    return leading[0] if most >= _QUORUM and len(leading) == 1 else NO_MAJORITY


def read_reviews(path: Path | str) -> pd.DataFrame:
    """Read a JSON array of CEBaB records, each checked field by field.

    Returns:
        One row a text: text_id, group (the original's id), is_original, edit_goal, edit_type,
        editor (missing on originals), text, rating (1 to 5, 0 for no majority), and the four
        aspects with one of CELLS.

    Raises:
        TouchstoneError: with file, record and remedy.
    """
    path = Path(path)
    if not path.is_file():
        raise TouchstoneError(
            f"{path} does not exist; run the stage that makes it, or "
            "`python -m lib.studies.cebab.reviews`"
        )
    records = read_json(path, "download it again")
    if not isinstance(records, list) or not records:
        raise TouchstoneError(
            f"{path} is not a JSON array of records; hand in one of the published files"
        )
    return texts_of(records, str(path))


def texts_of(records: Sequence[Any], source: str) -> pd.DataFrame:
    """Records as a table of texts, each checked field by field (see `read_reviews`)."""
    texts = pd.DataFrame(_row(record, f"{source}, record {i}") for i, record in enumerate(records))
    refuse_duplicates(texts, source)
    return texts


def read_cebab(folder: Path | str) -> pd.DataFrame:
    """CEBaB as one table.

    Returns:
        The columns of `read_reviews`, `split`, and for train `in_exclusive` and `in_observational`.

    Raises:
        TouchstoneError: a file is not as it should be (see `join_splits`).
    """
    folder = Path(folder)
    parts = {name.removesuffix(".json"): read_reviews(folder / name) for name in CEBAB_SHA256}
    return join_splits(parts, folder)


def join_splits(parts: Mapping[str, pd.DataFrame], folder: Path) -> pd.DataFrame:
    """One table of the five files' texts (see `read_cebab`).

    Raises:
        TouchstoneError: a smaller train set is not a subset of the inclusive one, record for
            record, or a group is in two splits.
    """
    files = {"train": "train_inclusive", "dev": "dev", "test": "test"}
    texts = pd.concat(
        [parts[file].assign(split=split) for split, file in files.items()], ignore_index=True
    )
    for name in TRAIN_SETS[1:]:
        subset = parts[f"train_{name}"]
        is_in = texts["text_id"].isin(subset["text_id"]) & (texts["split"] == "train")
        texts[f"in_{name}"] = is_in
        if not by_id(texts.loc[is_in, list(subset.columns)]).equals(by_id(subset)):
            raise TouchstoneError(
                f"{folder / f'train_{name}.json'} is no subset of train_inclusive.json; "
                "download both again"
            )
    check_texts(texts, str(folder))
    return texts


def by_id(texts: pd.DataFrame) -> pd.DataFrame:
    """A table of texts as strings, in the order of the ids: to compare two of them."""
    return texts.fillna("").astype(str).sort_values("text_id", ignore_index=True)


def check_texts(texts: pd.DataFrame, source: str) -> None:
    """Refuse double ids, unknown aspect values or ratings, and a group in two splits."""
    refuse_duplicates(texts, source)
    for column, cells in {**dict.fromkeys(ASPECTS, CELLS), "rating": range(6)}.items():
        wrong = texts[~texts[column].isin(cells)]
        if len(wrong):
            known = "1 to 5, or 0 for no majority" if column == "rating" else f"one of {cells}"
            raise TouchstoneError(
                f"{source}, text {wrong['text_id'].iloc[0]}: {column} is "
                f"{wrong[column].to_list()[0]!r}; write {known}"
            )
    n_splits = texts.groupby("group")["split"].nunique()
    if (n_splits > 1).any():
        raise TouchstoneError(
            f"{source}: group {n_splits.idxmax()} is in more than one split, so a model could be "
            "tested on edits of what it was trained on; keep all texts of a group together"
        )


def train_set(texts: pd.DataFrame, which: str) -> pd.DataFrame:
    """The train texts of a set (one of TRAIN_SETS) whose rating has a majority."""
    check_choice("the train set", which, TRAIN_SETS)
    train = texts[(texts["split"] == "train") & (texts["rating"] > 0)]
    return train if which == "inclusive" else train[train[f"in_{which}"]]


def rating_labels(ratings: Sequence[int], n_classes: int) -> Int[np.ndarray, "batch"]:
    """The class of each rating in the 5-, 3- or 2-way task, from 0; -1 where a rating has no class.

    3-way: {1, 2}, 3, {4, 5}. 2-way: {1, 2}, {4, 5}, so 3 has none. A rating without a majority (0)
    never has one.

    >>> rating_labels([1, 2, 3, 5, 0], 2).tolist()
    [0, 0, -1, 1, -1]
    """
    check_choice("n_classes", n_classes, RATING_MAPS)
    return np.array([RATING_MAPS[n_classes].get(int(rating), -1) for rating in ratings], dtype=int)


def in_classes(
    by_rating: Float[np.ndarray, "batch 5"], n_classes: int
) -> Float[np.ndarray, "batch class"]:
    """Probabilities of the five ratings, or effects on them, added up to the 5 or 3 classes.

    The 2-way task leaves out texts with three stars, so nothing adds up to it.

    >>> in_classes(np.array([[0.1, 0.2, 0.3, 0.15, 0.25]]), 3).round(2).tolist()
    [[0.3, 0.3, 0.4]]
    """
    if n_classes not in (5, 3):
        raise TouchstoneError(
            f"five ratings do not add up to {n_classes} classes; only the 5- and the 3-way task "
            "have them all"
        )
    return by_rating @ np.eye(n_classes)[[RATING_MAPS[n_classes][k] for k in range(1, 6)]]


def fetch_cebab(url: str = CEBAB_URL, folder: Path | None = None) -> Path:
    """The folder of the published CEBaB v1.1; what is missing is downloaded once.

    Args:
        url: of the archive.
        folder: by default `$TOUCHSTONE_DATA/cebab`, or the user's cache where that is not set.

    Raises:
        TouchstoneError: a file is not what its SHA-256 says, or a download fails.
    """
    folder = folder or download_folder("cebab")
    if missing := [name for name in CEBAB_SHA256 if not (folder / name).is_file()]:
        _download(url, folder, missing)
    check_files(folder, CEBAB_SHA256, CEBAB_COMMIT, "python -m lib.studies.cebab.reviews")
    return folder


def _download(url: str, folder: Path, names: Sequence[str]) -> None:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    try:
        with tempfile.TemporaryDirectory() as temporary:
            # Nobody states a checksum of the archive; its files are checked one by one.
            archive = pooch.retrieve(url, known_hash=None, path=temporary, fname="cebab.zip")
            with zipfile.ZipFile(archive) as files:
                inside = {Path(name).name: name for name in files.namelist()}
                for name in names:
                    write_atomic(folder / name, files.read(inside[name]))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise TouchstoneError(
            f"could not fetch {', '.join(names)} from {url} ({error}); put the files into {folder} "
            "by hand, or try again with a connection"
        ) from error


def _row(record: Any, where: str) -> dict[str, Any]:
    if not isinstance(record, dict) or (missing := [n for n in _FIELDS if n not in record]):
        fault = f"lacks {missing[0]!r}" if isinstance(record, dict) else "is no object"
        raise TouchstoneError(
            f"{where} {fault}; every record needs {', '.join(_FIELDS[:11])} and so on"
        )
    is_original, kind, words = (record[n] for n in ("is_original", "edit_type", "description"))
    ids = ("id", "original_id", "edit_id")
    no_text = next((name for name in ids if not isinstance(record[name], str)), "")
    for is_wrong, fault in (
        (no_text, f"{no_text} is {record.get(no_text)!r}; write text, in quotation marks"),
        (
            record["id"] != f"{record['original_id']}_{record['edit_id']}",
            f"id {record['id']!r} is not original_id and edit_id joined by _; correct one of them",
        ),
        (
            not isinstance(is_original, bool),
            f"is_original is {is_original!r}; write true or false, without quotation marks",
        ),
        (
            kind not in ((None, *ASPECTS) if is_original else ASPECTS),
            f"unknown edit_type {kind!r}; write one of {', '.join(ASPECTS)}",
        ),
        (
            not is_original and record["edit_goal"] not in VALUES,
            f"edit_goal is {record['edit_goal']!r}; write one of {', '.join(VALUES)}",
        ),
        (
            not isinstance(words, str) or not is_visible(words),
            "the description is empty; leave the record out",
        ),
        (
            isinstance(words, str) and HALF.search(words),
            "the description holds half a character (a lone surrogate); write the whole character",
        ),
    ):
        if is_wrong:
            raise TouchstoneError(f"{where}: {fault}")
    rating = _label_of(record, "review", RATINGS, f"{where}: review")
    # train_observational.json gives each original the goal of one of its edits
    return {
        "text_id": record["id"],
        "group": record["original_id"],
        "is_original": is_original,
        "edit_goal": None if is_original else record["edit_goal"],
        "edit_type": None if is_original else kind,
        "editor": None if is_original else record["edit_worker"],
        "text": words,
        "rating": 0 if rating == NO_MAJORITY else int(rating),
        **{a: _label_of(record, f"{a}_aspect", VALUES, f"{where}: {a}") for a in ASPECTS},
    }


def _label_of(record: Mapping[str, Any], part: str, known: Sequence[str], where: str) -> str:
    """The label, if it is a known one and what its votes say; an aspect may be not annotated."""
    label, votes = record[f"{part}_majority"], record[f"{part}_label_distribution"]
    for voted, n in votes.items() if isinstance(votes, dict) else ():
        if voted not in (*known, NO_MAJORITY) or type(n) is not int or n < 0:
            raise TouchstoneError(
                f"{where} votes hold {voted!r}: {n!r}; write a number of votes, 0 or more, for "
                f"each of {', '.join(known)}"
            )
    if label not in (*known, NO_MAJORITY) and not (label == NOT_ANNOTATED and known == VALUES):
        raise TouchstoneError(
            f"{where} majority is {label!r}; write one of {', '.join(known)}, {NO_MAJORITY}"
        )
    voted = majority(votes) if isinstance(votes, dict) else NOT_ANNOTATED
    if voted != label:
        raise TouchstoneError(
            f"{where} majority is {label!r}, but the votes {votes} say {voted!r}; make the two "
            "agree"
        )
    return label


def refuse_duplicates(texts: pd.DataFrame, source: str) -> None:
    """Refuse a table in which an id stands twice: joins by id would double its rows."""
    double = texts["text_id"][texts["text_id"].duplicated()]
    if len(double):
        raise TouchstoneError(
            f"{source}: text {double.iloc[0]!r} stands there twice; remove one of the two"
        )


if __name__ == "__main__":
    n_files = len(CEBAB_SHA256)
    print(f"CEBaB v1.1 (commit {CEBAB_COMMIT}, {n_files} files, SHA-256 checked): {fetch_cebab()}")
