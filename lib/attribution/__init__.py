"""Attribution: which words of a sentence drive a model's score.

`explain(model, rows, "LIME")` explains rows with a registered method; `class_score` is the seam on which
every gradient and token method stands; `save_explanations` and `load_explanations` are the one format of the
results.
"""

from lib.attribution.explain import explain
from lib.attribution.floors import fit_pattern
from lib.attribution.registry import METHODS, Method, resolve_method
from lib.attribution.seam import Row, TokenBatch, TokenScores, class_score
from lib.attribution.table import SCHEMA, load_explanations, save_explanations

__all__ = ["METHODS", "SCHEMA", "Method", "Row", "TokenBatch", "TokenScores", "class_score", "explain", "fit_pattern",
           "load_explanations", "resolve_method", "save_explanations"]
