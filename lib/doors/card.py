"""A report card: what one explainer reached, as `card.json` and as a page for anybody.

The form is `card_schema.json` (JSON Schema, versioned by its field `schema`). The page is one file:
nothing is loaded, no script runs, and it can be read with the keyboard alone.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from jsonschema import Draft202012Validator

from ..core.errors import TouchstoneError
from ..core.files import read_json, save_json, write_atomic

SCHEMA = 3  # the version of the form that is written
_WIDTH, _LEFT, _RIGHT = 230, -1.0, 1.15  # of the strip: pixels, and the values at its ends
_ENVIRONMENT = Environment(autoescape=True, trim_blocks=True, keep_trailing_newline=True)
_WORDS = _ENVIRONMENT.from_string(
    "{% for word, score, share, known in words %}"
    '<span tabindex="0" title="{{ "%.3g" | format(score) }}"'
    '{% if known %} class="known"{% endif %} style="background:rgba('
    '{{ "224,130,20" if share >= 0 else "128,115,172" }},{{ "%.2f" | format(share | abs) }})">'
    "{{ word }}</span> {% endfor %}"
)
_STRIP = _ENVIRONMENT.from_string(
    '<svg width="{{ width }}" height="26" role="img" aria-label="{{ label }}">'
    '<line x1="0" x2="{{ width }}" y1="13" y2="13" stroke="#ddd"/>'
    '<line x1="{{ at(0) }}" x2="{{ at(0) }}" y1="1" y2="25" stroke="#767676"'
    ' stroke-dasharray="3 2"/>'
    '<line x1="{{ at(1) }}" x2="{{ at(1) }}" y1="1" y2="25" stroke="#767676"/>'
    "{% if stronger is not none %}"
    '<line x1="{{ at(stronger) }}" x2="{{ at(stronger) }}" y1="1" y2="25" stroke="#222"'
    ' stroke-width="2" stroke-dasharray="2 2"/>{% endif %}'
    "{% if best is not none %}"
    '<path d="M{{ at(best) }} 7 l4 6 l-4 6 l-4 -6 z" fill="#542788"/>{% endif %}'
    "{% if low is not none %}"
    '<line x1="{{ at(low) }}" x2="{{ at(high) }}" y1="13" y2="13" stroke="#b35806"'
    ' stroke-width="3"/>{% endif %}'
    '{% if value is not none %}<circle cx="{{ at(value) }}" cy="13" r="5" stroke="#b35806"'
    ' stroke-width="2" fill="{{ "#fff" if hollow else "#b35806" }}"/>{% endif %}</svg>'
)


def save_card(card: Mapping[str, Any], folder: Path) -> Path:
    """Write `card.json` and the page `card.html` into a folder; returns the page's path."""
    page = render_card(card)
    save_json(dict(card), folder / "card.json")
    write_atomic(folder / "card.html", page)
    return folder / "card.html"


def read_card(path: Path) -> dict[str, Any]:
    """A card from its JSON.

    Raises:
        TouchstoneError: naming the file and the field that is not as `card_schema.json` has it.
    """
    card = read_json(path, "make the card again")
    check_card(card, str(path))
    return card


def check_card(card: Any, where: str = "the card") -> None:
    """Compare a card with its form.

    Raises:
        TouchstoneError: naming the first field that does not fit, and what it should be.
    """
    problems = sorted(Draft202012Validator(card_schema()).iter_errors(card), key=lambda e: e.path)
    if problems:
        field = ".".join(map(str, problems[0].absolute_path)) or "the card itself"
        raise TouchstoneError(
            f"{where}: {field}: {problems[0].message}; see lib/doors/card_schema.json"
        )
    for sentence in card["sentences"]:
        if not len(sentence["words"]) == len(sentence["scores"]) == len(sentence["key"]):
            raise TouchstoneError(
                f"{where}: the {sentence['which']} sentence has {len(sentence['words'])} words, "
                f"{len(sentence['scores'])} scores and {len(sentence['key'])} marks; give one of "
                "each a word"
            )


def card_schema() -> dict[str, Any]:
    """The form of `card.json`, as JSON Schema."""
    text = (files(__package__) / "card_schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def render_card(card: Mapping[str, Any]) -> str:
    """The page of a card, one self-contained HTML document.

    Raises:
        TouchstoneError: the card is not of its form.
    """
    check_card(card)
    page = (files(__package__) / "card_page.html").read_text(encoding="utf-8")
    # No word of a text may end the element that holds the card.
    embedded = json.dumps(card, ensure_ascii=False).replace("<", "\\u003c")
    return _ENVIRONMENT.from_string(page).render(
        card=card, strip=_strip, coloured=_coloured, number=_number, embedded=embedded
    )


def _number(value: float | None) -> str:
    """
    >>> _number(0.5), _number(None)
    ('0.50', 'unknown')
    """
    return "unknown" if value is None else f"{value:.2f}"


def _strip(row: Mapping[str, Any]) -> str:
    """A cell as a small picture: floor, oracle, a stronger rule, the value with its interval, the
    best other.
    """
    label = (
        f"{row['truth']}: value {_number(row['value'])}, best other {_number(row['best_value'])}"
    )
    stronger = row.get("stronger_value")  # unknown to a card of an earlier form
    label += "" if stronger is None else f", a stronger rule {_number(stronger)}"
    drawn = {name: row[name] for name in ("value", "low", "high")}
    drawn |= {"best": row["best_value"], "stronger": stronger}
    return _STRIP.render(width=_WIDTH, at=_place, label=label, hollow=row["by_identity"], **drawn)


def _place(value: float) -> float:
    """Where a value stands on the strip, in pixels; what lies outside stands at its end."""
    share = (min(max(value, _LEFT), _RIGHT) - _LEFT) / (_RIGHT - _LEFT)
    return round(6 + share * (_WIDTH - 12), 1)


def _coloured(sentence: Mapping[str, Any]) -> str:
    scores: Sequence[float] = sentence["scores"]
    largest = max(map(abs, scores), default=0.0) or 1.0
    shares = [0.75 * score / largest for score in scores]  # black on it keeps a contrast above 4.5
    known = [bool(key) for key in sentence["key"]]
    words = zip(sentence["words"], scores, shares, known, strict=True)
    return _WORDS.render(words=list(words))
