"""Explanations from removing parts of a sentence and watching the score: Kernel SHAP and LIME."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from captum.attr import KernelShap
from jaxtyping import Float
from lime.lime_text import LimeTextExplainer
from torch import Tensor

from lib.attribution.gradients import ROWS_AT_ONCE, ScoreNetwork, drawing_from, mask_and_rows
from lib.attribution.seam import Row, TokenBatch, TokenScores, class_score
from lib.core.errors import TouchstoneError
from lib.models.text_model import Encoded, TextModel, device_of, length_buckets, pad

POOL = 32  # sentences whose altered texts LIME has scored together
Positions = tuple[int, ...]  # of the words that are left in an altered text
ScoreTexts = Callable[[Sequence[str]], Float[np.ndarray, "step class"]]


def kernel_shap(batch: TokenBatch, n_samples: int = 25) -> TokenScores:
    """Kernel SHAP (Lundberg & Lee 2017, theorem 2): Shapley values, by regression on random coalitions.

    The players are the tokens of words; who is absent is replaced by padding, special and prompt tokens
    always stay. Two of the samples are "all present" and "all absent", so at least three samples are needed.
    One row at a time with its own seed; the samples of a row go through the model together.
    """
    if n_samples < 3:
        raise TouchstoneError(
            f"Kernel SHAP has n_samples = {n_samples}, and two of them are the full and the "
            "empty sentence; give 3 or more"
        )
    with torch.no_grad():
        rows = [
            _shapley_values(batch.row(i), seed, n_samples) for i, seed in enumerate(batch.seeds)
        ]
    return TokenScores(torch.stack(rows))


def _shapley_values(row: TokenBatch, seed: int, n_samples: int) -> Float[Tensor, "token"]:
    is_word = row.is_word[0]
    scores = torch.zeros_like(row.embeddings[0, :, 0])
    if not (n_players := int(is_word.sum())):
        return scores
    if (
        n_players == 1
    ):  # captum's sampling needs two players; one player alone makes the whole difference
        scores[is_word] = row.score(row.embeddings, row.mask) - row.score(row.reference, row.mask)
        return scores
    # Tokens that are no players are the same with and without, so it does not matter whose number they carry.
    players = torch.where(is_word, is_word.cumsum(0) - 1, 0)[None, :, None]
    with drawing_from(seed):
        found = KernelShap(ScoreNetwork(row.score)).attribute(
            row.embeddings,
            row.reference,
            additional_forward_args=mask_and_rows(row),
            feature_mask=players,
            n_samples=n_samples,
            perturbations_per_eval=min(n_samples, ROWS_AT_ONCE),
            return_input_shape=False,
        )
    scores[is_word] = found.flatten().to(scores)
    return scores


def lime(
    model: TextModel, rows: Sequence[Row], explained: str = "probability", n_samples: int = 100
) -> list[Float[np.ndarray, "token"]]:
    """LIME (Ribeiro et al. 2016, eq. 1): a weighted ridge regression of the score on which words are left.

    The authors' package, given each sentence as the list of its positions ("0 1 2 ..."): two occurrences of a
    word are two features, and no word is ever found by comparing strings. Removed words are really gone: the
    text gets shorter. The package is run twice with the same draws: first to learn which texts it wants
    scored, then, when the texts of many rows have been scored together, to fit. Other settings are the
    package's own (cosine distance, kernel width 25, ridge penalty 1).
    """
    if n_samples < 2:
        raise TouchstoneError(
            f"LIME has n_samples = {n_samples}; one is the sentence itself, give 2 or more"
        )
    scores: list[Float[np.ndarray, "token"]] = []
    for start in range(0, len(rows), POOL):
        pool = rows[start : start + POOL]
        wanted = [_draw(row, n_samples) for row in pool]
        asked = [(i, left) for i, texts in enumerate(wanted) for left in sorted(set(texts))]
        answers = _score_texts(model, pool, explained, asked)
        scores += [
            _fit(row, n_samples, [answers[i, left] for left in wanted[i]])
            for i, row in enumerate(pool)
        ]
    return scores


def _draw(row: Row, n_samples: int) -> list[Positions]:
    """The altered texts that LIME draws for a row."""
    asked: list[Positions] = []

    def listen(texts: Sequence[str]) -> Float[np.ndarray, "step class"]:
        """Note the texts; any answer will do, for LIME draws before it asks."""
        asked.extend(tuple(int(position) for position in text.split()) for text in texts)
        return np.zeros((len(texts), 1))

    _run_lime(row, n_samples, listen)
    return asked


def _fit(row: Row, n_samples: int, answers: Sequence[float]) -> Float[np.ndarray, "token"]:
    """The weights that LIME fits to the scores of the texts that it drew, in the order of its drawing."""
    return _run_lime(row, n_samples, lambda texts: np.array(answers)[:, None])


def _run_lime(row: Row, n_samples: int, score_texts: ScoreTexts) -> Float[np.ndarray, "token"]:
    explainer = LimeTextExplainer(
        split_expression=str.split, feature_selection="none", random_state=row.seed
    )
    positions = " ".join(str(position) for position in range(len(row.words)))
    found = explainer.explain_instance(positions, score_texts, labels=(0,), num_samples=n_samples)
    weights = np.zeros(len(row.words))
    for position, weight in found.local_exp[0]:
        weights[position] = weight
    return weights


@torch.no_grad()
def _score_texts(
    model: TextModel, rows: Sequence[Row], explained: str, asked: Sequence[tuple[int, Positions]]
) -> dict[tuple[int, Positions], float]:
    """The score of altered texts (row number, positions that are left), batched by length over all rows."""
    device, pad_id = device_of(model.module), model.tokenizer.pad_token_id
    empty = Encoded(
        [pad_id], [None]
    )  # a model without special tokens (GPT-2) reads nothing as one end-of-text
    encoded = [
        one if one.ids else empty
        for one in model.encode(
            [[rows[i].words[position] for position in left] for i, left in asked]
        )
    ]
    answers: dict[tuple[int, Positions], float] = {}
    for bucket in length_buckets([len(one.ids) for one in encoded], ROWS_AT_ONCE):
        ids, mask = (t.to(device) for t in pad([encoded[i] for i in bucket], pad_id))
        score = class_score(model, [rows[asked[i][0]].target for i in bucket], explained)
        answers |= zip(
            [asked[i] for i in bucket], score(model.embed(ids), mask).tolist(), strict=True
        )
    return answers
