"""Unambiguous sentences, whose noun fixes the pronoun: what a model answers there, how surely."""

from collections.abc import Sequence

import pandas as pd

from ...core.files import read_yaml
from ...core.paths import material
from ...metrics.masked_pronoun import gender_probabilities, right_gender_first
from ...models.masked_gender import gender_ids
from ...models.masked_lm import MaskedLM
from ...stats import estimate


def read_questions(name: str) -> pd.DataFrame:
    """Unambiguous sentences of the material, `gate` or `gate_choice`: noun, gender, sentence."""
    path = material("implicit_bias") / f"{name}.yaml"
    return pd.DataFrame(read_yaml(path, list), columns=["noun", "gender", "sentence"])


def right_answers(model: MaskedLM, questions: pd.DataFrame) -> list[bool]:
    """For each unambiguous sentence ("_" is its pronoun) whether the right gender comes first."""
    mask = model.tokenizer.mask_token
    words = [
        [mask if word == "_" else word for word in text.split()] for text in questions["sentence"]
    ]
    log_prob = model.log_prob(model.encode(words))
    return right_gender_first(log_prob, gender_ids(model.tokenizer), questions["gender"])


def pronoun_rank(model: MaskedLM) -> int:
    """The rank of the likeliest pronoun at the mask of "The duchess opened [MASK] letter ."."""
    words = ["The", "duchess", "opened", model.tokenizer.mask_token, "letter", "."]
    found = gender_probabilities(model.log_prob(model.encode([words])), gender_ids(model.tokenizer))
    return int(found[["rank_F", "rank_M"]].min(axis=None))


def share_right(right: Sequence[bool], nouns: Sequence[str], seed: int = 0) -> dict[str, float]:
    """The share of right answers with its 95 % interval over nouns.

    Sentences about one noun are no independent observations, so nouns are resampled.

    >>> found = share_right([True, True, False, True], ["duke", "duke", "monk", "monk"])
    >>> found["right_first"], found["right_low"] >= 0.5, found["right_high"]
    (0.75, True, 1.0)
    """
    codes = {noun: i for i, noun in enumerate(nouns)}
    rows = pd.DataFrame({"sentence_idx": [codes[noun] for noun in nouns], "seed": 0})
    found = estimate(rows.assign(right=[float(r) for r in right]), "right", seed=seed)
    return {
        "right_first": found.estimate,
        "right_low": found.low,
        "right_high": found.high,
    }
