"""The review page in a real browser: reject, edit, save, build again, see the change."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from chromium import Browser

from lib.studies.geco.corpus import read_geco
from lib.studies.geco.dataset import DECISIONS, build_dataset

pytestmark = pytest.mark.more

TOLD = "h1, p, label, caption, th, .word, .doubt, #state, .divider td"
TEXT = (
    "The actress sees her uncle.\nShe waves to him.\n\n"
    "He laughs and leaves.\nThe king trusts his daughter.\n"
)


@pytest.mark.slow
def test_a_reader_decides_and_the_data_set_follows(
    browser: Browser, tmp_path: Path, spacy_pipeline: str
) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.mkdir()
    (text / "tale.txt").write_text(TEXT)
    build_dataset(text, out, spacy_pipeline)
    before = read_geco(out / "non_binary_gender_all" / "train.jsonl")
    assert len(before) // 3 == 3

    browser.open(out / "review.html")
    assert browser.run("document.querySelectorAll('#rows tr').length") == 4
    assert browser.run("document.querySelector('#tale-0003 .changed').textContent") == "She"
    browser.run("document.querySelector('#tale-0003 .reject').click()")
    assert browser.run("document.getElementById('tale-0003').className") == "rejected"
    word = "document.querySelector('#tale-0004 td:nth-child(4) [data-position=\"1\"]')"
    assert browser.run(f"{word}.textContent") == "monarch"
    browser.run(f"{word}.click()", answer="ruler")
    assert browser.run(f"{word}.textContent") == "ruler" and "edited" in browser.run(
        f"{word}.className"
    )
    browser.run("document.getElementById('save').click()")
    for _ in range(100):
        if (out / DECISIONS).is_file():
            break
        time.sleep(0.1)
    decided = json.loads((out / DECISIONS).read_text())["sentences"]
    assert set(decided) == {"tale-0003", "tale-0004"} and decided["tale-0003"]["rejected"]

    build_dataset(text, out, spacy_pipeline)
    words = {
        word
        for split in ("train", "test")
        for sentence in read_geco(out / "non_binary_gender_all" / f"{split}.jsonl")["sentence"]
        for word in sentence
    }
    assert "ruler" in words and "monarch" not in words and "laughs" not in words
    browser.open(out / "review.html")
    assert browser.run("document.getElementById('tale-0003').className") == "rejected", (
        "decisions are shown again"
    )


FOCUS = (
    "[document.activeElement.closest('tr')?.id, document.activeElement.dataset.position, "
    "document.activeElement.textContent].join(' ')"
)


def built(tmp_path: Path, spacy_pipeline: str, more: str = "") -> tuple[Path, Path]:
    text, out = tmp_path / "text", tmp_path / "out"
    text.mkdir()
    (text / "tale.txt").write_text(TEXT + more)
    build_dataset(text, out, spacy_pipeline)
    return text, out


def test_a_reader_without_a_mouse(browser: Browser, tmp_path: Path, spacy_pipeline: str) -> None:
    _, out = built(tmp_path, spacy_pipeline)
    browser.open(out / "review.html")
    assert browser.run(
        "[...document.querySelectorAll('.word')].every((word) => word.getAttribute('role') === "
        "'button')"
    )
    assert browser.run("document.querySelectorAll('#tale-0004 td [tabindex=\"0\"]').length") == 3, (
        "one stop in each text"
    )
    browser.run("document.querySelector('#tale-0004 td:nth-child(4) [tabindex=\"0\"]').focus()")
    others = browser.run("window.kept = document.getElementById('tale-0001'); true")
    browser.press("Enter", answer="ruler")
    assert others and browser.run(FOCUS) == "tale-0004 1 ruler", (
        "the word that was changed keeps the focus"
    )
    assert browser.run("window.kept === document.getElementById('tale-0001')"), (
        "no other row is drawn again"
    )
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    assert browser.run(FOCUS).startswith("tale-0004 3 ")
    browser.press(" ", answer="its")
    assert browser.run(FOCUS) == "tale-0004 3 its"
    browser.press("z", modifiers=2)
    assert (
        browser.run(
            "document.querySelector('#tale-0004 td:nth-child(4) [data-position=\"3\"]').textContent"
        )
        == "their"
    )
    assert "is undone" in browser.run("document.getElementById('state').textContent")


def test_an_edit_that_fits_both_data_sets_is_made_in_both(
    browser: Browser, tmp_path: Path, spacy_pipeline: str
) -> None:
    _, out = built(tmp_path, spacy_pipeline)
    browser.open(out / "review.html")
    king = "document.querySelector('#tale-0004 td:nth-child(4) [data-position=\"1\"]')"
    state, show = (
        "document.getElementById('state').textContent",
        "scope.value = {}; scope.onchange(); true",
    )
    browser.run(f"{king}.click()", answer="ruler")
    assert '"king" is changed in D_A and D_S; 1 change' in browser.run(state)
    browser.run(show.format("'subj'"))
    assert browser.run(f"{king}.textContent") == "ruler"
    browser.run("document.getElementById('both').click()")
    browser.run(f"{king}.click()", answer="chief")
    assert "changed in D_S only; show D_A" in browser.run(state)
    browser.run(show.format("'all'"))
    assert browser.run(f"{king}.textContent") == "ruler"
    browser.run("undo(); undo(); true")
    assert browser.run(f"{king}.textContent") == "monarch" and browser.run(
        "document.getElementById('undo').disabled"
    )


def test_everything_can_be_read(browser: Browser, tmp_path: Path, spacy_pipeline: str) -> None:
    _, out = built(tmp_path, spacy_pipeline, "\nThey bring their own lunch.\n")
    browser.open(out / "review.html")
    browser.run("document.querySelector('#tale-0003 .reject').click()")
    browser.run(
        "document.querySelector('#tale-0004 td:nth-child(4) [data-position=\"1\"]').click()",
        answer=" ",
    )
    assert (
        browser.run(
            "document.querySelectorAll('#tale-0003.rejected, #tale-0004 .gone, .divider').length"
        )
        == 5
    )
    assert browser.contrast(TOLD) >= 4.5
    assert browser.run(
        "[...document.querySelectorAll('th')].every((head) => head.scope) && "
        "!!document.querySelector('caption, meta[name=viewport]')"
    )
    assert browser.run("document.querySelector('#rows tr:last-child').id") == "tale-0005", (
        "what was not labelled comes last"
    )
    ranks = browser.run("order.filter((row) => row.labelled).map((row) => row.rank.all)")
    assert ranks == sorted(ranks, reverse=True)


@pytest.mark.slow
def test_decisions_about_sentences_that_have_gone_are_shown_and_saved(
    browser: Browser, tmp_path: Path, spacy_pipeline: str
) -> None:
    text, out = built(tmp_path, spacy_pipeline)
    gone = {"text_id": "0" * 12, "text": "A duke sat .", "rejected": True, "edits": {}}
    (out / DECISIONS).write_text(json.dumps({"sentences": {"tale-0001": gone}}))
    build_dataset(text, out, spacy_pipeline)
    browser.open(out / "review.html")
    assert "rejected: A duke sat ." in browser.run("document.getElementById('stale').textContent")
    browser.run("document.querySelector('#tale-0001 .reject').click()")
    entries = browser.run("decisions().sentences")
    assert {key: (entry["text"], entry["rejected"]) for key, entry in entries.items()} == {
        f"gone-{'0' * 12}": ("A duke sat .", True),
        "tale-0001": ("The actress sees her uncle .", True),
    }
