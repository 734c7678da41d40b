"""Integrated Gradients to a completeness gap of 1 %, as a method beside the one with fixed points.

`methods` of a parameter file names it `lib.attribution.to_one_percent:METHOD`; it is a column of
its own in every table.
"""

from dataclasses import replace

from .path_integrals import TO_ONE_PERCENT
from .registry import METHODS

_FIXED = METHODS["Integrated Gradients"]
METHOD = replace(
    _FIXED,
    name="Integrated Gradients to 1 %",
    defaults={n: v for n, v in _FIXED.defaults.items() if n not in ("n_steps", "rule")}
    | TO_ONE_PERCENT,
    options={n: v for n, v in _FIXED.options.items() if n not in TO_ONE_PERCENT},
)
