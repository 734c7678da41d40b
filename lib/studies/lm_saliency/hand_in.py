"""What `touchstone score --study lm_saliency` knows: agreement lines with cues and attractors.

A row is a line asked about its expected class: row_id is the line's number from 0, `target` its
tag, the words are the prefix. A folder with tarsius' output files is read as well.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ...attribution.table import NO_MODEL
from ...core.errors import TouchstoneError
from ...doors.score import BY, HandIn, read_explanations
from ...metrics.plausibility import is_plausible, plausibility
from .lines import load_sets, nearest_baseline, random_baseline, read_agreement
from .released import read_outputs

_GENDER_SETS = "winobias|gender|ontogum|conll"  # all others are about number


def read_items(folder: Path) -> pd.DataFrame:
    """The lines of stage 01 (all sets), or of one folder in tarsius' three-file format."""
    kept = folder / "sets.parquet"
    sets = load_sets(kept) if kept.is_file() else {folder.name: read_agreement(folder)}
    return pd.concat(
        [
            lines.assign(dataset=name, row_id=[str(i) for i in lines.index])
            for name, lines in sets.items()
        ],
        ignore_index=True,
    ).assign(
        sentence_idx=lambda t: t.index, target=lambda t: t["tag"], sentence=lambda t: t["prefix"]
    )


def _score(path: Path, items: pd.DataFrame) -> pd.DataFrame:
    """Whether each line passes the expected test; of tarsius' files, the test of its scenario."""
    if path.is_dir():
        if items["dataset"].nunique() > 1:
            raise TouchstoneError(
                f"{path} does not say which set it explains; name the set's folder (--data)"
            )
        of_set = {"files": items}
        scored = plausibility(read_outputs(path, items), of_set)
        passed = scored.assign(scheme="own", method=path.name, dataset=items["dataset"].iloc[0])
        lines = items
    else:
        explanations = read_explanations(path, items)
        lines = _lines_of(explanations, items)
        passed = explanations[[*BY, "seed"]].assign(
            cluster=lines["cluster"].to_numpy(),
            passed=[
                is_plausible(scores, scores, line.cues, line.attractors, is_expected=True)
                for scores, line in zip(explanations["scores"], lines.itertuples(), strict=True)
            ],
        )
        lines = lines[~lines.index.duplicated()]
    floors = {"Random": random_baseline(lines), "Nearest": nearest_baseline(lines)}
    rules = [
        lines[["dataset", "cluster"]].assign(method=name, scheme=NO_MODEL, passed=np.array(values))
        for name, values in floors.items()
    ]
    table = pd.concat([passed, *rules], ignore_index=True)
    return table.assign(sentence_idx=table["cluster"], seed=0, passed=table["passed"].astype(float))


def _lines_of(explanations: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """The line of each explanation."""
    known = pd.MultiIndex.from_frame(items[["dataset", "row_id"]])
    return items.iloc[
        known.get_indexer(pd.MultiIndex.from_frame(explanations[["dataset", "row_id"]]))
    ]


def _ask(items: pd.DataFrame) -> pd.DataFrame:
    question = (
        "This text goes on with a word of the {} form. Which of its words make that form the right "
        "one?"
    )
    forms = np.where(
        items["dataset"].str.contains(_GENDER_SETS, case=False),
        np.where(items["tag"] == 1, "female", "male"),
        np.where(items["tag"] == 1, "plural", "singular"),
    )
    return items.assign(question=[question.format(form) for form in forms])


HAND_IN = HandIn(
    read_items,
    _score,
    ("passed",),
    "Every line is held to the expected test (a cue above all attractors); which lines the model "
    "answers otherwise only the model tells: tarsius' out.pos.idx, or stages 02 to 04.",
    _ask,
)
