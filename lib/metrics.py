"""How well word attributions hit the words that were changed: one function per published measure, one table for all.

Every measure takes the scores of the words of one sentence and the sentence's ground-truth mask, or a whole matrix of
sentences padded with NaN scores, and returns one number per sentence (NaN where the measure is not defined). Signs are
dropped first: an attribution of -2 says "this word matters" as loudly as +2 (GECOBench, section 3.3.3).
The axis `token` is here an axis of words, as in the explanation format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from lib.errors import TouchstoneError

Words = Float[np.ndarray, "*batch token"] | Sequence[float]
Scored = Float[np.ndarray, "*batch"]

FLOORS = ("Uniform random", "First pronoun", "Pronoun list", "Pattern Variant")
ROW_SETS = ("all", "correct_by_model", "correct_by_all")
MODEL = ["dataset", "scheme", "seed"]
CHUNK = 4096  # sentences scored together: the pairwise measures need chunk x words x words numbers at a time


def mass_accuracy(scores: Words, mask: Words) -> Scored:
    """The share of the absolute attribution that lies on ground-truth words (GECOBench eq. 3).

    Between 0 and 1; NaN where a sentence has no ground-truth word or no attribution at all.

    >>> float(mass_accuracy([0.9, 0.0, 0.0, -0.1], [1, 1, 0, 0]))
    0.9
    """
    size, truth = _sizes(scores, mask)
    return _defined(_ratio(np.nansum(size * truth, axis=-1), np.nansum(size, axis=-1)), truth)


def relative_mass_accuracy(mass: Scored | float, mass_baseline: Scored | float) -> Scored:
    """Mass accuracy over the mass accuracy of the zero-shot model on the same row (GECOBench eq. 4).

    1 means "as good as the model without any training". Not defined (NaN) where the baseline puts nothing on the
    ground truth. It is a ratio and stays one: no logarithm, so rows below 1 count like rows above it.

    >>> relative_mass_accuracy(np.array([0.6, 0.6]), np.array([0.3, 0.0])).tolist()
    [2.0, nan]
    """
    return _ratio(np.asarray(mass, float), np.asarray(mass_baseline, float))


def truth_share(mask: Words, weights: Words | None = None) -> Scored:
    """The share of a sentence that is ground truth: of its words, or of its sub-words with their counts as `weights`.

    This is the mass accuracy that noise of equal size on every word (or sub-word) has on average.
    """
    truth = np.asarray(mask, float)
    sizes = np.where(np.isnan(truth), np.nan, 1.0) if weights is None else np.asarray(weights, float)
    return _ratio(np.nansum(truth * sizes, axis=-1), np.nansum(sizes, axis=-1))


def chance_normalised_mass_accuracy(mass: Scored | float, share: Scored | float) -> Scored:
    """Mass accuracy on a scale where noise has 0 and perfection 1: (MA - share) / (1 - share).

    Raw mass accuracies of two data sets compare their shares of ground truth first; this one does not.

    >>> round(float(chance_normalised_mass_accuracy(0.6, 0.2)), 3)
    0.5
    """
    mass, share = np.asarray(mass, float), np.asarray(share, float)
    return _ratio(mass - share, 1.0 - share)


def mask_recall(scores: Words, mask: Words) -> Scored:
    """The share of ground-truth words whose absolute attribution exceeds the sentence's average.

    Mass accuracy forgives a method that finds one changed word of four; this measure does not.

    >>> float(mask_recall([0.9, 0.0, 0.0, 0.1], [1, 1, 0, 0]))
    0.5
    """
    size, truth = _sizes(scores, mask)
    n_words = np.sum(~np.isnan(size), axis=-1, keepdims=True)
    average = np.nansum(size, axis=-1, keepdims=True) / np.maximum(n_words, 1)
    above = np.nan_to_num(size) > average * (1 + 1e-9)  # equal scores are not above their average by a rounding error
    return _ratio(np.nansum(above * truth, axis=-1), np.nansum(truth, axis=-1))


def roc_auc(scores: Words, mask: Words) -> Scored:
    """The probability that a ground-truth word outranks another word, ties counting one half (area under the ROC curve).

    NaN where a sentence has no ground-truth word or nothing but ground-truth words.

    >>> float(roc_auc([3.0, 1.0, 2.0], [1, 1, 0]))
    0.5
    """
    size, truth = _sizes(scores, mask)
    larger = (size[..., :, None] > size[..., None, :]) + 0.5 * (size[..., :, None] == size[..., None, :])
    pairs = np.nan_to_num(truth)[..., :, None] * np.nan_to_num(1 - truth)[..., None, :]
    return _ratio(np.sum(larger * pairs, axis=(-2, -1)), np.sum(pairs, axis=(-2, -1)))


def average_precision(scores: Words, mask: Words) -> Scored:
    """Precision averaged over the recall steps as the threshold falls (area under the precision-recall steps).

    Words of equal size enter together, so the result does not depend on the order of the words.
    """
    size, truth = _sizes(scores, mask)
    precision, _ = _precision_and_specificity(size, truth)
    return _ratio(np.nansum(precision * truth, axis=-1), np.nansum(truth, axis=-1))


def top_k_precision(scores: Words, mask: Words) -> Scored:
    """The share of ground-truth words among the k words with the largest attributions, k = number of ground-truth words.

    Where words tie for the last places, the expected value over random picks among them is taken.

    >>> float(top_k_precision([0.5, 0.5, 0.5, 0.0], [1, 0, 0, 0]))  # doctest: +ELLIPSIS
    0.333...
    """
    size, truth = _sizes(scores, mask)
    k = np.nansum(truth, axis=-1, keepdims=True)
    n_larger = np.sum(size[..., None, :] > size[..., :, None], axis=-1)
    n_equal = np.sum(size[..., None, :] == size[..., :, None], axis=-1)
    chance_in_top = np.clip(_ratio(k - n_larger, n_equal), 0.0, 1.0)
    return _ratio(np.nansum(chance_in_top * truth, axis=-1), k[..., 0])


def precision_at_specificity(scores: Words, mask: Words, specificity: float = 0.5) -> Scored:
    """Precision at the lowest threshold that leaves more than this share of the other words alone.

    The threshold .5 is the one that GECOBench's released code uses (the papers do not name it). 0 where no threshold
    is that specific, as when all words tie; NaN without ground-truth words or without other words.
    """
    size, truth = _sizes(scores, mask)
    precision, specific = _precision_and_specificity(size, truth)
    lowest = np.nanmin(np.where(specific > specificity, size, np.inf), axis=-1, keepdims=True)
    best = np.max(np.where(size == lowest, precision, 0.0), axis=-1)
    others = np.nansum(1 - truth, axis=-1)
    return _defined(np.where(others > 0, best, np.nan)[()], truth)


METRICS: dict[str, Callable[[Words, Words], Scored]] = {
    "MA": mass_accuracy,
    "recall": mask_recall,
    "roc_auc": roc_auc,
    "average_precision": average_precision,
    "top_k_precision": top_k_precision,
    "precision_at_specificity": precision_at_specificity,
}


def without_verbs(rows: pd.DataFrame) -> list[list[int]]:
    """The ground-truth masks without the positions that read the same in the male and the female form.

    GECO's mask marks every position that differs between any two forms, so the verb of "She sings / He sings / They
    sing" is ground truth in all three, though it tells F and M apart in none. A row that cannot be aligned, since its F
    or M form is missing or of another length, gets an empty mask, and with it undefined measures. `rows`: one data set.
    """
    words = {(idx, target): [w.strip().lower() for w in sentence]
             for idx, target, sentence in zip(rows["sentence_idx"], rows["target"], rows["sentence"])}
    masks = []
    for idx, mask in zip(rows["sentence_idx"], rows["ground_truth"]):
        female, male = words.get((idx, 0), []), words.get((idx, 1), [])
        aligned = len(female) == len(male) == len(mask)
        masks.append([int(m and f != g) for m, f, g in zip(mask, female, male)] if aligned else [0] * len(mask))
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
    parts = [_score(joined.iloc[i:i + CHUNK], bool(counts)) for i in range(0, len(joined), CHUNK)]
    scored = pd.concat([joined[names].reset_index(drop=True), pd.concat(parts, ignore_index=True)], axis=1)
    return scored.assign(share_of="tokens" if counts else "words")


def select_rows(scored: pd.DataFrame, predictions: pd.DataFrame, which: str) -> pd.DataFrame:
    """The scored explanations of one set of rows; floors that see no model have no prediction to be wrong about.

    all: everything. correct_by_model: rows that the explained model itself classifies correctly (floors keep all).
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
    return scored[_lookup(scored, [*MODEL, "row_id"], by_row) | scored["method"].isin(FLOORS)]


