"""One sentence and its explanation, for the first minute: a head is fitted to forty packaged
sentences, and Integrated Gradients explains a sentence that it has not seen.

It is what `notebooks/00_start_here` does step by step, on the same sentences.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...attribution import explain
from ...core.paths import material
from ...core.seeds import pick_device, set_up
from ...metrics.mass_accuracy import mass_accuracy
from ...plots.word_terminal import words_to_terminal
from ...training.classifier import Settings
from ...training.transfer import Trainer
from .corpus import CLASSES
from .labels import labelled_rows, read_labels

SENTENCE = "north_and_south-02"  # of `material/labels.yaml`
_N_TRAIN = 40  # base sentences, each in three forms


@dataclass(frozen=True)
class Example:
    """An explained sentence.

    Attributes:
        words: the sentence in its female form.
        truth: 1 for each word that the forms do not share.
        probability: of the female class, which is explained.
        scores: one number a word, by method and by the rule that sees no model.
    """

    words: list[str]
    truth: list[int]
    probability: float
    scores: dict[str, np.ndarray]


def make_example(seed: int = 0, encoder: str = "all-MiniLM-L6-v2") -> Example:
    """Fit the head, and explain the sentence; some seconds of one core, nothing is written."""
    set_up(seed, n_threads=1)
    labels = read_labels(material("geco") / "labels.yaml")
    rows = labelled_rows(list(labels.values()), "all")
    is_ours = rows["sentence_idx"] == list(labels).index(SENTENCE)
    ours = rows[is_ours].reset_index(drop=True)
    names = np.random.default_rng(seed).permutation(rows["sentence_idx"][~is_ours].unique())
    train = rows[rows["sentence_idx"].isin(names[:_N_TRAIN])].reset_index(drop=True)
    settings = Settings(epochs=40, lr=0.01, batch_size=32)
    found = Trainer(encoder, "", pick_device("cpu")).train(
        "C", seed, train, ours, CLASSES, settings
    )
    female = ours.iloc[:1]
    methods: dict[str, tuple[object, dict[str, object]]] = {
        "Integrated Gradients": (found.model, {"n_steps": 50}),
        "First pronoun": (None, {}),
    }
    scores = {
        name: np.asarray(explain(model, female, name, chosen)["scores"].iloc[0])
        for name, (model, chosen) in methods.items()
    }
    return Example(
        list(female["sentence"].iloc[0]),
        list(female["ground_truth"].iloc[0]),
        float(pd.to_numeric(found.predictions["p_F"]).iloc[0]),
        scores,
    )


def as_text(example: Example, coloured: bool) -> str:
    """The example as it stands in a terminal: the sentence twice, each line with its share."""
    about = {
        "Integrated Gradients": "an explanation of the model",
        "First pronoun": "a rule that never looks at the model",
    }
    how = (
        "orange speaks for the answer, violet against it, underlined: the words that we changed"
        if coloured
        else "in brackets each word's share in percent, *: the words that we changed"
    )
    lines = [
        f"A small model says that this sentence is about a woman ({example.probability:.0%}). "
        "Which words told it so?",
        "",
    ]
    for name, scores in example.scores.items():
        share = mass_accuracy(scores, example.truth)
        painted = words_to_terminal(example.words, scores, example.truth, coloured)
        lines += [f"  {painted}", f"  {name}, {about[name]}: {share:.0%} on changed words", ""]
    return "\n".join([*lines, f"({how})"])
