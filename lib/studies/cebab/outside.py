"""A model that was trained elsewhere, as files: its answers, and what explainers may know of it.

One training is a table of predictions, perhaps one of predicted aspects, and perhaps vectors with a
head (`lib.studies.cebab.reading`). Of several trainings the names differ by their seed, for which
`{seed}` stands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError
from ...stats import Claim
from .questions import AnyHead, Questions, Texts, ask, check_head
from .reading import class_columns, gather_texts, read_outside, read_vectors

NAME = "outside"  # in the column model
_SEED = "{seed}"
ABOUT_IT = " (outside)"  # at the end of the id of a claim


@dataclass(frozen=True)
class OutsideModel:
    """One training of a model from elsewhere.

    Args:
        predictions: text_id, p_1 ... p_K.
        aspects: text_id and the predicted values of the four aspects.
        vectors: text_ids and (n, hidden) numbers, or None.
        head: what makes the answers from the vectors, or None.
    """

    predictions: pd.DataFrame
    aspects: pd.DataFrame
    vectors: tuple[np.ndarray, np.ndarray] | None = None
    head: AnyHead | None = None


def names_by_seed(names: Mapping[str, str], seeds: Sequence[int]) -> dict[int, dict[str, str]]:
    """What each training of the model is read from.

    Args:
        names: files, and perhaps a function, by parameter; "" for what is not handed in.
        seeds: of the trainings. With more than one, `{seed}` stands for them in the names.

    Raises:
        TouchstoneError: a seed twice, or trainings that would share a file they cannot share.

    >>> names_by_seed({"outside_predictions": "p{seed}.csv"}, [3, 4])[4]
    {'outside_predictions': 'p4.csv'}
    """
    if (other := [p for p, name in names.items() if name]) and not names["outside_predictions"]:
        raise TouchstoneError(
            f"{other[0]} is named, and outside_predictions is not; name the table of predictions"
        )
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise TouchstoneError(
            f"outside_seeds is {list(seeds)}; write a different number for each training, from 0 on"
        )
    for parameter in ("outside_predictions", "outside_vectors"):
        name = names.get(parameter, "")
        if name and len(seeds) > 1 and _SEED not in name:
            raise TouchstoneError(
                f"{parameter} names one file, {name}, for {len(seeds)} trainings; write {_SEED} "
                "where the names differ"
            )
    return {
        seed: {parameter: name.replace(_SEED, str(seed)) for parameter, name in names.items()}
        for seed in seeds
    }


def read_outside_model(
    predictions: Path,
    aspects: Path | pd.DataFrame,
    vectors: Path | None = None,
    head: str = "",
) -> OutsideModel:
    """One training from its files.

    Args:
        predictions: Parquet or CSV, see `read_outside`.
        aspects: the same, or the table of stage 2, which has the texts of its train set and of
            test; then the answers to other texts are left out.
        vectors: see `read_vectors`; without them only explainers that need no weights are asked.
        head: the head as "module:function", if it does not stand beside the vectors.
    """
    if head and vectors is None:
        raise TouchstoneError(
            f"the head {head} reads vectors, and there are none; name a file in outside_vectors"
        )
    answers = read_outside(predictions)
    class_columns(answers, str(predictions))
    read, layers = read_vectors(vectors, head) if vectors else (None, None)
    if not isinstance(aspects, pd.DataFrame):
        return OutsideModel(answers, read_outside(aspects), read, layers)
    known = answers["text_id"].isin(aspects["text_id"])
    return OutsideModel(answers[known], aspects, read, layers)


def refuse_equal(trainings: Mapping[int, OutsideModel]) -> None:
    """Two trainings never give equal answers: then one file has been handed in twice."""
    seen: dict[str, int] = {}
    for seed, model in trainings.items():
        columns = ["text_id", *class_columns(model.predictions, "the predictions")]
        content = model.predictions[columns].sort_values("text_id").to_csv(index=False)
        if content in seen:
            raise TouchstoneError(
                f"the predictions of seed {seen[content]} and seed {seed} are equal; hand in each "
                "training once, or its interval would be too narrow"
            )
        seen[content] = seed


def given_of(
    model: OutsideModel, texts: pd.DataFrame, pairs: pd.DataFrame, n_classes: int
) -> tuple[Texts, Questions, AnyHead | None, pd.DataFrame]:
    """What explainers get of a model from elsewhere.

    Args:
        model: one training.
        texts: text_id, text, split and the labels of the aspects, of one data set.
        pairs: its test pairs.
        n_classes: K of the task.

    Returns:
        The train texts that the predictions name, the questions of all test pairs, the head or
        None, and the pairs.

    Raises:
        TouchstoneError: the answers are of another task, leave out a test text or all train texts,
            or are not what the head makes of the vectors.
    """
    columns = class_columns(model.predictions, "the table of predictions")
    if len(columns) != n_classes:
        raise TouchstoneError(
            f"the predictions have {len(columns)} classes, and this run has {n_classes}; hand in "
            "p_1 to p_K of the same task, or set n_classes"
        )
    asked = texts["split"].eq("test") & texts["text_id"].isin(pairs["base_id"])
    learnt = texts["split"].eq("train") & texts["text_id"].isin(model.predictions["text_id"])
    if not learnt.any():
        raise TouchstoneError(
            "the predictions name no train text; explainers learn from answers to train texts, so "
            "hand these in as well"
        )
    train, test = (
        gather_texts(texts[rows], model.predictions, model.aspects, model.vectors)
        for rows in (learnt, asked)
    )
    if model.head is not None:
        check_head(train, model.head)
        check_head(test, model.head)
    return train, ask(pairs, test), model.head, pairs


def answers_to_score(
    trainings: Mapping[int, OutsideModel], texts: pd.DataFrame, columns: Sequence[str]
) -> pd.DataFrame:
    """The answers to test texts as a table like that of stage 2, which stage 4 reads.

    Args:
        trainings: by seed.
        texts: dataset, text_id, group and split, of one data set.
        columns: of the table; what nobody has said (label) is empty.
    """
    about = texts.loc[texts["split"] == "test", ["dataset", "text_id", "group", "split"]]
    parts = [
        model.predictions.merge(about, on="text_id").assign(model=NAME, seed=seed)
        for seed, model in trainings.items()
    ]
    return pd.concat(parts, ignore_index=True).reindex(columns=[*columns])


def claims_about_it(claims: Sequence[Claim]) -> list[Claim]:
    """The claims once more, asked of the model from elsewhere alone; each has a verdict of its own.

    The registered claims are about the models of a study's own and stay as they are.
    """
    return [
        replace(
            claim,
            id=f"{claim.id}{ABOUT_IT}",
            over={**claim.over, "model": [NAME]},
            caveat="; ".join(part for part in (claim.caveat, "the model from outside") if part),
        )
        for claim in claims
        if "model" in claim.over
    ]


def caution(claim: Claim) -> Claim:
    """The claim with a caveat, where its source has explained BERT and its like."""
    if claim.source == "ours" or not claim.over.get("model"):
        return claim
    parts = (claim.caveat, "another model stands in for the paper's")
    return replace(claim, caveat="; ".join(part for part in parts if part))


def split_verdicts(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The lines of claims.csv on a study's own models, and those on the model from elsewhere, which
    have the ids of the claims again.
    """
    is_outside = table["id"].astype(str).str.endswith(ABOUT_IT)
    about_it = table[is_outside].assign(id=lambda t: t["id"].str.removesuffix(ABOUT_IT))
    return table[~is_outside], about_it
