"""What a language model knows of number, by construction: direct preferences, thresholds, AUC."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from ...models.language_model import Vocabulary
from ...models.probe import CausalLM, WordTable
from ...stats import estimate, estimate_auc
from .items import with_lines
from .text import task_of_set

FORMS = (("is", "was"), ("are", "were"))  # singular, plural
_AT_ONCE = 512  # states, each with a log-probability for every word
SCORES = ("preference", "probe", "matched", "untrained")  # of a line; the last three are probes'


@torch.no_grad()
def number_preference(
    lm: CausalLM, words: WordTable, states: Float[Tensor, "batch hidden"]
) -> Float[np.ndarray, "batch"]:
    """log p(are or were) - log p(is or was) after each prefix, no probe between.

    Args:
        lm: the language model.
        words: its vocabulary.
        states: its last state after each prefix, from `features`.

    Returns:
        Nats, one number a prefix; NaN for a model that does not have each form as one piece.
    """
    ids = [[_single_piece(words, form) for form in forms] for forms in FORMS]
    if any(i is None for side in ids for i in side):
        return np.full(len(states), np.nan)
    sides: list[list[Tensor]] = [[], []]
    for some in states.split(_AT_ONCE):
        log_prob = lm.log_prob(some)  # (batch, vocab)
        for found, side in zip(sides, ids, strict=True):
            found.append(log_prob[:, side].logsumexp(-1))
    singular, plural = (torch.cat(found) for found in sides)
    return (plural - singular).cpu().numpy()


def fit_threshold(scores: Sequence[float], is_plural: Sequence[int]) -> float:
    """The threshold with the highest balanced accuracy on these examples, half-way between two.

    Of equally good ones it is the one nearest to zero; NaN without both classes.

    >>> fit_threshold([-3.0, -2.0, -1.0, 0.5], [0, 0, 1, 1])
    -1.5
    """
    order = np.argsort(scores, kind="stable")
    values, tags = np.asarray(scores, float)[order], np.asarray(is_plural)[order]
    if len(np.unique(tags)) < 2 or not np.isfinite(values).all():
        return float("nan")
    right_0 = np.cumsum(tags == 0) / (tags == 0).sum()  # what lies at or below is called singular
    right_1 = 1 - np.cumsum(tags == 1) / (tags == 1).sum()
    cuts = (values[:-1] + values[1:]) / 2
    is_cut = values[:-1] < values[1:]
    if not is_cut.any():
        return float("nan")
    cuts, quality = cuts[is_cut], (right_0 + right_1)[:-1][is_cut]
    best = cuts[np.isclose(quality, quality.max())]
    return float(best[np.abs(best).argmin()])


def knowledge_table(
    answers: pd.DataFrame,
    thresholds: pd.DataFrame,
    sets: Mapping[str, pd.DataFrame],
    n_bootstrap: int,
    alpha: float,
    seed: int,
) -> pd.DataFrame:
    """AUC and balanced accuracy of every score, for whole sets and by construction.

    Args:
        answers: dataset, line, architecture, size, training, and a column for each of `SCORES`.
        thresholds: task, architecture, size, training, score, threshold.
        sets: the lines, by name; those with one class only are left out.
        n_bootstrap, alpha, seed: of the intervals, over clusters and trainings.

    Returns:
        dataset, section ("all", or the pattern without its number), architecture, size, score, n,
        clusters, trainings, auc, auc_low, auc_high, balanced, balanced_low, balanced_high, right_0,
        right_1 (the share of each class that is on its side of the threshold).
    """
    by = ["task", "architecture", "size", "training", "score"]
    cut = thresholds.set_index(by)["threshold"].to_dict()
    rows = []
    for key, part in answers.groupby(["dataset", "architecture", "size"], sort=False):
        lines = sets[key[0]].loc[part["line"]]
        if lines["tag"].nunique() < 2:
            continue
        about = dict(zip(("dataset", "architecture", "size"), key, strict=True))
        table = pd.DataFrame(
            {
                "sentence_idx": pd.factorize(lines["cluster"])[0],
                "seed": part["training"].to_numpy(),
                "tag": lines["tag"].to_numpy(),
                "section": section_of(lines["pattern"]).to_numpy(),
            }
        )
        sections = {"all": table.index} | table.groupby("section", sort=False).groups
        for score, section in product(SCORES, sections if len(sections) > 2 else ["all"]):
            values = table.assign(score=part[score].to_numpy(float)).loc[sections[section]]
            at = {
                t: cut.get((task_of_set(key[0]), *key[1:], t, score), np.nan)
                for t in values["seed"].unique()
            }
            values = values.assign(cut=values["seed"].map(at)).dropna()
            if len(values):
                found = _known(values, n_bootstrap, alpha, seed)
                rows.append(about | {"section": section, "score": score} | found)
    first = ["dataset", "section", "architecture", "size", "score"]
    known = pd.DataFrame(rows)
    return known[[*first, *(name for name in known if name not in first)]]


def right_answers(
    answers: pd.DataFrame, thresholds: pd.DataFrame, sets: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Whether each score is on the right side of its threshold, line by line, for claims.

    Args:
        answers, thresholds, sets: as in `knowledge_table`.

    Returns:
        dataset, section, scheme (the architecture), size, seed (the training), score, row_id,
        sentence_idx, right: 0, or as much as makes its mean the balanced accuracy of a section.
    """
    by = ["task", "architecture", "size", "training"]
    long = answers.assign(task=answers["dataset"].map(task_of_set)).melt(
        [*by, "dataset", "line"], SCORES, "score", "value"
    )
    table = long.dropna().merge(thresholds, on=[*by, "score"])
    table = with_lines(table, sets)
    patterns = pd.concat({name: rows["pattern"] for name, rows in sets.items()})
    places = pd.MultiIndex.from_frame(table[["dataset", "line"]])
    table["section"] = section_of(patterns.reindex(places)).to_numpy()
    cells = ["dataset", "section", "architecture", "size", "training", "score"]
    n_all, n_class = (
        table.groupby(names)["line"].transform("size") for names in (cells, [*cells, "tag"])
    )
    is_right = (table["value"] > table["threshold"]) == (table["tag"] == 1)
    return table.assign(
        right=is_right * n_all / n_class / 2,
        row_id=table["dataset"] + " " + table["line"].astype(str),
        sentence_idx=pd.factorize(table["dataset"] + " " + table["cluster"])[0],
        scheme=table["architecture"],
        seed=table["training"],
    )[["dataset", "section", "scheme", "size", "seed", "score", "row_id", "sentence_idx", "right"]]


