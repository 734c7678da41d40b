"""Edit pairs: two texts of a group that differ in an aspect, both directions (CEBaB, section 5)."""

import numpy as np
import pandas as pd

from ...core.errors import check_choice
from .reviews import ASPECTS, VALUES, rating_labels


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
    rows = pd.DataFrame(
        {
            "group": pd.factorize(texts["group"])[0],
            "aspect": pd.Index(ASPECTS).get_indexer(texts["edit_type"]),
            "row": np.arange(len(texts)),
        }
    )
    is_original = texts["is_original"].to_numpy(bool)
    edits, originals = rows[~is_original], rows.loc[is_original, ["group", "row"]]
    back = edits.merge(originals, on="group", suffixes=("", "_other"))
    among = edits.merge(edits, on=["group", "aspect"], suffixes=("", "_other"))
    there = back.rename(columns={"row": "row_other", "row_other": "row"})
    kinds = {"original": there, "reverse": back, "edits": among.query("row != row_other")}
    both = pd.concat(kinds, names=["kind"]).reset_index("kind")
    base, other, aspect = (both[name].to_numpy() for name in ("row", "row_other", "aspect"))
    values, ids = (texts[names].to_numpy(object) for names in (list(ASPECTS), "text_id"))
    pairs = pd.DataFrame(
        {
            "group": texts["group"].to_numpy(object)[base],
            "base_id": ids[base],
            "counterfactual_id": ids[other],
            "aspect": np.array(ASPECTS, dtype=object)[aspect],
            "old": values[base, aspect],
            "new": values[other, aspect],
            "kind": both["kind"].to_numpy(),
        }
    )
    return pairs[pairs["old"] != pairs["new"]].reset_index(drop=True)


def rated_pairs(pairs: pd.DataFrame, texts: pd.DataFrame, n_classes: int) -> pd.DataFrame:
    """The pairs of which both texts have a class: with two classes three stars have none.

    Args:
        pairs: dataset, base_id, counterfactual_id.
        texts: dataset, text_id, rating.
        n_classes: of the task, see `rating_labels`.
    """
    rated = texts[rating_labels(texts["rating"], n_classes) >= 0]
    known = pd.MultiIndex.from_frame(rated[["dataset", "text_id"]])
    sides = [
        pd.MultiIndex.from_frame(pairs[["dataset", f"{side}_id"]]).isin(known)
        for side in ("base", "counterfactual")
    ]
    return pairs[sides[0] & sides[1]]


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
    check_choice("what makes two edits the same", same, ("label", "goal"))
    edits = texts[~texts["is_original"]].assign(new=lambda t: _value_of(t, t["edit_type"]))
    edits["asked"] = edits["new" if same == "label" else "edit_goal"]
    edits = edits[["group", "edit_type", "asked", "text_id", "editor", "new"]]
    names = {"edit_type": "aspect", "text_id": "first_id", "text_id_second": "second_id"}
    both = edits.merge(edits, on=["group", "edit_type", "asked"], suffixes=("", "_second")).rename(
        columns=names
    )
    is_pair = (both["first_id"] < both["second_id"]) & (both["editor"] != both["editor_second"])
    originals = texts.loc[texts["is_original"], ["group", "text_id", *ASPECTS]]
    both = both[is_pair].merge(originals.rename(columns={"text_id": "original_id"}), on="group")
    both["old"] = _value_of(both, both["aspect"])
    both = both if same == "goal" else both[both["old"] != both["new"]]
    return both[
        ["group", "original_id", "aspect", "old", "new", "new_second", "first_id", "second_id"]
    ].reset_index(drop=True)


def goals_reached(texts: pd.DataFrame) -> pd.DataFrame:
    """Whether each edit's validated label of the edited aspect is the goal that its editor had.

    Args:
        texts: as of `read_cebab`, with `dataset`.

    Returns:
        dataset, row_id (the text), sentence_idx (its group), seed (0: nothing is drawn), reached
        and has_majority, both 0 or 1.
    """
    edits = texts[~texts["is_original"]]
    label = _value_of(edits, edits["edit_type"])
    return pd.DataFrame(
        {
            "dataset": edits["dataset"].to_numpy(object),
            "row_id": edits["text_id"].to_numpy(object),
            "sentence_idx": edits["group"].to_numpy(object),
            "seed": 0,
            "reached": (label == edits["edit_goal"].to_numpy(object)).astype(float),
            "has_majority": pd.Series(label).isin(VALUES).astype(float),
        }
    )


