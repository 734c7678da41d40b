"""How much of an explanation lies on the words known to matter, or that the model uses.

`mass_accuracy(scores, mask)` and the other measures take one sentence or a padded matrix of
sentences; `score_explanations` applies them all to a table in the explanation format. What the
*model* uses is asked by word swaps (`agreement_with_swaps`), deletions (`faithfulness`), noise
(`sensitivity`) and `cascading_randomisation`; whether these answers agree, by
`correlate_methods` and `correlate_rows`. In files of their own: planted words (`planting`),
agreement lines (`plausibility`), effects of concepts (`concept_effects`), the masked pronoun
(`masked_pronoun`).
"""

from .agreement import (
    agreement_with_swaps,
    correlate_methods,
    correlate_rows,
    player_agreement,
    rank_correlation,
)
from .deletion import aopc
from .faithfulness import comprehensiveness, faithfulness, sufficiency
from .mass_accuracy import (
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
from .randomisation import cascading_randomisation
from .scoring import (
    FLOORS,
    ROW_SETS,
    add_relative,
    by_correctness,
    piece_counts,
    score_explanations,
    select_rows,
    without_predictions,
)
from .sensitivity import sensitivity

__all__ = [
    "FLOORS",
    "METRICS",
    "ROW_SETS",
    "add_relative",
    "agreement_with_swaps",
    "aopc",
    "average_precision",
    "by_correctness",
    "cascading_randomisation",
    "chance_normalised_mass_accuracy",
    "comprehensiveness",
    "correlate_methods",
    "correlate_rows",
    "faithfulness",
    "mask_recall",
    "mass_accuracy",
    "piece_counts",
    "player_agreement",
    "rank_correlation",
    "precision_at_specificity",
    "relative_mass_accuracy",
    "roc_auc",
    "score_explanations",
    "select_rows",
    "sensitivity",
    "sufficiency",
    "top_k_precision",
    "truth_share",
    "without_predictions",
]
