"""Files, written whole or not at all: under a temporary name in the same folder, then renamed."""

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from .errors import TouchstoneError


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """A temporary name beside `path` to write to: renamed on success, removed on an error.

    The temporary name ends in `.part`: a writer that guesses its format from the name must be told.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)  # one step, since both lie in one folder
    finally:
        part.unlink(missing_ok=True)


def write_atomic(path: Path | str, content: str | bytes) -> None:
    """Write text (UTF-8, line ends as they are) or bytes; readers see the old file or the new."""
    with atomic_path(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def read_utf8(path: Path) -> str:
    """The text of a file, line ends as they are, without a byte-order mark.

    Raises:
        TouchstoneError: the bytes are not UTF-8; it names the line.
    """
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise TouchstoneError(
            f"{path}, line {line}: the bytes are not UTF-8; save the file as UTF-8"
        ) from None


def strict_json(text: str | bytes) -> Any:
    """What a JSON text holds; of two equal keys of an object `json.loads` would keep the last.

    Raises:
        ValueError: it is no JSON, has a key twice, or is nested deeper than Python reads.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for key, value in pairs:
        if key in held:
            raise ValueError(f"the key {key!r} is written twice")
        held[key] = value
    return held


def csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows of a CSV (or .tsv) file as text, head included, each with its first line's number.

    Empty rows are left out. In a TSV file a quotation mark is a letter like any other.

    Raises:
        TouchstoneError: there is no such file, it is empty or not UTF-8, or a row does not have the
            fields of the head.
    """
    if not path.is_file():
        raise TouchstoneError(f"there is no file {path}; correct the parameter that names it")
    is_tsv = path.suffix.lower() == ".tsv"
    # Line ends stay as they are, for a quoted field may hold some.
    reader = csv.reader(
        io.StringIO(read_utf8(path), newline=""),
        delimiter="\t" if is_tsv else ",",
        strict=True,
        quoting=csv.QUOTE_NONE if is_tsv else csv.QUOTE_MINIMAL,
    )
    rows: list[tuple[int, list[str]]] = []
    line = 1
    try:
        for fields in reader:
            fields = [_unquoted(field) for field in fields] if is_tsv else fields
            if fields and rows and len(fields) != len(rows[0][1]):
                raise TouchstoneError(
                    f"{path}, line {line}: {len(fields)} fields, and the head has "
                    f"{len(rows[0][1])}; complete the row, or put quotation marks around a field "
                    "with a comma in it"
                )
            rows += [(line, fields)] if fields else []
            line = reader.line_num + 1  # a quoted field may hold line ends
    except csv.Error as error:
        raise TouchstoneError(
            f"{path}, line {line}: the row that begins here cannot be read ({error}); close its "
            "quotation marks, and double those inside a field"
        ) from None
    if not rows:
        raise TouchstoneError(
            f"{path} is empty; it needs a line with the names of the columns, and rows below it"
        )
    return rows


def _unquoted(field: str) -> str:
    """A field of a TSV file without the marks that pandas puts around one that holds a mark.

    The field's own marks are doubled then.
    """
    is_quoted = re.fullmatch('"(?:[^"]|"")*""(?:[^"]|"")*"', field)
    return field[1:-1].replace('""', '"') if is_quoted else field


def sha256_of(path: Path | str) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_tree(folder: Path | str, pattern: str = "**/*") -> str:
    """One SHA-256 over the names and contents of all files below a folder that match a pattern."""
    folder = Path(folder)
    files = sorted(p for p in folder.glob(pattern) if p.is_file() and "__pycache__" not in p.parts)
    lines = [f"{p.relative_to(folder).as_posix()} {sha256_of(p)}\n" for p in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def save_csv(frame: pd.DataFrame, path: Path | str) -> None:
    """Write a table as CSV: six significant digits, `\\n` line ends, its index only with a name."""
    named = any(name is not None for name in frame.index.names)
    write_atomic(path, frame.to_csv(index=named, float_format="%.6g", lineterminator="\n"))


def save_json(obj: object, path: Path | str) -> None:
    """Write JSON, indented, one line end at the end; NaN is refused, for JSON has none."""
    write_atomic(path, json.dumps(obj, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def save_parquet(frame: pd.DataFrame, path: Path | str) -> None:
    """Write a table as Parquet (columns may hold lists), without its index."""
    with atomic_path(path) as part:
        frame.to_parquet(part, index=False)


def load_parquet(path: Path | str) -> pd.DataFrame:
    """Read a table that `save_parquet` wrote; columns of lists come back as Python lists."""
    frame = pd.read_parquet(path)
    for name in frame.columns:
        if frame[name].dtype == object:  # pandas gives an array for a list
            frame[name] = [v.tolist() if hasattr(v, "tolist") else v for v in frame[name]]
    return frame
