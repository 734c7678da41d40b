"""What a masked language model learns from: frames by rule, draws without held-out nouns."""

from __future__ import annotations

import pytest
import yaml

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.studies.implicit_bias.sentences import gendered_pronouns
from lib.studies.implicit_bias.text import draw, gender_frames

OWN = material("implicit_bias")


def test_frames_are_balanced_and_keep_to_the_rules() -> None:
    gate = {noun for noun, *_ in yaml.safe_load((OWN / "gate.yaml").read_text())}
    found = gender_frames(OWN / "frames.yaml", 400, 0)
    spoken = [words[i].lower() for words in found for i in gendered_pronouns(words)]
    assert len(found) == 400 and found == gender_frames(OWN / "frames.yaml", 400, 0)
    assert not gate & {word.lower() for words in found for word in words} and not {
        "N",
        "they",
        "them",
        "themself",
    } & {w for ws in found for w in ws}
    assert 0.4 < sum(word in ("he", "him", "his", "himself") for word in spoken) / len(spoken) < 0.6
    with pytest.raises(TouchstoneError, match="ask for fewer"):
        gender_frames(OWN / "frames.yaml", 100_000, 0)


def test_held_out_nouns_take_their_sentences_along() -> None:
    sentences = [["The", "Wizard", "left"], ["Two", "wizards"], ["A", "witch"]]
    assert draw(sentences, 0, 0, ["wizard"]) == [["A", "witch"]]
    assert draw(sentences, 2, 5) == draw(sentences, 2, 5) and len(draw(sentences, 2, 5)) == 2
