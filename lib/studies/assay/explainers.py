"""Who is asked: registered explainers, and rules that never look at the model.

Every text is asked about alone and without its id, so that no answer rests on what other texts
there are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from ...attribution import METHODS, Method, Row, explain_many, resolve_method
from ...core.errors import TouchstoneError
from ...models.shortcuts import ignores_padding
from ...models.text_model import TextModel

_SAME = 1e-5  # scores of two explainers that are one, as a share of the largest score
ABOUT_TEXT = ["model", "training", "text"]  # what an explanation is of
PASSES = {  # the setting that says how often the model is run, where one does
    "Integrated Gradients": "n_steps",
    "LIME": "n_samples",
    "Kernel SHAP": "n_samples",
}


def even(model: None, rows: Sequence[Row]) -> list[Float[np.ndarray, "token"]]:
    """All words alike.

    >>> even(None, [Row("a", 0, 1, ["good", "food"], 0)])[0].tolist()
    [1.0, 1.0]
    """
    return [np.ones(len(row.words)) for row in rows]


def nearest(model: None, rows: Sequence[Row]) -> list[Float[np.ndarray, "token"]]:
    """The later a word stands the more it counts.

    >>> nearest(None, [Row("a", 0, 1, ["the", "keys"], 0)])[0].tolist()
    [0.5, 1.0]
    """
    return [np.arange(1, len(row.words) + 1) / len(row.words) for row in rows]


class Counts:
    """How many training texts of each class a word stands in.

    Args:
        train: sentence (a list of words), target (0 or 1).

    >>> counts = Counts(pd.DataFrame({"sentence": [["He", "ran"], ["she"]], "target": [1, 0]}))
    >>> counts.log_ratio("he", 1).round(3).tolist(), counts.log_ratio("ran", 0).round(3).tolist()
    (0.693, -0.693)
    """

    def __init__(self, train: pd.DataFrame) -> None:
        self.by_class = [
            Counter(w.lower() for words in part for w in set(words))
            for part in (train.loc[train["target"] == c, "sentence"] for c in (0, 1))
        ]

    def log_ratio(self, word: str, target: int) -> np.float64:
        """Log of (texts of the class with the word + 1) / (texts of the other class with it + 1):
        for a pronoun model the stereotype of a noun, log count(he) / count(she).
        """
        own, other = (self.by_class[c][word.lower()] + 1 for c in (target, 1 - target))
        return np.log(own / other)

    def frequency(self, word: str) -> np.float64:
        """Log of the number of texts with the word, plus 1."""
        return np.log1p(sum(counts[word.lower()] for counts in self.by_class))


def log_count_ratio(counts: Counts, rows: Sequence[Row]) -> list[Float[np.ndarray, "token"]]:
    """`Counts.log_ratio` of each word for the row's class."""
    return [np.array([counts.log_ratio(w, row.target) for w in row.words]) for row in rows]


def frequency(counts: Counts, rows: Sequence[Row]) -> list[Float[np.ndarray, "token"]]:
    """`Counts.frequency` of each word, with a minus: the rarer the more it counts."""
    return [np.array([-counts.frequency(word) for word in row.words]) for row in rows]


FLOORS = {
    "Random": METHODS["Uniform random"],
    "Even": Method("Even", even, "floor", "word"),
    "Nearest": Method("Nearest", nearest, "floor", "word"),
    "First pronoun": METHODS["First pronoun"],
    "Pronoun list": METHODS["Pronoun list"],
    "Word counts": METHODS["Pattern Variant"],
    "Log count ratio": Method("Log count ratio", log_count_ratio, "floor", "word", fit=Counts),
    "Rare words": Method("Rare words", frequency, "floor", "word", fit=Counts),
}


def fit_floors(train: pd.DataFrame) -> dict[str, Any]:
    """What each floor knows that has read the training texts, by its name.

    Args:
        train: sentence (a list of words), target (0 or 1).
    """
    return {name: floor.fit(train) for name, floor in FLOORS.items() if floor.fit}


