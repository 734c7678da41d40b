"""Many explanations at once: all measures in one table, the rows that count, and comparisons
between models.

A table of scored explanations has a line per dataset, scheme, seed, method and row_id.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..attribution.registry import METHODS
from ..attribution.table import LARGEST, are_finite, rows_explained
from ..core.errors import TouchstoneError
from .mass_accuracy import (
    METRICS,
    chance_normalised_mass_accuracy,
    padded,
    relative_mass_accuracy,
    truth_share,
)

FLOORS = tuple(name for name, method in METHODS.items() if method.family == "floor")
ROW_SETS = ("all", "correct_by_model", "correct_by_all")
_MODEL = ["dataset", "scheme", "seed"]
_CHUNK = 4096  # sentences scored together: some measures need chunk x words x words numbers at once


def score_explanations(explanations: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Every measure of `METRICS` for every explanation.

    Args:
        explanations: in the repository's explanation format (one score per word).
        rows: row_id and ground_truth of the explained data, with a column dataset where there
            are several, and, where known, token_counts (sub-words per word); sentence,
            sentence_idx and target, where they are there, must be those of the explanations.

    Returns:
        One line per explanation: dataset, scheme, seed, method, row_id, sentence_idx, target,
        share (what noise would reach), one column per measure, MA_chance_normalised, share_of
        ("tokens" or "words").

    Raises:
        TouchstoneError: for an unknown row, one that does not say what the explanation says of it,
            a length that does not fit, or a score that is not finite.
    """
    counts = ["token_counts"] if "token_counts" in rows else []
    explanations = explanations.reset_index(drop=True)
    explained = rows_explained(explanations, rows)
    joined = explanations.assign(**explained[["ground_truth", *counts]])
    _check(joined)
    about = joined[[*_MODEL, "method", "row_id", "sentence_idx", "target"]]
    parts = [_measure(joined.iloc[i : i + _CHUNK]) for i in range(0, len(joined), _CHUNK)]
    return about.join(pd.concat(parts)).assign(share_of="tokens" if counts else "words")


def select_rows(scored: pd.DataFrame, predictions: pd.DataFrame, which: str) -> pd.DataFrame:
    """The scored explanations of one set of rows; floors that see no model have no prediction to
    be wrong about.

    Args:
        predictions: dataset, scheme, seed, row_id, sentence_idx, target, predicted.
        which: "all": everything. "correct_by_model": all but the rows that the explained model
            itself classifies wrongly; floors keep all, and so do rows of which `predictions` says
            nothing, as of explanations made elsewhere (`without_predictions`).
            "correct_by_all": base sentences of which no model, seed or form in `predictions` is
            wrong (GECOBench's choice; it holds for floors too).

    Raises:
        TouchstoneError: for another row set.
    """
    if which not in ROW_SETS:
        raise TouchstoneError(f"there is no row set {which!r}; choose one of {', '.join(ROW_SETS)}")
    if which == "all":
        return scored
    wrong = predictions.assign(wrong=predictions["target"] != predictions["predicted"])
    if which == "correct_by_all":
        return scored[~_lookup(scored, wrong.groupby(["dataset", "sentence_idx"])["wrong"].any())]
    by_row = wrong.set_index([*_MODEL, "row_id"])["wrong"]
    return scored[~_lookup(scored, by_row) | scored["method"].isin(FLOORS)]


def without_predictions(scored: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """How many explained rows of each model `predictions` says nothing of: "correct_by_model" keeps
    them, right or wrong.

    Returns:
        dataset, scheme, seed, rows; models without such rows, and floors, are left out.
    """
    row = [*_MODEL, "row_id"]
    explained = pd.MultiIndex.from_frame(
        scored.loc[~scored["method"].isin(FLOORS), row].drop_duplicates()
    )
    unknown = explained.difference(pd.MultiIndex.from_frame(predictions[row]), sort=False)
    return unknown.to_frame(index=False).groupby(_MODEL).size().rename("rows").reset_index()


def add_relative(scored: pd.DataFrame, baseline: str = "ZS") -> pd.DataFrame:
    """Add MA_ZS and RMA (GECOBench eq. 4): each row over the baseline's mean on the same
    dataset, method and row.

    Args:
        scored: dataset, scheme, method, row_id, MA.
        baseline: the scheme that all others are divided by, the zero-shot model.
    """
    keys = ["dataset", "method", "row_id"]
    # The mean over the baseline's seeds, so that one line stands for it.
    reference = scored[scored["scheme"] == baseline].groupby(keys, as_index=False)["MA"].mean()
    reference = reference.rename(columns={"MA": "MA_ZS"})
    joined = scored.merge(reference, on=keys, how="left", validate="many_to_one")
    return joined.assign(RMA=relative_mass_accuracy(joined["MA"], joined["MA_ZS"]))


def piece_counts(sentences: Sequence[Sequence[str]], tokenizer: Any) -> list[list[int]]:
    """The number of sub-words of every word, without special tokens, by a fast transformers
    tokenizer.
    """
    encoded = (
        tokenizer(list(words), is_split_into_words=True, add_special_tokens=False)
        for words in sentences
    )
    return [
        np.bincount(pieces.word_ids(), minlength=len(words)).tolist()
        for pieces, words in zip(encoded, sentences)
    ]


def by_correctness(scored: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Mean MA per base sentence, model and method, apart for rows that the model classifies
    right and wrong.

    Args:
        predictions: dataset, scheme, seed, row_id, target, predicted.

    Returns:
        dataset, scheme, seed, method, sentence_idx, is_correct, MA, row_id (the base sentence).
    """
    keys = [*_MODEL, "row_id"]
    right = predictions[keys].assign(is_correct=predictions["target"] == predictions["predicted"])
    groups = scored.merge(right, on=keys).groupby(
        [*_MODEL, "method", "sentence_idx", "is_correct"], as_index=False, sort=False
    )
    means = groups["MA"].mean()
    # `lib.stats` pairs by row_id; here the base sentence is what is paired.
    return means.assign(row_id=means["sentence_idx"].astype(str))


def _lookup(frame: pd.DataFrame, values: pd.Series) -> np.ndarray:
    """Of each line the value at its keys, the index of `values`; False where there is none."""
    # A lookup by index, for a merge could repeat or reorder lines.
    keys = pd.MultiIndex.from_frame(frame[list(values.index.names)])
    return values.reindex(keys).fillna(False).to_numpy(dtype=bool)


def _measure(part: pd.DataFrame) -> pd.DataFrame:
    # (rows, longest row), filled up with NaN, which no measure counts.
    width = max(map(len, part["scores"]))
    scores, mask = (padded(part[name], width) for name in ("scores", "ground_truth"))
    counts = padded(part["token_counts"], width) if "token_counts" in part else None
    columns = {name: metric(scores, mask) for name, metric in METRICS.items()}
    share = truth_share(mask, counts)
    normalised = chance_normalised_mass_accuracy(columns["MA"], share)
    return pd.DataFrame(
        {"share": share, **columns, "MA_chance_normalised": normalised}, index=part.index
    )


def _check(joined: pd.DataFrame) -> None:
    for row in joined.itertuples():
        where = f"the explanation of row {row.row_id} ({row.dataset}, {row.method})"
        if len(row.scores) != len(row.ground_truth):
            raise TouchstoneError(
                f"{where} has {len(row.scores)} scores for {len(row.ground_truth)} words; "
                "give one score per word"
            )
        if not are_finite(row.scores):
            raise TouchstoneError(
                f"{where} holds a score that is not finite, or of a size of {LARGEST} or more; "
                "remove the row or repair the explainer"
            )
