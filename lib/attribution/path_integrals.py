"""Explanations from gradients at many points: between reference and input, or around the input.

The points of all rows of a batch go through the model together. Integrated Gradients at fixed
points and Gradient SHAP give the numbers of `captum_route`; Integrated
Gradients may also be told how exact to be, and then takes for each row as many points as that
needs.
"""

from collections.abc import Sequence

import numpy as np
import torch
from captum.attr._utils.approximation_methods import SUPPORTED_METHODS, approximation_parameters
from jaxtyping import Float, Int
from torch import Tensor

from ..core.errors import TouchstoneError, did_you_mean
from .batch import TokenBatch
from .panels import integrate_in_panels
from .seam import TokenScores, aggregate, gradient_of

# For users' own texts: stop at a completeness gap of 1 %.
TO_ONE_PERCENT = {"tolerance": 0.01, "placing": "panels"}
_ROUNDING = 1e-6  # a gap below this is float32's own, whatever the tolerance


def integrated_gradients(
    batch: TokenBatch,
    aggregation: str = "sum",
    n_steps: int = 50,
    rule: str = "riemann_middle",
    *,
    tolerance: float | None = None,
    placing: str = "tripling",
    min_steps: int = 9,
    max_steps: int = 729,
) -> TokenScores:
    """Integrated Gradients (Sundararajan et al. 2017, eq. 1): gradients on the path from x' to x.

    (x - x') times the mean of dS/dx over points of the path from the baseline x', and the
    completeness gap.

    Args:
        batch: what is explained.
        aggregation: see `seam.aggregate`.
        n_steps: how many points, placed by `rule`.
        rule: riemann_middle, gausslegendre, or another of captum's.
        tolerance: where given, each row takes the points that it needs instead, see `placing`.
        placing: "tripling", evenly (`integrate_until`), or "panels", more where the score bends
            (`integrate_where_needed`).
        min_steps: the fewest points that "tripling" takes; `max_steps` the most of both.

    Raises:
        TouchstoneError: for a rule, placing, tolerance or number of points that means nothing.
    """
    if rule not in SUPPORTED_METHODS:
        raise TouchstoneError(
            f"the rule of Integrated Gradients is {rule!r}{did_you_mean(rule, SUPPORTED_METHODS)}"
        )
    change, about = batch.change(), dict[str, Tensor]()
    if tolerance is None:
        sizes, places = (make(n_steps) for make in approximation_parameters(rule))
        rows = torch.arange(len(batch.mask)).repeat_interleave(n_steps)  # (batch * steps)
        placed, weights = (
            torch.tensor(numbers, dtype=batch.embeddings.dtype).repeat(len(batch.mask))
            for numbers in (places, sizes)
        )
        mean = _path_gradients(batch, rows, placed, weights)
    else:
        _check_placing(placing, tolerance, min_steps, max_steps)
        mean, about = _PLACINGS[placing](batch, change, tolerance, min_steps, max_steps)
    vectors = (batch.embeddings - batch.baselines) * mean
    return TokenScores(aggregate(vectors, aggregation), vectors.sum((1, 2)) - change, about)


def integrate_until(
    batch: TokenBatch,
    change: Float[Tensor, "batch"],
    tolerance: float,
    min_steps: int = 9,
    max_steps: int = 729,
) -> tuple[Float[Tensor, "batch token hidden"], dict[str, Tensor]]:
    """The mean gradient on each row's path, by the midpoint rule with 1, 3, 9, 27, ... points.

    The midpoints of n parts are among those of 3n, so no point is asked for twice. A row stops at
    the first n >= `min_steps` at which its completeness gap is at most `tolerance` times the
    `change` that is explained, or at `max_steps`. Also returns, a row each, `steps` (points used)
    and `error`: the largest change of a token's share of the attribution since a third of the
    points.
    """
    step = batch.embeddings - batch.baselines
    total, before = torch.zeros_like(step), torch.zeros_like(step[..., 0])
    steps, error = torch.zeros_like(change), torch.ones_like(change)
    active, n = torch.arange(len(step), device=step.device), 1
    while len(active):
        new = torch.tensor(_new_midpoints(n), dtype=step.dtype)
        total += _path_gradients(
            batch,
            active.cpu().repeat_interleave(len(new)),
            new.repeat(len(active)),
            torch.ones(len(new) * len(active), dtype=step.dtype),
        )
        scores = (step * total).sum(-1) / n
        moved = (_shares(scores) - before).abs().amax(-1)
        error[active], steps[active], before = moved[active], float(n), _shares(scores)
        gap = (scores.sum(-1) - change).abs()
        # A score that does not change at all would never be met: rounding has a floor of its own.
        done = (gap <= torch.clamp(tolerance * change.abs(), min=_ROUNDING)) & (n >= min_steps) | (
            3 * n > max_steps
        )
        # Three, not two: the midpoints of n parts are midpoints of 3n parts again.
        active, n = active[~done[active]], 3 * n
    return total / steps[:, None, None], {"steps": steps, "error": error}


