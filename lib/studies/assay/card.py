"""The report card of one explainer, from a run of the assay in which it was asked with the others.

The run has a scale of its own, `card`: its items and models are made once, and each further card
asks and scores anew. The form of a card is that of `lib.doors.card`.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ... import __version__
from ...core.errors import TouchstoneError
from ...core.files import load_parquet, read_table
from ...core.paths import outputs_root
from ...core.runner import plan_jobs, run_jobs
from ...core.stage import hold
from ...doors.card import SCHEMA
from ...metrics.agreement import rank_correlation
from ...models.text_model import TextModel
from .explainers import FLOORS, ask
from .models import read_model
from .truths import score_items, score_on_other, telling_items

ASKS = {
    "mask": "Do the words that were altered come before the others?",
    "swap": "Does it order words as exact Shapley values of grammatical swaps do?",
    "planted": "Do the words that decide by construction get their shares?",
    "cue": "Is the noun that decides above one that stands nearer?",
    "edit": "Do the words that a person removed add up to what removing them did?",
    "noun": "Does it order words by what exchanging each for others of its kind does?",
    "deletion, pad": "Does the answer fall fast when words are padded in its order?",
    "deletion, mask": "Does the answer fall fast when words are masked in its order?",
    "deletion, swap": "Does it fall fast when words of the other form replace them in its order?",
}
CANNOT_SEE = {
    "mask": "It cannot see whether the model uses the altered words: marking them is enough.",
    "swap": "It cannot see words that both forms share, nor by how much one word counts more than "
    "another: only the order is compared.",
    "planted": "It cannot see how ordinary words are explained: the planted ones do not fit their "
    "sentence, and they alone decide.",
    "cue": "It cannot see any word but these nouns, nor whether a score speaks for the answer or "
    "against it.",
    "edit": "It cannot see which of the removed words mattered: only the sum of their scores is "
    "compared.",
    "noun": "It cannot see what words do together: each is exchanged alone, and words with too few "
    "others of their kind are left out.",
    "deletion, pad": "It cannot see the sizes of scores, only their order; and a model has rarely "
    "learnt from texts with padding between the words.",
    "deletion, mask": "It cannot see the sizes of scores, only their order; and a model has rarely "
    "learnt from texts with so many masks.",
    "deletion, swap": "It cannot see words that both forms share, nor the sizes of scores: only "
    "the order is compared.",
}
SCALE = "card"  # the folder of the run
LONGEST = 24  # words of an explained text, where the texts are somebody's own
_NEEDED = "04_metrics"  # the last stage; the figures of stage 05 are not
ABOUT_MODEL = ("swap", "edit", "noun")  # truths that differ between two trainings
_SHOWN = "mask"  # the truth whose sentences are shown
MODEL_OF_TEXTS = "gender"  # the model of *mask*, *swap* and the deletions
_ROUNDING = 1e-9  # by which two scores are one
TOO_NEAR = "floor and best possible score are too near"  # why there is a score and no value


def run_with(
    explainer: str, settings: Mapping[str, Any], texts: Path | None = None, last: str = _NEEDED
) -> Path:
    """Run the assay's notebooks with one more explainer; returns the run's folder.

    A rule of `FLOORS` is asked in every run, and is no more.
    Items and models of an earlier card are used again. Progress is printed, as by `touchstone run`.

    Args:
        texts: a folder that `touchstone dataset` made, in place of our gendered sentences. Such a
            run has a folder of its own.
        last: the last stage that runs.

    Raises:
        TouchstoneError: there is no such explainer, or a stage failed.
    """
    defaults = {job.stage: job.all for job in plan_jobs("assay", "small")}
    explainers = defaults["03_attribution"]["explainers"]
    families = defaults["04_metrics"]["families"]
    if explainer not in FLOORS:
        explainers = explainers | {explainer: dict(settings)}
        families = {explainer: "yours"} | families
    given: dict[str, Any] = {"scale": SCALE, "explainers": explainers, "families": families}
    if texts is not None:
        of_texts = {"geco": texts.resolve().as_posix()}
        scale = f"{SCALE}-{texts.resolve().name}"
        given |= {"scale": scale, "texts_of": of_texts, "longest": LONGEST}
    folder = outputs_root() / "assay" / given["scale"]
    jobs = [
        replace(job, folder=folder / job.stage)
        for job in plan_jobs("assay", "small", parameters=given)
        if job.stage <= last
    ]
    with hold(folder, seconds=0):
        run_jobs(jobs)
    return folder


def run_small(stages: Sequence[str] = ()) -> Path:
    """Run the assay's notebooks at scale small as they are; returns the run's folder.

    Args:
        stages: those that are needed; by default all but the figures.
    """
    jobs = plan_jobs("assay", "small")
    folder = jobs[0].folder.parent
    with hold(folder, seconds=0):
        run_jobs(jobs, list(stages) or [job.stage for job in jobs if job.stage <= _NEEDED])
    return folder


def read_run(folder: Path, explainer: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The card of an explainer, from the finished stages 02 to 04 of a run.

    Args:
        folder: of the run, with a folder for each stage.
        explainer: as it was asked; one whose numbers are those of another gets the other's cells.
        settings: with which it was asked.

    Raises:
        TouchstoneError: the run did not ask it.
    """
    tables = {
        name: read_table(folder / "04_metrics" / f"{name}.csv")
        for name in ("cells", "gate", "budgets")
    }
    answered = folder / "03_attribution"
    told = {name: read_table(answered / f"{name}.csv") for name in ("copies", "refused")}
    truths = load_parquet(folder / "02_training" / "truths.parquet")
    answers = load_parquet(answered / "explanations.parquet")
    copies = dict(told["copies"].itertuples(index=False, name=None))
    asked = copies.get(explainer, explainer)
    why = told["refused"].query("explainer == @explainer").set_index("model")["why"].to_dict()
    if not why and asked not in set(answers["explainer"]):
        raise TouchstoneError(f"the run in {folder} did not ask {explainer!r}; make the card again")
    mine = answers[answers["explainer"] == asked].reset_index(drop=True)
    model_of = truths.groupby("truth")["model"].agg(lambda part: sorted(set(part))[0]).to_dict()
    reasons = {truth: why.get(model_of.get(truth, MODEL_OF_TEXTS)) for truth in ASKS}
    rows = [row_of(tables["cells"], truth, asked, reasons[truth]) for truth in ASKS]
    gate = tables["gate"].query("explainer == @asked")
    scored = scored_of(truths, mine)
    draws, seconds = None, None
    if MODEL_OF_TEXTS not in why:
        stem = folder / "02_training" / "models" / f"{MODEL_OF_TEXTS}-0"
        model = read_model(stem.with_suffix(".json"), stem.with_suffix(".safetensors"))
        shown = truths.query("truth == @_SHOWN and training == 0")
        draws, seconds = asked_twice(model, shown, explainer, settings)
    found = {
        "schema": SCHEMA,
        "touchstone": __version__,
        "explainer": explainer,
        "settings": dict(settings),
        "scale": "small",
        "decides": False,
        "truths": rows,
        "gate": None
        if gate.empty
        else {
            "likeness": float(gate["likeness"].iloc[0]),
            "passes": bool(gate["passes"].iloc[0]),
        },
        "other_model": own_and_other(truths, mine, rows),
        "single": {"draws": draws, "trainings": between_trainings(mine)},
        "cost": {"seconds": seconds, "quality": _quality(tables["budgets"], asked)},
        "sentences": sentences_of(truths, mine, scored, _SHOWN),
    }
    return found | {"summary": summary(found, copies.get(explainer))}


