"""Where everybody stands under each truth: the cells of the assay, with intervals."""

from collections.abc import Collection

import pandas as pd

from ...stats import estimates
from .explainers import FLOORS
from .truths import TRUTHS

_BLIND = {*FLOORS, "Goal of the edit"}
_KEYS = ["truth", "explainer", "role"]


def role_of(name: str) -> str:
    """Who somebody is: oracle, cheater (knows a part of the yardstick), floor, explainer.

    >>> role_of("Cheater: marks"), role_of("Word counts"), role_of("LIME")
    ('cheater', 'floor', 'explainer')
    """
    if name.startswith("Cheater"):
        return "cheater"
    return "oracle" if name == "oracle" else "floor" if name in _BLIND else "explainer"


def holds_by_identity(explainer: str, truth: str, pads: Collection[str]) -> bool:
    """Whether a cell is known before the run, and therefore not ranked.

    Args:
        pads: the explainers that pad words themselves, as one of the deletions does.

    >>> holds_by_identity("Occlusion", "deletion, pad", ["Occlusion"])
    True
    """
    asks_where = truth in TRUTHS and not TRUTHS[truth].is_signed
    return (
        explainer == "oracle"
        or (explainer == "Cheater: both texts" and truth == "edit")
        or (explainer == "Cheater: marks" and asks_where)
        or (explainer in pads and truth == "deletion, pad")
    )


def leaders(cells: pd.DataFrame) -> pd.DataFrame:
    """Who has the highest score under each truth, as a reader of two decimals sees it.

    Args:
        cells: of `cells`, of one role; what holds by identity and what has no score is left out.

    Returns:
        By truth: explainer (the first by name, and how many more have this score), raw.

    >>> rows = [("swap", "LIME", 0.501), ("swap", "IG", 0.499), ("edit", "LIME", 0.5)]
    >>> some = pd.DataFrame(rows, columns=["truth", "explainer", "raw"])
    >>> leaders(some.assign(by_identity=False))["explainer"].to_dict()
    {'edit': 'LIME', 'swap': 'IG and 1 more'}
    """
    ranked = cells[~cells["by_identity"].astype(bool)].dropna(subset="raw").sort_values("explainer")
    best = {}
    for truth, part in ranked.groupby("truth"):
        top = part[part["raw"].round(2) == part["raw"].round(2).max()]
        first, n_more = top["explainer"].iloc[0], len(top) - 1
        name = f"{first} and {n_more} more" if n_more else first
        best[truth] = {"explainer": name, "raw": top["raw"].max()}
    return pd.DataFrame.from_dict(best, orient="index")


def as_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with roles, and with clusters, trainings and rows by the names of `lib.stats`."""
    return scores.assign(
        role=scores["explainer"].map(role_of),
        sentence_idx=scores["cluster"],
        seed=scores["training"],
        row_id=scores["item_id"],
    ).dropna(subset="raw")


def cells(
    scores: pd.DataFrame, pads: Collection[str], n_bootstrap: int, alpha: float, seed: int
) -> pd.DataFrame:
    """The mean of everybody under every truth, with an interval over clusters and trainings.

    Args:
        scores: of `synthesis.on_one_scale`.
        pads: the explainers that pad words themselves.

    Returns:
        truth, explainer, role, raw (the primary score) with raw_low and raw_high, value (0 for the
        truth's floor, 1 for its oracle) with low and high, rule (whose score is the floor), floor,
        n_clusters, by_identity.
    """
    table = as_rows(scores)
    names = {"estimate": "raw", "low": "raw_low", "high": "raw_high", "n_sentences": "n_clusters"}
    raw = estimates(table, _KEYS, "raw", "mean", n_bootstrap, alpha, seed).rename(columns=names)
    value = estimates(table, _KEYS, "value", "mean", n_bootstrap, alpha, seed)
    value = value.rename(columns={"estimate": "value"})[[*_KEYS, "value", "low", "high"]]
    floors = table.groupby("truth", as_index=False)[["rule", "floor"]].first()
    both = raw[[*_KEYS, "raw", "raw_low", "raw_high", "n_clusters"]].merge(value, on=_KEYS)
    identities = [holds_by_identity(row.explainer, row.truth, pads) for row in both.itertuples()]
    return both.merge(floors, on="truth", how="left").assign(by_identity=identities)