def integrate_where_needed(
    batch: TokenBatch,
    change: Float[Tensor, "batch"],
    tolerance: float,
    min_steps: int = 9,
    max_steps: int = 729,
) -> tuple[Float[Tensor, "batch token hidden"], dict[str, Tensor]]:
    """The mean gradient on each row's path by Simpson's rule, finer where the score bends.

    The path is cut into panels, and those are halved whose integral misses the rise of the score
    between their ends, until the sizes of what they miss sum to at most `tolerance` times the
    `change` that is explained: more than the completeness gap asks for, in which misses can cancel.
    `steps` counts points, from 5 on; `error` is the largest difference of a token's share from that
    by the trapezoid rule on the same points, which is rougher by far. A row's gradients are kept
    until it is done, its points times its embeddings; where they do not fit, the batch is halved.
    """
    step = batch.embeddings - batch.baselines

    def evaluate(rows: list[int], places: list[float]) -> tuple[Tensor, Tensor, Tensor]:
        here = torch.tensor(rows, device=step.device)
        at = torch.tensor(places, device=step.device, dtype=step.dtype)
        values, gradients = step.new_empty(len(rows)), step.new_empty(len(rows), *step.shape[1:])
        rates = step.new_empty(len(rows), dtype=torch.float64)
        lengths = [step.shape[1]] * len(rows)
        for part, (of_part, slopes) in batch.budget.run(
            lengths, lambda part: _on_path(batch, here[part], at[part])
        ):
            values[part], gradients[part] = of_part, slopes
            # In float64: a gap is a small difference of large sums.
            rates[part] = (slopes.double() * step[here[part]]).sum((1, 2))
        return values, rates, gradients

    allowed = torch.clamp(tolerance * change.abs(), min=_ROUNDING).tolist()
    paths = integrate_in_panels(allowed, evaluate, max_steps, _rounding_of(batch))
    fine = torch.stack([path.fine for path in paths])  # (batch, tokens, d)
    rough = torch.stack([path.rough for path in paths])
    steps = torch.tensor([float(len(path.places)) for path in paths], device=step.device)
    moved = _shares((step * fine).sum(-1)) - _shares((step * rough).sum(-1))
    return fine, {"steps": steps, "error": moved.abs().amax(-1)}


def _rounding_of(batch: TokenBatch) -> float:
    """By what share of itself a score may be off, where the model computes with fewer bits."""
    network = batch.score.module
    numbers = network.parameters() if network is not None else ()
    coarsest = max(
        (torch.finfo(p.dtype).eps for p in numbers if p.is_floating_point()), default=0.0
    )
    # float32 counts as exact: only shorter numbers are off by a share that matters.
    return coarsest / 2 if coarsest > torch.finfo(torch.float32).eps else 0.0


_PLACINGS = {"tripling": integrate_until, "panels": integrate_where_needed}


def _check_placing(placing: str, tolerance: float, min_steps: int, max_steps: int) -> None:
    if placing not in _PLACINGS:
        raise TouchstoneError(
            f"the placing of Integrated Gradients is {placing!r}{did_you_mean(placing, _PLACINGS)}"
        )
    if not 0 < tolerance < 1 or not 1 <= min_steps <= max_steps:
        raise TouchstoneError(
            f"Integrated Gradients has tolerance = {tolerance}, min_steps = {min_steps}, "
            f"max_steps = {max_steps}; give a tolerance between 0 and 1, and "
            "1 <= min_steps <= max_steps"
        )


def _new_midpoints(n: int) -> list[float]:
    """The midpoints of n equal parts that are not midpoints of n / 3 parts.

    >>> [round(place, 3) for place in _new_midpoints(3)]
    [0.167, 0.833]
    """
    return [(k + 0.5) / n for k in range(n) if n == 1 or k % 3 != 1]


