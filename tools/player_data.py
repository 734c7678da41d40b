"""The numbers of the page to play with: docs/player/data.json, from a finished run of geco (small).

    TOUCHSTONE_OUTPUTS=... python tools/player_data.py

Sentences of the test split, drawn as stage 03 draws its own, which are among them; the model's
probabilities; the scores of every player, made as stage 03 makes them. What stage 03 explained too
has to come out the same, or nothing is written.
"""

from __future__ import annotations

import lib.same_numbers  # first: the same instructions on every processor

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from player import SOURCE

from lib.attribution.explain import explain
from lib.attribution.table import NO_MODEL, load_explanations
from lib.core.errors import TouchstoneError
from lib.core.files import load_parquet, write_atomic
from lib.core.parameters import read_params
from lib.core.paths import ROOT, outputs_root
from lib.core.stage import Stage
from lib.studies.geco.corpus import load_dataset
from lib.studies.geco.model_units import load_trained
from lib.studies.geco.units import choose_rows

DATASET, SCHEME = "D_A", "CEfAf"
N_SENTENCES = 15
MOST_BYTES = 300_000  # of data.json
TOLERANCE = 1e-4  # of a sentence's largest score: it was explained among other neighbours
CLASSES = ("a woman", "a man", "a non-binary person")
FORMS = ("woman", "man", "non-binary")
PLAYERS = (  # the registered name, its label, explainer or floor, what it does
    (
        "Saliency",
        "Saliency",
        "explainer",
        "How strongly the answer reacts when the numbers that stand for a word change a little. "
        "It has no sign.",
    ),
    (
        "InputXGradient",
        "Input × Gradient",
        "explainer",
        "The same reaction, times the numbers themselves, added up.",
    ),
    (
        "Guided Backprop",
        "Guided Backprop",
        "explainer",
        "A gradient that lets only positive signals flow back through the network. It has no sign.",
    ),
    (
        "DeepLift",
        "DeepLIFT",
        "explainer",
        "Compares each activation of the network with its value on an empty sentence, and hands "
        "the differences back to the words.",
    ),
    (
        "Gradient SHAP",
        "Gradient SHAP",
        "explainer",
        "Gradients at random points between an empty sentence and the real one, averaged.",
    ),
    (
        "Integrated Gradients",
        "Integrated Gradients",
        "explainer",
        "Walks from an empty sentence to the real one in small steps, and adds up what each word "
        "contributed on the way.",
    ),
    (
        "Kernel SHAP",
        "Kernel SHAP",
        "explainer",
        "Blanks out random groups of words and shares the change of the answer fairly among them.",
    ),
    (
        "LIME",
        "LIME",
        "explainer",
        "Deletes random words and fits a simple weighted sum to the model's answers.",
    ),
    (
        "First pronoun",
        "First pronoun",
        "floor",
        "A rule: all weight on the first third-person pronoun.",
    ),
    (
        "Uniform random",
        "Random numbers",
        "floor",
        "A random number for every word piece. On average its mass accuracy is the share of the "
        "sentence that changed.",
    ),
)


def chosen_rows(test: pd.DataFrame, predictions: pd.DataFrame, seed: int) -> pd.DataFrame:
    """One row a base sentence, short ones first, its form in turn; where the model errs, the next.

    Args:
        test: the rows of the test split.
        predictions: the model's on them: row_id, target, predicted.
        seed: the run's, which draws the base sentences.
    """
    drawn = choose_rows(test, N_SENTENCES, seed)
    right = drawn["row_id"].isin(predictions.query("predicted == target")["row_id"])
    n_words = drawn["sentence"].map(len)
    order = n_words.groupby(drawn["sentence_idx"]).first().sort_values(kind="stable").index
    rows = []
    for k, base in enumerate(order):
        forms = drawn[right & (drawn["sentence_idx"] == base)]
        turn = (forms["target"] - k) % len(CLASSES)
        rows.append(forms.loc[turn.idxmin()])
    return pd.DataFrame(rows).reset_index(drop=True)


