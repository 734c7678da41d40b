"""The tables of the study: rows in, one line per group out, always with the same groups whatever
the models did.

A group is a dataset, a scheme and a method. `how` stands for the settings of
`lib.stats.estimate`: n_bootstrap, alpha and seed. Its columns in a table are estimate (or the
name of the quantity), low, high, n (rows), n_sentences (base sentences) and n_seeds (trainings).
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score, roc_curve

from ...core.errors import TouchstoneError
from ...metrics import METRICS, relative_mass_accuracy
from ...stats import clustered_wilcoxon, compare_all, estimates, holm, variance_split

GROUP = ["dataset", "scheme", "method"]
UNTRAINED = ("-", "ZS")
RULE, BAG = "First pronoun rule", "Bag of words"  # what needs no encoder, and no order of words
_MODEL = GROUP[:2]
_COUNTS = ("n", "n_sentences", "n_seeds")
_FORM = ["standard_error", "df"]  # of an estimate, and left out of tables
# measures with an interval beside mass accuracy, and what the columns of its bounds end in
_WITH_INTERVAL = {"MA_chance_normalised": "normalised", "recall": "recall", "roc_auc": "roc_auc"}
# where ROC curves are read off, so that those of several seeds can be averaged
_FALSE_ALARMS = np.linspace(0, 1, 21)


def trained_only(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of trained models: neither floors nor the zero-shot model."""
    return table[~table["scheme"].isin(UNTRAINED)]


def mark_below(table: pd.DataFrame, below: Collection[tuple[str, str]]) -> pd.DataFrame:
    """Add below_first_pronoun: whether (dataset, scheme) is among the models below the
    first-pronoun rule.
    """
    models = zip(table["dataset"], table["scheme"])
    return table.assign(below_first_pronoun=[model in below for model in models])


