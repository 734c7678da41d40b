"""DeepLift's rules, exact for the difference between an input and its baseline."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .rules import Backward, Rules, secant

# Functions that bend at any scale near 0.
_SCALE_FREE = set("rsqrt pow __pow__ reciprocal __rdiv__ __rtruediv__ sqrt log".split())


class Rescale(Rules):
    """DeepLift's rules for a batch with inputs in its first half and their baselines in its second.

    Every rule is exact for the difference between the halves: what the multipliers give, times the
    difference of the call's inputs, sums to the difference of its result. Elementwise functions get
    their secant (Shrikumar et al. 2017, rescale rule); products their factors' mean (the Shapley
    value of two players); softmax and LayerNorm are taken apart into these, and log-softmax into a
    sum and the secant of a logarithm; of a largest number each candidate has the share of the
    straight path on which it is the largest. Only the first half's gradient is meant to be read.
    """

    title = "DeepLift rescale"

    def elementwise(
        self, call: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, name: str
    ) -> Backward:
        """The secant from baseline to input; the slope in the middle where the two nearly meet."""
        x1, x0 = x.chunk(2)
        # 1 / x at 0.001 bends within a thousandth, so "near" is measured by the place itself.
        size = ((x1 + x0) / 2).abs() if name in _SCALE_FREE else torch.ones_like(x1)
        near = (x1 - x0).abs() <= _near_enough(x.dtype) * size
        y1, y0 = y.chunk(2)
        slope = secant(call, (x1, x0), (y1, y0), near)
        return _of_first_half(lambda grad: (grad * slope,))

    def bilinear(
        self, call: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, name: str
    ) -> Backward:
        """a b - a' b' = mean(a) (b - b') + mean(b) (a - a'): the derivative at both means."""
        means = [sum(x.chunk(2)) / 2 for x in (a, b)]

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            with torch.enable_grad():
                # The derivative of a product at both means is exact for the difference.
                at = [mean.detach().requires_grad_() for mean in means]
                return torch.autograd.grad(call(*at), at, grad)

        return _of_first_half(back)

    def quotient(self, a: Tensor, b: Tensor) -> Backward:
        """a / b as the product of a and 1 / b, whose secant is -1 / (b b')."""
        (a1, a0), (b1, b0) = a.chunk(2), b.chunk(2)

        return _of_first_half(
            lambda grad: (
                # A factor that was broadcast gets the sum over what it was stretched to.
                (grad * (1 / b1 + 1 / b0) / 2).sum_to_size(a1.shape),
                (-grad * (a1 + a0) / 2 / (b1 * b0)).sum_to_size(b1.shape),
            )
        )

    def softmax(self, z: Tensor, p: Tensor, dim: int) -> Backward:
        """softmax = e / s, e = exp(z - k), s = sum of e; k is the same for both halves."""
        z1, z0 = z.chunk(2)
        k = torch.maximum(z1, z0).amax(dim, keepdim=True)
        e1, e0 = (z1 - k).exp(), (z0 - k).exp()
        s1, s0 = (e.sum(dim, keepdim=True) for e in (e1, e0))
        step = z1 - z0
        near = step.abs() <= _near_enough(z.dtype)
        slope = torch.where(near, ((z1 + z0) / 2 - k).exp(), (e1 - e0) / torch.where(near, 1, step))

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            shared = (grad * (e1 + e0) / 2).sum(dim, keepdim=True) / (s1 * s0)
            return ((grad * (1 / s1 + 1 / s0) / 2 - shared) * slope,)

        return _of_first_half(back)

    def log_softmax(self, z: Tensor, y: Tensor, dim: int) -> Backward:
        """z - log(sum of e^z), with secants of the logarithm and of e^z, in float64."""
        z1, z0 = z.double().chunk(2)
        k = torch.maximum(z1, z0).amax(dim, keepdim=True)
        e1, e0 = (z1 - k).exp(), (z0 - k).exp()
        s1, s0 = (e.sum(dim, keepdim=True) for e in (e1, e0))
        near = _near_enough(z.dtype)
        of_log = secant(torch.log, (s1, s0), (s1.log(), s0.log()), (s1 - s0).abs() <= near * s1)
        of_exp = secant(torch.exp, (z1 - k, z0 - k), (e1, e0), (z1 - z0).abs() <= near)
        slope = of_exp * of_log

        return _of_first_half(lambda grad: (grad - grad.sum(dim, keepdim=True) * slope.to(grad),))

    def largest(self, z: Tensor, y: Tensor, dim: int, keepdim: bool) -> Backward:
        """Each candidate's share: the part of the straight path on which it is the largest."""
        # -inf stands for masked candidates; inf - inf would be NaN.
        z1, z0 = (half.double().clamp(min=-1e30).movedim(dim, -1) for half in z.chunk(2))
        rise = z1 - z0
        ahead, faster = z0[..., :, None] - z0[..., None, :], rise[..., :, None] - rise[..., None, :]
        # Where on the path two candidates are equal; lines of one slope never meet.
        meet = -ahead / torch.where(faster == 0, 1, faster)
        index = torch.arange(z1.shape[-1], device=z.device)
        # Of equal lines the first one counts.
        never = (faster == 0) & ((ahead < 0) | (ahead == 0) & (index[:, None] > index))
        begin = torch.where(faster > 0, meet, 0.0).amax(-1).clamp(min=0)
        end = torch.where(faster < 0, meet, 1.0).amin(-1).clamp(max=1)
        share = torch.where(never.any(-1), 0.0, (end - begin).clamp(min=0)).movedim(-1, dim)

        return _of_first_half(
            lambda grad: ((grad if keepdim else grad.unsqueeze(dim)) * share.to(grad),)
        )

    def layer_norm(
        self, x: Tensor, weight: Tensor | None, eps: float, dims: tuple[int, ...]
    ) -> Backward:
        """LayerNorm = c r, c = x - mean, r = 1 / sqrt(mean(c^2) + eps): the rules of its parts."""
        c1, c0 = (x - x.mean(dims, keepdim=True)).chunk(2)
        u1, u0 = ((c * c).mean(dims, keepdim=True) + eps for c in (c1, c0))
        secant = -1 / ((u1.sqrt() + u0.sqrt()) * (u1 * u0).sqrt())  # of 1 / sqrt(u)
        r, c, n = (u1.rsqrt() + u0.rsqrt()) / 2, (c1 + c0) / 2, math.prod(x.shape[d] for d in dims)

        def back(grad: Tensor) -> tuple[Tensor, ...]:
            weighted = grad * (1 if weight is None else weight)
            by_c = weighted * r + (weighted * c).sum(dims, keepdim=True) * secant * 2 * c / n
            return (by_c - by_c.mean(dims, keepdim=True),)

        return _of_first_half(back)


def _of_first_half(back: Backward) -> Backward:
    """A backward pass that is written for the first half of a batch; the second half gets zeros."""
    return lambda grad: tuple(
        torch.cat([part, torch.zeros_like(part)]) for part in back(grad.chunk(2)[0])
    )


def _near_enough(dtype: torch.dtype) -> float:
    """The step below which a secant's digits cancel, and the slope in the middle is better."""
    return torch.finfo(dtype).eps ** (1 / 3)
