"""Texts that the other rows have left, or somebody's own, in the place of ours."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from ...core.errors import TouchstoneError
from ...core.files import load_parquet
from ...core.paths import outputs_root
from ...core.stage import Stage, locate_external
from .items import swapped_rows

_FIRST = "01_data_generation"
_GECO = "non_binary_gender_all/train.jsonl"  # all gendered words, in the forms of three genders
# The same of somebody's own, in two forms: what differs only beside "they" is not altered.
_OWN = ("binary_gender_all/train.jsonl", "binary_gender_all/test.jsonl")
_TO_LEARN = 60  # sentences in both forms that a model learns from, at least (with 30 it does not)

_ENOUGH = 400  # sentences of somebody's own that are taken: a card should take minutes

Reader = Callable[[Path], pd.DataFrame]


def in_place_of(
    gendered: pd.DataFrame,
    reviews: pd.DataFrame,
    stage: Stage,
    texts_of: Mapping[str, str],
    n_reviews: Mapping[str, int],
    read_geco: Reader,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Gendered sentences and reviews: ours, or those that other rows have left.

    Args:
        gendered, reviews: ours.
        stage: that reads the files; it records them with their sums.
        texts_of: the scale of a row, by its name (geco, cebab), or for geco a folder that
            `touchstone dataset` made (a path, with a slash in it); rows that are not named keep
            ours.
        n_reviews: how many reviews of each split, at most.
        read_geco: the reader of GECO's format.

    Raises:
        TouchstoneError: a row's stage 01 was not run at that scale, or a folder has no such files.
    """
    left = {row: outputs_root() / row / of / _FIRST for row, of in texts_of.items()}
    if "/" in texts_of.get("geco", ""):
        gendered = own_texts(locate_external(texts_of["geco"]), read_geco, stage.external)
    elif "geco" in left:
        gendered = two_forms(read_geco(stage.external(left["geco"] / _GECO)))
    if "cebab" in left:
        texts = load_parquet(stage.external(left["cebab"] / "texts.parquet"))
        reviews = first_groups(texts, n_reviews)
    return gendered, reviews


def own_texts(
    folder: Path, read_geco: Reader, found: Callable[[Path], Path] = Path
) -> pd.DataFrame:
    """The sentences of a folder that `touchstone dataset` made, of both splits, in two forms: all,
    or of a large folder the first 400, half of them with at least three altered words if there are
    so many.

    Args:
        folder: with a data set in GECO's format for the classes female and male.
        read_geco: the reader of the format.
        found: is given each file first, and may record it.

    Raises:
        TouchstoneError: a file is missing.
    """
    files = [folder / name for name in _OWN]
    if missing := [file for file in files if not file.is_file()]:
        raise TouchstoneError(
            f"there is no {missing[0]}; name a folder that touchstone dataset made"
        )
    parts = [read_geco(found(file)) for file in files]
    for part in parts:
        part.attrs.clear()  # the faults are those of geco's stage 01
    rows = two_forms(pd.concat(parts, ignore_index=True))
    told = list(swapped_rows(rows)["sentence_idx"].unique()[: _ENOUGH // 2])
    others = rows.loc[~rows["sentence_idx"].isin(told), "sentence_idx"].unique()
    taken = {*told, *others[: _ENOUGH - len(told)]}
    return rows[rows["sentence_idx"].isin(taken)].reset_index(drop=True)


def check_texts(folder: Path, read_geco: Reader, longest: int, n_items: int) -> None:
    """Refuse a folder whose texts are too few, before anything runs.

    Args:
        folder, read_geco: of `own_texts`.
        longest: words of a sentence that is explained, at most.
        n_items: sentences that are explained.

    Raises:
        TouchstoneError: with the numbers of sentences that are needed and that are there.
    """
    rows = own_texts(folder, read_geco)
    explained = swapped_rows(rows[rows["sentence"].map(len) <= longest])["sentence_idx"].nunique()
    learnt = rows["sentence_idx"].nunique() - n_items
    if explained < n_items or learnt < _TO_LEARN:
        raise TouchstoneError(
            f"{folder} has {explained} sentences of at most {longest} words with three altered "
            f"words or more, and {rows['sentence_idx'].nunique()} in both forms; a card needs "
            f"{n_items} and {n_items + _TO_LEARN}: make the data set of more text about people"
        )


def two_forms(rows: pd.DataFrame) -> pd.DataFrame:
    """The female and the male form of sentences that have both, and as many words in each. Of a
    sentence that stands there twice the first is taken, or an item would be learnt from.

    Args:
        rows: of `read_geco`: row_id, sentence_idx, target (0 F, 1 M, 2 NB), sentence, ground_truth.
    """
    rows = rows[rows["target"].isin([0, 1])]
    by_sentence = rows.assign(n=rows["sentence"].map(len)).groupby("sentence_idx")
    is_whole = (by_sentence["target"].nunique() == 2) & (by_sentence["n"].nunique() == 1)
    rows = rows[rows["sentence_idx"].map(is_whole)]
    again = rows.loc[rows["sentence"].map(tuple).duplicated(), "sentence_idx"]
    return rows[~rows["sentence_idx"].isin(again)].reset_index(drop=True)


def first_groups(texts: pd.DataFrame, n_reviews: Mapping[str, int]) -> pd.DataFrame:
    """The first originals of each split with all their edits; texts without a rating are left out.

    Args:
        texts: of the row cebab's stage 01: dataset, split, group, is_original, rating (0: none).
        n_reviews: how many originals of each split, at most.
    """
    published = texts[(texts["dataset"] == "cebab") & (texts["rating"] > 0)]
    whole = published.loc[published["is_original"], "group"]  # an edit alone is no pair
    kept = [
        part["group"].isin(
            part.loc[part["group"].isin(whole), "group"].unique()[: n_reviews[split]]
        )
        for split, part in published.groupby("split", sort=False)
    ]
    return published[pd.concat(kept).reindex(published.index)].reset_index(drop=True)
