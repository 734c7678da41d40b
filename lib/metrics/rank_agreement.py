"""How far explanations agree with what swapping words shows of the model (`lib.attribution.swaps`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import rankdata

from lib.attribution.swaps import SwapShapley
from lib.core.errors import TouchstoneError
from lib.studies.geco.corpus import CLASSES

VISIBLE = (
    1e-6  # a Shapley value below this (in units of the score) has no sign that could be missed
)
MODEL = ["dataset", "scheme", "seed"]
SEES_NO_MODEL = "-"


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's rank correlation; NaN for fewer than two numbers, or where one side is constant.

    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    """
    if len(left) < 2:
        return float("nan")
    a, b = (rankdata(np.asarray(x, float)) - (len(x) + 1) / 2 for x in (left, right))
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else float("nan")


def player_sums(
    scores: Float[np.ndarray, "token"], players: Sequence[Sequence[int]]
) -> Float[np.ndarray, "token"]:
    """What an explanation gives to each player: the signed sum over the player's words."""
    return np.array([sum(scores[i] for i in player) for player in players], dtype=float)


def player_agreement(
    scores: Sequence[float], players: Sequence[Sequence[int]], values: Sequence[float]
) -> dict[str, float]:
    """An explanation against the Shapley values of a sentence's swaps.

    rank_size: Spearman between the sizes of the players' scores and of their values, in [-1, 1], for methods with and
    without signs. rank_signed: the same with signs. mass: the share of the absolute word scores on words that are
    swapped at all, in [0, 1]. sign: the share of players, each weighing the size of its value, whose score has the sign
    of the value, in [0, 1]. top: whether the player with the largest score has the largest value. NaN where not defined:
    ranks and top need two players, signs a value that is not zero.
    """
    size, given, wanted = (
        np.abs(np.asarray(scores, float)),
        player_sums(np.asarray(scores), players),
        np.asarray(values),
    )
    inside = sum(size[i] for player in players for i in player)
    weight = np.where(np.abs(wanted) > VISIBLE, np.abs(wanted), 0.0)
    return {
        "rank_size": rank_correlation(np.abs(given), np.abs(wanted)),
        "rank_signed": rank_correlation(given, wanted),
        "mass": float(inside / size.sum()) if size.sum() > 0 else float("nan"),
        "sign": float(weight @ (np.sign(given) == np.sign(wanted)) / weight.sum())
        if weight.any()
        else float("nan"),
        "top": float(np.argmax(np.abs(given)) == np.argmax(np.abs(wanted)))
        if len(wanted) > 1
        else float("nan"),
    }


def agreement_with_swaps(explanations: pd.DataFrame, truth: SwapShapley) -> pd.DataFrame:
    """Every explanation against the swap Shapley values of its row: a line per explanation and other form.

    Both sides are of one model; floors, which see none, may stand among the explanations and are judged against this
    model. Columns: dataset, scheme, seed, method, row_id, sentence_idx, target, other ("M"), n_players and the five of
    `player_agreement`. Explanations of rows that have no aligned form are passed over. Raises TouchstoneError where
    explanations and values are of different models, and for a row whose words do not fit.
    """
    models = truth.explanations[MODEL].drop_duplicates()
    seen = explanations.loc[explanations["scheme"] != SEES_NO_MODEL, MODEL].drop_duplicates()
    if len(models) != 1 or len(seen.merge(models)) != len(seen):
        raise TouchstoneError(
            f"the explanations are of {_names(seen)} and the swap Shapley values of {_names(models)}; "
            "compare a model's explanations with the model's own values"
        )
    pairs = explanations.merge(
        truth.swaps.drop(columns=["sentence_idx", "target"]), on=["dataset", "row_id"]
    )
    if len(wrong := pairs[pairs["scores"].map(len) != pairs["n_words"]]):
        row = wrong.iloc[0]
        raise TouchstoneError(
            f"row {row['row_id']} has {len(row['scores'])} scores by {row['method']} and {row['n_words']} "
            "words in the swap table; make both from the same data"
        )
    found = [
        player_agreement(*line)
        for line in zip(pairs["scores"], pairs["players"], pairs["values"], strict=True)
    ]
    about = pairs[
        ["dataset", "scheme", "seed", "method", "row_id", "sentence_idx", "target", "n_players"]
    ]
    other = [CLASSES[number] for number in pairs["other"]]
    return pd.concat([about.assign(other=other), pd.DataFrame(found, index=pairs.index)], axis=1)


def _names(models: pd.DataFrame) -> str:
    return (
        ", ".join(f"{m.dataset}/{m.scheme}/seed{m.seed}" for m in models.itertuples()) or "no model"
    )
