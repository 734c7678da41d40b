"""Figures: functions that draw a finished table; words coloured by their scores.

Nothing is computed here, and no model, method or metric is imported: a table is taken by the names
of its columns, which each function lists. `COLOURS` and `STYLE` are for figures that a notebook
draws itself; `explanations_to_html` colours the words of a table of explanations.
"""

from .attributions import (
    method_grid,
    plot_correlation,
    plot_example,
    plot_form_difference,
    plot_mass_accuracy,
    plot_performance,
    plot_relative_mass_accuracy,
    plot_significance,
)
from .effects import plot_directions, plot_errors, plot_three_effects
from .panels import BELOW
from .style import COLOURS, STYLE, Plotted
from .word_colours import explanations_to_html, words_to_html

__all__ = [
    "BELOW",
    "COLOURS",
    "STYLE",
    "Plotted",
    "explanations_to_html",
    "method_grid",
    "plot_correlation",
    "plot_directions",
    "plot_errors",
    "plot_example",
    "plot_form_difference",
    "plot_mass_accuracy",
    "plot_performance",
    "plot_relative_mass_accuracy",
    "plot_significance",
    "plot_three_effects",
    "words_to_html",
]
