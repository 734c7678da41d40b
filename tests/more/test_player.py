"""The page to play with, in a real browser: mouse, keyboard and touch; scores as Python's."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import player
import pytest
from chromium import Browser

from lib.metrics import mass_accuracy
from lib.metrics.mass_accuracy import roc_auc

pytestmark = pytest.mark.more
DATA = json.loads((player.SOURCE / "data.json").read_text(encoding="utf-8"))
SENTENCES = DATA["sentences"]
MARKED = (
    "[...document.querySelectorAll('#words button')].map(b => +(b.ariaPressed === 'true')).join('')"
)
FOCUS = "document.activeElement.textContent"
WORD = "document.querySelectorAll('#words button')"
LISTEN = """window.problems = [];
const told = (what) => window.problems.push(String(what));
addEventListener("error", (event) => told(event.message));
addEventListener("unhandledrejection", (event) => told(event.reason));
addEventListener("securitypolicyviolation", (event) => told(event.violatedDirective));
console.error = console.warn = told;"""


@pytest.fixture
def played(browser: Browser, tmp_path: Path) -> Browser:
    """The page, opened at the width of a desk."""
    browser.call("Page.addScriptToEvaluateOnNewDocument", source=LISTEN)
    show(browser, player.build(tmp_path / "index.html"), 1280)
    return browser


def show(browser: Browser, page: Path, width: int, dark: bool = False) -> None:
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.call("Emulation.setEmulatedMedia", features=scheme)
    browser.go(page.as_uri(), width=width, height=844)
    browser.wait(
        "document.readyState === 'complete' && document.querySelectorAll('#words button').length"
    )


def mark(browser: Browser, words: Sequence[int]) -> None:
    for i in words:
        browser.run(f"{WORD}[{i}].click()")


def ranking(browser: Browser) -> dict[str, tuple[str, str]]:
    """The two scores of everybody, as the page shows them."""
    return dict(
        browser.run(
            "[...document.querySelectorAll('#ranking tbody tr')].map(row => "
            "[row.cells[0].firstChild.data, [row.cells[2].textContent, row.cells[3].textContent]])"
        )
    )


def in_python(sentence: dict, scores: Sequence[float]) -> tuple[float, float]:
    return mass_accuracy(scores, sentence["mask"]), roc_auc(scores, sentence["mask"])


def rounds(shown: Sequence[str], values: Sequence[float]) -> bool:
    """Two digits of each value are shown; which way a tie rounds is not asked."""
    return [float(text) for text in shown] == pytest.approx(list(values), abs=0.005 + 1e-9)


def test_marks_by_mouse_by_keyboard_and_by_touch(played: Browser) -> None:
    n = len(SENTENCES[0]["words"])
    played.click(f"{WORD}[2]")
    assert played.run(MARKED) == "".join("1" if i == 2 else "0" for i in range(n))
    for key in ("ArrowRight", "ArrowRight", " "):
        played.press(key)
    assert played.run(MARKED)[4] == "1"
    for key in ("Home", "ArrowLeft", "Enter"):  # to the left of the first is the last
        played.press(key)
    assert played.run(MARKED)[-1] == "1"
    left, top = played.run(
        f"(() => {{ const box = {WORD}[0].getBoundingClientRect(); return [box.x + 9, box.y + 9];"
        " })()"
    )
    played.call("Emulation.setTouchEmulationEnabled", enabled=True)
    played.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": left, "y": top}])
    played.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    played.wait(f"{MARKED}[0] === '1'", 5)
    played.click(f"{WORD}[2]")
    assert played.run(MARKED)[2] == "0", "a second click takes the mark away"


def test_a_sentence_is_played_with_the_keyboard_alone(played: Browser) -> None:
    played.press("Tab")
    assert played.run(FOCUS) == SENTENCES[0]["words"][0], "Tab reaches one word, arrows the others"
    played.press("Tab")
    assert played.run(FOCUS) == "Show the answer"
    played.press("Enter")
    assert "at least one word" in played.run("document.getElementById('status').textContent")
    assert played.run("document.getElementById('answer').hidden")
    played.press("Tab", modifiers=8)  # with shift: back
    played.press(" ")
    played.press("Tab")
    played.press("Enter")
    assert played.run("document.activeElement.id") == "answer-head", "it is read out first"
    played.press("Tab")
    assert played.run("document.activeElement.value") == "mass"
    played.press("ArrowRight")
    assert played.run("document.activeElement.value") == "roc"
    order = [float(roc) for _, roc in ranking(played).values()]
    assert order == sorted(order, reverse=True), "the other score ranks now"
    played.press("Tab")
    assert played.run(FOCUS) == "Next sentence"
    played.press("Enter")
    assert played.run(FOCUS).startswith("Sentence 2 of")
    assert "1" not in played.run(MARKED)


def test_scores_are_pythons_on_the_same_marks(played: Browser, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    labels = {method["name"]: method["label"] for method in DATA["methods"]}
    everybody: list[dict[str, float]] = []
    for k, sentence in enumerate(SENTENCES):
        marks = draw.integers(0, 2, len(sentence["words"]))
        marks[draw.integers(len(marks))] = 1
        mark(played, np.flatnonzero(marks))
        played.run("document.getElementById('show').click()")
        shown, exact = ranking(played), played.run("played.at(-1).scores")
        scores = {"You": marks} | sentence["scores"]
        expected = {name: in_python(sentence, of_words) for name, of_words in scores.items()}
        for name, values in expected.items():
            found = exact[name]["mass"], exact[name]["roc"]
            assert found == pytest.approx(values, abs=1e-12), (sentence["row_id"], name)
            assert rounds(shown[labels.get(name, name)], values), (sentence["row_id"], name)
        everybody.append({labels.get(name, name): mass for name, (mass, _) in expected.items()})
        assert str(k + 1) in played.run("document.getElementById('sofar-head').textContent")
        played.run("document.getElementById('next').click()")
    means = dict(
        played.run(
            "[...document.querySelectorAll('#means tbody tr')].map(row => "
            "[row.cells[0].firstChild.data, row.cells[2].textContent])"
        )
    )
    for name, mean in pd.DataFrame(everybody).mean().items():
        assert rounds([means[name]], [mean]), name
    assert played.run("document.activeElement.id") == "sofar-head"
    played.click("document.getElementById('save')")
    saved = _downloaded(tmp_path / "out" / "marks.csv")
    expected = [row["You"] for row in everybody]
    assert saved["MA"].to_numpy() == pytest.approx(expected, abs=1e-12)
    assert saved["sentence"].tolist() == [" ".join(s["words"]) for s in SENTENCES]
    played.click("document.getElementById('again')")
    assert played.run(FOCUS).startswith("Sentence 1 of")
    assert played.run("window.problems") == []


def _downloaded(path: Path) -> pd.DataFrame:
    until = time.monotonic() + 20
    while not path.is_file():
        assert time.monotonic() < until, "nothing was saved"
        time.sleep(0.1)
    return pd.read_csv(io.StringIO(path.read_text()), dtype={"marks": str, "mask": str})


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_it_is_readable_at_every_width(
    browser: Browser, tmp_path: Path, width: int, dark: bool
) -> None:
    browser.call("Page.addScriptToEvaluateOnNewDocument", source=LISTEN)
    show(browser, player.build(tmp_path / "index.html"), width, dark)
    for k in range(len(SENTENCES)):
        mark(browser, [0])
        least = browser.run(
            f"Math.min(...[...{WORD}].map(b => b.getBoundingClientRect()).map(b => "
            "Math.min(b.width, b.height)))"
        )
        assert least >= 44, "a finger hits it"
        browser.run("document.getElementById('show').click()")
        assert browser.run("document.documentElement.scrollWidth") <= width, SENTENCES[k]["row_id"]
        if k == 0:
            assert browser.contrast("h1, h2, h3, p, b, button, th, td, small, label, dd") >= 4.5
            assert browser.contrast(".word") >= 4.5
        browser.run("document.getElementById('next').click()")
    assert browser.run("performance.getEntriesByType('resource').length") == 0
    assert browser.run("window.problems") == []


def test_a_screen_reader_finds_names(played: Browser) -> None:
    mark(played, [0])
    played.run("document.getElementById('show').click()")
    played.call("Accessibility.enable")
    tree = played.call("Accessibility.getFullAXTree")["nodes"]
    named = {
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if not node["ignored"] and "role" in node
    }
    roles = {role for role, _ in named}
    assert {"toolbar", "table", "row", "rowheader", "columnheader", "radio", "status"} <= roles
    assert ("toolbar", "The words of the sentence") in named
    assert not [role for role, name in named if role in ("button", "radio", "heading") and not name]
    heard = [name for role, name in named if role == "cell" and name.startswith("Most weight: ")]
    assert len(heard) >= 8, "each explanation is said in words"
