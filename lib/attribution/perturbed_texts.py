"""LIME on a pool of rows: words are really removed, and equal texts are scored once.

Other explanations by altered texts use its scorer of token ids (`sequence_logits`). LIME has the
same draws and, to rounding, the same numbers as `captum_route.lime`, which lets the authors'
package do the drawing and fitting row by row.
"""

from collections.abc import Sequence
from math import comb

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..core.errors import TouchstoneError
from ..core.seeds import to_device
from ..models.shortcuts import (
    first_token_only,
    ignores_padding,
    parameters_fixed,
    without_padding,
)
from ..models.text_model import TextModel, device_of
from .budget import TokenBudget
from .regression import all_masks, fit_all, in_pairs, weighted_ridge
from .seam import Row, WordScores, class_score

Ids = tuple[int, ...]
_HOST = torch.device("cpu")
_POOL = 64  # sentences whose altered texts are scored together
_KERNEL_WIDTH, _PENALTY = 25.0, 1.0  # of the authors' package
_ANCHORS = 1  # the text itself is the first draw


def lime(
    model: TextModel,
    rows: Sequence[Row],
    explained: str = "probability",
    n_samples: int = 100,
    *,
    tolerance: float | None = None,
    exact: bool = False,
    paired_sampling: bool = True,
) -> WordScores:
    """LIME (Ribeiro et al. 2016, eq. 1): a weighted ridge regression on which words are left.

    With `exact` a row with at most n_samples subsets of words is fitted to all of them, each
    weighing what it weighs on average over the draws. With a `tolerance` a row stops when the error
    of its shares is below it (`regression.fit_all`), at n_samples at the latest; then the draws
    after the text itself come in pairs of opposites (`regression.in_pairs`), unless
    `paired_sampling` is off.
    """
    if n_samples < 2:
        raise TouchstoneError(
            f"LIME has n_samples = {n_samples}; one is the sentence itself, give 2 or more"
        )
    how = n_samples, tolerance, exact, paired_sampling
    found = [
        of_row
        for start in range(0, len(rows), _POOL)
        for of_row in _pooled(TextPool(model, rows[start : start + _POOL], explained), *how)
    ]
    about = {"samples": [row[1] for row in found], "error": [row[2] for row in found]}
    return WordScores([row[0] for row in found], about if tolerance is not None or exact else {})


def _pooled(
    pool: "TextPool", n_samples: int, tolerance: float | None, exact: bool, is_paired: bool
) -> list[tuple[Float[np.ndarray, "token"], float, float]]:
    """A row's scores, the number of its texts, and the error of its largest share."""
    lengths = [len(row.words) for row in pool.rows]
    few = {i for i, d in enumerate(lengths) if d == 0 or exact and 2**d <= n_samples}
    drawn = [i for i in range(len(lengths)) if i not in few]
    found = {}
    if drawn:
        # Rows of all lengths in one fit: words beyond a row's own are present in every draw, which
        # gives them coefficient 0.
        widest = max(lengths[i] for i in drawn)
        masks = torch.stack(
            [lime_masks(lengths[i], n_samples, pool.rows[i].seed, widest) for i in drawn]
        )
        n_words = torch.tensor([lengths[i] for i in drawn])
        if tolerance is not None and is_paired:
            own = torch.arange(widest) < n_words[:, None]  # (batch, tokens)
            masks = torch.stack([in_pairs(*pair, _ANCHORS) for pair in zip(masks, own)])
        weights = kernel((masks.sum(2) - (widest - n_words)[:, None]) / n_words[:, None])

        def worth(rows: Tensor, start: int, stop: int) -> Tensor:
            return pool.scores([drawn[row] for row in rows.tolist()], masks[rows, start:stop])

        fit = fit_all(masks, weights, worth, _PENALTY, tolerance, _ANCHORS)
        for i, of_row, n, error in zip(drawn, *fit, strict=True):
            found[i] = of_row[: lengths[i]].numpy(), n.item(), error.item()
    found |= {i: (_expected(pool, i, n_samples), 2.0 ** lengths[i], 0.0) for i in sorted(few)}
    return [found[i] for i in range(len(lengths))]


def _expected(pool: "TextPool", row: int, n_samples: int) -> Float[np.ndarray, "token"]:
    """The fit to all subsets of words, weighted by how often LIME draws them on average."""
    if not (d := len(pool.rows[row].words)):
        return np.zeros(0)
    masks = all_masks(d)
    left = masks.sum(1)
    ways = torch.tensor([comb(d, int(k)) for k in left], dtype=torch.float64)
    # The full text is drawn once for sure; sizes are drawn alike, and sets alike within a size.
    counts = torch.where(left == d, 1.0, (n_samples - 1) / (d * ways))
    weights = counts * kernel(left / d)
    return weighted_ridge(masks[None], pool.scores([row], masks[None]), weights[None], _PENALTY)[
        0
    ].numpy()


def lime_masks(
    n_words: int, n_samples: int, seed: int, width: int | None = None
) -> Bool[Tensor, "step token"]:
    """Who is left in each of LIME's draws: all words, then a random number of them is taken out.

    The draws of the authors' package with random_state `seed`. Columns beyond the words, up to
    `width`, are True.
    """
    draw, masks = np.random.RandomState(seed), np.ones((n_samples, width or n_words), dtype=bool)
    # All sizes first, then the sets, as the authors' package draws: the order is the seed's
    # meaning.
    for i, size in enumerate(draw.randint(1, n_words + 1, n_samples - 1), start=1):
        masks[i, draw.permutation(n_words)[:size]] = False
    return torch.from_numpy(masks)


