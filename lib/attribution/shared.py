"""One graph, several cotangents: what explanations of the same rows have in common is computed once.

A forward pass keeps all that a backward pass needs, so every method that asks for a gradient at the input shares it:
gradients of logit and probability, DeepLift's multipliers, the score itself. The score of the reference is shared as
well, and rows with the same reference (all rows of one length, where only special tokens differ from padding) ask
for it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lib.attribution.seam import Score, TokenBatch

Run = Callable[[Tensor, Tensor], Tensor]
ELEMENTWISE = (
    nn.ReLU,
    nn.ELU,
    nn.LeakyReLU,
    nn.Sigmoid,
    nn.Tanh,
    nn.Softplus,
)  # as in captum's DeepLift
SMALLEST = 1e-10  # a difference in an activation's input below which its slope counts, not its secant; as in captum


@dataclass
class SharedPass:
    """The forward pass of a batch from which every gradient at the input is taken; made by `shared_pass`.

    `run` maps (embeddings, mask) to what the scores are read from: a classifier's logits, or the score itself.
    `rows_alike`: it treats every row alike, whichever row it is (logits do; a score with its own word per row does not).
    """

    run: Run
    embeddings: Float[Tensor, "batch token hidden"]
    mask: Int[Tensor, "batch token"]
    reference: Float[Tensor, "batch token hidden"]
    network: nn.Module | None
    rows_alike: bool = False
    _gradients: dict[Any, Tensor] = field(default_factory=dict, repr=False)

    @cached_property
    def inputs(self) -> Float[Tensor, "batch token hidden"]:
        """The embeddings as the leaf of the graph."""
        return self.embeddings.detach().clone().requires_grad_()

    @cached_property
    def modules(self) -> list[nn.Module]:
        """The parts of the network; walking through them takes as long as a small layer."""
        return list(self.network.modules()) if self.network is not None else []

    @cached_property
    def switches(self) -> list[_Switch]:
        """The activations that DeepLift knows, each able to change its slope for its secant."""
        return [_Switch(module) for module in self.modules if type(module) in ELEMENTWISE]

    @cached_property
    def outputs(self) -> Tensor:
        """What `run` says of the input, with its graph."""
        with torch.enable_grad(), _watched(self.switches, "at_input"):
            return self.run(self.inputs, self.mask)

    @cached_property
    def at_reference(self) -> Tensor:
        """What `run` says of the reference; equal references are run once."""
        flat = self.reference.flatten(1)
        same = (
            self.rows_alike
            and bool((flat == flat[:1]).all())
            and bool((self.mask == self.mask[:1]).all())
        )
        rows = slice(0, 1) if same else slice(None)
        with torch.no_grad(), _watched(self.switches, "at_reference"):
            found = self.run(self.reference[rows], self.mask[rows])
        return found.expand(len(flat), *found.shape[1:])

    def gradient(
        self, value: Float[Tensor, "batch"], key: Any
    ) -> Float[Tensor, "batch token hidden"]:
        """The gradient of each row's value, read from `outputs`, in its own embeddings; kept under `key`."""
        if key not in self._gradients:
            self._gradients[key] = torch.autograd.grad(value.sum(), self.inputs, retain_graph=True)[
                0
            ]
        return self._gradients[key]

    def multipliers(
        self, value: Float[Tensor, "batch"], key: Any
    ) -> Float[Tensor, "batch token hidden"]:
        """DeepLift's multipliers by the rescale rule: the gradient, with secants for the slopes of `switches`."""
        if not self.switches:
            return self.gradient(value, key)
        self.at_reference  # noqa: B018  the switches note the activations at the reference
        for switch in self.switches:
            switch.use_secants = True
        try:
            return torch.autograd.grad(value.sum(), self.inputs, retain_graph=True)[0]
        finally:
            for switch in self.switches:
                switch.use_secants = False


def shared_pass(
    score: Score,
    embeddings: Float[Tensor, "batch token hidden"],
    mask: Int[Tensor, "batch token"],
    reference: Float[Tensor, "batch token hidden"],
) -> SharedPass:
    """The pass of a score: over its logits where it has some (see `ClassScore`), else over the score itself."""
    has_logits, network = hasattr(score, "of_logits"), getattr(score, "module", None)
    return SharedPass(
        score.model.logits if has_logits else score,
        embeddings,
        mask,
        reference,
        network if isinstance(network, nn.Module) else None,
        has_logits or not hasattr(score, "for_rows"),
    )


def pass_of(batch: TokenBatch) -> SharedPass:
    """The batch's shared pass, or one of its own."""
    return batch.shared or shared_pass(batch.score, batch.embeddings, batch.mask, batch.reference)


def value_of(score: Score, outputs: Tensor) -> Float[Tensor, "batch"]:
    """The score of each row, read from the outputs of a shared pass."""
    return score.of_logits(outputs) if hasattr(score, "of_logits") else outputs


def gradient_of(batch: TokenBatch) -> Float[Tensor, "batch token hidden"]:
    """The gradient of each row's score in its word embeddings."""
    shared = pass_of(batch)
    return shared.gradient(value_of(batch.score, shared.outputs), _name(batch.score))


def multipliers_of(batch: TokenBatch) -> Float[Tensor, "batch token hidden"]:
    """DeepLift's multipliers of each row's score."""
    shared = pass_of(batch)
    return shared.multipliers(value_of(batch.score, shared.outputs), _name(batch.score))


def change_of(batch: TokenBatch) -> Float[Tensor, "batch"]:
    """By how much each row's score exceeds that of its reference: what complete explanations sum to."""
    shared = pass_of(batch)
    with torch.no_grad():
        return value_of(batch.score, shared.outputs.detach()) - value_of(
            batch.score, shared.at_reference
        )


def _name(score: Score) -> Any:
    return getattr(score, "pick", None)


class _Switch:
    """An activation module whose slope can be exchanged for its secant between reference and input."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.use_secants = module, False
        self.at_input: list[tuple[Tensor, Tensor]] = []
        self.at_reference: list[tuple[Tensor, Tensor]] = []

    def note(self, where: str, inputs: Tensor, output: Tensor) -> Tensor | None:
        """Keep an activation; at the input also let the gradient pass by the module when secants are wanted."""
        calls = getattr(self, where)
        calls.append((inputs.detach(), output.detach()))
        return _PassBy.apply(output, inputs, self, len(calls) - 1) if where == "at_input" else None

    def secant(self, call: int) -> Tensor:
        """(f(z) - f(z')) / (z - z') at the call's input z and reference z'; the slope where they are equal."""
        (z, a), (z0, a0) = self.at_input[call], self.at_reference[call]
        step = z - z0
        flat = step.abs() < SMALLEST
        if not flat.any():
            return (a - a0) / step
        with torch.enable_grad():
            at = z.clone().requires_grad_()
            slope = torch.autograd.grad(type(self.module).forward(self.module, at).sum(), at)[0]
        return torch.where(flat, slope, (a - a0) / torch.where(flat, 1, step))


class _PassBy(torch.autograd.Function):
    """Its output is the activation's; its gradient goes into the activation, or past it with the secant."""

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
    for switch in switches:
        getattr(switch, where).clear()
    hooks = [
        switch.module.register_forward_hook(
            lambda module, args, output, switch=switch: switch.note(where, args[0], output)
        )
        for switch in switches
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
