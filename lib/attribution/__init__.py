"""Which words of a sentence drive a model's score: the methods and their format.

`explain(model, rows, "LIME")` explains a study's rows with a registered method, `explain_many` with
several at once, which share what they have in common; `class_score` is the seam on which every
gradient and token method stands; `save_explanations` and `load_explanations` are the one format of
the results. Which code runs for which method says the table in `registry`.
"""

from .batch import TokenBatch
from .explain import explain, explain_many
from .model_blind import fit_pattern
from .registry import METHODS, Method, resolve_method
from .seam import Row, Score, TokenScores, WordScores, class_score
from .table import ABOUT, SCHEMA, load_explanations, save_explanations

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

    doors = importlib.import_module("..doors", __package__)
    new = f"{doors.__name__}.{name}"
    warnings.warn(f"{__name__}.{name} is now {new}", DeprecationWarning, stacklevel=2)
    return getattr(doors, name)