def kernel(share_left: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """LIME's weight of a text: sqrt(exp(-(100 cosine distance)^2 / 25^2)).

    The cosine between a mask and the full one is the root of the share of words that are left.
    """
    distance = 100 * (1 - share_left.double().sqrt())
    return torch.exp(-(distance**2) / _KERNEL_WIDTH**2).sqrt()


class TextPool:
    """Scores of rows with some words left out; equal texts, also of several rows, are run once."""

    def __init__(self, model: TextModel, rows: Sequence[Row], explained: str) -> None:
        self.model, self.rows, self.explained = model, rows, explained
        self._budget = TokenBudget.for_module(model.module)
        self._text_of: dict[tuple[int, bytes], int] = {}  # (row, mask) to the number of its text
        self._number: dict[Ids, int] = {}
        self.logits = torch.zeros(0, len(model.classes))  # (texts that were run, classes)

    def scores(
        self, rows: Sequence[int], masks: Bool[Tensor, "batch step token"]
    ) -> Float[Tensor, "batch step"]:
        """For each row (by number) its class's score when only the masked-in words are left."""
        masks_of = {
            # Bytes, for an array cannot be a key.
            (row, mask.tobytes()): mask
            for row, of_row in zip(rows, masks.numpy(), strict=True)
            for mask in of_row
        }
        self._run({key: mask for key, mask in masks_of.items() if key not in self._text_of})
        texts = [
            self._text_of[row, mask.tobytes()]
            for row, of_row in zip(rows, masks.numpy(), strict=True)
            for mask in of_row
        ]
        n_steps = masks.shape[1]
        targets = [self.rows[row].target for row in rows for _ in range(n_steps)]
        # On the host, where the logits of all texts are.
        score = class_score(self.model, targets, self.explained, _HOST)
        return score.of_logits(self.logits[texts]).view(-1, n_steps)

    def _run(self, new: dict[tuple[int, bytes], np.ndarray]) -> None:
        """Encode the texts and score those whose ids were not seen before."""
        texts = [
            [word for word, left in zip(self.rows[row].words, mask) if left]
            for (row, _), mask in new.items()
        ]
        for key, tokens in zip(new, self.model.encode(texts), strict=True):
            self._text_of[key] = self._number.setdefault(tuple(tokens.ids), len(self._number))
        # Numbers are given in the order of arrival, so the new texts stand at the end.
        unseen = list(self._number)[len(self.logits) :]
        logits = sequence_logits(self.model, unseen, self._budget)
        self.logits = torch.cat([self.logits.to(logits), logits])


def text_logits(model: TextModel, texts: Sequence[Sequence[str]]) -> Float[Tensor, "batch class"]:
    """The class scores of sentences given as words, on the CPU; equal sentences are run once."""
    number = {text: i for i, text in enumerate(dict.fromkeys(map(tuple, texts)))}
    encoded = model.encode([list(text) for text in number])
    logits = sequence_logits(model, [tuple(tokens.ids) for tokens in encoded])
    return logits[[number[tuple(text)] for text in texts]]


@torch.inference_mode()
def sequence_logits(
    model: TextModel, sequences: Sequence[Ids], budget: TokenBudget | None = None
) -> Float[Tensor, "batch class"]:
    """The class scores of token ids, on the CPU; no token is read as one padding token.

    Memory that runs out halves the batch (`budget.TokenBudget`); no row depends on its neighbours.

    Args:
        model: whose class scores are wanted.
        sequences: token ids, of any lengths.
        budget: how much may go through at once; None: a fresh one for the model's device.
    """
    if not sequences:
        return torch.zeros(0, len(model.classes))
    pad_id, device = model.tokenizer.pad_token_id, device_of(model.module)
    budget = budget or TokenBudget.for_module(model.module)
    asked = [ids or (pad_id,) for ids in sequences]
    distinct = list(dict.fromkeys(asked))
    logits_of: dict[Ids, Tensor] = {}
    model.module.eval()

    def forward(part: list[int]) -> Tensor:
        longest = len(distinct[part[-1]])
        if len(distinct[part[0]]) == longest:
            ids = to_device(torch.tensor([distinct[i] for i in part]), device)  # (batch, tokens)
            with without_padding(model):
                return model.logits(model.embed(ids), torch.ones_like(ids))
        padded = [distinct[i] + (pad_id,) * (longest - len(distinct[i])) for i in part]
        mask = [[1] * len(distinct[i]) + [0] * (longest - len(distinct[i])) for i in part]
        ids = to_device(torch.tensor(padded), device)
        return model.logits(model.embed(ids), to_device(torch.tensor(mask), device))

    lengths = [len(ids) for ids in distinct]
    # Neighbouring lengths may share a pass; a GPU would have to be waited for at each mask.
    freely = device.type == "cpu" and len(set(lengths)) > 1 and ignores_padding(model)
    with parameters_fixed(model.module), first_token_only(model):
        for part, logits in budget.run(lengths, forward, freely=freely):
            logits_of |= zip((distinct[i] for i in part), logits.cpu(), strict=True)
    return torch.stack([logits_of[ids] for ids in asked])
