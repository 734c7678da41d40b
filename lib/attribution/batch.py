"""Rows of equal length at the seam, and the pass of the model that explanations of them share.

A forward pass keeps all that a backward pass needs, so every method that asks for a gradient at the
input shares it: gradients of logit and probability, DeepLift's multipliers, the score itself. The
score of the baselines is shared as well, and rows with the same baseline (all rows of one length,
where only special tokens differ from padding) ask for it once.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from .budget import TokenBudget
from .rules import secant
from .seam import Score, gradient_of, score_from

# As in captum's DeepLift: the activations that it knows, and the smallest difference in an
# activation's input at which its secant counts and not its slope.
_ELEMENTWISE = (nn.ReLU, nn.ELU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.Softplus)
_SMALLEST = 1e-10


@dataclass
class SharedPass:
    """The forward pass of a batch from which every gradient at the input is taken.

    All scores that use it are read from the same `score.logits`.

    Attributes:
        baseline_of: for each row the first one with the same baseline (and mask); None: to be
            looked at, for which a GPU must be waited for.
        means: the mean gradients on paths from the baselines to the input, and what is said of
            them, by how they were asked for (`path_integrals`).
    """

    score: Score
    embeddings: Float[Tensor, "batch token hidden"]
    mask: Int[Tensor, "batch token"]
    baselines: Float[Tensor, "batch token hidden"]
    baseline_of: tuple[int, ...] | None = None
    means: dict[Any, tuple[Tensor, dict[str, Tensor]]] = field(default_factory=dict, repr=False)
    _gradients: dict[Any, Tensor] = field(default_factory=dict, repr=False)

    @cached_property
    def inputs(self) -> Float[Tensor, "batch token hidden"]:
        """The embeddings as the leaf of the graph."""
        # Detached: the way back must end here and not run on into the word table.
        leaf = self.embeddings.detach().clone()
        has_gradient = getattr(getattr(self.score, "model", None), "has_gradient", True)
        return leaf.requires_grad_(has_gradient)

    @cached_property
    def modules(self) -> list[nn.Module]:
        """The parts of the network; walking through them takes as long as a small layer."""
        network = self.score.module
        return list(network.modules()) if isinstance(network, nn.Module) else []

    @cached_property
    def logits(self) -> Float[Tensor, "batch ..."]:
        """`score.logits` at the input, with its graph."""
        with torch.enable_grad(), _watched(self._switches, "at_input"):
            return self.score.logits(self.inputs, self.mask)

    @cached_property
    def logits_at_baselines(self) -> Float[Tensor, "batch ..."]:
        """`score.logits` at the baselines; equal baselines are run once."""
        firsts = sorted(set(self._firsts))
        rows: slice | Tensor = slice(0, len(firsts))
        if firsts != list(range(len(firsts))):
            rows = torch.tensor(firsts, device=self.mask.device)
        with torch.no_grad(), _watched(self._switches, "at_baselines"):
            logits = self.score.logits(self.baselines[rows], self.mask[rows])
        place = [firsts.index(first) for first in self._firsts]
        for switch in self._switches:
            switch.spread(place)
        return _spread(logits, place)

    @cached_property
    def _firsts(self) -> Sequence[int]:
        """For each row the first one whose baseline, run once, serves it too."""
        if not self.score.rows_alike:
            return range(len(self.mask))
        if self.baseline_of is not None:
            return self.baseline_of
        same = (self.baselines == self.baselines[:1]).all() & (self.mask == self.mask[:1]).all()
        return [0] * len(self.mask) if bool(same) else range(len(self.mask))

    @cached_property
    def _switches(self) -> "list[_Switch]":
        """The activations that DeepLift knows, each able to change its slope for its secant."""
        return [_Switch(module) for module in self.modules if type(module) in _ELEMENTWISE]

    def gradient(self, score: Score) -> Float[Tensor, "batch token hidden"]:
        """The gradient of each row's score in its own embeddings, kept by the score's `pick`."""
        # The pick alone tells scores apart: they share targets, model and logits.
        if score.pick not in self._gradients:
            self._gradients[score.pick] = self._gradient(score)
        return self._gradients[score.pick]

    def multipliers(self, score: Score) -> Float[Tensor, "batch token hidden"]:
        """DeepLift's multipliers by the rescale rule: the gradient, with secants for slopes."""
        if not self._switches:
            return self.gradient(score)
        self.logits_at_baselines  # noqa: B018  the switches note the activations at the baselines
        for switch in self._switches:
            switch.use_secants = True
        try:
            return self._gradient(score)
        finally:
            for switch in self._switches:
                switch.use_secants = False

    def _gradient(self, score: Score) -> Float[Tensor, "batch token hidden"]:
        # The graph serves other methods too.
        return gradient_of(score.of_logits(self.logits), self.inputs, retain_graph=True)


