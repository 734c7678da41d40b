"""LIME on a pool of rows: words are really removed, and every text that comes of it goes through the model once.

The same draws and, to rounding, the same numbers as `perturbation.lime`, which lets the authors' package do the
drawing and fitting row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lib.attribution.budget import TokenBudget
from lib.attribution.regression import all_masks, fit_all, weighted_ridge
from lib.attribution.seam import Row, WordScores, class_score
from lib.core.errors import TouchstoneError
from lib.models.text_model import TextModel, device_of

POOL = 64  # sentences whose altered texts are scored together
KERNEL_WIDTH, PENALTY = 25.0, 1.0  # of the authors' package


def lime(
    model: TextModel,
    rows: Sequence[Row],
    explained: str = "probability",
    n_samples: int = 100,
    *,
    tolerance: float | None = None,
    exact: bool = False,
) -> list[Float[np.ndarray, "token"]] | WordScores:
    """LIME (Ribeiro et al. 2016, eq. 1): a weighted ridge regression of the score on which words are left.

    With `exact` a row with at most n_samples subsets of words is fitted to all of them, each weighing what it weighs
    on average over the draws. With a `tolerance` a row stops when the error of its shares is below it
    (`regression.fit_all`), at n_samples at the latest.
    """
    if n_samples < 2:
        raise TouchstoneError(
            f"LIME has n_samples = {n_samples}; one is the sentence itself, give 2 or more"
        )
    parts = [
        _pooled(TextPool(model, rows[start : start + POOL], explained), n_samples, tolerance, exact)
        for start in range(0, len(rows), POOL)
    ]
    scores = [one for part in parts for one in part.scores]
    if tolerance is None and not exact:
        return scores
    return WordScores(
        scores,
        {name: [x for part in parts for x in part.about[name]] for name in ("samples", "error")},
    )


def _pooled(pool: TextPool, n_samples: int, tolerance: float | None, exact: bool) -> WordScores:
    lengths = [len(row.words) for row in pool.rows]
    few = [i for i, d in enumerate(lengths) if d == 0 or exact and 2**d <= n_samples]
    drawn = [i for i in range(len(lengths)) if i not in set(few)]
    scores, samples, error = (
        [np.zeros(d) for d in lengths],
        [0.0] * len(lengths),
        [0.0] * len(lengths),
    )
    if drawn:
        widest = max(lengths[i] for i in drawn)
        masks = torch.stack(
            [lime_masks(lengths[i], n_samples, pool.rows[i].seed, widest) for i in drawn]
        )
        n_words = torch.tensor([lengths[i] for i in drawn])
        weights = kernel((masks.sum(2) - (widest - n_words)[:, None]) / n_words[:, None])

        def worth(rows: Tensor, start: int, stop: int) -> Tensor:
            return pool.scores([drawn[row] for row in rows.tolist()], masks[rows, start:stop])

        found = fit_all(masks, weights, worth, PENALTY, tolerance)
        for at, i in enumerate(drawn):
            scores[i] = found.scores[at, : lengths[i]].numpy()
            samples[i], error[i] = found.samples[at].item(), found.error[at].item()
    for i in few:
        scores[i], samples[i] = _expected(pool, i, n_samples), 2.0 ** lengths[i]
    return WordScores(scores, {"samples": samples, "error": error})


def _expected(pool: TextPool, row: int, n_samples: int) -> Float[np.ndarray, "token"]:
    """The fit to all subsets of words, weighted by how often LIME draws them on average."""
    if not (d := len(pool.rows[row].words)):
        return np.zeros(0)
    masks = all_masks(d)
    left = masks.sum(1)
    ways = torch.tensor([comb(d, int(k)) for k in left], dtype=torch.float64)
    counts = torch.where(left == d, 1.0, (n_samples - 1) / (d * ways))
    weights = counts * kernel(left / d)
    return weighted_ridge(masks[None], pool.scores([row], masks[None]), weights[None], PENALTY)[
        0
    ].numpy()


def lime_masks(
    n_words: int, n_samples: int, seed: int, width: int | None = None
) -> Bool[Tensor, "step token"]:
    """Who is left in each of LIME's draws: all words first, then a random number of words is taken out at random.

    The draws of the authors' package with random_state `seed`. Columns beyond the words, up to `width`, are True.
    """
    draw, masks = np.random.RandomState(seed), np.ones((n_samples, width or n_words), dtype=bool)
    for i, size in enumerate(draw.randint(1, n_words + 1, n_samples - 1), start=1):
        masks[i, draw.permutation(n_words)[:size]] = False
    return torch.from_numpy(masks)


def kernel(share_left: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """LIME's weight of a text by the share of words that are left: sqrt(exp(-(100 cosine distance)^2 / 25^2)).

    The cosine between a mask and the full one is the root of the share that is left.
    """
    distance = 100 * (1 - share_left.double().sqrt())
    return torch.exp(-(distance**2) / KERNEL_WIDTH**2).sqrt()


class TextPool:
    """Rows with some of their words left out, scored; equal texts, of one row or of several, are scored once."""

    def __init__(self, model: TextModel, rows: Sequence[Row], explained: str) -> None:
        self.model, self.rows, self.explained = model, rows, explained
        self.budget = TokenBudget.for_device(device_of(model.module))
        self.n_texts = 0  # that went through the model
        self._words: dict[tuple[int, bytes], int] = {}  # (row, mask) to the number of its text
        self._ids: dict[tuple[int, ...], int] = {}
        self._logits: list[Tensor] = []

    def scores(
        self, rows: Sequence[int], masks: Bool[Tensor, "batch step token"]
    ) -> Float[Tensor, "batch step"]:
        """For each of the rows (by number) the score of its class when only the masked-in words are left."""
        asked = masks.numpy()
        keys = [
            [(row, asked[at, step].tobytes()) for step in range(masks.shape[1])]
            for at, row in enumerate(rows)
        ]
        new = {
            key: asked[at, step]
            for at, line in enumerate(keys)
            for step, key in enumerate(line)
            if key not in self._words
        }
        if new:
            self._run(new)
        texts = torch.tensor([[self._words[key] for key in line] for line in keys])
        different, which = texts.unique(return_inverse=True)
        logits = torch.stack([self._logits[i] for i in different.tolist()]).to(
            device_of(self.model.module)
        )
        pick = class_score(self.model, [self.rows[row].target for row in rows], self.explained)
        return torch.stack(
            [
                pick.for_rows(torch.tensor([at] * len(line))).of_logits(logits[line])
                for at, line in enumerate(which)
            ]
        ).cpu()

    @torch.inference_mode()
    def _run(self, new: dict[tuple[int, bytes], np.ndarray]) -> None:
        """Encode the texts and run those whose ids were not seen before, in exact-length batches."""
        texts = [
            [word for word, left in zip(self.rows[row].words, mask) if left]
            for (row, _), mask in new.items()
        ]
        pad_id, start = self.model.tokenizer.pad_token_id, len(self._ids)
        for key, one in zip(new, self.model.encode(texts), strict=True):
            ids = tuple(one.ids) or (
                pad_id,
            )  # a model without special tokens (GPT-2) reads nothing as one end-of-text
            self._words[key] = self._ids.setdefault(ids, len(self._ids))
        todo = list(self._ids)[start:]
        self._logits += [torch.empty(0)] * len(todo)
        self.n_texts += len(todo)
        for part, found in self.budget.run(
            [len(ids) for ids in todo], lambda part: self._forward([todo[i] for i in part])
        ):
            for i, logits in zip(part, found.cpu(), strict=True):
                self._logits[start + i] = logits

    def _forward(self, texts: Sequence[tuple[int, ...]]) -> Float[Tensor, "batch class"]:
        ids: Int[Tensor, "batch token"] = torch.tensor(texts, device=device_of(self.model.module))
        return self.model.logits(self.model.embed(ids), torch.ones_like(ids))
