"""Backward passes by other rules than the derivative's, for any PyTorch model.

The rules are DeepLift's (`rescale`) and AttnLRP's (`propagation`). A `Rules` object sees every call
of a PyTorch function while a model runs. Where a call is not linear in what depends on the input,
its result is passed on with a backward pass of the object's own; linear ones (`LINEAR`: layers,
sums, reshaping) keep the ordinary one, and a call that is neither is refused. Attention must be
computed step by step (`lib.models.hf.eager_attention`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..core.errors import TouchstoneError

Backward = Callable[[Tensor], tuple[Tensor, ...]]

_ELEMENTWISE = set(
    """
    gelu silu relu tanh sigmoid exp rsqrt pow __pow__ square softplus elu leaky_relu reciprocal
    selu celu mish relu6 hardtanh hardsigmoid hardswish log_sigmoid softsign __rdiv__
    __rtruediv__ __rpow__ sqrt log log1p expm1 erf abs clamp clip sin cos arctan atan
    """.split()
)
ELEMENTWISE_PRODUCT = {"mul", "__mul__", "__rmul__", "multiply"}
_BILINEAR = ELEMENTWISE_PRODUCT | {"matmul", "__matmul__", "bmm", "einsum"}
_QUOTIENT = {"div", "__truediv__", "true_divide"}
_PRODUCTS = (
    _BILINEAR
    | _QUOTIENT
    | set(
        """
        linear addmm baddbmm conv1d mul_ __imul__ div_ __itruediv__ __rmatmul__ lerp embedding
        """.split()
    )
)
# Linear in all operands together, or in the only one that depends on the input.
LINEAR = ELEMENTWISE_PRODUCT | set(
    """
    linear conv1d addmm baddbmm add __add__ __radd__ __iadd__ add_ sub subtract __sub__ __rsub__
    rsub __isub__ sub_ neg __neg__ sum mean cumsum diff view view_as reshape flatten unflatten
    transpose permute movedim swapaxes t squeeze unsqueeze expand expand_as repeat
    repeat_interleave broadcast_to cat concat stack hstack vstack split chunk unbind
    tensor_split narrow select index_select gather take_along_dim __getitem__ scatter
    masked_fill masked_fill_ masked_select where roll flip tril triu diagonal pad contiguous
    clone to type type_as float double half bfloat16 cpu cuda dropout identity detach
    requires_grad_ retain_grad register_hook embedding avg_pool1d lerp __get__ mul_ __imul__
    matmul __matmul__ __rmatmul__ bmm einsum div __truediv__ true_divide div_ __itruediv__
    """.split()
)
_ALONG_A_DIMENSION = {"softmax", "log_softmax", "amax"}


def _normalize(
    x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None
) -> Tensor:
    """To length 1, as sentence encoders end."""
    # `eps` would matter for a vector of length 0 alone.
    return x * (x * x).sum(dim, keepdim=True).rsqrt()


def _rms_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """To a mean square of 1, over the last dimensions."""
    dims = tuple(range(-len(shape), 0))
    size = (
        (x * x).mean(dims, keepdim=True) + (torch.finfo(x.dtype).eps if eps is None else eps)
    ).rsqrt()
    return x * size if weight is None else x * size * weight


# Written out in calls that have rules.
_COMPOSED: dict[str, Callable[..., Tensor]] = {"normalize": _normalize, "rms_norm": _rms_norm}


class Rules(TorchFunctionMode):
    """Exchanges the backward pass of nonlinear calls; a kind of rule says by what.

    A kind has a rule for each sort of call: from the operands and the result (and what else the
    call was told) to the way back, which takes the gradient at the result to those at the operands.

    Attributes:
        title: what a complaint calls the method.
        derivative: the calls without a rule, which keep their derivative.
        elementwise: the rule for y = call(x), a function of single numbers.
        bilinear: for call(a, b), a product, elementwise or of matrices, of two factors that both
            depend on the input.
        quotient: for a / b.
        softmax: for p = softmax(z) along a dimension.
        log_softmax: for y = log_softmax(z).
        largest: for the largest number along a dimension.
        layer_norm: for LayerNorm over the last dimensions.
    """

    title = "this method"
    derivative: frozenset[str] = frozenset()
    elementwise: Callable[[Callable[[Tensor], Tensor], Tensor, Tensor, str], Backward]
    bilinear: Callable[[Callable[[Tensor, Tensor], Tensor], Tensor, Tensor, str], Backward]
    quotient: Callable[[Tensor, Tensor], Backward]
    softmax: Callable[[Tensor, Tensor, int], Backward]
    log_softmax: Callable[[Tensor, Tensor, int], Backward]
    largest: Callable[[Tensor, Tensor, int, bool], Backward]
    layer_norm: Callable[[Tensor, Tensor | None, float, tuple[int, ...]], Backward]

    def __init__(self) -> None:
        super().__init__()
        self.inside = False  # a call with a rule: what it calls in its turn is its own affair

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run a call; with a rule, where it is not linear in what depends on the input."""
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        operands = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
        # No operand depends on the input, a rule is at work already, or no gradient is wanted.
        nothing_to_do = not operands or self.inside or not torch.is_grad_enabled()
        if nothing_to_do or name in self.derivative:
            return func(*args, **kwargs)
        if name in _ELEMENTWISE and isinstance(args[0], Tensor):
            # In place, there would be nothing to compare.
            kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
            return self.unary(lambda x: func(x, *args[1:], **kwargs), args[0], name)
        if name in _ALONG_A_DIMENSION:
            return self._along(func, name, args, kwargs)
        if name == "layer_norm":
            return self._layer_norm(func, args, kwargs)
        if name in _COMPOSED:
            # PyTorch leaves a mode while it handles a call; the calls of the parts need it again.
            with self:
                return _COMPOSED[name](*args, **kwargs)
        if name in _QUOTIENT and len(operands) == 1 and operands[0] is not args[0]:
            with self:
                return args[0] * args[1].reciprocal()
        if len(operands) == 2 and name in _BILINEAR | _QUOTIENT:
            return self._binary(func, name, args, operands)
        # Refused after the call, since only its result tells whether it depends on the input.
        result = func(*args, **kwargs)
        # A product is linear in one factor, not in two that both depend on the input.
        if name not in LINEAR or len(operands) > 1 and name in _PRODUCTS:
            self._refuse(name, result if isinstance(result, tuple | list) else [result])
        return result

    def _refuse(self, name: str, results: Sequence[Any]) -> None:
        """Refuse a call without a rule whose result depends on the input: a gradient would lie."""
        if any(isinstance(result, Tensor) and result.requires_grad for result in results):
            remedy = "add its name to lib.attribution.rules.LINEAR, if it is linear in its inputs"
            if name == "scaled_dot_product_attention":  # some models (Falcon) cannot be switched
                remedy = "load the model with attn_implementation='eager'"
            raise TouchstoneError(
                f"{self.title} has no rule for the function {name!r} of the model; take another "
                f"method, or {remedy}"
            )

    def unary(self, call: Callable[[Tensor], Tensor], x: Tensor, name: str) -> Tensor:
        """An elementwise function with its rule."""
        if self.inside or not (x.requires_grad and torch.is_grad_enabled()):
            return call(x)
        return self._with(call, lambda y: self.elementwise(call, x.detach(), y, name), x)

    def _along(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        dim, x = kwargs.get("dim", args[1] if len(args) > 1 else -1), args[0]
        call = lambda z: func(z, *args[1:], **kwargs)  # noqa: E731
        if name == "amax":
            keepdim = kwargs.get("keepdim", args[2] if len(args) > 2 else False)
            return self._with(call, lambda y: self.largest(x.detach(), y, dim, keepdim), x)
        rule = self.softmax if name == "softmax" else self.log_softmax
        return self._with(call, lambda y: rule(x.detach(), y, dim), x)

    def _binary(
        self, func: Any, name: str, args: tuple[Any, ...], operands: list[Tensor]
    ) -> Tensor:
        a, b = operands
        before = args[:1] if name == "einsum" else ()
        if name in _QUOTIENT:
            return self._with(func, lambda y: self.quotient(a.detach(), b.detach()), a, b)
        call = lambda one, two: func(*before, one, two)  # noqa: E731
        return self._with(call, lambda y: self.bilinear(call, a.detach(), b.detach(), name), a, b)

    def _layer_norm(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        names = ("input", "normalized_shape", "weight", "bias", "eps")
        named = {"weight": None, "eps": 1e-5} | dict(zip(names, args, strict=False)) | kwargs
        dims = tuple(range(-len(named["normalized_shape"]), 0))
        return self._with(
            lambda x: func(x, *args[1:], **kwargs),
            lambda y: self.layer_norm(args[0].detach(), named["weight"], named["eps"], dims),
            args[0],
        )

    def _with(
        self, call: Callable[..., Tensor], rule: Callable[[Tensor], Backward], *inputs: Tensor
    ) -> Tensor:
        # Else the calls within this call would get rules of their own, and be bent twice.
        self.inside = True
        try:
            return _Ruled.apply(call, rule, *inputs)
        finally:
            self.inside = False


def secant(
    call: Callable[[Tensor], Tensor],
    at: tuple[Tensor, Tensor],
    values: tuple[Tensor, Tensor],
    near: Tensor,
) -> Tensor:
    """The rise of an elementwise function between two places over their distance.

    Where they are `near` each other it is the slope in the middle, whose digits do not cancel.
    """
    step = at[0] - at[1]
    with torch.enable_grad():
        middle = ((at[0] + at[1]) / 2).detach().requires_grad_()
        slope = torch.autograd.grad(call(middle).sum(), middle)[0]
    # 1 in place of a small step: a division by zero would be NaN even where it is not chosen.
    return torch.where(near, slope, (values[0] - values[1]) / torch.where(near, 1, step))


class _Ruled(torch.autograd.Function):
    """A call whose backward pass is a rule's."""

    @staticmethod
    def forward(
        ctx: Any, call: Callable[..., Tensor], rule: Callable[[Tensor], Backward], *inputs: Tensor
    ) -> Tensor:
        """Call, and ask the rule how to go back."""
        # Without a graph: the way back is the rule's alone.
        y = call(*(x.detach() for x in inputs))
        ctx.back = rule(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Go back by the rule."""
        return (None, None, *ctx.back(grad))


@contextmanager
def ruled(rules: Rules, network: nn.Module) -> Iterator[None]:
    """Within, calls go by the rules; an activation module of transformers (GELU) is one call."""
    with ExitStack() as stack:
        for module in network.modules():
            is_leaf = not any(True for _ in module.children())
            if type(module).__module__ == "transformers.activations" and is_leaf:
                inner = type(module).forward.__get__(module)
                module.forward = lambda x, inner=inner: rules.unary(inner, x, "activation")
                # Off the object again, which uncovers the method of its class.
                stack.callback(delattr, module, "forward")
        stack.enter_context(rules)
        yield
