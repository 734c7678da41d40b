"""Do the truths rank explainers alike? And where they do not, is it the truths, or the models?

A table of values has a line for each explainer, truth, training (of a model) and cluster of items:
the columns explainer, truth, training, cluster and value, 0 for the truth's strongest floor and 1
for its oracle. Clusters of one name are the same items (two truths about one sentence share it).
"""

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import rankdata, t

from ...core.errors import TouchstoneError
from ...stats import estimate, holm, variance_split
from ...stats.estimates import Estimate, expanded_quantiles

_INTERACTIONS = (("explainer", "truth"), ("explainer", "training"))


def between(
    values: Float[np.ndarray, "*batch"] | float, floor: float, oracle: float
) -> Float[np.ndarray, "*batch"] | float:
    """A score on the scale from its truth's floor (0) to its oracle (1).

    >>> between(0.75, floor=0.5, oracle=1.0)
    0.5
    """
    if oracle == floor:
        raise TouchstoneError(f"floor and oracle are both {floor}; this truth tells nothing apart")
    return (values - floor) / (oracle - floor)


def on_one_scale(
    scored: pd.DataFrame, floor_of: Mapping[str, str], least: float = 0.02
) -> pd.DataFrame:
    """The scores of all truths, each from its strongest floor (0) to its oracle (1).

    Args:
        scored: truth, explainer (one of them is "oracle"), value.
        floor_of: the explainer that is 0, by truth.
        least: where floor and oracle are closer, the truth tells nothing apart: NaN.

    Returns:
        The table with raw (the score), value, rule (that is 0), floor and oracle (its score, and
        the oracle's).
    """

    def rescaled(truth: str, part: pd.DataFrame) -> pd.DataFrame:
        means = part.groupby("explainer")["value"].mean()
        floor, oracle = means[floor_of[truth]], means["oracle"]
        is_open = oracle - floor > least
        value = between(part["value"], floor, oracle) if is_open else np.nan
        rule = floor_of[truth]
        return part.assign(raw=part["value"], value=value, rule=rule, floor=floor, oracle=oracle)

    groups = scored.groupby("truth", sort=False)
    return pd.concat([rescaled(str(truth), part) for truth, part in groups], ignore_index=True)


class Resampled(NamedTuple):
    """Means of each explainer under each truth: first of all values, then of each resample.

    Trainings are drawn, then clusters; a cluster that two truths share is drawn for both.
    """

    explainers: dict[str, list[str]]  # that a truth has values of
    means: dict[str, Float[np.ndarray, "draw explainer"]]
    n_clusters: dict[str, int]


def resample(values: pd.DataFrame, n_draws: int, seed: int) -> Resampled:
    """Means over trainings and clusters, and how they vary with which were drawn."""
    rng = np.random.default_rng(seed)
    trainings, clusters = (sorted(values[name].unique()) for name in ("training", "cluster"))
    drawn = {
        "training": dict(zip(trainings, _weights(len(trainings), n_draws, rng).T, strict=True)),
        "cluster": dict(zip(clusters, rng.poisson(1.0, (len(clusters), n_draws)), strict=True)),
    }
    explainers, means, n_clusters = {}, {}, {}
    for truth, part in values.groupby("truth", sort=False):
        names = explainers[str(truth)] = list(dict.fromkeys(part["explainer"]))
        wide = part.pivot_table("value", ["training", "cluster"], "explainer")[names]
        cells = wide.dropna()  # paired: what one explainer lacks counts for none
        keys = cells.index.to_frame()
        weights = np.ones((n_draws + 1, len(cells)))
        for name, by_draw in drawn.items():
            weights[1:] *= np.array([by_draw[key] for key in keys[name]]).T
        total = weights.sum(1, keepdims=True)
        means[str(truth)] = np.divide(
            weights @ cells.to_numpy(),
            total,
            out=np.full((n_draws + 1, len(names)), np.nan),
            where=total > 0,
        )
        n_clusters[str(truth)] = keys["cluster"].nunique()
    return Resampled(explainers, means, n_clusters)


