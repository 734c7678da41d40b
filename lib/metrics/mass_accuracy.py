"""How well the attributions of a sentence hit the words that were changed: one function per
published measure.

Every measure takes the scores of the words of one sentence and the sentence's ground-truth mask,
or a whole matrix of sentences padded with NaN scores, and returns one number per sentence (NaN
where the measure is not defined). Signs are dropped first: an attribution of -2 says "this word
matters" as loudly as +2 (GECOBench, section 3.3.3). The axis `token` is here an axis of words,
as in the explanation format.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from jaxtyping import Float

Words = Float[np.ndarray, "*batch token"] | Sequence[float]
Scored = Float[np.ndarray, "*batch"]


def mass_accuracy(scores: Words, mask: Words) -> Scored:
    """The share of the absolute attribution that lies on ground-truth words (GECOBench eq. 3).

    Between 0 and 1; NaN where a sentence has no ground-truth word or no attribution at all.

    >>> float(mass_accuracy([0.9, 0.0, 0.0, -0.1], [1, 1, 0, 0]))
    0.9
    """
    size, truth = _sizes(scores, mask)
    return _defined(ratio(np.nansum(size * truth, axis=-1), np.nansum(size, axis=-1)), truth)


def relative_mass_accuracy(mass: Scored | float, mass_baseline: Scored | float) -> Scored:
    """Mass accuracy over the mass accuracy of the zero-shot model on the same row (GECOBench eq.
    4).

    1 means "as good as the model without any training". Not defined (NaN) where the baseline
    puts nothing on the ground truth. It is a ratio and stays one: no logarithm, so rows below 1
    count like rows above it.

    >>> relative_mass_accuracy(np.array([0.6, 0.6]), np.array([0.3, 0.0])).tolist()
    [2.0, nan]
    """
    return ratio(np.asarray(mass, float), np.asarray(mass_baseline, float))


def truth_share(mask: Words, weights: Words | None = None) -> Scored:
    """The share of a sentence that is ground truth: of its words, or of its sub-words with their
    counts as `weights`.

    This is the mass accuracy that noise of equal size on every word (or sub-word) has on average.
    """
    # Padding is NaN in the mask, too: it counts neither as truth nor as a word.
    truth = np.asarray(mask, float)
    sizes = (
        np.where(np.isnan(truth), np.nan, 1.0) if weights is None else np.asarray(weights, float)
    )
    return ratio(np.nansum(truth * sizes, axis=-1), np.nansum(sizes, axis=-1))


def chance_normalised_mass_accuracy(mass: Scored | float, share: Scored | float) -> Scored:
    """Mass accuracy on a scale where noise has 0 and perfection 1: (MA - share) / (1 - share).

    Raw mass accuracies of two data sets compare their shares of ground truth first; this one
    does not.

    >>> round(float(chance_normalised_mass_accuracy(0.6, 0.2)), 3)
    0.5
    """
    mass, share = np.asarray(mass, float), np.asarray(share, float)
    return ratio(mass - share, 1.0 - share)


def mask_recall(scores: Words, mask: Words) -> Scored:
    """The share of ground-truth words whose absolute attribution exceeds the sentence's average.

    Mass accuracy forgives a method that finds one changed word of four; this measure does not.

    >>> float(mask_recall([0.9, 0.0, 0.0, 0.1], [1, 1, 0, 0]))
    0.5
    """
    size, truth = _sizes(scores, mask)
    # Padding is NaN and no word.
    n_words = np.sum(~np.isnan(size), axis=-1, keepdims=True)
    average = np.nansum(size, axis=-1, keepdims=True) / np.maximum(n_words, 1)
    # equal scores are not above their average by a rounding error
    above = np.nan_to_num(size) > average * (1 + 1e-9)
    return ratio(np.nansum(above * truth, axis=-1), np.nansum(truth, axis=-1))


def roc_auc(scores: Words, mask: Words) -> Scored:
    """The probability that a ground-truth word outranks another word, ties counting one half
    (area under the ROC curve).

    NaN where a sentence has no ground-truth word or nothing but ground-truth words.

    >>> float(roc_auc([3.0, 1.0, 2.0], [1, 1, 0]))
    0.5
    """
    size, truth = _sizes(scores, mask)
    # (..., words, words): does the first of two words have the larger attribution?
    ties = size[..., :, None] == size[..., None, :]
    larger = (size[..., :, None] > size[..., None, :]) + 0.5 * ties
    pairs = np.nan_to_num(truth)[..., :, None] * np.nan_to_num(1 - truth)[..., None, :]
    return ratio(np.sum(larger * pairs, axis=(-2, -1)), np.sum(pairs, axis=(-2, -1)))


def average_precision(scores: Words, mask: Words) -> Scored:
    """Precision averaged over the recall steps as the threshold falls (area under the
    precision-recall steps).

    Words of equal size enter together, so the result does not depend on the order of the words.
    """
    size, truth = _sizes(scores, mask)
    precision, _ = _precision_and_specificity(size, truth)
    return ratio(np.nansum(precision * truth, axis=-1), np.nansum(truth, axis=-1))


def top_k_precision(scores: Words, mask: Words) -> Scored:
    """The share of ground-truth words among the k words with the largest attributions, k =
    number of ground-truth words.

    Where words tie for the last places, the expected value over random picks among them is taken.

    >>> float(top_k_precision([0.5, 0.5, 0.5, 0.0], [1, 0, 0, 0]))  # doctest: +ELLIPSIS
    0.333...
    """
    size, truth = _sizes(scores, mask)
    k = np.nansum(truth, axis=-1, keepdims=True)
    n_larger = np.sum(size[..., None, :] > size[..., :, None], axis=-1)
    n_equal = np.sum(size[..., None, :] == size[..., :, None], axis=-1)
    # A word whose ties reach over the last place is in the top with this probability.
    chance_in_top = np.clip(ratio(k - n_larger, n_equal), 0.0, 1.0)
    return ratio(np.nansum(chance_in_top * truth, axis=-1), k[..., 0])


def precision_at_specificity(scores: Words, mask: Words, specificity: float = 0.5) -> Scored:
    """Precision at the lowest threshold that leaves more than this share of the other words alone.

    The threshold .5 is the one that GECOBench's released code uses (the papers do not name it).
    0 where no threshold is that specific, as when all words tie; NaN without ground-truth words
    or without other words.
    """
    size, truth = _sizes(scores, mask)
    precision, specific = _precision_and_specificity(size, truth)
    # The lowest threshold is the one that flags most words.
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


def _sizes(scores: Words, mask: Words) -> tuple[np.ndarray, np.ndarray]:
    size = np.abs(np.asarray(scores, float))
    return size, np.where(np.isnan(size), np.nan, np.asarray(mask, float))


def padded(lists: Iterable[Sequence[float]], width: int) -> Float[np.ndarray, "batch token"]:
    """Lists of unequal length as the lines of one matrix of this width, filled up with NaN.

    >>> padded([[1, 2], [3]], 2).tolist()
    [[1.0, 2.0], [3.0, nan]]
    """
    lines = [[*values, *[np.nan] * (width - len(values))] for values in lists]
    # Reshaped, for no lists at all would have no second axis.
    return np.array(lines, dtype=float).reshape(-1, width)


def ratio(above: np.ndarray | float, below: np.ndarray | float) -> Scored:
    """Quotients, NaN where the denominator is zero.

    >>> ratio(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    # `where` leaves the other places as they were, so they begin as NaN.
    above, below = np.broadcast_arrays(np.asarray(above, float), np.asarray(below, float))
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below != 0)[()]


def _defined(values: Scored, truth: np.ndarray) -> Scored:
    return np.where(np.nansum(truth, axis=-1) > 0, values, np.nan)[()]


def _precision_and_specificity(
    size: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Both at the threshold set by each word in turn: a word is flagged where it is at least as
    large.
    """
    # (..., thresholds, words); NaN is never flagged.
    flagged = size[..., None, :] >= size[..., :, None]
    hits = np.sum(flagged * np.nan_to_num(truth)[..., None, :], axis=-1)
    false_alarms = np.sum(flagged * np.nan_to_num(1 - truth)[..., None, :], axis=-1)
    others = np.nansum(1 - truth, axis=-1, keepdims=True)
    return ratio(hits, hits + false_alarms), 1.0 - ratio(false_alarms, others)
