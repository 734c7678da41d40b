"""Words coloured in a picture: every word and score is drawn, signs and marks have more than a
colour, nothing leaves the page.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.plots import plot_words

ROWS = pd.DataFrame(
    {
        "label": ["truth", "a method\nits settings"],
        "words": [["She", "loves", "$cats$"]] * 2,
        "scores": [None, [0.5, -0.25, 0.0004]],
        "marks": [["changed", "", "near"]] * 2,
    }
)
MARKS = {"changed": "what we changed", "near": "what is near"}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def texts(figure: plt.Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def boxes(figure: plt.Figure) -> list[tuple]:
    patches = figure.axes[0].patches
    return [(*np.round(p.get_facecolor()[:3], 6), p.get_hatch()) for p in patches]


def test_every_word_has_its_score_below_and_the_table_holds_what_is_drawn() -> None:
    figure, table = plot_words(ROWS, MARKS, title="Two rows")
    drawn = texts(figure)
    assert drawn[0] == "Two rows" and drawn.count("She") == 2 and "its settings" in drawn
    assert drawn[drawn.index("+0.50") :][:5] == ["+0.50", "loves", "−0.25", "$cats$", "0"]
    assert list(table) == ["heading", "label", "word", "score", "mark"]
    assert table["score"].tolist()[3:] == [0.5, -0.25, 0.0004] and table["score"][:3].isna().all()


def test_the_sign_and_the_marks_are_more_than_a_colour_and_the_legend_says_so() -> None:
    figure, _ = plot_words(ROWS, MARKS, "for F")
    truth, method, legend = boxes(figure)[:3], boxes(figure)[3:6], boxes(figure)[6:8]
    assert truth[0][:3] == (0.85, 0.85, 0.85) and truth[1][:3] == (1, 1, 1), "no score: marks only"
    assert method[0] == legend[0] and not method[0][-1], "the largest of its row"
    assert method[1][-1] == legend[1][-1] == "//" and method[1][:3] > legend[1][:3]
    bold = [t.get_text() for t in figure.axes[0].texts if t.get_weight() == "bold"]
    assert bold == ["She", "She", "word"]
    assert {line.get_linestyle() for line in figure.axes[0].lines} == {"-", "--"}
    assert {"orange", "violet", "the opposite", *MARKS.values()} < set(texts(figure))
    plain, _ = plot_words(ROWS.drop(columns="marks")[1:].assign(scores=[[1, 0, 2]]), digits=None)
    assert texts(plain)[-2:-1] == ["orange"], "no violet word, no mark, no numbers: no key to them"


def test_long_sentences_are_wrapped_and_headings_stand_where_they_change() -> None:
    long = pd.DataFrame(
        {
            "method": ["Integrated Gradients"] * 3,
            "heading": ["one", "one", "two"],
            "words": [["international"] * 40] * 3,
            "scores": [np.linspace(-1, 1, 40)] * 3,
        }
    )
    figure, _ = plot_words(long, width=6)
    places = [box.get_window_extent() for box in figure.axes[0].patches]
    assert min(min(p.x0, p.y0) for p in places) > -1e-6
    assert (
        max(p.x1 for p in places) <= figure.bbox.x1 and max(p.y1 for p in places) <= figure.bbox.y1
    )
    assert texts(figure).count("one") == texts(figure).count("two") == 1
    sizes = [text.get_fontsize() for text in figure.axes[0].texts]
    assert min(sizes) >= 9


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TouchstoneError, match="'truth' has 3 words, 2 scores and 3 marks"):
        plot_words(ROWS[:1].assign(scores=[[0.1, 0.2]]))
