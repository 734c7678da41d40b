"""What an explanation owes to the choices around its method: the explained function, the class, the
baseline.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...attribution.explain import explain_many
from ...metrics.agreement import rank_likeness
from ...models.text_model import BATCH
from .variants import with_reference

FUNCTIONS = ("probability", "log_probability", "margin")


def ranking_moves(
    model: Any, rows: pd.DataFrame, methods: Sequence[tuple[str, Mapping[str, Any]]]
) -> pd.DataFrame:
    """How far the order of a row's words moves when one choice is changed, the method staying the
    same.

    Usual are the logit, the true class and padding. Choices: the explained function (probability,
    log_probability, margin), the class (predicted, on the rows where it is not the true one), the
    baseline (mask, zero). Columns: method, choice, value, row_id, sentence_idx, seed, rank_signed
    and rank_size (Spearman over the words with the usual explanation, with and without signs),
    first (the same word on top).
    """

    def explained(one: Any, table: pd.DataFrame, function: str = "logit") -> pd.DataFrame:
        return explain_many(
            one, table, [(name, {**own, "explained": function}) for name, own in methods]
        )

    usual = explained(model, rows)
    predicted = model.predict(rows["sentence"], BATCH).argmax(1)
    wrong = rows.assign(target=predicted)[predicted != rows["target"].to_numpy()]
    changed = {("function", name): explained(model, rows, name) for name in FUNCTIONS}
    if len(wrong):
        changed["class", "predicted"] = explained(model, wrong)
    changed |= {
        ("baseline", name): explained(with_reference(model, name), rows)
        for name in ("mask", "zero")
    }
    return pd.concat(
        [
            _compared(usual, now).assign(choice=choice, value=value)
            for (choice, value), now in changed.items()
        ],
        ignore_index=True,
    )


def summarise_moves(moves: pd.DataFrame) -> pd.DataFrame:
    """Per method and choice: rank (mean of rank_signed over the rows), first (share of rows), rows
    (how many).
    """
    groups = moves.groupby(["method", "choice", "value"], sort=False)
    return groups.agg(
        rank=("rank_signed", "mean"), first=("first", "mean"), rows=("row_id", "nunique")
    ).reset_index()


def _compared(usual: pd.DataFrame, changed: pd.DataFrame) -> pd.DataFrame:
    keys = ["method", "row_id"]
    both = changed.merge(usual[[*keys, "scores"]], on=keys, suffixes=("", "_usual"))
    scores, usual_scores = both["scores"], both["scores_usual"]
    top, usual_top = (column.map(_largest) for column in (scores, usual_scores))
    return both[["method", "row_id", "sentence_idx", "seed"]].assign(
        **rank_likeness(scores, usual_scores), first=(top == usual_top).astype(float)
    )


def _largest(scores: Sequence[float]) -> int:
    return int(np.abs(scores).argmax())
