"""The second score of edits: how much nearer than the best rule without a model an explainer comes
to what the edits did, after one scale that is fitted on other pairs.

Rank correlation asks for the order of the changes only. Skill asks for their sizes, too:

    skill = 1 - mean (a e - d)^2 / mean (a_0 e_0 - d)^2,

with d the true change of a pair, e the estimated one, e_0 that of the best rule, and a and a_0
fitted on pairs that nothing is scored on. 1 is exact, 0 as good as the rule, negative worse.
"""

import numpy as np
import pandas as pd

from ...stats import estimates
from .edits import estimated_change
from .explainers import ABOUT_TEXT
from .standing import role_of
from .truths import Numbers, spearman_parts

RULES = ("Zero", "Goal of the edit", "Word counts")  # the best of these, on dev, has a skill of 0
_SECOND = "Second editor"


def fitted_scale(estimated: Numbers, true: Numbers) -> float:
    """The factor a for which a * estimated is nearest to true (least squares); 0 for zeros.

    >>> fitted_scale([1.0, 2.0], [2.0, 4.0])
    2.0
    """
    e, d = np.asarray(estimated, float), np.asarray(true, float)
    size = float(e @ e)
    return float(e @ d) / size if size > 0 else 0.0


def estimated_changes(items: pd.DataFrame, explanations: pd.DataFrame) -> pd.DataFrame:
    """What each explanation says that the edit did; and what a second editor's text did.

    Args:
        items: truth, model, training, text, item_id, cluster, key, change, goal, second (NaN where
            there is no second editor).
        explanations: explainer, model, training, text, scores.

    Returns:
        item_id, training, cluster, explainer, estimated, change. *Zero* says that nothing changes,
        *Goal of the edit* how much better readers judge the edited aspect in the long text.
    """
    known = items[items["truth"] == "edit"]
    asked = known.merge(explanations, on=ABOUT_TEXT)
    asked["estimated"] = [
        estimated_change(row.scores, np.flatnonzero(row.key)) for row in asked.itertuples()
    ]
    second = known.dropna(subset="second").assign(explainer=_SECOND, estimated=known["second"])
    goal = known.assign(explainer="Goal of the edit", estimated=known["goal"].astype(float))
    zero = known.assign(explainer="Zero", estimated=0.0)
    columns = ["item_id", "training", "cluster", "explainer", "estimated", "change"]
    return pd.concat([asked, goal, second, zero], ignore_index=True)[columns]


def score_mixed(
    changes: pd.DataFrame, items: pd.DataFrame, explanations: pd.DataFrame
) -> pd.DataFrame:
    """Parts in Spearman's rho of edits that also wrote words, which no explanation of the text
    knows: only the words that went are estimated.

    Args:
        changes: of `deleting.Deletions.mixed_changes`: item_id, at, change.
        items, explanations: as for `estimated_changes`.

    Returns:
        item_id, training, cluster, explainer, value: the mean over a training is Spearman's rho.
    """
    known = items[["item_id", "cluster", *ABOUT_TEXT]].merge(changes, on="item_id")
    asked = known.merge(explanations[["explainer", *ABOUT_TEXT, "scores"]], on=ABOUT_TEXT)
    asked["estimated"] = [estimated_change(row.scores, row.at) for row in asked.itertuples()]
    asked["value"] = np.nan
    for _, part in asked.groupby(["explainer", "training"]):
        asked.loc[part.index, "value"] = spearman_parts(part["estimated"], part["change"])
    return asked[["item_id", "training", "cluster", "explainer", "value"]]


def skill(tested: pd.DataFrame, fitted: pd.DataFrame) -> pd.DataFrame:
    """The skill of everybody, pair by pair: its mean over pairs is the skill.

    The rule's error is taken as known, so that pairs can be drawn.

    Args:
        tested, fitted: of `estimated_changes`, on the pairs that are scored and on others.

    Returns:
        tested with scale, value and rule (which of `RULES` is 0).
    """
    parts = []
    for training, part in tested.groupby("training"):
        dev = fitted[fitted["training"] == training]
        scales = {
            name: fitted_scale(of["estimated"], of["change"])
            for name, of in dev.groupby("explainer")
        }
        part = part.assign(scale=part["explainer"].map(scales))
        error = (part["scale"] * part["estimated"] - part["change"]) ** 2
        dev_error = (dev["explainer"].map(scales) * dev["estimated"] - dev["change"]) ** 2
        rule = dev_error.groupby(dev["explainer"]).mean().reindex(RULES).idxmin()
        of_rule = error[part["explainer"] == rule].mean()
        parts.append(part.assign(value=1 - error / of_rule, rule=rule))
    return pd.concat(parts, ignore_index=True)


def edit_table(
    skills: pd.DataFrame,
    other: pd.DataFrame,
    mixed: pd.DataFrame,
    n_bootstrap: int,
    alpha: float,
    seed: int,
) -> pd.DataFrame:
    """All scores of everybody, the best skill first.

    Args:
        skills: of `skill`.
        other: of `truths.score_on_other`: the same explainers, asked about another training.
        mixed: of `score_mixed`.

    Returns:
        explainer, role, rank_correlation, of_another_model (the rank correlation that an
        explanation of the other training reaches), skill with low and high, n (pairs); mixed (the
        rank correlation over mixed edits) with mixed_low, mixed_high and mixed_n.
    """
    rank = {
        name: np.mean(
            [
                spearman_parts(of["estimated"], of["change"]).mean()
                for _, of in part.groupby("training")
            ]
        )
        for name, part in skills.groupby("explainer")
    }
    table = skills.dropna(subset="value").assign(
        seed=skills["training"], sentence_idx=skills["cluster"], row_id=skills["item_id"]
    )
    how = ("value", "mean", n_bootstrap, alpha, seed)
    found = estimates(table, ["explainer"], *how)
    found = found.rename(columns={"estimate": "skill"})[["explainer", "skill", "low", "high"]]
    names = {"estimate": "mixed", "low": "mixed_low", "high": "mixed_high"}
    of_mixed = mixed.assign(seed=mixed["training"], sentence_idx=mixed["cluster"])
    of_mixed["row_id"] = of_mixed.groupby(["explainer", "seed"]).cumcount()
    second = estimates(of_mixed, ["explainer"], *how).rename(columns=names)
    ends = ["mixed_low", "mixed_high"]
    second[ends] = second[ends].clip(-1, 1)  # a mean of parts, drawn again, can lie outside
    second["mixed_n"] = second["explainer"].map(of_mixed.groupby("explainer")["row_id"].nunique())
    elsewhere = other[other["truth"] == "edit"].groupby("explainer")["value"].mean()
    n = skills.groupby("explainer")["item_id"].nunique()
    roles = {_SECOND: "second editor", "Zero": "floor"}
    table = found.assign(
        role=[roles.get(name) or role_of(name) for name in found["explainer"]],
        rank_correlation=found["explainer"].map(rank),
        of_another_model=found["explainer"].map(elsewhere),
        n=found["explainer"].map(n),
    ).sort_values("skill", ascending=False, ignore_index=True)
    scores = ["rank_correlation", "of_another_model", "skill", "low", "high", "n"]
    columns = ["explainer", *names.values(), "mixed_n"]
    return table[["explainer", "role", *scores]].merge(second[columns], how="left")
