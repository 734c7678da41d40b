"""The model that is asked about cues: which number has the next verb? A small language model learns
to predict words, and a probe reads the number from its states, which no longer move.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from ...models.language_model import LanguageModel, LMConfig, Vocabulary, build_lm, build_vocabulary
from ...models.probe import CausalLM, Probe, WordTable
from ...training.language_model import LMSettings, fit_lm, pieces
from ...training.probe import ProbeSettings, fit_probe

CLASSES = ("singular", "plural")
_PIECE = 64  # words of a training piece
_VALIDATION = 100  # pieces that choose the epoch


class LanguagePlan(NamedTuple):
    """How the small language model learns: passes over its corpus, highest learning rate, size of
    embeddings and states, words in a step.
    """

    epochs: int
    lr: float
    width: int
    batch_words: int


def fit_language_model(
    texts: Sequence[Sequence[str]],
    asked: Iterable[Sequence[str]],
    plan: LanguagePlan,
    seed: int,
    device: torch.device | str = "cpu",
) -> tuple[LanguageModel, Vocabulary]:
    """An LSTM of one layer that has read the texts, and its words.

    Args:
        texts: the corpus.
        asked: texts that the model will be asked about; their words join the vocabulary.
        plan: how it learns.
        seed: of its first weights, and of the order of the texts.
        device: where it learns, and stays.
    """
    words = build_vocabulary(texts, 0, {word for text in asked for word in text})
    model = build_lm(LMConfig("LSTM", 1, plan.width, plan.width), len(words), seed)
    model = model.to(device)
    read = pieces(texts, words, _PIECE)
    settings = LMSettings(plan.epochs, plan.lr, plan.batch_words, _PIECE)
    fit_lm(model, read, read[:_VALIDATION], words, settings, seed)
    return model, words


def fit_number_probe(
    model: CausalLM, words: WordTable, rows: pd.DataFrame, epochs: int, seed: int
) -> tuple[Probe, float]:
    """A probe of a language model, and its accuracy on every tenth sentence, which it did not learn
    from.

    Args:
        rows: sentence (the words before a verb), target (0 singular, 1 plural), sentence_idx.
    """
    table = pd.DataFrame(
        {
            "prefix": rows["sentence"].map(" ".join),
            "tag": rows["target"],
            "split": np.where(rows["sentence_idx"] % 10 == 0, "valid", "train"),
        }
    )
    probe, curve = fit_probe(model, words, CLASSES, table, ProbeSettings(epochs, 0.003, 32), seed)
    return probe, float(curve["validation_accuracy"][curve["validation_loss"].idxmin()])