def summary(card: Mapping[str, Any], same_as: str | None = None) -> str:
    """What a card says in a few sentences.

    >>> row = {"truth": "mask", "low": 0.2, "high": 0.8, "by_identity": False, "stronger": None}
    >>> summary({"truths": [row], "gate": None, "decides": True})
    'Above the rule that was chosen beforehand and never looks at the model: mask.'
    """
    ranked = [row for row in card["truths"] if not row["by_identity"] and row["low"] is not None]
    above = [row["truth"] for row in ranked if row["low"] > 0]
    below = [row["truth"] for row in ranked if row["high"] < 0]
    open_ = [row["truth"] for row in ranked if row["low"] <= 0 <= row["high"]]
    said = [f"Its numbers are those of {same_as}."] if same_as else []
    rule = "the rule that was chosen beforehand and never looks at the model"
    for names, start in ((above, "Above"), (below, "Below"), (open_, "Not told apart from")):
        said += [f"{start} {rule}: {'; '.join(names)}."] if names else []
        rule = "that rule" if names else rule
    if others := [
        f"{row['truth']} ({row['stronger']}, {row['stronger_raw']:.2f})"
        for row in ranked
        if row["truth"] in above and row["stronger"] and row["low"] <= row["stronger_value"]
    ]:
        said.append(f"Not clearly above a stronger rule of that kind: {'; '.join(others)}.")
    if card["gate"] is not None and not card["gate"]["passes"]:
        said.append("It hardly changes when all weights of the model are drawn anew.")
    if not card["decides"]:
        said.append("A few texts a truth decide nothing: this shows how the card is read.")
    return " ".join(said)


