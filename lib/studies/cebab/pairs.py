"""Edit pairs: two texts of a group that differ in an aspect, both directions (CEBaB, section 5)."""

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError
from .reviews import ASPECTS

_COLUMNS = ["group", "base_id", "counterfactual_id", "aspect", "old", "new", "kind"]


def edit_pairs(texts: pd.DataFrame) -> pd.DataFrame:
    """All ordered edit pairs of a table of texts, built by two joins.

    (edit, original) and (original, edit) for each edit, and (edit, edit') in both orders where both
    edit the same aspect. As in the released code, nothing looks at the other aspects, and "no
    majority" counts as a value.

    Returns:
        group, base_id, counterfactual_id, aspect; old, new: the validated labels of that aspect,
        not the editor's goal (a pair is dropped only where they are equal); kind ("original",
        "reverse", "edits").
    """
    values, ids, groups = (
        texts[names].to_numpy(object) for names in (list(ASPECTS), "text_id", "group")
    )
    aspects = pd.Index(ASPECTS).get_indexer(texts["edit_type"])
    rows = pd.DataFrame({"group": pd.factorize(groups)[0], "aspect": aspects})
    rows["row"] = np.arange(len(texts))
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
    base, other, aspect = (np.concatenate(part) for part in zip(*sides.values()))
    kind = np.repeat(list(sides), [len(side[0]) for side in sides.values()])
    keep = np.flatnonzero(values[base, aspect] != values[other, aspect])
    base, other, aspect = base[keep], other[keep], aspect[keep]
    names = np.array(ASPECTS, dtype=object)[aspect]
    old, new = values[base, aspect], values[other, aspect]
    columns = groups[base], ids[base], ids[other], names, old, new, kind[keep]
    return pd.DataFrame(dict(zip(_COLUMNS, columns, strict=True)))


def repeated_edits(texts: pd.DataFrame, same: str = "label") -> pd.DataFrame:
    """Pairs of edits of one original and aspect by two editors who answered the same question.

    What nobody can foresee is how these two differ.

    Args:
        texts: as of `read_cebab`.
        same: "label" (both reached one validated label, which the original does not have: an
            explainer is asked the same for both) or "goal" (both editors were given one goal, as
            CEBaB's edit_goal says; the labels that they reached may differ).

    Returns:
        group, original_id, aspect, old, new, new_second, first_id, second_id.
    """
    if same not in ("label", "goal"):
        raise TouchstoneError(f"edits are the same by 'label' or by 'goal', not by {same!r}")
    edits = texts[~texts["is_original"]]
    edits = edits.assign(new=_value_of(edits, edits["edit_type"]))
    edits["asked"] = edits["new" if same == "label" else "edit_goal"]
    edits = edits[["group", "edit_type", "asked", "text_id", "editor", "new"]]
    both = edits.merge(edits, on=["group", "edit_type", "asked"], suffixes=("", "_second"))
    both = both.rename(
        columns={"edit_type": "aspect", "text_id": "first_id", "text_id_second": "second_id"}
    )
    is_pair = (both["first_id"] < both["second_id"]) & (both["editor"] != both["editor_second"])
    originals = texts.loc[texts["is_original"], ["group", "text_id", *ASPECTS]]
    both = both[is_pair].merge(originals.rename(columns={"text_id": "original_id"}), on="group")
    both["old"] = _value_of(both, both["aspect"])
    both = both if same == "goal" else both[both["old"] != both["new"]]
    columns = ["original_id", "aspect", "old", "new", "new_second", "first_id", "second_id"]
    return both[["group", *columns]].reset_index(drop=True)


def _value_of(texts: pd.DataFrame, aspect: pd.Series) -> np.ndarray:
    """Each row's value of the aspect that is named for it."""
    columns = pd.Index(ASPECTS).get_indexer(aspect)
    return texts[list(ASPECTS)].to_numpy(object)[np.arange(len(texts)), columns]


def pairs_by_loop(texts: pd.DataFrame) -> pd.DataFrame:
    """The pairs of `edit_pairs` by a plain loop: a second implementation, to compare and time."""
    pairs = []
    for group, part in texts.groupby("group", sort=False):
        for _, base in part.iterrows():
            for _, other in part.iterrows():
                kind = _kind_of(base, other)
                aspect = base["edit_type"] if kind == "reverse" else other["edit_type"]
                if kind and base[aspect] != other[aspect]:
                    ids = base["text_id"], other["text_id"]
                    pairs.append((group, *ids, aspect, base[aspect], other[aspect], kind))
    return pd.DataFrame(pairs, columns=_COLUMNS)


def _kind_of(base: pd.Series, other: pd.Series) -> str:
    """What kind of pair two texts of a group are; "" where they are none."""
    if base["is_original"] or other["is_original"]:
        kind = "original" if base["is_original"] else "reverse"
        return "" if base["is_original"] and other["is_original"] else kind
    is_pair = base["edit_type"] == other["edit_type"] and base["text_id"] != other["text_id"]
    return "edits" if is_pair else ""