def in_groups(groups: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """One line for each of `groups`, in their order: that of the table, or n = 0 and no values
    where it has none.
    """
    whole = groups.merge(table, on=list(groups), how="left")
    counts = dict.fromkeys((name for name in _COUNTS if name in whole), 0)
    return whole.fillna(counts).astype(dict.fromkeys(counts, int))


def summarise_accuracy(judged: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Accuracy of every model and floor, on all rows and on hard ones, and whether it is below
    either untrained bar.

    Args:
        judged: predictions of models and of the floors (RULE and BAG among them): dataset,
            scheme, seed, sentence_idx, is_correct (0 or 1), is_hard.

    Returns:
        dataset, scheme, accuracy, low, high, n, n_sentences, n_seeds, then accuracy, low, high
        and n with the ending _hard, below_first_pronoun, below_bag_of_words.
    """
    table, hard = (
        estimates(part, _MODEL, "is_correct", **how)
        .drop(columns=_FORM)
        .rename(columns={"estimate": "accuracy"})
        for part in (judged, judged[judged["is_hard"]])
    )
    hard = hard.drop(columns=["n_sentences", "n_seeds"])
    table = table.merge(hard, on=_MODEL, how="left", suffixes=("", "_hard"))
    # a model without hard rows has none of them, and no accuracy on them
    table = table.fillna({"n_hard": 0}).astype({"n_hard": int})
    for name, bar in (("below_first_pronoun", RULE), ("below_bag_of_words", BAG)):
        reached = table[table["scheme"] == bar].set_index("dataset")["accuracy"]
        table[name] = table["accuracy"] < table["dataset"].map(reached)
    return table


def summarise_mass(scored: pd.DataFrame, groups: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Mass accuracy on both scales, recall and the area under the ROC curve with intervals, the
    share, and the means of the other measures, for every group. Every mean is one over rows, then
    over seeds.

    Args:
        scored: from `lib.metrics.score_explanations`.
        groups: the dataset, scheme and method of every line.

    Returns:
        dataset, scheme, method, MA, low, high, n, n_sentences, n_seeds, MA_chance_normalised,
        low_normalised, high_normalised, recall, low_recall, high_recall, roc_auc, low_roc_auc,
        high_roc_auc, share, and the other measures.
    """
    table = estimates(scored, GROUP, "MA", **how).rename(columns={"estimate": "MA"})
    table = table.drop(columns=_FORM)
    for name, ending in _WITH_INTERVAL.items():
        bounds = {bound: f"{bound}_{ending}" for bound in ("low", "high")}
        found = estimates(scored, GROUP, name, **how).rename(columns={"estimate": name, **bounds})
        table = table.merge(found[[*GROUP, name, *bounds.values()]], on=GROUP)
    rest = ["share", *(name for name in METRICS if name not in table)]
    means = scored.groupby([*GROUP, "seed"])[rest].mean().groupby(GROUP).mean()
    return in_groups(groups[GROUP], table.join(means, on=GROUP))


def summarise_relative(
    chosen: pd.DataFrame, scored: pd.DataFrame, groups: pd.DataFrame, **how: Any
) -> pd.DataFrame:
    """Median RMA of the chosen rows with intervals, how often MA_ZS is 0 and leaves none, and
    what two floors reach.

    Args:
        chosen: the scored rows that count, with MA_ZS and RMA (`lib.metrics.add_relative`).
        scored: all rows, with those of the zero-shot model, for the floors.
        groups: the dataset, scheme and method of every line.

    Returns:
        dataset, scheme, method, RMA, low, high, n, n_sentences, n_seeds, undefined (the share of
        rows without RMA), RMA_first_pronoun, RMA_uniform_random.
    """
    table = estimates(chosen, GROUP, "RMA", "median", **how).drop(columns=_FORM)
    compared = chosen[chosen["MA_ZS"].notna()]
    undefined = compared["RMA"].isna().rename("undefined").groupby([compared[k] for k in GROUP])
    table = table.rename(columns={"estimate": "RMA"}).join(undefined.mean(), on=GROUP)
    table = in_groups(groups[GROUP], table)
    for floor, name in (
        ("First pronoun", "RMA_first_pronoun"),
        ("Uniform random", "RMA_uniform_random"),
    ):
        table = table.join(_relative_floor(scored, floor).rename(name), on=["dataset", "method"])
    return table


def gain_tests(chosen: pd.DataFrame, groups: pd.DataFrame) -> pd.DataFrame:
    """Wilcoxon tests of MA - MA_ZS over base sentences, one per group, corrected by Holm over
    the table.

    Returns:
        dataset, scheme, method, gain (the mean difference), p, rank_biserial, dz, n_sentences,
        p_holm.
    """
    gains = chosen.assign(gain=chosen["MA"] - chosen["MA_ZS"])
    tests = pd.DataFrame(
        [
            (*key, part["gain"].mean(), *clustered_wilcoxon(part, "gain"))
            for key, part in gains.groupby(GROUP)
        ],
        columns=[*GROUP, "gain", "p", "rank_biserial", "dz", "n_sentences"],
    )
    table = in_groups(groups[GROUP], tests)
    return table.assign(p_holm=holm(table["p"]))


def compare_methods(chosen: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Every pair of methods within each model (dataset and scheme), by `lib.stats.compare_all`.

    A pair that has one training of a trained model is never ranked: how far trainings differ is
    not known.

    Returns:
        dataset, scheme, then the columns of `compare_all`.

    Raises:
        TouchstoneError: where no model was explained by two methods.
    """
    pairs = [
        compare_all(part, "method", "MA", **how).assign(**dict(zip(_MODEL, key)))
        for key, part in chosen.groupby(_MODEL, sort=False)
        if part["method"].nunique() > 1
    ]
    if not pairs:
        raise TouchstoneError(
            "no model was explained by two methods, so none can be compared; "
            "name at least two in `methods`"
        )
    table = pd.concat(pairs, ignore_index=True)
    has_spread = (table["n_seeds"] > 1) | table["scheme"].isin(UNTRAINED)
    table = table.assign(is_ranked=table["is_ranked"] & has_spread)
    return table[[*_MODEL, *table.columns.drop(_MODEL)]]


def possible_places(pairs: pd.DataFrame, mass: pd.DataFrame) -> pd.DataFrame:
    """The best and the worst place that each method can have, given the pairs that are ranked,
    beside its MA.

    Args:
        pairs: from `compare_methods`.
        mass: dataset, scheme, method, MA of the methods to be placed.

    Returns:
        dataset, scheme, method, MA, best_place, worst_place, smallest_detectable (median over
        the model's pairs).
    """
    ranked = pairs[pairs["is_ranked"].astype(bool)]
    is_left = ranked["difference"] > 0
    winner = ranked["left"].where(is_left, ranked["right"])
    loser = ranked["right"].where(is_left, ranked["left"])
    table = mass[[*GROUP, "MA"]].reset_index(drop=True)
    n_methods = table.groupby(_MODEL)["method"].transform("size")
    beaten_by, beats = (
        table[GROUP].join(ranked.assign(method=who).groupby(GROUP).size().rename("n"), on=GROUP)[
            "n"
        ]
        for who in (loser, winner)
    )
    limit = pairs.groupby(_MODEL)["smallest_detectable"].median()
    return table.assign(
        best_place=1 + beaten_by.fillna(0).astype(int),
        worst_place=n_methods - beats.fillna(0).astype(int),
    ).join(limit, on=_MODEL)


def split_variance(scored: pd.DataFrame, value: str = "MA") -> pd.DataFrame:
    """Variance split per model over seed, base sentence, class and method, with the methods that
    every seed has.

    Args:
        scored: dataset, scheme, method, seed, sentence_idx, target and the value.

    Returns:
        dataset, scheme, then the columns of `lib.stats.variance_split`.
    """
    # costly methods explain one seed only, and the split needs every cell filled
    n_seeds = scored.groupby(GROUP)["seed"].transform("nunique")
    full = scored[n_seeds == n_seeds.groupby([scored[k] for k in _MODEL]).transform("max")]
    factors = ["seed", "sentence_idx", "target", "method"]
    interactions = [("seed", "method"), ("sentence_idx", "method")]
    parts = [
        variance_split(part, value, factors, interactions).assign(dataset=dataset, scheme=scheme)
        for (dataset, scheme), part in full.groupby(_MODEL, sort=False)
    ]
    return pd.concat(parts, ignore_index=True)[[*_MODEL, "term", "levels", "share", "sd"]]


def confusion_shares(predictions: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """For each model and true class, the share of rows that each class was predicted for, over
    rows and seeds.

    Args:
        predictions: dataset, scheme, target, predicted (class numbers).

    Returns:
        dataset, scheme, target, predicted (class names), share.
    """
    keys, tables = [*_MODEL, "target"], []
    for _, part in predictions.groupby("dataset", sort=False):
        present = sorted(part["target"].unique())
        counts = part.groupby(keys, sort=False)["predicted"].value_counts(normalize=True)
        shares = counts.unstack(fill_value=0.0).reindex(columns=present, fill_value=0.0)
        tables.append(shares.stack().rename("share").reset_index())
    table, names = pd.concat(tables, ignore_index=True), dict(enumerate(classes))
    return table.assign(target=table["target"].map(names), predicted=table["predicted"].map(names))


def roc_points(predictions: pd.DataFrame) -> pd.DataFrame:
    """ROC curves of two-class models on P(M), read off at fixed false positive rates, mean over
    seeds, with the area.

    Args:
        predictions: dataset, scheme, seed, target (0 or 1), p_M.

    Returns:
        dataset, scheme, auc, false_positive_rate, true_positive_rate; no lines where there are
        no such models.
    """
    lines = []
    for key, part in predictions.groupby(_MODEL, sort=False):
        runs = [(run["target"], run["p_M"]) for _, run in part.groupby("seed")]
        rates = np.mean([np.interp(_FALSE_ALARMS, *roc_curve(*run)[:2]) for run in runs], axis=0)
        area = np.mean([roc_auc_score(*run) for run in runs])
        lines += [(*key, area, *point) for point in zip(_FALSE_ALARMS, rates)]
    return pd.DataFrame(
        lines, columns=[*_MODEL, "auc", "false_positive_rate", "true_positive_rate"]
    )


def word_shares(explanations: pd.DataFrame, mask: Sequence[int]) -> pd.DataFrame:
    """The explanations of one sentence word by word. Where a model has several seeds, the first
    is taken.

    Args:
        mask: the ground truth of the sentence.

    Returns:
        dataset, row_id, scheme, method, position, word, share (of the attribution), is_truth.
    """
    rows = explanations.drop_duplicates(["scheme", "method"])
    words = rows[["dataset", "row_id", "scheme", "method"]].assign(
        position=[range(len(mask))] * len(rows),
        word=rows["words"],
        share=rows["scores"].map(lambda scores: np.abs(scores) / (np.abs(scores).sum() or 1)),
        is_truth=[list(mask)] * len(rows),
    )
    words = words.explode(["position", "word", "share", "is_truth"], ignore_index=True)
    return words.astype({"position": int, "share": float, "is_truth": int})


def _relative_floor(scored: pd.DataFrame, floor: str) -> pd.Series:
    """What a floor reaches where methods show RMA: median of its MA over the zero-shot model's,
    by dataset and method.
    """
    mass = scored[scored["method"] == floor].set_index(["dataset", "row_id"])["MA"].rename("floor")
    pairs = scored[scored["scheme"] == "ZS"].join(mass, on=["dataset", "row_id"])
    pairs["RMA"] = relative_mass_accuracy(pairs["floor"], pairs["MA"])
    return pairs.groupby(["dataset", "method"], sort=False)["RMA"].median()