def row_of(
    cells: pd.DataFrame, truth: str, explainer: str, why: str | None = None
) -> dict[str, Any]:
    """A truth's line on a card: the explainer's cell, the floor, and the best other explainer.

    Args:
        cells: of `standing.cells`.
        why: what is said where there is no cell; None: unknown.
    """
    of_truth = cells[cells["truth"] == truth]
    own = of_truth[of_truth["explainer"] == explainer]
    others = of_truth[(of_truth["role"] == "explainer") & (of_truth["explainer"] != explainer)]
    ranked = others[~others["by_identity"].astype(bool)].dropna(subset=["value"])
    best = ranked.nlargest(1, "value")
    floor = of_truth.iloc[:1]  # the same on every line
    floor_raw = None if floor.empty else _or_none(floor["floor"].iloc[0])
    numbers = {
        name: None if own.empty else _or_none(own[name].iloc[0])
        for name in ("raw", "value", "low", "high")
    }
    reason = why if own.empty else None
    if not own.empty and numbers["value"] is None:
        reason = TOO_NEAR
    return {
        "truth": truth,
        "asks": ASKS[truth],
        "cannot_see": CANNOT_SEE[truth],
        "n_clusters": 0 if own.empty else int(own["n_clusters"].iloc[0]),
        **numbers,
        "floor": "none" if floor.empty else str(floor["rule"].iloc[0]),
        "floor_raw": floor_raw,
        **stronger_rule(of_truth, floor_raw),
        "best": None if best.empty else str(best["explainer"].iloc[0]),
        "best_value": None if best.empty else _or_none(best["value"].iloc[0]),
        "by_identity": not own.empty and bool(own["by_identity"].iloc[0]),
        "why": reason,
    }


def stronger_rule(of_truth: pd.DataFrame, floor: float | None) -> dict[str, Any]:
    """The strongest rule of the run that never looks at the model, where it is stronger than the
    one that was chosen beforehand: stronger (its name), stronger_raw, stronger_value.

    Args:
        of_truth: the cells of one truth.
        floor: the score of the rule that was chosen.

    >>> cells = {"explainer": "Even", "role": "floor", "raw": [0.5], "value": [0.2]}
    >>> stronger_rule(pd.DataFrame(cells), 0.4)
    {'stronger': 'Even', 'stronger_raw': 0.5, 'stronger_value': 0.2}
    """
    best = of_truth[of_truth["role"] == "floor"].nlargest(1, "raw")
    if best.empty or floor is None or best["raw"].iloc[0] <= floor + _ROUNDING:
        return {"stronger": None, "stronger_raw": None, "stronger_value": None}
    raw, value = (_or_none(best[name].iloc[0]) for name in ("raw", "value"))
    return {"stronger": best["explainer"].iloc[0], "stronger_raw": raw, "stronger_value": value}


def renewed(card: Mapping[str, Any], cells: pd.DataFrame) -> dict[str, Any]:
    """A card of our models in today's form and words; nobody is asked again, and no number moves.

    Args:
        card: of `lib.doors.card.read_card`.
        cells: of the run that the card is of, or of one with the same models and rules.
    """
    rows = [
        row
        | {"asks": ASKS[row["truth"]], "cannot_see": CANNOT_SEE[row["truth"]]}
        | stronger_rule(cells[cells["truth"] == row["truth"]], row["floor_raw"])
        | ({"why": TOO_NEAR} if row["raw"] is not None and row["value"] is None else {})
        for row in card["truths"]
    ]
    copy = re.match(r"Its numbers are those of (.+?)\. ", card["summary"])
    found = dict(card) | {"schema": SCHEMA, "truths": rows}
    return found | {"summary": summary(found, copy[1] if copy else None)}