def rank_agreement(
    values: pd.DataFrame, n_draws: int = 1000, alpha: float = 0.05, seed: int = 0
) -> pd.DataFrame:
    """Kendall's tau-b between the rankings of two truths, with intervals over trainings and
    clusters; on the diagonal each truth's ceiling.

    Two truths rank the explainers that both have values of. The ceiling is the mean tau-b of a
    truth with itself, its clusters split in halves at random. A half has more noise than the whole,
    so with few clusters two truths can agree more than that.

    Returns:
        left, right, tau, low and high (for these explainers), any_low and any_high (explainers are
        drawn as well; empty for a ceiling), n_explainers, n_clusters (of the truth with fewer).

    Raises:
        TouchstoneError: two truths share fewer than three explainers.
    """
    found = resample(values, n_draws, seed)
    rng = np.random.default_rng(seed)
    names, rows = list(found.means), []
    for i, left in enumerate(names):
        halves = split_half(values[values["truth"] == left], n_draws // 10 or 1, seed)
        ends = np.nanquantile(halves, [alpha / 2, 1 - alpha / 2])
        own = (len(found.explainers[left]), found.n_clusters[left])
        rows.append((left, left, float(np.nanmean(halves)), *ends, np.nan, np.nan, *own))
        rows += [
            (left, right, *_two_truths(found, left, right, alpha, rng)) for right in names[i + 1 :]
        ]
    intervals = ["low", "high", "any_low", "any_high"]
    columns = ["left", "right", "tau", *intervals, "n_explainers", "n_clusters"]
    return pd.DataFrame(rows, columns=columns)


def _two_truths(
    found: Resampled, left: str, right: str, alpha: float, rng: np.random.Generator
) -> tuple[float, ...]:
    """A line of `rank_agreement`, from tau on."""
    shared = [name for name in found.explainers[left] if name in found.explainers[right]]
    if len(shared) < 3:
        raise TouchstoneError(
            f"{left} and {right} share {len(shared)} explainers; ask at least three"
        )
    sides = [
        found.means[truth][:, [found.explainers[truth].index(name) for name in shared]]
        for truth in (left, right)
    ]
    taus = tau_b(*sides)
    drawn = rng.integers(0, len(shared), sides[0].shape)
    wider = tau_b(*(np.take_along_axis(side, drawn, 1) for side in sides))
    n = min(found.n_clusters[left], found.n_clusters[right])
    ends = expanded_quantiles(taus[1:], n, alpha)
    any_ends = expanded_quantiles(wider[1:], min(n, len(shared)), alpha)
    return (taus[0], *ends, *any_ends, len(shared), n)


def within_reviews(values: pd.DataFrame, deletions: pd.DataFrame) -> pd.DataFrame:
    """Two truths about the model of reviews: edits, and deletions from the same texts.

    Args:
        values: of all truths, of explainers.
        deletions: of `truths.score_deletion`, of that model; others than those of `values` are
            left out.

    Returns:
        As values; a deletion is named "deletion, <operator>, reviews".
    """
    asked = deletions[deletions["explainer"].isin(set(values["explainer"]))]
    named = asked.assign(truth=asked["truth"] + ", reviews")
    return pd.concat([values[values["truth"] == "edit"], named], ignore_index=True)


def by_kind(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """The truths that were asked of two kinds of models, an encoder and an LSTM.

    Args:
        first, second: truth, explainer, training, cluster, value, of the same tasks.

    Returns:
        Both, of the truths and explainers that both have; the truths are named "<truth>, encoder"
        and "<truth>, LSTM".
    """
    sides = {"encoder": first, "LSTM": second}
    for name in ("truth", "explainer"):
        shared = set(first[name]) & set(second[name])
        sides = {kind: part[part[name].isin(shared)] for kind, part in sides.items()}
    named = [part.assign(truth=part["truth"] + f", {kind}") for kind, part in sides.items()]
    return pd.concat(named, ignore_index=True)


def below_ceiling(agreement: pd.DataFrame, left: str, right: str) -> tuple[float, float, float]:
    """How far two truths' tau-b lies below the lower of their ceilings, with the interval of the
    tau-b; NaN where one of the three is missing.

    Args:
        agreement: of `rank_agreement`.
    """
    table = agreement.set_index(["left", "right"])
    pair = next((key for key in ((left, right), (right, left)) if key in table.index), None)
    if pair is None or not {(left, left), (right, right)} <= set(table.index):
        return (np.nan,) * 3
    ceiling = min(table.loc[(name, name), "tau"] for name in (left, right))
    tau, low, high = table.loc[pair, ["tau", "low", "high"]]
    return float(ceiling - tau), float(ceiling - high), float(ceiling - low)


def budget_against_truth(
    bought: pd.DataFrame,
    values: pd.DataFrame,
    explainer: str,
    truth: str,
    other: str,
    n_draws: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> tuple[float, float, float]:
    """By how much more an explainer's place changes from its smallest to its largest budget than
    from one truth to another, with an interval over clusters. Its place is the share of the other
    explainers that it is above.

    Args:
        bought: explainer, passes, training, cluster, value (the score under `truth`).
        values: of all explainers under both truths; of the trainings that `bought` has.
    """
    ours = bought[bought["explainer"] == explainer]
    ends = {end: ours[ours["passes"] == getattr(ours["passes"], end)()] for end in ("min", "max")}
    asked = values[values["training"].isin(ours["training"])]
    tables = [asked[asked["truth"] == name] for name in (truth, other)]
    tables += [part.assign(truth=end, explainer=end) for end, part in ends.items()]
    found = resample(pd.concat(tables, ignore_index=True), n_draws, seed)

    def place(mine: Float[np.ndarray, "draw"], under: str) -> Float[np.ndarray, "draw"]:
        others = [i for i, name in enumerate(found.explainers[under]) if name != explainer]
        return (mine[:, None] > found.means[under][:, others]).mean(1)

    mine = {x: found.means[x][:, found.explainers[x].index(explainer)] for x in (truth, other)}
    by_truth = abs(place(mine[truth], truth) - place(mine[other], other))
    by_budget = abs(np.subtract(*(place(found.means[end][:, 0], truth) for end in ends)))
    moved = by_budget - by_truth
    n = min(found.n_clusters.values())
    low, high = expanded_quantiles(moved[1:], n, alpha)
    return float(moved[0]), float(low), float(high)


def split_half(values: pd.DataFrame, n_splits: int, seed: int) -> Float[np.ndarray, "draw"]:
    """tau-b between the rankings of two random halves of one truth's clusters."""
    wide = values.pivot_table("value", "cluster", "explainer").dropna()
    if len(wide) < 2:
        raise TouchstoneError(f"{len(wide)} clusters cannot be split in halves; ask about more")
    rng = np.random.default_rng(seed)
    halves = [np.array_split(rng.permutation(len(wide)), 2) for _ in range(n_splits)]
    cells = wide.to_numpy()
    first, second = (np.array([cells[half[side]].mean(0) for half in halves]) for side in (0, 1))
    return tau_b(first, second)


def tau_b(
    left: Float[np.ndarray, "draw explainer"], right: Float[np.ndarray, "draw explainer"]
) -> Float[np.ndarray, "draw"]:
    """Kendall's tau-b of each draw; NaN where a side is constant or has no values.

    >>> tau_b(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 3.0, 2.0]])).round(3).tolist()
    [0.333]
    """
    signs = [np.sign(side[:, :, None] - side[:, None, :]) for side in (left, right)]
    product = (signs[0] * signs[1]).sum((1, 2))
    sizes = [(sign**2).sum((1, 2)) for sign in signs]
    norm = np.sqrt(sizes[0] * sizes[1])
    return np.divide(product, norm, out=np.full(len(product), np.nan), where=norm > 0)


def truths_beyond_models(
    values: pd.DataFrame, n_draws: int = 200, alpha: float = 0.05, seed: int = 0
) -> dict[str, float]:
    """Whether explainers change places with the truth more than they do with the model.

    In place = explainer + explainer x truth + explainer x model + rest it is the variance of the
    second term minus that of the third. The place of an explainer is its rank under a truth and a
    training, as a share of all, so that no truth counts more because its scores are spread. That
    truths disagree is said only where the interval lies above zero.

    Returns:
        explainer, explainer_x_truth, explainer_x_model (standard deviations), difference (of the
        variances) with low and high, over trainings: NaN with fewer than three.
    """
    means = values.groupby(["explainer", "truth", "training"], as_index=False)["value"].mean()
    means["value"] = means.groupby(["truth", "training"])["value"].rank(pct=True)
    trainings = sorted(means["training"].unique())
    rng = np.random.default_rng(seed)
    by_training = dict(iter(means.groupby("training")))
    draws = []
    for _ in range(n_draws):
        chosen = rng.choice(trainings, len(trainings))
        if len(set(chosen)) > 1:
            again = [by_training[name].assign(training=i) for i, name in enumerate(chosen)]
            draws.append(_difference(_terms(pd.concat(again))))
    low, high = np.nan, np.nan  # of two trainings every draw that tells both apart is the same
    if len(trainings) > 2:
        low, high = expanded_quantiles(draws, len(trainings), alpha)
    return _split(_terms(means), low, high)


def truths_beyond_kinds(
    values: pd.DataFrame, n_draws: int = 200, alpha: float = 0.05, seed: int = 0
) -> dict[str, float]:
    """Whether explainers change places with the truth more than with the kind of model.

    As `truths_beyond_models`, where the model is an encoder or an LSTM; the intervals are over
    trainings and clusters, which are drawn for all truths together.

    Args:
        values: of `by_kind`, of one task.
    """
    found = resample(values, n_draws, seed)
    shared = [
        name
        for name in next(iter(found.explainers.values()))
        if all(name in others for others in found.explainers.values())
    ]
    places = {}
    for truth, means in found.means.items():
        columns = [found.explainers[truth].index(name) for name in shared]
        places[truth] = rankdata(means[:, columns], axis=1, nan_policy="propagate") / len(shared)

    def terms(draw: int) -> Mapping[str, float]:
        lines = [
            (name, *truth.rsplit(", ", 1), place)
            for truth, of_truth in places.items()
            for name, place in zip(shared, of_truth[draw], strict=True)
        ]
        return _terms(pd.DataFrame(lines, columns=["explainer", "truth", "training", "value"]))

    known = ~np.isnan([of_truth.sum(1) for of_truth in places.values()]).any(0)
    draws = [_difference(terms(draw)) for draw in np.flatnonzero(known[1:]) + 1]
    low, high = expanded_quantiles(draws, min(found.n_clusters.values()), alpha)
    return _split(terms(0), low, high)


def family_contrasts(
    scores: pd.DataFrame,
    families: Mapping[str, str],
    margin: float,
    n_bootstrap: int,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """Each family's mean score minus that of each other family, under each truth.

    Args:
        scores: truth, explainer, raw (the score), item_id, cluster, training.
        families: of explainers; others are left out.
        margin: by how much lower a family's score may be and not count as inferior, set before the
            run.
        n_bootstrap: resamples of each interval.
        alpha: each interval has 1 - alpha, not corrected for their number.

    Returns:
        family, other, truth, estimate, low, high, and three one-sided p: p_inferior (small where
        the family is not worse by more than the margin), p_better (where it is better), p_worse
        (where it is worse by more than the margin). Differences without spread show nothing: 1.
    """
    known = pd.DataFrame(
        {
            "truth": scores["truth"],
            "family": scores["explainer"].map(families),
            "item_id": scores["item_id"],
            "sentence_idx": scores["cluster"],
            "seed": scores["training"],
            "value": scores["raw"],
        }
    ).dropna()
    lines = []
    for truth, part in known.groupby("truth", sort=False):
        items = ["item_id", "sentence_idx", "seed"]
        means = part.groupby([*items, "family"])["value"].mean().unstack()
        for family, other in permutations(means, 2):
            gaps = (means[family] - means[other]).rename("difference").reset_index()
            found = estimate(gaps, "difference", "mean", n_bootstrap, alpha, seed)
            tails = (-margin, t.sf), (0.0, t.sf), (-margin, t.cdf)
            p = [_one_sided(found, *tail) for tail in tails]
            lines.append((family, other, truth, found.estimate, found.low, found.high, *p))
    names = ["estimate", "low", "high", "p_inferior", "p_better", "p_worse"]
    return pd.DataFrame(lines, columns=["family", "other", "truth", *names])


def _one_sided(found: Estimate, limit: float, tail: Callable[[float, float], float]) -> float:
    """The p of a difference on the other side of a limit than it was found on."""
    if not found.standard_error > 0:
        return 1.0
    return float(tail((found.estimate - limit) / found.standard_error, found.df))


def recommended(contrasts: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """Families that are nowhere inferior and somewhere better than all others.

    Both have to be shown, and the first under every truth and beside every other family, so its p
    is the largest of all (an intersection-union test, Berger 1982). The second may come from any
    truth: the smallest p of the truths, times their number. Over the families it is Holm's.

    Args:
        contrasts: of `family_contrasts`.

    Returns:
        family, p_nowhere_inferior, p_somewhere_better, p_holm (of the larger of the two);
        nowhere_inferior and somewhere_better (each alone, at alpha); recommended (p_holm below
        alpha); and as text better_on (truths under which it is better than all others) and worse_on
        (under which one is better by more than the margin, Holm over all contrasts).
    """
    is_worse = holm(contrasts["p_worse"]) < alpha
    rows = []
    for family, part in contrasts.assign(is_worse=is_worse).groupby("family", sort=False):
        by_truth = part.groupby("truth", sort=False)
        p_better = (by_truth["p_better"].max() * by_truth.ngroups).clip(upper=1.0)
        found = p_better < alpha, by_truth["is_worse"].any()
        lists = ["; ".join(of.index[of]) for of in found]
        rows.append((family, part["p_inferior"].max(), p_better.min(), *lists))
    names = ["family", "p_nowhere_inferior", "p_somewhere_better", "better_on", "worse_on"]
    table = pd.DataFrame(rows, columns=names)
    p = table[["p_nowhere_inferior", "p_somewhere_better"]]
    table["p_holm"] = holm(p.max(axis=1))
    for name in p:
        table[name.removeprefix("p_")] = table[name] < alpha
    return table.assign(recommended=table["p_holm"] < alpha)[
        [
            *("family", "nowhere_inferior", "somewhere_better", "recommended"),
            *("p_nowhere_inferior", "p_somewhere_better", "p_holm", "better_on", "worse_on"),
        ]
    ]


def _weights(n: int, n_draws: int, rng: np.random.Generator) -> Float[np.ndarray, "draw batch"]:
    return rng.multinomial(n, np.full(n, 1 / n), size=n_draws)


def _terms(means: pd.DataFrame) -> Mapping[str, float]:
    split = variance_split(means, "value", ["explainer", "truth", "training"], _INTERACTIONS)
    return split.set_index("term")["sd"].fillna(0.0).to_dict()


def _split(terms: Mapping[str, float], low: float, high: float) -> dict[str, float]:
    return {
        "explainer": terms["explainer"],
        "explainer_x_truth": terms["explainer:truth"],
        "explainer_x_model": terms["explainer:training"],
        "difference": _difference(terms),
        "low": float(low),
        "high": float(high),
    }


def _difference(terms: Mapping[str, float]) -> float:
    return terms["explainer:truth"] ** 2 - terms["explainer:training"] ** 2
