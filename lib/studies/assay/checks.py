"""Questions beside the truths: does an explainer look at the model, is its score about this model,
and what is it worth for so many passes?
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import rankdata

from ...metrics.agreement import rank_correlation
from ...metrics.mass_accuracy import mass_accuracy
from ...stats.estimates import expanded_quantiles
from .explainers import ABOUT_TEXT, Counts
from .plants import DECOY, overlap, plants_first
from .truths import score_items, score_on_other, telling_items


def mass_on_marks(items: pd.DataFrame, explanations: pd.DataFrame) -> pd.Series:
    """The mean mass accuracy of each explainer on the items of *mask*, the largest first.

    Args:
        items: truth, key, model, training, text.
    """
    rows = items[items["truth"] == "mask"].merge(explanations, on=ABOUT_TEXT)
    values = [mass_accuracy(np.asarray(r.scores), np.asarray(r.key)) for r in rows.itertuples()]
    means = rows.assign(mass=np.array(values, float)).groupby("explainer")["mass"].mean()
    return means.sort_values(ascending=False).rename("mass accuracy")


def likeness_when_redrawn(explanations: pd.DataFrame, redrawn: pd.DataFrame) -> pd.DataFrame:
    """How like explanations stay when all weights are drawn anew (Adebayo et al. 2018): the mean
    absolute rank correlation over words; 1 for constant ones, which stay as they were.

    Args:
        explanations, redrawn: explainer, model, training, text, scores.

    Returns:
        explainer, likeness.
    """
    both = redrawn.merge(explanations, on=["explainer", *ABOUT_TEXT], suffixes=("_redrawn", ""))
    both["likeness"] = [
        abs(rank_correlation(row.scores, row.scores_redrawn)) for row in both.itertuples()
    ]
    return both.groupby("explainer", sort=False)["likeness"].mean().fillna(1.0).reset_index()


def own_and_other(
    items: pd.DataFrame, scored: pd.DataFrame, explanations: pd.DataFrame, names: Collection[str]
) -> pd.DataFrame:
    """Scores of explanations of this model, and of another training of it, against this model's
    truths.

    Args:
        items: with the truths that are about the model.
        scored: of `score_items`.
        names: the explainers.

    Returns:
        The columns of `scored` with explained ("own" or "other"), and seed, sentence_idx and row_id
        as `lib.stats` wants them.
    """
    other = score_on_other(items, explanations).assign(explained="other")
    own = scored[scored["item_id"].isin(items["item_id"])].assign(explained="own")
    both = pd.concat([own, other], ignore_index=True).dropna(subset="value")
    both = both[both["explainer"].isin(list(names))]
    ids = both["item_id"] + both["explainer"]
    return both.assign(seed=both["training"], sentence_idx=both["cluster"], row_id=ids)


def scores_by_budget(items: pd.DataFrame, budgets: pd.DataFrame) -> pd.DataFrame:
    """The scores of each explainer after so many passes of the model.

    Args:
        items: as for `score_items`, with text.
        budgets: explanations with passes.

    Returns:
        The columns of `score_items` and passes.
    """
    found = items[["item_id", *ABOUT_TEXT]].merge(budgets, on=ABOUT_TEXT)
    parts = [
        score_items(items, part).assign(passes=n) for n, part in found.groupby("passes", sort=True)
    ]
    return pd.concat(parts, ignore_index=True)


def planted_in_detail(items: pd.DataFrame, explanations: pd.DataFrame) -> pd.DataFrame:
    """What explainers do with planted words, and with the decoy that is not used.

    Args:
        items: truth, key, sentence, model, training, text.

    Returns:
        explainer, overlap, order (`plants.plants_first`) and decoy (its share of the absolute
        scores, over the texts that hold one); the largest overlap first.
    """
    rows = items[items["truth"] == "planted"].merge(explanations, on=ABOUT_TEXT)
    lines = []
    for row in rows.itertuples():
        sizes = np.abs(np.asarray(row.scores, float))
        is_decoy = np.asarray(row.sentence) == DECOY
        share = sizes[is_decoy].sum() / (sizes.sum() or 1.0) if is_decoy.any() else np.nan
        known = (overlap(sizes, row.key), plants_first(sizes, row.key))
        lines.append((row.explainer, *known, share))
    table = pd.DataFrame(lines, columns=["explainer", "overlap", "order", "decoy"])
    return table.groupby("explainer").mean().sort_values("overlap", ascending=False).reset_index()


def must_lose(items: pd.DataFrame) -> list[tuple[str, str]]:
    """The cheaters that a truth about the model has to tell from the oracle, as (truth, cheater).

    Sizes without signs are all there is to know of an item whose effects have one sign. The cheater
    of sizes must lose where at least a fourth of the items (of the trainings, for edits, which are
    ranked together) have effects of both signs; with a few items that need not be so.

    Args:
        items: truth, training, key, change.
    """
    pairs = [(truth, "Cheater: marks") for truth in ("swap", "edit", "noun")]
    effects = {
        "edit": [part["change"] for _, part in items.query("truth == 'edit'").groupby("training")],
        "noun": list(items.query("truth == 'noun'")["key"]),
    }
    for truth, groups in effects.items():
        signs = [set(np.sign(np.asarray(group, float))) for group in groups]
        if signs and np.mean([{1.0, -1.0} <= of_group for of_group in signs]) >= 0.25:
            pairs.append((truth, "Cheater: sizes"))
    return pairs


def by_padding(items: pd.DataFrame, scored: pd.DataFrame, pads: Collection[str]) -> pd.DataFrame:
    """Whether an explainer that compares with padding loses where padding is not the other form.

    *Swap* compares a text with its other form. Where the model answers to padding as to the other
    form, both comparisons ask the same; where it answers as to the text itself, they do not.

    Args:
        items: truth, item_id, padding (where the text of padding alone stands for the model: 0 at
            the other form, 1 at the text; `answers.other_and_padding`).
        scored: of `truths.score_items`.
        pads: the explainers that compare with padding.

    Returns:
        explainer, pads, near and far (the mean score of texts whose padding is nearer to the other
        form, and to the text itself), n_near, n_far (texts, of all trainings).
    """
    swaps = items[items["truth"] == "swap"].set_index("item_id")["padding"]
    rows = scored[scored["item_id"].isin(swaps.index)].dropna(subset="value")
    is_near = rows["item_id"].map(swaps) < 0.5
    named = rows.assign(side=np.where(is_near, "near", "far"))
    found = named.groupby(["explainer", "side"])["value"].agg(["mean", "size"]).unstack()
    table = pd.DataFrame({"pads": found.index.isin(list(pads))}, index=found.index)
    for side in ("near", "far"):
        for name, kind in ((side, "mean"), (f"n_{side}", "size")):
            table[name] = found[kind].get(side, np.nan)
    return table.reset_index().sort_values(
        ["pads", "explainer"], ascending=[False, True], ignore_index=True
    )


def plausibility_of_rest(truths: pd.DataFrame, explanations: pd.DataFrame) -> pd.DataFrame:
    """How often the cue is above the attractor where the model does not follow the cue. That is no
    error and no merit of an explanation: it says how plausible it looks to people.

    Args:
        truths: of stage 02.
        explanations: explainer, model, training, text, scores.

    Returns:
        explainer, plausibility (the share), n (texts, of all trainings); empty where the model
        follows every cue.
    """
    rest = truths[(truths["truth"] == "cue") & ~truths["tells"]]
    asked = telling_items(rest.assign(tells=True))
    found = asked[["item_id", *ABOUT_TEXT]].merge(explanations, on=ABOUT_TEXT)
    scored = score_items(asked, found).groupby("explainer")["value"].agg(["mean", "size"])
    return scored.rename(columns={"mean": "plausibility", "size": "n"}).reset_index()


class Antecedents(NamedTuple):
    """How explainers order antecedents: a line a draw, the first one of all antecedents.

    `n` is how many antecedents the model's effect is known of.
    """

    order: pd.DataFrame  # Spearman's correlation with the effect, a column an explainer
    partial: pd.DataFrame  # the same, partial to the stereotype
    n: int


def antecedents(
    explained: pd.DataFrame, counts: Counts, n_bootstrap: int, seed: int = 0
) -> Antecedents:
    """Across sentences: do explainers order the antecedents as the model does, beyond their
    stereotype in the training text? Antecedents are drawn for all trainings and explainers
    together; the correlations are means over trainings.

    Args:
        explained: items of the truth *noun* with explanations: training, cluster, sentence, target,
            mark (1 for the antecedent), key, explainer, scores.
        counts: of the training text; a noun's stereotype is `Counts.log_ratio`.
        n_bootstrap: draws.
    """
    lines = []
    for row in explained.itertuples():
        at = int(np.argmax(row.mark))
        stereotype = counts.log_ratio(row.sentence[at], row.target)
        about = (row.explainer, row.training, row.cluster)
        lines.append((*about, row.scores[at], row.key[at], stereotype))
    names = ["explainer", "training", "cluster", "score", "effect", "stereotype"]
    known = pd.DataFrame(lines, columns=names).dropna()
    nouns = sorted(known["cluster"].unique())
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(nouns), (n_bootstrap, len(nouns)))
    drawn = np.vstack([np.arange(len(nouns)), drawn])
    order: dict[str, list[Any]] = {}
    partial: dict[str, list[Any]] = {}
    for (name, _), part in known.groupby(["explainer", "training"], sort=False):
        columns = part.set_index("cluster").reindex(nouns)[["score", "effect", "stereotype"]]
        score, effect, stereotype = columns.to_numpy(float).T[:, drawn]
        order.setdefault(str(name), []).append(partial_rank_correlation(score, effect))
        partial.setdefault(str(name), []).append(
            partial_rank_correlation(score, effect, stereotype)
        )
    by_order, by_partial = (
        pd.DataFrame({name: np.mean(draws, axis=0) for name, draws in of.items()})
        for of in (order, partial)
    )
    return Antecedents(by_order, by_partial, len(nouns))


def antecedent_table(found: Antecedents, alpha: float = 0.05) -> pd.DataFrame:
    """Explainer, rank_correlation, partial with low and high, n (antecedents)."""
    known = found.partial.iloc[1:].notna().any()  # not where the stereotype is all
    ends = {
        name: expanded_quantiles(found.partial[name][1:], found.n, alpha)
        if known[name]
        else (np.nan, np.nan)
        for name in found.partial
    }
    return pd.DataFrame(
        [
            (name, found.order[name][0], found.partial[name][0], *ends[name], found.n)
            for name in found.partial
        ],
        columns=["explainer", "rank_correlation", "partial", "low", "high", "n"],
    )


def partial_together(
    found: Antecedents, names: Collection[str], alpha: float = 0.05
) -> tuple[float, float, float]:
    """The mean partial correlation of these explainers, with its interval."""
    means = found.partial.filter(names).mean(axis=1)
    low, high = expanded_quantiles(means[1:], found.n, alpha)
    return float(means[0]), float(low), float(high)


def partial_rank_correlation(
    left: Float[np.ndarray, "*draw batch"],
    right: Float[np.ndarray, "*draw batch"],
    given: Float[np.ndarray, "*draw batch"] | None = None,
) -> Float[np.ndarray, "*draw"]:
    """Spearman's correlation of what the ranks of `given` leave of the two; NaN where it leaves
    nothing of one. Without `given` that of the two.

    >>> found = partial_rank_correlation([1, 2, 3, 4], [1, 2, 3, 4], [2, 1, 4, 3])
    >>> round(float(found), 3)
    1.0
    """
    a, b = (_centred(side) for side in (left, right))
    if given is not None:
        c = _centred(given)
        size = (c * c).sum(-1, keepdims=True)
        a, b = (
            side
            - c * np.divide((c * side).sum(-1, keepdims=True), size, out=0 * size, where=size > 0)
            for side in (a, b)
        )
    size = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return np.divide((a * b).sum(-1), size, out=np.full_like(size, np.nan), where=size > 1e-9)


def _centred(side: Float[np.ndarray, "*draw batch"]) -> Float[np.ndarray, "*draw batch"]:
    return rankdata(side, axis=-1) - (np.shape(side)[-1] + 1) / 2
