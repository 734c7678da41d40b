"""The masked language model from which concepts are unlearnt, and a probe for what is left."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch

from ...core.seeds import seed_for
from ...models.masked_lm import MaskedLM, new_masked_lm
from ...training.masked_lm import MaskedSettings, fit_masked_lm, unigram_perplexity
from .encoders import shorten
from .questions import Vectors, fit_head
from .reviewers import words_of
from .reviews import VALUES

Parts = Mapping[str, pd.DataFrame]  # train, dev and test texts


def masked_lm_of(
    parts: Parts,
    encoder: tuple[str, str],
    about: Mapping[str, Any],
    lr: float,
    device: torch.device,
    name: str,
    seed: int,
) -> tuple[MaskedLM, dict[str, float]]:
    """Train the lowest layers of an encoder, with a new head, to fill in words.

    Args:
        parts: it learns from train; dev shows how good it is.
        encoder: name and revision.
        about: layers, epochs, batch_tokens.
        lr: the highest learning rate.
        device: where it runs.
        name: of the data set.
        seed: of the head and of the training.

    Returns:
        The model; its `perplexity` on dev, and that of word frequencies, `unigram`.
    """
    model = new_masked_lm(encoder[0], seed_for("masked LM", seed), encoder[1])
    model = shorten(model, about["layers"])
    model.module.to(device)
    train, dev = (model.encode(words_of(list(parts[split]["text"]))) for split in ("train", "dev"))
    settings = MaskedSettings(about["epochs"], lr, about["batch_tokens"])
    curve = fit_masked_lm(model, train, dev, settings, seed_for("masked LM", name, seed))
    return model, {
        "unigram": unigram_perplexity(model, train, dev),
        "perplexity": curve["perplexity"].iloc[-1],
    }


def probe(parts: Parts, aspect: str, vectors: Vectors) -> float:
    """The accuracy, on test texts, of a new linear probe for an aspect.

    Args:
        parts: train and test, with the labels of the aspects.
        aspect: the one that is asked about.
        vectors: of the train texts, then of the test texts; more may follow.
    """
    labels = pd.concat([parts["train"][aspect], parts["test"][aspect]]).to_numpy(str)
    is_train = np.arange(len(labels)) < len(parts["train"])
    known, x = np.isin(labels, VALUES), vectors[: len(labels)]
    numbers = pd.Index(VALUES).get_indexer(labels)
    head = fit_head(x[is_train & known], numbers[is_train & known], len(VALUES))
    said = head.probabilities(x[~is_train & known]).argmax(1)
    return float((said == numbers[~is_train & known]).mean())
