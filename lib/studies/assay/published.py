"""Texts that the other rows have left, in the place of ours."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from ...core.files import load_parquet
from ...core.paths import outputs_root
from ...core.stage import Stage

_GECO = "non_binary_gender_all/train.jsonl"  # all gendered words, in the forms of three genders


def in_place_of(
    gendered: pd.DataFrame,
    reviews: pd.DataFrame,
    stage: Stage,
    texts_of: Mapping[str, str],
    n_reviews: Mapping[str, int],
    read_geco: Callable[[Path], pd.DataFrame],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Gendered sentences and reviews: ours, or those that other rows have left.

    Args:
        gendered, reviews: ours.
        stage: that reads the files; it records them with their sums.
        texts_of: the scale of a row, by its name (geco, cebab); rows that are not named keep ours.
        n_reviews: how many reviews of each split, at most.
        read_geco: the reader of GECO's format.

    Raises:
        TouchstoneError: a row's stage 01 was not run at that scale.
    """
    left = {row: outputs_root() / row / of / "01_data_generation" for row, of in texts_of.items()}
    if "geco" in left:
        gendered = two_forms(read_geco(stage.external(left["geco"] / _GECO)))
    if "cebab" in left:
        texts = load_parquet(stage.external(left["cebab"] / "texts.parquet"))
        reviews = first_groups(texts, n_reviews)
    return gendered, reviews


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