def add_relative(scored: pd.DataFrame, baseline: str = "ZS") -> pd.DataFrame:
    """Add MA_ZS and RMA (GECOBench eq. 4): each row over the baseline's mean on the same dataset, method and row.

    The baseline is taken on every row, right or wrong: it is not asked to classify, only to be explained.
    """
    keys = ["dataset", "method", "row_id"]
    reference = scored[scored["scheme"] == baseline].groupby(keys, as_index=False)["MA"].mean()
    joined = scored.merge(reference.rename(columns={"MA": "MA_ZS"}), on=keys, how="left", validate="many_to_one")
    return joined.assign(RMA=relative_mass_accuracy(joined["MA"].to_numpy(), joined["MA_ZS"].to_numpy()))


def form_differences(explanations: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Attribution of a word in the female minus in the male form, averaged per sentence (GECOBench v1, Figure 7).

    Attributions are absolute and sum to 1 within a form, so the mean over all words is 0 by construction: what the
    ground-truth words lose (truth_words), the others gain (other_words). absolute: the mean size over ground-truth words.
    Sentences that lack a form, or whose forms differ in length, cannot be aligned and are left out.
    """
    keys = [*MODEL, "method", "sentence_idx"]
    truth = rows[["dataset", "row_id", "ground_truth"]]
    female, male = (explanations[explanations["target"] == target] for target in (0, 1))
    pairs = female.merge(truth, on=["dataset", "row_id"]).merge(male[[*keys, "scores"]], on=keys, suffixes=("", "_male"))
    pairs = pairs[pairs["scores"].map(len) == pairs["scores_male"].map(len)].reset_index(drop=True)
    width = max(map(len, pairs["scores"]), default=1)
    mine, other, mask = (_padded(pairs[name], width) for name in ("scores", "scores_male", "ground_truth"))
    gap = _shares(mine) - _shares(other)
    known, size = ~np.isnan(gap), np.nan_to_num(gap)  # unknown: padding, and forms without any attribution
    chosen = {"truth_words": (size, mask == 1), "other_words": (size, mask == 0), "all_words": (size, known),
              "absolute": (np.abs(size), mask == 1)}
    columns = {name: _ratio(np.sum(x * words * known, axis=1), np.sum(words & known, axis=1))
               for name, (x, words) in chosen.items()}
    return pd.concat([pairs[keys], pd.DataFrame(columns)], axis=1)


def _shares(scores: np.ndarray) -> np.ndarray:
    size = np.abs(scores)
    return _ratio(size, np.nansum(size, axis=-1, keepdims=True))


def _lookup(frame: pd.DataFrame, keys: list[str], values: pd.Series) -> np.ndarray:
    return values.reindex(pd.MultiIndex.from_frame(frame[keys])).fillna(False).to_numpy(dtype=bool)


def _sizes(scores: Words, mask: Words) -> tuple[np.ndarray, np.ndarray]:
    size = np.abs(np.asarray(scores, float))
    return size, np.where(np.isnan(size), np.nan, np.asarray(mask, float))


def _ratio(above: np.ndarray, below: np.ndarray) -> Scored:
    above, below = np.broadcast_arrays(np.asarray(above, float), np.asarray(below, float))
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below != 0)[()]


def _defined(values: Scored, truth: np.ndarray) -> Scored:
    return np.where(np.nansum(truth, axis=-1) > 0, values, np.nan)[()]


def _precision_and_specificity(size: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both at the threshold set by each word in turn: a word is flagged where it is at least as large."""
    flagged = size[..., None, :] >= size[..., :, None]
    hits = np.sum(flagged * np.nan_to_num(truth)[..., None, :], axis=-1)
    false_alarms = np.sum(flagged * np.nan_to_num(1 - truth)[..., None, :], axis=-1)
    others = np.nansum(1 - truth, axis=-1, keepdims=True)
    return _ratio(hits, hits + false_alarms), 1.0 - _ratio(false_alarms, others)


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
            raise TouchstoneError(f"{where} belongs to no row of the data; score it against the data that it explains")
        if len(row.scores) != len(row.ground_truth):
            raise TouchstoneError(f"{where} has {len(row.scores)} scores for {len(row.ground_truth)} words; "
                                  "give one score per word")
        if not np.isfinite(row.scores).all():
            raise TouchstoneError(f"{where} holds a score that is not finite; remove the row or repair the explainer")
