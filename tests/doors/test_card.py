"""Report cards: the form, the page, and what is refused."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lib.core.errors import TouchstoneError
from lib.doors.card import SCHEMA, card_schema, check_card, read_card, render_card, save_card


class Page(HTMLParser):
    """What a page holds: its text, its tags with attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_form_is_a_valid_schema_and_the_example_fits(card: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(card_schema())
    check_card(card)


def test_a_card_comes_back_and_stands_in_its_page(card: dict[str, Any], tmp_path: Path) -> None:
    path = save_card(card, tmp_path)
    assert read_card(tmp_path / "card.json") == card
    page = path.read_text(encoding="utf-8")
    embedded = re.search(r'<script type="application/json" id="card">(.*?)</script>', page, re.S)
    assert embedded and json.loads(embedded[1]) == card
    assert len(page) < 300_000


def test_the_page_loads_nothing_and_escapes_what_it_is_given(card: dict[str, Any]) -> None:
    page = Page(render_card(card))
    assert not [tag for tag, about in page.tags if {"src", "href"} & set(about) or tag == "b"]
    assert [about.get("type") for tag, about in page.tags if tag == "script"] == [
        "application/json"
    ]
    assert "mine:<b>by_length</b>" in page.text


def test_unknown_is_printed_as_unknown_and_a_refusal_with_its_reason(card: dict[str, Any]) -> None:
    text = Page(render_card(card | {"gate": None})).text
    assert "it refuses this model" in text
    assert "CPU seconds a text: unknown" in text
    assert "two trainings of the model: unknown" in text
    assert "Unknown: nobody asked it about a model with other weights" in text


def test_a_card_of_ones_own_model_names_it_and_says_what_to_know(card: dict[str, Any]) -> None:
    more = {"schema": SCHEMA, "model": "my/<model>", "notes": ["not blind: a file"]}
    text = Page(render_card(card | more)).text
    assert "Asked about the classifier my/<model>" in text and "not blind: a file" in text
    assert "Asked about the classifier" not in Page(render_card(card)).text


def test_every_word_can_be_reached_with_the_keyboard_and_known_ones_are_marked(
    card: dict[str, Any],
) -> None:
    tags = Page(render_card(card)).tags
    spans = [about for tag, about in tags if tag == "span" and "tabindex" in about]
    assert [about["title"] for about in spans] == ["2", "-1"]
    assert [about.get("class") for about in spans] == ["known", None]
    assert "224,130,20,0.75" in str(spans[0]["style"])
    assert "128,115,172,0.38" in str(spans[1]["style"])


def test_a_value_outside_the_strip_stands_at_its_end(card: dict[str, Any]) -> None:
    card["truths"][0] |= {"value": -9.0, "low": -20.0, "high": 0.0}
    circles = [about for tag, about in Page(render_card(card)).tags if tag == "circle"]
    assert [about["cx"] for about in circles] == ["6.0"]


def test_a_stronger_rule_and_what_a_truth_cannot_see_stand_beside_it(card: dict[str, Any]) -> None:
    plain = Page(render_card(card))
    new = {"cannot_see": "It cannot see the model.", "stronger": "Rare <words>"}
    card["truths"][0] |= new | {"stronger_raw": 0.75, "stronger_value": 0.375}
    page = Page(render_card(card | {"schema": SCHEMA}))
    assert "It cannot see the model. It was asked about 6 texts." in page.text
    assert "stronger: Rare <words>, 0.75" in page.text
    labels = [about["aria-label"] for tag, about in page.tags if tag == "svg"]
    assert "a stronger rule 0.38" in str(labels[0]) and "stronger" not in str(labels[1])
    lines, before = (sum(tag == "line" for tag, _ in of.tags) for of in (page, plain))
    assert lines == before + 1
    assert "stronger: " not in plain.text, "a card of an earlier form does not know"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"schema": 4}, "schema"),
        ({"summary": ""}, "summary"),
        ({"marks": 3}, "marks"),
        ({"gate": {"likeness": "high", "passes": True}}, "gate.likeness"),
        ({"truths": []}, "truths"),
    ],
)
def test_a_card_of_another_form_is_refused_by_its_field(
    card: dict[str, Any], change: dict[str, Any], named: str, tmp_path: Path
) -> None:
    path = tmp_path / "card.json"
    path.write_text(json.dumps(card | change))
    with pytest.raises(TouchstoneError, match=re.escape(str(path))) as error:
        read_card(path)
    assert named in str(error.value)


def test_a_sentence_needs_a_score_and_a_mark_a_word(card: dict[str, Any]) -> None:
    card["sentences"][0]["scores"] = [1.0]
    with pytest.raises(TouchstoneError, match="good sentence has 2 words, 1 scores"):
        render_card(card)
