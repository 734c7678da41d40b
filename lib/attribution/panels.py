"""Integrated Gradients with points where they are needed: where the score bends.

A gradient pass also tells the score at its point. So on every part of the path the integral of the
gradient can be held against the rise of the score between the part's ends, which it must equal, and
only the parts that fail are halved.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

# Rows, places -> scores, their rates, gradients.
_Evaluate = Callable[[list[int], list[float]], tuple[Tensor, Tensor, Tensor]]
# The numbers of the points at its left end, in its middle, at its right end.
_Panel = tuple[int, int, int]
# The weights of these three by Simpson's rule and by two trapezoids, for a panel of width 1.
_PARTS = np.array([[1 / 6, 4 / 6, 1 / 6], [1 / 4, 2 / 4, 1 / 4]])


@dataclass
class Path:
    """One row's path from the baseline (0) to the input (1): its points, and panels between them.

    `rates`: how fast the score rises along the path at each point. `gradients` are let go of when
    the path is done (`finish`). `rounding`: by what share of itself a score may be off (bfloat16
    has eight bits). More points do not mend that.
    """

    rounding: float = 0.0
    places: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)
    panels: list[_Panel] = field(default_factory=lambda: [(0, 1, 2), (2, 3, 4)])
    fine: Float[Tensor, "token hidden"] | None = None
    rough: Float[Tensor, "token hidden"] | None = None

    def add(self, place: float, value: float, rate: float, gradient: Tensor) -> None:
        """Note a point: the score there, how fast it rises along the path, and its gradient."""
        self.places.append(place)
        self.values.append(value)
        self.rates.append(rate)
        self.gradients.append(gradient)

    def finish(self) -> None:
        """Settle the gradient's integral by Simpson's rule (`fine`) and trapezoids (`rough`)."""
        weights = np.zeros((2, len(self.places)))
        for panel in self.panels:
            weights[:, panel] += _PARTS * (self.places[panel[2]] - self.places[panel[0]])
        stacked = torch.stack(self.gradients)  # (steps, tokens, d)
        self.fine, self.rough = (
            torch.einsum("s,sth->th", of_rule, stacked)
            for of_rule in torch.from_numpy(weights).to(stacked)
        )
        # A row's gradients are its points times its embeddings: the largest thing that is kept.
        self.gradients.clear()

    def gap(self, panel: _Panel) -> float:
        """Simpson's integral of the rate over a panel, minus the rise of the score."""
        left, middle, right = panel
        rate = (self.rates[left] + 4 * self.rates[middle] + self.rates[right]) / 6
        return rate * (self.places[right] - self.places[left]) - (
            self.values[right] - self.values[left]
        )

    def wanting(self, allowed: float) -> list[_Panel]:
        """The panels with the largest gaps: without them, gaps sum to half of `allowed`.

        Empty where the sizes of all gaps sum to no more than `allowed`.
        """
        noise = self.rounding * max(map(abs, self.values))
        gaps = sorted(
            ((max(abs(self.gap(panel)) - noise, 0.0), panel) for panel in self.panels), reverse=True
        )
        # What is left when all panels with larger gaps are halved.
        left = np.cumsum([gap for gap, _ in gaps[::-1]])[::-1]
        if left[0] <= allowed:
            return []
        # Half, not all: a panel that is halved has gaps left, and one round more would follow.
        return [panel for (_, panel), rest in zip(gaps, left, strict=True) if rest > allowed / 2]

    def halve(self, panel: _Panel, new: int) -> list[float]:
        """Put two panels in a panel's place; their middles will be points `new` and `new` + 1."""
        left, middle, right = panel
        self.panels.remove(panel)
        # The middle is an end of both halves: no point is asked for twice.
        self.panels += [(left, new, middle), (middle, new + 1, right)]
        return [
            (self.places[left] + self.places[middle]) / 2,
            (self.places[middle] + self.places[right]) / 2,
        ]


def integrate_in_panels(
    allowed: list[float], evaluate: _Evaluate, max_steps: int, rounding: float = 0.0
) -> list[Path]:
    """Each row's path, with points until the gaps of its panels sum to at most `allowed`.

    It begins with two panels (five points) and stops short of `max_steps` points, whatever the
    gaps. Gaps count as far as they exceed the `rounding` of the scores. The device is waited for
    once a round, not once a point.
    """
    paths = [Path(rounding) for _ in allowed]
    asked: dict[int, list[float]] = {row: [0.0, 0.25, 0.5, 0.75, 1.0] for row in range(len(paths))}
    while asked:
        rows = [row for row, places in asked.items() for _ in places]
        at = [place for places in asked.values() for place in places]
        values, rates, gradients = evaluate(rows, at)
        numbers = torch.stack([values.to(rates), rates]).tolist()
        for row, place, value, rate, gradient in zip(rows, at, *numbers, gradients, strict=True):
            # A view of the gradients would keep the whole round.
            paths[row].add(place, value, rate, gradient.clone())
        still, asked = list(asked), {}
        for row in still:
            path = paths[row]
            more: list[float] = []
            for panel in path.wanting(allowed[row]):
                if (n := len(path.places) + len(more)) + 2 <= max_steps:
                    more += path.halve(panel, n)
            if more:
                asked[row] = more
            else:
                path.finish()
    return paths


def rounding_of(network: nn.Module | None) -> float:
    """By what share of itself a score may be off, where a network computes with fewer bits."""
    numbers = network.parameters() if network is not None else ()
    coarsest = max(
        (torch.finfo(p.dtype).eps for p in numbers if p.is_floating_point()), default=0.0
    )
    # float32 counts as exact: only shorter numbers are off by a share that matters.
    return coarsest / 2 if coarsest > torch.finfo(torch.float32).eps else 0.0
