"""The truths that an explainer is asked about, each with one primary score, fixed beforehand.

An *item* is a text that one model is asked about, one at a time and without its id. Its `key` has a
number a word: what the truth knows of that word, NaN where it knows nothing.

| truth | the key of a word | the score of an item |
|---|---|---|
| mask | 1 for an altered word, 0 for another | ROC AUC of the sizes |
| swap | its exact Shapley value over grammatical swaps | Spearman over the words that are swapped |
| planted | its share of the decision | overlap with these shares |
| cue | 1 for a verified cue, -1 for an attractor | 1 where a cue has the largest size of both |
| edit | 1 for a word of the edit, 0 for another | part in Spearman's rho over all pairs |
| noun | what exchanging the word changes | Spearman over the words that were exchanged |

For `edit` the truth is a number of the item, `change` = f(long) - f(short), and the estimate the
sum of the scores of the edited words. Spearman's rho is then over items; the score of an item is
its part in rho (`spearman_parts`), so that the mean is rho and clusters of items can be drawn.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats
from sklearn.metrics import roc_auc_score

from ...attribution.table import LARGEST, are_finite
from ...core.errors import TouchstoneError, check_choice
from ...metrics import faithfulness
from ...metrics.agreement import rank_correlation
from ...models.text_model import TextModel
from .edits import estimated_change
from .plants import overlap

Numbers = Sequence[float]


class Truth(NamedTuple):
    """A truth: the score of one item from its scores and key, or of all items together.

    `is_signed` says whether the sign of a score counts; `chance` is the score of equal scores.
    """

    score: Callable[[Numbers, Numbers], float]
    chance: float
    is_signed: bool


def mask_auc(scores: Numbers, key: Numbers) -> float:
    """How often an altered word has a larger absolute score than another; a tie counts half.

    >>> mask_auc([-3.0, 1.0, 2.0], [1, 0, 0])
    1.0
    """
    is_altered = np.asarray(key) > 0
    if is_altered.all() or not is_altered.any():
        return float("nan")
    return float(roc_auc_score(is_altered, np.abs(scores)))


def order_of_known(scores: Numbers, key: Numbers) -> float:
    """Spearman's correlation over the words that the key knows; NaN with fewer than three.

    A constant answer orders nothing: 0.

    >>> order_of_known([5.0, 1.0, 2.0, 3.0], [float("nan"), 0.1, 0.2, 0.3])
    1.0
    """
    known = ~np.isnan(np.asarray(key, float))
    if known.sum() < 3 or np.ptp(np.asarray(key, float)[known]) == 0:
        return float("nan")
    found = rank_correlation(np.asarray(scores, float)[known], np.asarray(key, float)[known])
    return 0.0 if np.isnan(found) else found


def cue_above_attractor(scores: Numbers, key: Numbers) -> float:
    """1 where the largest size of a cue is above that of every attractor, one half where equal.

    Sizes, since with signs the mere form of the two nouns (one plural, one not) would be enough.

    >>> cue_above_attractor([0.2, -0.9, 0.5], [0, 1, -1])
    1.0
    """
    sides, marks = np.abs(np.asarray(scores, float)), np.asarray(key)
    cue, attractor = (sides[marks == mark].max() for mark in (1, -1))
    return float(np.sign(cue - attractor) / 2 + 0.5)


TRUTHS = {
    "mask": Truth(mask_auc, 0.5, is_signed=False),
    "swap": Truth(order_of_known, 0.0, is_signed=True),
    "planted": Truth(overlap, 0.0, is_signed=False),
    "cue": Truth(cue_above_attractor, 0.5, is_signed=False),
    "edit": Truth(lambda scores, key: estimated_change(scores, np.flatnonzero(key)), 0.0, True),
    "noun": Truth(order_of_known, 0.0, is_signed=True),
}


def telling_items(truths: pd.DataFrame, part: str = "test") -> pd.DataFrame:
    """The items whose key tells of their model, each named by its training as well.

    Args:
        truths: of stage 02: item_id, training, sentence, part, tells and more.
        part: "test", or "dev" for the pairs on which a scale is fitted.

    Returns:
        The same columns, item_id as `<item>@<training>`, and text.
    """
    telling = truths[truths["tells"] & (truths["part"] == part)].reset_index(drop=True)
    names = telling["item_id"] + "@" + telling["training"].astype(str)
    return telling.assign(item_id=names, text=telling["sentence"].map(" ".join))


def items_to_answer(truths: pd.DataFrame) -> pd.DataFrame:
    """What a submission to the board answers: every item that is scored, of every training.

    Args:
        truths: of stage 02.

    Returns:
        item_id (`<item>@<training>`), truth, model, training, target, text (words and blanks).
    """
    asked = truths[truths["part"] == "test"]
    names = asked["item_id"] + "@" + asked["training"].astype(str)
    texts = asked["sentence"].map(" ".join)
    columns = ["item_id", "truth", "model", "training", "target", "text"]
    return asked.assign(item_id=names, text=texts)[columns].reset_index(drop=True)


def score_items(items: pd.DataFrame, explanations: pd.DataFrame) -> pd.DataFrame:
    """The score of every item that an explainer was asked about.

    Args:
        items: item_id, truth, model, training, cluster, key (a list), change (of edits).
        explanations: item_id, explainer, scores (a list, a number a word).

    Returns:
        One line an explanation: item_id, explainer, truth, model, training, cluster, value; NaN
        where the truth says nothing of the item.

    Raises:
        TouchstoneError: an unknown item or truth, an item twice, a length that does not fit, a
            score that is no finite number.
    """
    known = items.set_index("item_id")
    if unknown := sorted(set(explanations["item_id"]) - set(known.index)):
        raise TouchstoneError(f"there is no item {unknown[0]!r}; explain the items that are asked")
    if explanations.duplicated(["explainer", "item_id"]).any():
        twice = explanations.loc[explanations.duplicated(["explainer", "item_id"])].iloc[0]
        raise TouchstoneError(
            f"{twice['explainer']} explains item {twice['item_id']} twice; keep one of the two"
        )
    about = known.loc[explanations["item_id"]].reset_index()
    values = []
    for row, scores in zip(about.itertuples(), explanations["scores"], strict=True):
        check_choice("the truth", row.truth, TRUTHS)
        if len(scores) != len(row.key) or not are_finite(scores):
            raise TouchstoneError(
                f"item {row.item_id} has {len(row.key)} words, and its explanation {list(scores)}; "
                f"give one finite number a word, of a size below {LARGEST}"
            )
        values.append(TRUTHS[row.truth].score(scores, row.key))
    found = about[["item_id", "truth", "model", "training", "cluster"]].assign(
        explainer=explanations["explainer"].to_numpy(), value=values
    )
    is_edit = found["truth"] == "edit"
    change = known["change"] if "change" in known else pd.Series(dtype=float)
    for _, part in found[is_edit].groupby(["explainer", "model", "training"]):
        found.loc[part.index, "value"] = spearman_parts(
            part["value"].to_numpy(), change[part["item_id"]].to_numpy(float)
        )
    return found


def score_second(truths: pd.DataFrame, said: pd.DataFrame) -> pd.DataFrame:
    """The scores under the same truths of models of a second kind: of `score_items`.

    Args:
        truths: of stage 02, of these models.
        said: of stage 03, of these models: explainer, model, training, text, scores.
    """
    telling = telling_items(truths)
    answers = telling[["item_id", "model", "training", "text"]].merge(said)
    return score_items(telling, answers[["item_id", "explainer", "scores"]])


def spearman_parts(estimated: Numbers, true: Numbers) -> Float[np.ndarray, "batch"]:
    """Numbers, one a pair, whose mean is Spearman's correlation and whose spread is that of the
    correlation: by how much it falls, times n - 1, without the pair (jackknife, Tukey 1958; moved
    so that the mean is the correlation itself). Zeros where a side is constant.

    Numbers that differ by less than a billionth are ties: rounding made them.

    >>> round(float(spearman_parts([1.0, 2.0, 3.0, 4.0], [10.0, 30.0, 20.0, 40.0]).mean()), 9)
    0.8
    >>> spearman_parts([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]).tolist()  # as right without any of them
    [1.0, 1.0, 1.0]
    >>> spearman_parts([0.1 + 0.2, 0.3, 0.3], [1.0, 2.0, 3.0]).tolist()
    [0.0, 0.0, 0.0]
    """
    sides = np.array([np.round(np.asarray(side, float), 9) for side in (estimated, true)])
    n = sides.shape[1]
    if n < 3:  # without one of two there is no order
        return np.full(n, _correlations(sides[:, None])[0])
    without = np.array([np.delete(sides, i, axis=1) for i in range(n)]).swapaxes(0, 1)
    left = _correlations(without)
    return _correlations(sides[:, None])[0] + (n - 1) * (left.mean() - left)


def _correlations(sides: Float[np.ndarray, "2 draw batch"]) -> Float[np.ndarray, "draw"]:
    """Spearman's correlation of each draw; 0 where a side is constant."""
    a, b = stats.rankdata(sides, axis=-1) - (sides.shape[-1] + 1) / 2
    size = np.sqrt((a**2).sum(-1) * (b**2).sum(-1))
    return np.divide((a * b).sum(-1), size, out=np.zeros(len(a)), where=size > 0)


