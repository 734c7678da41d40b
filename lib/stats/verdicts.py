"""Verdicts as a notebook shows them: decided ones first, and a single line at scale small."""

import re
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.codes import DATASETS, METHODS, SCHEMES, SIDES
from ..core.notebooks import show_table
from ..core.stage import Stage
from .claims import VERDICTS, Claim, read_claims

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
    stage: Stage,
    claims: pd.DataFrame,
    registered: Path,
    name: str,
    *ids: str,
    less_target: bool = True,
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
        less_target: whether `ours` is less the number that a claim names, as `summarise` writes it.

    Returns:
        For display: the claim in words, the verdict, what the claim says of which quantity, what is
        found here, in the same units, with its interval (of several comparisons: the median and
        the range), and the reason; decided claims first.
    """
    chosen = claims.set_index("id").loc[list(ids)].reset_index() if ids else claims
    rank = chosen["verdict"].map({verdict: i for i, verdict in enumerate(_ORDER)})
    chosen = chosen.assign(rank=rank).sort_values("rank", kind="stable").drop(columns="rank")
    by_id = {claim.id: claim for claim in read_claims(registered)}
    statements = {name: _glossed(claim.statement) for name, claim in by_id.items()}
    is_number = ~chosen["id"].isin(statements)
    if stage.is_practice:
        counted = _counted(claim=(~is_number).sum(), printed_number=is_number.sum())
        print(f"{counted} judged at scale cpu; scale {stage.scale} shows the steps.")
        return None
    stage.table(f"verdict_{name}", chosen)
    if not ids and is_number.any():
        counts = chosen.loc[is_number, "verdict"].value_counts().reindex(_ORDER).dropna()
        told = ", ".join(f"{count:.0f} {verdict}" for verdict, count in counts.items())
        print(f"{_counted(printed_number=is_number.sum())} in verdict_{name}.csv: {_plural(told)}")
        chosen = chosen[~is_number]
    shown = pd.DataFrame(
        [
            {
                "claim": statements.get(row.id, row.quantity),
                "verdict": row.verdict,
                "it says": _said(row, by_id.get(row.id)),
                "found here": _found(row, by_id.get(row.id) if less_target else None),
                "why": _plural(_ONE.sub(r"\1", row.why)).strip("; "),
            }
            for row in chosen.fillna({"why": "", "paper": ""}).itertuples()
        ]
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


def _said(row: Any, claim: Claim | None) -> str:
    """What a claim says of which quantity; of a number that the paper prints, the number."""
    if claim is None:
        return str(row.paper)
    of = _glossed(str(_WORDS.get(row.quantity, row.quantity)).replace("_", " "))
    differs = claim.right and not re.search(r"differ|minus| - |change", of)
    return f"{'difference in ' if differs else ''}{of} {row.paper}"


def _found(row: Any, claim: Claim | None) -> str:
    """What is found, in the units of the claim: three decimals, none of a count.

    Args:
        row: of claims.csv.
        claim: if its one value or median is less the number that it names, that is added again.
    """
    if pd.isna(row.ours):
        return ""
    is_less = claim is not None and row.why.startswith("of ")
    added = claim.target if claim is not None and is_less else 0.0
    numbers = [round(x + added, 3) + 0.0 for x in (row.ours, row.low, row.high)]
    is_count = numbers[0] > 1 and all(pd.isna(x) or x == round(x) for x in numbers)
    found, low, high = (f"{x:.0f}" if is_count else f"{x:.3f}" for x in numbers)
    if pd.isna(row.low):
        return found
    return f"{found} ({'range ' if _is_range(row.why) else ''}{low} to {high})"


def _plural(counts: str) -> str:
    """Counted verdicts with the verb that goes with the count.

    >>> _plural("of 12 comparisons 10 holds, 1 fails, 1 undecided")
    'of 12 comparisons 10 hold, 1 fails, 1 undecided'
    """
    return re.sub(r"\b(\d+) (hold|fail)s\b", lambda n: n[0][: -1 if n[1] != "1" else None], counts)


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
    stage: Stage,
    claims: pd.DataFrame,
    registered: Path,
    name: str,
    *ids: str,
    less_target: bool = True,
) -> None:
    """`show_verdicts`, displayed: at most twelve rows, and a line that counts the others."""
    table = show_verdicts(stage, claims, registered, name, *ids, less_target=less_target)
    if table is not None:
        show_table(table, dict(zip(table, table)))
