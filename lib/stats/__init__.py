"""Intervals for rows that are not independent, tests, verdicts on claims.

`estimate` gives a mean (or median) with an interval over base sentences and seeds, `estimates` one
for every group of a table; `compare_all` compares methods in pairs; `judge_contrasts` puts a claim
that was registered before the run to the test, and `summarise` makes its line of claims.csv.
"""

from .claims import (
    VERDICTS,
    Claim,
    Verdict,
    claim_row,
    combine,
    judge,
    read_claims,
    summarise,
)
from .comparisons import (
    SignedRank,
    clustered_wilcoxon,
    compare_all,
    equivalence_p,
    holm,
    paired_differences,
    smallest_detectable_difference,
    variance_split,
)
from .contrasts import judge_contrasts
from .estimates import Estimate, estimate, estimate_auc, estimates, estimates_of, half_widths
from .verdicts import show_verdicts, tell_verdicts

__all__ = [
    "VERDICTS",
    "Claim",
    "Estimate",
    "SignedRank",
    "Verdict",
    "claim_row",
    "clustered_wilcoxon",
    "combine",
    "compare_all",
    "equivalence_p",
    "estimate",
    "estimate_auc",
    "estimates",
    "estimates_of",
    "half_widths",
    "holm",
    "judge",
    "judge_contrasts",
    "paired_differences",
    "read_claims",
    "show_verdicts",
    "tell_verdicts",
    "smallest_detectable_difference",
    "summarise",
    "variance_split",
]
