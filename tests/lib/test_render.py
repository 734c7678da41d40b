"""Word scores as HTML and as a plot: complete, self-contained, escaped, the same every time, small."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from lib.attribution import explain_many
from lib.errors import TouchstoneError
from lib.render import explanations_to_html, plot_words, words_to_html

WORDS, SCORES = ["She", "<b>loves", "cats"], [0.5, -0.25, 0.0]


def test_every_word_has_its_score_and_a_colour_by_its_size() -> None:
    text = words_to_html(WORDS, SCORES, "IG: F", "F")
    spans = re.findall(r'<span title="([^"]+)" style="background:rgba\((\d+),\d+,\d+,([\d.]+)\)[^>]*>([^<]*)</span>', text)
    assert [(float(score), float(strength), word) for score, _, strength, word in spans] == [
        (0.5, 1.0, "She"), (-0.25, 0.5, "&lt;b&gt;loves"), (0.0, 0.0, "cats")]
    assert spans[0][1] != spans[1][1] and "toward F" in text


def test_the_html_loads_nothing_and_is_the_same_every_time() -> None:
    text = words_to_html(WORDS, SCORES)
    assert text == words_to_html(WORDS, SCORES) != words_to_html(WORDS, [0.5, -0.25, 0.1])
    assert not re.search(r"http|<script|<link|<style|src=|@import", text)
    assert len(re.findall(r'id="words-[0-9a-f]{12}"', text)) == 1


def test_a_full_input_of_512_words_stays_below_50_kb() -> None:
    text = words_to_html(["international"] * 512, [(-1) ** i * i / 512 for i in range(512)], "Integrated Gradients")
    assert len(text.encode()) < 50_000
    assert len(words_to_html(["international"] * 60, [0.1] * 60).encode()) < 8_000


def test_several_explanations_stand_below_each_other() -> None:
    rows = pd.DataFrame({"row_id": ["1-F"], "sentence_idx": [1], "target": [0], "sentence": [["she", "sings"]]})
    text = explanations_to_html(explain_many(None, rows, ["First pronoun", "Pronoun list"]), ["female"])
    assert text.count("<div id=") == 2 and "First pronoun: female" in text


def test_the_plot_shows_its_table() -> None:
    figure, table = plot_words(WORDS, SCORES)
    assert [bar.get_height() for bar in figure.axes[0].patches] == SCORES == table["score"].tolist()
    plt.close(figure)


@pytest.mark.parametrize("scores", [[0.1], [0.1, 0.2, float("nan")]])
def test_scores_that_do_not_fit_are_refused(scores: list[float]) -> None:
    with pytest.raises(TouchstoneError, match="3 words and .* give one finite score a word"):
        words_to_html(WORDS, scores)
