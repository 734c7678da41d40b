"""Explanations from gradients at many points: between reference and input, or around the input.

The points of all rows of a batch go through the model together. Integrated Gradients at fixed
points and Gradient SHAP give the numbers of `captum_route`; Integrated
Gradients may also be told how exact to be, and then takes for each row as many points as that
needs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..core.errors import TouchstoneError, did_you_mean
from ..models.text_model import exact_type
from .batch import TokenBatch
from .panels import integrate_in_panels, rounding_of
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
    # The ends of the path are everybody's, and so is the mean gradient of one and the same path.
    shared = batch.one_pass()
    batch = replace(batch, shared=shared)
    how = n_steps, rule, tolerance, placing, min_steps, max_steps
    change, asked = batch.change(), (batch.score.pick, *how)
    if asked not in shared.means:
        shared.means[asked] = _mean_on_path(batch, change, *how)
    mean, about = shared.means[asked]
    vectors = (batch.embeddings - batch.baselines) * mean
    return TokenScores(aggregate(vectors, aggregation), vectors.sum((1, 2)) - change, about)


def _mean_on_path(
    batch: TokenBatch,
    change: Float[Tensor, "batch"],
    n_steps: int,
    rule: str,
    tolerance: float | None,
    placing: str,
    min_steps: int,
    max_steps: int,
) -> tuple[Float[Tensor, "batch token hidden"], dict[str, Tensor]]:
    """The mean gradient on each row's path, and what is said of it; see `integrated_gradients`."""
    from captum.attr._utils.approximation_methods import (  # a second of import
        SUPPORTED_METHODS,
        approximation_parameters,
    )

    if rule not in SUPPORTED_METHODS:
        raise TouchstoneError(
            f"the rule of Integrated Gradients is {rule!r}{did_you_mean(rule, SUPPORTED_METHODS)}"
        )
    if tolerance is not None:
        _check_placing(placing, tolerance, min_steps, max_steps)
        return _PLACINGS[placing](batch, change, tolerance, min_steps, max_steps)
    sizes, places = (make(n_steps) for make in approximation_parameters(rule))
    return _path_gradients(batch, *(_for_all(batch, numbers) for numbers in (places, sizes))), {}


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
        new = step.new_tensor(_new_midpoints(n)).expand(len(active), -1)  # (batch, steps)
        total[active] += _path_gradients(batch, new, torch.ones_like(new), active)
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
        # The input's own pass is there already; the other points come first, and in one copy.
        ends = [i for i, place in enumerate(places) if place == 1.0]
        order = [i for i, place in enumerate(places) if place < 1.0] + ends
        here, to = torch.tensor([rows, order], device=step.device)
        at = torch.tensor(places, device=step.device, dtype=step.dtype)
        values, gradients = step.new_empty(len(rows)), step.new_empty(len(rows), *step.shape[1:])
        n_inside = len(rows) - len(ends)
        if ends:
            last, of_rows = to[n_inside:], here[to[n_inside:]]
            values[last], gradients[last] = batch.value()[of_rows], batch.gradient()[of_rows]
        for part, of_part in batch.budget.run(
            [step.shape[1]] * n_inside,
            lambda part: _on_path(batch, here[to[_span(part)]], at[to[_span(part)]]),
        ):
            values[to[_span(part)]], gradients[to[_span(part)]] = of_part
        # As exact as the device can: a gap is a small difference of large sums.
        exact = gradients.to(exact_type(step.device))
        return values, (exact * step[here]).sum((1, 2)), gradients

    allowed = torch.clamp(tolerance * change.abs(), min=_ROUNDING).tolist()
    paths = integrate_in_panels(allowed, evaluate, max_steps, rounding_of(batch.score.module))
    fine = torch.stack([path.fine for path in paths])  # (batch, tokens, d)
    rough = torch.stack([path.rough for path in paths])
    steps = torch.tensor([float(len(path.places)) for path in paths], device=step.device)
    moved = _shares((step * fine).sum(-1)) - _shares((step * rough).sum(-1))
    return fine, {"steps": steps, "error": moved.abs().amax(-1)}


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
    places = np.stack([_places(seed, n_samples) for seed in batch.seeds])  # (batch, steps)
    draws = torch.tensor(places, dtype=batch.embeddings.dtype, device=batch.mask.device)
    mean = _path_gradients(batch, draws, torch.full_like(draws, 1 / n_samples))
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

    def noisy(rows: Tensor, start: int, stop: int) -> Tensor:
        # On the CPU, so that every device gets the same noise; all rows go there together.
        draws = torch.stack([_noise(batch, int(row), n_samples)[start:stop] for row in rows])
        there = rows.to(batch.mask.device)
        spread = size[there, None, None, None] * draws.to(batch.embeddings)
        return batch.embeddings[there, None] + spread  # (batch, steps, tokens, d)

    weights = torch.full((len(batch.mask), n_samples), 1 / n_samples)
    mean = _mean_gradients(batch, noisy, weights.to(batch.embeddings))
    if times_input:
        return TokenScores(aggregate(batch.embeddings * mean, "sum"))
    return TokenScores(aggregate(mean, aggregation))


