"""Explain rows with a method, and return them in the one explanation format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import nn

from lib.attribution.registry import Method, resolve_method
from lib.attribution.seam import Row, TokenBatch, TokenScores, class_score
from lib.attribution.table import in_format
from lib.attribution.words import word_scores
from lib.errors import TouchstoneError
from lib.models.face import Encoded, TextModel, device_of, length_buckets, pad
from lib.models.shortcut import first_token_only
from lib.progress import progress
from lib.seeds import seed_for

ROWS = 32  # sentences of one length that are explained together
COMMON = ("explained", "normalise_special")  # settings that are dealt with here, not by the token methods
Found = tuple[list[Float[np.ndarray, "token"]], list[float | None]]


def explain(model: Any, rows: pd.DataFrame, method: str | Method, settings: Mapping[str, Any] | None = None, *,
            study: str = "geco", dataset: str = "-", scheme: str = "-", seed: int = -1) -> pd.DataFrame:
    """Explain every row's own class and return one line per row in the explanation format (`table.SCHEMA`).

    `rows` has row_id, sentence_idx, target and sentence (a list of words). `model` is a TextModel; floors
    take None, or what they were fitted to. `seed` is the seed of the model's training, and with the method's
    name and the row's id it seeds the draws, so a row's explanation depends neither on its neighbours nor on
    their order. Raises TouchstoneError, naming row and method, for a class that the model lacks, a sentence
    longer than it reads, a score that is not finite, or a number of scores that is not the number of words.
    """
    chosen = resolve_method(method) if isinstance(method, str) else method
    filled = chosen.settings(settings)
    todo = [Row(str(row.row_id), int(row.sentence_idx), int(row.target), list(row.sentence),
                seed_for(chosen.name, str(row.row_id), seed)) for row in rows.itertuples()]
    if chosen.family == "floor":
        scores, deltas = chosen.function(model, todo, **filled), [None] * len(todo)
    else:
        scores, deltas = _explain_model(model, todo, chosen, filled)
    _check_scores(scores, todo, chosen.name)
    labels = {"study": study, "dataset": dataset, "scheme": scheme, "seed": seed}
    return in_format(rows, scores, deltas, chosen.name, filled, **labels)


def _explain_model(model: TextModel, rows: Sequence[Row], method: Method, settings: Mapping[str, Any]) -> Found:
    model.module.eval()  # dropout would make every explanation a draw of its own
    encoded = [_encode(model, row, method.name) for row in rows]
    with parameters_fixed(model.module), first_token_only(model):
        if method.level == "word":
            return list(method.function(model, list(rows), **settings)), [None] * len(rows)
        return _explain_tokens(model, rows, encoded, method, settings)


def _explain_tokens(model: TextModel, rows: Sequence[Row], encoded: Sequence[Encoded], method: Method,
                    settings: Mapping[str, Any]) -> Found:
    found: dict[int, tuple[Float[np.ndarray, "token"], float | None]] = {}
    own = {name: value for name, value in settings.items() if name not in COMMON}
    for bucket in progress(length_buckets([len(one.ids) for one in encoded], ROWS), method.name):
        batch = token_batch(model, [rows[i] for i in bucket], [encoded[i] for i in bucket], settings["explained"])
        answer: TokenScores = method.function(batch, **own)
        gaps = [None] * len(bucket) if answer.delta is None else answer.delta.tolist()
        for i, tokens, gap in zip(bucket, answer.scores.cpu().numpy(), gaps, strict=True):
            n_words, special = len(rows[i].words), settings["normalise_special"]
            found[i] = word_scores(tokens, encoded[i].word_ids, n_words, special), gap
    return [found[i][0] for i in range(len(rows))], [found[i][1] for i in range(len(rows))]


@contextmanager
def parameters_fixed(module: nn.Module) -> Iterator[None]:
    """Within, no parameter asks for a gradient: only the embeddings' is wanted, and a sixth of the time is saved."""
    trainable = [p for p in module.parameters() if p.requires_grad]
    module.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trainable:
            parameter.requires_grad_(True)


def token_batch(model: TextModel, rows: Sequence[Row], encoded: Sequence[Encoded], explained: str) -> TokenBatch:
    """Rows of equal length at the seam: their embeddings, their score, their reference (words made padding)."""
    ids, mask = (t.to(device_of(model.module)) for t in pad(encoded, model.tokenizer.pad_token_id))
    is_word = _is_word(encoded).to(ids.device)
    reference_ids = torch.where(is_word, model.reference_ids(ids), ids)  # a prompt is not the sentence's
    with torch.no_grad():
        embeddings, reference = model.embed(ids), model.embed(reference_ids)
    score = class_score(model, [row.target for row in rows], explained)
    return TokenBatch(score, embeddings, mask, reference, is_word, tuple(row.seed for row in rows))


def _is_word(encoded: Sequence[Encoded]) -> Bool[torch.Tensor, "batch token"]:
    return torch.tensor([[word is not None for word in one.word_ids] for one in encoded])


def _encode(model: TextModel, row: Row, method: str) -> Encoded:
    """A row's tokens; the model's own complaint about a sentence gets the row's name."""
    if not 0 <= row.target < len(model.classes):
        names = ", ".join(f"{i} {name}" for i, name in enumerate(model.classes))
        raise TouchstoneError(f"row {row.row_id} asks {method} about class {row.target}; the model knows {names}")
    try:
        return model.encode([row.words])[0]
    except TouchstoneError as error:
        raise TouchstoneError(f"row {row.row_id} cannot be explained by {method}: {error}") from None


def _check_scores(scores: Sequence[Sequence[float]], rows: Sequence[Row], method: str) -> None:
    if len(scores) != len(rows):
        raise TouchstoneError(f"{method} explained {len(scores)} of {len(rows)} rows; return a list of scores a row")
    for row, found in zip(rows, scores, strict=True):
        if len(found) != len(row.words):
            raise TouchstoneError(f"{method} gave {len(found)} scores for the {len(row.words)} words of row "
                                  f"{row.row_id}; return one score per word")
        if not np.isfinite(np.asarray(found, dtype=float)).all():
            raise TouchstoneError(f"{method} gave a score that is not finite for row {row.row_id}; "
                                  "look at the model's output for that row, or leave it out")
