"""Attribution: which words of a sentence drive a model's score.

`explain(model, rows, "LIME")` explains a study's rows with a registered method, `explain_many` with
several at once, which share what they have in common; `class_score` is the seam on which every
gradient and token method stands; `save_explanations` and `load_explanations` are the one format of
the results. Which code runs for which method says the table in `registry`.
"""

from lib.attribution.batch import TokenBatch
from lib.attribution.explain import explain, explain_many
from lib.attribution.model_blind import fit_pattern
from lib.attribution.registry import METHODS, Method, resolve_method
from lib.attribution.seam import Row, Score, TokenScores, WordScores, class_score
from lib.attribution.table import ABOUT, SCHEMA, load_explanations, save_explanations

__all__ = [
    "ABOUT",
    "METHODS",
    "SCHEMA",
    "Method",
    "Row",
    "Score",
    "TokenBatch",
    "TokenScores",
    "WordScores",
    "class_score",
    "explain",
    "explain_many",
    "fit_pattern",
    "load_explanations",
    "resolve_method",
    "save_explanations",
]


def __getattr__(name: str) -> object:
    """The names that the README's examples imported from here, for one release longer."""
    if name not in ("explain_texts", "word_list", "wrap"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # by name, for doors stand above this room
    import warnings

    new = f"lib.doors.{name}"
    warnings.warn(f"{__name__}.{name} is now {new}", DeprecationWarning, stacklevel=2)
    return getattr(importlib.import_module("lib.doors"), name)
