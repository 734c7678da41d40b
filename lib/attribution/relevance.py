"""AttnLRP's rules: relevance is handed down, and constants keep their part of it."""

from collections.abc import Callable

import torch
from torch import Tensor

from .rules import ELEMENTWISE_PRODUCT, Backward, Rules


class Relevance(Rules):
    """AttnLRP's rules (Achtibat et al. 2024, section 3.2): relevance = value * modified gradient.

    Activations pass their relevance on (identity rule: the gradient times (y - f(0)) / x; f(0),
    where there is one, is a constant); a product's relevance is halved between its factors (uniform
    rule); softmax has its derivative (Taylor rule), and so have log-softmax and the largest number;
    LayerNorm and RMSNorm take their size for a constant (identity rule); linear layers have the
    epsilon rule with epsilon 0, their ordinary gradient: what their biases have to do with the
    score is theirs.
    """

    title = "AttnLRP"

    def elementwise(
        self, call: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, name: str
    ) -> Backward:
        """(y - f(0)) / x times the gradient; 0 where f(0) is infinite (the size of a norm)."""
        # A sigmoid is 1/2 at 0, whatever goes in: that part is no relevance of x.
        at_zero = call(torch.zeros_like(x))
        if not torch.isfinite(at_zero).all():
            return lambda grad: (torch.zeros_like(grad),)
        # Below it the difference has lost its digits.
        near = torch.finfo(x.dtype).eps ** (0.5 if at_zero.any() else 1)
        with torch.enable_grad():
            at = (x / 2).requires_grad_()
            slope = torch.autograd.grad(call(at).sum(), at)[0]
        share = torch.where(
            x.abs() <= near, slope, (y - at_zero) / torch.where(x.abs() <= near, 1, x)
        )
        return lambda grad: (grad * share,)

    def bilinear(
        self, call: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, name: str
    ) -> Backward:
        """Half of the gradient to each factor; all to the other one if one is a norm's size."""

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            with torch.enable_grad():
                at = [x.clone().requires_grad_() for x in (a, b)]
                gradients = torch.autograd.grad(call(*at), at, grad)
            # A factor of width 1 beside a wide one is a norm's size, and counts as a constant.
            is_size = [
                x.shape[-1:] == (1,) and other.shape[-1:] != (1,) for x, other in ((a, b), (b, a))
            ]
            if name in ELEMENTWISE_PRODUCT and any(is_size):
                return tuple(
                    torch.zeros_like(g) if size else g
                    for g, size in zip(gradients, is_size, strict=True)
                )
            return tuple(g / 2 for g in gradients)

        return back

    def quotient(self, a: Tensor, b: Tensor) -> Backward:
        """The denominator counts as a constant."""
        return lambda grad: ((grad / b).sum_to_size(a.shape), torch.zeros_like(b))

    def softmax(self, z: Tensor, p: Tensor, dim: int) -> Backward:
        """R_i = z_i (R_i - p_i sum of R), proposition 3.1: the derivative."""
        return lambda grad: (p * (grad - (p * grad).sum(dim, keepdim=True)),)

    def log_softmax(self, z: Tensor, y: Tensor, dim: int) -> Backward:
        """The derivative."""
        return lambda grad: (grad - y.exp() * grad.sum(dim, keepdim=True),)

    def largest(self, z: Tensor, y: Tensor, dim: int, keepdim: bool) -> Backward:
        """All to the largest; equal ones share it."""
        first = (z == (y if keepdim else y.unsqueeze(dim))).to(z)
        share = first / first.sum(dim, keepdim=True)
        return lambda grad: ((grad if keepdim else grad.unsqueeze(dim)) * share,)

    def layer_norm(
        self, x: Tensor, weight: Tensor | None, eps: float, dims: tuple[int, ...]
    ) -> Backward:
        """The derivative of (x - mean) * weight / size with the size held fixed."""
        size = (x.var(dims, correction=0, keepdim=True) + eps).sqrt()

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            by_c = grad * (1 if weight is None else weight) / size
            return (by_c - by_c.mean(dims, keepdim=True),)

        return back
