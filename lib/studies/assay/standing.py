"""Where everybody stands under each truth: the cells of the assay, with intervals."""

from collections.abc import Collection

import pandas as pd

from ...core.codes import METHODS
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
        By truth: explainer (all who have this score, by name), raw.

    >>> rows = [("swap", "LIME", 0.501), ("swap", "IG", 0.499), ("edit", "LIME", 0.5)]
    >>> some = pd.DataFrame(rows, columns=["truth", "explainer", "raw"])
    >>> leaders(some.assign(by_identity=False))["explainer"].to_dict()
    {'edit': 'LIME', 'swap': 'IG, LIME'}
    """
    ranked = cells[~cells["by_identity"].astype(bool)].dropna(subset="raw").sort_values("explainer")
    best = {}
    for truth, part in ranked.groupby("truth"):
        top = part[part["raw"].round(2) == part["raw"].round(2).max()]
        best[truth] = {"explainer": ", ".join(top["explainer"]), "raw": top["raw"].max()}
    return pd.DataFrame.from_dict(best, orient="index")


def best_rules(cells: pd.DataFrame) -> pd.Series:
    """The score of the best rule that never looks at the model, by truth.

    It is known after the run only; the floor is the score of the rule that was chosen beforehand.
    """
    return cells[cells["role"] == "floor"].groupby("truth")["raw"].max()


def over_rules(scores: pd.DataFrame, n_bootstrap: int, alpha: float, seed: int) -> pd.DataFrame:
    """How far each explainer is above each rule that never looks at the model, item by item.

    Args:
        scores: of `synthesis.on_one_scale`.

    Returns:
        truth, explainer, against (the rule), difference (of the primary scores, the mean over
        items), low, high (an interval over clusters and trainings), is_clear: the whole interval
        lies above 0. One without width (a few texts that all say the same) shows nothing.
    """
    columns = ["truth", "row_id", "sentence_idx", "seed", "explainer", "raw"]
    table = as_rows(scores)
    rules = table.loc[table["role"] == "floor", columns]
    rules = rules.rename(columns={"explainer": "against", "raw": "of_rule"})
    pairs = table.loc[table["role"] == "explainer", columns].merge(rules, on=columns[:4])
    pairs["difference"] = pairs["raw"] - pairs["of_rule"]
    keys = ["truth", "explainer", "against"]
    found = estimates(pairs, keys, "difference", "mean", n_bootstrap, alpha, seed)
    found = found.rename(columns={"estimate": "difference"})[[*keys, "difference", "low", "high"]]
    return found.assign(is_clear=(found["low"] > 0) & (found["high"] > found["low"]))


def with_leads(cells: pd.DataFrame, over: pd.DataFrame) -> pd.DataFrame:
    """Cells that say whom an explainer is clearly better than; none is whose cell is not ranked.

    Args:
        cells: of `cells`.
        over: of `over_rules`.

    Returns:
        With beats_floor (the rule that was chosen beforehand), beats_every_rule, beats_even.
    """
    keys = ["truth", "explainer"]
    found = over.merge(cells[[*keys, "rule"]], on=keys)
    asked = {
        "beats_floor": found[found["against"] == found["rule"]],
        "beats_every_rule": found,
        "beats_even": found[found["against"] == "Even"],
    }
    places = pd.MultiIndex.from_frame(cells[keys])
    ranked = (cells["role"] == "explainer") & ~cells["by_identity"].astype(bool)
    leads = {
        name: ranked & part.groupby(keys)["is_clear"].all().reindex(places, fill_value=False).array
        for name, part in asked.items()
    }
    return cells.assign(**leads)


def advise(cells: pd.DataFrame) -> pd.DataFrame:
    """What each truth says of the explainers, compared with every rule without a model.

    Args:
        cells: of `with_leads`.

    Returns:
        By truth: clearly better (than every rule), open (a higher score than the best rule's, but
        not clearly), no better (clearly above equal scores, which looks good, but a rule has as
        much). Each has a list of names in the order of `cells`.
    """
    best = best_rules(cells)
    ranked = cells[(cells["role"] == "explainer") & ~cells["by_identity"].astype(bool)]
    is_higher = ranked["raw"] > ranked["truth"].map(best)
    kinds = {
        "clearly better": ranked["beats_every_rule"],
        "open": is_higher & ~ranked["beats_every_rule"],
        "no better": ranked["beats_even"] & ~is_higher,
    }
    named = {
        kind: [
            ranked.loc[of & (ranked["truth"] == truth), "explainer"].tolist()
            for truth in best.index
        ]
        for kind, of in kinds.items()
    }
    return pd.DataFrame(named, index=best.index)


def as_text(advised: pd.DataFrame) -> pd.DataFrame:
    """The lists of `advise` as a table keeps them: names with commas, or none."""
    return advised.map(lambda names: ", ".join(names) or "none")


def with_scores(advised: pd.DataFrame, cells: pd.DataFrame, most: int = 3) -> pd.DataFrame:
    """The lists of `advise` with scores, the highest first, and how many more there are.

    Args:
        advised: of `advise`, by truth.
        cells: of `cells`.
        most: how many names are written.
    """
    scores = cells.set_index(["truth", "explainer"])["raw"]

    def told(truth: str, names: list[str]) -> str:
        if not names:
            return "none"
        mine = scores[truth][names].sort_values(ascending=False, kind="stable")
        first = [f"{METHODS.get(name, name)} {raw:.2f}" for name, raw in mine[:most].items()]
        n_more = len(mine) - len(first)
        return ", ".join(first) + (f" and {n_more} more" if n_more else "")

    columns = {
        kind: [told(str(truth), names) for truth, names in advised[kind].items()]
        for kind in advised
    }
    return pd.DataFrame(columns, index=advised.index)


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
