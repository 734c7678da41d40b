"""Names in words, for the figures and tables that readers see."""

from collections.abc import Mapping

import pandas as pd

from ...core import notebooks

MODELS = {
    "base": "base (untouched)",
    "placebo": "placebo (as they are)",
    "even placebo": "even placebo (half male)",
    "augmented": "augmented (both genders)",
}
PARTS = {
    "trained on": "nouns that were fine-tuned on",
    "held out": "held-out nouns",
    "winogender": "Winogender",
}
GROUPS = PARTS | {"held out, not person": 'held-out nouns except "person"'}  # as tables have them
PAIRS = {  # two models, and what lies between them
    ("augmented", "placebo"): "augmented minus placebo:\nswap and even share",
    ("even placebo", "placebo"): "even placebo minus placebo:\nthe even share",
    ("augmented", "even placebo"): "augmented minus even placebo:\nthe swap",
    ("augmented", "base"): "augmented minus base:\neverything",
    ("placebo", "base"): "placebo minus base:\nmore fine-tuning",
}
READINGS = {  # of rules, as stage 04 names them; patterns
    r"^threshold 0\.0$": "no threshold",
    "^threshold 0, ": "no threshold, ",
    r"k = (\d+)$": r"\1 likeliest words",
    "missing: zero": "a missing gender is 0",
    "missing: full_vocab": "whole vocabulary",
    "compared: larger": "threshold for the larger gender",
    "compared: sum": "threshold for the sum",
    "delta": "even zone .5 ±",
    "words: pronouns": "words: pronouns alone",
    "words: identities": "words: also nouns",
    "words: slot": "words: forms of the slot",
}


def in_words(table: pd.DataFrame, names: Mapping[str, str], rows: int = 12) -> pd.DataFrame:
    """As `in_words` of `core.notebooks`; a base or seed of -1 is none, and its cell is empty."""
    for name in {"base", "seed"} & set(names) & set(table.select_dtypes("integer")):
        table = table.assign(**{name: table[name].where(table[name] >= 0).astype("Int64")})
    return notebooks.in_words(table, names, rows)
