"""Explanations from coalitions of tokens: Kernel SHAP, Shapley values, occlusion.

The players are the tokens of words; who is absent is replaced by the reference (padding), special
and prompt tokens always stay. Coalitions are scored once, however often they are drawn, and those
of all rows of a batch together.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..core.errors import TouchstoneError
from .batch import TokenBatch
from .regression import all_masks, fit_all, in_pairs, shapley_values
from .seam import TokenScores

# The weight of the full and the empty sentence in Kernel SHAP's regression, as in captum.
_ANCHOR, _ANCHORS = 1e6, 2
_LARGEST_EXACT = 16  # players of whom every coalition is tried


@torch.inference_mode()
def worth_of(
    batch: TokenBatch, rows: Int[Tensor, "step"], present: Bool[Tensor, "step token"]
) -> Float[Tensor, "step"]:
    """The score of coalitions: of which row of the batch, and which of its tokens are present.

    Questions and answers lie on the host, where coalitions are drawn and sorted: the device is
    waited for once, and gets no coalition twice.
    """
    # (steps, 1 + tokens): the row, and who is present
    asked = torch.cat([rows[:, None].int(), (present | ~batch.words[rows]).int()], 1)
    # Short rows draw the same coalition again and again; each is run once.
    different, which = asked.unique(dim=0, return_inverse=True)

    def score(part: list[int]) -> Tensor:
        # One copy for both; the parts of a budget are neighbours.
        there = different[part[0] : part[-1] + 1].to(batch.mask.device)
        # (steps, tokens, 1): who is present, over all components of an embedding.
        here, keep = there[:, 0].long(), there[:, 1:].bool()[..., None]
        inputs = torch.where(keep, batch.embeddings[here], batch.baselines[here])
        return batch.score.for_rows(here)(inputs, batch.mask[here])

    lengths = [batch.mask.shape[1]] * len(different)
    scores = [of_part for _, of_part in batch.budget.run(lengths, score)]
    return torch.cat(scores).to(batch.embeddings.dtype).cpu()[which] if scores else torch.zeros(0)


def kernel_shap(
    batch: TokenBatch,
    n_samples: int = 25,
    *,
    tolerance: float | None = None,
    exact: bool = False,
    paired_sampling: bool = True,
) -> TokenScores:
    """Kernel SHAP (Lundberg & Lee 2017, theorem 2): Shapley values, by regression on coalitions.

    The draws are captum's, each row's from its own seed; two are the full and the empty sentence.
    With `exact` a row with at most n_samples coalitions gets its Shapley values by their
    definition. With a `tolerance` a row stops when the error of its shares is below it
    (`regression.fit_all`); then the draws come in pairs of opposites (`regression.in_pairs`),
    unless `paired_sampling` is off.
    """
    if n_samples < 3:
        raise TouchstoneError(
            f"Kernel SHAP has n_samples = {n_samples}, and two of them are the full and the "
            "empty sentence; give 3 or more"
        )
    n_players = batch.words.sum(1)
    draws = [
        _drawn(is_word, n_samples, seed)
        for is_word, seed in zip(batch.words, batch.seeds, strict=True)
    ]
    if tolerance is not None and paired_sampling:
        draws = [in_pairs(*pair, _ANCHORS) for pair in zip(draws, batch.words, strict=True)]
    masks = torch.stack(draws)  # (batch, steps, tokens)
    weights = torch.ones(masks.shape[:2], dtype=torch.float64)
    # The full and the empty sentence have infinite weight in the theorem.
    weights[:, :_ANCHORS] = _ANCHOR
    few = (2.0**n_players <= n_samples) & torch.tensor(exact)
    drawn = (~few & (n_players > 1)).nonzero()[:, 0]

    def worth(rows: Tensor, start: int, stop: int) -> Tensor:
        here = drawn[rows]
        present = masks[here, start:stop].flatten(0, 1)  # (batch * steps, tokens)
        return worth_of(batch, here.repeat_interleave(stop - start), present).view(len(rows), -1)

    scores = torch.zeros(batch.mask.shape, dtype=torch.float64)
    samples, error = torch.zeros(len(scores)), torch.zeros(len(scores))
    if len(drawn):
        fit = fit_all(masks[drawn], weights[drawn], worth, 0.0, tolerance, _ANCHORS)
        scores[drawn], samples[drawn], error[drawn] = fit
    rest = (few | (n_players <= 1)).nonzero()[:, 0]
    scores[rest], samples[rest] = _exact(batch, rest.tolist()), 2.0 ** n_players[rest].float()
    about = {"samples": samples} if tolerance is not None or exact else {}
    if tolerance is not None:
        about["error"] = error
    return TokenScores(scores.to(batch.embeddings), about=about)


def _drawn(is_word: Bool[Tensor, "token"], n_samples: int, seed: int) -> Bool[Tensor, "step token"]:
    """A row's coalitions as captum draws them: all, none, then sizes by Shapley's kernel."""
    d, generator = int(is_word.sum()), torch.Generator().manual_seed(seed)
    masks = torch.ones(n_samples, len(is_word), dtype=torch.bool)
    masks[1] = False
    if d > 1:
        sizes = torch.arange(d, dtype=torch.float)
        odds = torch.tensor(d - 1) / (sizes * (d - sizes))
        # The division above gave infinity for the empty coalition, which is drawn already.
        odds[0] = 0.0
        races, orders = torch.empty(2, n_samples - 2, d)
        # Size first, then a random order: the draws are captum's, number by number. One size drawn
        # by `multinomial` is the winner of a race of exponential times, which are all that is drawn
        # here; who wins, and where an order is cut, is worked out for all draws at once.
        for race, order in zip(races, orders, strict=True):
            race.exponential_(generator=generator)
            order.normal_(generator=generator)
        drawn = (odds / odds.sum() / races).argmax(1)
        least = orders.sort(1).values.gather(1, (d - drawn - 1)[:, None])
        masks[2:, is_word] = orders > least
    return masks | ~is_word


def exact_shapley(batch: TokenBatch) -> TokenScores:
    """Shapley values (Shapley 1953) by their definition, from all 2^d coalitions of d tokens.

    Raises TouchstoneError for a row with more than 16 tokens: 65 536 sentences are enough.
    """
    if (most := int(batch.words.sum(1).max())) > _LARGEST_EXACT:
        raise TouchstoneError(
            f"a row has {most} tokens, and exact Shapley values need all 2^{most} coalitions; at "
            f"most {_LARGEST_EXACT} tokens are taken: leave the row out, or use Kernel SHAP or "
            "Shapley sampling"
        )
    scores = _exact(batch, range(len(batch.mask))).to(batch.embeddings)
    return TokenScores(
        scores, scores.sum(1) - batch.change(), {"samples": 2.0 ** batch.words.sum(1)}
    )


def _exact(batch: TokenBatch, rows: Sequence[int]) -> Float[Tensor, "batch token"]:
    """Exact values of some rows, whose coalitions are scored together as long as they are few."""
    scores = torch.zeros(len(rows), batch.mask.shape[1], dtype=torch.float64)
    n_players = [int(batch.words[row].sum()) for row in rows]
    left = list(range(len(rows)))
    while left:
        sizes = np.cumsum([2 ** n_players[i] for i in left])
        some = left[: max(1, int((sizes <= 2**_LARGEST_EXACT).sum()))]
        left, masks = left[len(some) :], [all_masks(n_players[i]) for i in some]
        present = []
        for i, of_row in zip(some, masks, strict=True):
            present.append(torch.zeros(len(of_row), scores.shape[1], dtype=torch.bool))
            present[-1][:, batch.words[rows[i]]] = of_row
        n_masks = torch.tensor([len(of_row) for of_row in masks])
        here = torch.tensor([rows[i] for i in some]).repeat_interleave(n_masks)
        worths = worth_of(batch, here, torch.cat(present)).split(n_masks.tolist())
        for i, of_row, worth in zip(some, masks, worths, strict=True):
            scores[i, batch.words[rows[i]]] = shapley_values(worth, of_row)
    return scores


def shapley_sampling(batch: TokenBatch, n_samples: int = 25) -> TokenScores:
    """Shapley value sampling (Castro et al. 2009): mean contributions over random orders.

    Complete with any number of orders. `error` is the standard error of the least certain token's
    mean, as a share.
    """
    length, players = batch.mask.shape[1], [row.nonzero()[:, 0] for row in batch.words]
    present = []
    orders = [
        _orders(len(p), n_samples, seed) for p, seed in zip(players, batch.seeds, strict=True)
    ]
    for who, order in zip(players, orders, strict=True):
        place = order.argsort(1)  # when each player arrives
        # (orders, players + 1, players): who has arrived after 0, 1, ... arrivals
        steps = place[:, None, :] < torch.arange(len(who) + 1)[None, :, None]
        masks = torch.zeros(n_samples, len(who) + 1, length, dtype=torch.bool)
        masks[..., who] = steps
        present.append(masks.flatten(0, 1))
    rows = torch.arange(len(present)).repeat_interleave(torch.tensor([len(p) for p in present]))
    worths = worth_of(batch, rows, torch.cat(present))
    scores = torch.zeros(batch.mask.shape, dtype=torch.float64)
    errors = torch.zeros(len(scores))
    for i, part in enumerate(worths.split([len(p) for p in present])):
        gains = part.view(n_samples, -1).diff(dim=1).double()  # in the order of arrival
        by_player = torch.zeros_like(gains).scatter_(1, orders[i], gains)
        scores[i, players[i]] = by_player.mean(0)
        if n_samples > 1 and by_player.numel():
            size = by_player.mean(0).abs().sum().clamp(min=1e-30)
            errors[i] = (by_player.std(0) / n_samples**0.5).max() / size
    scores = scores.to(batch.embeddings)
    return TokenScores(scores, scores.sum(1) - batch.change(), {"error": errors})


def _orders(n_players: int, n_samples: int, seed: int) -> Int[Tensor, "step token"]:
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randperm(n_players, generator=generator) for _ in range(n_samples)])


def occlusion(batch: TokenBatch) -> TokenScores:
    """Occlusion (Zeiler & Fergus 2014; Li et al. 2016): the fall of the score without one token."""
    rows, tokens = batch.words.nonzero(as_tuple=True)
    # The whole sentence is asked for once a row, not once a token.
    everyone = torch.arange(len(batch.mask))
    present = torch.ones(len(everyone) + len(rows), batch.mask.shape[1], dtype=torch.bool)
    present[len(everyone) + torch.arange(len(rows)), tokens] = False
    worths = worth_of(batch, torch.cat([everyone, rows]), present)
    scores = torch.zeros(batch.mask.shape, dtype=worths.dtype)
    scores[rows, tokens] = worths[rows] - worths[len(everyone) :]
    return TokenScores(scores.to(batch.embeddings))
