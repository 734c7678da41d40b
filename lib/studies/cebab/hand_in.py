"""What `touchstone score --study cebab` knows: edit pairs, and how readers rated both texts.

The file is the one that `estimate_files` of stage 03 takes (`read_estimates`): e_1 ... e_K for
every test pair.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ...attribution.table import NO_MODEL
from ...core.arrays import real_numbers
from ...core.errors import TouchstoneError
from ...core.files import load_parquet
from ...doors.score import HandIn
from ...metrics.concept_effects import in_stars, score_estimates
from .own_explainer import ABOUT, read_estimates
from .pairs import edit_pairs
from .reading import check_answers, class_columns, read_outside, read_rows
from .reviews import CEBAB_SHA256, read_cebab

_VALUES = {"Negative": -1, "unknown": 0, "Positive": 1}


def read_items(folder: Path) -> pd.DataFrame:
    """The test pairs of stage 01, or of the published files, with the stars of both texts."""
    if (folder / "pairs.parquet").is_file():
        texts = load_parquet(folder / "texts.parquet")
        pairs = load_parquet(folder / "pairs.parquet").query("split == 'test'")
    elif all((folder / name).is_file() for name in CEBAB_SHA256):
        texts = read_cebab(folder).query("split == 'test'").assign(dataset="cebab")
        pairs = edit_pairs(texts).assign(dataset="cebab")
    else:
        raise TouchstoneError(
            f"{folder} holds neither pairs.parquet nor the published files; run "
            "`touchstone run cebab --stage 01`, or name the folder of `touchstone data cebab`"
        )
    stars = texts.set_index(["dataset", "text_id"])["rating"]
    sides = [
        stars.loc[pd.MultiIndex.from_frame(pairs[["dataset", f"{side}_id"]])].to_numpy()
        for side in ("base", "counterfactual")
    ]
    return pairs.assign(base_stars=sides[0], counterfactual_stars=sides[1])


def _score(path: Path, items: pd.DataFrame, predictions: Path | None = None) -> pd.DataFrame:
    """The distances to a model's effects, if its answers are there; else beside the readers'."""
    table = read_rows(path, "base_id")
    columns = class_columns(table, str(path), "e_", "the estimated change of each class")
    known = table if "dataset" not in table else table[table["dataset"].isin(items["dataset"])]
    names = [name for name in ("model", "seed") if name in known]
    models = known[names].drop_duplicates() if names else pd.DataFrame(index=[0])
    models = pd.DataFrame({"model": "own", "seed": 0}, models.index).assign(**models)
    models["seed"] = real_numbers(models["seed"].to_numpy(), f"{path}: seed").astype(int)
    asked = items.merge(models, how="cross")
    estimates = read_estimates(path, asked, len(columns))
    if predictions is None:
        return _beside_readers(estimates, columns, asked)
    answers = read_outside(predictions)
    told = answers.drop(columns=[c for c in ("dataset", "model", "seed") if c in answers])
    runs = estimates[["dataset", "model", "seed"]].drop_duplicates()
    if len(runs) > 1:
        raise TouchstoneError(
            f"{path} explains {len(runs)} models, and {predictions} has the answers of one; score "
            "them one by one"
        )
    zero = estimates.assign(explainer="Zero", **dict.fromkeys(columns, 0.0))
    zero = zero.drop_duplicates(ABOUT)
    both = pd.concat([estimates, zero], ignore_index=True)
    asked_ids = sorted(set(both["base_id"]) | set(both["counterfactual_id"]))
    given = check_answers(answers, asked_ids)
    if len(given) != len(columns):
        raise TouchstoneError(
            f"{predictions} has {len(given)} classes and {path} has {len(columns)}; write a column "
            "p_k for each e_k"
        )
    scored = score_estimates(both, told.merge(runs, how="cross"))
    return scored.rename(columns={"explainer": "method", "model": "scheme"})


def _beside_readers(
    estimates: pd.DataFrame, columns: list[str], asked: pd.DataFrame
) -> pd.DataFrame:
    """Whether an estimate has the direction in which the readers' stars changed."""
    key = ["dataset", *ABOUT]
    stars = asked.drop_duplicates(key)[[*key, "base_stars", "counterfactual_stars"]]
    table = estimates.merge(stars, on=key)
    change = np.sign(table["counterfactual_stars"] - table["base_stars"])
    # No majority of the readers, or no change: then nothing is right or wrong.
    told = (table["base_stars"] > 0) & (table["counterfactual_stars"] > 0) & (change != 0)
    goal = np.sign(table["new"].map(_VALUES) - table["old"].map(_VALUES))
    estimate = np.sign(in_stars(table[columns].to_numpy(float)))
    mine = table.assign(method=table["explainer"], direction=estimate == change)
    rule = table.assign(method="Goal of the edit", model=NO_MODEL, direction=goal == change)
    both = pd.concat([mine[told], rule[told].drop_duplicates(key)], ignore_index=True)
    return both.assign(
        sentence_idx=both["group"], scheme=both["model"], direction=both["direction"].astype(float)
    )


HAND_IN = HandIn(
    read_items,
    _score,
    ("L2", "cosine", "normdiff", "direction"),
    "Without --predictions an estimate is held to the readers' stars (direction); the ICaCE-Error "
    "(L2, cosine, normdiff) needs the explained model's answers to the test texts.",
)