def explained(stage: Stage, rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every player's explanations of the rows, with the settings of the finished run.

    Raises:
        TouchstoneError: a row that the run explained too has other scores there.
    """
    run = load_explanations(stage.input("03_attribution", "explanations.parquet"))
    run = run[(run["dataset"] == DATASET) & run["scheme"].isin([SCHEME, NO_MODEL])]
    model = load_trained(stage, DATASET, SCHEME, 0)
    model.module.to("cpu")
    found = {}
    for name, *_ in PLAYERS:
        theirs = run[run["method"] == name].drop_duplicates("row_id").set_index("row_id")
        sees_model = theirs["scheme"].iloc[0] == SCHEME
        asked = model if sees_model or name == "Uniform random" else None  # that has its tokenizer
        settings = json.loads(theirs["settings"].iloc[0])
        ours = explain(asked, rows, name, settings, seed=int(theirs["seed"].iloc[0]))
        for row in ours.itertuples():
            if row.row_id in theirs.index:
                _compare(name, row.row_id, row.scores, theirs.loc[row.row_id, "scores"])
        found[name] = ours.assign(n_samples=settings.get("n_samples"))
    return found


def _compare(method: str, row_id: str, ours: Sequence[float], theirs: Sequence[float]) -> None:
    largest = np.abs(np.subtract(ours, theirs)).max()
    if largest > TOLERANCE * np.abs(theirs).max():
        raise TouchstoneError(
            f"{method} on row {row_id} differs from stage 03's by {largest:.2g}; run geco at scale "
            "small again, with this code"
        )


def renew_data() -> None:
    """Write docs/player/data.json from the finished run of geco at scale small.

    Raises:
        TouchstoneError: the run is not complete, does not agree, or the file is too large.
    """
    run = outputs_root() / "geco" / "small"
    stage = Stage("geco", "small", "player", run / "player")  # reads as a later stage, writes none
    seed = read_params(ROOT / "params" / "geco" / "small.yaml")["seed"]
    test = load_dataset(stage, DATASET, "test")
    predictions = load_parquet(stage.input("02_training", "predictions.parquet")).query(
        "dataset == @DATASET and scheme == @SCHEME and seed == 0 and split == 'test'"
    )
    rows = chosen_rows(test, predictions, seed)
    scores = explained(stage, rows)
    chances = predictions.set_index("row_id")[["p_F", "p_M", "p_NB"]]
    sentences = [
        {
            "row_id": row.row_id,
            "target": int(row.target),
            "words": list(row.sentence),
            "mask": [int(flag) for flag in row.ground_truth],
            "forms": _forms(test, row.sentence_idx),
            "probabilities": _rounded(chances.loc[row.row_id]),
            "scores": {name: _rounded(table["scores"][k]) for name, table in scores.items()},
        }
        for k, row in enumerate(rows.itertuples())
    ]
    samples = {name: int(scores[name]["n_samples"][0]) for name in ("LIME", "Kernel SHAP")}
    about = {"dataset": DATASET, "scheme": SCHEME, "seed": 0, "samples": samples}
    about["n_sentences"] = len(sentences)
    methods = [dict(zip(("name", "label", "kind", "text"), player)) for player in PLAYERS]
    head = {"about": about, "classes": CLASSES, "forms": FORMS, "methods": methods}
    _write(head, sentences)


def _forms(test: pd.DataFrame, base: int) -> list[list[str]]:
    return [list(s) for s in test[test["sentence_idx"] == base].sort_values("target")["sentence"]]


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _write(head: Mapping[str, Any], sentences: Sequence[Mapping[str, Any]]) -> None:
    """The data as JSON with a line a sentence, so that a change shows where it is."""
    begin = json.dumps(head, ensure_ascii=False, indent=1)[:-2]
    lines = ",\n".join(json.dumps(sentence, ensure_ascii=False) for sentence in sentences)
    text = f'{begin},\n "sentences": [\n{lines}\n]}}\n'
    if len(text.encode()) > MOST_BYTES:
        raise TouchstoneError(f"data.json would be over {MOST_BYTES} bytes; take fewer sentences")
    write_atomic(SOURCE / "data.json", text)


if __name__ == "__main__":
    try:
        renew_data()
    except TouchstoneError as error:
        sys.exit(str(error))
