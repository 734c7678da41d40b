"""A pretend accelerator: what is wrong on a GPU is wrong on it, and no GPU is needed.

A tensor on the device "pretend" wraps a CPU tensor, so its numbers are the CPU's. What CUDA refuses
is refused: tensors of two devices in one call, a CPU generator for numbers on the device, NumPy's
view of the device's memory. What CUDA does slowly is counted by the line of lib that asked for it
(`Traffic`): the host waiting for the device, copies to the device, rows read by an index that lies
on the host, float64.

    with pretend_device() as device:
        model.module.to(device)
        ...
        assert not device.traffic.waits

How it works: PyTorch keeps a device type free for backends of others ("PrivateUse1"), and lets one
be written in Python. A dispatch mode sees every call below autograd, also calls that only make a
tensor, and runs it on the wrapped tensors. A few calls never arrive there, because C++ reads the
device's memory (`tolist`, lists as indices, `torch.tensor`) or looks for a kernel of the device
(fused attention, fused LSTM cells): these are exchanged while the device is there, and put back.
The name alone stays, for PyTorch cannot unlearn it. It has no streams: order and overlap of copies,
memory that runs out, and speed are not what it can show.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

import lib

NAME = "pretend"
OUTSIDE = "outside of lib"
LIB = str(Path(lib.__file__).parent)
# Calls whose answer the host needs before it can go on: a number, or how large the result is.
WAITING = {
    f"aten::{name}"
    for name in (
        "_local_scalar_dense is_nonzero equal nonzero masked_select bincount repeat_interleave "
        "_unique2 unique_dim unique_consecutive unique_dim_consecutive _linalg_check_errors "
        "_linalg_eigh linalg_cholesky linalg_inv"
    ).split()
}
# Rows are added into rows, several into one.
UNORDERED = {"aten::index_add", "aten::index_add_"}
INDEXING = {"aten::index", "aten::_unsafe_index", "aten::index_put", "aten::index_put_"}
INDEXING |= {"aten::_index_put_impl_"}
# Their host tensor is meant to be one: the lengths of packed rows.
MIXED_BY_DESIGN = {"aten::_pack_padded_sequence", "aten::_pack_padded_sequence_backward"}


@dataclass
class Traffic:
    """What a run cost beside arithmetic, each by "file:line (function)" of lib.

    What was asked for outside of lib (a test moves its model there) is no part of the totals.

    Attributes:
        waits: the host waits for the device (item, bool, cpu, tolist, nonzero, ...).
        copies: tensors that go from the host to the device (a 0-dimensional one goes for nothing
            where a kernel takes it as a number).
        host_indices: rows of a device tensor named by an index on the host, a copy each.
        doubles: results in float64, which most GPUs compute at 1/64 of the speed of float32.
        unordered: sums whose order is left to chance, so that a run gives other bits than the last.
        pinned: tensors of the host that were pinned, so that their copy needs no wait.
    """

    waits: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    host_indices: Counter[str] = field(default_factory=Counter)
    doubles: Counter[str] = field(default_factory=Counter)
    unordered: Counter[str] = field(default_factory=Counter)
    pinned: Counter[str] = field(default_factory=Counter)

    def clear(self) -> None:
        """Begin to count anew."""
        for counter in vars(self).values():
            counter.clear()

    def totals(self) -> dict[str, int]:
        """How often in all, by kind."""
        kinds = {"waits": self.waits, "copies": self.copies + self.host_indices}
        return {
            kind: sum(n for line, n in lines.items() if line != OUTSIDE)
            for kind, lines in (kinds | {"doubles": self.doubles}).items()
        }

    def __str__(self) -> str:
        """The lines, the dearest first."""
        kinds = {"waits": self.waits, "copies": self.copies + self.host_indices}
        return "\n".join(
            f"{kind} {line}: {n}"
            for kind, lines in kinds.items()
            for line, n in lines.most_common()
        )


class PretendTensor(torch.Tensor):
    """A tensor of the device; `raw` is where its numbers really are."""

    raw: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, raw: torch.Tensor, requires_grad: bool = False) -> PretendTensor:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            raw.size(),
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=torch.device(NAME, 0),
            requires_grad=requires_grad,
        )
        made.raw = raw
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} on a pretend tensor outside of `pretend_device`")

    # What makes it a "traceable" subclass: `module.to` then exchanges its parameters in place.
    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["raw"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, meta: Any, size: Any, stride: Any) -> PretendTensor:
        return PretendTensor(inner["raw"])

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        if id(self) not in memo:
            copied: torch.Tensor = PretendTensor(self.raw.clone())
            if isinstance(self, torch.nn.Parameter):
                copied = torch.nn.Parameter(copied, self.requires_grad)
            memo[id(self)] = copied
        return memo[id(self)]

    def __getitem__(self, index: Any) -> torch.Tensor:
        return torch.Tensor.__getitem__(self, _index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, torch.Tensor):
            value = PretendTensor(torch.tensor(value, dtype=self.dtype))  # a fill: no copy
        torch.Tensor.__setitem__(self, _index(index), value)


def is_here(thing: Any) -> bool:
    """Whether something is a tensor of the device."""
    return isinstance(thing, torch.Tensor) and thing.device.type == NAME


def names_it(device: Any) -> bool:
    """Whether an argument `device` names the device."""
    return device is not None and torch.device(device).type == NAME


class PretendMode(TorchDispatchMode):
    """Every call of PyTorch while the device is there."""

    def __init__(self, traffic: Traffic) -> None:
        super().__init__()
        self.traffic = traffic

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        name = func._schema.name
        if not any(map(is_here, tensors)) and not names_it(kwargs.get("device")):
            return func(*args, **kwargs)  # the host's own business
        if name in ("aten::_to_copy", "aten::copy_"):
            return self._copy(func, args, dict(kwargs))
        self._check(name, args, kwargs, tensors)
        self._count(name, args, kwargs)
        if name in _FUSED:
            return tree_map(PretendTensor, _FUSED[name](*tree_map(_raw, args)))
        if name == "aten::_pack_padded_sequence":
            self.traffic.copies[asking_line()] += 1
            packed, sizes = func(*tree_map(_raw, args), **kwargs)
            return PretendTensor(packed), sizes  # the sizes stay on the host
        options = {key: value for key, value in kwargs.items() if key != "pin_memory"}
        if names_it(options.get("device")):
            options["device"] = "cpu"
        result = func(*tree_map(_raw, args), **tree_map(_raw, options))
        if name in ("aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero"):
            return result
        return self._wrapped(result, tensors)

    def _copy(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
        """Within the device, to it, or from it."""
        if func._schema.name == "aten::copy_":
            target, source = args[:2]
            target_here = is_here(target)
        else:
            source, device = args[0], kwargs.get("device")
            target_here = is_here(source) if device is None else names_it(device)
        if target_here and not is_here(source):
            self.traffic.copies[asking_line()] += 1
        if is_here(source) and not target_here:
            self.traffic.waits[asking_line()] += 1
        if func._schema.name == "aten::copy_":
            _raw(target).copy_(_raw(source))
            return target
        if kwargs.get("device") is not None:
            kwargs["device"] = "cpu"
        kwargs.pop("non_blocking", None)
        made = func(_raw(source), *args[1:], **kwargs)
        return self._wrapped(made, []) if target_here else made

    def _check(
        self, name: str, args: tuple[Any, ...], kwargs: Any, tensors: list[torch.Tensor]
    ) -> None:
        """What CUDA refuses."""
        generator = kwargs.get("generator")
        if isinstance(generator, torch.Generator) and generator.device.type != NAME:
            raise RuntimeError(
                f"Expected a {NAME!r} device type for generator but found "
                f"{generator.device.type!r} [{name}]"
            )
        of_host = [x for x in tensors if not is_here(x)]
        if name in INDEXING and is_here(args[0]):
            of_host = [x for x in args[2:3] if isinstance(x, torch.Tensor) and not is_here(x)]
        # A tensor without dimensions goes to a kernel as a number, but not into a list of tensors.
        large = [x for x in of_host if x.dim() > 0 or name in ("aten::cat", "aten::stack")]
        if large and any(map(is_here, tensors)) and name not in MIXED_BY_DESIGN:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{NAME}:0 and cpu! [{name}, shapes {[tuple(x.shape) for x in tensors][:4]}]"
            )

    def _count(self, name: str, args: tuple[Any, ...], kwargs: Any) -> None:
        """What CUDA does slowly."""
        sized = name == "aten::repeat_interleave" and kwargs.get("output_size") is not None
        if name in UNORDERED:
            self.traffic.unordered[asking_line()] += 1
        if name in WAITING and not sized:
            self.traffic.waits[asking_line()] += 1
        if name in INDEXING:
            indices = [i for i in args[1] if isinstance(i, torch.Tensor)]
            if any(i.dtype == torch.bool for i in indices):
                self.traffic.waits[asking_line()] += 1  # how many rows there are
            if is_here(args[0]) and any(not is_here(i) for i in indices):
                self.traffic.host_indices[asking_line()] += 1

    def _wrapped(self, result: Any, given: list[torch.Tensor]) -> Any:
        """The results as tensors of the device; what was changed in place stays the same object."""
        known = {id(_raw(x)): x for x in given if is_here(x)}

        def wrap(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            if x.dtype == torch.float64 and id(x) not in known:
                self.traffic.doubles[asking_line()] += 1
            return known[id(x)] if id(x) in known else PretendTensor(x)

        return tree_map(wrap, result)


def asking_line() -> str:
    """The innermost line of lib on the stack, as "file:line (function)"."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(LIB) and frame.f_code.co_name != "to_device":  # who called it counts
            return f"{path[len(LIB) + 1 :]}:{frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back  # type: ignore[assignment]
    return OUTSIDE


