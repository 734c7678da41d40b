"""A headless Chromium for tests, driven through its DevTools protocol over two pipes.

`--remote-debugging-pipe` needs nothing beside the browser. `TOUCHSTONE_CHROMIUM` may name its
program.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# The least contrast (WCAG) of the text of elements with what lies behind it, see-through grounds
# blended; what is faded counts as unreadable, 1.
_CONTRAST = """((selector) => {
  const shine = (rgb) => rgb.map((c) => (c / 255 <= .04045 ? c / 255 / 12.92 :
    ((c / 255 + .055) / 1.055) ** 2.4))
    .reduce((sum, c, k) => sum + c * [.2126, .7152, .0722][k], 0);
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const ground = (node) => {
    if (!node) return [255, 255, 255];
    const [r, g, b, alpha = 1] = numbers(getComputedStyle(node).backgroundColor);
    if (alpha === 1) return [r, g, b];
    return ground(node.parentElement).map((c, k) => alpha * [r, g, b][k] + (1 - alpha) * c); };
  return [...document.querySelectorAll(selector)].map((node) => {
    for (let up = node; up; up = up.parentElement) {
      if (getComputedStyle(up).opacity !== "1") return 1; }
    const [a, b] = [shine(numbers(getComputedStyle(node).color).slice(0, 3)), shine(ground(node))];
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  }).reduce((least, ratio) => Math.min(least, ratio), 21);
})"""
# What DevTools answers where the page that a command was sent to has given way to the next one.
_GONE = (
    "Inspected target navigated or closed",
    "Execution context was destroyed.",
    "Cannot find context with specified id",
)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class PageHasGone(Exception):
    """The browser has left the page that was asked."""


def find_program() -> str | None:
    """The browser of this machine, or None."""
    named = os.environ.get("TOUCHSTONE_CHROMIUM")
    return named or next((found for name in PROGRAMS if (found := shutil.which(name))), None)


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
        self.complaints: list[str] = []  # what the page's console says, where it is an error
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
            elif complaint := _complaint(message):
                self.complaints.append(complaint)
            elif message.get("id") == mine:
                if message.get("error", {}).get("message") in _GONE:
                    raise PageHasGone(message["error"]["message"])
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

    def go(self, url: str, width: int = 1400, height: int = 1000) -> None:
        """Load an address, as the page that has the focus."""
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call("Page.navigate", url=url)

    def listen(self) -> None:
        """From now on, keep what the console calls an error in `complaints`."""
        for domain in ("Runtime", "Log"):
            self.call(f"{domain}.enable")

    def prefer(self, scheme: str) -> None:
        """Ask pages for "light" or "dark" colours, as a system's settings do."""
        wish = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[wish])

    def wait(self, script: str, seconds: float = 60) -> Any:
        """The first value of a script that counts as true; asked again on the page that follows
        where the browser leaves one while the script runs."""
        until = time.monotonic() + seconds
        while True:
            try:
                value = self.run(script)
            except PageHasGone:
                value = None
            if value:
                return value
            assert time.monotonic() < until, f"not within {seconds} s: {script}"
            time.sleep(0.2)

    def click(self, element: str, times: int = 1) -> None:
        """Click on the element that an expression finds, near its left end, as a person does."""
        left, top = self.run(
            f"(() => {{ const element = {element}; element.scrollIntoViewIfNeeded(); const box = "
            "element.getBoundingClientRect(); return [box.x + Math.min(box.width / 2, 60), "
            "box.y + Math.min(box.height / 2, 20)]; })()"
        )
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call(
                    "Input.dispatchMouseEvent",
                    type=kind,
                    x=left,
                    y=top,
                    button="left",
                    clickCount=count,
                )

    def type(self, text: str) -> None:
        """Write text where the focus is."""
        self.call("Input.insertText", text=text)

    def contrast(self, selector: str) -> float:
        """The least contrast of the text of the elements that a selector finds (WCAG: 4.5)."""
        assert self.run(f"document.querySelectorAll({json.dumps(selector)}).length"), selector
        return float(self.run(f"{_CONTRAST}({json.dumps(selector)})"))

    def picture(self, path: Path) -> None:
        """What is seen now, as a PNG file."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

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


def _complaint(event: dict[str, Any]) -> str:
    """The text of an event that says that something on the page went wrong; else nothing."""
    about = event.get("params", {})
    match event.get("method"):
        case "Runtime.exceptionThrown":
            return json.dumps(about["exceptionDetails"])
        case "Runtime.consoleAPICalled" if about["type"] in ("error", "assert"):
            return json.dumps(about["args"])
        case "Log.entryAdded" if about["entry"]["level"] == "error":
            return json.dumps(about["entry"])
    return ""