def ask(
    model: TextModel | None,
    fitted: Mapping[str, Any],
    text: Sequence[str],
    target: int,
    explainers: Mapping[str, Mapping[str, Any]],
    draw: str = "",
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """What explainers say of one text, alone.

    Args:
        model: what is explained; its log-odds of `target`, whatever an explainer's usual choice is.
            Floors need none.
        fitted: of `fit_floors`, on the rows that the model was trained on.
        text: its words.
        target: the class, 0 or 1.
        explainers: settings by name: of `FLOORS`, of `METHODS`, or "module:function".
        draw: another one gives methods that draw other draws.

    Returns:
        The scores by explainer, a number a word; and why those that refuse this model do so.
    """
    words = list(text)
    names = ["row_id", "sentence_idx", "target", "sentence", "drawn_by"]
    row = pd.DataFrame([("text", 0, target, words, " ".join(words) + draw)], columns=names)
    scores, refused = {}, {}
    for name, settings in explainers.items():
        method = FLOORS.get(name) or resolve_method(name)
        given = fitted.get(name) if name in FLOORS else model
        usual = {"explained": "margin"} if "explained" in method.defaults else {}
        try:
            answer = explain_many(given, row, [(method, usual | dict(settings))])
            scores[name] = np.asarray(answer["scores"][0], float).tolist()
        except TouchstoneError as error:
            refused[name] = str(error)
    return scores, refused


def ask_each(
    model: TextModel | None,
    fitted: Mapping[str, Any],
    rows: pd.DataFrame,
    explainers: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """What everybody says of some texts, and who refuses, and why.

    Args:
        rows: item_id, sentence, target.

    Returns:
        A line a text and explainer: item_id, explainer, scores (NaN for a refusal), why ("" for an
        answer).
    """
    found = []
    for row in rows.itertuples():
        for name, chosen in explainers.items():
            scores, why = ask(model, fitted, row.sentence, row.target, {name: chosen})
            found.append((row.item_id, name, scores.get(name, [np.nan]), why.get(name, "")))
    return pd.DataFrame(found, columns=["item_id", "explainer", "scores", "why"])


def count_passes(
    model: TextModel, rows: pd.DataFrame, explainers: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """How many texts an encoder reads, forward, until one text is explained: counted at its last
    LayerNorm.

    Args:
        model: with layers of a transformer.
        rows: as for `ask_each`.
        explainers: settings by name.

    Returns:
        explainer, passes (the mean over rows; 0 where all were refused).
    """
    last = [layer for layer in model.module.modules() if isinstance(layer, torch.nn.LayerNorm)][-1]
    ignores_padding(model)  # tried now, so that nobody's passes are those of the trial
    read: list[int] = []
    hook = last.register_forward_hook(lambda _module, _args, states: read.append(len(states)))
    lines = []
    try:
        for name, settings in explainers.items():
            read.clear()
            ask_each(model, {}, rows, {name: settings})
            lines.append((name, sum(read) / len(rows)))
    finally:
        hook.remove()
    return pd.DataFrame(lines, columns=["explainer", "passes"])


def merge_identical(explanations: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Explainers whose numbers agree on every text that either explains become one.

    Args:
        explanations: explainer, model, training, text, scores (a list).

    Returns:
        The explanations without the later of two equal ones, and whose copy each of these is.
    """
    by_name = {
        name: dict(zip(part[ABOUT_TEXT].itertuples(index=False, name=None), part["scores"]))
        for name, part in explanations.groupby("explainer", sort=False)
    }
    copies: dict[str, str] = {}
    for first, name in combinations(by_name, 2):
        if name not in copies and first not in copies and _alike(by_name[first], by_name[name]):
            copies[name] = first
    return explanations[~explanations["explainer"].isin(list(copies))], copies


def _alike(left: Mapping[Any, Sequence[float]], right: Mapping[Any, Sequence[float]]) -> bool:
    return left.keys() == right.keys() and all(
        np.allclose(scores, right[text], rtol=0, atol=_SAME * (np.abs(scores).max() or 1.0))
        for text, scores in left.items()
    )
