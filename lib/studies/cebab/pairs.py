"""Edit pairs: two texts of one group that differ in one aspect, in both directions (CEBaB, section 5)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.core.errors import TouchstoneError
from lib.studies.cebab.reviews import ASPECTS

PAIR = ["group", "base_id", "counterfactual_id", "aspect", "old", "new", "kind"]


def edit_pairs(texts: pd.DataFrame) -> pd.DataFrame:
    """All ordered edit pairs of a table of texts, built by two joins.

    (edit, original) and (original, edit) for each edit, and (edit, edit') in both orders where both edit the same aspect.
    `old`, `new`: the validated labels of that aspect, not the editor's goal; a pair is dropped only where they are equal.
    As in the released code, nothing looks at the other aspects, and "no majority" counts as a value.
    Columns: group, base_id, counterfactual_id, aspect, old, new, kind ("original", "reverse", "edits").
    """
    values, ids, groups = (
        texts[names].to_numpy(object) for names in (list(ASPECTS), "text_id", "group")
    )
    rows = pd.DataFrame(
        {
            "group": pd.factorize(groups)[0],
            "row": np.arange(len(texts)),
            "aspect": pd.Index(ASPECTS).get_indexer(texts["edit_type"]),
        }
    )
    is_original = texts["is_original"].to_numpy(bool)
    edits, originals = rows[~is_original], rows.loc[is_original, ["group", "row"]]
    star = edits.merge(originals, on="group", suffixes=("", "_other"))
    among = edits.merge(edits, on=["group", "aspect"], suffixes=("", "_other"))
    among = among[among["row"].to_numpy() != among["row_other"].to_numpy()]
    sides = {
        "original": (star["row_other"], star["row"], star["aspect"]),
        "reverse": (star["row"], star["row_other"], star["aspect"]),
        "edits": (among["row"], among["row_other"], among["aspect"]),
    }
    base, other, aspect = (np.concatenate([side[i] for side in sides.values()]) for i in range(3))
    kind = np.repeat(list(sides), [len(side[0]) for side in sides.values()])
    keep = np.flatnonzero(values[base, aspect] != values[other, aspect])
    base, other, aspect = base[keep], other[keep], aspect[keep]
    return pd.DataFrame(
        {
            "group": groups[base],
            "base_id": ids[base],
            "counterfactual_id": ids[other],
            "aspect": np.array(ASPECTS, dtype=object)[aspect],
            "old": values[base, aspect],
            "new": values[other, aspect],
            "kind": kind[keep],
        },
        columns=PAIR,
    )


def repeated_edits(texts: pd.DataFrame, same: str = "label") -> pd.DataFrame:
    """Pairs of edits of one original and aspect by two editors who answered the same question: what nobody can foresee.

    `same`: "label" (both reached one validated label, which the original does not have: an explainer is asked the same
    for both) or "goal" (both editors were given one goal, as CEBaB's edit_goal says; the labels that they reached may differ).
    Columns: group, original_id, aspect, old, new, new_second, first_id, second_id.
    """
    if same not in ("label", "goal"):
        raise TouchstoneError(f"edits are the same by 'label' or by 'goal', not by {same!r}")
    edits = texts[~texts["is_original"]]
    edits = edits.assign(new=_value_of(edits, edits["edit_type"]))
    key = ["group", "edit_type", "new" if same == "label" else "edit_goal"]
    both = edits[["text_id", "editor", "new", *key[:2], *key[2:][: same == "goal"]]]
    both = both.merge(both, on=key, suffixes=("", "_second")).rename(
        columns={"edit_type": "aspect", "text_id": "first_id", "text_id_second": "second_id"}
    )
    both = both[
        (both["first_id"] < both["second_id"]) & (both["editor"] != both["editor_second"])
    ].assign(new_second=lambda t: t["new" if same == "label" else "new_second"])
    originals = texts.loc[texts["is_original"], ["group", "text_id", *ASPECTS]].rename(
        columns={"text_id": "original_id"}
    )
    both = both.merge(originals, on="group")
    both["old"] = _value_of(both, both["aspect"])
    both = both if same == "goal" else both[both["old"] != both["new"]]
    return both[
        ["group", "original_id", "aspect", "old", "new", "new_second", "first_id", "second_id"]
    ].reset_index(drop=True)


def _value_of(texts: pd.DataFrame, aspect: pd.Series) -> np.ndarray:
    """Each row's value of the aspect that is named for it."""
    return texts[list(ASPECTS)].to_numpy(object)[
        np.arange(len(texts)), pd.Index(ASPECTS).get_indexer(aspect)
    ]


def pairs_by_loop(texts: pd.DataFrame) -> pd.DataFrame:
    """The same pairs by a plain pandas loop over groups: a second implementation, to compare and to time against."""
    found = []
    for group, part in texts.groupby("group", sort=False):
        for _, base in part.iterrows():
            for _, other in part.iterrows():
                if base["text_id"] == other["text_id"] or (
                    base["is_original"] and other["is_original"]
                ):
                    continue
                if base["is_original"] or other["is_original"]:
                    kind = "original" if base["is_original"] else "reverse"
                    aspect = other["edit_type"] if base["is_original"] else base["edit_type"]
                elif base["edit_type"] == other["edit_type"]:
                    kind, aspect = "edits", base["edit_type"]
                else:
                    continue
                if base[aspect] != other[aspect]:
                    found.append(
                        (
                            group,
                            base["text_id"],
                            other["text_id"],
                            aspect,
                            base[aspect],
                            other[aspect],
                            kind,
                        )
                    )
    return pd.DataFrame(found, columns=PAIR)
