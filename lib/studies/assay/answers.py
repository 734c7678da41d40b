"""What a model itself answers when a text is altered: the truths that are about the model.

Every number here is a difference of f, the log-odds of the item's class (`models.log_odds`).
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from ...attribution.swaps import swap_shapley
from ...metrics.deletion import DeletedWords
from ...models.text_model import TextModel
from .items import ORDERED
from .models import log_odds
from .nouns import word_effects

FOLLOWED = 0.9  # the share of right labels from which on a planted rule counts as followed


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
        The items with key (a list), change (of edits; else NaN), second (the change that a second
        editor with the same goal made), f (the model's answer) and tells.
    """
    answers = log_odds(model, items["sentence"], items["target"])
    keys, changes, seconds, tells = [], [], [], []
    for row, f in zip(items.itertuples(), answers, strict=True):
        of_row = altered[altered["item_id"] == row.item_id]
        keys.append(_key(model, row, of_row, forms))
        tells.append(row.truth != "planted" or row.rule in followed)
        change = (np.nan, np.nan)
        if row.truth == "edit":
            change = _changes(f, of_row["change"], _ask(model, of_row, row.target))
        changes.append(change[0])
        seconds.append(change[1])
        if row.truth == "cue":
            tells[-1] = is_verified(f, of_row["change"], _ask(model, of_row, row.target))
    return items.assign(key=keys, change=changes, second=seconds, tells=tells, f=answers)


def of_two_forms(told: pd.DataFrame, forms: pd.DataFrame) -> pd.DataFrame:
    """Answers of which *mask* and *swap* know the words alone that differ between two forms.

    Labels for three forms also mark what only the third one changes ("she decides, they decide"):
    the other form of these two has the same word there. A *swap* that knows fewer than `ORDERED`
    words does not tell, for they have no order to speak of.

    Args:
        told: of `true_answers`; sentence_idx names the sentence.
        forms: both forms of these sentences, as many words in each.
    """
    by_sentence = forms.groupby("sentence_idx")["sentence"]
    differ = by_sentence.agg(lambda both: [len(set(words)) > 1 for words in zip(*both)])
    told = told.copy()
    for row in told[told["truth"].isin(["mask", "swap"])].itertuples():
        known = np.asarray(row.mark, bool) & differ[row.sentence_idx]
        told.at[row.Index, "mark"] = known.astype(float).tolist()
        key = np.where(known, row.key, np.nan) if row.truth == "swap" else known.astype(float)
        told.at[row.Index, "key"] = key.tolist()
        told.at[row.Index, "tells"] = row.tells and (row.truth == "mask" or known.sum() >= ORDERED)
    return told


def _changes(
    f: float, names: Sequence[str], answers: Float[np.ndarray, "batch"]
) -> tuple[float, float]:
    """f(long) - f(short) of an edit; and the same where a second editor wrote the edited text, NaN
    where there is none.
    """
    of = dict(zip(names, map(float, answers), strict=True))
    short = of["removed"]
    if "second editor, long" in of:
        return float(f) - short, of["second editor, long"] - short
    return float(f) - short, float(f) - of.get("second editor, short", np.nan)


def _key(model: TextModel, row: Any, altered: pd.DataFrame, forms: pd.DataFrame) -> list[float]:
    """What the truth knows of each word: the mark, where no model need be asked for it."""
    if row.truth == "swap":
        return _swap_key(model, row, forms)
    return _noun_key(model, row, altered) if row.truth == "noun" else list(map(float, row.mark))


def two_trainings(truths: pd.DataFrame) -> pd.DataFrame:
    """What a word (or an edit) did to the first two trainings of a model, side by side.

    Returns:
        truth, item_id, at (the place of the word; -1 for an edit), first, second.
    """
    parts = [
        pd.DataFrame(
            {
                "truth": row.truth,
                "item_id": row.item_id,
                "at": [-1] if row.truth == "edit" else range(len(row.key)),
                "training": row.training,
                "d": [row.change] if row.truth == "edit" else row.key,
            }
        )
        for row in truths.itertuples()
    ]
    about = ["truth", "item_id", "at"]
    wide = pd.concat(parts).dropna().pivot(index=about, columns="training", values="d")
    return wide.iloc[:, :2].set_axis(["first", "second"], axis=1).dropna().reset_index()


def rules_followed(model: TextModel, planted: pd.DataFrame) -> pd.DataFrame:
    """How often a model gives the label that a planted rule makes.

    Args:
        planted: new texts: rule, sentence, target.

    Returns:
        rule, right (the share), is_followed.
    """
    is_right = pd.Series(log_odds(model, planted["sentence"], planted["target"]) > 0)
    share = is_right.groupby(planted["rule"].to_numpy(), sort=False).mean()
    return pd.DataFrame({"rule": share.index, "right": share.to_numpy()}).assign(
        is_followed=share.to_numpy() >= FOLLOWED
    )


def is_verified(f: float, changes: Collection[str], answers: Float[np.ndarray, "batch"]) -> bool:
    """Whether the cue decides: in the other number it turns the sign of f, and no attractor does,
    nor moves f as far.

    >>> is_verified(1.0, ["cue exchanged", "attractor exchanged"], np.array([-2.0, 0.5]))
    True
    """
    turned, moved = np.sign(answers) != np.sign(f), np.abs(answers - f)
    is_cue = np.asarray(list(changes)) == "cue exchanged"
    if not is_cue.any() or (turned != is_cue).any():
        return False
    return bool(moved[is_cue].max() > moved[~is_cue].max(initial=0.0))


def other_and_padding(model: TextModel, item: Any, forms: pd.DataFrame) -> tuple[float, float]:
    """f of the other form of a sentence; and where the text of padding alone stands between the two
    forms, for the model.

    0 is the answer to the other form, 1 the answer to the item. At 1 an explainer that compares
    with padding has nothing to explain, though every word of the other form would matter.

    Args:
        item: of the truth *swap*: sentence, target, sentence_idx, f.
        forms: both forms of each sentence.
    """
    is_other = (forms["sentence_idx"] == item.sentence_idx) & (forms["target"] != item.target)
    other = _ask(model, forms[is_other], item.target)[0]
    padded = DeletedWords(model, [list(item.sentence)], [item.target], "pad", "margin")
    empty = padded.scores([0], [np.zeros(len(item.sentence), bool)])[0]
    return float(other), float((empty - other) / (item.f - other))


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
