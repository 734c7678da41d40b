"""Figures: functions that draw a finished table; words coloured by their scores.

Nothing is computed here, and no model, method or metric is imported: a table is taken by the names
of its columns, which each function lists. `COLOURS` and `STYLE` are for figures that a notebook
draws itself. The words of a table of explanations are coloured by `plot_words`, a picture for
notebooks, by `explanations_to_html`, a page to save, and by `words_to_terminal`. Schematics are
drawn by the functions of the modules `schematics_*`, which return a `Drawing`: a figure and its alt
text.
"""

from .attributions import (
    plot_correlation,
    plot_example,
    plot_form_difference,
    plot_mass_accuracy,
    plot_performance,
    plot_relative_mass_accuracy,
    plot_significance,
)
from .continuations import plot_continuation
from .effects import plot_directions, plot_errors, plot_three_effects
from .model_use import plot_planted, plot_randomisation, plot_yardsticks
from .panels import BELOW, FORM_NAMES, SCHEME_NAMES, method_grid, method_label
from .style import COLOURS, STYLE, Plotted
from .word_colours import explanations_to_html, words_to_html
from .word_pictures import plot_words
from .word_terminal import words_to_terminal

__all__ = [
    "BELOW",
    "COLOURS",
    "FORM_NAMES",
    "SCHEME_NAMES",
    "STYLE",
    "Plotted",
    "explanations_to_html",
    "method_grid",
    "method_label",
    "plot_continuation",
    "plot_correlation",
    "plot_directions",
    "plot_errors",
    "plot_example",
    "plot_form_difference",
    "plot_mass_accuracy",
    "plot_performance",
    "plot_planted",
    "plot_randomisation",
    "plot_relative_mass_accuracy",
    "plot_significance",
    "plot_three_effects",
    "plot_words",
    "plot_yardsticks",
    "words_to_html",
    "words_to_terminal",
]
