"""The numbers that the GECOBench papers print, each beside ours."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from ...stats import Claim, Verdict, claim_row, judge

_KEYS = ["dataset", "scheme", "class"]
_WITHOUT_BERT = ("", "OLA-CEA")  # what does not depend on the encoder
_NOTHING = {"estimate": np.nan, "low": np.nan, "high": np.nan, "n": 0}


def compare_numbers(
    claim: Claim,
    numbers: pd.DataFrame,
    ours: pd.DataFrame,
    scale: str,
    is_original_data: bool,
    is_original_model: bool,
) -> list[dict[str, Any]]:
    """One line of claims.csv for every number that a paper prints for the claim's quantity, beside
    ours.

    The uncertainty of the paper's own mean counts too. A number that belongs to other data or to
    another encoder is shown and not judged.

    Args:
        numbers: paper_numbers.csv.
        ours: quantity, dataset, scheme, class, estimate, low, high, n.
        scale: the name of the run, for the column of that name.
        is_original_data: whether this run has GECO's own sentences.
        is_original_model: whether its encoder is the papers' BERT.
    """
    is_wanted = numbers["source"].str.startswith(claim.source)
    wanted = numbers[is_wanted & (numbers["quantity"] == claim.quantity)]
    of_quantity = ours[ours["quantity"] == claim.quantity]
    found = {tuple(row[k] for k in _KEYS): row for row in of_quantity.to_dict("records")}
    rows = []
    for number in wanted.astype(object).fillna("").to_dict("records"):
        key, paper = tuple(number[k] for k in _KEYS), float(number["value"])
        estimate, low, high, n = (found.get(key, _NOTHING)[name] for name in _NOTHING)
        reasons = {
            "this run has no such model or data": np.isnan(estimate),
            "the number belongs to GECO; this run has its own sentences": not is_original_data,
            "the number belongs to BERT; another encoder stands in for it": not is_original_model
            and number["scheme"] not in _WITHOUT_BERT,
        }
        why = next((reason for reason, holds in reasons.items() if holds), "")
        error = _printed_error(number)
        verdict = Verdict("not run", why)
        if not why:
            # the difference from the paper's number, wider by that number's own error
            verdict = judge(claim, estimate - paper, low - paper - error, high - paper + error, n)
        name = " ".join(part for part in (claim.quantity, *key) if part)
        row = claim_row(claim, verdict, scale, paper, estimate, low, high, n, name)
        row["why"] = "; ".join(part for part in (row["why"], number["note"]) if part)
        rows.append(row | {"source": number["source"], "id": number["id"]})
    return rows


def _printed_error(number: Mapping[str, Any]) -> float:
    """Half the 95 % interval of the paper's own mean over seeds; 0 where it prints no spread."""
    if number["spread"] == "":
        return 0.0
    n_seeds, spread, factor = (float(number[k]) for k in ("n_seeds", "spread", "spread_factor"))
    return float(t.ppf(0.975, n_seeds - 1) * spread * factor / np.sqrt(n_seeds))
