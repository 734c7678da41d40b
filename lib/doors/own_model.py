"""Explanations for somebody's own Hugging Face classifier: wrap it, hand in texts, get word scores.

>>> from lib.doors import explain_texts, wrap# doctest: +SKIP
>>> model = wrap(module, tokenizer)                                # doctest: +SKIP
>>> explain_texts(model, ["A fine film ."], "Integrated Gradients")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import pandas as pd
import torch
from torch import nn

from lib.attribution.explain import explain
from lib.attribution.registry import resolve_method
from lib.core.errors import TouchstoneError, did_you_mean
from lib.models.first_token import check_reading
from lib.models.hf import HFClassifier
from lib.models.text_model import TextModel, device_of

BATCH = 64
STUDY = "own"
TO_ONE_PERCENT = {
    "tolerance": 0.01,
    "placing": "panels",
}  # of Integrated Gradients; see lib.attribution.path_integrals


def wrap(module: Any, tokenizer: Any, classes: Sequence[str] = ()) -> HFClassifier:
    """A sequence classifier of `transformers` and its tokenizer as a model that can be explained.

    `classes`: the names of its outputs; without them those of its configuration (`id2label`). Any head will do: whether it
    reads one token or more is tried on two texts. A checkpoint in bfloat16 or float16 is explained as it is (load it with
    dtype="float32" for more digits). Raises TouchstoneError for a module without word embeddings or class scores, or whose
    scores are others from embeddings than from token ids, for a tokenizer that cannot tell which word a token belongs to or
    that has no token for padding, and for a number of names that is not the number of outputs.
    """
    kind = type(module).__name__
    if (
        not isinstance(module, nn.Module)
        or not hasattr(module, "config")
        or not hasattr(module, "get_input_embeddings")
    ):
        raise TouchstoneError(
            f"{kind} is no model of transformers with word embeddings; hand in what "
            "AutoModelForSequenceClassification.from_pretrained returns"
        )
    if not getattr(tokenizer, "is_fast", False):
        raise TouchstoneError(
            f"{type(tokenizer).__name__} does not tell which word a token comes from; load the fast "
            "tokenizer (AutoTokenizer.from_pretrained(name, use_fast=True))"
        )
    names = tuple(classes) or tuple(
        module.config.id2label[i] for i in sorted(module.config.id2label)
    )
    model = HFClassifier(module, tokenizer, names)
    encoded = model.encode([["a"]])[0]
    with torch.no_grad():
        output = module(input_ids=torch.tensor([encoded.ids], device=device_of(module)))
    scores = getattr(output, "logits", None)
    if scores is None or scores.ndim != 2:
        raise TouchstoneError(
            f"{kind} gives no row of class scores; hand in a model for sequence classification"
        )
    if scores.shape[1] != len(names):
        raise TouchstoneError(
            f"{kind} has {scores.shape[1]} outputs and {len(names)} classes are named; name each output once"
        )
    check_reading(model)
    return model


def has_gradient(model: TextModel) -> bool:
    """Whether the class scores can be differentiated in the word embeddings, tried on one word."""
    ids = torch.tensor([model.encode([["a"]])[0].ids], device=device_of(model.module))
    with torch.enable_grad():
        embeddings = model.embed(ids).detach()
        if not embeddings.is_floating_point():
            return False
        return model.logits(embeddings.requires_grad_(), torch.ones_like(ids)).requires_grad


def explain_texts(
    model: TextModel,
    texts: Sequence[str | Sequence[str]],
    method: str = "Integrated Gradients",
    classes: str | int | Sequence[str | int] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Explain texts with one method: a line per text in the explanation format (`lib.attribution.table.SCHEMA`).

    A text is a string, split at white space, or a list of words; the model reads the words with single spaces between them,
    through its own tokenizer. `classes`: what is asked about, by name or number, one for all or one a text; without it, the
    class that the model predicts. Methods that draw are seeded by `seed`, their name and the text's words: neither the order of
    the texts nor a repetition changes a score. Integrated Gradients takes as many points as it needs for a completeness gap of
    1 %, unless `settings` say otherwise. Gradients explain the logit by default, the other methods the probability (column
    `explained`). Raises TouchstoneError for a class that the model does not have, for a gradient method on a model without
    gradients, and for a text that is empty or longer than the model reads.
    """
    if isinstance(texts, str) or len(texts) == 0:
        raise TouchstoneError(
            f"texts is {texts!r}; hand in a list of texts, with at least one in it"
        )
    words = [
        text.split() if isinstance(text, str) else [str(word) for word in text] for text in texts
    ]
    if empty := [i for i, found in enumerate(words) if not any(word.strip() for word in found)]:
        raise TouchstoneError(f"text {empty[0]} has no words; leave it out")
    if resolve_method(method).family == "gradient" and not has_gradient(model):
        raise TouchstoneError(
            f"{type(model.module).__name__} has no gradient in its word embeddings (integer weights, or a "
            f"forward pass without gradients), which {method} needs; take Occlusion, LIME or Kernel SHAP"
        )
    targets = _targets(model, words, classes)
    rows = pd.DataFrame(
        {
            "row_id": [f"text {i}" for i in range(len(words))],
            "sentence_idx": range(len(words)),
            "target": targets,
            "sentence": words,
            "drawn_by": [" ".join(found) for found in words],
        }
    )
    own = (
        TO_ONE_PERCENT
        if method == "Integrated Gradients"
        and not {"n_steps", "rule", "tolerance"} & set(settings or {})
        else {}
    )
    return explain(model, rows, method, {**own, **(settings or {})}, study=STUDY, seed=seed)


def _targets(model: TextModel, words: Sequence[Sequence[str]], classes: Any) -> list[int]:
    """The class that each text is asked about."""
    if classes is None:
        return list(model.predict(words, BATCH).argmax(1).tolist())
    each = (
        [classes] * len(words)
        if isinstance(classes, str) or not isinstance(classes, Iterable)
        else list(classes)
    )
    if len(each) != len(words):
        raise TouchstoneError(
            f"{len(each)} classes are given for {len(words)} texts; give one, or one for each text"
        )
    return [class_number(model, one) for one in each]


def class_number(model: TextModel, wanted: str | int) -> int:
    """The number of a class that is given by name or number."""
    if isinstance(wanted, str) and wanted in model.classes:
        return model.classes.index(wanted)
    if (
        isinstance(wanted, Integral)
        and not isinstance(wanted, bool)
        and 0 <= wanted < len(model.classes)
    ):
        return int(wanted)
    names = ", ".join(f"{i} {name}" for i, name in enumerate(model.classes))
    hint = did_you_mean(wanted, model.classes) if isinstance(wanted, str) else ""
    raise TouchstoneError(f"there is no class {wanted!r}{hint}; the model knows {names}")


def word_list(explanations: pd.DataFrame, classes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Explanations as plain data for `json.dumps`: text, class, method, explained, delta, and words as [word, score] pairs.

    `delta` is the completeness gap (None for a method that has none): by how much the scores miss the change they explain.
    """
    return [
        {
            "text": " ".join(row.words),
            "class": classes[row.target] if classes else int(row.target),
            "method": row.method,
            "explained": row.explained,
            "delta": None if pd.isna(row.delta) else float(row.delta),
            "words": [
                [word, float(score)] for word, score in zip(row.words, row.scores, strict=True)
            ],
        }
        for row in explanations.itertuples()
    ]
