"""Partition SHAP: Owen values of a tree of spans, exactly or from some coalitions.

Exactly they take about 2/3 d^2 coalitions of d tokens, hours for a long review. With `max_evals`
spans are divided in the order of shap's Partition explainer: first where the most of the score is
at stake, and what is left undivided is spread evenly over its tokens.
"""

import time
from dataclasses import dataclass, field
from heapq import heappop, heappush

import torch
from jaxtyping import Float
from torch import Tensor

from ..core.errors import TouchstoneError
from .batch import TokenBatch
from .coalitions import worth_of
from .seam import TokenScores

_AT_ONCE = 10  # coalitions of a row in a round: shap's batch_size, on which its order depends
_LONG = 5_000  # coalitions (of about 86 tokens) from which on the time is predicted first
_TIMED = 4  # coalitions a row, on which the prediction rests
# Row, tokens that are present, tokens that arrive, weight.
_Node = tuple[int, list[int], list[int], float]


def partition_shap(
    batch: TokenBatch, *, max_evals: int | None = None, max_minutes: float = 30.0
) -> TokenScores:
    """Partition SHAP (Lundberg 2020): Owen values (Owen 1977) of a balanced tree of spans.

    Shapley values over the orders of arrival in which every span of the tree arrives in one piece:
    about d^2 coalitions instead of 2^d. Complete, with any number of evaluations.

    Args:
        batch: what is explained.
        max_evals: the most coalitions of a row that are scored (shap's default is 500); a span that
            is not divided shares its contribution evenly among its tokens. None: as many as exact
            values take.
        max_minutes: exact values that would take longer are refused.

    Raises:
        TouchstoneError: for fewer evaluations than the two that every row needs, and for exact
            values that would take longer than `max_minutes`; it tells the time.
    """
    if max_evals is None:
        _refuse_long(batch, max_minutes)
        scores, about = _exactly(batch), dict[str, Tensor]()
    elif max_evals < 2:
        raise TouchstoneError(
            f"Partition SHAP has max_evals = {max_evals}, and two are the full and the empty "
            "sentence; give 2 or more"
        )
    else:
        scores, spent = _by_need(batch, max_evals)
        about = {"samples": spent}
    there = scores.to(batch.embeddings)
    return TokenScores(there, there.sum(1) - batch.change(), about)


def n_coalitions(n_players: int) -> int:
    """How many different coalitions exact values take, by the recursion of the tree.

    >>> [n_coalitions(d) for d in (1, 2, 3, 64)]
    [2, 4, 8, 2732]
    """
    # Beyond the two ends, a span of both halves is seen in its context with one half there; each
    # half then has the contexts of its own divisions, with the other half absent and present.
    return 2 + _inner(n_players)


def _inner(n_players: int) -> int:
    if n_players < 2:
        return 0
    longer = (n_players + 1) // 2
    return 2 + 2 * (_inner(longer) + _inner(n_players - longer))


def _refuse_long(batch: TokenBatch, max_minutes: float) -> None:
    """Predict the time of exact values from a few coalitions; refuse where it is too long."""
    counts = [n_coalitions(int(n)) for n in batch.words.sum(1)]
    if max(counts) <= _LONG:
        return
    rows = torch.arange(len(counts)).repeat_interleave(_TIMED)
    present = torch.zeros(len(rows), batch.mask.shape[1], dtype=torch.bool)
    # Different ones, for equal coalitions are scored once.
    for i in range(len(rows)):
        present[i, : 1 + i % _TIMED] = True
    worth_of(batch, rows, present)  # the first pass warms up
    started = time.perf_counter()
    worth_of(batch, rows, present)
    minutes = (time.perf_counter() - started) / len(rows) * sum(counts) / 60
    if minutes > max_minutes:
        raise TouchstoneError(
            f"Partition SHAP of {int(batch.words.sum(1).max())} tokens takes {max(counts):,} "
            f"passes of the model, about {minutes:,.0f} minutes here; give max_evals (shap's "
            "default is 500), or allow more with max_minutes"
        )


def _halves(tokens: list[int]) -> tuple[list[int], list[int]]:
    """A span cut in the middle, the longer part first.

    >>> _halves([3, 4, 5])
    ([3, 4], [5])
    """
    cut = (len(tokens) + 1) // 2
    return tokens[:cut], tokens[cut:]


