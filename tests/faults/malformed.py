"""How the inputs of `inputs.yaml` are made and read: for each format a good content, how it is
written, and the public reader (or function) that a user's input meets.

A case changes the good content in one way:

- `set: {path: value}`, `drop: path`: a part of the content, "0.target" the target of the first;
- `whole`, `append`, `replace: [old, new]`: the text of the file; `nested: n`: n brackets below it;
- `bytes`: what is done to the whole file, one of `_WHOLE_FILE`;
- `file`: which of several files the change is made to.

`accepted: same` means that what is read equals what is read of the good content, `accepted: {path:
value}` that these parts differ from it. `refused` holds the words that the error must have beside
the name of the file.
"""

from __future__ import annotations

import contextlib
import copy
import io
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT

_ABOUT = ("case", "file", "accepted", "refused")  # what a line holds beside its change


def _remove(path: Path) -> None:
    path.unlink()


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _make_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("a file\n")


_ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda _: b"",
    "latin-1": lambda old: old + "caf\xe9".encode("latin-1"),
    "utf-16": lambda old: old.decode().encode("utf-16"),
    "byte-order mark": lambda old: b"\xef\xbb\xbf" + old,
    "CRLF": lambda old: old.replace(b"\n", b"\r\n"),
    "CR": lambda old: old.replace(b"\n", b"\r"),
    "no line end": lambda old: old.rstrip(b"\n"),
    "half": lambda old: old[: len(old) // 2],
    "zeros in the middle": lambda old: old[: len(old) // 2] + bytes(40) + old[len(old) // 2 + 40 :],
    "text": lambda _: b"no such format\n",
    "pickle": lambda _: b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94.",
}
_WHOLE_FILE: dict[str, Callable[[Path], None]] = {
    "missing": _remove,
    "a folder": _make_folder,
    "a file": _make_file,
} | {
    name: lambda path, change=change: path.write_bytes(change(path.read_bytes()))
    for name, change in _ENCODE.items()
}


@dataclass(frozen=True)
class Format:
    """A kind of input.

    Args:
        good: the content that is right, made anew at each call.
        write: writes a content into a folder.
        read: reads it from the folder, as plain data; for a function, `write` keeps nothing.
        file: the file that is changed ("" for a function).
        names: what an error must name in place of the file.
        prints: what is not usable is told in a printed line, and `read` gives None.
    """

    good: Callable[[], Any]
    write: Callable[[Path, Any], None]
    read: Callable[[Path], Any]
    file: str
    names: str = ""
    prints: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of an input: the sentence that a user sees, or what was read."""

    sentence: str = ""
    value: Any = None


def changed(content: Any, parts: Mapping[str, Any]) -> Any:
    """A copy of a content with other values at some paths ("0.target"; "" is all of it)."""
    content = copy.deepcopy(content)
    for path, value in parts.items():
        if path == "":
            return value
        inner, last = _place(content, path)
        inner[last] = value
    return content


def without(content: Any, path: str) -> Any:
    """A copy of a content without what is at a path."""
    content = copy.deepcopy(content)
    inner, last = _place(content, path)
    del inner[last]
    return content


def _place(content: Any, path: str) -> tuple[Any, Any]:
    """The part of a content that a path leads into, and its last step."""
    *above, last = path.split(".")
    for name in above:
        content = content[int(name) if isinstance(content, list) else name]
    return content, int(last) if isinstance(content, list) else last


def _write(form: Format, case: Mapping[str, Any], folder: Path) -> Path:
    """The case's input in a folder; returns the file that it changes."""
    content = form.good()
    if "set" in case:
        content = changed(content, case["set"])
    if "drop" in case:
        content = without(content, case["drop"])
    form.write(folder, content)
    path = folder / case.get("file", form.file)
    if "whole" in case:
        path.write_bytes(_bytes(case["whole"]))
    if "append" in case:
        path.write_bytes(path.read_bytes() + _bytes(case["append"]))
    if "replace" in case:
        old, new = map(_bytes, case["replace"])
        assert old in path.read_bytes(), f"the good {path.name} does not hold {old!r}"
        path.write_bytes(path.read_bytes().replace(old, new, 1))
    if "nested" in case:
        path.write_bytes(path.read_bytes() + b"[" * case["nested"])
    if "bytes" in case:
        _WHOLE_FILE[case["bytes"]](path)
    return path


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def outcome(form: Format, case: Mapping[str, Any], folder: Path) -> Outcome:
    """Make a case's input and hand it to its reader; what is no TouchstoneError comes through."""
    _write(form, case, folder)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            value = form.read(folder)
    except TouchstoneError as error:
        return Outcome(str(error))
    if form.prints and value is None:
        return Outcome(printed.getvalue().strip())
    return Outcome(value=value)


def expected(form: Format, case: Mapping[str, Any], folder: Path) -> Any:
    """What an accepted case must give: what the good content gives, with the parts named."""
    form.write(folder, form.good())
    value = form.read(folder)
    shutil.rmtree(folder)
    return value if case["accepted"] == "same" else changed(value, case["accepted"])


def names_of_changes(case: Mapping[str, Any]) -> list[str]:
    """What a case changes, by the words of the head of this file."""
    return [name for name in case if name not in _ABOUT]


def text_file(name: str, good: Callable[[], str] | str, read: Callable[[Path], Any]) -> Format:
    """The format of one text file, whose reader takes its path."""

    def write(folder: Path, content: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(_bytes(content))

    make = good if callable(good) else lambda: good
    return Format(make, write, lambda folder: read(folder / name), name)


def told(sentence: str, folder: Path) -> str:
    """A sentence without what differs from one run to the next: folders, the names of modules."""
    sentence = sentence.replace(str(folder), "FOLDER").replace(str(ROOT), "REPOSITORY")
    sentence = re.sub(r"\S*/touchstone-\w+", "ENCODER", sentence)
    return re.sub(r"own_\d+", "own_N", sentence)
