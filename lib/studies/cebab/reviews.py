"""Reviews with aspect labels, and their edits: reading and checking CEBaB (arXiv 2205.14140), its majority rules and labels."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from lib.core.downloads import check_files, download_folder
from lib.core.errors import TouchstoneError
from lib.core.files import write_atomic

ASPECTS = ("food", "service", "ambiance", "noise")
VALUES = ("Negative", "unknown", "Positive")
NO_MAJORITY = "no majority"
NOT_ANNOTATED = ""  # nobody was asked; not the same as "unknown", where the text does not say
CELLS = (*VALUES, NO_MAJORITY, NOT_ANNOTATED)
RATINGS = ("1", "2", "3", "4", "5")
SPLITS = ("train", "dev", "test")
TRAIN_SETS = ("inclusive", "exclusive", "observational")
QUORUM = 3  # votes that make a majority
RATING_MAPS = {
    5: {1: 0, 2: 1, 3: 2, 4: 3, 5: 4},
    3: {1: 0, 2: 0, 3: 1, 4: 2, 5: 2},
    2: {1: 0, 2: 0, 4: 1, 5: 1},
}

CEBAB_COMMIT = "40e6851"
CEBAB_URL = f"https://github.com/CEBaBing/CEBaB/raw/{CEBAB_COMMIT}/CEBaB-v1.1.zip"
CEBAB_SHA256 = {
    "dev.json": "cfd78bb3d2b7790275eba2f867a91b03b90a23aabdfd2e8970bfa93fbf23a70e",
    "test.json": "15ccbc4ff9682a026839d9a6d7f3d39a965b9da2433fc22b607fe9fb6d037679",
    "train_exclusive.json": "801da8e1d76fb03ec73e426106c8417f6b18afd089e283c09104acab3c7083dd",
    "train_inclusive.json": "7289f4f496dcc8394fb37747c1f383932037be030c6545925f7429e75d991c0b",
    "train_observational.json": "387e5a86509a7baa9d422fd10b118f5e3ad7f96e1afaeb30b92cb05e802eaff2",
}
CEBAB_ROWS = "f14276cc45a00278e548bc84e113c729385c28746e2502e80117132a1431901f"  # of what `read_cebab` reads of them
HUB = "CEBaB/CEBaB"
HUB_REVISION = "refs/convert/parquet"  # the hub's own copy of a data set, as Parquet
FIELDS = (
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
    """The label with the most votes if it has at least three of them and no rival; otherwise "no majority".

    >>> majority({"4": 3, "5": 2}), majority({"4": 2, "5": 2, "1": 1}), majority({"unknown": 7, "Positive": 3})
    ('4', 'no majority', 'unknown')
    """
    most = max(votes.values(), default=0)
    leading = [label for label, n in votes.items() if n == most]
    return leading[0] if most >= QUORUM and len(leading) == 1 else NO_MAJORITY


def read_reviews(path: Path | str) -> pd.DataFrame:
    """Read a JSON array of CEBaB records, each checked field by field; one row a text.

    Columns: text_id, group (the original's id), is_original, edit_goal, edit_type, editor (missing on originals), text, rating
    (1 to 5, 0 for no majority), and the four aspects with one of CELLS. Raises TouchstoneError naming file, record, remedy.
    Originals have no edit, whatever the file says: train_observational.json gives each the goal of one of its edits.
    """
    path = Path(path)
    if not path.is_file():
        raise TouchstoneError(
            f"{path} does not exist; run the stage that makes it, or `python -m lib.studies.cebab.reviews`"
        )
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise TouchstoneError(f"{path} is not valid JSON ({error}); download it again") from None
    if not isinstance(records, list) or not records:
        raise TouchstoneError(
            f"{path} is not a JSON array of records; hand in one of the published files"
        )
    rows = [_row(record, f"{path}, record {i}") for i, record in enumerate(records)]
    texts = pd.DataFrame(rows)
    _refuse_duplicates(texts, str(path))
    return texts


def read_cebab(folder: Path | str) -> pd.DataFrame:
    """CEBaB as one table: the columns of `read_reviews`, `split`, and for train `in_exclusive` and `in_observational`.

    The two smaller train sets must be subsets of the inclusive one, record for record, and no group may be in two splits.
    """
    folder = Path(folder)
    return _joined(
        {name.removesuffix(".json"): read_reviews(folder / name) for name in CEBAB_SHA256}, folder
    )


def read_hub(folder: Path | str) -> pd.DataFrame:
    """The same table from the Parquet files of the Hugging Face hub (`fetch_hub`), one or more for each of the hub's splits.

    Every record is checked as those of the release are. A hub can change: raises TouchstoneError where what is read is not
    what the files of the release hold, text by text and label by label.
    """
    folder, parts = Path(folder), {}
    for name in (file.removesuffix(".json") for file in CEBAB_SHA256):
        split = "validation" if name == "dev" else name
        files = sorted(
            p
            for p in folder.rglob("*.parquet")
            if p.parent.name == split or p.name.startswith(f"{split}-")
        )
        if not files:
            raise TouchstoneError(
                f"{folder} holds no Parquet file of {split}; delete the folder and fetch the data set again"
            )
        rows = [record for file in files for record in pd.read_parquet(file).to_dict("records")]
        parts[name] = pd.DataFrame(
            [
                _row(*_as_published(record, f"{folder}, {split}, record {i}"))
                for i, record in enumerate(rows)
            ]
        )
        _refuse_duplicates(parts[name], f"{folder}, {split}")
    whole = _joined(parts, folder)
    if rows_sha256(whole) != CEBAB_ROWS:
        raise TouchstoneError(
            f"{folder} holds other texts or labels than CEBaB v1.1 (commit {CEBAB_COMMIT}); take the published files: "
            'data_source = "cebab"'
        )
    return whole


def rows_sha256(texts: pd.DataFrame) -> str:
    """The SHA-256 of a table of texts, in whatever order its rows and columns come."""
    return hashlib.sha256(
        _by_id(texts)[sorted(texts)].to_csv(index=False, lineterminator="\n").encode()
    ).hexdigest()


def _joined(parts: Mapping[str, pd.DataFrame], folder: Path) -> pd.DataFrame:
    whole = pd.concat(
        [
            parts["train_inclusive"].assign(split="train"),
            parts["dev"].assign(split="dev"),
            parts["test"].assign(split="test"),
        ],
        ignore_index=True,
    )
    for name in TRAIN_SETS[1:]:
        subset = parts[f"train_{name}"]
        whole[f"in_{name}"] = whole["text_id"].isin(subset["text_id"]) & (whole["split"] == "train")
        same = whole.loc[whole[f"in_{name}"], list(subset.columns)]
        if not _by_id(same).equals(_by_id(subset)):
            raise TouchstoneError(
                f"{folder / f'train_{name}.json'} is no subset of train_inclusive.json; "
                "download both again"
            )
    check_texts(whole, str(folder))
    return whole


def check_texts(texts: pd.DataFrame, source: str) -> None:
    """Refuse a table of texts with duplicate ids, unknown aspect values or ratings, or a group in two splits."""
    _refuse_duplicates(texts, source)
    for aspect in ASPECTS:
        wrong = texts[~texts[aspect].isin(CELLS)]
        if len(wrong):
            raise TouchstoneError(
                f"{source}, text {wrong['text_id'].iloc[0]}: {aspect} is {wrong[aspect].iloc[0]!r}; "
                f"write {', '.join(map(repr, CELLS))}"
            )
    wrong = texts[~texts["rating"].isin(range(6))]
    if len(wrong):
        raise TouchstoneError(
            f"{source}, text {wrong['text_id'].iloc[0]}: rating is {wrong['rating'].iloc[0]}; "
            "write 1 to 5, or 0 for no majority"
        )
    splits = texts.groupby("group")["split"].nunique()
    if (splits > 1).any():
        raise TouchstoneError(
            f"{source}: group {splits.idxmax()} is in more than one split, so a model could be tested on "
            "edits of what it was trained on; keep all texts of a group together"
        )


def train_set(texts: pd.DataFrame, which: str) -> pd.DataFrame:
    """The train texts of a set (inclusive, exclusive, observational) whose rating has a majority."""
    if which not in TRAIN_SETS:
        raise TouchstoneError(
            f"there is no train set {which!r}; choose one of {', '.join(TRAIN_SETS)}"
        )
    train = texts[(texts["split"] == "train") & (texts["rating"] > 0)]
    return train if which == "inclusive" else train[train[f"in_{which}"]]


def rating_labels(ratings: Sequence[int], n_classes: int) -> Int[np.ndarray, "batch"]:
    """The class of each rating in the 5-, 3- or 2-way task, counted from 0; -1 where a rating has no class.

    3-way: {1, 2}, 3, {4, 5}. 2-way: {1, 2}, {4, 5}, so 3 has none. A rating without a majority (0) never has one.

    >>> rating_labels([1, 2, 3, 5, 0], 2).tolist()
    [0, 0, -1, 1, -1]
    """
    if n_classes not in RATING_MAPS:
        raise TouchstoneError(f"there is no {n_classes}-way task; choose 5, 3 or 2")
    return np.array([RATING_MAPS[n_classes].get(int(rating), -1) for rating in ratings], dtype=int)


def in_classes(
    by_rating: Float[np.ndarray, "batch 5"], n_classes: int
) -> Float[np.ndarray, "batch class"]:
    """Probabilities of the five ratings, or effects on them, added up to the classes of the 5- or 3-way task.

    The 2-way task leaves out texts with three stars, so nothing adds up to it.

    >>> in_classes(np.array([[0.1, 0.2, 0.3, 0.15, 0.25]]), 3).round(2).tolist()
    [[0.3, 0.3, 0.4]]
    """
    if n_classes not in (5, 3):
        raise TouchstoneError(
            f"five ratings do not add up to {n_classes} classes; only the 5- and the 3-way task have them all"
        )
    return by_rating @ np.eye(n_classes)[[RATING_MAPS[n_classes][k] for k in range(1, 6)]]


def fetch_cebab(url: str = CEBAB_URL, folder: Path | None = None) -> Path:
    """The folder of the published CEBaB v1.1, each file checked against its SHA-256; what is missing is downloaded once.

    The folder is `$TOUCHSTONE_DATA/cebab`, or the user's cache where that is not set. Raises TouchstoneError for a file
    that is not what its SHA-256 says, and for a download that fails.
    """
    folder = folder or download_folder("cebab")
    if missing := [name for name in CEBAB_SHA256 if not (folder / name).is_file()]:
        _download(url, folder, missing)
    check_files(folder, CEBAB_SHA256, CEBAB_COMMIT, "python -m lib.studies.cebab.reviews")
    return folder


def fetch_hub(repository: str = HUB, revision: str = HUB_REVISION) -> Path:
    """The folder of a data set's Parquet files from the Hugging Face hub, kept in the hub's own cache. What is in them `read_hub` checks."""
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                repository, repo_type="dataset", revision=revision, allow_patterns="*.parquet"
            )
        )
    except (OSError, ValueError) as error:
        raise TouchstoneError(
            f"could not fetch {repository} from the Hugging Face hub ({type(error).__name__}); try again with a "
            'connection, or take the published files: data_source = "cebab"'
        ) from error


def _download(url: str, folder: Path, names: Sequence[str]) -> None:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    try:
        with tempfile.TemporaryDirectory() as temporary:
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
    if not isinstance(record, dict) or (missing := [name for name in FIELDS if name not in record]):
        lacking = f"lacks {missing[0]!r}" if isinstance(record, dict) else "is no object"
        raise TouchstoneError(
            f"{where} {lacking}; every record needs {', '.join(FIELDS[:11])} and so on"
        )
    if record["id"] != f"{record['original_id']}_{record['edit_id']}":
        raise TouchstoneError(
            f"{where}: id {record['id']!r} is not original_id and edit_id joined by _; correct one of them"
        )
    if record["edit_type"] not in ((None, *ASPECTS) if record["is_original"] else ASPECTS):
        raise TouchstoneError(
            f"{where}: unknown edit_type {record['edit_type']!r}; write one of {', '.join(ASPECTS)}"
        )
    goal, kind, editor = (
        None if record["is_original"] else record[f"edit_{part}"]
        for part in ("goal", "type", "worker")
    )
    if not isinstance(record["description"], str) or not record["description"].strip():
        raise TouchstoneError(f"{where}: the description is empty; leave the record out")
    rating = _checked(
        record["review_majority"], record["review_label_distribution"], RATINGS, f"{where}: review"
    )
    cells = {
        aspect: _checked(
            record[f"{aspect}_aspect_majority"],
            record[f"{aspect}_aspect_label_distribution"],
            VALUES,
            f"{where}: {aspect}",
        )
        for aspect in ASPECTS
    }
    return {
        "text_id": record["id"],
        "group": record["original_id"],
        "is_original": record["is_original"],
        "edit_goal": goal,
        "edit_type": kind,
        "editor": editor,
        "text": record["description"],
        "rating": 0 if rating == NO_MAJORITY else int(rating),
        **cells,
    }


def _as_published(record: Mapping[str, Any], where: str) -> tuple[dict[str, Any], str]:
    """A record of the hub as the release has it: votes as a dictionary of what was voted for, missing cells None, or "" for an aspect."""
    found = {
        str(name): None if isinstance(cell, float) and np.isnan(cell) else cell
        for name, cell in record.items()
    }
    for name, cell in found.items():
        if name.endswith("_label_distribution"):
            try:
                votes = (
                    json.loads(cell.replace("'", '"').replace("None", "null"))
                    if isinstance(cell, str) and cell
                    else cell or {}
                )
                found[name] = {
                    label: int(n) for label, n in votes.items() if n is not None and n == n
                } or NOT_ANNOTATED
            except (ValueError, AttributeError):
                raise TouchstoneError(
                    f"{where}: {name} is {cell!r}; votes are a number for each label"
                ) from None
        elif "_aspect_" in name and cell is None:
            found[name] = NOT_ANNOTATED
    return found, where


def _checked(label: str, votes: Any, known: Sequence[str], where: str) -> str:
    """The label, if it is a known one and what its votes say; an aspect without votes is "not annotated"."""
    if label not in (*known, NO_MAJORITY) and not (label == NOT_ANNOTATED and known == VALUES):
        raise TouchstoneError(
            f"{where} majority is {label!r}; write one of {', '.join(known)}, {NO_MAJORITY}"
        )
    said = majority(votes) if isinstance(votes, dict) else NOT_ANNOTATED
    if said != label:
        raise TouchstoneError(
            f"{where} majority is {label!r}, but the votes {votes} say {said!r}; make the two agree"
        )
    return label


def _by_id(texts: pd.DataFrame) -> pd.DataFrame:
    return texts.fillna("").astype(str).sort_values("text_id", ignore_index=True)


def _refuse_duplicates(texts: pd.DataFrame, source: str) -> None:
    twice = texts["text_id"][texts["text_id"].duplicated()]
    if len(twice):
        raise TouchstoneError(
            f"{source}: text {twice.iloc[0]!r} stands there twice; remove one of the two"
        )


if __name__ == "__main__":
    print(
        f"CEBaB v1.1 (commit {CEBAB_COMMIT}, {len(CEBAB_SHA256)} files, SHA-256 checked): {fetch_cebab()}"
    )
