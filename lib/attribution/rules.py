"""Backward passes by other rules than the derivative's, for any PyTorch model: DeepLift's rescale rules and AttnLRP.

A `Rules` object sees every call of a PyTorch function while a model runs. Where a call is not linear in what depends on
the input, its result is passed on with a backward pass of the object's own; all else (linear layers, sums, reshaping)
keeps the ordinary one. Attention must be computed step by step (`lib.models.attention.eager_attention`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

ELEMENTWISE = {"gelu", "silu", "relu", "tanh", "sigmoid", "exp", "rsqrt", "pow", "__pow__", "square", "softplus", "elu",
               "leaky_relu", "reciprocal"}
ELEMENTWISE_PRODUCT = {"mul", "__mul__", "__rmul__", "multiply"}
BILINEAR = ELEMENTWISE_PRODUCT | {"matmul", "__matmul__", "bmm", "einsum"}
QUOTIENT = {"div", "__truediv__", "true_divide"}
Backward = Callable[[Tensor], tuple[Tensor, ...]]


class Rules(TorchFunctionMode):
    """Exchanges the backward pass of nonlinear calls; a kind of rule says by what."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = False  # a call with a rule: what it calls in its turn is its own affair

    def elementwise(self, call: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, name: str) -> Backward:
        """From the gradient at y = call(x) to the one at x, for a function of each number by itself."""
        raise NotImplementedError

    def bilinear(self, call: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, name: str) -> Backward:
        """The same for a product of two tensors that both depend on the input: elementwise, or of matrices."""
        raise NotImplementedError

    def quotient(self, a: Tensor, b: Tensor) -> Backward:
        """The same for a / b."""
        raise NotImplementedError

    def softmax(self, z: Tensor, p: Tensor, dim: int) -> Backward:
        """The same for p = softmax(z)."""
        raise NotImplementedError

    def layer_norm(self, x: Tensor, weight: Tensor | None, eps: float, dims: tuple[int, ...]) -> Backward:
        """The same for LayerNorm over the last dimensions."""
        raise NotImplementedError

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Run a call; with a rule, where it is not linear in what depends on the input."""
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        operands = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
        if not operands or self.inside or not torch.is_grad_enabled():
            return func(*args, **kwargs)
        if name in ELEMENTWISE and isinstance(args[0], Tensor):
            return self.unary(lambda x: func(x, *args[1:], **kwargs), args[0], name)
        if name == "softmax":
            dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
            call = lambda z: func(z, *args[1:], **kwargs)  # noqa: E731
            return self._with(call, lambda p: self.softmax(args[0].detach(), p, dim), args[0])
        if name == "layer_norm":
            return self._layer_norm(func, args, kwargs)
        if name == "normalize":  # to length 1, as sentence encoders end
            with self:
                return args[0] * (args[0] * args[0]).sum(kwargs.get("dim", 1), keepdim=True).rsqrt()
        if len(operands) == 2 and name in BILINEAR | QUOTIENT:
            return self._binary(func, name, args, operands)
        return func(*args, **kwargs)

    def unary(self, call: Callable[[Tensor], Tensor], x: Tensor, name: str) -> Tensor:
        """An elementwise function with its rule."""
        if self.inside or not (x.requires_grad and torch.is_grad_enabled()):
            return call(x)
        return self._with(call, lambda y: self.elementwise(call, x.detach(), y, name), x)

    def _binary(self, func: Any, name: str, args: tuple[Any, ...], operands: list[Tensor]) -> Tensor:
        a, b = operands
        before = args[:1] if name == "einsum" else ()
        if name in QUOTIENT:
            return self._with(func, lambda y: self.quotient(a.detach(), b.detach()), a, b)
        call = lambda one, two: func(*before, one, two)  # noqa: E731
        return self._with(call, lambda y: self.bilinear(call, a.detach(), b.detach(), name), a, b)

    def _layer_norm(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        named = dict(zip(("input", "normalized_shape", "weight", "bias", "eps"), args, strict=False)) | kwargs
        dims = tuple(range(-len(named["normalized_shape"]), 0))
        call = lambda x: func(x, *args[1:], **kwargs)  # noqa: E731
        weight, eps = named.get("weight"), named.get("eps", 1e-5)
        return self._with(call, lambda y: self.layer_norm(args[0].detach(), weight, eps, dims), args[0])

    def _with(self, call: Callable[..., Tensor], rule: Callable[[Tensor], Backward], *inputs: Tensor) -> Tensor:
        self.inside = True
        try:
            return _Ruled.apply(call, rule, *inputs)
        finally:
            self.inside = False


class _Ruled(torch.autograd.Function):
    """A call whose backward pass is a rule's."""

    @staticmethod
    def forward(ctx: Any, call: Callable[..., Tensor], rule: Callable[[Tensor], Backward], *inputs: Tensor) -> Tensor:
        """Call, and ask the rule how to go back."""
        y = call(*(x.detach() for x in inputs))
        ctx.back = rule(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Go back by the rule."""
        return (None, None, *ctx.back(grad))


class Rescale(Rules):
    """DeepLift's rules for a batch whose first half holds the inputs and whose second half their references.

    Every rule is exact for the difference between the halves: what the multipliers give, times the difference of the
    call's inputs, sums to the difference of its result. Elementwise functions get their secant (Shrikumar et al.
    2017, rescale rule); products their factors' mean (the Shapley value of two players); softmax and LayerNorm are
    taken apart into these. Only the first half's gradient is meant to be read.
    """

    def elementwise(self, call: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, name: str) -> Backward:
        """The secant between reference and input; the slope in the middle where the two nearly meet."""
        x1, x0 = x.chunk(2)
        y1, y0 = y.chunk(2)
        step, middle = x1 - x0, (x1 + x0) / 2
        size = middle.abs() if name in ("rsqrt", "pow", "__pow__", "reciprocal") else torch.ones_like(middle)
        near = step.abs() <= near_enough(x.dtype) * size
        with torch.enable_grad():
            at = middle.requires_grad_()
            slope = torch.autograd.grad(call(at).sum(), at)[0]
        secant = torch.where(near, slope, (y1 - y0) / torch.where(near, 1, step))
        return lambda grad: (both(grad.chunk(2)[0] * secant),)

    def bilinear(self, call: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, name: str) -> Backward:
        """a b - a' b' = mean(a) (b - b') + mean(b) (a - a'): the derivative at the means of both factors."""
        means = [sum(x.chunk(2)) / 2 for x in (a, b)]

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            with torch.enable_grad():
                at = [mean.detach().requires_grad_() for mean in means]
                return tuple(both(g) for g in torch.autograd.grad(call(*at), at, grad.chunk(2)[0]))

        return back

    def quotient(self, a: Tensor, b: Tensor) -> Backward:
        """a / b as the product of a and 1 / b, whose secant is -1 / (b b')."""
        (a1, a0), (b1, b0) = a.chunk(2), b.chunk(2)

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            first = grad.chunk(2)[0]
            return (both((first * (1 / b1 + 1 / b0) / 2).sum_to_size(a1.shape)),
                    both((-first * (a1 + a0) / 2 / (b1 * b0)).sum_to_size(b1.shape)))

        return back

    def softmax(self, z: Tensor, p: Tensor, dim: int) -> Backward:
        """softmax = e / s with e = exp(z - k), s = sum of e; one k for both halves, or it would not cancel."""
        z1, z0 = z.chunk(2)
        k = torch.maximum(z1, z0).amax(dim, keepdim=True)
        e1, e0 = (z1 - k).exp(), (z0 - k).exp()
        s1, s0 = (e.sum(dim, keepdim=True) for e in (e1, e0))
        step = z1 - z0
        near = step.abs() <= near_enough(z.dtype)
        slope = torch.where(near, ((z1 + z0) / 2 - k).exp(), (e1 - e0) / torch.where(near, 1, step))

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            first = grad.chunk(2)[0]
            shared = (first * (e1 + e0) / 2).sum(dim, keepdim=True) / (s1 * s0)
            return (both((first * (1 / s1 + 1 / s0) / 2 - shared) * slope),)

        return back

    def layer_norm(self, x: Tensor, weight: Tensor | None, eps: float, dims: tuple[int, ...]) -> Backward:
        """LayerNorm = c r with c = x - mean, r = 1 / sqrt(mean(c^2) + eps): product, square and root by their rules."""
        c1, c0 = (x - x.mean(dims, keepdim=True)).chunk(2)
        u1, u0 = ((c * c).mean(dims, keepdim=True) + eps for c in (c1, c0))
        secant = -1 / ((u1.sqrt() + u0.sqrt()) * (u1 * u0).sqrt())  # of 1 / sqrt(u)
        r, c = (u1.rsqrt() + u0.rsqrt()) / 2, (c1 + c0) / 2

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            first = grad.chunk(2)[0] * (1 if weight is None else weight)
            by_c = first * r + (first * c).sum(dims, keepdim=True) * secant * 2 * c / c.shape[-1]
            return (both(by_c - by_c.mean(dims, keepdim=True)),)

        return back


class Relevance(Rules):
    """AttnLRP's rules (Achtibat et al. 2024, section 3.2), written as gradients: relevance = value * gradient.

    Activations pass their relevance on (identity rule: the gradient times y / x); a product's relevance is halved
    between its factors (uniform rule); softmax has its derivative (Taylor rule); LayerNorm and RMSNorm take their size
    for a constant (identity rule); linear layers have the epsilon rule with epsilon 0, their ordinary gradient.
    """

    def elementwise(self, call: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, name: str) -> Backward:
        """y / x of the gradient; nothing where the function is the size in a norm (rsqrt and what it is made of)."""
        if name in ("rsqrt", "pow", "__pow__", "square", "reciprocal", "exp"):
            return lambda grad: (torch.zeros_like(grad),)
        tiny = torch.finfo(x.dtype).eps
        with torch.enable_grad():
            at = x.clone().requires_grad_()
            slope = torch.autograd.grad(call(at).sum(), at)[0]
        share = torch.where(x.abs() <= tiny, slope, y / torch.where(x.abs() <= tiny, 1, x))
        return lambda grad: (grad * share,)

    def bilinear(self, call: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, name: str) -> Backward:
        """Half of the gradient to each factor; all of it to the other one where a factor is a norm's size."""
        def back(grad: Tensor) -> tuple[Tensor, ...]:
            with torch.enable_grad():
                at = [x.clone().requires_grad_() for x in (a, b)]
                found = torch.autograd.grad(call(*at), at, grad)
            is_size = [x.shape[-1:] == (1,) and other.shape[-1:] != (1,) for x, other in ((a, b), (b, a))]
            if name in ELEMENTWISE_PRODUCT and any(is_size):
                return tuple(torch.zeros_like(g) if size else g for g, size in zip(found, is_size, strict=True))
            return tuple(g / 2 for g in found)

        return back

    def quotient(self, a: Tensor, b: Tensor) -> Backward:
        """The denominator counts as a constant."""
        return lambda grad: ((grad / b).sum_to_size(a.shape), torch.zeros_like(b))

    def softmax(self, z: Tensor, p: Tensor, dim: int) -> Backward:
        """R_i = z_i (R_i - p_i sum of R), proposition 3.1: the derivative."""
        return lambda grad: (p * (grad - (p * grad).sum(dim, keepdim=True)),)

    def layer_norm(self, x: Tensor, weight: Tensor | None, eps: float, dims: tuple[int, ...]) -> Backward:
        """The derivative of (x - mean) * weight / size with the size held fixed."""
        size = (x.var(dims, correction=0, keepdim=True) + eps).sqrt()

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            by_c = grad * (1 if weight is None else weight) / size
            return (by_c - by_c.mean(dims, keepdim=True),)

        return back


def both(first: Tensor) -> Tensor:
    """A gradient of the first half of a batch, with zeros for the second."""
    return torch.cat([first, torch.zeros_like(first)])


def near_enough(dtype: torch.dtype) -> float:
    """Steps below this are better served by the slope in their middle than by a secant, whose digits cancel."""
    return torch.finfo(dtype).eps ** (1 / 3)


@contextmanager
def ruled(rules: Rules, network: nn.Module) -> Iterator[None]:
    """Within, calls go by the rules; an activation module of transformers (GELU, by whatever formula) is one call."""
    modules = [m for m in network.modules() if type(m).__module__ == "transformers.activations"
               and not any(True for _ in m.children())]
    for module in modules:
        inner = type(module).forward.__get__(module)
        module.forward = lambda x, inner=inner: rules.unary(inner, x, "activation")
    try:
        with rules:
            yield
    finally:
        for module in modules:
            del module.forward
