"""Agreement: of two explanations on the words of a row, of several measures on the methods, and of
explanations with what swapping words shows of the model (`lib.attribution.swaps`).
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from ..attribution.swaps import SwapShapley
from ..core.errors import TouchstoneError
from ..stats.estimates import Estimate, estimate, expanded_quantiles, resamples
from .mass_accuracy import ratio

_MODEL = ["dataset", "scheme", "seed"]
_ROW = [*_MODEL, "row_id", "sentence_idx"]
_VISIBLE = 1e-6  # a smaller Shapley value (in units of the score) has no sign that could be missed
_SEES_NO_MODEL = "-"
_MIN_METHODS = 3


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's rank correlation; NaN for fewer than two numbers, or where one side is constant.

    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    """
    if len(left) < 2:
        return float("nan")
    # By hand: scipy's costs much per call, and warns where a side is constant.
    a, b = (stats.rankdata(np.asarray(x, float)) - (len(x) + 1) / 2 for x in (left, right))
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else float("nan")


def rank_likeness(
    before: Iterable[Sequence[float]], after: Iterable[Sequence[float]]
) -> dict[str, list[float]]:
    """Spearman's correlation over the words of each row between two explanations of it.

    Returns:
        Two columns: rank_signed, of the scores as they are, and rank_size, of their sizes.

    >>> rank_likeness([[3.0, -2.0, 1.0]], [[3.0, 2.0, 1.0]])
    {'rank_signed': [0.5], 'rank_size': [1.0]}
    """
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(before, after, strict=True)]
    return {
        "rank_signed": [rank_correlation(a, b) for a, b in pairs],
        "rank_size": [rank_correlation(np.abs(a), np.abs(b)) for a, b in pairs],
    }


