"""Deletion without a hole: instead of a deleted word stands that of the sentence's other form.

Padding and the mask token make texts that no model was trained on. Here the words that differ
between the two forms of a sentence go one by one, and every text on the way is a sentence. Only
these words have an order; there are few, so that the best and the worst order are exact.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ...attribution.swaps import swap_shapley
from ...core.seeds import seed_for
from ...metrics.deletion import aopc
from ...metrics.faithfulness import normalised_aopc
from ...models.text_model import TextModel

NAME = "deletion, swap"
Worth = Mapping[str, float]  # the answer by which players stay, a digit each: "101"


def score_swaps(
    model: TextModel, items: pd.DataFrame, explanations: pd.DataFrame, forms: pd.DataFrame
) -> pd.DataFrame:
    """How fast the probability falls when the other form's words come in the order of an
    explanation, between the worst order (0) and the best (1).

    Words that only change together (`attribution.swaps`) go together, by the sum of their scores.

    Args:
        model: of the items, which are of one training.
        items: item_id, model, training, cluster, text, target, sentence_idx.
        explanations: explainer, model, training, text, scores.
        forms: both forms of each sentence: row_id, sentence_idx, target, sentence.

    Returns:
        The columns of `truths.score_items`, with the oracle, who is 1 by definition.
    """
    lines = []
    for item in items.itertuples():
        both = forms[forms["sentence_idx"] == item.sentence_idx]
        own = both.loc[both["target"] == item.target, "row_id"].tolist()
        values = swap_shapley(model, both, "probability", only=own)
        worth = dict(zip(values.mixtures["kept"], values.mixtures["score"], strict=True))
        players = values.swaps["players"].iloc[0]
        limits = aopc_of_best(worth, -1), aopc_of_best(worth, 1)
        about = (item.item_id, item.model, item.training, item.cluster)
        mine = explanations[
            (explanations["model"] == item.model)
            & (explanations["training"] == item.training)
            & (explanations["text"] == item.text)
        ]
        for row in mine.itertuples():
            scores = [float(np.asarray(row.scores)[list(player)].sum()) for player in players]
            # Ties fall at random, the same way for everybody.
            ties = np.random.default_rng(seed_for("ties", item.item_id)).random(len(scores))
            order = np.lexsort((ties, -np.asarray(scores)))
            lines.append((*about, row.explainer, normalised_aopc(aopc_of(worth, order), *limits)))
        lines.append((*about, "oracle", 1.0))
    columns = ["item_id", "model", "training", "cluster", "explainer", "value"]
    return pd.DataFrame(lines, columns=columns).assign(truth=NAME)


def aopc_of(worth: Worth, order: Sequence[int]) -> float:
    """The mean fall of the answer when players go in an order.

    >>> aopc_of({"11": 1.0, "01": 0.0, "10": 1.0, "00": 0.0}, [0, 1])
    1.0
    """
    kept, curve = ["1"] * len(order), [worth["1" * len(order)]]
    for player in order:
        kept[player] = "0"
        curve.append(worth["".join(kept)])
    return aopc(np.asarray(curve))


def aopc_of_best(worth: Worth, sign: int) -> float:
    """The largest (sign 1) or smallest (-1) AOPC of any order, exactly.

    >>> aopc_of_best({"11": 1.0, "01": 0.0, "10": 1.0, "00": 0.0}, -1)
    0.5
    """
    whole = "1" * len(next(iter(worth)))
    best = {whole: 0.0}  # the smallest (largest) sum of answers on a way to these players
    for _ in whole:
        grown: dict[str, float] = {}
        for kept, total in best.items():
            for i in (i for i, digit in enumerate(kept) if digit == "1"):
                left = f"{kept[:i]}0{kept[i + 1 :]}"
                value = total + worth[left]
                grown[left] = sign * min(sign * value, sign * grown.get(left, value))
        best = grown
    return worth[whole] - best["0" * len(whole)] / len(whole)
