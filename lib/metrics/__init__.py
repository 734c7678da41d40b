"""Metrics: how much of an explanation lies on the words that are known to matter.

`mass_accuracy(scores, mask)` and the other measures take one sentence or a padded matrix of sentences;
`score_explanations` applies them all to a table in the explanation format.
"""

from lib.metrics.measures import (
    METRICS,
    average_precision,
    chance_normalised_mass_accuracy,
    mask_recall,
    mass_accuracy,
    precision_at_specificity,
    relative_mass_accuracy,
    roc_auc,
    top_k_precision,
    truth_share,
)
from lib.metrics.scoring import (
    FLOORS,
    ROW_SETS,
    add_relative,
    by_correctness,
    form_differences,
    piece_counts,
    relative_floors,
    score_explanations,
    select_rows,
    without_verbs,
)

__all__ = [
    "FLOORS", "METRICS", "ROW_SETS", "add_relative", "average_precision", "by_correctness",
    "chance_normalised_mass_accuracy", "form_differences", "mask_recall", "mass_accuracy", "piece_counts",
    "precision_at_specificity", "relative_floors", "relative_mass_accuracy", "roc_auc", "score_explanations",
    "select_rows", "top_k_precision", "truth_share", "without_verbs",
]
