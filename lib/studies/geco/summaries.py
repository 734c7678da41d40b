"""The tables of a study: rows in, one line per group out, always with the same groups whatever the models did.

`how` stands for the settings of `lib.stats.estimates.estimate`: n_bootstrap, alpha and seed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score, roc_curve

from lib.core.errors import TouchstoneError
from lib.metrics import METRICS, relative_floors
from lib.stats import clustered_wilcoxon, compare_all, estimates, holm, variance_split

GROUP = ["dataset", "scheme", "method"]
UNTRAINED = ("-", "ZS")
RULE, BAG = "First pronoun rule", "Bag of words"  # what needs no encoder, and no order of words
FALSE_ALARMS = np.linspace(
    0, 1, 21
)  # where ROC curves are read off, so that those of several seeds can be averaged


def trained_only(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of trained models: neither floors nor the zero-shot model."""
    return table[~table["scheme"].isin(UNTRAINED)]


def mark_below(table: pd.DataFrame, below: Collection[tuple[str, str]]) -> pd.DataFrame:
    """Add below_first_pronoun: whether (dataset, scheme) is among the models below the first-pronoun rule."""
    return table.assign(
        below_first_pronoun=[key in below for key in zip(table["dataset"], table["scheme"])]
    )


def summarise_accuracy(judged: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Accuracy of every model and floor, on all rows and on hard ones, and whether it is below either untrained bar.

    `judged`: predictions of models and of the floors (RULE and BAG among them), with is_correct (0 or 1) and is_hard.
    """
    names = ["accuracy", "low", "high", "n", "n_sentences", "n_seeds"]
    table, hard = (
        estimates(part, GROUP[:2], "is_correct", **how).rename(columns={"estimate": "accuracy"})[
            GROUP[:2] + names
        ]
        for part in (judged, judged[judged["is_hard"]])
    )
    hard = hard.drop(columns=["n_sentences", "n_seeds"])
    table = (
        table.merge(hard, on=GROUP[:2], how="left", suffixes=("", "_hard"))
        .fillna({"n_hard": 0})
        .astype({"n_hard": int})
    )
    bars = {"below_first_pronoun": RULE, "below_bag_of_words": BAG}
    reached = {
        name: table[table["scheme"] == bar].set_index("dataset")["accuracy"]
        for name, bar in bars.items()
    }
    return table.assign(
        **{name: table["accuracy"] < table["dataset"].map(bar) for name, bar in reached.items()}
    )


def summarise_mass(scored: pd.DataFrame, groups: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Mass accuracy on both scales with intervals, the share, and the means of the other measures, for every group.

    `groups`: the dataset, scheme and method of every line; one without rows has n = 0 and no values.
    """
    mass = (
        estimates(scored, GROUP, "MA", **how)
        .rename(columns={"estimate": "MA"})
        .drop(columns=["standard_error", "df"])
    )
    above = estimates(scored, GROUP, "MA_chance_normalised", **how)[
        [*GROUP, "estimate", "low", "high"]
    ]
    above.columns = [*GROUP, "MA_chance_normalised", "low_normalised", "high_normalised"]
    means = scored.groupby(GROUP)[["share", *list(METRICS)[1:]]].mean().reset_index()
    table = groups[GROUP].merge(mass, on=GROUP, how="left").merge(above, on=GROUP, how="left")
    return _whole_counts(table.merge(means, on=GROUP, how="left"))


def summarise_relative(
    chosen: pd.DataFrame, scored: pd.DataFrame, groups: pd.DataFrame, **how: Any
) -> pd.DataFrame:
    """Median RMA of the chosen rows with intervals, how often MA_ZS is 0 and leaves none, and what two floors reach.

    `scored`: all rows, with those of the zero-shot model, for the floors.
    """
    table = estimates(chosen, GROUP, "RMA", "median", **how).rename(columns={"estimate": "RMA"})
    compared = chosen[chosen["MA_ZS"].notna()]
    undefined = (
        compared.assign(undefined=compared["RMA"].isna())
        .groupby(GROUP, as_index=False)["undefined"]
        .mean()
    )
    table = groups[GROUP].merge(table.drop(columns=["standard_error", "df"]), on=GROUP, how="left")
    table = _whole_counts(table.merge(undefined, on=GROUP, how="left"))
    for floor, name in (
        ("First pronoun", "RMA_first_pronoun"),
        ("Uniform random", "RMA_uniform_random"),
    ):
        reached = relative_floors(scored, floor).rename(columns={"RMA": name})
        table = table.merge(reached, on=["dataset", "method"], how="left")
    return table


def gain_tests(chosen: pd.DataFrame, groups: pd.DataFrame) -> pd.DataFrame:
    """Wilcoxon tests of MA - MA_ZS over base sentences, one per group, corrected by Holm over the table."""
    gains = chosen.assign(gain=chosen["MA"] - chosen["MA_ZS"])
    found = [
        (*key, part["gain"].mean(), *clustered_wilcoxon(part, "gain"))
        for key, part in gains.groupby(GROUP)
    ]
    table = pd.DataFrame(found, columns=[*GROUP, "gain", "p", "rank_biserial", "dz", "n_sentences"])
    table = (
        groups[GROUP]
        .merge(table, on=GROUP, how="left")
        .fillna({"n_sentences": 0})
        .astype({"n_sentences": int})
    )
    return table.assign(p_holm=holm(table["p"]))


def compare_methods(chosen: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Every pair of methods within each model (dataset and scheme), by `lib.stats.estimates.compare_all`.

    A pair that has one training of a trained model is never ranked: how far trainings differ is not known.
    """
    models = [
        (key, part)
        for key, part in chosen.groupby(GROUP[:2], sort=False)
        if part["method"].nunique() > 1
    ]
    if not models:
        raise TouchstoneError(
            "no model was explained by two methods, so none can be compared; "
            "name at least two in `methods`"
        )
    found = [compare_all(part, "method", "MA", **how) for _, part in models]
    for table, (key, _) in zip(found, models):
        table.insert(0, "dataset", key[0])
        table.insert(1, "scheme", key[1])
    pairs = pd.concat(found, ignore_index=True)
    return pairs.assign(
        is_ranked=pairs["is_ranked"] & ((pairs["n_seeds"] > 1) | pairs["scheme"].isin(UNTRAINED))
    )


def possible_places(pairs: pd.DataFrame, mass: pd.DataFrame) -> pd.DataFrame:
    """The best and the worst place that each method can have, given the pairs that are ranked, beside its MA.

    `mass`: dataset, scheme, method, MA of the methods to be placed. Adds the median smallest detectable difference.
    """
    ranked = pairs[pairs["is_ranked"].astype(bool)]
    is_left = ranked["difference"] > 0
    winner, loser = (
        ranked["left"].where(is_left, ranked["right"]),
        ranked["right"].where(is_left, ranked["left"]),
    )
    beaten_by = ranked.assign(method=loser).groupby(GROUP).size().rename("beaten_by")
    beats = ranked.assign(method=winner).groupby(GROUP).size().rename("beats")
    table = (
        mass[[*GROUP, "MA"]]
        .join(beaten_by, on=GROUP)
        .join(beats, on=GROUP)
        .fillna({"beaten_by": 0, "beats": 0})
    )
    n_methods = table.groupby(GROUP[:2])["method"].transform("size")
    limit = pairs.groupby(GROUP[:2])["smallest_detectable"].median()
    return (
        table.assign(
            best_place=1 + table["beaten_by"].astype(int),
            worst_place=n_methods - table["beats"].astype(int),
        )
        .drop(columns=["beaten_by", "beats"])
        .join(limit, on=GROUP[:2])
        .reset_index(drop=True)
    )


def split_variance(scored: pd.DataFrame, value: str = "MA") -> pd.DataFrame:
    """Variance split per model over seed, base sentence, class and method, with the methods that every seed has."""
    n_seeds = scored.groupby(GROUP)["seed"].transform("nunique")
    full = scored[
        n_seeds == n_seeds.groupby([scored["dataset"], scored["scheme"]]).transform("max")
    ]
    factors, pairs = (
        ["seed", "sentence_idx", "target", "method"],
        [("seed", "method"), ("sentence_idx", "method")],
    )
    found = [
        variance_split(part, value, factors, pairs).assign(dataset=key[0], scheme=key[1])
        for key, part in full.groupby(GROUP[:2], sort=False)
    ]
    return pd.concat(found, ignore_index=True)[
        ["dataset", "scheme", "term", "levels", "share", "sd"]
    ]


def pair_forms(predictions: pd.DataFrame) -> pd.DataFrame:
    """The female and the male row of each base sentence side by side, per model and seed (GECOBench v1, section 3.2).

    percent: 100 (P(F | F row) - P(M | M row)), the prediction difference; absolute_difference: its size as a share;
    male_minus_female: right on the male form minus right on the female form.
    """
    two = predictions[predictions["target"] < 2]
    own = np.where(two["target"] == 0, two["p_F"], two["p_M"])
    two = two.assign(own=own, right=(two["target"] == two["predicted"]).astype(float))
    keys = ["dataset", "scheme", "seed", "sentence_idx"]
    female, male = (two.loc[two["target"] == target, [*keys, "own", "right"]] for target in (0, 1))
    pairs = female.merge(male, on=keys, suffixes=("_F", "_M"))
    percent = 100 * (pairs["own_F"] - pairs["own_M"])
    return pairs[keys].assign(
        row_id=pairs["sentence_idx"].astype(str),
        percent=percent,
        absolute_difference=percent.abs() / 100,
        male_minus_female=pairs["right_M"] - pairs["right_F"],
    )


def confusion_shares(predictions: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """For each model and true class, the share of rows that each class was predicted for, over rows and seeds."""
    keys, tables = ["dataset", "scheme", "target"], []
    for _, part in predictions.groupby("dataset", sort=False):
        present = sorted(part["target"].unique())
        shares = (
            part.groupby(keys, sort=False)["predicted"]
            .value_counts(normalize=True)
            .unstack(fill_value=0.0)
        )
        tables.append(
            shares.reindex(columns=present, fill_value=0.0).stack().rename("share").reset_index()
        )
    names = dict(enumerate(classes))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(target=table["target"].map(names), predicted=table["predicted"].map(names))


def roc_points(predictions: pd.DataFrame) -> pd.DataFrame:
    """ROC curves of two-class models on P(M), read off at fixed false positive rates, mean over seeds, with the area."""
    tables = []
    for (dataset, scheme), part in predictions.groupby(GROUP[:2], sort=False):
        runs = [(run["target"], run["p_M"]) for _, run in part.groupby("seed")]
        passed = np.mean([np.interp(FALSE_ALARMS, *roc_curve(*run)[:2]) for run in runs], axis=0)
        area = np.mean([roc_auc_score(*run) for run in runs])
        tables.append(
            pd.DataFrame(
                {
                    "dataset": dataset,
                    "scheme": scheme,
                    "auc": area,
                    "false_positive_rate": FALSE_ALARMS,
                    "true_positive_rate": passed,
                }
            )
        )
    columns = ["dataset", "scheme", "auc", "false_positive_rate", "true_positive_rate"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def summarise_forms(aligned: pd.DataFrame, groups: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Attribution differences between the forms over all, ground-truth and other words, and their absolute size.

    `aligned`: from `lib.metrics.form_differences`. p and p_holm test the ground-truth words over base sentences.
    """
    columns = {
        "all": "all_words",
        "truth": "truth_words",
        "other": "other_words",
        "absolute": "absolute",
    }
    found = [
        estimates(aligned, GROUP, column, **how).assign(words=words)
        for words, column in columns.items()
    ]
    found = (
        pd.concat(found)
        .rename(columns={"estimate": "difference"})
        .drop(columns=["standard_error", "df"])
    )
    tests = [
        (*key, clustered_wilcoxon(part, "truth_words").p) for key, part in aligned.groupby(GROUP)
    ]
    tests = pd.DataFrame(tests, columns=[*GROUP, "p"]).assign(p_holm=lambda t: holm(t["p"]))
    cells = groups[GROUP].merge(pd.Series(list(columns), name="words"), how="cross")
    return _whole_counts(
        cells.merge(found, on=[*GROUP, "words"], how="left").merge(tests, on=GROUP, how="left")
    )


def word_shares(explanations: pd.DataFrame, mask: Sequence[int]) -> pd.DataFrame:
    """The explanations of one sentence as one line per word: its share of the attribution, and whether it is true.

    Where a model has several seeds, the first is taken.
    """
    lines = []
    for row in explanations.drop_duplicates(["scheme", "method"]).itertuples():
        sizes = np.abs(row.scores)
        shares = sizes / sizes.sum() if sizes.sum() > 0 else sizes
        lines += [
            (row.dataset, row.row_id, row.scheme, row.method, i, word, share, is_truth)
            for i, (word, share, is_truth) in enumerate(zip(row.words, shares, mask, strict=True))
        ]
    return pd.DataFrame(
        lines,
        columns=["dataset", "row_id", "scheme", "method", "position", "word", "share", "is_truth"],
    )


def _whole_counts(table: pd.DataFrame) -> pd.DataFrame:
    counts = dict.fromkeys(("n", "n_sentences", "n_seeds"), 0)
    return table.fillna(counts).astype(dict.fromkeys(counts, int))