def scored_of(truths: pd.DataFrame, mine: pd.DataFrame) -> pd.DataFrame:
    """The items' scores with what was asked: those of `truths` that tell, by item_id."""
    items = telling_items(truths)
    answers = items[["item_id", "model", "training", "text"]].merge(
        mine, on=["model", "training", "text"]
    )
    return score_items(items, answers[["item_id", "explainer", "scores"]])


def own_and_other(
    truths: pd.DataFrame, mine: pd.DataFrame, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The score against the model that was explained, and against its other training."""
    items = telling_items(truths[truths["truth"].isin(ABOUT_MODEL)])
    if items["training"].nunique() < 2 or mine.empty:
        return []
    other = score_on_other(items, mine).groupby("truth")["value"].mean()
    return [
        {"truth": row["truth"], "own": row["raw"], "other": _or_none(other.get(row["truth"]))}
        for row in rows
        if row["truth"] in ABOUT_MODEL and row["raw"] is not None
    ]


def asked_twice(
    model: TextModel, rows: pd.DataFrame, explainer: str, settings: Mapping[str, Any]
) -> tuple[float | None, float]:
    """How alike two answers about a text are that draw differently (mean rank correlation), and the
    CPU seconds of one.

    Args:
        rows: sentence, target.
    """
    found, begun = [], time.process_time()
    for row in rows.itertuples():
        pair = [
            ask(model, {}, row.sentence, row.target, {explainer: settings}, draw)[0][explainer]
            for draw in ("", " again")
        ]
        found.append(1.0 if pair[0] == pair[1] else rank_correlation(*pair))
    seconds = (time.process_time() - begun) / max(1, 2 * len(rows))
    known = [value for value in found if not np.isnan(value)]
    return float(np.mean(known)) if known else None, seconds


def between_trainings(mine: pd.DataFrame) -> float | None:
    """The mean rank correlation of explanations of one text under two trainings."""
    found = []
    for _, part in mine.groupby(["model", "text"]):
        lists = part.sort_values("training")["scores"].tolist()
        found += [rank_correlation(lists[0], lists[1])] if len(lists) > 1 else []
    known = [value for value in found if not np.isnan(value)]
    return float(np.mean(known)) if known else None


def _quality(budgets: pd.DataFrame, explainer: str) -> list[dict[str, Any]]:
    part = budgets[budgets["explainer"] == explainer].sort_values("passes")
    return [{"passes": int(row.passes), "score": float(row.value)} for row in part.itertuples()]


def sentences_of(
    truths: pd.DataFrame, mine: pd.DataFrame, scored: pd.DataFrame, truth: str
) -> list[dict[str, Any]]:
    """The best, the middle and the worst sentence of one truth; each text once.

    Args:
        truths: of stage 02.
        mine: the explanations of one explainer: model, training, text, scores.
        scored: of `score_items`, for these.
    """
    part = scored[scored["truth"] == truth].dropna(subset=["value"]).sort_values("value")
    if part.empty:
        return []
    items = telling_items(truths).set_index("item_id")
    part = part[~part["item_id"].map(items["text"]).duplicated()]
    places = {len(part) // 2: "typical", 0: "bad", len(part) - 1: "good"}
    shown = []
    for place, which in sorted(places.items(), reverse=True):
        item = part.iloc[place]
        about = items.loc[item["item_id"]]
        same = (mine["model"] == about["model"]) & (mine["text"] == about["text"])
        answer = mine[same & (mine["training"] == about["training"])].iloc[0]
        shown.append(
            {
                "which": which,
                "truth": truth,
                "score": float(item["value"]),
                "words": list(about["sentence"]),
                "scores": [float(score) for score in answer["scores"]],
                "key": [_or_none(known) for known in about["key"]],
            }
        )
    return shown


def _or_none(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)