def spill_over(texts: pd.DataFrame, pairs: pd.DataFrame, aspects: pd.DataFrame) -> pd.DataFrame:
    """Whether classifiers see the aspects change that nobody edited, test edit by test edit.

    Args:
        texts: as of `read_cebab`, with `dataset`.
        pairs: dataset and the columns of `edit_pairs`; those from an original to its edit count.
        aspects: dataset, seed, text_id, and the predicted values of ASPECTS.

    Returns:
        dataset, seed, row_id (edit and aspect), sentence_idx (the group), edited (the aspect that
        was; or "nothing": two editors' texts that reached one label), aspect (one that was not),
        changed and, of the edited aspect, heard: 0 or 1 (nothing was edited: no number).
    """
    there = pairs[pairs["kind"] == "original"].rename(columns={"aspect": "edited"})
    twice = [
        repeated_edits(part).assign(dataset=name, edited="nothing")
        for name, part in texts[texts["split"] == "test"].groupby("dataset", sort=False)
    ]
    again = pd.concat(twice).rename(
        columns={"first_id": "base_id", "second_id": "counterfactual_id"}
    )
    columns = ["dataset", "group", "base_id", "counterfactual_id", "edited"]
    both = pd.concat([there[columns], again[columns]], ignore_index=True)
    said = aspects.melt(["dataset", "seed", "text_id"], list(ASPECTS), "aspect", "value")
    for side in ("base", "counterfactual"):
        names = {"text_id": f"{side}_id", "value": f"{side}_value"}
        keys = [name for name in ("dataset", "seed", f"{side}_id", "aspect") if name in both]
        both = both.merge(said.rename(columns=names), on=keys)
    changed = (both["base_value"] != both["counterfactual_value"]).astype(float)
    both = both.assign(changed=changed, sentence_idx=both["group"])
    is_edited = both["aspect"] == both["edited"]
    place = ["dataset", "seed", "base_id", "counterfactual_id", "edited"]
    heard = both[is_edited].set_index(place)["changed"].rename("heard")
    others = both[~is_edited].join(heard, on=place)
    row = others["base_id"] + ">" + others["counterfactual_id"] + " " + others["aspect"]
    found = ["dataset", "seed", "row_id", "sentence_idx", "edited", "aspect", "changed", "heard"]
    return others.assign(row_id=row)[found].reset_index(drop=True)


def _value_of(texts: pd.DataFrame, aspect: pd.Series) -> np.ndarray:
    """Each row's value of the aspect that is named for it."""
    columns = pd.Index(ASPECTS).get_indexer(aspect)
    return texts[list(ASPECTS)].to_numpy(object)[np.arange(len(texts)), columns]


def pairs_by_loop(texts: pd.DataFrame) -> pd.DataFrame:
    """The pairs of `edit_pairs` by a plain loop: a second implementation, to compare and time."""
    pairs = []
    for group, part in texts.groupby("group", sort=False):
        for i, base in part.iterrows():
            for k, other in part.iterrows():
                if base["is_original"] != other["is_original"]:
                    kind = "original" if base["is_original"] else "reverse"
                elif i != k and base["edit_type"] == other["edit_type"]:
                    kind = "edits"
                else:
                    continue
                aspect = base["edit_type"] if kind == "reverse" else other["edit_type"]
                if base[aspect] != other[aspect]:
                    ids = base["text_id"], other["text_id"]
                    pairs.append((group, *ids, aspect, base[aspect], other[aspect], kind))
    columns = ["group", "base_id", "counterfactual_id", "aspect", "old", "new", "kind"]
    return pd.DataFrame(pairs, columns=columns)
