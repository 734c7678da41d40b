"""Every input of `inputs.yaml` meets its verdict: one sentence with file and remedy, or a value."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from formats_of_files import FORMATS as OF_FILES
from formats_of_models import FORMATS as OF_MODELS
from malformed import expected, names_of_changes, outcome

HERE = Path(__file__).parent
FORMATS = OF_FILES | OF_MODELS
TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "inputs.yaml").read_text())
LONGEST = 700  # letters of a sentence that somebody reads
CASES = [
    pytest.param(
        name,
        case,
        id=f"{name}: {case['case']}",
        marks=[pytest.mark.xfail(strict=True, reason=case["fails"])] if "fails" in case else [],
    )
    for name, cases in TABLE.items()
    for case in cases
]


def test_the_table_speaks_of_every_format_and_of_each_case_once() -> None:
    assert set(TABLE) == set(FORMATS)
    for name, cases in TABLE.items():
        known = [case["case"] for case in cases]
        assert len(set(known)) == len(known), name
        for case in cases:
            assert ("accepted" in case) != ("refused" in case), (name, case)
            assert names_of_changes(case), (name, case)


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
    assert "\n" not in sentence and len(sentence) <= LONGEST
    assert re.search("[;:] ", sentence), "what to do stands behind a semicolon or a colon"
    assert (form.names or Path(case.get("file", form.file)).name) in sentence
    for words in case["refused"]:
        assert words in sentence