def oracle(items: pd.DataFrame) -> pd.DataFrame:
    """The explanations of one who knows the key: a score of 1 under every truth.

    Returns:
        item_id, explainer ("oracle"), scores.
    """
    scores = []
    for row in items.itertuples():
        key = np.nan_to_num(np.asarray(row.key, float))
        if row.truth == "cue":
            key = key.clip(0)
        scores.append((key * row.change / key.sum() if row.truth == "edit" else key).tolist())
    return pd.DataFrame({"item_id": items["item_id"], "explainer": "oracle", "scores": scores})


def cheaters(items: pd.DataFrame) -> pd.DataFrame:
    """Explanations of those who know a part of the yardstick, and one floor that knows the editor.

    | name | knows |
    |---|---|
    | Cheater: marks | which words the truth speaks of |
    | Cheater: sizes | how much a word did, and not in which direction (swap, edit, noun) |
    | Cheater: both texts | the answer to both texts of an edit |
    | Goal of the edit | how readers judge the edited aspect in both texts; no word, no model |

    Args:
        items: as for `oracle`, with mark, and goal (of edits).
    """
    known = oracle(items).assign(truth=items["truth"], mark=items["mark"])
    edits = known["truth"] == "edit"
    marks = known.assign(
        explainer="Cheater: marks",
        scores=[np.clip(np.asarray(mark, float), 0, None).tolist() for mark in known["mark"]],
    )
    about_model = known["truth"].isin([name for name, truth in TRUTHS.items() if truth.is_signed])
    sizes = known[about_model].assign(explainer="Cheater: sizes")
    sizes["scores"] = [np.abs(scores).tolist() for scores in sizes["scores"]]
    goals = marks[edits].assign(explainer="Goal of the edit")
    goals["scores"] = [
        (np.asarray(mark, float) * goal / np.sum(mark)).tolist()
        for mark, goal in zip(goals["mark"], items.loc[edits.to_numpy(), "goal"], strict=True)
    ]
    both = known[edits].assign(explainer="Cheater: both texts")
    parts = [marks, sizes, goals, both]
    return pd.concat(parts, ignore_index=True)[["item_id", "explainer", "scores"]]


