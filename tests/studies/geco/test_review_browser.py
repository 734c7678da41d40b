"""The review page in a real browser: reject, edit, save, build again, see the change.

Chromium is driven through its DevTools protocol over two pipes (`--remote-debugging-pipe`), so
nothing has to be installed beside the browser. `TOUCHSTONE_CHROMIUM` may name its program; without
one the test is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.studies.geco.corpus import read_geco
from lib.studies.geco.dataset import DECISIONS, build_dataset

pytestmark = pytest.mark.more

CONTRAST = """(() => {
  const shine = (rgb) => rgb.map((c) => (c / 255 <= .04045 ? c / 255 / 12.92 :
    ((c / 255 + .055) / 1.055) ** 2.4))
    .reduce((sum, c, k) => sum + c * [.2126, .7152, .0722][k], 0);
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const ground = (node) => { for (let up = node; up; up = up.parentElement) {
    const found = numbers(getComputedStyle(up).backgroundColor);
    if (found.length === 3 || found[3] === 1) return found.slice(0, 3); } return [255, 255, 255]; };
  const told = "h1, p, label, caption, th, .word, .doubt, #state, .divider td";
  return [...document.querySelectorAll(told)].map((node) => {
    for (let up = node; up; up = up.parentElement) {
      if (getComputedStyle(up).opacity !== "1") return 1; }
    const [a, b] = [shine(numbers(getComputedStyle(node).color).slice(0, 3)), shine(ground(node))];
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  }).reduce((least, ratio) => Math.min(least, ratio));
})()"""
TEXT = (
    "The actress sees her uncle.\nShe waves to him.\n\n"
    "He laughs and leaves.\nThe king trusts his daughter.\n"
)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Browser:
    """One page of a headless Chromium; `run` evaluates JavaScript on it and returns the value."""

    def __init__(self, program: str, downloads: Path, profile: Path) -> None:
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "about:blank",
        ]
        launcher = (
            "import fcntl, os, sys; r, w = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in "
            "sys.argv[1:3]); "
            "os.dup2(r, 3); os.dup2(w, 4); os.execvp(sys.argv[3], sys.argv[3:])"
        )
        given = [
            sys.executable,
            "-c",
            launcher,
            str(to_browser),
            str(from_browser),
            program,
            *flags,
        ]
        self.process = subprocess.Popen(
            given,
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.count, self.buffer, self.session = 0, b"", ""
        self.answer = ""
        target = next(
            t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"
        )
        self.session = self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )["sessionId"]
        self.call("Page.enable")
        self.call(
            "Browser.setDownloadBehavior",
            behavior="allow",
            downloadPath=str(downloads),
            browser=True,
        )

    def call(self, method: str, browser: bool = False, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its result; `self.answer` answers a prompt."""
        self.count += 1
        mine = self.count
        self._send({"id": mine, "method": method, "params": parameters}, browser)
        while True:
            message = self._receive()
            if message.get("method") == "Page.javascriptDialogOpening":
                self.count += 1
                self._send(
                    {
                        "id": self.count,
                        "method": "Page.handleJavaScriptDialog",
                        "params": {"accept": True, "promptText": self.answer},
                    }
                )
            elif message.get("id") == mine:
                assert "error" not in message, message
                return message["result"]

    def open(self, page: Path) -> None:
        """Load a file and wait until its rows are drawn."""
        self.call("Page.navigate", url=page.as_uri())
        for _ in range(100):
            if self.run(
                "document.readyState === 'complete' && document.querySelectorAll('#rows tr').length"
            ):
                return
            time.sleep(0.1)
        raise AssertionError("the page drew no rows")

    def run(self, script: str, answer: str = "") -> Any:
        """The value of a script on the page; a prompt is answered with `answer`."""
        self.answer = answer
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str, answer: str = "", modifiers: int = 0) -> None:
        """Press a key as a person does: it goes to what has the focus."""
        self.answer = answer
        text = {"text": key if len(key) == 1 else "\r"} if key in ("Enter", " ") else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code={" ": "Space"}.get(key, key),
                modifiers=modifiers,
                windowsVirtualKeyCode={
                    "Enter": 13,
                    " ": 32,
                    "Tab": 9,
                    "ArrowRight": 39,
                    "ArrowLeft": 37,
                }.get(key, 90),
                **(text if kind == "keyDown" else {}),
            )

    def close(self) -> None:
        """End the browser that this test started."""
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self.write_end)
        os.close(self.read_end)

    def _send(self, message: dict[str, Any], browser: bool = False) -> None:
        session = {"sessionId": self.session} if self.session and not browser else {}
        os.write(self.write_end, json.dumps(message | session).encode() + b"\0")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            chunk = os.read(self.read_end, 65536)
            assert chunk, "the browser has gone"
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A headless Chromium that saves into `tmp_path/out`."""
    named = os.environ.get("TOUCHSTONE_CHROMIUM")
    program = named or next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("needs a browser: install Debian's chromium, or set TOUCHSTONE_CHROMIUM to one")
    (tmp_path / "out").mkdir()
    made = Browser(program, tmp_path / "out", tmp_path / "profile")
    yield made
    made.close()


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
    assert browser.run(CONTRAST) >= 4.5
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
