"""Word scores as HTML: complete, self-contained, escaped, the same every time, small."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from lib.attribution import METHODS, explain_many
from lib.core.errors import TouchstoneError
from lib.plots import explanations_to_html, words_to_html

WORDS, SCORES = ["She", "<b>loves", "cats"], [0.5, -0.25, 0.0]


def test_every_word_has_its_score_and_a_colour_by_its_size() -> None:
    text = words_to_html(WORDS, SCORES, "IG: F", "F")
    spans = re.findall(
        r'<span title="([^"]+)" style="background:rgba\((\d+),\d+,\d+,([\d.]+)\)[^>]*>'
        r"([^<]*)</span>",
        text,
    )
    assert [(float(score), float(strength), word) for score, _, strength, word in spans] == [
        (0.5, 1.0, "She"),
        (-0.25, 0.5, "&lt;b&gt;loves"),
        (0.0, 0.0, "cats"),
    ]
    assert spans[0][1] != spans[1][1] and "toward F" in text


def test_the_html_loads_nothing_and_is_the_same_every_time() -> None:
    text = words_to_html(WORDS, SCORES)
    assert text == words_to_html(WORDS, SCORES) != words_to_html(WORDS, [0.5, -0.25, 0.1])
    assert not re.search(r"http|<script|<link|<style|src=|@import", text)
    assert len(re.findall(r'id="words-[0-9a-f]{12}"', text)) == 1


def test_a_full_input_of_512_words_stays_below_50_kb() -> None:
    text = words_to_html(
        ["international"] * 512, [(-1) ** i * i / 512 for i in range(512)], "Integrated Gradients"
    )
    assert len(text.encode()) < 50_000
    assert len(words_to_html(["international"] * 60, [0.1] * 60).encode()) < 8_000


def test_several_explanations_stand_below_each_other() -> None:
    rows = pd.DataFrame(
        {"row_id": ["1-F"], "sentence_idx": [1], "target": [0], "sentence": [["she", "sings"]]}
    )
    text = explanations_to_html(
        explain_many(None, rows, ["First pronoun", "Pronoun list"]), ["female"]
    )
    assert text.count("<div id=") == 2 and "First pronoun: female" in text


@pytest.mark.parametrize("scores", [[0.1], [0.1, 0.2, float("nan")]])
def test_scores_that_do_not_fit_are_refused(scores: list[float]) -> None:
    with pytest.raises(TouchstoneError, match="3 words and .* give one finite score a word"):
        words_to_html(WORDS, scores)


def explained(
    method: str,
    settings: str = "{}",
    delta: float | None = None,
    scores: tuple[float, ...] = (0.5, -0.25),
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "words": [["she", "naïve"]],
            "scores": [list(scores)],
            "target": [0],
            "method": method,
            "settings": settings,
            "delta": [delta],
            "explained": "log_probability",
        }
    )


@pytest.mark.parametrize(
    ("method", "settings", "signed"),
    [
        ("Integrated Gradients", '{"aggregation": "sum"}', True),
        ("Integrated Gradients", '{"aggregation": "l2"}', False),
        ("Saliency", '{"aggregation": "l1"}', False),
        ("Attention rollout", "{}", False),
        ("First pronoun", "{}", False),
        ("LIME", "{}", True),
        ("mine:own", "{}", True),
        ("InputXGradient", '{"normalise_special": true}', False),
    ],
)
def test_scores_without_a_sign_are_not_said_to_point_anywhere(
    method: str, settings: str, signed: bool
) -> None:
    text = explanations_to_html(explained(method, settings), ["F"])
    assert ("toward F" in text and "violet" in text) == signed
    assert ("gives no sign" in text) != signed
    assert ("rgba(128,115,172" in text) == signed  # one colour for sizes


def test_no_method_without_a_sign_is_said_to_point_somewhere() -> None:
    sizes = {
        name
        for name, method in METHODS.items()
        if "gives no sign" in explanations_to_html(explained(name, json.dumps(method.settings())))
    }
    assert sizes == {
        "Saliency",
        "Guided Backprop",
        "Gradient norm",
        "SmoothGrad",
        "Attention rollout",
        "Uniform random",
        "Pattern Variant",
        "First pronoun",
        "Pronoun list",
    }
    own = explanations_to_html(explained("mine:sizes"), unsigned=["mine:sizes"])
    assert "gives no sign" in own


def test_titles_classes_and_remarks_are_escaped() -> None:
    text = words_to_html(["a"], [1.0], "<i>", "R&D", remark="<b>")
    assert "<i>" not in text and "<b></b>" not in text and "<b>&lt;i&gt;</b>" in text
    assert "toward R&amp;D" in text and "; &lt;b&gt;</div>" in text


def test_equal_boxes_have_ids_of_their_own() -> None:
    found = re.findall(
        r'id="([^"]+)"', explanations_to_html(pd.concat([explained("LIME")] * 3), ["F"])
    )
    assert len(set(found)) == 3 and found[1] == f"{found[0]}-2" and found[2] == f"{found[0]}-3"


def test_a_completeness_gap_is_told_with_the_scores() -> None:
    text = explanations_to_html(
        explained("DeepLift", delta=0.05), ["F"]
    )  # the scores sum to .25, the change is .2
    assert "miss the change of the log probability by 0.05 (25.0%): more than 5 %" in text
    assert "0.4%)</div>" in explanations_to_html(explained("DeepLift", delta=0.001), ["F"])
    assert "miss" not in explanations_to_html(explained("DeepLift"), ["F"])


def test_a_page_is_a_whole_document_that_keeps_its_letters() -> None:
    page = explanations_to_html(explained("LIME"), ["F"], page=True)
    assert (
        page.startswith("<!doctype html>")
        and '<meta charset="utf-8">' in page
        and page.encode().decode("utf-8").count("naïve") == 1
    )
    assert not re.search(r"http|<script|<link|<style|src=|@import", page)
    assert "<meta" not in explanations_to_html(explained("LIME"), ["F"])
