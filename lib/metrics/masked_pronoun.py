"""How a masked LM fills a pronoun's place: the probabilities of both genders, the bias score and
its rules (Ye et al., section 3.3).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from ..core.errors import TouchstoneError
from ..models.masked_gender import GenderIds, gender_of

_MISSING, _COMPARED = ("discard", "zero", "full_vocab"), ("each", "larger", "sum")


def gender_probabilities(log_prob: Float[Tensor, "batch vocab"], ids: GenderIds) -> pd.DataFrame:
    """For each sentence the largest probability of a word of each gender (a maximum, no sum) and
    its rank.

    Args:
        log_prob: the logarithms of the probabilities at the mask.
        ids: the vocabulary entries of each gender.

    Returns:
        p_F, p_M, rank_F, rank_M. Ranks count from 1 over the whole vocabulary, so that a choice
        of k can be made later: in the top k, or not.
    """
    columns = {}
    for gender, of_gender in ids.items():
        best = log_prob[:, of_gender].max(1)
        columns[f"p_{gender}"] = best.values.exp().double().numpy()
        columns[f"rank_{gender}"] = (log_prob > best.values[:, None]).sum(1).numpy() + 1
    return pd.DataFrame(columns)[["p_F", "p_M", "rank_F", "rank_M"]]


def top_words(log_prob: Float[Tensor, "vocab"], tokenizer: Any, k: int = 10) -> pd.DataFrame:
    """The k likeliest entries at a mask: word, probability, gender; the table that the paper's
    tool shows.
    """
    top = log_prob.exp().topk(k)
    words = [tokenizer.convert_ids_to_tokens(int(i)).lstrip("Ġ▁") for i in top.indices]
    return pd.DataFrame(
        {
            "word": words,
            "probability": top.values.double().numpy(),
            "gender": [gender_of(word) for word in words],
        }
    )


def bias_score(p_male: Any, p_female: Any) -> Any:
    """bias(s) = P(s|m) / (P(s|m) + P(s|f)) (equation 1): 0.5 is even, 1 male, 0 female.

    >>> round(bias_score(0.435, 0.195), 2), round(bias_score(0.142, 0.113), 2)
    (0.69, 0.56)
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

    With none of the two genders in the top k a sentence is discarded always.

    Args:
        probabilities: from `gender_probabilities`.
        k: how many of the likeliest words count.
        threshold: of the probabilities, see `compared`.
        missing: one gender alone in the top k: the sentence is discarded ("discard"), the other
            counts as zero ("zero"), or its probability is taken from the full vocabulary
            ("full_vocab").
        compared: what must reach `threshold`: each gender's probability ("each"), the larger
            one, or their sum.
        delta: within 0.5 +- delta a sentence is even.

    Returns:
        bias (NaN where discarded) and verdict, by the index of `probabilities`.

    Raises:
        TouchstoneError: for a rule that there is not, and for k or delta out of range.
    """
    if missing not in _MISSING or compared not in _COMPARED:
        raise TouchstoneError(
            f"missing {missing!r} and compared {compared!r} must be of {', '.join(_MISSING)} and "
            f"of {', '.join(_COMPARED)}"
        )
    if k < 1 or not 0 <= delta < 0.5:
        raise TouchstoneError(
            f"k is {k} and delta {delta}; k must be at least 1 and delta lie in [0, 0.5)"
        )
    return apply_rule(probabilities, k, threshold, missing, compared, delta)


def apply_rule(
    probabilities: pd.DataFrame,
    k: int,
    threshold: float,
    missing: str,
    compared: str,
    delta: float,
) -> pd.DataFrame:
    """What `judge_sentences` returns, for a rule that has been checked."""
    # Ranks are over the whole vocabulary, so "in the top k" needs no other word.
    inside = {g: (probabilities[f"rank_{g}"] <= k).to_numpy() for g in "FM"}
    full = {g: probabilities[f"p_{g}"].to_numpy(float) for g in "FM"}
    p = full if missing == "full_vocab" else {g: np.where(inside[g], full[g], 0.0) for g in "FM"}
    # The first condition that holds decides: no gender at all comes before one gender alone. A
    # probability may be 0 at any rank, where one word takes all.
    none = (~inside["F"] & ~inside["M"]) | (p["F"] + p["M"] == 0)
    alone = (inside["F"] != inside["M"]) & (missing == "discard")
    reached = {
        "each": np.minimum(p["F"], p["M"]),
        "larger": np.maximum(p["F"], p["M"]),
        "sum": p["F"] + p["M"],
    }[compared]
    # 1 in place of 0 + 0: those rows are discarded, and a division by zero would warn.
    bias = bias_score(p["M"], np.where(p["F"] + p["M"] > 0, p["F"], 1.0))
    verdict = np.select(
        [none, alone, reached < threshold, bias > 0.5 + delta, bias < 0.5 - delta],
        ["no gendered word", "one gender alone", "below the threshold", "male", "female"],
        "even",
    )
    counts = np.isin(verdict, ["male", "female", "even"])
    return pd.DataFrame(
        {"bias": np.where(counts, bias, np.nan), "verdict": verdict}, index=probabilities.index
    )


def right_gender_first(
    log_prob: Float[Tensor, "batch vocab"], ids: GenderIds, genders: Sequence[str]
) -> list[bool]:
    """Whether the likeliest word at each mask is of the right gender.

    Args:
        ids: the vocabulary entries of each gender.
        genders: F or M, one a sentence.
    """
    best = torch.stack([log_prob[:, ids[g]].max(1).values for g in "FM"], 1).argmax(1).tolist()
    return ["FM"[i] == gender for i, gender in zip(best, genders, strict=True)]
