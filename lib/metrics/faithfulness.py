"""Faithfulness: does the model's score fall when the words go that an explanation names?

All measures delete words, and what stands in their place is a parameter
(`lib.metrics.deletion`): a sentence with holes is not one that the model knows. Each is defined
for a signed explanation; random scores stand beside them.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from ..attribution.regression import all_masks
from ..attribution.table import KEY
from ..core.errors import TouchstoneError
from ..core.seeds import seed_for
from ..models.text_model import TextModel
from .deletion import DeletedWords, aopc, aopc_limits, steps_of

_SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the words: the bins of DeYoung et al. 2020, section 4
RANDOM = "Random order"
_MEASURES = [
    "comprehensiveness",
    "sufficiency",
    "AOPC",
    "AOPC_low",
    "AOPC_high",
    "NAOPC",
    "infidelity",
    "infidelity_scaled",
]


def comprehensiveness(curve: Float[np.ndarray, "step"], shares: Sequence[float] = _SHARES) -> float:
    """By how much the score falls without the top words: m(x) - m(x without r) (DeYoung et al.
    2020, eq. 1 and 3).

    The mean over shares of the words (rounded up). `curve`: the scores after the best 0, 1, ...
    words were deleted. High is good; with probabilities it lies in [-1, 1].

    >>> float(comprehensiveness(np.array([1.0, 0.25, 0.0]), shares=[0.5]))
    0.75
    """
    return float(np.mean([curve[0] - curve[_count(share, len(curve) - 1)] for share in shares]))


def sufficiency(curve: Float[np.ndarray, "step"], shares: Sequence[float] = _SHARES) -> float:
    """By how much the score falls when only the top words are left: m(x) - m(r) (DeYoung et al.
    2020, eq. 2 and 3).

    The mean over shares of the words (rounded up). `curve`: the scores after the worst 0, 1, ...
    words were deleted. Low is good; with probabilities it lies in [-1, 1].
    """
    n_words = len(curve) - 1
    return float(np.mean([curve[0] - curve[n_words - _count(share, n_words)] for share in shares]))


def normalised_aopc(value: float, low: float, high: float) -> float:
    """AOPC on a scale from the worst order of deletion, 0, to the best, 1 (Edin et al. 2024);
    NaN where they are equal.
    """
    return (value - low) / (high - low) if high > low else float("nan")


def infidelity(
    scores: Sequence[float],
    deleted: Bool[np.ndarray, "step token"],
    changes: Float[np.ndarray, "step"],
) -> float:
    """Mean square of (what the deleted words were said to carry - by how much the score fell)
    (Yeh et al. 2019, def. 2.1).

    The perturbation takes words away, so its product with the explanation is the sum of the
    deleted words' scores. 0 or more, low is good; it is in squared units of the score, so only
    explanations that sum to a score may be compared.

    >>> infidelity([2.0, 1.0], np.array([[1, 0], [1, 1]]), np.array([2.0, 2.0]))
    0.5
    """
    return float(np.mean((deleted @ np.asarray(scores, float) - changes) ** 2))


def scaled_infidelity(
    scores: Sequence[float],
    deleted: Bool[np.ndarray, "step token"],
    changes: Float[np.ndarray, "step"],
) -> float:
    """Infidelity after the best scaling of the explanation by a factor of 0 or more, over that
    of an explanation of zeros.

    Between 0 (proportional to the truth) and 1 (no better than nothing), for methods in any unit
    (Yeh et al. 2019 scale likewise before they compare). NaN where no deletion changes the
    score.
    """
    said, zero = deleted @ np.asarray(scores, float), float(changes @ changes)
    size = float(said @ said)
    gain = max(float(said @ changes), 0.0) ** 2 / size if size > 0 else 0.0
    return 1.0 - gain / zero if zero > 0 else float("nan")


def faithfulness(
    model: TextModel,
    explanations: pd.DataFrame,
    deletion: str = "remove",
    explained: str = "probability",
    *,
    shares: Sequence[float] = _SHARES,
    n_samples: int = 50,
    n_random: int = 5,
    n_exact: int = 256,
    n_beam: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """Every measure for every explanation of one model, and per row the same for random scores.

    Words go in the order of their signed scores, largest first; ties fall at random. The limits
    of AOPC are widened by every order that is tried, so that NAOPC lies in [0, 1].

    Args:
        explanations: of one model on one data set; floors may stand among them.
        deletion: what stands in place of a deleted word (`lib.metrics.deletion.DeletedWords`).
        explained: the score that falls.
        shares: of the words, for comprehensiveness and sufficiency.
        n_samples: random deletions a row for infidelity (all subsets where these are no more).
        n_random: draws of random scores, of which method `RANDOM` is the mean.
        n_exact, n_beam: see `aopc_limits`; n_beam 0 leaves limits and NAOPC out.

    Returns:
        A line per explanation: its key, sentence_idx, target, the measures (columns as in their
        names above), deletion, limits ("exact", "beam" or "none").

    Raises:
        TouchstoneError: for explanations of several models.
    """
    found = _with_random(explanations, n_random, seed)
    rows = explanations.drop_duplicates("row_id")
    deleted = DeletedWords(
        model, rows["words"].map(list).tolist(), rows["target"].tolist(), deletion, explained
    )
    at = pd.Index(rows["row_id"]).get_indexer(found["row_id"])
    measured = _along_orders(deleted, at, found, shares, seed)
    missed = _infidelities(deleted, at, found["scores"], rows["row_id"], n_samples, seed)
    limits = _limits(deleted, at, measured, n_exact, n_beam)
    about = found[[*KEY, "sentence_idx", "target"]].assign(deletion=deletion)
    return _mean_of_random(pd.concat([about, measured, missed, limits], axis=1))


def _along_orders(
    deleted: DeletedWords,
    at: Sequence[int],
    found: pd.DataFrame,
    shares: Sequence[float],
    seed: int,
) -> pd.DataFrame:
    """What happens while words go, the best first; "reversed" is the AOPC of the worst first."""
    orders = [_order(*line, seed) for line in zip(found["scores"], found["row_id"], strict=True)]
    falling = _in_parts(deleted, at, [steps_of(order) for order in orders])
    # Worst words first: what is left after d - k deletions are the top k words.
    rising = _in_parts(deleted, at, [steps_of(order[::-1]) for order in orders])
    return pd.DataFrame(
        {
            "comprehensiveness": [comprehensiveness(curve, shares) for curve in falling],
            "sufficiency": [sufficiency(curve, shares) for curve in rising],
            "AOPC": [aopc(curve) for curve in falling],
            "reversed": [aopc(curve) for curve in rising],
        }
    )


def _infidelities(
    deleted: DeletedWords,
    at: Sequence[int],
    scores: Sequence[Sequence[float]],
    row_ids: Sequence[str],
    n_samples: int,
    seed: int,
) -> pd.DataFrame:
    """Infidelity and its scaled form of every explanation; all methods of a row meet the same
    deletions.
    """
    gone = [
        random_deletions(d, n_samples, seed_for("infidelity", row_id, seed))
        for row_id, d in zip(row_ids, deleted.lengths, strict=True)
    ]
    every = range(len(gone))
    whole = deleted.scores(every, [np.ones(d, bool) for d in deleted.lengths])
    left = _in_parts(deleted, every, [~lines for lines in gone])
    deletions = [(said, gone[i], whole[i] - left[i]) for said, i in zip(scores, at, strict=True)]
    return pd.DataFrame(
        {
            "infidelity": [infidelity(*of_row) for of_row in deletions],
            "infidelity_scaled": [scaled_infidelity(*of_row) for of_row in deletions],
        }
    )


def _in_parts(
    deleted: DeletedWords, at: Sequence[int], parts: Sequence[Bool[np.ndarray, "step token"]]
) -> list[np.ndarray]:
    """The scores of several rows, each with some sets of words that are left."""
    # One call for all sets of all rows, so that equal texts are run once.
    scores = deleted.scores(
        [row for row, part in zip(at, parts, strict=True) for _ in part],
        [kept for part in parts for kept in part],
    )
    return np.split(scores, np.cumsum([len(part) for part in parts])[:-1])


def random_deletions(n_words: int, n_samples: int, seed: int) -> Bool[np.ndarray, "step token"]:
    """Which words are deleted: every word with probability 1/2, at least one; every subset once
    where they are as few.
    """
    if 2**n_words - 1 <= n_samples:
        return all_masks(n_words).numpy()[1:]
    draws = np.random.default_rng(seed).random((n_samples, n_words + 1))
    deleted = draws[:, :-1] < 0.5
    # The last draw of a line picks the word where none would go; it is drawn in any case, so that
    # each line takes as many numbers as any other.
    nothing = ~deleted.any(axis=1)
    deleted[nothing, (draws[nothing, -1] * n_words).astype(int)] = True
    return deleted


def _count(share: float, n_words: int) -> int:
    return min(n_words, math.ceil(share * n_words))


def _order(scores: Sequence[float], row_id: str, seed: int) -> list[int]:
    """Words by falling score; equal ones in an order that depends on the row alone."""
    # Drawn per row, or a method of constant scores would always delete from the left.
    tie = np.random.default_rng(seed_for("ties", row_id, seed)).random(len(scores))
    return np.lexsort((tie, -np.asarray(scores, float))).tolist()


def _with_random(explanations: pd.DataFrame, n_random: int, seed: int) -> pd.DataFrame:
    """The explanations, and for each row `n_random` lines of random signed scores."""
    if explanations["dataset"].nunique() != 1:
        raise TouchstoneError(
            "faithfulness takes the explanations of one model on one data set; split the table by "
            "dataset, scheme and seed"
        )
    rows = explanations.drop_duplicates("row_id", ignore_index=True)
    rows = rows.assign(scheme="-", seed=-1, method=RANDOM)
    draws = [
        np.random.default_rng(seed_for(RANDOM, row_id, seed)).normal(size=(n_random, len(words)))
        for row_id, words in zip(rows["row_id"], rows["words"], strict=True)
    ]
    drawn = rows.loc[rows.index.repeat(n_random)].assign(scores=[x for part in draws for x in part])
    columns = [*KEY, "sentence_idx", "target", "words", "scores"]
    return pd.concat([explanations[columns], drawn[columns]], ignore_index=True)


def _limits(
    deleted: DeletedWords, at: Sequence[int], measured: pd.DataFrame, n_exact: int, n_beam: int
) -> pd.DataFrame:
    columns = ["AOPC_low", "AOPC_high", "NAOPC", "limits"]
    if n_beam == 0:
        return pd.DataFrame([(np.nan, np.nan, np.nan, "none")] * len(at), columns=columns)
    # The beam may miss an order that an explanation found, and NAOPC would leave [0, 1].
    limits: list[list[Any]] = [list(row) for row in aopc_limits(deleted, n_exact, n_beam)]
    for row, *tried in zip(at, measured["AOPC"], measured["reversed"], strict=True):
        limits[row][:2] = [min(limits[row][0], *tried), max(limits[row][1], *tried)]
    lines = [
        (*limits[row][:2], normalised_aopc(value, *limits[row][:2]), limits[row][2])
        for row, value in zip(at, measured["AOPC"], strict=True)
    ]
    return pd.DataFrame(lines, columns=columns)


def _mean_of_random(table: pd.DataFrame) -> pd.DataFrame:
    """One line for the draws of a row's random scores; of all else there is one line already."""
    about = [*KEY, "sentence_idx", "target"]
    means = table.groupby([*about, "deletion", "limits"], sort=False)[_MEASURES].mean()
    return means.reset_index()[[*about, *_MEASURES, "deletion", "limits"]]
