"""What all figures share: colours that are told apart, and letters that can be read in print."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from lib.core.pictures import at_print_size, weak_places
from lib.plots import COLOURS, STYLE, plot_words


def test_lines_take_the_colour_blind_palette_unless_told_otherwise() -> None:
    with plt.rc_context(STYLE):
        _, ax = plt.subplots()
        lines = [ax.plot([0, 1])[0].get_color() for _ in range(3)]
    assert lines == COLOURS[:3]


@pytest.mark.parametrize("digits", [2, None])
def test_coloured_words_can_be_read_in_print(digits: int | None) -> None:
    row = {"words": ["She", "sings", "."], "scores": [0.5, -0.1, 0.0], "label": "LIME\nmore"}
    figure, _ = plot_words(pd.DataFrame([row]), {"x": "a mark"}, title="A title", digits=digits)
    with at_print_size(figure):
        assert not [place for place in weak_places(figure) if "points" in place]