def _noise(batch: TokenBatch, row: int, n_samples: int) -> Float[Tensor, "step token hidden"]:
    generator = torch.Generator().manual_seed(batch.seeds[row])
    return torch.randn(n_samples, *batch.embeddings.shape[1:], generator=generator)


def _for_all(batch: TokenBatch, numbers: Sequence[float]) -> Float[Tensor, "batch step"]:
    """The same numbers for every row."""
    return batch.embeddings.new_tensor(numbers).expand(len(batch.mask), -1)


def _path_gradients(
    batch: TokenBatch,
    places: Float[Tensor, "batch step"],
    weights: Float[Tensor, "batch step"],
    rows: Int[Tensor, "batch"] | None = None,
) -> Float[Tensor, "batch token hidden"]:
    """For each row the weighted sum of its gradients at places from baseline (0) to input (1).

    Of all rows, or of those that are named.
    """
    chosen = torch.arange(len(places), device=batch.mask.device) if rows is None else rows

    def points(part: Tensor, start: int, stop: int) -> Tensor:
        here, place = chosen[part], places[part, start:stop, None, None]
        ends = batch.embeddings[here, None], batch.baselines[here, None]
        return place * ends[0] + (1.0 - place) * ends[1]  # (batch, steps, tokens, d)

    return _mean_gradients(batch, points, weights, chosen)


def _mean_gradients(
    batch: TokenBatch,
    points: Callable[[Tensor, int, int], Tensor],
    weights: Float[Tensor, "batch step"],
    rows: Int[Tensor, "batch"] | None = None,
) -> Float[Tensor, "batch token hidden"]:
    """For each row the weighted sum of the gradients at its points.

    As many whole rows at a time as fit, or a row's points in several parts. Every sum is taken in
    the same order at each run: adding into rows by index would leave the order to chance on a GPU.

    Args:
        batch: what is explained.
        points: the points start to stop of rows, which are named by their place in `weights`.
        weights: a weight for each point.
        rows: the rows of the batch that are meant; None: all, in their order.
    """
    length, n_steps = batch.mask.shape[1], weights.shape[1]
    chosen = torch.arange(len(weights), device=batch.mask.device) if rows is None else rows

    def of_rows(part: list[int]) -> Tensor:
        some = _span(part)

        def of_points(steps: list[int]) -> Tensor:
            start, stop = steps[0], steps[-1] + 1
            at = points(torch.arange(len(weights))[some], start, stop).flatten(0, 1)
            here = chosen[some].repeat_interleave(stop - start)
            slopes = _at(batch, at, here)[1].unflatten(0, (len(part), -1))
            return (weights[some, start:stop, None, None] * slopes).sum(1)

        lengths = [len(part) * length] * n_steps
        return sum(of_part for _, of_part in batch.budget.run(lengths, of_points))

    total = torch.zeros_like(batch.embeddings[: len(weights)])
    for part, of_part in batch.budget.run([n_steps * length] * len(weights), of_rows):
        total[_span(part)] = of_part
    return total


def _span(part: Sequence[int]) -> slice:
    """The same rows as a slice, a view that costs no copy of an index to the device.

    The parts of a budget are neighbours where all lengths are equal.
    """
    return slice(part[0], part[-1] + 1)


def _on_path(
    batch: TokenBatch, rows: Int[Tensor, "step"], places: Float[Tensor, "step"]
) -> tuple[Tensor, Tensor]:
    place = places[:, None, None]
    return _at(batch, place * batch.embeddings[rows] + (1.0 - place) * batch.baselines[rows], rows)


def _at(
    batch: TokenBatch,
    points: Float[Tensor, "step token hidden"],
    rows: Int[Tensor, "step"],
) -> tuple[Float[Tensor, "step"], Float[Tensor, "step token hidden"]]:
    """The scores at points, each of a row of the batch, and their gradients."""
    # A leaf of its own for each point: the gradient is wanted there, not at the input.
    points = points.detach().requires_grad_()
    with torch.enable_grad():
        values = batch.score.for_rows(rows)(points, batch.mask[rows])
        return values.detach(), gradient_of(values, points)
