"""Many explanations at once: all measures in one table, the rows that count, and comparisons between models and forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lib.core.errors import TouchstoneError
from lib.metrics.mass_accuracy import (
    METRICS,
    chance_normalised_mass_accuracy,
    ratio,
    relative_mass_accuracy,
    truth_share,
)

FLOORS = ("Uniform random", "First pronoun", "Pronoun list", "Pattern Variant")
ROW_SETS = ("all", "correct_by_model", "correct_by_all")
MODEL = ["dataset", "scheme", "seed"]
CHUNK = 4096  # sentences scored together: the pairwise measures need chunk x words x words numbers at a time


def without_verbs(rows: pd.DataFrame) -> list[list[int]]:
    """The ground-truth masks without the positions that read the same in the male and the female form.

    GECO's mask marks every position that differs between any two forms, so the verb of "She sings / He sings / They
    sing" is ground truth in all three, though it tells F and M apart in none. A row that cannot be aligned, since its F
    or M form is missing or of another length, gets an empty mask, and with it undefined measures. `rows`: one data set.
    """
    words = {
        (idx, target): [w.strip().lower() for w in sentence]
        for idx, target, sentence in zip(rows["sentence_idx"], rows["target"], rows["sentence"])
    }
    masks = []
    for idx, mask in zip(rows["sentence_idx"], rows["ground_truth"]):
        female, male = words.get((idx, 0), []), words.get((idx, 1), [])
        aligned = len(female) == len(male) == len(mask)
        masks.append(
            [int(m and f != g) for m, f, g in zip(mask, female, male)]
            if aligned
            else [0] * len(mask)
        )
    return masks


def score_explanations(explanations: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Every measure for every explanation: one line per (dataset, scheme, seed, method, row).

    `explanations`: the repository's explanation format. `rows`: row_id and ground_truth of the explained data, with a
    column `dataset` where there are several, and, where known, `token_counts` (sub-words per word). Adds `share`
    (what noise would reach), `share_of` ("tokens" or "words") and MA_chance_normalised.
    Raises TouchstoneError for an unknown row, a length that does not fit, or a score that is not finite.
    """
    keys = ["dataset", "row_id"] if "dataset" in rows else ["row_id"]
    counts = ["token_counts"] if "token_counts" in rows else []
    truth = rows[[*keys, "ground_truth", *counts]]
    joined = explanations.merge(truth, on=keys, how="left", validate="many_to_one")
    _check(joined)
    names = [*MODEL, "method", "row_id", "sentence_idx", "target"]
    parts = [_score(joined.iloc[i : i + CHUNK], bool(counts)) for i in range(0, len(joined), CHUNK)]
    scored = pd.concat(
        [joined[names].reset_index(drop=True), pd.concat(parts, ignore_index=True)], axis=1
    )
    return scored.assign(share_of="tokens" if counts else "words")


def select_rows(scored: pd.DataFrame, predictions: pd.DataFrame, which: str) -> pd.DataFrame:
    """The scored explanations of one set of rows; floors that see no model have no prediction to be wrong about.

    all: everything. correct_by_model: rows that the explained model itself classifies correctly; floors keep all, and
    so does a model of which `predictions` says nothing, as for explanations made elsewhere.
    correct_by_all: base sentences of which every model, seed and form in `predictions` is right (the original's
    choice; it holds for floors too). `predictions`: dataset, scheme, seed, row_id, sentence_idx, target, predicted.
    """
    if which not in ROW_SETS:
        raise TouchstoneError(f"there is no row set {which!r}; choose one of {', '.join(ROW_SETS)}")
    if which == "all":
        return scored
    right = predictions.assign(right=predictions["target"] == predictions["predicted"])
    if which == "correct_by_all":
        sentences = right.groupby(["dataset", "sentence_idx"])["right"].all()
        return scored[_lookup(scored, ["dataset", "sentence_idx"], sentences)]
    by_row = right.set_index([*MODEL, "row_id"])["right"]
    is_known = _lookup(scored, MODEL, pd.Series(True, predictions.set_index(MODEL).index.unique()))
    return scored[
        _lookup(scored, [*MODEL, "row_id"], by_row) | scored["method"].isin(FLOORS) | ~is_known
    ]


def add_relative(scored: pd.DataFrame, baseline: str = "ZS") -> pd.DataFrame:
    """Add MA_ZS and RMA (GECOBench eq. 4): each row over the baseline's mean on the same dataset, method and row.

    The baseline is taken on every row, right or wrong: it is not asked to classify, only to be explained.
    """
    keys = ["dataset", "method", "row_id"]
    reference = scored[scored["scheme"] == baseline].groupby(keys, as_index=False)["MA"].mean()
    joined = scored.merge(
        reference.rename(columns={"MA": "MA_ZS"}), on=keys, how="left", validate="many_to_one"
    )
    return joined.assign(
        RMA=relative_mass_accuracy(joined["MA"].to_numpy(), joined["MA_ZS"].to_numpy())
    )