def correlate_rows(
    frame: pd.DataFrame,
    measures: Sequence[str],
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """How far two measures order the methods alike on one row: Spearman over the methods, averaged
    over rows and seeds.

    The interval is that of `lib.stats.estimate`, clustered by base sentence.

    Args:
        frame: a line per method and row: dataset, scheme, seed, row_id, sentence_idx, method and
            the measures.

    Returns:
        A line per pair of measures: left, right, estimate, low, high, n, n_sentences, n_seeds,
        standard_error, df; NaN with fewer than three methods.

    Raises:
        TouchstoneError: for a column that is missing.
    """
    frame = _checked(frame, measures)
    lines = []
    for left, right in combinations(measures, 2):
        # Both, or the two sides of a row would order different methods.
        rows = frame.dropna(subset=[left, right]).groupby(_ROW, sort=False)
        values = pd.DataFrame(
            [(*key, rank_correlation(part[left], part[right])) for key, part in rows],
            columns=[*_ROW, "correlation"],
        )
        found = estimate(values, "correlation", "mean", n_bootstrap, alpha, seed)
        lines.append((left, right, *found))
    return pd.DataFrame(lines, columns=["left", "right", *Estimate._fields])


def correlate_methods(
    frame: pd.DataFrame,
    measures: Sequence[str],
    n_bootstrap: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """How far two measures order the methods alike on the whole: Spearman between the methods'
    means.

    Base sentences are resampled (cluster bootstrap, percentiles expanded for few sentences as in
    `lib.stats.estimate`; Hesterberg 2015). The interval speaks of other sentences, not of other
    methods.

    Args:
        frame: as for `correlate_rows`.

    Returns:
        A line per pair of measures: left, right, estimate, low, high, n_methods, n_sentences; NaN
        with fewer than three methods.
    """
    frame = _checked(frame, measures)
    sentences = np.sort(frame["sentence_idx"].unique())
    n = len(sentences)
    # The same resamples for every measure, so that their means belong together.
    weights = resamples(n, n_bootstrap, seed)
    means = {name: _means(frame, name, sentences, weights) for name in measures}
    lines = []
    for left, right in combinations(measures, 2):
        point, *draws = [
            rank_correlation(a, b) for a, b in zip(means[left], means[right], strict=True)
        ]
        limits = (np.nan, np.nan)
        if n > 1 and np.isfinite(draws).any():
            limits = expanded_quantiles(draws, n, alpha)
        lines.append((left, right, point, *limits, means[left].shape[1], n))
    return pd.DataFrame(
        lines, columns=["left", "right", "estimate", "low", "high", "n_methods", "n_sentences"]
    )


def player_agreement(
    scores: Sequence[float], players: Sequence[Sequence[int]], values: Sequence[float]
) -> dict[str, float]:
    """An explanation against the Shapley values of a sentence's swaps; a player gets the sum over
    its words.

    Args:
        scores: one signed number per word.
        players: the positions of the words that are swapped together, for each player.
        values: the players' Shapley values.

    Returns:
        rank_size: Spearman between the sizes of the players' scores and of their values, in [-1,
        1], for methods with and without signs. rank_signed: the same with signs. mass: the share of
        the absolute word scores on words that are swapped at all, in [0, 1]. sign: the share of
        players, each weighing the size of its value, whose score has the sign of the value, in [0,
        1]. top: whether the player with the largest score has the largest value. NaN
        where not defined: ranks and top need two players, signs a value that is not zero.

    >>> player_agreement([1.0, 1.0, 2.0], players=[[0, 1], [2]], values=[0.5, -0.5])["sign"]
    0.5
    """
    scores, wanted = np.asarray(scores, float), np.asarray(values)
    # Words that are swapped together have one value, so their scores are added up.
    given = np.array([sum(scores[i] for i in player) for player in players], dtype=float)
    total = np.abs(scores).sum()
    inside = sum(abs(scores[i]) for player in players for i in player)
    # A value of rounding size has a sign by accident.
    weight = np.where(np.abs(wanted) > _VISIBLE, np.abs(wanted), 0.0)
    agrees = np.sign(given) == np.sign(wanted)
    return {
        "rank_size": rank_correlation(np.abs(given), np.abs(wanted)),
        "rank_signed": rank_correlation(given, wanted),
        "mass": float(inside / total) if total > 0 else float("nan"),
        "sign": float(weight @ agrees / weight.sum()) if weight.any() else float("nan"),
        "top": float(np.abs(given).argmax() == np.abs(wanted).argmax())
        if len(wanted) > 1
        else float("nan"),
    }


def agreement_with_swaps(
    explanations: pd.DataFrame, truth: SwapShapley, classes: Sequence[str]
) -> pd.DataFrame:
    """Every explanation against the swap Shapley values of its row: a line per explanation and
    other form.

    Both sides are of one model; floors, which see none, may stand among the explanations and are
    judged against this model. Explanations of rows that have no aligned form are passed over.

    Args:
        classes: the names of the forms, by their number.

    Returns:
        dataset, scheme, seed, method, row_id, sentence_idx, target, n_players, other (the name of
        the other form) and the five of `player_agreement`.

    Raises:
        TouchstoneError: where explanations and values are of different models, and for a row whose
            words do not fit.
    """
    models = truth.explanations[_MODEL].drop_duplicates()
    seen = explanations.loc[explanations["scheme"] != _SEES_NO_MODEL, _MODEL].drop_duplicates()
    if len(models) != 1 or len(seen.merge(models)) != len(seen):
        raise TouchstoneError(
            f"the explanations are of {_names(seen)} and the swap Shapley values of "
            f"{_names(models)}; compare a model's explanations with the model's own values"
        )
    pairs = explanations.merge(
        truth.swaps.drop(columns=["sentence_idx", "target"]), on=["dataset", "row_id"]
    )
    if len(wrong := pairs[pairs["scores"].map(len) != pairs["n_words"]]):
        row = wrong.iloc[0]
        raise TouchstoneError(
            f"row {row['row_id']} has {len(row['scores'])} scores by {row['method']} and "
            f"{row['n_words']} words in the swap table; make both from the same data"
        )
    agreements = [
        player_agreement(*line)
        for line in zip(pairs["scores"], pairs["players"], pairs["values"], strict=True)
    ]
    about = pairs[[*_MODEL, "method", "row_id", "sentence_idx", "target", "n_players"]]
    about = about.assign(other=[classes[number] for number in pairs["other"]])
    return pd.concat([about, pd.DataFrame(agreements, index=pairs.index)], axis=1)


def _means(
    frame: pd.DataFrame,
    measure: str,
    sentences: np.ndarray,
    weights: Float[np.ndarray, "step batch"],
) -> Float[np.ndarray, "step token"]:
    """A line per resample, a column per method: means over the drawn sentences, undefined values
    left out.
    """
    # A mean over resampled sentences is a quotient of two sums, and sums are one product.
    tables = frame.groupby(["sentence_idx", "method"])[measure].agg(["sum", "count"]).unstack()
    tables = tables.reindex(sentences).fillna(0.0)  # (sentences, sums and counts of the methods)
    drawn = weights @ tables["count"].to_numpy()  # (resamples, methods)
    return ratio(weights @ tables["sum"].to_numpy(), drawn)


def _checked(frame: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    if missing := [name for name in (*_ROW, "method", *measures) if name not in frame]:
        raise TouchstoneError(
            f"the table of yardsticks has no column {missing[0]!r}; join the measures on "
            f"{', '.join(_ROW)} and method"
        )
    # Two methods have one order and its reverse: no share of agreement is to be had from them.
    few = frame["method"].nunique() < _MIN_METHODS
    return frame.assign(**dict.fromkeys(measures, np.nan)) if few else frame


def _names(models: pd.DataFrame) -> str:
    names = [f"{m.dataset}/{m.scheme}/seed{m.seed}" for m in models.itertuples()]
    return ", ".join(names) or "no model"
