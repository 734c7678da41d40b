"""Verdicts as a notebook shows them: decided ones first, and a single line at scale small."""

import re
from pathlib import Path

import pandas as pd

from ..core.notebooks import show_table
from ..core.stage import Stage
from .claims import VERDICTS, read_claims

# The two that decide, the two that do not, and what this run could not ask.
_ORDER = ("holds", "fails", "partly", "undecided", "not run")
# A count of one comparison tells nothing; its reason does.
_ONE = re.compile(r"^of 1 comparisons 1 (?:not run|\w+)(?: \((.*?)\)(?=$|;))?")
_WORDS = {  # quantities that are codes
    "MA": "mass accuracy",
    "RMA": "relative mass accuracy",
    "MA_chance_normalised": "chance-normalised mass accuracy",
}
_CODES = {  # in statements and quantities, whose wording stays as it was registered
    "D_A": "all gendered words",
    "D_S": "subject only",
    "C": "head only",
    "CEfAf": "everything learns",
    "OLA": "one attention layer",
    "verum": "the expected class",
    "malum": "the other class",
}
_CODE = re.compile(rf"\b({'|'.join(_CODES)})\b")
assert set(_ORDER) == set(VERDICTS)


def show_verdicts(
    stage: Stage, claims: pd.DataFrame, registered: Path, name: str, *ids: str
) -> pd.DataFrame | None:
    """The verdicts on some claims with their reasons, saved as `verdict_<name>.csv`.

    Scale small decides nothing: there one line says so, and no table is saved.

    Args:
        stage: the stage that shows them.
        claims: claims.csv of stage 4.
        registered: claims.yaml, for the statements.
        name: of the table.
        ids: the claims that are shown. If none is named, all are saved and those that were
            registered are shown; of single numbers that the paper prints one line gives the counts.

    Returns:
        For display: the claim in words, the verdict, what the claim says of which quantity, what is
        found here with its interval (of several comparisons: the median and the range), and the
        reason; decided claims first.
    """
    chosen = claims.set_index("id").loc[list(ids)].reset_index() if ids else claims
    if stage.is_practice:
        print(f"{len(chosen)} claims are judged at scale cpu; scale {stage.scale} shows the steps.")
        return None
    rank = chosen["verdict"].map({verdict: i for i, verdict in enumerate(_ORDER)})
    chosen = chosen.assign(rank=rank).sort_values("rank", kind="stable").drop(columns="rank")
    stage.table(f"verdict_{name}", chosen)
    statements = {claim.id: _glossed(claim.statement) for claim in read_claims(registered)}
    if not ids:
        is_number = ~chosen["id"].isin(statements)
        counts = chosen.loc[is_number, "verdict"].value_counts().reindex(_ORDER).dropna()
        told = ", ".join(f"{count:.0f} {verdict}" for verdict, count in counts.items())
        print(f"{is_number.sum()} printed numbers are in verdict_{name}.csv: {told or 'none'}")
        chosen = chosen[~is_number]
    of = chosen["quantity"].replace(_WORDS).str.replace("_", " ").map(_glossed)
    of = of.where(chosen["id"].isin(statements), "") + " "
    shown = pd.DataFrame(
        {
            "claim": chosen["id"].map(statements).fillna(chosen["quantity"]),
            "verdict": chosen["verdict"],
            "it says": (of + chosen["paper"].fillna("").astype(str)).str.strip(),
            "ours": [
                _found(row.ours, row.low, row.high, _is_range(row.why))
                for row in chosen.fillna({"why": ""}).itertuples()
            ],
            "why": [_ONE.sub(r"\1", why).strip("; ") for why in chosen["why"].fillna("")],
        }
    )
    return shown.reset_index(drop=True)


def _is_range(why: str) -> bool:
    """Whether a reason counts more than one comparison that was run.

    >>> reasons = "", "of 2 comparisons 1 holds, 1 not run", "of 2 comparisons 2 fails"
    >>> [_is_range(why) for why in reasons]
    [False, False, True]
    """
    counted = re.match(r"of (\d+) comparisons ([^(;]*)", why)
    if counted is None:
        return False
    left_out = re.search(r"(\d+) not run", counted[2])
    return int(counted[1]) - int(left_out[1] if left_out else 0) > 1


def _found(estimate: float, low: float, high: float, is_range: bool) -> str:
    """What is found, with three decimals.

    >>> _found(0.12345, -0.00049, 0.2, True), _found(0.5, float("nan"), float("nan"), False)
    ('0.123 (range 0.000 to 0.200)', '0.500')
    """
    if pd.isna(estimate):
        return ""
    numbers = [f"{round(x, 3) + 0.0:.3f}" for x in (estimate, low, high)]
    if pd.isna(low):
        return numbers[0]
    return f"{numbers[0]} ({'range ' if is_range else ''}{numbers[1]} to {numbers[2]})"


def _glossed(statement: str) -> str:
    """A text with each code explained where it first stands.

    >>> _glossed("Higher on D_A than on D_S, and D_A has more rows.")
    'Higher on D_A (all gendered words) than on D_S (subject only), and D_A has more rows.'
    """
    for code in dict.fromkeys(_CODE.findall(statement)):
        statement = re.sub(rf"\b{code}\b", f"{code} ({_CODES[code]})", statement, count=1)
    return statement


def tell_verdicts(
    stage: Stage, claims: pd.DataFrame, registered: Path, name: str, *ids: str
) -> None:
    """`show_verdicts`, displayed: at most twelve rows, and a line that counts the others."""
    table = show_verdicts(stage, claims, registered, name, *ids)
    if table is not None:
        show_table(table, dict(zip(table, table)))
