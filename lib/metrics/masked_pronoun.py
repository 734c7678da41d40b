"""How a masked LM fills a pronoun's place: the probabilities of both genders, the bias score and
its rules (Ye et al., section 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from lib.core.errors import TouchstoneError
from lib.language.lexicon import PRONOUNS, load_lexicon

SLOT_FORMS: Mapping[str, dict[str, str]] = {
    "subject": {"F": "she", "M": "he"},
    "object": {"F": "her", "M": "him"},
    "possessive": {"F": "her", "M": "his"},
    "independent": {"F": "hers", "M": "his"},
    "reflexive": {"F": "herself", "M": "himself"},
}
_MISSING, _COMPARED = ("discard", "zero", "full_vocab"), ("each", "larger", "sum")
GenderIds = dict[str, list[int]]


def gender_ids(tokenizer: Any, words: str = "pronouns") -> GenderIds:
    """The vocabulary entries of each gender (F, M): case is folded, and the forms with a leading space are taken.

    `words`: "pronouns" (the paper's eight), or "identities" (also man, queen, ... by the lexicon of the repository).
    """
    if words not in ("pronouns", "identities"):
        raise TouchstoneError(f"words is {words!r}; write pronouns or identities")
    pieces = [t for t in tokenizer.get_vocab() if t[:1] in "Ġ▁"]
    lead = next(
        (
            mark
            for mark in "Ġ▁"
            if sum(t.startswith(mark) for t in pieces) > 100 or mark + "he" in pieces
        ),
        "",
    )
    found: GenderIds = {"F": [], "M": []}
    for piece, i in tokenizer.get_vocab().items():
        if lead and not piece.startswith(lead):
            continue
        gender = gender_of(piece.removeprefix(lead), words)
        if gender:
            found[gender].append(i)
    if empty := [g for g, ids in found.items() if not ids]:
        raise TouchstoneError(
            f"the vocabulary holds no {words} of gender {empty[0]}; choose another model"
        )
    return {g: sorted(ids) for g, ids in found.items()}


def gender_of(word: str, words: str = "pronouns") -> str:
    """F, M, or nothing, for a word as a vocabulary writes it.

    >>> gender_of("He"), gender_of("queen"), gender_of("queen", "identities"), gender_of("##he")
    ('M', '', 'F', '')
    """
    if word.lower() in PRONOUNS:
        return PRONOUNS[word.lower()]
    found = load_lexicon().find(word) if words == "identities" and word.isalpha() else None
    return found[0] if found else ""


def slot_ids(tokenizer: Any, slot: str) -> GenderIds:
    """The entries of the two forms that fit a slot (his and her before a noun, him and her as an object, ...)."""
    ids = gender_ids(tokenizer)
    names = {i: t.lstrip("Ġ▁").lower() for t, i in tokenizer.get_vocab().items()}
    return {g: [i for i in ids[g] if names[i] == form] for g, form in SLOT_FORMS[slot].items()}


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
    probabilities, genders = top.values.double().numpy(), [gender_of(word) for word in words]
    return pd.DataFrame({"word": words, "probability": probabilities, "gender": genders})


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
    inside = {g: (probabilities[f"rank_{g}"] <= k).to_numpy() for g in "FM"}
    full = {g: probabilities[f"p_{g}"].to_numpy(float) for g in "FM"}
    p = full if missing == "full_vocab" else {g: np.where(inside[g], full[g], 0.0) for g in "FM"}
    none = ~inside["F"] & ~inside["M"]
    alone = (inside["F"] != inside["M"]) & (missing == "discard")
    reached = {
        "each": np.minimum(p["F"], p["M"]),
        "larger": np.maximum(p["F"], p["M"]),
        "sum": p["F"] + p["M"],
    }[compared]
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
