"""Effects of concepts and the errors of their estimates (CEBaB, section 3): ICaCE, CaCE, and
three distances.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from lib.studies.cebab.questions import Effects

DISTANCES = ("L2", "cosine", "normdiff")
DIRECTION = ["aspect", "old", "new"]


def icace(pairs: pd.DataFrame, predictions: pd.DataFrame) -> Effects:
    """The model's effect: its answer to the counterfactual minus its answer to the base text
    (eq. 2), pair by pair.

    `predictions`: text_id and p_1 ... p_K. Probabilities, as in the definition; the paper's
    section 4 once says logits.
    """
    columns = [name for name in predictions if str(name).startswith("p_")]
    answers = predictions.set_index("text_id")[columns]
    return (
        answers.loc[pairs["counterfactual_id"]].to_numpy()
        - answers.loc[pairs["base_id"]].to_numpy()
    )


def l2(effect: Effects, estimate: Effects) -> Float[np.ndarray, "batch"]:
    """The length of the difference: direction and size both count.

    >>> l2(np.array([[0.3, -0.3]]), np.array([[0.0, -0.3]])).round(3).tolist()
    [0.3]
    """
    return np.linalg.norm(effect - estimate, axis=1)


def cosine(effect: Effects, estimate: Effects) -> Float[np.ndarray, "batch"]:
    """One minus the cosine of the angle: direction alone, from 0 to 2. A vector of zeros has no
    direction: 1 by definition.

    >>> cosine(np.array([[1.0, -1.0], [1.0, -1.0], [1.0, -1.0]]), np.array([[2.0, -2.0], [-1.0, 1.0], [0.0, 0.0]])).round(3).tolist()
    [0.0, 2.0, 1.0]
    """
    lengths = np.linalg.norm(effect, axis=1) * np.linalg.norm(estimate, axis=1)
    products = np.sum(effect * estimate, axis=1)
    return 1 - np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)


def normdiff(effect: Effects, estimate: Effects) -> Float[np.ndarray, "batch"]:
    """The difference of the lengths, without sign: size alone.

    >>> normdiff(np.array([[3.0, 4.0]]), np.array([[0.0, -1.0]])).tolist()
    [4.0]
    """
    return np.abs(np.linalg.norm(effect, axis=1) - np.linalg.norm(estimate, axis=1))


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
    """Every estimate beside the model's effect: its three distances, both in stars, and the
    names that `lib.stats.estimates` reads.

    `estimates`: dataset, model, seed, explainer, the columns of a pair, e_1 ... e_K.
    `predictions`: dataset, model, seed, text_id, p_1 ... p_K. Adds L2, cosine, normdiff, effect,
    estimate (stars), row_id (the pair) and sentence_idx (its group).
    """
    columns = [name for name in estimates if str(name).startswith("e_")]
    keys, parts = ["dataset", "model", "seed"], []
    answers = dict(tuple(predictions.groupby(keys)))
    for key, part in estimates.groupby(keys, sort=False):
        effect, estimate = icace(part, answers[key]), part[columns].to_numpy()
        found = part.drop(columns=columns).reset_index(drop=True).join(distances(effect, estimate))
        parts.append(found.assign(effect=in_stars(effect), estimate=in_stars(estimate)))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(
        row_id=table["base_id"] + ">" + table["counterfactual_id"], sentence_idx=table["group"]
    )


def three_distances(
    estimates: pd.DataFrame, predictions: pd.DataFrame, pairs: pd.DataFrame
) -> pd.DataFrame:
    """The world's effect, the model's effect and the estimate, pair by pair: their L2 distances
    and their values in stars.

    Where the truth is known (`pairs` with world_1 ... world_K, as many as e_1 ... e_K). Adds to
    the estimates' labels model_to_world (of the classifier), zero_to_world (of one to whom
    nothing ever changes), estimate_to_model (the ICaCE-Error), estimate_to_world, and world,
    model_effect, estimate in stars.
    """
    ours, theirs = (
        [name for name in table if str(name).startswith(start)]
        for table, start in ((estimates, "e_"), (pairs, "world_"))
    )
    sides = ["dataset", "base_id", "counterfactual_id"]
    joined = estimates.merge(pairs[[*sides, *theirs]], on=sides)
    parts, answers = [], dict(tuple(predictions.groupby(["dataset", "model", "seed"])))
    for key, part in joined.groupby(["dataset", "model", "seed"], sort=False):
        world, model, estimate = (
            part[theirs].to_numpy(),
            icace(part, answers[key]),
            part[ours].to_numpy(),
        )
        parts.append(
            part.drop(columns=[*ours, *theirs]).assign(
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


def in_stars(effects: Effects) -> Float[np.ndarray, "batch"]:
    """An effect on K probabilities as one number: the change of the expected class, counted from
    1 to K.

    >>> in_stars(np.array([[-1.0, 0.0, 1.0]])).tolist()
    [2.0]
    """
    return effects @ np.arange(1, effects.shape[1] + 1)


def mean_effects(pairs: pd.DataFrame, effects: Effects) -> pd.DataFrame:
    """The mean effect of each aspect and direction: CaCE of ICaCEs (eq. 4), ATE of ITEs; in
    stars and as a vector e_1 ... e_K.

    Both directions are in the pairs, so the mean of c to c' is minus that of c' to c.
    """
    columns = {f"e_{k + 1}": effects[:, k] for k in range(effects.shape[1])}
    table = pairs[DIRECTION].reset_index(drop=True).assign(stars=in_stars(effects), **columns)
    means = table.groupby(DIRECTION, sort=False).mean()
    return means.assign(pairs=table.groupby(DIRECTION, sort=False).size()).reset_index()


def macro(
    table: pd.DataFrame, by: Sequence[str], values: Sequence[str] = DISTANCES
) -> pd.DataFrame:
    """Means that count each aspect alike, whatever its number of pairs: the mean over aspects of
    the mean over pairs.
    """
    per_aspect = table.groupby([*by, "aspect"], sort=False)[list(values)].mean()
    return per_aspect.groupby(list(by), sort=False).mean().reset_index()


def same_question(repeated: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """The noise ceiling: two edits of one original that reached one label, and how far the
    model's effects are apart.

    No explainer can answer the one question with both. `other_editor`: the distance of the two
    effects, the error of an explainer that has the text of a second editor. `bound` (L2 alone):
    half of it. By the triangle inequality no single answer has a smaller mean error over the
    two. Columns of `repeated`, then bound and the three distances of other_editor.
    """
    first, second = (
        icace(
            repeated.rename(columns={"original_id": "base_id", f"{side}_id": "counterfactual_id"}),
            predictions,
        )
        for side in ("first", "second")
    )
    apart = distances(first, second)
    return pd.concat([repeated.reset_index(drop=True), apart.assign(bound=apart["L2"] / 2)], axis=1)


def order_faithfulness(questions: pd.DataFrame, effect: Effects, estimate: Effects) -> pd.DataFrame:
    """Of two changes of one text, is the one after which the explainer sees more stars really
    the one after which the model gives more?

    `questions`: base_id, aspect, new. One row a text with at least two different questions:
    `agree`, the share of its pairs of questions that are ordered as the model orders them; a tie
    of the estimates counts one half, a tie of the effects is left out. Noise reaches 1/2. The
    idea follows LIBERTy (Toker et al., arXiv 2601.10700).
    """
    table = pd.DataFrame(
        {
            **{name: questions[name].to_numpy() for name in ("base_id", "aspect", "new")},
            "effect": in_stars(effect),
            "estimate": in_stars(estimate),
            "row": np.arange(len(effect)),
        }
    )
    both = table.merge(table, on="base_id", suffixes=("", "_other"))
    other = (both["aspect"] != both["aspect_other"]) | (
        both["new"] != both["new_other"]
    )  # two edits to one label are one question
    both = both[
        (both["row"] < both["row_other"]) & other & (both["effect"] != both["effect_other"])
    ]
    same = np.sign(both["effect"] - both["effect_other"]) * np.sign(
        (both["estimate"] - both["estimate_other"]).round(9)
    )
    return (
        both.assign(agree=(same + 1) / 2)
        .groupby("base_id", sort=False)["agree"]
        .mean()
        .reset_index()
    )
