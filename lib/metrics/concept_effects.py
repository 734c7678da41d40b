"""Effects of concepts and the errors of their estimates (CEBaB, section 3): ICaCE, CaCE, three
distances.

A *pair* is a base text and a text in which one concept has another value: base_id,
counterfactual_id, aspect, old, new. An effect is a row of K numbers, the changes of the
probabilities of K classes that are steps of one scale (stars).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

Effects = Float[
    np.ndarray, "batch class"
]  # changes of the K probabilities, a row per pair of texts
DISTANCES = ("L2", "cosine", "normdiff")
DIRECTION = ["aspect", "old", "new"]
_RUN = ["dataset", "model", "seed"]


def icace(pairs: pd.DataFrame, predictions: pd.DataFrame) -> Effects:
    """The model's effect, pair by pair: its answer to the counterfactual minus its answer to the
    base text (eq. 2).

    Probabilities, as in the definition; the paper's section 4 once says logits.

    Args:
        pairs: base_id, counterfactual_id.
        predictions: text_id and p_1 ... p_K.

    >>> pairs = pd.DataFrame({"base_id": ["a"], "counterfactual_id": ["b"]})
    >>> answers = pd.DataFrame({"text_id": ["a", "b"], "p_1": [0.75, 0.25], "p_2": [0.25, 0.75]})
    >>> icace(pairs, answers).tolist()
    [[-0.5, 0.5]]
    """
    answers = predictions.set_index("text_id")[_columns(predictions, "p_")]
    after, before = (answers.loc[pairs[f"{side}_id"]] for side in ("counterfactual", "base"))
    return after.to_numpy() - before.to_numpy()


def l2(effect: Effects, estimate: Effects) -> Float[np.ndarray, "batch"]:
    """The length of the difference: direction and size both count.

    >>> l2(np.array([[0.3, -0.3]]), np.array([[0.0, -0.3]])).round(3).tolist()
    [0.3]
    """
    return np.linalg.norm(effect - estimate, axis=1)


def cosine(effect: Effects, estimate: Effects) -> Float[np.ndarray, "batch"]:
    """One minus the cosine of the angle: direction alone, from 0 to 2.

    A vector of zeros has no direction: 1 by definition.

    >>> effect = np.array([[1.0, -1.0], [1.0, -1.0], [1.0, -1.0]])
    >>> cosine(effect, np.array([[2.0, -2.0], [-1.0, 1.0], [0.0, 0.0]])).round(3).tolist()
    [0.0, 2.0, 1.0]
    """
    lengths = np.linalg.norm(effect, axis=1) * np.linalg.norm(estimate, axis=1)
    # Where a length is 0 the quotient stays 0, and the distance is 1.
    products = np.sum(effect * estimate, axis=1)
    return 1 - np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)


def normdiff(effect: Effects, estimate: Effects) -> Float[np.ndarray, "batch"]:
    """The difference of the lengths, without sign: size alone.

    >>> normdiff(np.array([[3.0, 4.0]]), np.array([[0.0, -1.0]])).tolist()
    [4.0]
    """
    return np.abs(np.linalg.norm(effect, axis=1) - np.linalg.norm(estimate, axis=1))


def fitted_scale(effect: Effects, estimate: Effects) -> float:
    """The one number, 0 or more, that brings estimates nearest to the effects, by least squares; 0
    where all estimates are zero, or nearer to the effects the other way round.

    Args:
        effect: the model's effects, on pairs that judge nobody.
        estimate: an explainer's estimates of them.

    >>> fitted_scale(np.array([[0.5, -0.5]]), np.array([[0.25, -0.25]]))
    2.0
    """
    size = float((estimate**2).sum())
    return max(0.0, float((effect * estimate).sum()) / size) if size else 0.0


def distances(effect: Effects, estimate: Effects) -> pd.DataFrame:
    """The three distances of each estimate from its effect; the mean of a column is the
    ICaCE-Error (eq. 3).
    """
    return pd.DataFrame(
        {
            "L2": l2(effect, estimate),
            "cosine": cosine(effect, estimate),
            "normdiff": normdiff(effect, estimate),
        }
    )


def score_estimates(estimates: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Every estimate beside the model's effect: its three distances, and both in stars.

    Args:
        estimates: dataset, model, seed, explainer, the columns of a pair and its group, e_1 ...
            e_K.
        predictions: dataset, model, seed, text_id, p_1 ... p_K.

    Returns:
        The estimates' columns but e_1 ... e_K, then L2, cosine, normdiff, effect, estimate
        (stars), and the names that `lib.stats.estimates` reads: row_id (the pair) and
        sentence_idx (its group).
    """
    parts = [
        labels.join(distances(effect, estimate)).assign(
            effect=in_stars(effect), estimate=in_stars(estimate)
        )
        for labels, effect, estimate in _beside_effects(estimates, predictions)
    ]
    table = pd.concat(parts, ignore_index=True)
    # A pair is named by both texts: one base text has many counterfactuals.
    pairs = table["base_id"] + ">" + table["counterfactual_id"]
    return table.assign(row_id=pairs, sentence_idx=table["group"])


