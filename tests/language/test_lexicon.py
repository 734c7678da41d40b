"""The lexicon: consistent, with its sources, and refused where a row is bad."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.lexicon import first_pronoun, load_lexicon, plural, read_lexicon


def test_the_lexicon_is_consistent() -> None:
    lexicon = load_lexicon()
    assert len(lexicon.kinds) >= 300
    for female, male, neutral in lexicon.kinds:
        assert all((female, male, neutral)) and female != male
        if lexicon.kinds[female, male, neutral] != "title":
            assert (lexicon.find(female) or ("?",))[0] == "F", female
    assert (
        lexicon.find("author") is None
        and lexicon.find("authoress") is not None
        and lexicon.find("table") is None
    )
    assert lexicon.find("Kings") == ("M", ("Queens", "Kings", "Monarchs"))
    assert lexicon.find("God") is None and lexicon.find("gods") is not None
    assert plural("patriarch") == "patriarchs" and plural("German") == "Germans"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("queen,king\n", "does not begin with the columns"),
        (
            "female,male,neutral,kind,source\nqueen,king,,nobility,own\n",
            "line 2: not five filled fields",
        ),
    ],
)
def test_a_bad_lexicon_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "l.csv").write_text(content)
    with pytest.raises(TouchstoneError, match=message):
        read_lexicon(tmp_path / "l.csv")


def test_the_lexicon_names_its_sources() -> None:
    """About 300 pairs, each with a neutral form and a source whose licence is in the head."""
    text = (material("geco") / "gender_lexicon.csv").read_text()
    head = " ".join(line for line in text.splitlines() if line.startswith("#"))
    sources = pd.read_csv(material("geco") / "gender_lexicon.csv", comment="#")[
        "source"
    ].value_counts()
    assert set(sources.index) == {"own", "gn_glove", "geco"} and sources.sum() >= 300
    assert all(licence in head for licence in ("CC BY 4.0", "Apache-2.0", "BSD-3-Clause"))


SENTENCES = [
    ["She", "meets", "him"],
    ["Mx. ", "Darcy", "loves ", "Their", "dog"],
    ["Himself", "alone"],
    ["The", "mother"],
    ["To", "her", ",", "he", "lies"],
]


def test_the_first_pronoun_is_found_in_any_case() -> None:
    assert [first_pronoun(words) for words in SENTENCES] == [
        (0, 0),
        (3, 2),
        (0, 1),
        None,
        (1, 0),
    ]
    assert first_pronoun(["them", "he"], ("F", "M")) == (1, 1)  # with two classes, they is nobody's
