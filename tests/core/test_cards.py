"""The dataset card answers its questions, and what it lacks is named."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
import yaml

from lib.core.cards import dataset_card, read_card
from lib.core.errors import TouchstoneError
from lib.core.paths import material

CARD = material("geco") / "card.yaml"
NAMES = {
    name
    for _, name, _, _ in string.Formatter().parse(CARD.read_text())
    if name and name.isidentifier()
} - {"names"}
NUMBERS = {name: 40 + i for i, name in enumerate(sorted(NAMES))}


@pytest.mark.parametrize("source", ["bundled", "geco"])
def test_the_card_answers_the_questions_of_a_datasheet(source: str) -> None:
    text = dataset_card(read_card(CARD, source, NUMBERS))
    for heading in (
        "Motivation",
        "Composition",
        "Collection",
        "Labelling",
        "Uses",
        "Distribution and care",
    ):
        assert f"\n## {heading}\n" in text
    for question in ("Intended use", "Limits", "Gender as three forms", "Misuse", "Licence"):
        assert f"**{question}**" in text
    assert f"{NUMBERS['base_sentences']} base sentences" in text and "{" not in text


def test_what_a_card_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        TouchstoneError, match=r"card\.yaml has no card for 'mine', only for bundled, geco"
    ):
        read_card(CARD, "mine", NUMBERS)
    with pytest.raises(TouchstoneError, match="nothing is known of 'base_sentences'"):
        read_card(CARD, "bundled", {})
    path = tmp_path / "card.yaml"
    path.write_text(yaml.safe_dump({"bundled": {"name": "x"}}))
    with pytest.raises(TouchstoneError, match="title, version, licence"):
        read_card(path, "bundled", NUMBERS)