def three_distances(
    estimates: pd.DataFrame, predictions: pd.DataFrame, pairs: pd.DataFrame
) -> pd.DataFrame:
    """The world's effect, the model's effect and the estimate, pair by pair, where the truth is
    known.

    Args:
        estimates, predictions: as for `score_estimates`.
        pairs: dataset, base_id, counterfactual_id, world_1 ... world_K.

    Returns:
        The estimates' labels, then L2 distances: model_to_world (of the classifier),
        zero_to_world (of one to whom nothing ever changes), estimate_to_model (the ICaCE-Error),
        estimate_to_world; and world, model_effect and estimate in stars.
    """
    sides, columns = ["dataset", "base_id", "counterfactual_id"], _columns(pairs, "world_")
    joined, parts = estimates.merge(pairs[[*sides, *columns]], on=sides), []
    for labels, model, estimate in _beside_effects(joined, predictions):
        world = labels[columns].to_numpy()
        parts.append(
            labels.drop(columns=columns).assign(
                model_to_world=l2(world, model),
                zero_to_world=l2(world, 0 * world),
                estimate_to_model=l2(model, estimate),
                estimate_to_world=l2(world, estimate),
                world=in_stars(world),
                model_effect=in_stars(model),
                estimate=in_stars(estimate),
            )
        )
    return pd.concat(parts, ignore_index=True)


def _beside_effects(
    estimates: pd.DataFrame, predictions: pd.DataFrame
) -> Iterator[tuple[pd.DataFrame, Effects, Effects]]:
    """The labels of each model's estimates, the model's effects, the estimates."""
    columns, answers = _columns(estimates, "e_"), dict(tuple(predictions.groupby(_RUN)))
    for key, part in estimates.groupby(_RUN, sort=False):
        labels = part.drop(columns=columns).reset_index(drop=True)
        yield labels, icace(part, answers[key]), part[columns].to_numpy()


def _columns(table: pd.DataFrame, start: str) -> list[str]:
    return [name for name in table if str(name).startswith(start)]


def in_stars(effects: Effects) -> Float[np.ndarray, "batch"]:
    """An effect on K probabilities as one number: the change of the expected class, counted from
    1 to K.

    >>> in_stars(np.array([[-1.0, 0.0, 1.0]])).tolist()
    [2.0]
    """
    return effects @ np.arange(1, effects.shape[1] + 1)


def mean_effects(pairs: pd.DataFrame, effects: Effects) -> pd.DataFrame:
    """The mean effect of each aspect and direction: CaCE of ICaCEs (eq. 4), ATE of ITEs.

    Both directions are in the pairs, so the mean of c to c' is minus that of c' to c.

    Returns:
        aspect, old, new, stars, e_1 ... e_K, pairs (how many).
    """
    columns = {f"e_{k + 1}": effects[:, k] for k in range(effects.shape[1])}
    table = pairs[DIRECTION].reset_index(drop=True).assign(stars=in_stars(effects), **columns)
    groups = table.groupby(DIRECTION, sort=False)
    return groups.mean().assign(pairs=groups.size()).reset_index()


def macro(
    table: pd.DataFrame, by: Sequence[str], values: Sequence[str] = DISTANCES
) -> pd.DataFrame:
    """Means over aspects of the means over pairs: each aspect counts alike, whatever its number
    of pairs.

    Args:
        table: `by`, aspect and `values`.
    """
    # First within an aspect, or the aspect with the most pairs would decide.
    per_aspect = table.groupby([*by, "aspect"], sort=False)[list(values)].mean()
    return per_aspect.groupby(list(by), sort=False).mean().reset_index()


def same_question(repeated: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """The noise ceiling: two edits of one original that reached one label, and how far the
    model's effects are apart.

    No explainer can answer the one question with both.

    Args:
        repeated: original_id, first_id, second_id.
        predictions: text_id and p_1 ... p_K.

    Returns:
        The columns of `repeated`, then L2, cosine, normdiff of the two effects (the error of an
        explainer that has the text of a second editor), bound (half of L2: by the triangle
        inequality no single answer has a smaller mean error over the two), and above_zero (L2
        minus the mean L2 error over the two of the answer that nothing changes).
    """
    first, second = (
        icace(
            repeated.rename(columns={"original_id": "base_id", edit: "counterfactual_id"}),
            predictions,
        )
        for edit in ("first_id", "second_id")
    )
    apart = distances(first, second)
    of_zero = (l2(first, np.zeros_like(first)) + l2(second, np.zeros_like(second))) / 2
    apart = apart.assign(bound=apart["L2"] / 2, above_zero=apart["L2"] - of_zero)
    return pd.concat([repeated.reset_index(drop=True), apart], axis=1)


def order_faithfulness(questions: pd.DataFrame, effect: Effects, estimate: Effects) -> pd.DataFrame:
    """How often the explainer orders two changes of one text, by the stars they add, as the
    model orders them.

    A tie of the estimates counts one half, a tie of the effects is left out. Noise reaches 1/2.
    The idea follows LIBERTy (Toker et al., arXiv 2601.10700).

    Args:
        questions: base_id, aspect, new.

    Returns:
        One row a text with at least two different questions: base_id, agree (the share of its
        pairs of questions).
    """
    table = questions[["base_id", "aspect", "new"]].assign(
        effect=in_stars(effect), estimate=in_stars(estimate), row=np.arange(len(effect))
    )
    both = table.merge(table, on="base_id", suffixes=("", "_other"))
    # two edits to one label are one question
    differs = (both["aspect"] != both["aspect_other"]) | (both["new"] != both["new_other"])
    # The merge gives each pair twice, and each question with itself.
    is_once = both["row"] < both["row_other"]
    both = both[is_once & differs & (both["effect"] != both["effect_other"])]
    gap = np.sign(both["effect"] - both["effect_other"])
    # Rounded: estimates that are equal but for the last digits are a tie.
    estimated_gap = np.sign((both["estimate"] - both["estimate_other"]).round(9))
    both = both.assign(agree=(gap * estimated_gap + 1) / 2)
    return both.groupby("base_id", sort=False)["agree"].mean().reset_index()
