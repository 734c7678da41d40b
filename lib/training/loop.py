"""The one training loop: epochs of batches, a loss, a step, and what held-out data say after it.

A long training may be done in parts of some epochs each, by one process after the other (`Parts`);
it ends with the numbers of one that was never stopped.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim.lr_scheduler import LRScheduler

from ..core.errors import TouchstoneError
from ..core.files import atomic_path

PRECISIONS = ["float32", "bfloat16"]  # of the matrix products in a training


class PartEnded(Exception):
    """A training has come to the end of its part; its checkpoint is kept."""


@dataclass(frozen=True)
class Parts:
    """How a training is divided.

    Attributes:
        path: the checkpoint, one file for all parts: each writes over the one before.
        mark: of what is trained, and by which code; a checkpoint with another mark is not read.
        epochs: of one part; after so many a checkpoint is written.
        until: the epoch after which this process stops; 0: it goes on to the end.
    """

    path: Path
    mark: str
    epochs: int
    until: int = 0


@dataclass
class _Training:
    """All that a training is at the end of an epoch; the global stream of random numbers is too."""

    parameters: Sequence[nn.Parameter]
    optimiser: torch.optim.Optimizer
    schedule: LRScheduler | None
    generators: Sequence[torch.Generator]
    best_values: list[Tensor]
    best: float = math.inf
    curve: list[tuple[float, ...]] = field(default_factory=list)

    def save(self, parts: Parts) -> None:
        """Write it: tensors as safetensors, the rest as JSON beside them."""
        device = self.parameters[0].device
        content = {
            "mark": parts.mark,
            "curve": self.curve,
            "best": self.best,
            "best_values": self.best_values,
            "values": [p.detach() for p in self.parameters],
            "gradients": [p.grad for p in self.parameters],  # some trainings add them up
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule and self.schedule.state_dict(),
            "draws": [one.get_state() for one in (torch.default_generator, *self.generators)],
            "device_draws": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        }
        with atomic_path(parts.path) as part:
            tensors: dict[str, Tensor] = {}
            plain = json.dumps(_taken_apart(content, tensors))
            save_file(tensors, part, {"content": plain})

    def load(self, parts: Parts) -> None:
        """Become what was saved; stay where there is nothing with this mark."""
        kept = _read(parts.path) if parts.path.is_file() else {}
        if kept.get("mark") != parts.mark:
            return
        self.curve, self.best = [tuple(line) for line in kept["curve"]], kept["best"]
        with torch.no_grad():
            for p, value, gradient in zip(
                self.parameters, kept["values"], kept["gradients"], strict=True
            ):
                p.copy_(value)
                p.grad = None if gradient is None else gradient.to(p.device)
        self.best_values = [value.to(self.parameters[0].device) for value in kept["best_values"]]
        self.optimiser.load_state_dict(kept["optimiser"])
        if self.schedule is not None:
            self.schedule.load_state_dict(kept["schedule"])
        streams = torch.default_generator, *self.generators
        for generator, state in zip(streams, kept["draws"], strict=True):
            generator.set_state(state)
        if kept["device_draws"] is not None:
            torch.cuda.set_rng_state(kept["device_draws"], self.parameters[0].device)


_TENSOR = "tensor"  # a dictionary of this one key stands for a tensor


def _taken_apart(content: Any, tensors: dict[str, Tensor]) -> Any:
    """The content with a name in the place of each tensor, which is put into `tensors`."""
    if isinstance(content, Tensor):
        name = str(len(tensors))
        tensors[name] = content.detach().clone().contiguous()
        return {_TENSOR: name}
    if isinstance(content, dict):  # an optimiser counts its parameters: keys are numbers
        return {"items": [[key, _taken_apart(v, tensors)] for key, v in content.items()]}
    if isinstance(content, list | tuple):
        return [_taken_apart(value, tensors) for value in content]
    return content


def _put_together(content: Any, tensors: dict[str, Tensor]) -> Any:
    """The reverse of `_taken_apart`; tuples come back as lists."""
    if isinstance(content, dict):
        if _TENSOR in content:
            return tensors[content[_TENSOR]]
        return {key: _put_together(value, tensors) for key, value in content["items"]}
    if isinstance(content, list):
        return [_put_together(value, tensors) for value in content]
    return content


def _read(path: Path) -> dict[str, Any]:
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.offset_keys()}
            content = json.loads((file.metadata() or {})["content"])
    except (SafetensorError, OSError, KeyError, json.JSONDecodeError) as error:
        raise TouchstoneError(
            f"the checkpoint {path} is damaged ({type(error).__name__}); delete it, and "
            "the training begins anew"
        ) from None
    found: dict[str, Any] = _put_together(content, tensors)
    return found


def descend(
    parameters: Sequence[nn.Parameter],
    optimiser: torch.optim.Optimizer,
    epochs: int,
    batches: Callable[[], Iterable[Any]],
    losses: Callable[[Any], Sequence[Tensor]],
    validate: Callable[[], Sequence[float]],
    schedule: LRScheduler | None = None,
    max_norm: float = math.inf,
    accumulate: bool = False,
    by_rows: bool = False,
    keep_best: bool = False,
    parts: Parts | None = None,
    generators: Sequence[torch.Generator] = (),
) -> list[tuple[float, ...]]:
    """The learning curve of a gradient descent: epoch, mean of each training loss, measures.

    Args:
        batches: called once an epoch; gives the batches of that epoch.
        losses: the terms of a batch's loss, whose sum is minimised and whose means are reported.
        validate: called after each epoch; its measures stand at the end of a line of the curve.
        schedule: takes a step after each step of the optimiser.
        max_norm: gradients longer than this are shortened to it.
        accumulate: see `take_step`.
        by_rows: whether the means weigh a batch by its length; otherwise all batches weigh alike.
        keep_best: leave the parameters at the epoch with the lowest first measure, not the last.
        parts: go on from the checkpoint, if there is one, and stop where this part ends.
        generators: what `batches` and `losses` draw from, beside the global stream of torch. No
            draw may be carried over from one epoch to the next in any other way.

    Raises:
        PartEnded: the part has ended before the training.
    """
    best_values = [p.detach().clone() for p in parameters if keep_best]
    now = _Training(parameters, optimiser, schedule, generators, best_values)
    if parts:
        now.load(parts)
    for epoch in range(len(now.curve) + 1, epochs + 1):
        if parts and 0 < parts.until < epoch:
            raise PartEnded(f"{epoch - 1} of {epochs} epochs are done")
        weights, noted = [], []
        for batch in batches():
            terms = losses(batch)
            take_step(sum(terms[1:], terms[0]), parameters, optimiser, max_norm, accumulate)
            if schedule is not None:
                schedule.step()
            weights.append(len(batch) if by_rows else 1)
            noted.append(torch.stack([term.detach() for term in terms]))
        # Read once an epoch: to read a loss is to wait for the device.
        columns = torch.stack(noted).T.tolist() if noted else []
        means = [
            sum(loss * weight for loss, weight in zip(column, weights, strict=True)) / sum(weights)
            for column in columns
        ]
        measures = validate()
        now.curve.append((epoch, *means, *measures))
        # Strictly better: of equal epochs the first is kept.
        if keep_best and measures[0] < now.best:
            now.best, now.best_values = measures[0], [p.detach().clone() for p in parameters]
        if parts and epoch < epochs and epoch % parts.epochs == 0:
            if not accumulate:
                optimiser.zero_grad()  # the next step would, and they need not be kept
            now.save(parts)
    with torch.no_grad():
        # Without keep_best there are no values, and nothing is put back.
        for parameter, value in zip(parameters, now.best_values, strict=keep_best):
            parameter.copy_(value)
    return now.curve


def take_step(
    loss: Tensor,
    parameters: Sequence[nn.Parameter],
    optimiser: torch.optim.Optimizer,
    max_norm: float,
    accumulate: bool = False,
) -> None:
    """One optimiser step. Gradients are zeroed, computed, clipped, then used.

    `accumulate` is what the released code of OLA does: gradients are never zeroed, and they are
    clipped only after they were used.
    """
    if not accumulate:
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, max_norm)
        optimiser.step()
    else:
        loss.backward()
        optimiser.step()
        nn.utils.clip_grad_norm_(parameters, max_norm)


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    """Within, matrix products read their factors in `precision`, one of `PRECISIONS`.

    Weights, sums and steps stay in float32. bfloat16 pays on processors that multiply in it; others
    go on in float32, and a GPU uses the nearest that it has. Attention is computed step by step,
    for the fused kernel of the CPU is slow in it.
    """
    if precision == "float32":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
