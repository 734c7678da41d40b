"""Schematics: the committed files are what the functions draw, and nothing is cut off."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest
import schematics
from matplotlib.text import Text

from lib.metrics import concept_effects
from lib.plots import schematics_effects as effects
from lib.plots import schematics_evidence as evidence
from lib.plots import schematics_methods as methods
from lib.plots import schematics_truths as truths

NAMES = [make.__name__ for make in schematics.ALL]


@pytest.mark.slow
def test_the_committed_schematics_are_these(tmp_path: Path) -> None:
    schematics.write(tmp_path)
    ours = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    committed = {
        path.name: path.read_text(encoding="utf-8") for path in schematics.FOLDER.iterdir()
    }
    assert set(ours) == set(committed) == {f"{name}.svg" for name in NAMES} | {"alt.json"}
    changed = [name for name in ours if ours[name] != committed[name]]
    assert not changed, "run `make schematics`"
    for name, text in ours.items():
        assert len(text) < 60_000
        if name.endswith(".svg"):
            assert ElementTree.fromstring(text).tag.endswith("svg")
            assert "<text" in text and "Date" not in text


@pytest.mark.parametrize("make", schematics.ALL, ids=NAMES)
def test_every_letter_is_on_the_sheet_and_large_enough(make) -> None:
    figure, alt = make()
    canvas = figure.canvas
    renderer = canvas.get_renderer()
    page = figure.bbox
    for text in figure.findobj(Text):
        if not text.get_text():
            continue
        assert text.get_fontsize() >= 9, text.get_text()
        box = text.get_window_extent(renderer)
        assert box.x0 >= page.x0 and box.x1 <= page.x1, text.get_text()
        assert box.y0 >= page.y0 and box.y1 <= page.y1, text.get_text()
    assert len(alt) > 80 and alt.endswith("."), "who does not see it reads this"
    plt.close(figure)


def test_alt_texts_are_those_of_the_drawings() -> None:
    alts = json.loads((schematics.FOLDER / "alt.json").read_text(encoding="utf-8"))
    assert list(alts) == NAMES
    assert not [name for name, alt in alts.items() if re.search(r"[{}]|nan", alt)]


def test_what_is_drawn_follows_from_the_arguments() -> None:
    swaps = methods.draw_swaps(("a", "b"), ("0", "1", "2", "3"), (0.0, 0.4, 0.2, 1.0))
    assert "a 0.60, b 0.40" in swaps.alt
    slopes = np.full(4, 2.0)
    assert "+1.00" in methods.draw_path([(0, 0), (1, 1)], slopes).alt, "twice the rise"
    forms = truths.draw_forms({"F": ["She", "sings"], "M": ["He", "sings"]}, [1, 0])
    assert forms.alt.endswith("differ: She.")
    pronoun = truths.draw_masked_pronoun(["[MASK]", "sings"], 0, {"He": 0.3, "She": 0.1})
    assert "0.75" in pronoun.alt
    assert "0.60, is the floor" in methods.draw_floor({"x": 0.9, "y": 0.6}, ["y"], "mass").alt
    plt.close("all")


def test_errors_that_are_drawn_are_those_of_the_metrics() -> None:
    effect, estimate = np.array([[0.4, 0.0, -0.4]]), np.array([[0.0, 0.3, -0.3]])
    alt = effects.draw_errors(effect[0].tolist(), estimate[0].tolist()).alt
    for name in concept_effects.DISTANCES:
        error = getattr(concept_effects, name.lower())(effect, estimate)[0]
        assert f"{error:.2f}" in alt, name
    plt.close("all")


def test_evidence_follows_from_the_arguments() -> None:
    beside, on_line = [(0.0, 0.4)], [(0.1, 0.0)]
    assert "in the mean 0.30" in effects.draw_two_answers(0.6, beside + on_line).alt
    texts = [("good", "bad", 0.8), ("bad", "bad", 0.2), ("bad", "good", 0.4)]
    alt = effects.draw_ways(texts, asked=1).alt
    assert "(+0.50)" in alt and "(+0.6)" in alt, "the averages, the match"
    alt = evidence.draw_scores(
        [("he", 0.3, "she", 0.1, ""), ("he", 0.3, "she", None, "alone")], 0.05
    )
    assert "1 gets 0.75, 2 is discarded (alone)" in alt.alt
    alt = evidence.draw_removed({"a": 1.0, "b": -3.0}, {1}).alt
    assert "in sum -2; without 'b' the sum is 1, so the effect of these words is -3," in alt
    right = np.array([[[1, 1], [0, 0]], [[1, 1], [0, 1]]])
    assert evidence.draw_resample(right, (1, 1)).alt.endswith("has a mean of 0.25.")
    plt.close("all")


def test_limes_weights_are_fitted() -> None:
    assert schematics.lime().alt.endswith("She +0.6, loves 0, her +0.2, cat 0.")
    plt.close("all")