@dataclass(frozen=True)
class TokenBatch:
    """Sequences that are explained together: of equal length, or of similar length and padded.

    Padding stands on the right, belongs to no word, and is no token of `mask`.

    Attributes:
        score: what is explained; a plain function is taken through `seam.score_from`.
        embeddings: the word embeddings, as the model looks them up.
        mask: 1 for tokens and 0 for padding.
        baselines: the embeddings of the same sequences with their words replaced by padding.
        is_word: which tokens belong to a word (are neither special nor of a prompt).
        seeds: a number per row, for methods that draw.
        budget: how much may go through the model at once.
        shared: what methods on the same rows have in common; None: the batch has a pass of its own.
        baseline_of: see `SharedPass`.
    """

    score: Score
    embeddings: Float[Tensor, "batch token hidden"]
    mask: Int[Tensor, "batch token"]
    baselines: Float[Tensor, "batch token hidden"]
    is_word: Bool[Tensor, "batch token"]
    seeds: tuple[int, ...]
    budget: TokenBudget = field(default_factory=TokenBudget, compare=False)
    shared: SharedPass | None = field(default=None, compare=False, repr=False)
    baseline_of: tuple[int, ...] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # The class is frozen.
        object.__setattr__(self, "score", score_from(self.score))

    def row(self, i: int) -> "TokenBatch":
        """One row as a batch of its own."""
        only = slice(i, i + 1)
        return TokenBatch(
            self.score.for_rows(torch.tensor([i], device=self.mask.device)),
            self.embeddings[only],
            self.mask[only],
            self.baselines[only],
            self.is_word[only],
            self.seeds[only],
            self.budget,
        )

    def one_pass(self) -> SharedPass:
        """The shared pass, or one of the batch's own."""
        return self.shared or SharedPass(
            self.score, self.embeddings, self.mask, self.baselines, self.baseline_of
        )

    @cached_property
    def words(self) -> Bool[Tensor, "batch token"]:
        """`is_word` on the host, for methods that choose tokens there."""
        return self.is_word.cpu()

    def gradient(self) -> Float[Tensor, "batch token hidden"]:
        """The gradient of each row's score in its word embeddings."""
        return self.one_pass().gradient(self.score)

    def value(self) -> Float[Tensor, "batch"]:
        """The score of each row."""
        with torch.no_grad():
            return self.score.of_logits(self.one_pass().logits.detach())

    def change(self) -> Float[Tensor, "batch"]:
        """The score of each row minus that of its baseline: what complete explanations sum to."""
        shared = self.one_pass()
        with torch.no_grad():
            return self.score.of_logits(shared.logits.detach()) - self.score.of_logits(
                shared.logits_at_baselines
            )


class _Switch:
    """An activation module whose slope can give way to its secant from baseline to input."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.use_secants = module, False
        self.at_input: list[tuple[Tensor, Tensor]] = []
        self.at_baselines: list[tuple[Tensor, Tensor]] = []

    def note(self, where: str, inputs: Tensor, output: Tensor) -> Tensor | None:
        """Keep an activation; at the input the gradient may also pass by the module."""
        calls = getattr(self, where)
        calls.append((inputs.detach(), output.detach()))
        return _PassBy.apply(output, inputs, self, len(calls) - 1) if where == "at_input" else None

    def spread(self, place: Sequence[int]) -> None:
        """Give each row of the input its own baseline; rows may share one that was run once."""
        self.at_baselines = [(_spread(z, place), _spread(a, place)) for z, a in self.at_baselines]

    def secant(self, call: int) -> Tensor:
        """(f(z) - f(z')) / (z - z') at the input z and the baseline z'; the slope where z = z'."""
        (z, a), (z0, a0) = self.at_input[call], self.at_baselines[call]
        forward = type(self.module).forward.__get__(self.module)  # without the hooks
        return secant(forward, (z, z0), (a, a0), (z - z0).abs() < _SMALLEST)


def _spread(rows: Tensor, place: Sequence[int]) -> Tensor:
    """Rows in their places, some perhaps repeatedly."""
    if len(rows) == 1:  # a view: no memory for the copies of a single row
        return rows.expand(len(place), *rows.shape[1:])
    return rows if len(rows) == len(place) else rows[torch.tensor(place, device=rows.device)]


class _PassBy(torch.autograd.Function):
    """The activation's output, with a gradient that goes into it, or past it by the secant."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, inputs: Tensor, switch: _Switch, call: int) -> Tensor:
        """Hand the output on."""
        ctx.switch, ctx.call = switch, call
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        """Into the activation, or past it."""
        if ctx.switch.use_secants:
            return None, grad * ctx.switch.secant(ctx.call), None, None
        return grad, None, None, None


@contextmanager
def _watched(switches: list[_Switch], where: str) -> Iterator[None]:
    """Within, the switches note what their modules do."""
    with ExitStack() as hooks:
        for switch in switches:
            getattr(switch, where).clear()
            hooks.enter_context(
                switch.module.register_forward_hook(
                    lambda module, args, output, switch=switch: switch.note(where, args[0], output)
                )
            )
        yield
