"""What the paper prints, beside what a run has in the same place."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from .lines import nearest_baseline, random_baseline

Place = tuple[str, ...]  # what a printed number is of:
_PLACE = ("quantity", "dataset", "scheme", "method", "scenario")
_SIZES = {"full": "", "student": "_student"}
_SIDES = {"verum": "exp", "malum": "alt"}
_AS_PRINTED = ("Syneval", "PTB", "CoNLL")  # sets that are the paper's, line by line
_ROUNDING = 0.0005  # of three printed digits


def ours_in_place(
    plausibility: pd.DataFrame,
    consistencies: Mapping[str, pd.DataFrame],
    sets: Mapping[str, pd.DataFrame],
) -> tuple[dict[Place, float], dict[str, float]]:
    """This run's values by the places of the paper's tables.

    Args:
        plausibility: dataset, scheme, size, method, estimate, exp, alt, share_exp.
        consistencies: by quantity: dataset, scheme, size, method, side, estimate.
        sets: the lines of each set.

    Returns:
        The values, and by set what one draw of random scores may differ from its expectation.
    """
    mine: dict[Place, float] = {}
    for row in plausibility[plausibility["size"].isin(_SIZES)].itertuples():
        name = f"plausibility{_SIZES[row.size]}"
        for scenario, value in (("all", row.estimate), ("exp", row.exp), ("alt", row.alt)):
            mine[name, row.dataset, row.scheme, row.method, scenario] = value
        if row.size == "full" and row.method == "V":
            shares = {"exp": row.share_exp, "alt": 1 - row.share_exp}
            for scenario, value in shares.items():
                mine["scenario_share", row.dataset, row.scheme, "", scenario] = value
    for quantity, frame in consistencies.items():
        for row in frame[frame["size"].isin(_SIZES)].itertuples():
            place = row.dataset, row.scheme, row.method, _SIDES[row.side]
            mine[f"{quantity}{_SIZES[row.size]}", *place] = row.estimate
    allowed = {}
    # Where EWT is, Winobias is the published set as well.
    for name in {*_AS_PRINTED, *({"Winobias"} if "EWT" in sets else ())} & set(sets):
        mine |= _of_set(name, sets[name])
        chance = random_baseline(sets[name])
        allowed[name] = 1.96 * np.sqrt((chance * (1 - chance)).sum()) / len(chance)
    return mine, allowed


def _of_set(name: str, lines: pd.DataFrame) -> dict[Place, float]:
    """Counts of a set, and what the two rules pass."""
    n_templates = (lines["pattern"].value_counts() > 1).sum()
    found: dict[Place, float] = {
        ("n_lines", name, "-", "", ""): len(lines),
        ("n_templates", name, "-", "", ""): n_templates,
    }
    rules = {"Random": random_baseline(lines), "Nearest": nearest_baseline(lines, "listed")}
    for rule, passes in rules.items():
        found["plausibility", name, "-", rule, "exp"] = passes.mean()
        found["plausibility", name, "-", rule, "alt"] = 1 - passes.mean()
    return found


def judge_printed(
    numbers: pd.DataFrame,
    mine: Mapping[Place, float],
    allowed: Mapping[str, float],
    scale: str,
) -> Iterator[dict[str, Any]]:
    """A row of claims.csv for each printed number; only counts and rules are judged.

    A count, or a rule's share, holds where it is the printed number after rounding. The paper's
    *Random* is one draw and ours its expectation, so it holds where that draw is within 1.96
    standard errors.
    """
    numbers = numbers.astype(object).fillna("").rename(columns={"class": "scenario"})
    for number in numbers.itertuples():
        place = tuple(getattr(number, name) for name in _PLACE)
        ours = mine.get(place, np.nan)
        is_judged = number.scheme == "-" and not np.isnan(ours)
        is_draw = number.method == "Random"
        margin = allowed.get(number.dataset, _ROUNDING) if is_draw else _ROUNDING
        is_equal = abs(ours - number.value) <= margin
        other = "" if is_judged else "the number belongs to another model or set"
        yield {
            "source": number.source,
            "quantity": " ".join(str(part) for part in place if part),
            "paper": number.value,
            "ours": ours,
            "low": np.nan,
            "high": np.nan,
            "n": 0,
            "scale": scale,
            "verdict": ("holds" if is_equal else "fails") if is_judged else "not run",
            "why": "; ".join(filter(None, (other, number.note))),
            "id": number.id,
        }


def integrity(numbers: pd.DataFrame) -> pd.DataFrame:
    """Whether each printed *all* is the mean of its parts, weighted by how often each occurs.

    `all` should be share_exp * exp + share_alt * alt. Three printed digits allow for half a unit of
    the third in `all`, as much in its parts, and in a share times the difference of the parts
    (`allowed`).
    """
    of_cell, of_model = ["source", "dataset", "scheme", "method"], ["dataset", "scheme"]
    cells, shares = (
        numbers[numbers["quantity"] == quantity].pivot_table(
            index=keys, columns="class", values="value"
        )
        for quantity, keys in (("plausibility", of_cell), ("scenario_share", of_model))
    )
    table = cells.dropna().reset_index()
    table = table.merge(shares.add_prefix("share_").reset_index(), on=of_model)
    parts = (table[f"share_{side}"] * table[side] for side in ("exp", "alt"))
    table["from_parts"] = sum(parts)
    spread = (table["exp"] - table["alt"]).abs()
    table["allowed"] = 2 * _ROUNDING + _ROUNDING * spread
    table["adds_up"] = (table["all"] - table["from_parts"]).abs() <= table["allowed"]
    return table
