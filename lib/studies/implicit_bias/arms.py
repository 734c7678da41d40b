"""What the arms of stage 02 are trained on: sentences swapped, doubled or evened, and rehearsed.

A sentence that passed the filter has the columns words, at, slot, gender, antecedent and part
("held out" or "trained on"). An arm reads those about the nouns that are trained on.
"""

import random
from collections.abc import Sequence

import pandas as pd

from ...core.seeds import seed_for
from .sentences import with_gender

ARMS = ("placebo", "even placebo", "augmented")


def is_held_out(antecedent: str, share: float, seed: int) -> bool:
    """Whether a noun is kept for measuring, by its letters and the seed alone."""
    return seed_for("held out", antecedent, seed) / 2**31 < share


def with_parts(sentences: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """The sentences with their part: "held out" for about this share of the nouns."""
    parts = [
        "held out" if is_held_out(noun, share, seed) else "trained on"
        for noun in sentences["antecedent"]
    ]
    return sentences.assign(part=parts)


def evenly(part: pd.DataFrame, number: int, seed: int) -> list[list[str]]:
    """As many sentences of each gender as `part` has in all.

    Each as often as it goes, the rest drawn by the seed and the number of the training.
    """
    found: list[list[str]] = []
    for gender in "FM":
        own = list(part.loc[part["gender"] == gender, "words"])
        found += own * (len(part) // len(own)) + random.Random(
            seed_for("even", gender, number, seed)
        ).sample(own, len(part) % len(own))
    return found


def arm_text(sentences: pd.DataFrame, arm: str, number: int, seed: int) -> list[list[str]]:
    """The sentences that an arm is trained on: each twice, swapped in between or not, or evenly."""
    part = sentences[sentences["part"] == "trained on"]
    if arm == "even placebo":
        return evenly(part, number, seed)
    other = {"F": "M", "M": "F"} if arm == "augmented" else {"F": "F", "M": "M"}
    return [
        words
        for row in part.itertuples()
        for words in (
            row.words,
            with_gender(row.words, row.at, row.slot, other[row.gender]),
        )
    ]


def rehearsed(
    own: Sequence[Sequence[str]],
    base_text: Sequence[tuple[Sequence[str], bool]],
    rehearsal: float,
    frames_share: float,
    chooser: random.Random,
) -> list[Sequence[str]]:
    """The sentences of an arm, and those of the base model's text that it reads again.

    Args:
        own: the arm's sentences.
        base_text: sentences that the base model read, and whether each is from a frame.
        rehearsal: how many of these for each of its own.
        frames_share: the share of sentences from frames among them.
        chooser: draws them.
    """
    found = list(own)
    for frames, share in ((True, frames_share), (False, 1 - frames_share)):
        part = [words for words, is_frame in base_text if is_frame == frames]
        found += chooser.sample(part, min(len(part), round(share * rehearsal * len(own))))
    return found