def _exactly(batch: TokenBatch) -> Float[Tensor, "batch token"]:
    """Exact values, level by level.

    A span's contribution, in a context of who is there already, is shared between its halves, each
    coming first or second.
    """
    length = batch.mask.shape[1]
    level: list[_Node] = [
        (i, [], row.nonzero()[:, 0].tolist(), 1.0) for i, row in enumerate(batch.words)
    ]
    # In float64: thousands of small contributions are added up.
    scores = torch.zeros(len(level), length, dtype=torch.float64)
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
            without, with_token = worth_of(batch, here, present).chunk(2)
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
    return scores


@dataclass(order=True)
class _Stake:
    """A span in a context, and the score without and with it: what dividing it may move.

    Sorted by how much is at stake, then by age (shap breaks ties by chance).
    """

    urgency: float
    age: int
    context: list[int] = field(compare=False)
    span: list[int] = field(compare=False)
    weight: float = field(compare=False)
    without: float = field(compare=False)
    with_it: float = field(compare=False)

    @property
    def share(self) -> float:
        """The contribution of each of its tokens, if they are not told apart."""
        return self.weight * (self.with_it - self.without) / len(self.span)


class _Division:
    """One row: the spans that are still to be divided, and what its tokens have got."""

    def __init__(self, row: int, players: list[int], length: int, max_evals: int) -> None:
        self.row, self.players, self.left, self.n_seen = row, players, max_evals - 2, 0
        self.scores, self.spent = torch.zeros(length, dtype=torch.float64), 2
        self.heap: list[_Stake] = []
        self.asked: list[_Stake] = []

    def put(
        self, context: list[int], span: list[int], weight: float, without: float, with_it: float
    ) -> None:
        """A span that may be divided; one without a contribution comes last."""
        urgency = -abs(with_it - without) * weight
        heappush(self.heap, _Stake(urgency, self.n_seen, context, span, weight, without, with_it))
        self.n_seen += 1

    def ask(self) -> list[list[int]]:
        """The coalitions of the next round: of each span in its context, either half alone."""
        self.asked, masks = [], list[list[int]]()
        while self.heap and (self.left <= 0 or len(masks) < min(_AT_ONCE, self.left)):
            stake = heappop(self.heap)
            if self.left <= 0 or len(stake.span) == 1:
                self.scores[stake.span] += stake.share
                continue
            self.asked.append(stake)
            masks += [stake.context + half for half in _halves(stake.span)]
        return masks

    def answer(self, worths: list[float]) -> None:
        """Each half with the other half absent and present, each with half of the weight."""
        self.left, self.spent = self.left - len(worths), self.spent + len(worths)
        for stake, first, other in zip(self.asked, worths[::2], worths[1::2], strict=True):
            halves, worth = _halves(stake.span), (first, other)
            for i, half in enumerate(halves):
                self.put(stake.context, half, stake.weight / 2, stake.without, worth[i])
                context = stake.context + halves[1 - i]
                self.put(context, half, stake.weight / 2, worth[1 - i], stake.with_it)


def _by_need(
    batch: TokenBatch, max_evals: int
) -> tuple[Float[Tensor, "batch token"], Float[Tensor, "batch"]]:
    """Values from at most `max_evals` coalitions a row (one more where the number is odd), and how
    many these were; the rounds of all rows go through the model together.
    """
    length = batch.mask.shape[1]
    rows = [
        _Division(i, row.nonzero()[:, 0].tolist(), length, max_evals)
        for i, row in enumerate(batch.words)
    ]
    ends = _worths(batch, [(one, [[], one.players]) for one in rows])
    for one, (empty, full) in zip(rows, ends, strict=True):
        if one.players:
            one.put([], one.players, 1.0, empty, full)
    while asking := [(one, masks) for one in rows if (masks := one.ask())]:
        for (one, _), worths in zip(asking, _worths(batch, asking), strict=True):
            one.answer(worths)
    spent = torch.tensor([float(one.spent) for one in rows])
    return torch.stack([one.scores for one in rows]), spent


def _worths(
    batch: TokenBatch, asking: list[tuple[_Division, list[list[int]]]]
) -> list[list[float]]:
    """The scores of each row's coalitions, which are lists of tokens that are present."""
    sizes = [len(masks) for _, masks in asking]
    rows = torch.tensor([one.row for one, _ in asking]).repeat_interleave(torch.tensor(sizes))
    present = torch.zeros(len(rows), batch.mask.shape[1], dtype=torch.bool)
    for mask, tokens in zip(present, (tokens for _, masks in asking for tokens in masks)):
        mask[tokens] = True
    return [part.tolist() for part in worth_of(batch, rows, present).double().split(sizes)]
