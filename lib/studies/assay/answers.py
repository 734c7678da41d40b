"""What a model itself answers when a text is altered: the truths that are about the model.

Every number here is a difference of f, the log-odds of the item's class (`models.log_odds`).
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from ...attribution.swaps import swap_shapley
from ...models.text_model import TextModel
from .models import log_odds
from .nouns import word_effects


def true_answers(
    model: TextModel,
    items: pd.DataFrame,
    altered: pd.DataFrame,
    forms: pd.DataFrame,
    followed: Collection[str] = (),
) -> pd.DataFrame:
    """The key of each item of one model (`lib.studies.assay.truths`), and whether it tells.

    A key does not tell where the model has learnt something else: a planted rule that it does not
    follow, a cue whose number does not decide (`is_verified`).

    Args:
        items: of one model (`lib.studies.assay.items`), with the rule of a plant.
        altered: the altered texts of these items, and maybe of others.
        forms: both forms of the sentences that are swapped.
        followed: the planted rules that the model follows.

    Returns:
        The items with key (a list), change (of edits; else NaN), f (the model's answer) and tells.
    """
    answers = log_odds(model, items["sentence"], items["target"])
    keys, changes, tells = [], [], []
    for row, f in zip(items.itertuples(), answers, strict=True):
        of_row = altered[altered["item_id"] == row.item_id]
        keys.append(_key(model, row, of_row, forms))
        changes.append(np.nan)
        tells.append(row.truth != "planted" or row.rule in followed)
        if row.truth == "edit":
            changes[-1] = float(f - _ask(model, of_row, row.target)[0])
        if row.truth == "cue":
            tells[-1] = is_verified(f, of_row["change"], _ask(model, of_row, row.target))
    return items.assign(key=keys, change=changes, tells=tells, f=answers)


def _key(model: TextModel, row: Any, altered: pd.DataFrame, forms: pd.DataFrame) -> list[float]:
    """What the truth knows of each word: the mark, where no model need be asked for it."""
    if row.truth == "swap":
        return _swap_key(model, row, forms)
    return _noun_key(model, row, altered) if row.truth == "noun" else list(map(float, row.mark))


def rules_followed(model: TextModel, planted: pd.DataFrame, least: float = 0.9) -> pd.DataFrame:
    """How often a model gives the label that a planted rule makes.

    Args:
        planted: new texts: rule, sentence, target.
        least: the share of texts from which on a rule counts as followed.

    Returns:
        rule, right (the share), is_followed.
    """
    is_right = pd.Series(log_odds(model, planted["sentence"], planted["target"]) > 0)
    share = is_right.groupby(planted["rule"].to_numpy(), sort=False).mean()
    return pd.DataFrame({"rule": share.index, "right": share.to_numpy()}).assign(
        is_followed=share.to_numpy() >= least
    )


def is_verified(f: float, changes: Collection[str], answers: Float[np.ndarray, "batch"]) -> bool:
    """Whether the cue decides: in the other number it turns the sign of f, and no attractor does.

    >>> is_verified(1.0, ["cue exchanged", "attractor exchanged"], np.array([-2.0, 0.5]))
    True
    """
    turned = np.sign(answers) != np.sign(f)
    is_cue = np.asarray(list(changes)) == "cue exchanged"
    return bool(is_cue.any() and (turned == is_cue).all())


def _ask(model: TextModel, altered: pd.DataFrame, target: int) -> Float[np.ndarray, "batch"]:
    return log_odds(model, altered["sentence"], [target] * len(altered))


def _swap_key(model: TextModel, row: Any, forms: pd.DataFrame) -> list[float]:
    """Shapley values of the words that the other form of the sentence exchanges; NaN elsewhere."""
    both = forms[forms["sentence_idx"] == row.sentence_idx]
    is_row = both["target"] == row.target
    values = swap_shapley(model, both, "margin", only=both.loc[is_row, "row_id"].tolist())
    scores = values.explanations.query("method == 'Swap Shapley'")["scores"].iloc[0]
    return np.where(np.asarray(row.mark) > 0, scores, np.nan).tolist()


def _noun_key(model: TextModel, row: Any, replaced: pd.DataFrame) -> list[float]:
    """What exchanging a word changes; NaN for words that were not exchanged."""
    others = {int(at): part["sentence"] for at, part in replaced.groupby("at")}
    alternatives = {at: [words[at] for words in part] for at, part in others.items()}
    sentence, target = list(row.sentence), row.target
    effects = word_effects(
        lambda texts: log_odds(model, texts, [target] * len(texts)), sentence, alternatives
    )
    return [effects.get(at, np.nan) for at in range(len(sentence))]
