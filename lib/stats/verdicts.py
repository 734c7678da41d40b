"""Verdicts as a notebook shows them: decided ones first, and a single line at scale small."""

import re
from pathlib import Path

import pandas as pd

from ..core.codes import DATASETS, METHODS, SCHEMES, SIDES
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
    **DATASETS,
    "C": SCHEMES["C"],
    "CEfAf": f"{SCHEMES['CEfAf']} learns",
    "OLA": SCHEMES["OLA-CEA"],
    **{code: f"the {name}" for code, name in SIDES.items()},
}
_CODE = re.compile(rf"\b({'|'.join(_CODES)})\b")
assert set(_ORDER) == set(VERDICTS)


def show_verdicts(
    stage: Stage, claims: pd.DataFrame, registered: Path, name: str, *ids: str
) -> pd.DataFrame | None:
    """The verdicts on some claims with their reasons, saved as `verdict_<name>.csv`.

    Scale small decides nothing: there one line says so, and counts claims as claims and printed
    numbers as printed numbers; no table is saved.

    Args:
        stage: the stage that shows them.
        claims: claims.csv of stage 4.
        registered: claims.yaml, for the statements.
        name: of the table.
        ids: the claims that are shown. If none is named, all are saved and those that were
            registered are shown; of single numbers that the paper prints, if there are any, one
            line gives the counts.

    Returns:
        For display: the claim in words, the verdict, what the claim says of which quantity, what is
        found here with its interval (of several comparisons: the median and the range), and the
        reason; decided claims first.
    """
    chosen = claims.set_index("id").loc[list(ids)].reset_index() if ids else claims
    rank = chosen["verdict"].map({verdict: i for i, verdict in enumerate(_ORDER)})
    chosen = chosen.assign(rank=rank).sort_values("rank", kind="stable").drop(columns="rank")
    statements = {claim.id: _glossed(claim.statement) for claim in read_claims(registered)}
    is_number = ~chosen["id"].isin(statements)
    if stage.is_practice:
        counted = _counted(claim=(~is_number).sum(), printed_number=is_number.sum())
        print(f"{counted} judged at scale cpu; scale {stage.scale} shows the steps.")
        return None
    stage.table(f"verdict_{name}", chosen)
    if not ids and is_number.any():
        counts = chosen.loc[is_number, "verdict"].value_counts().reindex(_ORDER).dropna()
        told = ", ".join(f"{count:.0f} {verdict}" for verdict, count in counts.items())
        print(f"{_counted(printed_number=is_number.sum())} in verdict_{name}.csv: {told}")
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


def _counted(**of: int) -> str:
    """How many there are of each kind that there is, with the verb.

    >>> _counted(claim=1, printed_number=0), _counted(claim=23, printed_number=1)
    ('1 claim is', '23 claims and 1 printed number are')
    """
    kinds = {kind.replace("_", " "): n for kind, n in of.items() if n}
    parts = [f"{n} {kind}" if n == 1 else f"{n} {kind}s" for kind, n in kinds.items()]
    return f"{' and '.join(parts)} {'is' if sum(of.values()) == 1 else 'are'}"


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
    """A text with each code explained where it first stands, and methods by the names of figures.

    >>> _glossed("Higher on D_A than on D_S, and D_A has more rows.")
    'Higher on D_A (all gendered words) than on D_S (subject only), and D_A has more rows.'
    >>> _glossed("InputXGradient is the best of the methods.")
    'Input x Gradient is the best of the methods.'
    """
    for method, name in METHODS.items():
        statement = statement.replace(method, name)
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
