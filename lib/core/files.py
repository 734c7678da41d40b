"""Files, written whole or not at all: under a temporary name in the same folder, then renamed."""

import csv
import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Collection, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from .errors import TouchstoneError

# what numpy raises for a file that holds no named arrays
_NO_ARRAYS = (OSError, ValueError, EOFError, TypeError, AttributeError)


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


def read_utf8(path: Path | str) -> str:
    """The text of a file, line ends as they are, without a byte-order mark.

    Raises:
        TouchstoneError: there is no such file, its bytes are not UTF-8, or one is zero, as in no
            text; it names the line.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise TouchstoneError(
            f"{path} cannot be read ({error.strerror}); put the file there, or correct the path"
        ) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise TouchstoneError(
            f"{path}, line {line}: the bytes are not UTF-8; save the file as UTF-8"
        ) from None
    before, zero, _ = text.partition("\0")
    if zero:
        line = before.count("\n") + 1
        raise TouchstoneError(f"{path}, line {line}: a byte of zero; save the file as plain text")
    return text


def strict_json(text: str | bytes) -> Any:
    """What a JSON text holds; of two equal keys of an object `json.loads` would keep the last, and
    it reads NaN, which is no JSON.

    Raises:
        ValueError: it is no JSON, has a key twice, or is nested deeper than Python reads.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


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


def read_text(path: Path | str) -> str:
    """The text of a file as `read_utf8` gives it, with `\\n` for every line end."""
    return read_utf8(path).replace("\r\n", "\n").replace("\r", "\n")


def read_yaml(path: Path | str, kind: type = dict) -> Any:
    """What a YAML file holds: plain values, no key twice, no number that reads as another.

    Args:
        path: the file.
        kind: what it must hold: dict (`name: value` lines) or list (`- item` lines).

    Raises:
        TouchstoneError: naming the file, and where it can the line.
    """
    content = parse_yaml(read_utf8(path), str(path))
    if not isinstance(content, kind):
        form = "lines of the form `name: value`" if kind is dict else "a list of `- ...` items"
        known = {dict: "such lines", list: "a list", type(None): "nothing"}
        held = known.get(type(content), "one value")
        raise TouchstoneError(f"{path} must hold {form}, and it holds {held}; write it so")
    return content


def parse_yaml(text: str, source: str) -> Any:
    """What a text in YAML says, as strictly as `read_yaml`.

    Raises:
        TouchstoneError: beginning with `source`.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)  # a SafeLoader
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).replace('in "<unicode string>", ', "").split())
        raise TouchstoneError(
            f"{source} is not readable as YAML ({reason}); correct that line"
        ) from None


def read_json(path: Path | str, remedy: str) -> Any:
    """What a JSON file holds; a name twice in one object is refused.

    Raises:
        TouchstoneError: ending with the remedy.
    """
    return parse_json(read_utf8(path), str(path), remedy)


def parse_json(text: str | bytes, source: str, remedy: str) -> Any:
    """What a text in JSON says, as strictly as `read_json`.

    Raises:
        TouchstoneError: beginning with `source` and ending with the remedy.
    """
    try:
        return strict_json(text)
    except ValueError as error:  # a UnicodeDecodeError is one
        raise TouchstoneError(f"{source} is not valid JSON ({error}); {remedy}") from None


def read_table(path: Path | str, **options: Any) -> pd.DataFrame:
    """A table from a Parquet file, or from CSV in UTF-8.

    Args:
        path: the file; what does not end in `.parquet` is CSV.
        options: of `pandas.read_csv`.

    Raises:
        TouchstoneError: there is no such file, or it is no such table.
    """
    is_parquet = Path(path).suffix == ".parquet"
    try:
        if is_parquet:
            return pd.read_parquet(path)
        return pd.read_csv(io.StringIO(read_utf8(path)), **options)
    except TouchstoneError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        kind = "Parquet" if is_parquet else "CSV"
        reason = " ".join(str(error).replace(str(path), "it").split())[:200]
        raise TouchstoneError(
            f"{path} is not readable as {kind} ({reason}); write it again as {kind}"
        ) from None


def read_arrays(path: Path | str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name; arrays of objects, which run code, are refused.

    Raises:
        TouchstoneError: there is no such file, or it holds something else.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (*_NO_ARRAYS, zipfile.BadZipFile, zlib.error) as error:
        raise TouchstoneError(
            f"{path} is not readable as .npz ({error}); write numbers and text with numpy.savez"
        ) from None


def sha256_of(path: Path | str) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_tree(folder: Path | str, pattern: str = "**/*", without: Collection[str] = ()) -> str:
    """One SHA-256 over the names and contents of all files below a folder that match a pattern.

    Files of a name in `without` do not count.
    """
    folder = Path(folder)
    files = sorted(p for p in folder.glob(pattern) if p.is_file() and "__pycache__" not in p.parts)
    counted = [path for path in files if path.name not in without]
    lines = [f"{p.relative_to(folder).as_posix()} {sha256_of(p)}\n" for p in counted]
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


def read_handed_in(path: Path | str, name: str = "") -> pd.DataFrame:
    """`load_parquet` of a file that somebody else wrote; an error calls it `name`.

    Raises:
        TouchstoneError: it is no Parquet file.
    """
    try:
        return load_parquet(path)
    except (ValueError, OSError) as error:  # pyarrow's errors are both
        raise TouchstoneError(
            f"{name or path} is not a Parquet file; write the table with pandas' to_parquet"
        ) from error


def load_parquet(path: Path | str | io.BytesIO) -> pd.DataFrame:
    """Read a table: columns of lists come back as Python lists, decimals as floats."""
    table = pq.read_table(path)
    for place, column in enumerate(table.schema):
        if pa.types.is_decimal(column.type):
            table = table.set_column(place, column.name, table[place].cast(pa.float64()))
    frame = table.to_pandas()
    for name in frame.columns:
        if frame[name].dtype == object:  # pandas gives an array for a list
            frame[name] = [v.tolist() if hasattr(v, "tolist") else v for v in frame[name]]
    return frame


class _StrictLoader(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys without a word, and reads 010 as 8 and 1:30 as 90."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping from its node, as PyYAML does, unless a key occurs twice."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise yaml.YAMLError(f"{twice[0]!r} is set twice")
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """A whole number that everybody reads as the same."""
        digits = node.value.lstrip("+-")
        if ":" in digits or (digits[0] == "0" and digits.strip("0_").isdigit()):
            raise yaml.YAMLError(
                f"line {node.start_mark.line + 1}: {node.value} is another number in YAML "
                f"({super().construct_yaml_int(node)}); write that one, or quote the text"
            )
        return super().construct_yaml_int(node)


_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_yaml_int)
