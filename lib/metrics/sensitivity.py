"""Sensitivity: how far an explanation moves when its input moves too little to mean anything
else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from ..attribution.batch import TokenBatch
from ..attribution.budget import TokenBudget
from ..attribution.explain import COMMON, token_batch
from ..attribution.registry import resolve_method
from ..attribution.seam import Row, TokenScores, word_scores
from ..core.errors import TouchstoneError
from ..core.seeds import seed_for
from ..models.shortcuts import first_token_only, parameters_fixed, without_padding
from ..models.text_model import Encoded, TextModel


def sensitivity(
    model: TextModel,
    rows: pd.DataFrame,
    method: str,
    settings: Mapping[str, Any] | None = None,
    *,
    radius: float = 0.1,
    n_samples: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Max-sensitivity (Yeh et al. 2019, def. 3.1): the largest change of an explanation in a
    ball around its input.

    The word embeddings of a row get uniform noise of at most `radius` times their standard
    deviation, `n_samples` times; the change is that of the word scores, as a share of their
    length. 0: nothing moves. 1.41, the root of 2: as far as a random explanation of equal
    length. It does not ask whether an explanation is right: a constant one has 0.

    Returns:
        method, row_id, sentence_idx, sensitivity_max, sensitivity_mean.

    Raises:
        TouchstoneError: for a method that reads words instead of embeddings.
    """
    chosen = resolve_method(method)
    if chosen.level != "token":
        raise TouchstoneError(
            f"{method} reads words, which take no noise; choose a method of level token"
        )
    about = chosen.settings(settings)
    function = partial(chosen.function, **{k: v for k, v in about.items() if k not in COMMON})
    asked = _as_rows(rows, chosen.name, seed)
    encoded = model.encode([row.words for row in asked])
    distances = np.zeros((len(asked), n_samples))
    model.module.eval()

    def work(part: list[int]) -> np.ndarray:
        some, tokens = [asked[i] for i in part], [encoded[i] for i in part]
        batch = token_batch(model, some, tokens, about["explained"])
        return _moves(function, batch, some, tokens, radius, n_samples)

    with parameters_fixed(model.module), first_token_only(model), without_padding(model):
        budget = TokenBudget.for_module(model.module)
        for part, found in budget.run([len(tokens.ids) for tokens in encoded], work):
            distances[part] = found  # (rows of the part, samples)
    columns = ["method", "row_id", "sentence_idx", "sensitivity_max", "sensitivity_mean"]
    table = rows.assign(
        method=chosen.name, sensitivity_max=distances.max(1), sensitivity_mean=distances.mean(1)
    )
    return table[columns].reset_index(drop=True)


def _moves(
    function: Callable[[TokenBatch], TokenScores],
    batch: TokenBatch,
    rows: Sequence[Row],
    encoded: Sequence[Encoded],
    radius: float,
    n_samples: int,
) -> Float[np.ndarray, "batch step"]:
    """How far the word scores of each row move in each draw of the noise."""
    # The method gets the same seed with and without noise: its own draws move nothing.
    first = _words(function(batch), rows, encoded)
    moved = [
        _words(function(_noisy(batch, rows, radius, draw)), rows, encoded)
        for draw in range(n_samples)
    ]
    return np.array([[_distance(a, b) for a, b in zip(first, words)] for words in moved]).T


def _as_rows(rows: pd.DataFrame, method: str, seed: int) -> list[Row]:
    return [
        Row(
            str(row.row_id),
            int(row.sentence_idx),
            int(row.target),
            list(row.sentence),
            seed_for(method, str(row.row_id), seed),
        )
        for row in rows.itertuples()
    ]


def _noisy(batch: TokenBatch, rows: Sequence[Row], radius: float, draw: int) -> TokenBatch:
    """The batch with noise on the words' embeddings; a row's noise depends on the row and the
    number of the draw alone.
    """
    noise = torch.zeros(batch.embeddings.shape)
    for i, row in enumerate(rows):
        generator = torch.Generator().manual_seed(seed_for("noise", row.row_id, draw))
        noise[i] = torch.rand(noise[i].shape, generator=generator) * 2 - 1
    # The standard deviation of the words' components, of all rows at once.
    inside = batch.is_word[..., None].to(batch.embeddings)
    n = inside.sum((1, 2), keepdim=True) * batch.embeddings.shape[2]
    mean = (batch.embeddings * inside).sum((1, 2), keepdim=True) / n
    spread = ((batch.embeddings - mean).square() * inside).sum((1, 2), keepdim=True) / (n - 1)
    scale = radius * spread.sqrt().nan_to_num() * inside
    return replace(batch, embeddings=batch.embeddings + scale * noise.to(batch.embeddings))


def _words(
    answer: TokenScores, rows: Sequence[Row], encoded: Sequence[Encoded]
) -> list[Float[np.ndarray, "token"]]:
    return [
        word_scores(scores, tokens.word_ids, len(row.words))
        for scores, row, tokens in zip(
            answer.scores.detach().cpu().numpy(), rows, encoded, strict=True
        )
    ]


def _distance(first: Float[np.ndarray, "token"], moved: Float[np.ndarray, "token"]) -> float:
    length = float(np.linalg.norm(first))
    return float(np.linalg.norm(moved - first)) / length if length > 0 else 0.0