def relative_floors(scored: pd.DataFrame, floor: str, baseline: str = "ZS") -> pd.DataFrame:
    """What a floor reaches where methods show RMA: median of its MA over the baseline's, per dataset and method."""
    mass = scored[scored["method"] == floor].set_index(["dataset", "row_id"])["MA"].rename("floor")
    pairs = scored[scored["scheme"] == baseline].join(mass, on=["dataset", "row_id"])
    pairs["RMA"] = relative_mass_accuracy(pairs["floor"].to_numpy(), pairs["MA"].to_numpy())
    return pairs.groupby(["dataset", "method"], sort=False)["RMA"].median().reset_index()


def piece_counts(sentences: Sequence[Sequence[str]], tokenizer: Any) -> list[list[int]]:
    """The number of sub-words of every word, without special tokens, by a fast transformers tokenizer."""
    encoded = (
        tokenizer(list(words), is_split_into_words=True, add_special_tokens=False)
        for words in sentences
    )
    return [
        np.bincount(one.word_ids(), minlength=len(words)).tolist()
        for one, words in zip(encoded, sentences)
    ]


def by_correctness(scored: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Mean MA per base sentence, model and method, apart for rows that the model classifies right and wrong."""
    right = predictions.assign(is_correct=predictions["target"] == predictions["predicted"])
    joined = scored.merge(right[[*MODEL, "row_id", "is_correct"]], on=[*MODEL, "row_id"])
    means = joined.groupby(
        [*MODEL, "method", "sentence_idx", "is_correct"], as_index=False, sort=False
    )["MA"].mean()
    return means.assign(row_id=means["sentence_idx"].astype(str))


def form_differences(explanations: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Attribution of a word in the female minus in the male form, averaged per sentence (GECOBench v1, Figure 7).

    Attributions are absolute and sum to 1 within a form, so the mean over all words is 0 by construction: what the
    ground-truth words lose (truth_words), the others gain (other_words). absolute: the mean size over ground-truth words.
    Sentences that lack a form, or whose forms differ in length, cannot be aligned and are left out.
    """
    keys = [*MODEL, "method", "sentence_idx"]
    truth = rows[["dataset", "row_id", "ground_truth"]]
    female, male = (explanations[explanations["target"] == target] for target in (0, 1))
    pairs = female.merge(truth, on=["dataset", "row_id"]).merge(
        male[[*keys, "scores"]], on=keys, suffixes=("", "_male")
    )
    pairs = pairs[pairs["scores"].map(len) == pairs["scores_male"].map(len)].reset_index(drop=True)
    width = max(map(len, pairs["scores"]), default=1)
    mine, other, mask = (
        _padded(pairs[name], width) for name in ("scores", "scores_male", "ground_truth")
    )
    gap = _shares(mine) - _shares(other)
    known, size = (
        ~np.isnan(gap),
        np.nan_to_num(gap),
    )  # unknown: padding, and forms without any attribution
    chosen = {
        "truth_words": (size, mask == 1),
        "other_words": (size, mask == 0),
        "all_words": (size, known),
        "absolute": (np.abs(size), mask == 1),
    }
    columns = {
        name: ratio(np.sum(x * words * known, axis=1), np.sum(words & known, axis=1))
        for name, (x, words) in chosen.items()
    }
    return pd.concat([pairs[keys], pd.DataFrame(columns)], axis=1).assign(
        row_id=pairs["sentence_idx"].astype(str)
    )


def _shares(scores: np.ndarray) -> np.ndarray:
    size = np.abs(scores)
    return ratio(size, np.nansum(size, axis=-1, keepdims=True))


def _lookup(frame: pd.DataFrame, keys: list[str], values: pd.Series) -> np.ndarray:
    return values.reindex(pd.MultiIndex.from_frame(frame[keys])).fillna(False).to_numpy(dtype=bool)


def _padded(lists: Iterable[Sequence[float]], width: int) -> np.ndarray:
    full = [[*values, *[np.nan] * (width - len(values))] for values in lists]
    return np.array(full, dtype=float).reshape(-1, width)


def _score(part: pd.DataFrame, has_counts: bool) -> pd.DataFrame:
    width = max(map(len, part["scores"]))
    scores, mask = _padded(part["scores"], width), _padded(part["ground_truth"], width)
    share = truth_share(mask, _padded(part["token_counts"], width) if has_counts else None)
    columns = {name: metric(scores, mask) for name, metric in METRICS.items()}
    normalised = chance_normalised_mass_accuracy(columns["MA"], share)
    return pd.DataFrame({"share": share, **columns, "MA_chance_normalised": normalised})


def _check(joined: pd.DataFrame) -> None:
    for row in joined.itertuples():
        where = f"the explanation of row {row.row_id} ({row.dataset}, {row.method})"
        if not isinstance(row.ground_truth, (list, np.ndarray)):
            raise TouchstoneError(
                f"{where} belongs to no row of the data; score it against the data that it explains"
            )
        if len(row.scores) != len(row.ground_truth):
            raise TouchstoneError(
                f"{where} has {len(row.scores)} scores for {len(row.ground_truth)} words; "
                "give one score per word"
            )
        if not np.isfinite(row.scores).all():
            raise TouchstoneError(
                f"{where} holds a score that is not finite; remove the row or repair the explainer"
            )