def score_on_other(items: pd.DataFrame, explanations: pd.DataFrame) -> pd.DataFrame:
    """Explanations of one training, scored against the truths of another: what is left of the score
    was never about this model.

    Args:
        items: as for `score_items`, with text.
        explanations: explainer, model, training, text, scores.

    Returns:
        As `score_items`; training is that of the truth.
    """
    parts = []
    for number, own in items.groupby("training"):
        others = explanations[explanations["training"] != number]
        first = others.groupby(["explainer", "model", "text"], as_index=False).first()
        asked = own[["item_id", "model", "text"]].merge(first, on=["model", "text"])
        parts.append(score_items(own.reset_index(drop=True), asked))
    return pd.concat(parts, ignore_index=True)


def score_deletion(
    model: TextModel, items: pd.DataFrame, explanations: pd.DataFrame, operator: str, seed: int = 0
) -> pd.DataFrame:
    """How fast the probability falls when words go in the order of an explanation (NAOPC).

    Args:
        model: of the items, which are of one training.
        items: item_id, model, training, cluster, sentence, target, text.
        explanations: explainer, model, training, text, scores.
        operator: what stands in a deleted word's place (`lib.metrics.deletion`).

    Returns:
        The columns of `score_items`, with the oracle, who is 1 by definition.
    """
    rows = items.merge(explanations, on=["model", "training", "text"])
    about = {"dataset": "assay", "scheme": "-", "seed": -1, "sentence_idx": 0}
    names = {"item_id": "row_id", "sentence": "words", "explainer": "method"}
    table = rows.drop(columns=[*about], errors="ignore").rename(columns=names).assign(**about)
    found = faithfulness(
        model, table, operator, n_samples=2, n_random=1, n_exact=0, n_beam=2, seed=seed
    )
    found = found.rename(columns={"row_id": "item_id", "method": "explainer", "NAOPC": "value"})
    found = found[found["explainer"].isin(set(rows["explainer"]))]
    best = items[["item_id"]].assign(explainer="oracle", value=1.0)
    both = pd.concat([found[["item_id", "explainer", "value"]], best], ignore_index=True)
    return both.merge(items[["item_id", "model", "training", "cluster"]], on="item_id").assign(
        truth=f"deletion, {operator}"
    )
