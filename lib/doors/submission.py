"""Explanations that are handed in for the board: numbers keyed by item, and who stands for them.

A submission is a folder: `submission.yaml` (author, method, settings, code, tuned) and
`explanations.parquet` (item_id, scores). Its items are those of the assay; a text is in neither.

>>> alike([[1.0, 2.0, 3.0]], [[2.0, 4.0, 6.0]])
1.0
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..attribution.table import LARGEST, are_finite
from ..core.errors import TouchstoneError, did_you_mean
from ..core.files import read_handed_in, read_yaml
from ..metrics.agreement import rank_correlation

ABOUT, NUMBERS = "submission.yaml", "explanations.parquet"
FIELDS = {
    "author": (str, "who stands for it"),
    "method": (str, "what it is called on the board"),
    "settings": (dict, "of the method, {} where it has none"),
    "code": (str, "a web address, or module:function of a module that you add; empty: none"),
    "tuned": (bool, "true where anything was chosen by looking at these items"),
}
SAME = 0.99  # rank correlation above which two lists of scores are one


class Submission(NamedTuple):
    """What somebody handed in.

    Attributes:
        name: of the folder.
        about: the fields of `FIELDS`.
        explanations: item_id, explainer (the method), scores (a list, a number a word).
    """

    name: str
    about: Mapping[str, Any]
    explanations: pd.DataFrame

    @property
    def runs_again(self) -> bool:
        """Whether its code can be asked about fresh items: a function, and not an address."""
        return ":" in self.about["code"] and "/" not in self.about["code"]


def read_submission(folder: Path, items: pd.DataFrame) -> Submission:
    """A submission that answers every item once, with a finite number a word.

    Args:
        folder: its folder; the folder's name is its name.
        items: item_id, sentence (a list of words).

    Raises:
        TouchstoneError: naming the file, the field or item, and what to do.
    """
    about = _about(folder / ABOUT)
    path = folder / NUMBERS
    if not path.is_file():
        raise TouchstoneError(f"{folder} has no {NUMBERS}; write item_id and scores there")
    table = read_scores(path, items)
    if left_out := [item for item in items["item_id"] if item not in set(table["item_id"])]:
        raise TouchstoneError(
            f"{path} leaves out {len(left_out)} of {len(items)} items, the first is "
            f"{left_out[0]}; answer all of them"
        )
    return Submission(folder.name, about, table.assign(explainer=about["method"]))


def read_scores(path: Path, items: pd.DataFrame) -> pd.DataFrame:
    """Scores by item from a file, each with one finite number a word; not all items need be there.

    Args:
        path: a Parquet file with item_id and scores.
        items: item_id, sentence (a list of words).

    Raises:
        TouchstoneError: naming the file, the item, and what to do.
    """
    table = read_handed_in(path)
    if missing := [name for name in ("item_id", "scores") if name not in table]:
        raise TouchstoneError(f"{path} has no column {missing[0]!r}; write item_id and scores")
    lengths = dict(zip(items["item_id"], items["sentence"].map(len), strict=True))
    table = table[["item_id", "scores"]]
    for item, scores in table.itertuples(index=False):
        if item not in lengths:
            raise TouchstoneError(
                f"{path}: there is no item {item!r}{did_you_mean(str(item), lengths)}"
            )
        if not are_finite(scores) or len(scores) != lengths[item]:
            raise TouchstoneError(
                f"{path}, item {item}: {_shown(scores)}, and {lengths[item]} words; give one "
                f"finite number a word, of a size below {LARGEST}"
            )
    if twice := table.loc[table["item_id"].duplicated(), "item_id"].tolist():
        raise TouchstoneError(f"{path}: item {twice[0]} stands there twice; keep one of the two")
    return table.reset_index(drop=True)


def alike(left: Sequence[Sequence[float]], right: Sequence[Sequence[float]]) -> float:
    """The mean rank correlation over words of pairs of score lists.

    Two constant lists are the same; where one is constant there is no agreement.
    """
    found = []
    for one, other in zip(left, right, strict=True):
        constant = np.ptp(one) == 0, np.ptp(other) == 0
        found.append(float(all(constant)) if any(constant) else rank_correlation(one, other))
    return float(np.mean(found)) if found else float("nan")


def remarks(
    submission: Submission, items: pd.DataFrame, floors: Mapping[str, pd.DataFrame]
) -> list[str]:
    """What a reader of the board must know of a submission.

    Args:
        submission: with explanations of the items, or of some.
        items: item_id, model, training, text; the same text may be asked of several trainings.
        floors: explanations of the rules that never look at a model, by name: item_id, scores.

    Returns:
        "model-blind" where the explanations do not change with the training, "same answers as ..."
        a floor, "tuned on these items", and "not blind" where no code came along that can be run
        again.
    """
    scores = submission.explanations.set_index("item_id")["scores"]
    told = ["tuned on these items"] if submission.about["tuned"] else []
    pairs = _two_trainings(items[items["item_id"].isin(scores.index)])
    if pairs and alike(*([scores[item] for item in side] for side in zip(*pairs))) > SAME:
        told.append("model-blind: the explanations do not change with the model")
    for name, floor in floors.items():
        theirs = floor.set_index("item_id")["scores"]
        both = scores.index.intersection(theirs.index)
        if len(both) and alike(list(scores[both]), list(theirs[both])) > SAME:
            told.append(f"same answers as {name}")
    if not submission.about["code"]:
        told.append("not blind: a file on public items, no code")
    elif not submission.runs_again:
        told.append("not blind: a file on public items, and code that the board does not run")
    return told


def _two_trainings(items: pd.DataFrame) -> list[tuple[str, str]]:
    """Pairs of items that ask two trainings of a model about one text."""
    groups = items.drop_duplicates(["model", "training", "text"]).groupby(["model", "text"])
    lists = [part.sort_values("training")["item_id"].tolist() for _, part in groups]
    return [(of_text[0], of_text[1]) for of_text in lists if len(of_text) > 1]


def _about(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise TouchstoneError(f"there is no {path}; write {', '.join(FIELDS)} there")
    about = read_yaml(path, dict)
    if unknown := [name for name in about if name not in FIELDS]:
        raise TouchstoneError(
            f"{path}: {unknown[0]!r} is no field{did_you_mean(str(unknown[0]), FIELDS)}"
        )
    for name, (kind, meaning) in FIELDS.items():
        if name not in about:
            raise TouchstoneError(f"{path} does not say {name}: {meaning}")
        if not isinstance(about[name], kind):
            raise TouchstoneError(f"{path}: {name} is {about[name]!r}; write {meaning}")
        if name in ("author", "method") and not about[name].strip():
            raise TouchstoneError(f"{path}: {name} is empty; write {meaning}")
    return about


def _shown(scores: Any) -> str:
    return f"{len(scores)} scores" if hasattr(scores, "__len__") else repr(scores)