class PretendDevice:
    """The device as a test sees it."""

    def __init__(self, traffic: Traffic) -> None:
        self.traffic, self.torch = traffic, torch.device(NAME, 0)


@contextmanager
def pretend_device() -> Iterator[PretendDevice]:
    """Within, the device is there; afterwards PyTorch is as it was, but for the name."""
    _registered()
    traffic = Traffic()
    with ExitStack() as stack:
        for owner, name, made in _exchanged(traffic):
            stack.enter_context(patch.object(owner, name, made))
        # Backward passes in the asking thread: its stack tells which line asked.
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        stack.enter_context(PretendMode(traffic))
        yield PretendDevice(traffic)


class _Module(_DummyBackendModule):
    """What PyTorch asks of `torch.pretend`: one device, whose draws are the host's own."""

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        """Nothing, for there is no generator."""
        return torch.zeros(0, dtype=torch.uint8)

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        """Nothing to set."""


@cache
def _registered() -> None:
    _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    # Kept at its first call, which must not find the functions that are exchanged here.
    _device_constructors()


def _raw(x: Any) -> Any:
    return x.raw if is_here(x) else x


def _index(index: Any) -> Any:
    """Lists and arrays become tensors of the device here, which C++ would do below the mode."""
    if isinstance(index, list | range | np.ndarray):
        numbers = torch.as_tensor(np.asarray(index, dtype=None if len(index) else np.int64))
        return numbers.to(torch.device(NAME, 0))
    return tuple(map(_index, index)) if isinstance(index, tuple) else index