def _shares(scores: Float[Tensor, "batch token"]) -> Float[Tensor, "batch token"]:
    """Each token's score as a part of the sum of sizes; zeros where all are zero."""
    return scores / scores.abs().sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


def gradient_shap(batch: TokenBatch, aggregation: str = "sum", n_samples: int = 5) -> TokenScores:
    """Gradient SHAP (Lundberg & Lee 2017): the same from random points, drawn as captum draws."""
    places = np.concatenate([_places(seed, n_samples) for seed in batch.seeds])
    draws = torch.tensor(places, dtype=batch.embeddings.dtype)
    rows = torch.arange(len(batch.mask)).repeat_interleave(n_samples)
    mean = _path_gradients(batch, rows, draws, torch.full_like(draws, 1 / n_samples))
    return TokenScores(aggregate((batch.embeddings - batch.baselines) * mean, aggregation))


def _places(seed: int, n_samples: int) -> Float[np.ndarray, "step"]:
    draw = np.random.RandomState(seed)  # the stream that captum's global seed starts
    draw.choice(1, n_samples)  # which of the references: there is one
    return draw.uniform(0.0, 1.0, n_samples)


def smooth_grad(
    batch: TokenBatch,
    aggregation: str = "l1",
    n_samples: int = 25,
    noise: float = 0.15,
    *,
    times_input: bool = False,
) -> TokenScores:
    """SmoothGrad (Smilkov et al. 2017): the mean gradient at `n_samples` noisy copies of the input.

    The noise is normal; its standard deviation is `noise` times the range of the row's embedding
    components, as in the paper's section 3.2. With `times_input` the scores have a sign: the sum of
    embedding times mean gradient (Ding & Koehn 2021), whatever `aggregation` says.
    """
    size = noise * (batch.embeddings.amax((1, 2)) - batch.embeddings.amin((1, 2)))
    means = []
    for i, seed in enumerate(batch.seeds):
        # On the CPU, so that every device gets the same noise.
        generator = torch.Generator().manual_seed(seed)
        draws = torch.randn(n_samples, *batch.embeddings.shape[1:], generator=generator)
        points = batch.embeddings[i] + size[i] * draws.to(batch.embeddings)  # (steps, tokens, d)

        def total(part: list[int], i: int = i, points: Tensor = points) -> Tensor:
            return _at(batch, points[part], [i] * len(part))[1].sum(0)  # (tokens, d)

        parts = batch.budget.run([batch.mask.shape[1]] * n_samples, total)
        means.append(torch.stack([gradients for _, gradients in parts]).sum(0) / n_samples)
    mean = torch.stack(means)
    if times_input:
        return TokenScores(aggregate(batch.embeddings * mean, "sum"))
    return TokenScores(aggregate(mean, aggregation))


def _path_gradients(
    batch: TokenBatch,
    rows: Int[Tensor, "step"],
    places: Float[Tensor, "step"],
    weights: Float[Tensor, "step"],
) -> Float[Tensor, "batch token hidden"]:
    """For each row the weighted sum of its gradients at places from baseline (0) to input (1)."""
    device, total = batch.mask.device, torch.zeros_like(batch.embeddings)
    rows, places, weights = rows.to(device), places.to(total), weights.to(total)

    for part, (_, gradients) in batch.budget.run(
        [batch.mask.shape[1]] * len(rows), lambda part: _on_path(batch, rows[part], places[part])
    ):
        # Points of one row come in several parts and several times in one: += would lose some.
        total.index_add_(0, rows[part], weights[part][:, None, None] * gradients)
    return total


def _on_path(
    batch: TokenBatch, rows: Int[Tensor, "step"], places: Float[Tensor, "step"]
) -> tuple[Tensor, Tensor]:
    place = places[:, None, None]
    return _at(batch, place * batch.embeddings[rows] + (1.0 - place) * batch.baselines[rows], rows)


def _at(
    batch: TokenBatch,
    points: Float[Tensor, "step token hidden"],
    rows: Int[Tensor, "step"] | Sequence[int],
) -> tuple[Float[Tensor, "step"], Float[Tensor, "step token hidden"]]:
    """The scores at points, each of a row of the batch, and their gradients."""
    rows = torch.as_tensor(rows, device=batch.mask.device)
    # A leaf of its own for each point: the gradient is wanted there, not at the input.
    points = points.detach().requires_grad_()
    with torch.enable_grad():
        values = batch.score.for_rows(rows)(points, batch.mask[rows])
        return values.detach(), gradient_of(values, points)
