"""Explanations from coalitions of tokens: Kernel SHAP, Shapley and Owen values, occlusion.

The players are the tokens of words; who is absent is replaced by the reference (padding), special
and prompt tokens always stay. Coalitions are scored once, however often they are drawn, and those
of all rows of a batch together.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..core.errors import TouchstoneError
from .batch import TokenBatch
from .regression import all_masks, fit_all, shapley_values
from .seam import TokenScores

# The weight of the full and the empty sentence in Kernel SHAP's regression, as in captum.
_ANCHOR = 1e6
_LARGEST_EXACT = 16  # players of whom every coalition is tried
# Row, tokens that are present, tokens that arrive, weight.
_Node = tuple[int, list[int], list[int], float]


@torch.inference_mode()
def worth_of(
    batch: TokenBatch, rows: Int[Tensor, "step"], present: Bool[Tensor, "step token"]
) -> Float[Tensor, "step"]:
    """The score of coalitions: of which row of the batch, and which of its tokens are present."""
    # (steps, 1 + tokens): the row, and who is present
    asked = torch.cat([rows[:, None], (present | ~batch.is_word[rows]).long()], 1)
    # Short rows draw the same coalition again and again; each is run once.
    different, which = asked.unique(dim=0, return_inverse=True)

    def score(part: list[int]) -> Tensor:
        # (steps, tokens, 1): who is present, over all components of an embedding.
        here, keep = different[part, 0], different[part, 1:].bool()[..., None]
        inputs = torch.where(keep, batch.embeddings[here], batch.baselines[here])
        return batch.score.for_rows(here)(inputs, batch.mask[here])

    values = batch.embeddings.new_zeros(len(different))
    for part, scores in batch.budget.run([batch.mask.shape[1]] * len(different), score):
        values[part] = scores
    return values[which].clone()


def kernel_shap(
    batch: TokenBatch, n_samples: int = 25, *, tolerance: float | None = None, exact: bool = False
) -> TokenScores:
    """Kernel SHAP (Lundberg & Lee 2017, theorem 2): Shapley values, by regression on coalitions.

    The draws are captum's, each row's from its own seed; two are the full and the empty sentence.
    With `exact` a row with at most n_samples coalitions gets its Shapley values by their
    definition. With a `tolerance` a row stops when the error of its shares is below it
    (`regression.fit_all`).
    """
    if n_samples < 3:
        raise TouchstoneError(
            f"Kernel SHAP has n_samples = {n_samples}, and two of them are the full and the "
            "empty sentence; give 3 or more"
        )
    n_players = batch.is_word.sum(1)
    draws = [
        _drawn(is_word, n_samples, seed)
        for is_word, seed in zip(batch.is_word, batch.seeds, strict=True)
    ]
    masks = torch.stack(draws)  # (batch, steps, tokens)
    weights = torch.ones(masks.shape[:2], dtype=torch.float64, device=masks.device)
    # The full and the empty sentence have infinite weight in the theorem.
    weights[:, :2] = _ANCHOR
    few = (2.0**n_players <= n_samples) & torch.tensor(exact, device=masks.device)
    drawn = (~few & (n_players > 1)).nonzero()[:, 0]

    def worth(rows: Tensor, start: int, stop: int) -> Tensor:
        here = drawn[rows]
        present = masks[here, start:stop].flatten(0, 1)  # (batch * steps, tokens)
        return worth_of(batch, here.repeat_interleave(stop - start), present).view(len(rows), -1)

    scores = torch.zeros_like(batch.embeddings[..., 0])
    samples, error = torch.zeros_like(scores[:, 0]), torch.zeros_like(scores[:, 0])
    if len(drawn):
        fit = fit_all(masks[drawn], weights[drawn], worth, 0.0, tolerance, anchors=2)
        scores[drawn], samples[drawn], error[drawn] = (part.to(scores) for part in fit)
    for i in (few | (n_players <= 1)).nonzero()[:, 0].tolist():
        scores[i], samples[i] = _exact(batch, i), 2.0 ** float(n_players[i])
    about = {"samples": samples} if tolerance is not None or exact else {}
    if tolerance is not None:
        about["error"] = error
    return TokenScores(scores, about=about)


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
        odds = odds / odds.sum()
        for i in range(2, n_samples):
            size = int(torch.multinomial(odds, 1, True, generator=generator))
            # Size first, then a random order: the draws are captum's, number by number.
            order = torch.randn(1, d, generator=generator)[0]
            masks[i, is_word.cpu()] = order > torch.kthvalue(order, d - size).values
    return masks.to(is_word.device) | ~is_word


def exact_shapley(batch: TokenBatch) -> TokenScores:
    """Shapley values (Shapley 1953) by their definition, from all 2^d coalitions of d tokens.

    Raises TouchstoneError for a row with more than 16 tokens: 65 536 sentences are enough.
    """
    if (most := int(batch.is_word.sum(1).max())) > _LARGEST_EXACT:
        raise TouchstoneError(
            f"a row has {most} tokens, and exact Shapley values need all 2^{most} coalitions; at "
            f"most {_LARGEST_EXACT} tokens are taken: leave the row out, or use Kernel SHAP or "
            "Shapley sampling"
        )
    scores = torch.stack([_exact(batch, i) for i in range(len(batch.mask))])
    return TokenScores(
        scores, scores.sum(1) - batch.change(), {"samples": 2.0 ** batch.is_word.sum(1)}
    )


def _exact(batch: TokenBatch, row: int) -> Float[Tensor, "token"]:
    is_word = batch.is_word[row]
    masks = all_masks(int(is_word.sum())).to(is_word.device)
    present = torch.zeros(len(masks), len(is_word), dtype=torch.bool, device=is_word.device)
    present[:, is_word] = masks
    worths = worth_of(batch, torch.full((len(masks),), row, device=is_word.device), present)
    scores = torch.zeros_like(batch.embeddings[row, :, 0])
    scores[is_word] = shapley_values(worths, masks).to(scores)
    return scores


def shapley_sampling(batch: TokenBatch, n_samples: int = 25) -> TokenScores:
    """Shapley value sampling (Castro et al. 2009): mean contributions over random orders.

    Complete with any number of orders. `error` is the standard error of the least certain token's
    mean, as a share.
    """
    length, players = batch.mask.shape[1], [row.nonzero()[:, 0] for row in batch.is_word.cpu()]
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
    worths = worth_of(batch, *(t.to(batch.mask.device) for t in (rows, torch.cat(present))))
    scores = torch.zeros_like(batch.embeddings[..., 0])  # (batch, tokens)
    errors = torch.zeros_like(scores[:, 0])
    for i, part in enumerate(worths.split([len(p) for p in present])):
        gains = part.view(n_samples, -1).diff(dim=1).double()  # in the order of arrival
        by_player = torch.zeros_like(gains).scatter_(1, orders[i].to(gains.device), gains)
        scores[i, players[i]] = by_player.mean(0).to(scores)
        if n_samples > 1 and by_player.numel():
            size = by_player.mean(0).abs().sum().clamp(min=1e-30)
            errors[i] = (by_player.std(0) / n_samples**0.5).max() / size
    return TokenScores(scores, scores.sum(1) - batch.change(), {"error": errors})


def _orders(n_players: int, n_samples: int, seed: int) -> Int[Tensor, "step token"]:
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randperm(n_players, generator=generator) for _ in range(n_samples)])


def occlusion(batch: TokenBatch) -> TokenScores:
    """Occlusion (Zeiler & Fergus 2014; Li et al. 2016): the fall of the score without one token."""
    rows, tokens = batch.is_word.nonzero(as_tuple=True)
    present = torch.ones(len(rows), batch.mask.shape[1], dtype=torch.bool, device=rows.device)
    present[torch.arange(len(rows), device=rows.device), tokens] = False
    everyone = torch.arange(len(batch.mask), device=rows.device)
    # The whole sentence is asked for once a row, not once a token.
    whole = worth_of(batch, everyone, torch.ones_like(batch.is_word))
    scores = torch.zeros_like(batch.embeddings[..., 0])
    scores[rows, tokens] = whole[rows] - worth_of(batch, rows, present)
    return TokenScores(scores)


def _halves(tokens: list[int]) -> tuple[list[int], list[int]]:
    """A span cut in the middle, the longer part first.

    >>> _halves([3, 4, 5])
    ([3, 4], [5])
    """
    cut = (len(tokens) + 1) // 2
    return tokens[:cut], tokens[cut:]


def partition_shap(batch: TokenBatch) -> TokenScores:
    """Partition SHAP (Lundberg 2020): Owen values (Owen 1977) of a balanced tree of spans, exactly.

    Shapley values over the orders of arrival in which every span of the tree arrives in one piece:
    about d^2 coalitions instead of 2^d. Level by level: a span's contribution, in a context of who
    is there already, is shared between its halves, each coming first or second.
    """
    length, device = batch.mask.shape[1], batch.mask.device
    level: list[_Node] = [
        (i, [], row.nonzero()[:, 0].tolist(), 1.0) for i, row in enumerate(batch.is_word)
    ]
    # In float64: thousands of small contributions are added up.
    scores = torch.zeros(len(level), length, dtype=torch.float64, device=device)
    # Level by level, so that all spans of a depth share passes of the model.
    while level:
        leaves = [node for node in level if len(node[2]) == 1]
        if leaves:
            rows, contexts, spans, weights = zip(*leaves, strict=True)
            before = torch.zeros(len(leaves), length, dtype=torch.bool)
            for i, context in enumerate(contexts):
                before[i, context] = True
            after = before.clone()
            after[range(len(leaves)), [token for (token,) in spans]] = True
            here, present = torch.tensor(rows).repeat(2), torch.cat([before, after])
            without, with_token = worth_of(batch, here.to(device), present.to(device)).chunk(2)
            gains = (with_token.double() - without.double()).tolist()
            for row, (token,), weight, gain in zip(rows, spans, weights, gains, strict=True):
                scores[row, token] += weight * gain
        inner = [node for node in level if len(node[2]) > 1]
        level = [
            child
            for row, context, span, weight in inner
            for first, other in (_halves(span), _halves(span)[::-1])
            for child in (
                (row, context, first, weight / 2),
                (row, context + other, first, weight / 2),
            )
        ]
    scores = scores.to(batch.embeddings)
    return TokenScores(scores, scores.sum(1) - batch.change())