def _exchanged(traffic: Traffic) -> list[tuple[Any, str, Any]]:
    """Owner, name and what stands there instead while the device is there."""
    tolist, tensor, as_tensor = torch.Tensor.tolist, torch.tensor, torch.as_tensor
    plain_new_tensor = torch.Tensor.new_tensor

    def counted_tolist(self: torch.Tensor) -> Any:
        if not is_here(self):
            return tolist(self)
        traffic.waits[asking_line()] += 1
        return tolist(self.detach().raw)

    def made_there(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def made(data: Any, dtype: Any = None, device: Any = None, **more: Any) -> torch.Tensor:
            if is_here(data):
                there = data.to(device or data.device, dtype or data.dtype)
                return there.clone().detach() if make is tensor else there
            if not names_it(device):
                return make(data, dtype=dtype, device=device, **more)
            return make(data, dtype=dtype).to(device)

        return made

    def pin_memory(self: torch.Tensor) -> torch.Tensor:
        traffic.pinned[asking_line()] += 1
        return self.clone()

    def new_tensor(self: torch.Tensor, data: Any, **more: Any) -> torch.Tensor:
        if not is_here(self):
            return plain_new_tensor(self, data, **more)
        return torch.tensor(data, **({"dtype": self.dtype, "device": self.device} | more))

    return [
        (torch.Tensor, "tolist", counted_tolist),
        (torch.Tensor, "new_tensor", new_tensor),
        (torch.Tensor, "pin_memory", pin_memory),
        (torch, "tensor", made_there(tensor)),
        (torch, "as_tensor", made_there(as_tensor)),
        (F, "scaled_dot_product_attention", _attention(F.scaled_dot_product_attention)),
        # Tensors of inference mode have no counter of versions, which a wrapper must set.
        (torch._C, "_InferenceMode", lambda mode: torch.no_grad() if mode else nullcontext()),
    ]


def _attention(fused: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Attention by its definition where the fused one would look for a kernel of the device."""

    def attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if not is_here(query):
            more = {"scale": scale, "enable_gqa": enable_gqa}
            return fused(query, key, value, attn_mask, dropout_p, is_causal, **more)
        if enable_gqa:
            copies = query.shape[-3] // key.shape[-3]
            key, value = (x.repeat_interleave(copies, dim=-3) for x in (key, value))
        scores = query @ key.transpose(-1, -2) * (scale or query.shape[-1] ** -0.5)
        if is_causal:
            ones = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device)
            scores = scores.masked_fill(~ones.tril(), -torch.inf)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        return F.dropout(scores.softmax(-1), dropout_p) @ value

    return attention


def _lstm_cell(
    of_input: torch.Tensor,
    of_state: torch.Tensor,
    cell: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    state_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The fused step of an LSTM: new state, new cell, and the open gates for the way back."""
    gates = of_input + of_state
    for bias in (input_bias, state_bias):
        gates = gates if bias is None else gates + bias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    new_cell = f * cell + i * g
    return o * new_cell.tanh(), new_cell, torch.cat([i, f, g, o], 1)


def _lstm_cell_backward(
    by_state: torch.Tensor | None,
    by_cell: torch.Tensor | None,
    cell: torch.Tensor,
    new_cell: torch.Tensor,
    workspace: torch.Tensor,
    has_bias: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """The gradients of a fused step: gates, old cell, bias."""
    i, f, g, o = workspace.chunk(4, 1)
    bent = new_cell.tanh()
    to_state = torch.zeros_like(cell) if by_state is None else by_state
    to_cell = to_state * o * (1 - bent**2) + (0 if by_cell is None else by_cell)
    of_gates = torch.cat(
        [
            to_cell * g * i * (1 - i),
            to_cell * cell * f * (1 - f),
            to_cell * i * (1 - g**2),
            to_state * bent * o * (1 - o),
        ],
        1,
    )
    return of_gates, to_cell * f, of_gates.sum(0) if has_bias else None


_FUSED: dict[str, Callable[..., Any]] = {
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
}
