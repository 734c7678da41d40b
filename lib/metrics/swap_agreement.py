"""How far explanations agree with what swapping words shows of the model
(`lib.attribution.swaps`).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..attribution.swaps import SwapShapley
from ..core.errors import TouchstoneError
from .rank_agreement import rank_correlation

_VISIBLE = 1e-6  # a smaller Shapley value (in units of the score) has no sign that could be missed
_MODEL = ["dataset", "scheme", "seed"]
_SEES_NO_MODEL = "-"


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
    swaps = truth.swaps.drop(columns=["sentence_idx", "target"])
    pairs = explanations.merge(swaps, on=["dataset", "row_id"])
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


def _names(models: pd.DataFrame) -> str:
    names = [f"{m.dataset}/{m.scheme}/seed{m.seed}" for m in models.itertuples()]
    return ", ".join(names) or "no model"