def section_of(patterns: pd.Series) -> pd.Series:
    """The construction of each line: its pattern without the number of its cue.

    >>> section_of(pd.Series(["prep_anim_singular", "prep_anim_plural", "EWT"])).tolist()
    ['prep_anim', 'prep_anim', 'EWT']
    """
    return patterns.str.replace(r"_(singular|plural)$", "", regex=True)


def _known(table: pd.DataFrame, n_bootstrap: int, alpha: float, seed: int) -> dict[str, float]:
    how: dict[str, Any] = {"n_bootstrap": n_bootstrap, "alpha": alpha, "seed": seed}
    area = estimate_auc(table, "score", "tag", **how)
    is_right = (table["score"] > table["cut"]) == (table["tag"] == 1)
    of_class = [is_right[table["tag"] == tag] for tag in (0, 1)]
    # Each class counts for one half.
    weight = table["tag"].map({t: len(table) / max(1, len(r)) / 2 for t, r in enumerate(of_class)})
    right = estimate(table.assign(right=is_right * weight), "right", **how)
    return {
        "n": len(table),
        "clusters": area.n_sentences,
        "trainings": table["seed"].nunique(),
        "auc": area.estimate,
        "auc_low": area.low,
        "auc_high": area.high,
        "balanced": right.estimate,
        "balanced_low": right.low,
        "balanced_high": right.high,
        "right_0": of_class[0].mean(),
        "right_1": of_class[1].mean(),
    }


def _single_piece(words: WordTable, form: str) -> int | None:
    """The id of a word as it follows another one; None where it is unknown or has several."""
    if isinstance(words, Vocabulary):
        return words.ids.get(form)
    before, both = (words.encode(text) for text in (["the"], ["the", form]))
    return both[-1] if len(both) == len(before) + 1 else None
