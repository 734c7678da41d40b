"""Every input of `inputs.yaml` meets its verdict: one sentence with file and remedy, or a value."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from formats import FORMATS, HERE, TABLE
from malformed import expected, names_of_changes, outcome, told

LONGEST = 600  # letters of a sentence that somebody reads
CASES = [
    pytest.param(name, case, id=f"{name}: {case['case']}")
    for name, cases in TABLE.items()
    for case in cases
]
SENTENCES = {
    (row["format"], row["case"]): row["sentence"]
    for row in csv.DictReader((HERE / "sentences.csv").read_text().splitlines())
}


def test_the_table_speaks_of_every_format_and_of_each_case_once() -> None:
    assert set(TABLE) == set(FORMATS)
    for name, cases in TABLE.items():
        known = [case["case"] for case in cases]
        assert len(set(known)) == len(known), name
        for case in cases:
            assert ("accepted" in case) != ("refused" in case), (name, case)
            assert names_of_changes(case), (name, case)
    assert set(SENTENCES) == {(name, case["case"]) for name in TABLE for case in TABLE[name]}


@pytest.mark.parametrize("name, case", CASES)
def test_input(name: str, case: dict[str, Any], tmp_path: Path) -> None:
    form = FORMATS[name]
    if "accepted" in case:
        wanted = expected(form, case, tmp_path / "good")
        found = outcome(form, case, tmp_path / "good")
        assert found.sentence == ""
        assert found.value == wanted
        return
    found = outcome(form, case, tmp_path)
    sentence = found.sentence
    assert sentence, f"accepted as {found.value!r}"
    assert "\n" not in sentence and len(told(sentence, tmp_path)) <= LONGEST
    assert re.search("[;:] ", sentence), "what to do stands behind a semicolon or a colon"
    assert (form.names or Path(case.get("file", form.file)).name) in sentence
    for words in case["refused"]:
        assert words in sentence
    assert told(sentence, tmp_path) == SENTENCES[name, case["case"]], (
        "another sentence than in sentences.csv; read it, then run `python tools/sentences.py`"
    )
