"""Explanations for somebody's own Hugging Face classifier: wrap it, hand in texts, get word scores.

>>> from lib.attribution import explain_texts, wrap               # doctest: +SKIP
>>> model = wrap(module, tokenizer)                                # doctest: +SKIP
>>> explain_texts(model, ["A fine film ."], "Integrated Gradients")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from torch import nn

from lib.attribution.explain import explain
from lib.attribution.registry import resolve_method
from lib.errors import TouchstoneError, did_you_mean
from lib.models.face import TextModel, device_of
from lib.models.hf import HFClassifier

BATCH = 64
STUDY = "own"


def wrap(module: Any, tokenizer: Any, classes: Sequence[str] = ()) -> HFClassifier:
    """A sequence classifier of `transformers` and its tokenizer as a model that can be explained.

    `classes`: the names of its outputs; without them those of its configuration (`id2label`). Raises TouchstoneError for a
    module without word embeddings or class scores, for a tokenizer that cannot tell which word a token belongs to, and
    for a number of names that is not the number of outputs.
    """
    kind = type(module).__name__
    if not isinstance(module, nn.Module) or not hasattr(module, "config") or not hasattr(module, "get_input_embeddings"):
        raise TouchstoneError(f"{kind} is no model of transformers with word embeddings; hand in what "
                              "AutoModelForSequenceClassification.from_pretrained returns")
    check_tokenizer(tokenizer)
    names = tuple(classes) or tuple(module.config.id2label[i] for i in sorted(module.config.id2label))
    model = HFClassifier(module, tokenizer, names)
    encoded = model.encode([["a"]])[0]
    with torch.no_grad():
        output = module(input_ids=torch.tensor([encoded.ids], device=device_of(module)))
    scores = getattr(output, "logits", None)
    if scores is None or scores.ndim != 2:
        raise TouchstoneError(f"{kind} gives no row of class scores; hand in a model for sequence classification")
    if scores.shape[1] != len(names):
        raise TouchstoneError(f"{kind} has {scores.shape[1]} outputs and {len(names)} classes are named; name each output once")
    return model


def check_tokenizer(tokenizer: Any) -> None:
    """Refuse a tokenizer that does not tell which word a token belongs to, with what to do about it."""
    if not getattr(tokenizer, "is_fast", False):
        raise TouchstoneError(f"{type(tokenizer).__name__} does not tell which word a token comes from; load the fast "
                              "tokenizer (AutoTokenizer.from_pretrained(name, use_fast=True))")
    try:
        tokenizer([["a"]], is_split_into_words=True)
    except (AssertionError, ValueError) as error:
        raise TouchstoneError(f"{type(tokenizer).__name__} does not take lists of words ({str(error)[:80]}); load it with "
                              "add_prefix_space=True") from None


def has_gradient(model: TextModel) -> bool:
    """Whether the class scores can be differentiated in the word embeddings, tried on one word."""
    ids = torch.tensor([model.encode([["a"]])[0].ids], device=device_of(model.module))
    with torch.enable_grad():
        embeddings = model.embed(ids).detach()
        if not embeddings.is_floating_point():
            return False
        return model.logits(embeddings.requires_grad_(), torch.ones_like(ids)).requires_grad


def explain_texts(model: TextModel, texts: Sequence[str | Sequence[str]], method: str = "Integrated Gradients",
                  classes: str | int | Sequence[str | int] | None = None, settings: Mapping[str, Any] | None = None,
                  seed: int = 0) -> pd.DataFrame:
    """Explain texts with one method: a line per text in the explanation format (`lib.attribution.table.SCHEMA`).

    A text is a string, split at spaces, or a list of words. `classes`: what is asked about, by name or number, one for all
    or one a text; without it, the class that the model predicts. Raises TouchstoneError for a class that the model does not
    have, for a gradient method on a model without gradients, and for a text that is empty or longer than the model reads.
    """
    words = [text.split() if isinstance(text, str) else list(text) for text in texts]
    if empty := [i for i, found in enumerate(words) if not found]:
        raise TouchstoneError(f"text {empty[0]} has no words; leave it out")
    if resolve_method(method).family == "gradient" and not has_gradient(model):
        raise TouchstoneError(f"{type(model.module).__name__} has no gradient in its word embeddings (integer weights, or a "
                              f"forward pass without gradients), which {method} needs; take Occlusion, LIME or Kernel SHAP")
    if classes is None:
        targets = model.predict(words, BATCH).argmax(1).tolist()
    else:
        each = [classes] * len(words) if isinstance(classes, str | int) else list(classes)
        targets = [class_number(model, one) for one in each]
    if len(targets) != len(words):
        raise TouchstoneError(f"{len(targets)} classes are given for {len(words)} texts; give one, or one for each text")
    rows = pd.DataFrame({"row_id": [f"text {i}" for i in range(len(words))], "sentence_idx": range(len(words)),
                         "target": targets, "sentence": words})
    return explain(model, rows, method, settings, study=STUDY, seed=seed)


def class_number(model: TextModel, wanted: str | int) -> int:
    """The number of a class that is given by name or number."""
    if isinstance(wanted, str) and wanted in model.classes:
        return model.classes.index(wanted)
    if isinstance(wanted, int) and 0 <= wanted < len(model.classes):
        return wanted
    names = ", ".join(f"{i} {name}" for i, name in enumerate(model.classes))
    hint = did_you_mean(wanted, model.classes) if isinstance(wanted, str) else ""
    raise TouchstoneError(f"there is no class {wanted!r}{hint}; the model knows {names}")


def word_list(explanations: pd.DataFrame, classes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Explanations as plain data for `json.dumps`: text, class, method, explained, and words as [word, score] pairs."""
    return [{"text": " ".join(row.words), "class": classes[row.target] if classes else int(row.target), "method": row.method,
             "explained": row.explained, "words": [[word, float(score)] for word, score in zip(row.words, row.scores, strict=True)]}
            for row in explanations.itertuples()]
