"""How a masked LM fills a pronoun's place: the probabilities of both genders, the bias score and its rules (Ye et al., section 3.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from lib.core.errors import TouchstoneError
from lib.models.masked_gender import GenderIds, gender_of

MISSING, COMPARED = ("discard", "zero", "full_vocab"), ("each", "larger", "sum")


def gender_probabilities(log_prob: Float[Tensor, "batch vocab"], ids: GenderIds) -> pd.DataFrame:
    """For each sentence the largest probability of a word of each gender (p_F, p_M: a maximum, no sum) and its rank.

    Ranks count from 1 over the whole vocabulary, so that a choice of k can be made later: in the top k, or not.
    """
    found = {}
    for gender, of_gender in ids.items():
        best = log_prob[:, of_gender].max(1)
        found[f"p_{gender}"] = best.values.exp().double().numpy()
        found[f"rank_{gender}"] = (log_prob > best.values[:, None]).sum(1).numpy() + 1
    return pd.DataFrame(found)[["p_F", "p_M", "rank_F", "rank_M"]]


def top_words(log_prob: Float[Tensor, "vocab"], tokenizer: Any, k: int = 10) -> pd.DataFrame:
    """The k likeliest entries at a mask with probability and gender, the table that the paper's tool shows."""
    top = log_prob.exp().topk(k)
    words = [tokenizer.convert_ids_to_tokens(int(i)).lstrip("Ġ▁") for i in top.indices]
    return pd.DataFrame(
        {
            "word": words,
            "probability": top.values.double().numpy(),
            "gender": [gender_of(w) for w in words],
        }
    )


def bias_score(p_male: Any, p_female: Any) -> Any:
    """bias(s) = P(s|m) / (P(s|m) + P(s|f)) (equation 1): 0.5 is even, 1 male, 0 female.

    >>> round(bias_score(0.435, 0.195), 2), round(bias_score(0.142, 0.113), 2), round(bias_score(0.542, 0.0305), 2)
    (0.69, 0.56, 0.95)
    """
    return p_male / (p_male + p_female)


def judge_sentences(
    probabilities: pd.DataFrame,
    k: int = 10,
    threshold: float = 0.05,
    missing: str = "discard",
    compared: str = "each",
    delta: float = 0.0,
) -> pd.DataFrame:
    """bias(s) and a verdict for each sentence: male, female, even, or discarded with the reason.

    `missing`, one gender alone in the top k: the sentence is discarded, the other counts as zero, or its probability is
    taken from the full vocabulary. `compared`, what must reach `threshold`: each gender's probability, the larger one,
    or their sum. `delta`: within 0.5 +- delta a sentence is even. With none of the two in the top k it is discarded always.
    """
    if missing not in MISSING or compared not in COMPARED:
        raise TouchstoneError(
            f"missing {missing!r} and compared {compared!r} must be of {', '.join(MISSING)} and of "
            f"{', '.join(COMPARED)}"
        )
    if k < 1 or not 0 <= delta < 0.5:
        raise TouchstoneError(
            f"k is {k} and delta {delta}; k must be at least 1 and delta lie in [0, 0.5)"
        )
    inside = {g: (probabilities[f"rank_{g}"] <= k).to_numpy() for g in "FM"}
    full = {g: probabilities[f"p_{g}"].to_numpy(float) for g in "FM"}
    p = full if missing == "full_vocab" else {g: np.where(inside[g], full[g], 0.0) for g in "FM"}
    none = ~inside["F"] & ~inside["M"]
    one = (inside["F"] != inside["M"]) & (missing == "discard")
    reached = {
        "each": np.minimum(p["F"], p["M"]),
        "larger": np.maximum(p["F"], p["M"]),
        "sum": p["F"] + p["M"],
    }[compared]
    bias = bias_score(p["M"], np.where(p["F"] + p["M"] > 0, p["F"], 1.0))
    verdict = np.select(
        [none, one, reached < threshold, bias > 0.5 + delta, bias < 0.5 - delta],
        ["no gendered word", "one gender alone", "below the threshold", "male", "female"],
        "even",
    )
    kept = np.isin(verdict, ["male", "female", "even"])
    return pd.DataFrame(
        {"bias": np.where(kept, bias, np.nan), "verdict": verdict}, index=probabilities.index
    )


def right_gender_first(
    log_prob: Float[Tensor, "batch vocab"], ids: GenderIds, genders: Sequence[str]
) -> list[bool]:
    """Whether the likeliest pronoun at each mask is of the right gender."""
    best = torch.stack([log_prob[:, ids[g]].max(1).values for g in "FM"], 1).argmax(1).tolist()
    return ["FM"[i] == gender for i, gender in zip(best, genders, strict=True)]


def passes_gate(models: pd.DataFrame, least: float) -> pd.Series:
    """Which models may show bias scores: `right_first` at least `least`, and `perplexity` below `unigram`, the words' frequencies."""
    return (models["right_first"] >= least) & (models["perplexity"] < models["unigram"])


def may_be_shown(rows: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """The rows (columns model, base, seed) of the trainings that passed the gate (`models`: these and passes).

    `base`: which training of the base model it is or starts from. A training that is not listed raises.
    """
    key = ["model", "base", "seed"]
    passed = dict(
        zip(
            models[key].itertuples(index=False, name=None),
            models["passes"].astype(bool),
            strict=True,
        )
    )
    asked = list(rows[key].itertuples(index=False, name=None))
    if unknown := sorted(set(asked) - set(passed)):
        raise TouchstoneError(
            "{}, base {}, seed {}, was never put through the gate, so its scores are not shown; run 02_training again".format(
                *unknown[0]
            )
        )
    return rows[[passed[one] for one in asked]]


def check_lists(
    lists: Mapping[str, Collection[str]], equal: Sequence[tuple[str, str]] = (("X", "Y"),)
) -> None:
    """Refuse word lists that are empty, or unequal in size where equal ones are needed."""
    if empty := [name for name, words in lists.items() if not len(words)]:
        raise TouchstoneError(f"the word list {empty[0]} is empty; write at least one word")
    for first, second in equal:
        if len(lists[first]) != len(lists[second]):
            raise TouchstoneError(
                f"the word lists {first} and {second} have {len(lists[first])} and {len(lists[second])} words; "
                "the test needs lists of one size"
            )
